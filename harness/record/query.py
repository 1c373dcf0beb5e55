"""SQL over records: DuckDB over the Parquet files that manifests commit.

Views: `episodes` (one row an attempt, also those that did not end), `turns`, `steps`, `checks`, `verdicts`, `logs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from metier.envs.core import ConfigError

from .errors import RecordError
from .extras import need
from .reader import Name, Records
from .tables import COLUMNS, TIMINGS, schema

_EPISODES = f"""
CREATE VIEW episodes AS
SELECT s.run_id, s.episode_id, s.attempt, s.trace_id, s.env_id, s.seed, s.level, s.sample, s.options,
    s.policy, s.settings, e.outcome, e.limit_name, v.reward, v.passed, e.failure, e.outcome IS NOT NULL AS ended,
    s.at AS started_at, e.at AS ended_at, e.num_turns, e.num_steps, e.num_dropped,
    t.prompt_tokens, t.output_tokens, t.cached_tokens, t.reasoning_tokens, t.num_requests, t.cost_usd,
    {", ".join(f"e.{name}_s" for name in TIMINGS)},
    s.environment_digest, s.image, s.image_digest, s.backend, s.hub_fingerprint, s.metier_version, s.commit, s.weights,
    t.weights_first, t.weights_last
FROM started s
LEFT JOIN ended e USING (run_id, episode_id, attempt)
LEFT JOIN verdicts v USING (run_id, episode_id, attempt)
LEFT JOIN (
    SELECT run_id, episode_id, attempt, sum(prompt_tokens)::BIGINT AS prompt_tokens,
        sum(output_tokens)::BIGINT AS output_tokens, sum(cached_tokens)::BIGINT AS cached_tokens,
        sum(reasoning_tokens)::BIGINT AS reasoning_tokens, sum(num_requests)::BIGINT AS num_requests,
        sum(cost_usd) AS cost_usd, min(weights_first) AS weights_first, max(weights_last) AS weights_last
    FROM turns GROUP BY ALL) t USING (run_id, episode_id, attempt)
"""
_FILE_BROKE = "reading the stream registered as"
"""What DuckDB says where a file cannot be read; otherwise an error of this kind is the query's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A query's rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[dict[str, Any]]:
        """Each row by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def connect(records: Records, run_ids: Iterable[str] | None = None) -> Any:
    """A DuckDB connection with the views.

    Raises:
        ConfigError: a run that is not there, or DuckDB is not installed.
    """
    duckdb = need("duckdb", "SQL over records")
    arrow = need("pyarrow.dataset", "SQL over records")
    filesystem, root = records.store.arrow()
    manifests = records.manifests(run_ids)
    # views are over Arrow datasets: whatever filesystem the store is on, and only files that manifests name
    db = duckdb.connect(config={"python_enable_replacements": False, "autoinstall_known_extensions": False})
    for table in COLUMNS:
        paths = [root + found.path for manifest in manifests if (found := manifest.tables.get(table))]
        if paths:
            dataset = arrow.dataset(paths, schema=schema(table), format="parquet", filesystem=filesystem)
        else:
            dataset = schema(table).empty_table()
        db.register(table, dataset)
    db.execute(_EPISODES)
    return db


def query(records: Records, sql: str, run_ids: Iterable[str] | None = None) -> Answer:
    """The answer to `sql`.

    Raises:
        ConfigError: no such run, table or column, or no SQL; the message is DuckDB's.
        RecordError: a file is damaged or missing.
    """
    duckdb = need("duckdb", "SQL over records")
    db = connect(records, run_ids)
    try:
        db.execute(sql)
        columns = tuple(name for name, *_ in db.description or ())
        return Answer(columns=columns, rows=db.fetchall() if columns else [])
    except (duckdb.ProgrammingError, duckdb.NotSupportedError) as error:
        if _FILE_BROKE in str(error):
            raise RecordError(f"records at {records.store.url}: {error}") from error
        raise ConfigError(f"{error}; tables are episodes, turns, steps, checks, verdicts and logs") from error
    except duckdb.Error as error:
        raise RecordError(f"records at {records.store.url}: {error}") from error
    finally:
        db.close()


def chosen(records: Records, where: str, run_ids: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The rows of `episodes` for which `where` holds, in order. Raises as `query`."""
    order = "run_id, env_id, seed, level, sample, episode_id, attempt"
    return query(records, f"SELECT * FROM episodes WHERE {where or 'true'}\nORDER BY {order}", run_ids).dicts()


def name_of(row: dict[str, Any]) -> Name:
    """Of a row of `episodes`."""
    return row["run_id"], row["episode_id"], row["attempt"]
