"""One text for a line's formula: computed on the host, and written as a spreadsheet formula.

`receivables[-1]` is the period before, a bare name the same period (or a single figure). Functions: MAX, MIN, IF with a
comparison; `past(x, a, b)` is the sum of x over the forecast periods that lie a to b periods back; `opening(x)` is the
last historic value; `mean_ratio(x, y)` averages the historic ratios, `sum_ratio(x, y)` divides the historic sums.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

ROUNDS = 400
"""Of the fixed point in one period: average balances contract by a few percent a round."""
_SETTLED = 1e-9
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
_BINDING = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2}
_SERIES_FUNCTIONS = ("past", "opening", "mean_ratio", "sum_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The columns: `history` past ones, then `periods` of the forecast."""

    history: int
    periods: int

    @property
    def columns(self) -> range:
        """Of the forecast, counted from the first historic one."""
        return range(self.history, self.history + self.periods)


Series = Sequence[float]


def solve(frame: Frame, formulas: Mapping[str, str], known: Mapping[str, float | Series]) -> dict[str, list[float]]:
    """Every line's forecast, formulas in any order: each period is iterated to its fixed point.

    `known`: single figures; series of the whole frame; for lines with a formula, their history.

    Raises:
        ValueError: a period does not settle.
    """
    values: dict[str, Any] = {
        name: value if isinstance(value, (int, float)) else list(value) for name, value in known.items()
    }
    for name in formulas:
        values.setdefault(name, [0.0] * frame.history)
        values[name] = values[name][: frame.history] + [0.0] * frame.periods
    values |= {"period": [0.0] * frame.history + [float(index + 1) for index in range(frame.periods)]}
    scope = {**values, **_functions(frame)}
    codes = [(values[name], _compiled(formulas[name])) for name in _in_order(formulas)]
    for at in frame.columns:
        scope["t"] = at
        moved = 0.0
        for _ in range(ROUNDS):
            moved = 0.0
            for series, code in codes:
                value = float(eval(code, scope))
                moved = max(moved, abs(value - series[at]))
                series[at] = value
            if moved < _SETTLED:
                break
        else:
            raise ValueError(f"column {at} does not settle: it still moves by {moved:g}")
    return {name: values[name][frame.history :] for name in formulas}


def _in_order(formulas: Mapping[str, str]) -> list[str]:
    """Each after what it reads, as far as there is such an order: the fixed point is the same, and found sooner."""
    order: dict[str, None] = {}
    entered: set[str] = set()

    def visit(name: str) -> None:
        if name in formulas and name not in entered:
            entered.add(name)
            for read in names(formulas[name]):
                visit(read)
            order[name] = None

    for name in formulas:
        visit(name)
    return list(order)


def _functions(frame: Frame) -> dict[str, Any]:
    first = frame.history

    def past(series: Series, at: int, nearest: float, farthest: float) -> float:
        return sum(series[back] for back in range(first, at + 1) if nearest <= at - back <= farthest)

    def mean_ratio(above: Series, below: Series) -> float:
        return sum(above[at] / below[at] for at in range(first)) / first

    return {
        "__builtins__": {},
        "MAX": max,
        "MIN": min,
        "IF": lambda condition, yes, no: yes if condition else no,
        "past": past,
        "opening": lambda series: series[first - 1],
        "mean_ratio": mean_ratio,
        "sum_ratio": lambda above, below: sum(above[:first]) / sum(below[:first]),
    }


class _ByColumn(ast.NodeTransformer):
    """Reads of names become reads of their series at column t; single figures are told by `series`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name not in _SERIES_FUNCTIONS:
            node.args = [self.visit(argument) for argument in node.args]
            return node
        count = 2 if name.endswith("ratio") else 1
        rest = [self.visit(argument) for argument in node.args[count:]]
        at: list[ast.expr] = [ast.Name("t", ast.Load())] if name == "past" else []
        node.args = [*node.args[:count], *at, *rest]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        assert isinstance(node.value, ast.Name) and ast.literal_eval(node.slice) == -1
        node.slice = ast.BinOp(ast.Name("t", ast.Load()), ast.Sub(), ast.Constant(1))
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        either = f"{node.id}[t] if {node.id}.__class__ is [].__class__ else {node.id}"
        return ast.parse(either, mode="eval").body


@lru_cache(maxsize=512)
def _compiled(formula: str) -> CodeType:
    tree = _ByColumn().visit(ast.parse(formula, mode="eval"))
    return compile(ast.fix_missing_locations(tree), f"<{formula}>", "eval")


def names(formula: str) -> Iterator[str]:
    """The lines and figures that a formula reads."""
    for node in ast.walk(ast.parse(formula, mode="eval")):
        if isinstance(node, ast.Name) and not node.id.isupper() and node.id not in _SERIES_FUNCTIONS:
            yield node.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How a layout writes references, each as text in which {c} is this period and {p} the one before."""

    this: Callable[[str], str]
    before: Callable[[str], str]
    opening: Callable[[str], str]
    """The last historic cell."""
    history: Callable[[str], str]
    """The historic cells as a range."""
    until_now: Callable[[str], str]
    """From the first period of the forecast to this one, as a range."""


def as_cells(formula: str, places: Places) -> str:
    """The spreadsheet formula, without its "="; "period" is a line of the layout too."""
    return _text(ast.parse(formula, mode="eval").body, places)


def _text(node: ast.expr, places: Places, outer: int = 0) -> str:
    match node:
        case ast.Constant(value=value):
            return f"{value:g}" if isinstance(value, float) else str(value)
        case ast.Name(id=name):
            return places.this(name)
        case ast.Subscript(value=ast.Name(id=name)):
            return places.before(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{_text(operand, places, 2)}"
        case ast.BinOp(left=left, op=operator, right=right):
            binding = _BINDING[type(operator)]
            # what stands to the right of "-" or "/" keeps its parentheses
            tight = binding + isinstance(operator, ast.Sub | ast.Div)
            text = f"{_text(left, places, binding)}{_OPERATORS[type(operator)]}{_text(right, places, tight)}"
            return f"({text})" if binding < outer else text
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"{_text(left, places)}{_OPERATORS[type(operator)]}{_text(right, places)}"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _call(name, arguments, places)
        case _:
            raise ValueError(f"no spreadsheet has {ast.dump(node)}")


def _call(name: str, arguments: Sequence[ast.expr], places: Places) -> str:
    if name not in _SERIES_FUNCTIONS:
        return f"{name}({','.join(_text(argument, places) for argument in arguments)})"
    series = [argument.id for argument in arguments if isinstance(argument, ast.Name)]
    if name == "opening":
        return places.opening(series[0])
    if name == "mean_ratio":
        above, below = (places.history(one) for one in series[:2])
        return f"SUMPRODUCT({above}/{below})/COUNT({below})"
    if name == "sum_ratio":
        above, below = (places.history(one) for one in series[:2])
        return f"SUM({above})/SUM({below})"
    nearest, farthest = (_text(argument, places, 1) for argument in arguments[1:])
    age = f"{places.this('period')}-{places.until_now('period')}"
    return f"SUMPRODUCT({places.until_now(series[0])}*({age}>={nearest})*({age}<={farthest}))"
