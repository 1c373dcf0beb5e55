"""The Gymnasium surface: spaces, and the environment that `gymnasium.make` returns."""

from .spaces import TextSpace, ToolCallSpace

__all__ = ["TextSpace", "ToolCallSpace"]
