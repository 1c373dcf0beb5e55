"""terminal/BashQuotingRepair: make a maintenance script safe for any file name, failure and signal."""
