"""The database of a leaderboard: tokens, uploads, submissions, replays; SQLite or PostgreSQL by URL.

Every change is one transaction, and several servers may use one database. Nothing is ordered by a clock: `number`
counts. What only Python reads is kept as JSON text, in which neither database finds anything to mind.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import Connection, Engine

from metier.envs.core import ConfigError

from .contract import BoardRow, Replayed, State, Terms
from .faults import Reason, Refusal, StoreError
from .tokens import NewToken, id_of, new_token, same

SCHEMA_VERSION = 1
HOUR_S = 3600.0
_LOOKS = "metier_looks"
_APART_S = 300.0
"""Of the clocks of two servers, at most."""
_metadata = sa.MetaData()
_meta = sa.Table("metier_board", _metadata, sa.Column("schema_version", sa.Integer, primary_key=True))
_tokens = sa.Table(
    "tokens",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(8), nullable=False, unique=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("submitter", sa.String(80), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("revoked_at", sa.String(32)),
)
_uploads = sa.Table(
    "uploads",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("token", sa.String(8), sa.ForeignKey("tokens.id"), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("ended", sa.String(40), nullable=False),
)
_submissions = sa.Table(
    "submissions",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("token", sa.String(8), sa.ForeignKey("tokens.id"), nullable=False),
    sa.Column("submitter", sa.String(80), nullable=False, index=True),
    sa.Column("contact", sa.String(200), nullable=False),
    sa.Column("state", sa.String(16), nullable=False, index=True),
    sa.Column("calls_digest", sa.String(64), nullable=False, index=True),
    sa.Column("draw", sa.String(64), nullable=False),
    sa.Column("whole", sa.Boolean, nullable=False),
    sa.Column("starts", sa.Integer, nullable=False),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("row", sa.Text, nullable=False),
)
_replays = sa.Table(
    "replays",
    _metadata,
    sa.Column("submission", sa.String(32), sa.ForeignKey("submissions.id"), primary_key=True),
    sa.Column("key", sa.String(32), primary_key=True),
    sa.Column("agreed", sa.Boolean, nullable=False),
    sa.Column("replayed", sa.Text, nullable=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token, without what makes it one."""

    id: str
    submitter: str
    created_at: str
    revoked_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One submission as it is kept."""

    number: int
    id: str
    token: str
    submitter: str
    contact: str
    state: State
    calls_digest: str
    draw: str
    """Random, made after the upload: it decides which trials are replayed."""
    whole: bool
    """Whether all of them are."""
    starts: int
    """How often its replays were begun without one that ended."""
    terms: Terms
    row: BoardRow
    """As on the day of the upload: ranks, states and replays are filled in by `ranking`."""


class Store:
    """An open database."""

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            url: `sqlite:///FILE`, `postgresql://…`, or a file's path.
            clock: seconds since 1970, by which uploads are limited.

        Raises:
            ConfigError: no such database, or one of another version.
        """
        self._clock = clock
        self._engine = _engine(url)
        try:
            self._create()
        except exc.SQLAlchemyError as error:
            raise ConfigError(f"the database cannot be used: {_words(error)}; check --db") from error

    def close(self) -> None:
        """Idempotent."""
        self._engine.dispose()

    def _create(self) -> None:
        try:
            found = self._version()
        except (exc.IntegrityError, exc.ProgrammingError, exc.OperationalError):
            found = self._version()  # another server made it at the same moment
        if found != SCHEMA_VERSION:
            raise ConfigError(f"the database has schema version {found} and this Metier has {SCHEMA_VERSION}")

    def _version(self) -> int | None:
        """Of the database, whose tables are made where they are not there."""
        with self._engine.begin() as connection:
            _metadata.create_all(connection)
            if connection.scalar(sa.select(sa.func.count()).select_from(_meta)) == 0:
                connection.execute(_meta.insert().values(schema_version=SCHEMA_VERSION))
            return connection.scalar(sa.select(_meta.c.schema_version))

    @contextmanager
    def _change(self) -> Generator[Connection, None, None]:
        """Raises StoreError."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except exc.SQLAlchemyError as error:
            raise StoreError(f"the leaderboard's database failed: {_words(error)}") from error

    @contextmanager
    def _look(self) -> Generator[Connection, None, None]:
        """Reads one state of everything, and keeps nobody from writing. Raises StoreError."""
        try:
            with self._engine.connect().execution_options(**{_LOOKS: True}) as connection, connection.begin():
                yield connection
        except exc.SQLAlchemyError as error:
            raise StoreError(f"the leaderboard's database failed: {_words(error)}") from error

    def add_token(self, submitter: str) -> NewToken:
        """A new token for a submitter, who may have several."""
        made = new_token()
        with self._change() as connection:
            connection.execute(
                _tokens.insert().values(id=made.id, digest=made.digest, submitter=submitter, created_at=now())
            )
        return made

    def tokens(self) -> list[Token]:
        """All, the revoked ones too."""
        with self._look() as connection:
            rows = connection.execute(sa.select(_tokens).order_by(_tokens.c.number)).mappings().all()
        return [
            Token(id=row["id"], submitter=row["submitter"], created_at=row["created_at"], revoked_at=row["revoked_at"])
            for row in rows
        ]

    def revoke(self, token_id: str) -> None:
        """From now on the token opens nothing. Raises ConfigError: there is none."""
        with self._change() as connection:
            known = connection.scalar(sa.select(sa.func.count()).where(_tokens.c.id == token_id))
            if not known:
                raise ConfigError(f"no token {token_id!r}; `metier leaderboard token ls` lists them")
            connection.execute(
                _tokens.update()
                .where(_tokens.c.id == token_id, _tokens.c.revoked_at.is_(None))
                .values(revoked_at=now())
            )

    def authenticate(self, token: str) -> Token:
        """Whose token it is. Raises Refusal."""
        wrong = Refusal(Reason.TOKEN_WRONG, "the token is unknown or revoked: ask the maintainer for another")
        token_id = id_of(token)
        if token_id is None:
            raise wrong
        with self._look() as connection:
            row = connection.execute(sa.select(_tokens).where(_tokens.c.id == token_id)).mappings().one_or_none()
        if row is None or not same(row["digest"], token) or row["revoked_at"] is not None:
            raise wrong
        return Token(id=row["id"], submitter=row["submitter"], created_at=row["created_at"], revoked_at=None)

    def begin_upload(self, token: Token, most_per_hour: int) -> int:
        """Count an upload; gives its number.

        Raises:
            Refusal: the token has had as many within an hour.
        """
        with self._change() as connection:
            # one at a time, also where two servers ask: SQLite locks the file, PostgreSQL this row
            connection.execute(sa.select(_tokens.c.id).where(_tokens.c.id == token.id).with_for_update())
            at = self._clock()
            own = _uploads.c.token == token.id
            # uploads of the future are those from before the clock was set back: they must not last for years
            recent = sa.and_(own, _uploads.c.at > at - HOUR_S, _uploads.c.at < at + _APART_S)
            num, first = connection.execute(sa.select(sa.func.count(), sa.func.min(_uploads.c.at)).where(recent)).one()
            if num >= most_per_hour:
                raise Refusal(
                    Reason.RATE_LIMITED,
                    f"{num} uploads with this token within an hour, which is the most: wait",
                    retry_after_s=max(1, round(first + HOUR_S - at)),
                )
            made = connection.execute(_uploads.insert().values(token=token.id, at=at, ended="begun"))
            return made.inserted_primary_key[0] if made.inserted_primary_key else 0

    def end_upload(self, number: int, how: str) -> None:
        """How it ended: a reason, or the submission's id."""
        with self._change() as connection:
            connection.execute(_uploads.update().where(_uploads.c.number == number).values(ended=how))

    def find(self, submission: str) -> Submission | None:
        """By its id."""
        with self._look() as connection:
            row = connection.execute(sa.select(_submissions).where(_submissions.c.id == submission)).mappings().first()
        return None if row is None else _submission(row)

    def submissions(self, state: State | None = None) -> list[Submission]:
        """In the order in which they came."""
        asked = sa.select(_submissions).order_by(_submissions.c.number)
        if state is not None:
            asked = asked.where(_submissions.c.state == state.value)
        with self._look() as connection:
            return [_submission(row) for row in connection.execute(asked).mappings()]

    def add(self, made: Submission) -> None:
        """Keep a new one; its number is the database's."""
        with self._change() as connection:
            connection.execute(
                _submissions.insert().values(
                    id=made.id,
                    token=made.token,
                    submitter=made.submitter,
                    contact=made.contact,
                    state=made.state.value,
                    calls_digest=made.calls_digest,
                    draw=made.draw,
                    whole=made.whole,
                    starts=0,
                    terms=made.terms.model_dump_json(),
                    row=made.row.model_dump_json(),
                )
            )

    def begin_replays(self, submission: str) -> int:
        """Count a beginning; gives how many there were without a replay that ended."""
        with self._change() as connection:
            own = _submissions.c.id == submission
            connection.execute(_submissions.update().where(own).values(starts=_submissions.c.starts + 1))
            return connection.scalar(sa.select(_submissions.c.starts).where(own)) or 0

    def add_replay(self, submission: str, replayed: Replayed) -> None:
        """Keep what a replay showed; a second time changes nothing."""
        with self._change() as connection:
            known = sa.and_(_replays.c.submission == submission, _replays.c.key == replayed.key)
            connection.execute(sa.select(_submissions.c.id).where(_submissions.c.id == submission).with_for_update())
            if connection.scalar(sa.select(sa.func.count()).select_from(_replays).where(known)):
                return
            connection.execute(
                _replays.insert().values(
                    submission=submission,
                    key=replayed.key,
                    agreed=replayed.agreed,
                    replayed=replayed.model_dump_json(),
                )
            )
            own = _submissions.c.id == submission
            changed: dict[str, Any] = {"starts": 0} if replayed.agreed else {"starts": 0, "whole": True}
            connection.execute(_submissions.update().where(own).values(**changed))

    def replays(self, submission: str) -> list[Replayed]:
        """Those that ended, by key."""
        asked = sa.select(_replays.c.replayed).where(_replays.c.submission == submission).order_by(_replays.c.key)
        with self._look() as connection:
            return [Replayed.model_validate_json(text) for text in connection.scalars(asked)]

    def settle(self, submission: str, state: State) -> None:
        """Its replays are done, or given up."""
        with self._change() as connection:
            connection.execute(_submissions.update().where(_submissions.c.id == submission).values(state=state.value))

    def queue_again(self, submission: str) -> None:
        """To be replayed from where it was. Raises ConfigError: it is not one that was given up."""
        with self._change() as connection:
            done = connection.execute(
                _submissions.update()
                .where(_submissions.c.id == submission, _submissions.c.state == State.UNVERIFIED.value)
                .values(state=State.QUEUED.value, starts=0)
            )
            if not done.rowcount:
                raise ConfigError(f"{submission} is no submission whose replays were given up")


def now() -> str:
    """This moment, UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def refuted_before(submissions: Sequence[Submission], one: Submission) -> int:
    """How many of a submitter's earlier submissions were refuted."""
    return sum(
        other.submitter == one.submitter and other.state is State.REFUTED and other.number < one.number
        for other in submissions
    )


def _submission(row: Any) -> Submission:
    return Submission(
        **{name: row[name] for name in ("number", "id", "token", "submitter", "contact", "calls_digest", "draw")},
        whole=bool(row["whole"]),
        starts=row["starts"],
        state=State(row["state"]),
        terms=Terms.model_validate_json(row["terms"]),
        row=BoardRow.model_validate_json(row["row"]),
    )


def _engine(url: str) -> Engine:
    if "://" not in url:
        url = f"sqlite:///{url}"
    if url.startswith(("postgres://", "postgresql://")):
        url = f"postgresql+psycopg://{url.partition('://')[2]}"
    try:
        made = sa.create_engine(url, pool_pre_ping=True)
    except (exc.SQLAlchemyError, ImportError) as error:
        raise ConfigError(f"--db: {_words(error)}; give sqlite:///FILE or postgresql://…") from error
    if made.dialect.name == "sqlite":
        event.listen(made, "connect", _sqlite_connected)
        event.listen(made, "begin", _sqlite_begins)
    return made


def _sqlite_begins(connection: Connection) -> None:
    """Who writes takes the lock at once: one who has read first could not have it any more."""
    looks = connection.get_execution_options().get(_LOOKS, False)
    connection.exec_driver_sql("BEGIN" if looks else "BEGIN IMMEDIATE")


def _sqlite_connected(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours
    for pragma in ("busy_timeout = 30000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _words(error: BaseException) -> str:
    """Without statements, parameters and passwords."""
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().split("\n")[0][:300]
