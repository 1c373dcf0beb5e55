"""The board: rows in groups of their like, best first. A rank says nothing of any other group.

What rows of a group share is `Terms`: the environments by their digests, levels, seeds and options, the hub's secret,
the harness, the samples, and so the denominator. Only a row all of whose trials are valid is ranked, by passed /
requested: a trial that somebody declares invalid takes the row out of the ranking, and never a failure out of its
denominator.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from decimal import Decimal

from ..evaluate.plan import canonical
from ..evaluate.summary import Summary
from .boards import Boards, shown
from .checks import Checked
from .contract import About, Board, BoardRow, Group, State, Terms
from .sample import SampleRule
from .scrub import scrubbed
from .store import Store, Submission, now, refuted_before
from .verification import verification

_COMMIT = re.compile(r"[0-9a-f]{7,64}\+?")
_WAITS = {
    State.QUEUED: "its replays are not done",
    State.REFUTED: "replays did not end as the submission says",
    State.UNVERIFIED: "replays could not be had",
}


def terms_of(checked: Checked) -> Terms:
    """What a submission's row must share with others."""
    plan = checked.results.plan
    return Terms(
        suite=checked.about.suite,
        split=checked.about.split,
        environments=tuple(sorted(map(shown, plan.environments), key=lambda one: (one.id, str(sorted(one.options))))),
        samples=plan.samples,
        requested=plan.num_trials,
        secret_fingerprint=plan.conditions.secret_fingerprint,
        metier=plan.conditions.metier,
        episode_s=plan.conditions.episode_s,
    )


def group_id(terms: Terms) -> str:
    """Names a group by its terms."""
    return hashlib.sha256(canonical(terms.model_dump(mode="json"))).hexdigest()[:16]


def row_of(checked: Checked, submitter: str, secrets_removed: int, rule: SampleRule) -> BoardRow:
    """The row of a new submission; what others and replays have to do with it is filled in by `board`."""
    results = checked.results
    words = scrubbed(checked.about.model_dump(mode="json"))
    about = About.model_construct(**(words.value | {"cost_usd": checked.about.cost_usd}))
    report = checked.report
    priced = _cost(report.overall)
    cost = priced if priced is not None else about.cost_usd
    commits = {one.commit for one in checked.manifest.sessions if _COMMIT.fullmatch(one.commit)}
    reasons: list[str] = []
    if report.overall.valid < report.overall.requested:
        invalid = ", ".join(f"{count} {name}" for name, count in report.overall.invalid.items())
        reasons.append(f"not every trial is valid ({invalid}): --rerun-invalid runs them again")
    if cost is None:
        reasons.append("no cost is known: neither the turns nor the submitter say it")
    return BoardRow(
        id=checked.id,
        submitter=submitter,
        received_at=now(),
        state=State.QUEUED,
        rank=None,
        rank_best=None,
        not_ranked=tuple(reasons),
        name=about.name,
        agent=about.agent,
        model=about.model,
        commit=about.commit,
        command=about.command,
        policy=results.plan.policy,
        harness_commits=tuple(sorted(commits))[:20],
        backend=results.plan.conditions.backend,
        overall=report.overall,
        domains=report.domains,
        cost_usd=cost,
        cost_declared=priced is None and cost is not None,
        reruns=sum(row.round > 0 for row in results.rows.values()),
        secrets_removed=secrets_removed + words.removed,
        same_calls_as=(),
        refuted_before=0,
        verification=verification(rule.size(report.overall.valid), (), whole=False),
    )


def board(store: Store, boards: Boards) -> Board:
    """Everything that is on it."""
    submissions = store.submissions()
    rows: dict[str, list[BoardRow]] = {}
    terms: dict[str, Terms] = {}
    for one in submissions:
        group = group_id(one.terms)
        terms[group] = one.terms
        rows.setdefault(group, []).append(current_row(one, submissions, store))
    groups = [
        Group(
            id=group,
            terms=terms[group],
            current=boards.current(terms[group].suite, terms[group].split, terms[group].environments),
            rows=ranked(found),
        )
        for group, found in rows.items()
    ]
    order = sorted(groups, key=lambda one: (not one.current, one.terms.suite, one.terms.split, -len(one.rows), one.id))
    return Board(groups=tuple(order))


def current_row(one: Submission, submissions: Iterable[Submission], store: Store) -> BoardRow:
    """A submission's row as it is today, without its rank."""
    everyone = list(submissions)
    to_replay = one.row.overall.valid if one.whole else one.row.verification.to_replay
    waits = _WAITS.get(one.state)
    return one.row.model_copy(
        update={
            "state": one.state,
            "not_ranked": (*one.row.not_ranked, *([waits] if waits else [])),
            "same_calls_as": tuple(
                other.id for other in everyone if other.calls_digest == one.calls_digest and other.number < one.number
            ),
            "refuted_before": refuted_before(everyone, one),
            "verification": verification(to_replay, store.replays(one.id), whole=one.whole),
        }
    )


def ranked(rows: Iterable[BoardRow]) -> tuple[BoardRow, ...]:
    """Rows of one group, best first; those that are not ranked come last, in the order in which they came."""
    every = list(rows)
    best = sorted((row for row in every if not row.not_ranked), key=lambda row: -row.overall.passed)  # stable
    made = [
        row.model_copy(
            update={
                "rank": 1 + sum(other.overall.passed > row.overall.passed for other in best),
                "rank_best": 1 + sum(other.overall.pass_rate_low > row.overall.pass_rate_high for other in best),
            }
        )
        for row in best
    ]
    others = [row.model_copy(update={"rank": None, "rank_best": None}) for row in every if row.not_ranked]
    return (*made, *others)


def _cost(overall: Summary) -> Decimal | None:
    """What the turns' prices add up to, failures and failed attempts included."""
    parts = [one.cost_usd for one in (overall.spent, overall.spent_for_nothing) if one.cost_usd is not None]
    return sum(parts, Decimal(0)) if parts else None
