"""Names that an agent made up, as they may be said to anybody. Both ends import this, as they do `frames`."""

from __future__ import annotations


def shown(name: str, most: int = 80) -> str:
    """Printable, and its first `most` characters only where it is longer."""
    beginning = repr(name[:most])[1:-1]
    return beginning if len(name) <= most else f"{beginning}… ({len(name)} characters)"
