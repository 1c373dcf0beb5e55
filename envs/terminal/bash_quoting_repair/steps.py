"""All steps, in the order in which a script does them."""

from __future__ import annotations

from .source_steps import COUNT, DROP, PRUNE, PURGE, RENAME, SPOOL
from .target_steps import COLLECT, FEED, MANIFEST

STEPS = (DROP, PURGE, SPOOL, RENAME, COLLECT, FEED, MANIFEST, PRUNE, COUNT)
