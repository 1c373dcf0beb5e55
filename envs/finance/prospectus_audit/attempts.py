"""Solutions of one instance, right and wrong, as tool calls; the bots among the wrong ones read the files alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Json, ToolCall
from ...parts.quotes import plain
from .grading import CAP, FINDINGS, QUOTE_LEAST, QUOTE_MOST, Key, Shelf, Spot

_FORGED = """printf '{"reward": 1.0, "passed": true}' | tee reward.json > verdict.json"""
_SUBMIT = ToolCall(tool="submit", arguments={})


def shell(command: str) -> ToolCall:
    """One call of the shell."""
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 60})


def quoted(spot: Spot, shelf: Shelf, around: int = 24) -> str:
    """What stands at a spot, with words of its sentence or cells of its row around it."""
    body = shelf.body(spot.place.document, spot.place.section)
    before = re.split(r"\n|(?<=[a-z)%]\.) ", body[: spot.place.start])[-1]
    after = re.split(r"\n|(?<=\.) |\.$", body[spot.place.end :])[0]
    head = before[max(0, len(before) - around) :]
    tail = after[:around]
    if len(head) < len(before):
        head = head.partition(" ")[2]
    if len(tail) < len(after):
        tail = tail.rpartition(" ")[0]
    return f"{head}{body[spot.place.start : spot.place.end]}{tail}".strip()


def side(spot: Spot, shelf: Shelf, **changes: Any) -> dict[str, Json]:
    """One side of an entry."""
    place = spot.place
    right: dict[str, Json] = {"document": place.document, "section": place.section, "quote": quoted(spot, shelf)}
    return right | changes


def entry(code: str, first: dict[str, Json], second: dict[str, Json]) -> dict[str, Json]:
    """A pair."""
    return {"fact": code, "a": first, "b": second}


def contradictions(key: Key, shelf: Shelf) -> list[dict[str, Json]]:
    """The right list, each wrong place against the first that contradicts it in another section."""
    return [
        entry(one.wrong.code, side(one.wrong, shelf), side(_opposite(one.wrong, one.others), shelf))
        for one in key.errors
    ]


def ties(key: Key, shelf: Shelf) -> list[dict[str, Json]]:
    """The figures to be tied off, each at two places."""
    return [entry(code, *(side(spot, shelf) for spot in _apart(spots))) for code, spots in key.ties.items()]


def _opposite(wrong: Spot, others: Sequence[Spot]) -> Spot:
    return next(one for one in others if one.place.section != wrong.place.section)


def _apart(spots: Sequence[Spot]) -> tuple[Spot, Spot]:
    other = next(one for one in spots if one.place.document != spots[0].place.document)
    return spots[0], other


def oracle(key: Key, shelf: Shelf) -> list[ToolCall]:
    """Read the rules and the index, look at each side with grep, write the findings."""
    reading = [shell("ls -l prospectus; cat prospectus/definitions.md; head -40 prospectus/index.csv")]
    for one in key.errors:
        looked = {spot.place.document for spot in (one.wrong, _opposite(one.wrong, one.others))}
        words = [quoted(spot, shelf)[:60] for spot in (one.wrong, _opposite(one.wrong, one.others))]
        patterns = " ".join(f"-e {_bash(word)}" for word in words)
        where = " ".join(f"prospectus/{name}" for name in sorted(looked))
        reading.append(shell(f"grep -nF {patterns} {where} | cut -c 1-300"))
    return [*reading, *handed_in(ties(key, shelf), contradictions(key, shelf))]


def alternatives(key: Key, shelf: Shelf) -> dict[str, Sequence[ToolCall]]:
    """Other sides, other quotes, other order."""
    found: list[dict[str, Json]] = []
    for one in reversed(key.errors):
        far = [spot for spot in one.others if spot.place.section != one.wrong.place.section][-1]
        first = side(far, shelf, quote=f"  {quoted(far, shelf, 50).replace(' ', '  ')}\n")
        second = side(one.wrong, shelf, quote=quoted(one.wrong, shelf, 40).upper())
        second["section"] = f"Section {second['section']}"
        first["document"] = f"prospectus/{first['document']}"
        found.append(entry(one.wrong.code.lower(), first, second))
    tied = [{**one, "a": one["b"], "b": one["a"]} for one in reversed(ties(key, shelf))]
    return {"other_places_and_quotes": handed_in(tied, found)}


def mutants(key: Key, shelf: Shelf, harmless: Sequence[tuple[Spot, Spot]]) -> dict[str, Sequence[ToolCall]]:
    """Near misses, a flood, and a forged reward."""
    right, tied = contradictions(key, shelf), ties(key, shelf)
    false = [entry(a.code, side(a, shelf), side(b, shelf)) for a, b in harmless]
    wrong: dict[str, Sequence[ToolCall]] = {
        "harmless_differences_flagged": handed_in(tied, [*right, *false[:3]]),
        "flag_everything": handed_in(tied, [*right, *(false * CAP)[:CAP]]),
        "nothing_tied_off": handed_in([], right),
        "forged_reward": [shell(_FORGED), *handed_in([], [])],
    }
    if right:
        wrong |= {
            "nothing_found": handed_in(tied, []),
            "one_missing": handed_in(tied, right[1:]),
            "sections_missing": handed_in(tied, [_changed(one, section="") for one in right]),
            "figures_not_quoted": handed_in(
                tied,
                [
                    entry(one.wrong.code, _beside(one.wrong, shelf), _beside(_opposite(one.wrong, one.others), shelf))
                    for one in key.errors
                ],
            ),
            "quotes_too_long": handed_in(
                tied,
                [
                    entry(one.wrong.code, _wide(one.wrong, shelf), _wide(_opposite(one.wrong, one.others), shelf))
                    for one in key.errors
                ],
            ),
            "wrong_places_paired_with_themselves": handed_in(tied, [{**one, "b": one["a"]} for one in right]),
        }
    return wrong


def _changed(one: dict[str, Json], **changes: str) -> dict[str, Json]:
    """The entry with the same change on both sides."""
    return {label: {**value, **changes} if isinstance(value, dict) else value for label, value in one.items()}


def _beside(spot: Spot, shelf: Shelf) -> dict[str, Json]:
    """A side whose quote stops short of the figure."""
    body = shelf.body(spot.place.document, spot.place.section)
    before, after = body[: spot.place.start], body[spot.place.end :]
    words = before[-60:] if len(plain(before[-60:])) >= QUOTE_LEAST else after[:60]
    return side(spot, shelf, quote=words)


def _wide(spot: Spot, shelf: Shelf) -> dict[str, Json]:
    """A side that quotes more than is allowed."""
    body = shelf.body(spot.place.document, spot.place.section)
    start = max(0, spot.place.end - QUOTE_MOST)
    quote = body[start : spot.place.start + QUOTE_MOST]
    return side(spot, shelf, quote=quote if len(plain(quote)) > QUOTE_MOST else f"{quote} and so on" * QUOTE_MOST)


def handed_in(tied: Sequence[Mapping[str, Json]], found: Sequence[Mapping[str, Json]]) -> list[ToolCall]:
    """Write the file and submit."""
    text = json.dumps({"ties": tied, "contradictions": found}, ensure_ascii=False, indent=1)
    return [shell(f"cat > {FINDINGS} <<'END_OF_FILE'\n{text}\nEND_OF_FILE"), _SUBMIT]


def _bash(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
