"""How long a text is, by a rule that is no policy's tokenizer: instances must not depend on one.

A token is up to six letters, up to three digits, or one sign; spaces are free. Tables and prose of English filings come
within some tens of percent of what common tokenizers count.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|[^\w\s]|_")


def count_tokens(text: str) -> int:
    """Tokens of a text.

    Example:
        >>> count_tokens("Revenue of EUR 412.3 million")
        9
    """
    return len(_TOKEN.findall(text))
