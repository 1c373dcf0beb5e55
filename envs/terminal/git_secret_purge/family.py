"""terminal/GitSecretPurge: remove leaked secrets from a repository's whole history, and keep the rest.

The history is drawn as a plan whose objects the host can name by itself (`history`); git makes them in the preparing
sandbox and must come to the same ids. The verifier reads every object of the artefact without trusting it
(`repo_probe`), redacts what it finds as a right purge would, and compares that with the redacted original
(`canonical`); then it looks for what is left (`grading`). The agent's hooks, configuration, replacements and grafts
never run or count.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from . import attempts
from .drafting import draw_project
from .grading import examine, leak_of
from .history import History, build, import_stream, reflogs
from .project import LEVELS, Project, purged
from .secret import Leak

_SETUP = """\
set -e
git init -q -b {head} repo
cd repo
git config user.name "Ops" && git config user.email ops@example.org
git -c fastimport.unpackLimit={unpack} fast-import --quiet < ../.setup/stream
git for-each-ref --format='delete %(refname)' refs/setup | git update-ref --stdin
git reset -q --hard
rm -rf .git/logs .git/ORIG_HEAD .git/hooks && cp -r ../.setup/logs .git/logs
test "$(git rev-parse HEAD)" = {tip}
git fsck --full --no-dangling
rm -r ../.setup
"""


@dataclass(frozen=True)
class GitSecretPurge(Family):
    """Rewrite history: no object keeps a secret, everything else stays.

    Levels turn where secrets hide and what must survive: 0 one token in files; 1 messages, an annotated tag, branches,
    commits that become empty; 2 a password in a URL, a renamed binary file, a stash; 3 base64, notes, several stashes,
    messages that cite commits, secrets not told but pointed at; 4 UTF-16, base64 of a pair, look-alikes, a copied file.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        project = draw_project(level, rng)
        history, leak = project.history, project.leak
        built = build(history)
        files = {".setup/stream": import_stream(history, built.ids)}
        files |= {f".setup/logs/{name}": data for name, data in reflogs(history, built.ids).items()}
        told = LEVELS[level].told
        findings = [] if told else attempts.facts(project.findings, built.ids)
        if findings:
            files["findings.csv"] = _csv(findings)
        new = build(purged(history, leak))
        script = _SETUP.format(
            head=history.head, unpack=1 if project.packed else 100_000, tip=built.repository.refs[built.repository.head]
        )
        return Instance(
            variables=_variables(project, level, told),
            files=files,
            setup=(script,),
            artefacts=(Artefact(path="repo/.git", tree=True, max_mb=16),),
            truth={
                "history": history.to_json(),
                "secrets": dict(leak.secrets),
                "paths": list(leak.paths),
                "marker": leak.marker,
                "findings": cast(Json, [list(one.values()) for one in findings]),
            },
            secrets=(new.repository.refs[new.repository.head], new.ids[-1]),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        history, leak, truth = _read(instance)
        return attempts.oracle(leak, history, truth["findings"])

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        history, leak, _ = _read(instance)
        return attempts.mutants(leak, history)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(_read(instance)[1])

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        history, leak, _ = _read(instance)
        return await examine(sandbox, build(history).repository, leak)


def _read(instance: Instance) -> tuple[History, Leak, Mapping[str, Any]]:
    truth = cast("Mapping[str, Any]", instance.truth)
    return History.from_json(truth["history"]), leak_of(truth), truth


def _variables(project: Project, level: int, told: bool) -> dict[str, Json]:
    leak = project.leak
    return {
        "secrets": [{"what": what, "value": value if told else ""} for what, value in leak.secrets.items()],
        "told": told,
        "file": leak.paths[1] if leak.paths else "",
        "stashes": bool(project.history.stashes),
        "notes": bool(project.history.notes),
        "branches": LEVELS[level].branches > 0,
        "coded": LEVELS[level].coded,
        "hard": LEVELS[level].hard,
        "url": "database password" in leak.secrets,
    }


def _csv(findings: Sequence[Mapping[str, object]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(findings[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(findings)
    return text.getvalue().encode()
