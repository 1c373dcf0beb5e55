"""What an exported task carries with it: programs that run in its containers, with nothing but Python's own library.

`play.py` performs the author's solution, `grade.py` runs the family's verifier, `local_sandbox.py` is the sandbox that
the verifier measures in. They are copied, and never imported by Metier itself.
"""
