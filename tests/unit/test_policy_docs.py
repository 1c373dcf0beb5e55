"""The guide to policies names every one of them, and every setting of the one that has many."""

from __future__ import annotations

import re
from pathlib import Path

from metier.harness.policy import POLICIES
from metier.harness.policy.openai import OpenAISettings

TEXT = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The names in the first column, and the defaults in the second, of the table under this head."""
    table = TEXT.partition(heading)[2].partition("\n\n")[0]
    return [line.split("|")[1:3] for line in table.splitlines()[2:]]


def test_every_policy_is_listed() -> None:
    named = [re.findall(r"`(\w+)`", first)[0] for first, _ in rows("| policy | who acts | settings |")]
    assert sorted(named) == sorted(name for name, where in POLICIES.items() if where.startswith("metier."))


def test_every_setting_of_openai_is_listed_with_its_default() -> None:
    said = {name: default.strip() for first, default in rows("| setting |") for name in re.findall(r"`(\w+)`", first)}
    fields = OpenAISettings.model_fields
    assert set(fields) - set(said) == {"url", "model", "max_tokens_name"}
    assert set(said) - set(fields) == {"address"}
    assert all(name in TEXT for name in fields)
    assert said["max_tokens"] == str(fields["max_tokens"].default)
    assert said["connect_s"] == "30, 600, 120"
    assert [fields[name].default for name in ("connect_s", "request_s", "idle_s")] == [30, 600, 120]
    assert [fields[name].default for name in ("retries", "backoff_s", "longest_backoff_s")] == [6, 1, 60]


def test_the_example_compiles() -> None:
    for example in re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        compile(example, "docs/policies.md", "exec")
