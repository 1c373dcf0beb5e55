"""What can be set of the policy `agent`."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic

from metier.envs.core import ConfigError, Json

from ..openai.settings import SECRET_WORDS
from ..placeholders import check_placeholders

PLACEHOLDERS = ("brief", "brief_file", "url", "config", "stdio_config", "folder")
"""What may stand in braces in the command.

`brief`: the task as text; `brief_file`: a file of it. `url`: the MCP server, also in the environment as METIER_MCP_URL.
`config`: a file `{"mcpServers": {"metier": {"type": "http", "url": …}}}`; `stdio_config`: the same, for agents that can
only start a server themselves. `folder`: the empty folder in which the agent starts.
"""
Seconds = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class AgentSettings(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Settings of the policy `agent`.

    Example:
        >>> AgentSettings.of(command=["some-agent", "--mcp-config", "{config}", "-p", "{brief}"]).linger_s
        10.0
    """

    command: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    """The agent and its arguments, with placeholders; nothing of it is read by a shell."""
    env: dict[str, str] = {}
    """Added to the environment of the caller, from which an agent has the keys of its vendor."""
    linger_s: Seconds = 10.0
    """How long the agent may go on after its submission."""

    @classmethod
    def of(cls, **settings: Any) -> AgentSettings:
        """From JSON settings.

        Raises:
            ConfigError: Which of them is wrong, and how.
        """
        try:
            return cls.model_validate(settings)
        except pydantic.ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ConfigError(f"the policy agent refuses its settings: {wrong}") from None

    def identity(self) -> dict[str, Json]:
        """Those settings that change what is said, for keys and comparisons."""
        return self.model_dump(mode="json", exclude={"linger_s"})

    @pydantic.field_validator("env")
    @classmethod
    def _not_secret(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if any(word in name.lower() for word in SECRET_WORDS):
                raise ValueError(f"{name} looks like a secret, which would be recorded: set it where the agent is run")
        return env

    @pydantic.field_validator("command")
    @classmethod
    def _known(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        check_placeholders(command, PLACEHOLDERS)
        return command
