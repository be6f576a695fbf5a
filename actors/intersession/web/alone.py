"""The web debugger on a read-only log: an ASGI application for a browser on this machine, with no running system behind it.

The one-time word of its address admits a browser; it listens on the loopback alone, and changes nothing.
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias

import msgspec
from litestar.openapi.config import OpenAPIConfig
from litestar.types import Receive, Send

from intersession.web.access import ACCESS, Question
from intersession.web.answers import HANDLERS, Application
from intersession.web.cookies import HEADER, Halves, cookie_of, halves_in
from intersession.web.files import API, LOGIN, file_at
from intersession.web.happened import (
    ForksBeside,
    ForksFolder,
    StoreNews,
    erased_behind,
    told_erased,
    told_live,
)
from intersession.web.questions.table import routes
from intersession.web.rate import Rates
from intersession.web.stopping import ended_well
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.errors import IntersessionError, StoreUnavailable
from intersession_events.basics.machine import VERSION
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import ready
from intersession_events.log.log import Log

_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
Scope: TypeAlias = Any  # litestar's own types want what its router adds later
"""What ASGI says of a request or a connection."""

Deed: TypeAlias = Callable[[str, JsonMapping], JsonObject]
"""Calls a method by its name with its parameters; raises `ToolRefused`."""

FORKING: Final = ("forks.make", "forks.remove")
"""What can be done beside a log that is only read: neither touches it."""

_DO: Final = f"{API}do"
_STATUS: Final[dict[str, int]] = {"forbidden": 403, "unavailable": 503, "busy": 503, "internal": 500}
_LOOK_S: Final = 0.5
_STILL_HERE: Final = 30
_OUT: Final = (
    "Open the address that the command has printed. It lets in once: after that, go on in a tab that is in, "
    "or start the command again."
)
_MOST_BODY: Final = 4_096
_MOST_DEED: Final = 4 * 1024 * 1024


@ready
class _PageRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page has done."""

    method: Literal["forks.make", "forks.remove"]
    params: JsonObject = msgspec.field(default_factory=JsonObject)


class ReadOnly:
    """The viewer of a read-only log, as its operator: without receipts, which nobody could write."""

    def __init__(
        self,
        reader: Reader,
        rates: Rates,
        *,
        monotonic: Callable[[], float],
        ending: Callable[[], bool],
        can: Collection[str],
    ) -> None:
        self._reader = reader
        self._folder = ForksFolder(reader.log, monotonic=monotonic, every_s=_LOOK_S)
        self._rates = rates
        self._can = can
        self._ending = ending
        self.is_away = False
        """Whether the store could not be reached when it was last asked."""

    @property
    def about(self) -> JsonObject:
        """The viewer, and the actions it may do."""
        return {
            "who": "operator",
            "isOperator": True,
            "readOnly": True,
            "can": ["file", *self._can],
            "store": self._reader.log.path,
            "version": VERSION,
        }

    async def ask(
        self, name: str, given: JsonMapping, question: Question, *, view: str | None = None
    ) -> Mapping[str, object]:
        """Answer a question.

        Raises:
            ToolRefused: it was refused, or the log can't be read (`unavailable`).
        """
        del name, given, view
        try:
            answer = await off_loop(question, View(self._reader))
        except ToolRefused:
            raise
        except IntersessionError as error:
            self.is_away = isinstance(error, StoreUnavailable)
            raise ToolRefused("unavailable", f"the log can't be read there: {error}") from None
        self.is_away = False
        return answer

    async def cover(self) -> None:
        """Do nothing: another process writes the log, and takes its checkpoints."""

    async def live(self, after: int | None) -> AsyncIterator[bytes]:
        """Yield positions as they come, by polling: another process writes them."""
        log = self._reader.log
        at = await off_loop(log.head) if after is None else after
        forks, quiet = ForksBeside(self._folder), 0
        store = StoreNews(lambda: self.is_away)
        yield b"retry: 1000\n\n"
        while not self._ending():
            told: list[bytes] = []
            try:
                told, at = await off_loop(_news, log, at, forks)
                self.is_away = False
            except StoreUnavailable:
                self.is_away = True
            if (said := store.news()) is not None:
                told.append(said)
            for one in told:
                yield one
            quiet = 0 if told else quiet + 1
            if quiet and quiet % _STILL_HERE == 0:
                yield b": still here\n\n"
            await asyncio.sleep(_LOOK_S)

    def may_ask(self) -> float:
        """Count a request."""
        return self._rates.take("operator")


def _news(log: Log, at: int, forks: ForksBeside) -> tuple[list[bytes], int]:
    """Return what has happened behind a position, and up to where that is."""
    told: list[bytes] = []
    head = log.head()
    if head > at:
        told = [*([told_erased(head)] if erased_behind(log, at) else []), told_live(head)]
    if (beside := forks.news()) is not None:
        told.append(beside)
    return told, max(head, at)


@ready
class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a log that is still being made: `done` events of `total`, if that is known. `what` is being imported."""

    what: str
    done: int = 0
    total: int | None = None


@cache
def _questions() -> Any:  # litestar's own type of a scope is narrower than the server's
    return Application(
        route_handlers=[*routes()],
        exception_handlers={**HANDLERS},
        openapi_config=OpenAPIConfig(title="Intersession debugger", version=VERSION),
        logging_config=None,
        debug=False,
    )


class Alone:
    """The ASGI application. `word` follows the `#` in the address, and admits once.

    It serves a log from `opened` on. Until then its page can be had, and each question is told how far the log has come.
    """

    def __init__(self, *, monotonic: Callable[[], float], coming: Coming | None = None) -> None:
        self.word: str | None = secrets.token_urlsafe(24)
        self.ending = False
        self.coming = coming or Coming(what="the log")
        self._monotonic = monotonic
        self._halves = Halves.new()
        self._fork: Deed | None = None
        self._access: ReadOnly | None = None

    def opened(self, reader: Reader, fork: Deed | None = None) -> None:
        """Serve a log from now on. `fork` calls the methods of forks; without it, no forks are made here."""
        self._fork = fork
        can = FORKING if fork is not None else ()
        now = self._monotonic
        self._access = ReadOnly(reader, Rates(now), monotonic=now, ending=lambda: self.ending, can=can)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": "there is no socket here"})
            return
        headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        path, method = scope["path"], scope["method"]
        if not self._is_local(headers):
            await _answer(send, 421, {"error": "host or origin: not this debugger's"})
        elif path == LOGIN and method == "POST":
            await self._login(receive, send, headers)
        elif path == _DO and method == "POST":
            await self._do(receive, send, headers)
        elif method not in {"GET", "HEAD"}:
            await _answer(send, 405, {"error": "this log is only read"})
        elif (file := file_at(path, encodings=_one(headers, b"accept-encoding"))) is not None:
            await _send(send, file.status, file.headers, file.body)
        elif not path.startswith(API):
            await _answer(send, 404, {"error": "there is nothing here"})
        elif not self._is_in(headers):
            await _answer(send, 401, {"error": _OUT})
        else:
            await self._asked(scope, receive, send)

    def _is_in(self, headers: list[tuple[bytes, bytes]]) -> bool:
        halves = halves_in(headers)
        return halves is not None and hmac.compare_digest(halves.digest, self._halves.digest)

    def _is_local(self, headers: list[tuple[bytes, bytes]]) -> bool:
        host = _one(headers, b"host") or ""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        origin = _one(headers, b"origin")
        return name.lower() in _HOSTS and origin in {None, f"http://{host}"}

    async def _asked(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._access is not None:
            scope.setdefault("state", {})[ACCESS] = self._access
            await ended_well(_questions(), scope, receive, send)
            return
        coming = self.coming
        said = f"{coming.what} is being imported"
        error: JsonObject = {"type": "importing", "message": said, **msgspec.to_builtins(coming)}
        given = (("content-type", "application/json"), ("cache-control", "no-store"), ("retry-after", "1"))
        await _send(send, 503, given, msgspec.json.encode({"ok": False, "error": error}))

    async def _do(self, receive: Receive, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        """Make or delete a fork for the viewer: a file beside the log, which itself is only read."""
        body = await _body(receive, _MOST_DEED)
        if not self._is_in(headers):
            await _answer(send, 401, {"error": _OUT})
            return
        if self._fork is None:
            await _answer(send, 403, {"error": "no forks are made here"})
            return
        try:
            asked = msgspec.json.decode(body, type=_PageRequest)
            done = await off_loop(self._fork, asked.method, asked.params)
        except msgspec.DecodeError as error:
            await _answer(send, 400, {"error": f"the body is invalid: {error}"})
        except ToolRefused as refused:
            await _answer(send, _STATUS.get(refused.code, 400), {"error": refused.error})
        else:
            await _answer(send, 200, {"ok": True, "result": done})

    async def _login(self, receive: Receive, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        body = await _body(receive, _MOST_BODY)
        try:
            said = msgspec.json.decode(body, type=dict[str, str]).get("token", "")
        except msgspec.DecodeError:
            said = ""
        if _one(headers, HEADER) is None or not _same(said, self.word):
            await _answer(send, 401, {"error": "that address was used already, or is another one's"})
            return
        self.word = None
        given: JsonObject = {"ok": True, "page": self._halves.page}
        await _answer(send, 200, given, ("set-cookie", cookie_of(self._halves.cookie, secure=False)))


def _same(said: str | None, known: str | None) -> bool:
    """Compare in a time that tells nothing. Bytes, since `compare_digest` takes no other letters than ASCII as text."""
    if said is None or known is None:
        return False
    return hmac.compare_digest(said.encode(errors="surrogatepass"), known.encode())


async def _body(receive: Receive, most: int) -> bytes:
    body, more = b"", True
    while more and len(body) <= most:
        message: JsonMapping = await receive()
        body += message.get("body", b"")
        more = bool(message.get("more_body", False))
    return body


def _one(headers: list[tuple[bytes, bytes]], name: bytes) -> str | None:
    found = [value for key, value in headers if key.lower() == name]
    return found[0].decode("latin-1") if len(found) == 1 else None


async def _answer(send: Send, status: int, said: JsonObject, *headers: tuple[str, str]) -> None:
    if status != HTTPStatus.OK:
        said = {"ok": False, "error": {"type": "refused", "message": said["error"]}}
    given = (("content-type", "application/json"), ("cache-control", "no-store"), *headers)
    await _send(send, status, given, msgspec.json.encode(said))


async def _send(send: Send, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})
