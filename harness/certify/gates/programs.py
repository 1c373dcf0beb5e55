"""Small hostile programs in the languages that artefacts are written in, by the ending of the file's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """One language's. `leaves` ends at once with exit code 0."""

    endless: str
    leaves: str
    marks: str


_MARKS = ("PASSED", "All tests passed", "reward=1.0")
_SHELL = Programs(
    endless="#!/bin/sh\nwhile :; do :; done\n",
    leaves="#!/bin/sh\nexit 0\n",
    marks="#!/bin/sh\n" + "".join(f"echo '{mark}'\n" for mark in _MARKS),
)
_C = Programs(
    endless="int main(void) { for (;;) {} }\n",
    leaves="int main(void) { return 0; }\n",
    marks="#include <stdio.h>\nint main(void) {" + "".join(f' puts("{mark}");' for mark in _MARKS) + " return 0; }\n",
)
_JAVASCRIPT = Programs(
    endless="for (;;) {}\n",
    leaves="process.exit(0)\n",
    marks="".join(f"console.log('{mark}')\n" for mark in _MARKS),
)
_BY_ENDING: Mapping[str, Programs] = {
    ".sh": _SHELL,
    ".c": _C,
    ".cc": _C,
    ".cpp": _C,
    ".js": _JAVASCRIPT,
    ".mjs": _JAVASCRIPT,
    ".ts": _JAVASCRIPT,
    ".rs": Programs(
        endless="fn main() { loop {} }\n",
        leaves="fn main() { std::process::exit(0) }\n",
        marks="fn main() {" + "".join(f' println!("{mark}");' for mark in _MARKS) + " }\n",
    ),
    ".go": Programs(
        endless="package main\nfunc main() { for { } }\n",
        leaves='package main\nimport "os"\nfunc main() { os.Exit(0) }\n',
        marks="package main\nfunc main() {" + "".join(f' println("{mark}");' for mark in _MARKS) + " }\n",
    ),
    ".lua": Programs(
        endless="while true do end\n",
        leaves="os.exit(0)\n",
        marks="".join(f"print('{mark}')\n" for mark in _MARKS),
    ),
    ".sql": Programs(
        endless="WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n;\n",
        leaves="SELECT 0;\n",
        marks="".join(f"SELECT '{mark}';\n" for mark in _MARKS),
    ),
}
_PYTHON = Programs(
    endless="while True:\n    pass\n",
    leaves="import os\nos._exit(0)\n",
    marks="".join(f"print({mark!r})\n" for mark in _MARKS),
)


def programs_for(path: str) -> Programs:
    """Those in the language of `path`; Python where the name does not tell."""
    name = path.rpartition("/")[2]
    return _BY_ENDING.get(name[name.rfind(".") :] if "." in name else "", _PYTHON)
