"""Plant small faults in Python source: each mutation replaces a few characters, found through the syntax tree.

Only function bodies are touched, never docstrings, messages or `while` loops, so a mutated program ends whenever the
right one does. A mutation knows the rule that it breaks, in words, for a bug report. The source must be ASCII, since
the syntax tree counts columns in bytes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto


class MutationKind(StrEnum):
    """What a mutation changes."""

    ARITHMETIC = auto()
    """One arithmetic operator for another."""
    BOUNDARY = auto()
    """A comparison that wrongly takes or leaves the boundary."""
    DIRECTION = auto()
    """A comparison turned round."""
    EXTREME = auto()
    """`min` for `max`, `any` for `all`, or the other way round."""
    CONSTANT = auto()
    """An integer off by one."""
    LOGIC = auto()
    """`and` for `or`, or a lost `not`."""
    FLAG = auto()
    """`True` for `False` as an argument."""
    ORDER = auto()
    """Two arguments exchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """`source[start:end]` reads `before`; with `after` in its place the program is wrong.

    Example:
        >>> found = mutations("def net(price, rebate):\\n    return price - rebate\\n")
        >>> found[0].before, found[0].after, found[0].rule
        ('-', '+', 'subtract rebate from price')
    """

    kind: MutationKind
    function: str
    """Qualified name, as in `Account.close`."""
    line: int
    """From 1."""
    start: int
    end: int
    before: str
    after: str
    rule: str
    """What the right program does here, as a verb phrase."""
    simple: bool
    """Names and numbers only on both sides, so that the rule is easy to follow."""


def mutations(source: str) -> tuple[Mutation, ...]:
    """Every mutation of `source`, in the order of the text.

    Raises:
        ValueError: the source is not ASCII.
        SyntaxError: it is no Python.
    """
    if not source.isascii():
        raise ValueError("only ASCII source can be mutated: the syntax tree counts bytes")
    text = _Text(source)
    found = [
        mutation
        for name, function in _functions(ast.parse(source), "")
        for node in _nodes(function)
        for mutation in _of(text, name, node)
    ]
    return tuple(sorted(found, key=lambda mutation: (mutation.start, mutation.after)))


def apply(source: str, chosen: Sequence[Mutation]) -> str:
    """`source` with every one of `chosen`, which must not overlap."""
    last = len(source)
    for mutation in sorted(chosen, key=lambda mutation: -mutation.start):
        if mutation.end > last or source[mutation.start : mutation.end] != mutation.before:
            raise ValueError(f"line {mutation.line}: the mutation overlaps another or belongs to another source")
        source = source[: mutation.start] + mutation.after + source[mutation.end :]
        last = mutation.start
    return source


class _Text:
    """Offsets of nodes in one source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def find(self, first: int, last: int, pattern: str) -> int:
        match = re.compile(pattern).search(self.source, first, last)
        return match.start() if match else -1

    def line(self, offset: int) -> int:
        return self.source.count("\n", 0, offset) + 1


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _nodes(function: _Function) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.While | ast.Raise | ast.JoinedStr):
            continue
        yield node
        children = [child for child in ast.iter_child_nodes(node) if not _is_annotation(node, child)]
        waiting.extend(reversed(children))


def _is_annotation(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.AnnAssign) and child is parent.annotation


_ARITHMETIC: dict[type[ast.operator], tuple[str, tuple[str, ...], str]] = {
    ast.Add: ("+", ("-",), "add {b} to {a}"),
    ast.Sub: ("-", ("+",), "subtract {b} from {a}"),
    ast.Mult: ("*", ("+", "/"), "multiply {a} by {b}"),
    ast.Div: ("/", ("*",), "divide {a} by {b}"),
    ast.FloorDiv: ("//", ("%", "*"), "divide {a} by {b} and drop the remainder"),
    ast.Mod: ("%", ("//",), "take the remainder of {a} divided by {b}"),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str, str, str]] = {
    ast.Lt: ("<", "<=", ">", "{a} is less than {b}"),
    ast.LtE: ("<=", "<", ">=", "{a} is at most {b}"),
    ast.Gt: (">", ">=", "<", "{a} is more than {b}"),
    ast.GtE: (">=", ">", "<=", "{a} is at least {b}"),
}
_EXTREMES = {
    "min": ("max", "take the smaller of {a} and {b}"),
    "max": ("min", "take the larger of {a} and {b}"),
    "any": ("all", "test that any of {a} holds"),
    "all": ("any", "test that all of {a} hold"),
}


def _of(text: _Text, function: str, node: ast.AST) -> Iterator[Mutation]:
    make = _maker(text, function)
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _is_text(left):
            sign, others, rule = _ARITHMETIC[type(op)]
            at = text.find(text.end(left), text.start(right), re.escape(sign))
            for other in others:
                yield make(MutationKind.ARITHMETIC, at, sign, other, rule, left, right)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in (ast.Add, ast.Sub):
            sign, others, rule = _ARITHMETIC[type(op)]
            at = text.find(text.end(target), text.start(value), re.escape(sign))
            yield make(MutationKind.ARITHMETIC, at, sign, others[0], rule, target, value)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            sign, boundary, turned, rule = _COMPARISONS[type(op)]
            at = text.find(text.end(left), text.start(right), re.escape(sign))
            yield make(MutationKind.BOUNDARY, at, sign, boundary, "test that " + rule, left, right)
            yield make(MutationKind.DIRECTION, at, sign, turned, "test that " + rule, left, right)
        case ast.BoolOp(op=op, values=[left, right]):
            word, other = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            at = text.find(text.end(left), text.start(right), rf"\b{word}\b")
            both = "test for both {a} and {b}" if word == "and" else "accept either {a} or {b}"
            yield make(MutationKind.LOGIC, at, word, other, both, left, right)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield make(MutationKind.LOGIC, text.start(node), "not ", "", "test that {a} does not hold", operand)
        case ast.Call(func=ast.Name(id=name), args=[first, *rest]) if name in _EXTREMES:
            other, rule = _EXTREMES[name]
            operands = (first, rest[0]) if rest else (first,)
            rule = rule if rest or name in ("any", "all") else rule.split(" of ")[0] + " of {a}"
            yield make(MutationKind.EXTREME, text.start(node), name, other, rule, *operands)
        case ast.Call(args=[ast.Name() as first, ast.Name() as second]):
            before = text.source[text.start(first) : text.end(second)]
            after = f"{second.id}, {first.id}"
            yield make(MutationKind.ORDER, text.start(first), before, after, "pass {a} before {b}", first, second)
        case ast.keyword(value=ast.Constant(value=bool(value)) as constant):
            rule = f"pass {node.arg}={value}"
            yield make(MutationKind.FLAG, text.start(constant), str(value), str(not value), rule)
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and 0 < value <= 10000:
            for other in (value + 1, value - 1):
                yield make(MutationKind.CONSTANT, text.start(node), str(value), str(other), f"use {value}, not {other}")
        case _:
            return


def _maker(text: _Text, function: str) -> Callable[..., Mutation]:
    def make(kind: MutationKind, at: int, before: str, after: str, rule: str, *operands: ast.expr) -> Mutation:
        assert text.source.startswith(before, at), (function, before)
        words = [ast.unparse(operand) for operand in operands]
        return Mutation(
            kind=kind,
            function=function,
            line=text.line(at),
            start=at,
            end=at + len(before),
            before=before,
            after=after,
            rule=rule.format(**dict(zip("ab", words, strict=False))),
            simple=all(isinstance(operand, ast.Name | ast.Constant) for operand in operands),
        )

    return make


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
