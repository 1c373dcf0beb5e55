"""What an import costs: processor time of a fresh interpreter, less that of one that imports nothing.

    python benchmarks/import_time.py [--times 10] [--json]

`import metier` registers with Gymnasium but does not import it; `gymnasium` is the share that its users pay anyway.
"""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys

from measure import Row, parser, report

IMPORTS = (
    "metier",
    "gymnasium",
    "gymnasium, metier",
    "metier.harness.runner",
    "metier.cli",
    "numpy",
    "docker",
    "swerex",
    "ray",
)


def cpu_ms(code: str) -> float:
    """User and system time of an interpreter that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    options = parser("What imports cost.")
    options.add_argument("--times", type=int, default=10)
    given = options.parse_args()
    nothing = sorted(cpu_ms("pass") for _ in range(given.times))[given.times // 2]
    rows = [Row(what="an interpreter", way="imports nothing", values=[nothing])]
    for names in IMPORTS:
        if given.only not in names:
            continue
        first = names.partition(",")[0].partition(".")[0]
        way = f"import {names}"
        if importlib.util.find_spec(first) is None:
            rows.append(Row(what="imports, beyond that", way=way, note="not installed"))
            continue
        cpu_ms(way)  # compiles
        values = [cpu_ms(way) - nothing for _ in range(given.times)]
        rows.append(Row(what="imports, beyond that", way=way, values=values, unit="ms of processor"))
    report("What imports cost", rows, as_json=given.json)


if __name__ == "__main__":
    main()
