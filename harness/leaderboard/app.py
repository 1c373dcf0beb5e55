"""The server's HTTP surface. Reading needs no token; an upload does, and is judged before anything of it is kept.

    POST api/v1/submissions                a results folder, as `archive` packs it; 202 with a receipt
    GET  api/v1/submissions/<id>           its row, as it is now
    GET  api/v1/server                     boards, limits, the hub secret's fingerprint
    GET  leaderboard.json                  the board
    GET  submissions/<id>/<file>           the published results folder, and the row as submission.json
    GET  healthz                           200 while the database answers
    GET  anything else                     the page, where it is installed

Tokens come in a header, which is written nowhere. Every refusal is a `Problem` with a reason of a closed set.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import metier
from metier.envs.core import ConfigError

from ..evaluate.faults import ResultsError
from ..evaluate.files import MIB, read
from ..evaluate.folder import EPISODES
from ..grading import secret_fingerprint
from .admission import Admission
from .archive import CONTENT_TYPE, EPISODE_PATTERN, Intake, no_room, too_large
from .boards import Boards
from .contract import ID_PATTERN, Board, BoardRow, Limits, Problem, Receipt, ServerInfo, written
from .faults import Reason, Refusal, StoreError
from .folders import Folders, Incoming
from .guard import Guard, address_of
from .limiter import Limiter
from .page import BOARD, Page
from .ranking import board, current_row
from .sample import SampleRule
from .store import Store, Token

_BOARD_S = 1.0
"""How old a board may be that is shown."""
_MOST_FILE = 512 * MIB
_PIECE = MIB
_PUBLIC = re.compile(rf"manifest\.json|results\.jsonl|report\.json|report\.md|{EPISODES}/{EPISODE_PATTERN}")
_BEARER = re.compile(r"(?i:bearer) +(\S{1,200}) *")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a server treats uploads."""

    limits: Limits
    rule: SampleRule
    uploads_at_once: int = 4
    idle_s: float = 20.0
    """Without a byte."""
    least_bytes_per_s: int = 64 << 10
    """Over a whole upload, beyond its first minute."""
    spare_bytes: int = 256 * MIB
    """Of the disk, which no upload may use."""


class Service:
    """What all requests share."""

    def __init__(self, store: Store, folders: Folders, boards: Boards, manner: Manner, wake: asyncio.Event) -> None:
        """`wake` is set when replays have something to do."""
        self.store = store
        self.folders = folders
        self.boards = boards
        self.manner = manner
        self._wake = wake
        self._admission = Admission(store, folders, boards, manner.rule)
        self._uploading: set[str] = set()
        self._checking = asyncio.Lock()
        self._wrong = Limiter(rate_per_s=1 / 6, burst=20)
        self._board: tuple[float, Board] | None = None
        self._making = asyncio.Lock()
        self.info = ServerInfo(
            metier=metier.__version__,
            secret_fingerprint=secret_fingerprint(),
            boards=tuple(one.offered for one in boards),
            limits=manner.limits,
        )

    async def board(self) -> Board:
        """As it was at most a second ago."""
        async with self._making:
            if self._board is None or time.monotonic() - self._board[0] > _BOARD_S:
                made = await asyncio.to_thread(board, self.store, self.boards)
                self._board = time.monotonic(), made
            return self._board[1]

    def row(self, submission: str) -> BoardRow:
        """A submission's own row, without its rank. Raises Refusal."""
        submissions = self.store.submissions()
        one = next((one for one in submissions if one.id == submission), None)
        if one is None:
            raise Refusal(Reason.NOT_FOUND, f"there is no submission {submission}")
        return current_row(one, submissions, self.store)

    async def upload(self, request: Request) -> Receipt:
        """Take a submission in. Raises Refusal, StoreError."""
        token = await self._token(request)
        self._check_head(request)
        if token.id in self._uploading or len(self._uploading) >= self.manner.uploads_at_once:
            raise Refusal(Reason.BUSY, "an upload with this token, or too many others, are under way", retry_after_s=30)
        self._uploading.add(token.id)
        try:
            number = await asyncio.to_thread(self.store.begin_upload, token, self.manner.limits.uploads_per_hour)
            try:
                receipt = await self._received(request, token)
            except Refusal as refusal:
                await asyncio.to_thread(self.store.end_upload, number, refusal.reason.value)
                raise
            await asyncio.to_thread(self.store.end_upload, number, receipt.id)
        finally:
            self._uploading.discard(token.id)
        self._wake.set()
        return receipt

    async def _token(self, request: Request) -> Token:
        address = address_of(request.scope)
        if (wait := self._wrong.wait_s(address, take=0)) > 0:
            raise Refusal(
                Reason.RATE_LIMITED, "too many wrong tokens from this address: wait", retry_after_s=round(wait) + 1
            )
        said = _BEARER.fullmatch(request.headers.get("authorization", ""))
        try:
            if said is None:
                raise Refusal(
                    Reason.TOKEN_MISSING,
                    "an upload needs a header `Authorization: Bearer …` with the submitter's token",
                )
            return await asyncio.to_thread(self.store.authenticate, said[1])
        except Refusal:
            self._wrong.wait_s(address)
            raise

    def _check_head(self, request: Request) -> None:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != CONTENT_TYPE or request.headers.get("content-encoding", "identity") != "identity":
            raise Refusal(Reason.WRONG_TYPE, f"the body is an uncompressed {CONTENT_TYPE}, and not {kind[:80]!r}")
        length = request.headers.get("content-length")
        size = int(length) if length is not None and length.isascii() and length.isdigit() else 0
        if size > self.manner.limits.upload_bytes:
            raise too_large(self.manner.limits)
        # what arrives is kept twice: as it came, and as it is published
        if self.folders.free_bytes() < self.manner.spare_bytes + 2 * (size or self.manner.limits.upload_bytes):
            raise Refusal(Reason.NO_ROOM, "the server's disk has no room for it: try later", retry_after_s=600)

    async def _received(self, request: Request, token: Token) -> Receipt:
        async with contextlib.AsyncExitStack() as stack:
            try:
                incoming = await asyncio.to_thread(stack.enter_context, self.folders.incoming())
                intake = Intake(incoming.arrived, self.manner.limits)
                stack.callback(intake.abandon)
            except OSError as error:
                raise no_room(error) from error
            async for piece in self._pieces(request):
                await asyncio.to_thread(intake.feed, piece)
            intake.close()
            return await self._checked(incoming, token)

    async def _checked(self, incoming: Incoming, token: Token) -> Receipt:
        """One at a time: what is unpacked may be large."""
        async with self._checking:
            return await asyncio.to_thread(self._admission.admit, incoming, token)

    async def _pieces(self, request: Request) -> AsyncIterator[bytes]:
        """The body, in pieces of a size that is worth a thread. Raises Refusal."""
        began, size, held = time.monotonic(), 0, bytearray()
        stream = request.stream().__aiter__()
        while True:
            try:
                async with asyncio.timeout(self.manner.idle_s):
                    data = await anext(stream)
            except StopAsyncIteration:
                break
            except TimeoutError:
                raise Refusal(Reason.TOO_SLOW, f"no byte came for {self.manner.idle_s:g} s: send it again") from None
            except ClientDisconnect:
                raise Refusal(Reason.CUT_OFF, "the connection was closed before the body's end") from None
            size += len(data)
            if size < (time.monotonic() - began - 60) * self.manner.least_bytes_per_s:
                raise Refusal(Reason.TOO_SLOW, f"{size} bytes in {time.monotonic() - began:.0f} s are too few")
            if size > self.manner.limits.upload_bytes:
                raise too_large(self.manner.limits)
            held += data
            if len(held) >= _PIECE:
                yield bytes(held)
                held.clear()
        if held:
            yield bytes(held)

    def file(self, submission: str, name: str) -> bytes:
        """A published file. Raises Refusal."""
        if re.fullmatch(ID_PATTERN, submission) and _PUBLIC.fullmatch(name):
            with contextlib.suppress(FileNotFoundError, ResultsError):
                return read(self.folders.public(submission) / name, _MOST_FILE)
        raise Refusal(Reason.NOT_FOUND, "there is no such file")


_Id = Annotated[str, Path(pattern=ID_PATTERN, description="As the receipt of the upload has it.")]
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "The archive is none, is cut off, or holds what no submission has.",
        401: "No token, or an unknown or revoked one.",
        408: "The body did not come in time.",
        409: "Another submitter has sent the same results.",
        413: "Too many bytes or files; nothing was stored.",
        415: "No tar.",
        422: "The content does not hold: see `reason`.",
        429: "Too many uploads or requests; see the header Retry-After.",
        503: "The server takes no more at the moment.",
        507: "The server's disk is full; nothing was stored.",
    }.items()
}
_BODY = {
    "requestBody": {
        "required": True,
        "description": "A plain POSIX tar of about.json, manifest.json, results.jsonl and episodes/*.json.gz.",
        "content": {CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


def make_app(service: Service) -> Guard:
    """The application."""
    app = FastAPI(
        title="Metier leaderboard",
        version=metier.__version__,
        summary="Agents on professional sandbox environments, verified by replay.",
        description=(
            "Submissions are results folders of `metier eval` on the held-out split of a suite. The server checks that "
            "they agree with themselves and with its environments, replays a sample of the recorded calls in fresh "
            "sandboxes and grades these with its own hub secret. Only rows of one group are ranked against each other."
        ),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        redirect_slashes=False,
    )
    _add_handlers(app)

    @app.post(
        "/api/v1/submissions",
        status_code=HTTPStatus.ACCEPTED,
        responses=_PROBLEMS,
        openapi_extra=_BODY,
        summary="Send a results folder",
    )
    async def submit(request: Request) -> Receipt:
        """Needs `Authorization: Bearer TOKEN`. The same results again give the same receipt, with `new` false."""
        return await service.upload(request)

    @app.get("/api/v1/submissions/{submission}", responses={404: {"model": Problem}}, summary="One row")
    def one_row(submission: _Id) -> BoardRow:
        """A submission as it is now; its rank is told by the board."""
        return service.row(submission)

    @app.get("/api/v1/server", summary="Boards and limits")
    async def server() -> ServerInfo:
        """What an upload must consist of, and how large it may be."""
        return service.info

    @app.get("/leaderboard.json", summary="The board", response_model=Board)
    async def leaderboard() -> Response:
        """All groups with their rows: the same bytes as a static export has."""
        return Response((await service.board()).written(), media_type="application/json")

    @app.get("/submissions/{submission}/submission.json", summary="One row with its rank", response_model=BoardRow)
    async def ranked_row(submission: _Id) -> Response:
        """As the board has it: the same bytes as a static export has."""
        for group in (await service.board()).groups:
            for row in group.rows:
                if row.id == submission:
                    return Response(written(row), media_type="application/json")
        raise Refusal(Reason.NOT_FOUND, f"there is no submission {submission}")

    @app.get("/submissions/{submission}/{name:path}", response_class=Response, summary="A published file")
    def file(submission: str, name: str) -> Response:
        """Of the results folder, without secrets: from these files anybody may compute the figures again."""
        return Response(service.file(submission, name), media_type=_media(name))

    @app.get("/healthz", summary="Alive")
    def healthz() -> dict[str, bool]:
        """Whether the database answers."""
        service.store.tokens()
        return {"ok": True}

    page = Page(service.folders)

    @app.get("/{address:path}", include_in_schema=False)
    async def shown(address: str) -> Response:
        if address == BOARD:
            return Response((await service.board()).written(), media_type="application/json")
        answer = await asyncio.to_thread(page.answer, address)
        return Response(answer.body, answer.status, media_type=answer.media)

    return Guard(app)


def _media(name: str) -> str:
    """Of a published file; a transcript never is a page."""
    if name.endswith(".gz"):
        return "application/gzip"
    return "application/json" if name.endswith((".json", ".jsonl")) else "text/plain; charset=utf-8"


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
        return problem(error.status, error.reason, error.message, headers)

    @app.exception_handler(StoreError)
    async def failed(_: Request, error: StoreError) -> JSONResponse:
        return problem(503, Reason.BUSY, str(error), {"Retry-After": "60"})

    @app.exception_handler(ConfigError)
    async def wrong(_: Request, error: ConfigError) -> JSONResponse:
        return problem(422, Reason.BAD_REQUEST, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return problem(422, Reason.BAD_REQUEST, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:500])

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> JSONResponse:
        reason = Reason.NOT_FOUND if error.status_code == HTTPStatus.NOT_FOUND else Reason.BAD_REQUEST
        return problem(error.status_code, reason, str(error.detail), dict(error.headers or {}))


def problem(status: int, reason: Reason, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """A refusal as it is answered."""
    return JSONResponse(Problem(reason=reason.value, message=message).model_dump(), status, headers)
