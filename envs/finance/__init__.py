"""Finance: agreements, accounts and the numbers that follow from them."""
