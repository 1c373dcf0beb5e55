"""finance/CovenantTest: test the financial covenants of an agreement against the accounts."""
