"""Terminal work: debugging, build and compiler errors."""
