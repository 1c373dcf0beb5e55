"""The steward: the resident process inside a sandbox. Standard library only, Python 3.8 or later.

This package is copied as it is into the sandbox (read-only) and run with ``python3 -I``; nothing here may import the
rest of Metier. It is pid 1 there, speaks frames over its own stdin and stdout, and is single-threaded: one loop
(`loop`), requests (`main`), commands (`commands`), persistent sessions (`sessions`, `zygote`), files and trees
(`files`, `trees`), and the reset (`reset`).
"""
