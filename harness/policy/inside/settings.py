"""What can be set of the policy `inside`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import pydantic

from metier.envs.core import ConfigError, Json

from ..openai.settings import SECRET_WORDS, Count, OpenAISettings, Seconds
from ..placeholders import check_placeholders
from .program import Folder, folder_of

PLACEHOLDERS = ("brief", "brief_file", "url", "model", "folder")
"""What may stand in braces in the command.

`brief`: the task as text; `brief_file`: a file of it. `url`: the endpoint, as in OPENAI_BASE_URL; `model`: the name
that it gives to the model. `folder`: where the agent's own files are.
"""
OURS = frozenset({"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "OPENAI_MODEL", "METIER_BRIEF_FILE"})
"""What the agent finds in its environment, and nobody else sets."""
_ITS_OWN = ("calls", "system", "send_reasoning")


def _words(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


class InsideSettings(pydantic.BaseModel, frozen=True, extra="forbid", arbitrary_types_allowed=True):
    """Settings of the policy `inside`; `address` is the model's, "URL#model".

    Example:
        >>> made = InsideSettings.of(address="http://127.0.0.1:8000#smollm2", command="python3 agent.py {brief_file}")
        >>> made.command, made.upstream.model
        (('python3', 'agent.py', '{brief_file}'), 'smollm2')
    """

    command: Annotated[tuple[str, ...], pydantic.BeforeValidator(_words), pydantic.Field(min_length=1)]
    """The program and its arguments, with placeholders, in `/workspace`; a text is cut as by a shell."""
    folder: Annotated[Folder | None, pydantic.BeforeValidator(folder_of)] = None
    """A folder of this machine that is brought in, as `{folder}`."""
    env: dict[str, str] = {}
    """Added to the agent's environment."""
    upstream: OpenAISettings
    """The model's endpoint: settings of the policy `openai`."""
    port: Annotated[int, pydantic.Field(ge=0, le=65535)] = 0
    """Of the endpoint inside; 0 takes one that is free."""
    max_turns: Count | None = None
    """Completions of one episode; by default as many as the environment allows steps."""
    max_total_tokens: Count | None = None
    """Of one episode, prompts and answers together, as the endpoint counts them."""
    time_s: Seconds | None = None
    """For the agent, its model's time included; by default the episode's."""
    without: tuple[str, ...] = ()
    """Tools of an environment's own that the agent can do without: they run on the host, out of its reach."""

    @classmethod
    def of(cls, **settings: Any) -> InsideSettings:
        """From JSON settings.

        Raises:
            ConfigError: Which of them is wrong, and how.
        """
        upstream: Any = settings.pop("upstream", {})
        address = settings.pop("address", None)
        if not isinstance(upstream, dict):
            raise ConfigError("the policy inside takes settings of the policy openai as upstream, by name")
        if own := [name for name in _ITS_OWN if name in upstream]:
            raise ConfigError(
                f"the policy inside: {', '.join(own)} of upstream are the agent's own affair; leave it out"
            )
        model = OpenAISettings.of(**upstream, **({} if address is None else {"address": address}))
        try:
            return cls.model_validate({**settings, "upstream": model})
        except pydantic.ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ConfigError(f"the policy inside refuses its settings: {wrong}") from None

    def identity(self) -> dict[str, Json]:
        """Those settings that change what is done, for keys and comparisons; of the folder, what is in it."""
        known: dict[str, Json] = self.model_dump(mode="json", exclude={"folder", "upstream", "port"})
        program: Json = None if self.folder is None else self.folder.sha256
        model = self.upstream.identity()
        return known | {"folder": program, "url": model.pop("url"), "model": model.pop("model"), "upstream": model}

    @pydantic.field_validator("env")
    @classmethod
    def _not_secret(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if name in OURS:
                raise ValueError(f"{name} is what the agent reaches its model by, and is not to be replaced")
            if any(word in name.lower() for word in SECRET_WORDS):
                raise ValueError(f"{name} looks like a secret, which has no place in a sandbox or a record")
        return env

    @pydantic.field_validator("port")
    @classmethod
    def _unprivileged(cls, port: int) -> int:
        if 0 < port < 1024:
            raise ValueError("choose 0 or a port from 1024 on")
        return port

    @pydantic.field_validator("command")
    @classmethod
    def _known(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        check_placeholders(command, PLACEHOLDERS)
        return command
