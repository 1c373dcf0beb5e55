"""The bug mutator: every mutation parses, changes only its own characters, and says what it breaks."""

from __future__ import annotations

import ast

import pytest

from metier.envs.parts.mutation import MutationKind, apply, mutations

SOURCE = '''\
"""A module: 1 + 1 is not touched."""

LIMIT = 5


class Account:
    def close(self, total, fee):
        """Return total - fee, unless total < 3."""
        if not total >= 10 and fee > 2:
            raise ValueError(f"{total - 1} is less than 10")
        self.count += 1
        while total > 100:
            total = total - 1
        return max(total - fee, min(total, 7)) * 2


def order(first, second, *, strict=False):
    rows = sorted([first, second], reverse=True)
    return send(first, second) if any(rows) or strict else rows[1:]
'''


def test_every_mutation_parses_and_changes_only_its_own_text() -> None:
    found = mutations(SOURCE)
    assert found
    for mutation in found:
        changed = apply(SOURCE, [mutation])
        ast.parse(changed)
        assert changed != SOURCE
        assert changed[: mutation.start] == SOURCE[: mutation.start]
        assert changed[mutation.start + len(mutation.after) :] == SOURCE[mutation.end :]


def test_every_kind_is_found_with_its_function_and_line() -> None:
    found = mutations(SOURCE)
    assert {mutation.kind for mutation in found} == set(MutationKind)
    assert {mutation.function for mutation in found} == {"Account.close", "order"}
    lines = SOURCE.splitlines()
    assert all(mutation.before.strip() in lines[mutation.line - 1] for mutation in found)


def test_docstrings_messages_constants_and_while_loops_stay() -> None:
    touched = {mutation.line for mutation in mutations(SOURCE)}
    untouched = {number for number, line in enumerate(SOURCE.splitlines(), 1) if "while" in line or '"' in line}
    assert not touched & untouched
    assert SOURCE.splitlines().index("LIMIT = 5") + 1 not in touched


@pytest.mark.parametrize(
    ("body", "after", "rule"),
    [
        ("a - b", "a + b", "subtract b from a"),
        ("(a + 1) * b", "(a + 1) / b", "multiply a + 1 by b"),
        ("a // b", "a % b", "divide a by b and drop the remainder"),
        ("a < b", "a <= b", "test that a is less than b"),
        ("min(a, b)", "max(a, b)", "take the smaller of a and b"),
        ("a or b", "a and b", "accept either a or b"),
    ],
)
def test_the_rule_says_what_the_right_program_does(body: str, after: str, rule: str) -> None:
    source = f"def f(a, b):\n    return {body}\n"
    assert (f"def f(a, b):\n    return {after}\n", rule) in {
        (apply(source, [mutation]), mutation.rule) for mutation in mutations(source)
    }


def test_overlapping_mutations_and_foreign_sources_are_refused() -> None:
    source = "def f(a, b):\n    return a < b\n"
    with pytest.raises(ValueError, match="overlaps"):
        apply(source, mutations(source))
    with pytest.raises(ValueError, match="another source"):
        apply("def f():\n    return None\n" * 2, mutations(source)[:1])
    with pytest.raises(ValueError, match="ASCII"):
        mutations("def f():\n    return 'é'\n")
