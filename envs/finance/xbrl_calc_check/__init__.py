"""finance/XbrlCalcCheck: make an XBRL filing agree with its statements and with its own calculations."""
