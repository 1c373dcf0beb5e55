"""cad/StlPrintRepair: make a broken STL file printable without losing what it shows."""
