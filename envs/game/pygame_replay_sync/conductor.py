"""Plays trials with a peer, command by command, and takes its answers for what they are: words of a stranger.

Standard library only and no import of ours: its source is sent into the sandbox, where root runs it outside the peer,
and the host runs the same code with the right simulation.
"""

import json
from collections.abc import Callable
from typing import Any

LONGEST_TEXT = 200
MOST_VALUES = 4000
LARGEST = 1 << 63


def conduct(
    scripts: list[list[Any]], ask: Callable[[list[Any]], dict[str, Any]], pause: Callable[[float], object]
) -> list[list[Any] | dict[str, Any]]:
    """For each script the states after every tick, world by world, or what the peer raised.

    `ask` gives the answer to one command.
    """
    return [_played(script, ask, pause) for script in scripts]


def _played(script: list[Any], ask: Callable[[list[Any]], dict[str, Any]], pause: Callable[[float], object]) -> Any:
    states: dict[int, list[Any]] = {}
    for name, world, *more in script:
        if name == "pause":
            pause(*more)
            continue
        answer = ask([name, world, *more])
        if "raises" in answer:
            return answer
        if name == "tick":
            states.setdefault(world, []).append(answer)
        elif name == "draw":
            states[world][-1] = answer
    return [state for world in sorted(states) for state in states[world]]


def read(line: bytes) -> dict[str, Any]:
    """One answer as a flat table of numbers and short texts in ASCII, whatever it was.

    Raises:
        ValueError: it is no such table.
    """
    try:
        answer = json.loads(line)
    except (RecursionError, MemoryError) as error:
        raise ValueError("it is nested too deep") from error
    if type(answer) is not dict or len(answer) > MOST_VALUES:
        raise ValueError("it is no table")
    return {_text(name): _plain(value) for name, value in answer.items()}


def _plain(value: Any) -> Any:
    if type(value) is str:
        return _text(value)
    if type(value) is float or (type(value) is int and abs(value) < LARGEST):
        return value
    raise ValueError("a value is neither a number nor a text")


def _text(value: str) -> str:
    return value[:LONGEST_TEXT].encode("ascii", "backslashreplace").decode()
