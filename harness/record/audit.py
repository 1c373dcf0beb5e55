"""Which episodes used which environment digest, image and weights: counted, from what each said when it began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .query import query
from .reader import Records

COLUMNS = (
    "env_id",
    "environment_digest",
    "image",
    "image_digest",
    "hub_fingerprint",
    "backend",
    "policy",
    "weights",
    "metier_version",
    "commit",
)
"""By which episodes are told apart."""


def audit(
    records: Records, *, where: str = "true", run_ids: Iterable[str] | None = None, list_episodes: bool = False
) -> list[dict[str, Any]]:
    """One row for each combination of `COLUMNS`: how many episodes, in which runs, with which weight versions, when.

    `where` is a condition on `episodes`, such as `image_digest LIKE 'ab12%'`.

    Raises:
        ConfigError: as `query`.
    """
    names = ", ".join(COLUMNS)
    listed = (
        ", list(episode_id || ' attempt ' || attempt ORDER BY episode_id, attempt) AS episodes" if list_episodes else ""
    )
    sql = f"""
        SELECT {names}, count(*) AS num_episodes, count(*) FILTER (WHERE reward IS NOT NULL) AS num_graded,
            count(*) FILTER (WHERE NOT ended) AS num_unfinished, min(weights_first) AS weights_first,
            max(weights_last) AS weights_last, list(DISTINCT run_id ORDER BY run_id) AS runs,
            min(started_at) AS first_at, max(started_at) AS last_at{listed}
        FROM episodes WHERE {where}
        GROUP BY {names} ORDER BY {names}"""
    return query(records, sql, run_ids).dicts()
