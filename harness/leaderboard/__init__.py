"""The leaderboard: results folders that others made, taken in with suspicion, replayed in part, ranked with their like.

    archive       a results folder as one upload, and the strict reader of such uploads
    checks        what must hold of a submission by itself: the whole split of a suite, and files that agree
    scrub         what is published is free of known secrets
    folders       where submissions lie on the disk; nothing half-made survives a restart
    store         tokens, submissions and replays in a database
    sample        which trials are replayed: drawn after the upload, so that nobody can know
    verification  replays them in fresh sandboxes and grades them with this server's hub secret
    ranking       rows that may be compared, beside each other; all others apart
    app, export   the same files, served or written out
    client        sends a results folder

An upload is parsed and never executed. Whoever uploads decides nothing of what is counted: suite, split, levels, seeds,
environments and denominators are the server's. A refusal has a reason of a closed set (`faults.Reason`).
"""

from __future__ import annotations

from .contract import About, Board, BoardRow, State, Verification
from .faults import Reason, Refusal

__all__ = ["About", "Board", "BoardRow", "Reason", "Refusal", "State", "Verification"]
