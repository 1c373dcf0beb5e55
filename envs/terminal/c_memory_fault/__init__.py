"""terminal/CMemoryFault: mend memory faults in a generated C library and its program."""
