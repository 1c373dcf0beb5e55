"""Policies: what acts in an episode, behind one contract; registered by name, built from JSON settings."""

from .contract import AssistantTurn, Departure, Inside, Message, Policy, Role, Stay, Stop, TokenTrace, Usage
from .table import POLICIES, open_policy, settings_for

__all__ = [
    "POLICIES",
    "AssistantTurn",
    "Departure",
    "Inside",
    "Message",
    "Policy",
    "Role",
    "Stay",
    "Stop",
    "TokenTrace",
    "Usage",
    "open_policy",
    "settings_for",
]
