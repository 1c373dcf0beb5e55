"""A database is made, an index is added, and the statement's own counter shows that it is used."""

import re
import sqlite3
import subprocess

PATH = "/workspace/smoke.db"
QUERY = "SELECT count(*) FROM reading WHERE sensor = 7;"


def shell(*lines: str) -> str:
    done = subprocess.run(["sqlite3", PATH], input="\n".join(lines), capture_output=True, text=True, check=True)
    assert done.stderr == "", done.stderr
    return done.stdout


def steps() -> int:
    found = re.search(r"VM-steps:\s+(\d+)", shell(".stats vmstep", QUERY))
    assert found, "the shell shows no VM steps"
    return int(found[1])


with sqlite3.connect(PATH) as database:
    database.execute("CREATE TABLE reading(id INTEGER PRIMARY KEY, sensor INTEGER, value REAL)")
    database.executemany("INSERT INTO reading(sensor, value) VALUES (?, ?)", ((n % 100, n / 7) for n in range(10_000)))
database.close()
before = steps()
shell("CREATE INDEX by_sensor ON reading(sensor);", "ANALYZE;")
after = steps()
assert shell(QUERY).strip() == "100", "the answer changed"
assert "by_sensor" in shell("EXPLAIN QUERY PLAN " + QUERY), "the index is not used"
assert after * 20 < before, f"{before} steps without the index, {after} with it"
assert sqlite3.sqlite_version in shell("SELECT sqlite_version();"), "the shell and Python hold different libraries"
print(f"SQLite {sqlite3.sqlite_version}: {before} steps without the index, {after} with it")
