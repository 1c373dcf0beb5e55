"""An upload from its first byte to its place on the board: one path, whoever serves it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from metier.envs.core import MetierError

from ..evaluate import manifest
from ..evaluate.files import packed, sync_folder
from ..evaluate.folder import EPISODES, ROWS
from ..evaluate.report import as_markdown
from ..evaluate.row import EpisodeFile, Row
from ..result import EpisodeResult
from .archive import no_room
from .boards import Boards
from .checks import Checked, check
from .contract import Receipt, State
from .faults import Reason, Refusal
from .folders import Folders, Incoming
from .ranking import row_of, terms_of
from .sample import SampleRule
from .scrub import scrubbed
from .store import Store, Submission, Token


class Admission:
    """Takes in what arrived: checks it, publishes it without secrets, and queues its replays."""

    def __init__(self, store: Store, folders: Folders, boards: Boards, rule: SampleRule) -> None:
        self._store = store
        self._folders = folders
        self._boards = boards
        self._rule = rule

    def admit(self, incoming: Incoming, token: Token) -> Receipt:
        """What becomes of an archive that was read to its end. Blocks.

        Raises:
            Refusal: it does not hold what it must, or the disk is full.
            StoreError: the database fails.
        """
        try:
            publishing = _Publishing(incoming.public)
            checked = check(incoming.arrived, self._boards, publishing.episode)
            num_secrets = publishing.end(checked)
            with self._folders.changing():
                return self._place(incoming, checked, token, num_secrets)
        except Refusal:
            raise
        except OSError as error:
            if isinstance(error, MetierError):
                raise
            raise no_room(error) from error

    def _place(self, incoming: Incoming, checked: Checked, token: Token, num_secrets: int) -> Receipt:
        known = self._store.find(checked.id)
        if known is not None:
            if known.submitter != token.submitter:
                raise Refusal(Reason.TAKEN, "another submitter has sent these very results")
            return _receipt(known, new=False)
        made = Submission(
            number=0,
            id=checked.id,
            token=token.id,
            submitter=token.submitter,
            contact=checked.about.contact,
            state=State.QUEUED,
            calls_digest=checked.calls_digest,
            draw=secrets.token_hex(32),
            whole=self._refuted(token.submitter),
            starts=0,
            terms=terms_of(checked),
            row=row_of(checked, token.submitter, num_secrets, self._rule),
        )
        self._folders.admit(incoming, checked.id)
        try:
            self._store.add(made)
        except BaseException:
            self._folders.forget(checked.id)
            raise
        return _receipt(made, new=True)

    def _refuted(self, submitter: str) -> bool:
        """Whether a submitter was refuted before: all that they send from then on is replayed whole."""
        return any(one.submitter == submitter for one in self._store.submissions(State.REFUTED))


class _Publishing:
    """Writes a results folder without secrets, an episode at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[tuple[str, int], Row] = {}
        self._num_secrets = 0
        (folder / EPISODES).mkdir()

    def episode(self, row: Row, _episode: EpisodeResult, said: dict[str, Any]) -> None:
        """One with its row; its file has another digest where something was removed."""
        value, count = scrubbed(said)
        data = packed(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
        self._write(f"{EPISODES}/{row.key}-{row.round}.json.gz", data)
        self._num_secrets += count
        file = EpisodeFile(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        self._rows[row.key, row.round] = row.model_copy(update={"file": file})

    def end(self, checked: Checked) -> int:
        """The other files; gives how many secrets were removed from all of them."""
        lines: list[bytes] = []
        for row in checked.rows:
            made = self._rows.get((row.key, row.round), row)
            value, count = scrubbed(made.model_dump(mode="json"))
            lines.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            self._num_secrets += 0 if row.file is not None else count  # else counted with its episode
        self._write(ROWS, b"".join(lines))
        # where trials ran is nobody's business
        sessions = tuple(one.model_copy(update={"host": ""}) for one in checked.manifest.sessions)
        self._write(manifest.NAME, checked.manifest.model_copy(update={"sessions": sessions}).written())
        self._write("report.json", checked.report.written())
        self._write("report.md", as_markdown(checked.report).encode())
        sync_folder(self._folder / EPISODES)
        sync_folder(self._folder)
        return self._num_secrets

    def _write(self, name: str, data: bytes) -> None:
        with (self._folder / name).open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _receipt(made: Submission, *, new: bool) -> Receipt:
    return Receipt(
        id=made.id,
        state=made.state,
        new=new,
        secrets_removed=made.row.secrets_removed,
        not_ranked=made.row.not_ranked,
    )
