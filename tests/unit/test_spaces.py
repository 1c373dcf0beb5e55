"""Action and text spaces: what is sampled is contained, and nothing makes `contains` raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.harness.gym import TextSpace, ToolCallSpace
from metier.harness.tools import SPECS, cut_text, tool_specs

SPACE = ToolCallSpace(tool_specs(list(SPECS)))

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.integers(0, 2**31))
def test_samples_are_valid_and_repeat(seed: int) -> None:
    space = ToolCallSpace(tool_specs(list(SPECS)), seed=seed)
    again = ToolCallSpace(tool_specs(list(SPECS)), seed=seed)
    call = space.sample()
    assert call in space
    assert call == again.sample()
    text = TextSpace(seed=seed)
    assert text.sample() in text


@given(anything)
def test_contains_never_raises(thing: object) -> None:
    assert SPACE.contains(thing) in (True, False)
    assert SPACE.contains({"tool": thing, "arguments": thing}) in (True, False)


def test_the_openai_format_names_every_tool() -> None:
    names = [tool["function"]["name"] for tool in SPACE.tools]  # type: ignore[index,call-overload]
    assert names == [*SPECS, "submit"]


@given(st.text(max_size=300), st.integers(2, 64))
def test_cut_text_keeps_head_and_tail_and_counts_the_rest(text: str, limit: int) -> None:
    shown, cut = cut_text(text, limit)
    whole = text.encode("utf-8", "replace")
    if len(whole) <= limit:
        assert (shown, cut) == (text, 0)
    else:
        head, _, rest = shown.partition(f"\n[{cut} bytes cut here]\n")
        assert whole.startswith(head.encode("utf-8", "replace"))
        assert whole.endswith(rest.encode("utf-8", "replace"))
        assert cut == len(whole) - len(head.encode()) - len(rest.encode())


@pytest.mark.parametrize("size", [8191, 8192, 8193, 81920])
def test_the_limit_is_exact(size: int) -> None:
    _, cut = cut_text("x" * size)
    assert (cut > 0) == (size > 8192)
    assert cut == max(0, size - 8192)
