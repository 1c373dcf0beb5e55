"""The tools an agent may call, served by the sandbox's steward; a wrong call is an observation, never an exception."""

from .specs import SPECS, SUBMIT, tool_specs
from .toolbox import Toolbox
from .truncate import cut_text

__all__ = ["SPECS", "SUBMIT", "Toolbox", "cut_text", "tool_specs"]
