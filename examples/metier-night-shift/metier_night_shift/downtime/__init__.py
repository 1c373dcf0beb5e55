"""nightshift/DowntimeReport."""
