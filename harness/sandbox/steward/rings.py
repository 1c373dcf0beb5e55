"""What is kept of an output stream: its first and its last bytes, and how many left the middle."""

from __future__ import annotations


class HeadTail:
    """Keeps `limit` bytes of the head and `limit` of the tail, so a flood costs nothing; counts the rest.

    Example:
        >>> ring = HeadTail(2)
        >>> ring.add(b"abcdefg")
        >>> ring.cut_bytes, ring.kept()
        (3, b'ab\\n[... 3 bytes cut ...]\\nfg')
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        self._total += len(data)
        room = self._limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail += data
        # trimming only at twice the limit keeps the cost of many small writes linear
        if len(self._tail) > 2 * self._limit:
            self._trim()

    def _trim(self) -> None:
        excess = len(self._tail) - self._limit
        if excess > 0:
            del self._tail[:excess]

    @property
    def cut_bytes(self) -> int:
        """How many bytes are not kept."""
        return max(0, self._total - 2 * self._limit)

    def kept(self) -> bytes:
        """Head and tail, with a line between them that says how much is missing."""
        self._trim()
        cut = self.cut_bytes
        marker = b"\n[... %d bytes cut ...]\n" % cut if cut else b""
        return bytes(self._head) + marker + bytes(self._tail)
