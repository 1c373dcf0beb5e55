"""Policies: what acts in an episode, behind one contract; registered by name, built from JSON settings."""

from .contract import AssistantTurn, Message, Policy, Role, Stop, TokenTrace, Usage
from .table import POLICIES, open_policy, settings_for

__all__ = [
    "POLICIES",
    "AssistantTurn",
    "Message",
    "Policy",
    "Role",
    "Stop",
    "TokenTrace",
    "Usage",
    "open_policy",
    "settings_for",
]
