"""What can be set of the policy `openai`."""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

import pydantic

from metier.envs.core import ConfigError, Json

ONLY_HOW = frozenset(
    {
        "stream",
        "api_key_env",
        "api_key_header",
        "headers",
        "connect_s",
        "request_s",
        "idle_s",
        "retries",
        "backoff_s",
        "longest_backoff_s",
        "requests_per_minute",
        "tokens_per_minute",
        "prices",
    }
)
"""Settings that change how an answer is had, not what is said: results with other values are of the same agent."""
_OURS = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
"""Parts of a request that `extra` may not replace."""
_HEADER = re.compile(r"^[A-Za-z0-9-]{1,100}$")
SECRET_WORDS = ("auth", "key", "token", "secret", "cookie", "password")


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        raise ValueError('money is exact: write it in quotes, such as "0.15"')
    return value


Usd = Annotated[Decimal, pydantic.BeforeValidator(_exact), pydantic.Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, pydantic.Field(strict=True, ge=1)]
Seconds = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class Prices(pydantic.BaseModel, frozen=True, extra="forbid"):
    """US dollars for a million tokens, as decimal strings."""

    prompt: Usd
    output: Usd
    """Those of reasoning included."""
    cached: Usd | None = None
    """Of the prompt, those the endpoint had kept; as `prompt` by default."""


class OpenAISettings(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Settings of the policy `openai`; `address` is "URL#model", the same as `url` and `model`.

    Example:
        >>> OpenAISettings.of(address="http://127.0.0.1:8000#smollm2").endpoint
        'http://127.0.0.1:8000/v1/chat/completions'
    """

    url: str
    """Where the API is, such as `https://api.openai.com/v1`; without a path, its `/v1`."""
    model: Annotated[str, pydantic.Field(min_length=1)]
    """As the endpoint names it."""

    calls: Literal["native", "text"] = "native"
    """Whether the endpoint is given the tools, or the model is told of them and its text is read."""
    system: str = ""
    """Said before everything else."""
    temperature: Annotated[float, pydantic.Field(ge=0)] | None = None
    """None leaves it to the endpoint, as do the next ones."""
    top_p: Annotated[float, pydantic.Field(gt=0, le=1)] | None = None
    seed: int | None = None
    max_tokens: Count | None = 4096
    """Of one turn."""
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What the endpoint calls that; by default `max_completion_tokens` at api.openai.com, else `max_tokens`."""
    images: bool = True
    """Whether the model sees pictures; if not, it is told that there was one."""
    max_images: Count = 16
    """The newest of a conversation; of older ones the model is told that there was one."""
    send_reasoning: bool = False
    """Whether the model is shown its earlier reasoning, where the endpoint gives and takes it."""
    extra: dict[str, Json] = {}
    """Further parts of the request, such as `{"reasoning_effort": "low"}`."""

    stream: bool = True
    """Answers in pieces: then a model that is slow can be told from an endpoint that hangs."""
    api_key_env: str | None = None
    """The environment variable that holds the API key; `OPENAI_API_KEY` at api.openai.com, else none by default."""
    api_key_header: Annotated[str, pydantic.Field(pattern=_HEADER.pattern)] = "Authorization"
    """Which carries `Bearer KEY`; any other name carries the key alone."""
    headers: dict[str, str] = {}
    """Further headers of a request; none that is secret."""
    connect_s: Seconds = 30
    request_s: Seconds = 600
    """For one request; what a model has said until then is its turn."""
    idle_s: Seconds = 120
    """Of silence in the middle of an answer in pieces."""
    retries: Annotated[int, pydantic.Field(strict=True, ge=0)] = 6
    """After the first attempt of a turn: where none was answered, or with 408, 409, 425, 429 or 5xx."""
    backoff_s: Seconds = 1
    """Before the first of them, doubled each time, with jitter; what `Retry-After` says counts more."""
    longest_backoff_s: Seconds = 60
    requests_per_minute: Count | None = None
    """Shared by all episodes of a process, as the next one."""
    tokens_per_minute: Count | None = None
    prices: Prices | None = None

    @classmethod
    def of(cls, **settings: Any) -> OpenAISettings:
        """From JSON settings.

        Raises:
            ConfigError: Which of them is wrong, and how.
        """
        address = settings.pop("address", None)
        if address is not None:
            url, mark, model = str(address).partition("#")
            if "url" in settings or ("model" in settings and mark):
                raise ConfigError("the policy openai takes an address, or url and model, not both")
            settings |= {"url": url, **({"model": model} if mark else {})}
        try:
            return cls.model_validate(settings)
        except pydantic.ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ConfigError(f"the policy openai refuses its settings: {wrong}; name it openai:URL#MODEL") from None

    @pydantic.field_validator("url")
    @classmethod
    def _reachable(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("give an http:// or https:// address")
        if parts.username or parts.password or any(_secret(name) for name, _ in parse_qsl(parts.query)):
            raise ValueError("no secret belongs into an address: name its environment variable in api_key_env")
        return url

    @pydantic.field_validator("headers")
    @classmethod
    def _not_secret(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if _secret(name):
                raise ValueError(f"{name} looks like a secret: name its environment variable in api_key_env")
            if not _HEADER.fullmatch(name) or not (value.isascii() and value.isprintable()):
                raise ValueError(f"{name} is no header that can be sent")
        return headers

    @pydantic.field_validator("extra")
    @classmethod
    def _additional(cls, extra: dict[str, Json]) -> dict[str, Json]:
        if taken := sorted(_OURS & set(extra)):
            raise ValueError(f"{', '.join(taken)} cannot be replaced")
        return extra

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def endpoint(self) -> str:
        """Where a request goes."""
        path = self._parts.path.rstrip("/") or "/v1"
        if not path.endswith("/chat/completions"):
            path += "/chat/completions"
        return urlunsplit(self._parts._replace(path=path, fragment=""))

    @property
    def at_openai(self) -> bool:
        """Whether it is the vendor whose name the protocol has."""
        return self._parts.hostname == "api.openai.com"

    @property
    def on_this_machine(self) -> bool:
        """Whether no proxy leads there."""
        name = self._parts.hostname or ""
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost"

    @property
    def key_env(self) -> str | None:
        """The environment variable of the API key, or None."""
        return self.api_key_env or ("OPENAI_API_KEY" if self.at_openai else None)

    @property
    def limit_name(self) -> str:
        """What the endpoint calls `max_tokens`."""
        return self.max_tokens_name or ("max_completion_tokens" if self.at_openai else "max_tokens")

    def identity(self) -> dict[str, Json]:
        """Those settings that change what is said, for keys and comparisons."""
        return self.model_dump(mode="json", exclude=set(ONLY_HOW))


def _secret(name: str) -> bool:
    low = name.lower()
    return any(word in low for word in SECRET_WORDS)
