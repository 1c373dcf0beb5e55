"""A suite: which environments, at which levels, on which seeds; an entry of `registry.yaml` like an environment.

The seeds of a suite are split: `public_seeds` are for whoever develops an agent, `held_out_seeds` for ranking it, and
nobody trains on these.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from .core import ConfigError, Json
from .registry_file import ID_PATTERN, SUITE_PATTERN

MAX_SEED = 2**63 - 1
_RANGE = re.compile(r"([0-9]{1,19})(?::([0-9]{1,19}))?")


class Span(NamedTuple):
    """Seeds from `first` up to, and without, `end`."""

    first: int
    end: int


class Seeds(tuple[Span, ...]):
    """Spans of seeds, in order and apart; written "0:50" or "0:50,100:110" or "7".

    Example:
        >>> seeds = Seeds.parse("0:3,7")
        >>> list(seeds.each()), seeds.total, str(seeds)
        ([0, 1, 2, 7], 4, '0:3,7:8')
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Seeds:
        """Raises ConfigError."""
        spans: list[Span] = []
        for part in str(text).split(","):
            found = _RANGE.fullmatch(part.strip())
            if found is None:
                raise ConfigError(f"seeds {text!r}: write them as 0:50 (50 is not in it), 7, or several with commas")
            first = int(found[1])
            spans.append(Span(first, int(found[2]) if found[2] is not None else first + 1))
        return cls.of(spans)

    @classmethod
    def of(cls, spans: Sequence[Span]) -> Seeds:
        """Raises ConfigError: an empty span, one beyond the last seed, or two that overlap."""
        ordered = sorted(spans)
        for span in ordered:
            if not 0 <= span.first < span.end <= MAX_SEED + 1:
                raise ConfigError(f"seeds {span.first}:{span.end} hold none; seeds are 0 to {MAX_SEED}")
        for earlier, later in itertools.pairwise(ordered):
            if later.first < earlier.end:
                raise ConfigError(f"seeds {later.first}:{later.end} overlap with {earlier.first}:{earlier.end}")
        return cls(ordered)

    @property
    def total(self) -> int:
        """How many seeds."""
        return sum(span.end - span.first for span in self)

    def each(self) -> Iterator[int]:
        """Every seed, in order."""
        for span in self:
            yield from range(span.first, span.end)

    def meets(self, other: Seeds) -> bool:
        """Whether a seed is in both."""
        return any(one.first < two.end and two.first < one.end for one in self for two in other)

    def __str__(self) -> str:
        return ",".join(f"{span.first}:{span.end}" for span in self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(
                cls.parse, core_schema.str_schema(max_length=10_000)
            ),
            python_schema=core_schema.no_info_plain_validator_function(cls._of_value),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def _of_value(cls, value: Any) -> Seeds:
        if isinstance(value, Seeds):
            return value
        if not isinstance(value, str):
            raise ConfigError(f"seeds {value!r}: write them in quotes, such as '0:50' (to YAML 5:50 is a time)")
        return cls.parse(value)


class Chosen(BaseModel, frozen=True, extra="forbid"):
    """An environment that a suite names itself."""

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    options: dict[str, Json] = {}


class Suite(BaseModel, frozen=True, extra="forbid"):
    """One suite, as `registry.yaml` states it.

    It holds the environments that `domains` and `tags` both match, and those that `environments` names. What `domains`
    and `tags` match is run only with a valid certificate.
    """

    suite: Annotated[str, Field(pattern=SUITE_PATTERN)]
    """Its name; another selection is another version."""
    summary: Annotated[str, Field(min_length=1, max_length=120)]
    domains: Literal["all"] | tuple[str, ...] = ()
    """Any of these; "all" leaves only `test` out."""
    tags: tuple[str, ...] = ()
    """All of these."""
    environments: tuple[Annotated[str, Field(pattern=ID_PATTERN)] | Chosen, ...] = ()
    levels: Literal["all"] | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = (0,)
    """Those of them that an environment has."""
    public_seeds: Seeds
    held_out_seeds: Seeds | None = None

    @model_validator(mode="after")
    def _means_something(self) -> Suite:
        if not (self.domains or self.tags or self.environments):
            raise ValueError("name domains, tags or environments; `domains: all` means every one")
        if self.held_out_seeds is not None and self.public_seeds.meets(self.held_out_seeds):
            raise ValueError(f"public_seeds {self.public_seeds} and held_out_seeds {self.held_out_seeds} overlap")
        return self

    def matches(self, domain: str, tags: Sequence[str]) -> bool:
        """Whether `domains` and `tags` match an environment; its name alone may be in `environments`."""
        if not (self.domains or self.tags):
            return False
        in_domain = domain != "test" if self.domains in ("all", ()) else domain in self.domains
        return in_domain and set(self.tags) <= set(tags)

    @property
    def named(self) -> tuple[Chosen, ...]:
        """`environments`, each with its options."""
        return tuple(one if isinstance(one, Chosen) else Chosen(id=one) for one in self.environments)
