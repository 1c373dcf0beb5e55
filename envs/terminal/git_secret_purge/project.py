"""A small service's history in which secrets were committed: who did what, when, where it leaked, and what was lost.

Leaks are events between ordinary changes. Level by level more kinds of places hold a secret, and more that merely
looks like one must stay.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...core import Rng
from .history import Commit, History
from .secret import Leak, percent, redacted

Files = dict[str, str]
"""Path → content, as Latin-1 text."""
PEOPLE = (
    "Ada Moreau <ada@{org}.example>", "Björn Lindqvist <bjorn@{org}.example>", "Chidi Okafor <chidi@{org}.example>",
    "Dana Petrov <dana@{org}.example>", "Emi Sato <emi@{org}.example>", "Farah Haddad <farah@{org}.example>",
)  # fmt: skip
SERVICES = ("ledger", "dispatch", "roster", "tariff", "catalog", "intake", "billing", "parking")
ORGS = ("northwind", "halden", "brightsea", "ostrava", "kestrel")
_VERBS = ("Tune", "Extend", "Clarify", "Rework", "Simplify", "Adjust", "Harden", "Document")
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"
_FIELDS = ("token", "rotated token", "signing key", "database password")
_ZONES = ("+0000", "+0200", "-0500", "+0530")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level's knobs."""

    changes: int
    """Ordinary commits on the main branch."""
    secrets: int
    branches: int = 0
    file: bool = False
    """A binary file is to be removed, under two names or more."""
    stashes: int = 0
    notes: int = 0
    coded: bool = False
    """Base64 in a manifest, and a message in Latin-1; messages cite commits."""
    hard: bool = False
    """UTF-16, base64 of a pair, look-alikes, a copy of the file, an octopus merge."""
    told: bool = True
    """Whether the brief has the secrets themselves, or only where one occurrence of each is."""


LEVELS = (
    Level(changes=6, secrets=1),
    Level(changes=9, secrets=3, branches=2),
    Level(changes=12, secrets=4, branches=2, file=True, stashes=1),
    Level(changes=16, secrets=4, branches=3, file=True, stashes=2, notes=3, coded=True, told=False),
    Level(changes=22, secrets=4, branches=4, file=True, stashes=3, notes=4, coded=True, hard=True, told=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A history, what leaked in it, and where one occurrence of each secret is."""

    history: History
    leak: Leak
    findings: tuple[tuple[str, int, str, int], ...]
    """(what, commit, path, line)."""
    packed: bool


@dataclass(slots=True)
class Writer:
    """Grows a history commit by commit; time and people are drawn as it goes."""

    rng: Rng
    people: tuple[str, ...]
    contents: dict[str, int] = field(default_factory=dict[str, int])
    commits: list[Commit] = field(default_factory=list[Commit])
    reflog: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    clock: int = 1_700_000_000

    def commit(self, files: Mapping[str, str], parents: tuple[int, ...], message: str, encoding: str = "") -> int:
        """Its number."""
        self.clock += self.rng.integer(600, 90_000)
        # an author's name is UTF-8 whatever the message is in; only plain ones go with another encoding
        people = [one for one in self.people if not encoding or one.isascii()]
        author, committer = self.rng.choice(people), self.rng.choice(people)
        zone = self.rng.choice(_ZONES)
        index = {path: self.contents.setdefault(text, len(self.contents)) for path, text in sorted(files.items())}
        self.commits.append(
            Commit(
                files=index,
                parents=parents,
                message=message if encoding else message.encode().decode("latin-1"),
                author=author.encode().decode("latin-1"),
                authored=f"{self.clock - self.rng.integer(0, 500)} {zone}",
                committer=committer.encode().decode("latin-1"),
                committed=f"{self.clock} {zone}",
                encoding=encoding,
            )
        )
        return len(self.commits) - 1

    def logged(self, old: int, new: int, verb: str) -> None:
        """A move of HEAD."""
        self.reflog.append((old, new, f"{verb}: {self.commits[new].message.partition(chr(10))[0]}"))


def draw_leak(level: Level, rng: Rng, service: str) -> Leak:
    """The secrets and the file of an instance."""

    def word(count: int, letters: str = _LETTERS) -> str:
        return "".join(rng.choice(letters) for _ in range(count))

    values = (
        f"{service[:3]}_live_{word(26)}",
        f"{service[:3]}_live_{word(26)}",
        f"HK{word(30, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}",
        f"{word(5)}/{word(4)}@{word(5)}#{word(3)}",
    )
    secrets: dict[str, str] = dict(zip(_FIELDS, values[: level.secrets], strict=False))
    if not level.file:
        return Leak(secrets=secrets)
    name = rng.choice(("upload", "signing", "partner", "gateway"))
    paths = [f"keys/{name}.p12", f"deploy/{name}-keystore.p12"]
    if level.hard:
        paths.append(f"backup/{name}-old.pfx")
    return Leak(
        secrets=secrets, paths=tuple(paths), marker=bytes(rng.integer(0, 255) for _ in range(24)).decode("latin-1")
    )


def first_files(service: str, leak: Leak, level: Level, rng: Rng) -> Files:
    """The tree of the first commit: nothing has leaked yet."""
    files = {
        "README.md": f"# {service}\n\nThe {service} service. See docs/runbook.md.\n",
        "config/app.ini": f"[{service}]\nendpoint = https://api.{service}.example/v2\ntimeout_s = 30\nretries = 3\n",
        "src/client.py": f'"""Client of the {service} API."""\n\nTIMEOUT_S = 30\n',
        "src/report.py": '"""Monthly figures."""\n\n\ndef total(rows):\n    return sum(row.amount for row in rows)\n',
        "deploy/release.sh": "#!/bin/sh\nset -eu\nexport APP_ENV=production\n",
        "docs/runbook.md": "# Runbook\n\nCall whoever is on duty before you restart anything.\n",
    }
    if level.hard:
        token = leak.secrets["token"]
        alike = token.replace("_live_", "_test_")
        files["docs/runbook.md"] += f"\nIn the sandbox use `{alike}`; real ones begin with `{token[:9]}`.\n"
        files["config/app.ini"] += f"key_id = {token[:9]}id_{rng.integer(1000, 9999)}\n"
    return files


def tweak(files: Files, rng: Rng) -> str:
    """One ordinary change; its message."""
    number = rng.integer(10, 99_999)
    path = rng.choice(("src/client.py", "src/report.py", "docs/runbook.md", "README.md", "deploy/release.sh"))
    match path.rpartition(".")[2]:
        case "py":
            files[path] += f"\n\ndef step_{number}(value):\n    return value + {rng.integer(1, 99)}\n"
        case "sh":
            files[path] += f"export LIMIT_{number}={rng.integer(1, 500)}\n"
        case _:
            files[path] += f"\nNote {number}: allow {rng.integer(2, 60)} minutes.\n"
    return f"{rng.choice(_VERBS)} {path.rpartition('/')[2]} ({number})\n"


Event = tuple[str, Callable[[Files], None]]


def events(level: Level, leak: Leak, rng: Rng) -> list[Event]:
    """What leaks on the main branch, and how it is taken out of the newest files again, in order."""
    secrets = leak.secrets
    token = secrets["token"]

    def replaced(path: str, old: str, new: str) -> Callable[[Files], None]:
        def change(files: Files) -> None:
            files[path] = files[path].replace(old, new)

        return change

    def added(path: str, text: str) -> Callable[[Files], None]:
        def change(files: Files) -> None:
            files[path] = files.get(path, "") + text

        return change

    found: list[Event] = [("Authenticate against the API\n", added("config/app.ini", f"api_token = {token}\n"))]
    newest = token
    if "rotated token" in secrets:
        newest = secrets["rotated token"]
        found.append(("Rotate the API token\n", replaced("config/app.ini", token, newest)))
    if key := secrets.get("signing key"):
        text = f"\nRequests are signed with {key}.\n"
        found.append(("Describe request signing\n", added("docs/runbook.md", text)))
        found.append(
            (f"Sign every request\n\nUntil the vault is there the key is {key}.\n", lambda files: tweak_client(files))
        )
        found.append(("Keep keys out of the runbook\n", replaced("docs/runbook.md", text, "\nRequests are signed.\n")))
    if password := secrets.get("database password"):
        dsn = f"dsn = postgres://app:{percent(password).decode()}@db.internal/main\n"
        found.append(("Use the shared database\n", added("config/app.ini", dsn)))
        found.append(("Release with the database\n", added("deploy/release.sh", f"export DB_PASSWORD='{password}'\n")))
        found += _coded(level, password, added)
        found.append(
            ("Take the password from the environment\n", replaced("deploy/release.sh", f"'{password}'", '"$1"'))
        )
    found.append(("Read the token from the environment\n", replaced("config/app.ini", newest, "${API_TOKEN}")))
    if leak.paths:
        found = _with_file(leak, rng, found)
    return found


def tweak_client(files: Files) -> None:
    """A change that goes with a message."""
    files["src/client.py"] += "\n\ndef signed(request):\n    request.headers['X-Signed'] = '1'\n    return request\n"


def _coded(level: Level, password: str, added: Callable[[str, str], Callable[[Files], None]]) -> list[Event]:
    found: list[Event] = []
    if level.coded:
        text = base64.b64encode(password.encode()).decode()
        manifest = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: {text}\n"
        found.append(("Deploy the database secret\n", added("k8s/secret.yaml", manifest)))
    if level.hard:
        pair = base64.b64encode(f"svc-app:{password}".encode()).decode()
        found.append(
            (
                "Show how to call the admin page\n",
                added("docs/runbook.md", f"\ncurl -H 'Authorization: Basic {pair}' …\n".encode().decode("latin-1")),
            )
        )
        script = f'$env:APP_ENV = "production"\r\n$env:DB_PASSWORD = "{password}"\r\n'
        wide = (b"\xff\xfe" + script.encode("utf-16-le")).decode("latin-1")
        found.append(("Add the Windows set-up\n", added("win/setup.ps1", wide)))
    return found


def _with_file(leak: Leak, rng: Rng, found: list[Event]) -> list[Event]:
    """The binary file comes, changes its name and its bytes, and goes, between the other events."""

    def body(seed: str) -> str:
        draw = rng.child(seed)
        head = bytes(draw.integer(0, 255) for _ in range(200)).decode("latin-1")
        return head + leak.marker + bytes(draw.integer(0, 255) for _ in range(120)).decode("latin-1")

    first, second, *more = leak.paths

    def come(files: Files) -> None:
        files[first] = body("first")

    def move(files: Files) -> None:
        files[second] = files.pop(first)

    def renew(files: Files) -> None:
        for path in more:
            files[path] = files[second]
        files[second] = body("second")

    def go(files: Files) -> None:
        for path in leak.paths:
            files.pop(path, None)

    steps: list[Event] = [
        ("Add the upload certificate\n", come),
        ("Move the certificate to deploy\n", move),
        ("Renew the certificate\n", renew),
        ("The certificate comes from the vault\n", go),
    ]
    places = sorted(rng.sample(range(len(found) + 1), len(steps)))
    for offset, (place, step) in enumerate(zip(places, steps, strict=True)):
        found.insert(place + offset, step)
    return found


def first_lines(history: History, leak: Leak) -> tuple[tuple[str, int, str, int], ...]:
    """Where a scanner would report each secret: its first plain occurrence in a file."""
    found: list[tuple[str, int, str, int]] = []
    for what, secret in leak.secrets.items():
        for number, commit in enumerate(history.commits):
            hits = [
                (what, number, path, line)
                for path, content in commit.files.items()
                for line, text in enumerate(history.contents[content].split("\n"), 1)
                if secret in text
            ]
            if hits:
                found.append(hits[0])
                break
    return tuple(found)


def purged(history: History, leak: Leak) -> History:
    """The history as a right purge leaves it."""
    secrets = list(leak.secrets.values())

    def clean(text: str) -> str:
        if leak.marker and leak.marker in text:
            return ""
        return redacted(text.encode("latin-1"), secrets).decode("latin-1")

    return replace(
        history,
        contents=tuple(clean(content) for content in history.contents),
        commits=tuple(
            replace(
                commit,
                message=clean(commit.message),
                files={path: content for path, content in commit.files.items() if path not in leak.paths},
            )
            for commit in history.commits
        ),
        tags=tuple(replace(tag, message=clean(tag.message)) for tag in history.tags),
        notes={number: clean(text) for number, text in history.notes.items()},
    )
