"""terminal/PyMutationRepair: repair injected bugs in a generated Python library from a bug report."""
