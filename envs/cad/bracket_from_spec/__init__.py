"""cad/BracketFromSpec: model a bracket from a prose specification."""
