"""Index plans for SQLite, parsed strictly on the host and measured by counted steps in a verifier sandbox.

A plan is text of CREATE INDEX statements and nothing else: no query, no other table, no pragma ever reaches the
engine. Every plan is measured on a copy of the same freshly filled database, so that counts compare.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..core import Json, Sandbox
from . import sqlite_steps_fill, sqlite_steps_probe
from .probe import run_probe

MAX_STATEMENTS = 40
MAX_CHARS = 20_000
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])
      | (?P<text>'(?:[^']|'')*')
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark><>|<=|>=|!=|==|\|\||[-+*/%=<>(),;])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KEYWORDS = frozenset(("AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "LIKE", "GLOB", "ASC", "DESC"))
_COLLATIONS = frozenset(("COLLATE", "NOCASE", "BINARY", "RTRIM"))
_WORDS = _KEYWORDS | _COLLATIONS | {"WHERE"}
FUNCTIONS = frozenset(["lower", "upper", "substr", "length", "abs", "coalesce", "ifnull", "date"])
"""What an expression may call."""


class PlanError(ValueError):
    """The text is no list of CREATE INDEX statements; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    text: str

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def name(self) -> str:
        """An identifier without its quotes."""
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" else self.text


def parse_plan(text: str, tables: Mapping[str, Sequence[str]]) -> list[str]:
    """The statements, each built anew from its tokens; `tables` are the columns that may be named.

    Raises:
        PlanError: anything but CREATE INDEX name ON table (expressions) [WHERE expression].

    Example:
        >>> parse_plan("create index a on t (x desc); -- newest first", {"t": ["id", "x"]})
        ['CREATE INDEX "a" ON "t" ( "x" DESC )']
    """
    if len(text) > MAX_CHARS:
        raise PlanError(f"{len(text)} characters; at most {MAX_CHARS} are taken")
    statements = [statement for statement in _split(_tokens(text)) if statement]
    if len(statements) > MAX_STATEMENTS:
        raise PlanError(f"{len(statements)} statements; at most {MAX_STATEMENTS} are taken")
    columns = {name.lower(): {column.lower() for column in names} for name, names in tables.items()}
    return [_statement(statement, columns) for statement in statements]


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PlanError(f"cannot read {text[at : at + 20]!r}")
        at = match.end()
        if match.lastgroup != "space":
            found.append(_Token(kind=match.lastgroup or "", text=match.group()))
    return found


def _split(tokens: Sequence[_Token]) -> list[list[_Token]]:
    statements: list[list[_Token]] = [[]]
    for token in tokens:
        if token.text == ";":
            statements.append([])
        else:
            statements[-1].append(token)
    return statements


def _statement(tokens: list[_Token], columns: Mapping[str, set[str]]) -> str:
    words = [token.upper for token in tokens]
    shown = " ".join(token.text for token in tokens)[:80]
    if words[:2] != ["CREATE", "INDEX"]:
        raise PlanError(f"only CREATE INDEX is taken, not {shown!r}")
    at = 5 if words[2:5] == ["IF", "NOT", "EXISTS"] else 2
    if len(tokens) < at + 6 or words[at + 1] != "ON" or words[at + 3] != "(":
        raise PlanError(f"not of the form CREATE INDEX name ON table (…): {shown!r}")
    name, table = tokens[at].name, tokens[at + 2].name.lower()
    if tokens[at].kind not in ("word", "quoted") or not re.fullmatch(r"\w{1,60}", name, re.ASCII):
        raise PlanError(f"an index cannot be named {name!r}")
    if table not in columns:
        raise PlanError(f"there is no table {table!r}")
    body = [_word(token, columns[table]) for token in tokens[at + 3 :]]
    _check_shape(words[at + 3 :], shown)
    return f'CREATE INDEX "{name}" ON "{table}" {" ".join(body)}'


def _word(token: _Token, columns: set[str]) -> str:
    """A token of the key or the condition, if it may stand there."""
    if token.kind == "quoted" or (token.kind == "word" and token.text.lower() in columns):
        if token.name.lower() not in columns:
            raise PlanError(f"there is no column {token.name!r}")
        return f'"{token.name.lower()}"'
    if token.kind == "word" and token.upper not in _WORDS and token.text.lower() not in FUNCTIONS:
        raise PlanError(f"{token.text!r} is neither a column nor allowed in an index")
    return token.text.upper() if token.upper in _WORDS else token.text


def _check_shape(words: Sequence[str], shown: str) -> None:
    """One parenthesised list, then nothing or WHERE and more, with balanced parentheses throughout."""
    depth, closed = 0, 0
    for index, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0 or (word == "WHERE" and (depth or closed != index - 1)):
            raise PlanError(f"misplaced {word!r} in {shown!r}")
        if word == ")" and depth == 0 and not closed:
            closed = index
    rest = words[closed + 1 :]
    if depth or not closed or (rest and (rest[0] != "WHERE" or len(rest) < 2 or "WHERE" in rest[1:])):
        raise PlanError(f"not of the form (…) [WHERE …]: {shown!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A statement of a workload."""

    name: str
    sql: str
    per_hour: int
    parameters: Mapping[str, Json]
    """Name → ["pick", table, column], or a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a plan costs: pages that the file grew by, and the mean steps of a run of each query."""

    pages: int
    steps: Mapping[str, float]
    error: str = ""

    def per_hour(self, queries: Sequence[Query]) -> float:
        """Steps of an hour of the workload."""
        return sum(query.per_hour * self.steps[query.name] for query in queries)


async def measure(
    sandbox: Sandbox,
    tables: Sequence[Mapping[str, Json]],
    queries: Sequence[Query],
    plans: Mapping[str, Sequence[str]],
    *,
    seed: str,
    points: Sequence[float],
    timeout_s: float,
) -> Mapping[str, Cost] | str:
    """The cost of every plan on the same data; a text where the measurement did not end.

    Raises:
        VerifierError: the probe broke.
        SandboxLost: the sandbox is gone.
    """
    payload: Json = {
        "tables": [dict(table) for table in tables],
        "queries": [{"name": one.name, "sql": one.sql, "parameters": dict(one.parameters)} for one in queries],
        "plans": {name: list(statements) for name, statements in plans.items()},
        "seed": seed,
        "points": list(points),
    }
    result = await run_probe(sandbox, probe_source(), payload, timeout_s=timeout_s)
    if result.failure:
        return result.failure
    return costs(cast("Mapping[str, Any]", result.value))


def costs(answer: Mapping[str, Any]) -> dict[str, Cost]:
    """The probe's answer as costs."""
    found: dict[str, Cost] = {}
    for name, one in answer.items():
        steps = {query: sum(runs) / len(runs) for query, runs in one.get("steps", {}).items()}
        found[name] = Cost(pages=one.get("pages", 0), steps=steps, error=one.get("error", ""))
    return found


def probe_source() -> str:
    """What runs in the sandbox."""
    parts = (inspect.getsource(sqlite_steps_fill), inspect.getsource(sqlite_steps_probe))
    return "\n".join([*parts, "_answer(compared(payload, fill))\n"])


def filling_script(path: str) -> str:
    """A program for the preparing sandbox: {"tables", "seed"} on standard input becomes a database at `path`."""
    return (
        inspect.getsource(sqlite_steps_fill)
        + f"""
import json, sys
question = json.load(sys.stdin)
made = sqlite3.connect({path!r}, isolation_level=None)
fill(made, question["tables"], question["seed"])
made.close()
"""
    )
