"""What the night shift reports."""
