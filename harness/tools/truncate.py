"""Observations are bounded, and always say what was left out."""

from __future__ import annotations

TEXT_LIMIT_BYTES = 8 * 1024
"""An observation's text, in UTF-8; half for the head and half for the tail."""


def valid_text(text: str) -> str:
    """`text` with the replacement character for each half of a character, so that every encoder takes it.

    Example:
        >>> valid_text("a\\ud800b")
        'a\ufffdb'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cut_text(text: str, limit_bytes: int = TEXT_LIMIT_BYTES, *, where: str = "", whole: bool = True) -> tuple[str, int]:
    """`text` cut to head and tail, with a line that counts what is missing; and the number of bytes cut.

    `where` the text lies is told, and whether that is the `whole` output or what was kept of one.

    Example:
        >>> cut_text("abcdefgh", 4)
        ('ab\\n[4 bytes cut here]\\ngh', 4)
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit_bytes:
        return text, 0
    half = limit_bytes // 2
    # never in the middle of a character: drop its broken halves, and count them as cut
    head = raw[:half].decode("utf-8", "ignore")
    tail = raw[-half:].decode("utf-8", "ignore")
    cut = len(raw) - len(head.encode()) - len(tail.encode())
    note = f"; {'all of it' if whole else 'what was kept of it'} is in {where}" if where else ""
    return f"{head}\n[{cut} bytes cut here{note}]\n{tail}", cut
