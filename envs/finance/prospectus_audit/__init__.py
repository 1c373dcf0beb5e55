"""finance/ProspectusAudit: find where the sections of an offering prospectus contradict each other."""
