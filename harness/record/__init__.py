"""Records: every episode as typed events, from a rollout's memory to a store that can be queried and exported.

A producer opens a `Recorder` and tells it of episodes; `Records` reads what came to rest. The contract is
`event`; what is safe when, is told in `recorder` (memory to outbox), `forwarder` and `writer` (outbox to store) and
`manifest` (the store).
"""

from .errors import MalformedEvent, RecordError, StoreUnavailable
from .event import Event, Kind, Provenance, episode_id
from .forwarder import ForwardSettings
from .logs import LogHandler
from .provenance import provenance
from .reader import Attempt, Records
from .recorder import Recorder, RecorderStats, RecordSettings
from .recording import Detail, EpisodeRecording, Playing

__all__ = [
    "Attempt",
    "Detail",
    "EpisodeRecording",
    "Event",
    "ForwardSettings",
    "Kind",
    "LogHandler",
    "MalformedEvent",
    "Playing",
    "Provenance",
    "RecordError",
    "RecordSettings",
    "Recorder",
    "RecorderStats",
    "Records",
    "StoreUnavailable",
    "episode_id",
    "provenance",
]
