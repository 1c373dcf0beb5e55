"""`python -m metier.cli`: the `metier` command."""

from . import main

main()
