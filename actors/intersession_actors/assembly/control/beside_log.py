"""The control socket: a command of the same user asks the process that writes a log, if that has no gateway.

It lies beside the log, as `<store>.control`, for its owner alone. Each side looks who the other is before it says anything. A
connection is one request and its answer, a line of JSON each.
"""

import hashlib
import logging
import os
import select
import socket
import stat
import struct
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec

from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode, ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.host.own_threads import off_loop
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.closing import Closing
from intersession_events.basics.errors import IntersessionError
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_object
from intersession_events.facts import ready
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY

logger = logging.getLogger("intersession.control")

PATIENCE_S: Final = 10.0
"""How long a request may take to arrive."""
MOST_BYTES: Final = 64 << 20
_LONGEST_NAME: Final = 80
"""In bytes. A socket's address has room for some hundred, of which the way to its folder takes some."""
_CREDENTIALS: Final = "3i"

Perform = Callable[[str, JsonMapping], object]


class SessionTools(Protocol):
    """The tools of a session, or of the operator."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return their names."""
        ...

    def call(self, name: str, arguments: JsonMapping | None = None) -> Mapping[str, JsonValue]:
        """Call one and return its answer; a refusal is an answer as well."""
        ...


ToolsOf = Callable[[str | None], SessionTools]
"""Returns the tools as a session has them; None is the operator."""


@ready
class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A method and its parameters; or a tool, its arguments and its caller, else the operator; or whose tools to list."""

    method: str | None = None
    params: JsonObject = {}
    tools_of: str | None = None
    tool: str | None = None
    args: JsonObject = {}
    session_key: str | None = None


def control_path(place: str) -> Path:
    """Return the path of a log's control socket, from the path beside which its files are kept."""
    store = Path(place)
    name = f"{store.name}.control"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f"{hashlib.sha256(os.fsencode(store.name)).hexdigest()[:32]}.control"
    return store.with_name(name)


def listening(
    log: Log, *, perform: Perform, tools: ToolsOf, threads: Threads, is_wanted: bool
) -> "ControlSocket | None":
    """Return the control socket of a log that this process writes; None if it is impossible or disabled."""
    if not is_wanted or threads.by_hand or log.place == MEMORY or log.forked is not None or not is_possible():
        return None
    try:
        return ControlSocket(log.place, perform=perform, tools=tools, threads=threads)
    except OSError as error:
        logger.warning("commands can't reach this process: %s: %s", control_path(log.place), error)
        return None


def is_possible() -> bool:
    """Whether this machine tells the user at the other end of a socket, and opens sockets by a descriptor of their folder."""
    return hasattr(socket, "SO_PEERCRED") and hasattr(os, "O_PATH")


class ControlSocket:
    """Answers at the control socket of a log whose lock this process has: an older socket of that name is dead."""

    def __init__(self, place: str, *, perform: Perform, tools: ToolsOf, threads: Threads) -> None:
        """Begin to listen.

        Raises:
            OSError: there can't be a socket; its name is another file's, for example.
        """
        self._perform, self._tools, self._threads = perform, tools, threads
        self.path = control_path(place)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Beside a log on a server there is no folder before somebody keeps a file there.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _address(self.path) as address:
                with suppress(FileNotFoundError):
                    if not stat.S_ISSOCK(self.path.lstat().st_mode):
                        raise FileExistsError(f"{self.path} is no socket")
                    self.path.unlink()
                self._listening.bind(address)
                self.path.chmod(0o600)
                self._inode = self.path.lstat().st_ino
            self._listening.listen()
        except OSError:
            self._listening.close()
            raise
        _open.add(self)
        threads.start(self._run, name="control")

    def stop(self) -> None:
        """Take no more requests, and delete the socket."""
        _open.discard(self)
        with suppress(OSError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def let_go(self) -> None:
        """Close this process's copy of the socket: in a forked child it belongs to the parent."""
        self._listening.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._threads.start(partial(self._serve, connection), name="control")

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE_S)
            if _user_of(connection) != os.geteuid():
                return
            answer = self._answer(_line(connection))
            connection.settimeout(None)
            connection.sendall(msgspec.json.encode(answer) + b"\n")

    def _answer(self, line: bytes) -> JsonObject:
        try:
            request = msgspec.json.decode(line, type=Request)
            if request.tool is not None:
                payload: object = self._tools(request.session_key).call(request.tool, request.args)
            elif request.tools_of is not None:
                payload = {"names": self._tools(request.tools_of).names}
            elif request.method is not None:
                payload = self._perform(request.method, request.params)
            else:
                raise invalid("method", "required, name one, or a tool")
        except ToolRefused as refused:
            return {"ok": False, "code": refused.code, "error": refused.error}
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            return {"ok": False, "code": "invalid_request", "error": f"this is no request: {error}"}
        except (IntersessionError, RuntimeError) as error:
            return {"ok": False, "code": "unavailable", "error": str(error)}
        return {"ok": True, "payload": payload}


class ControlClient(Closing):
    """Asks the process that writes a log on this machine, as its operator. A context manager, like a gateway's client.

    Raises:
        ToolRefused: nobody is there (`unavailable`), or another user is (`forbidden`).
        ConnectionError: whoever is there does not answer.
    """

    def __init__(self, place: str) -> None:
        self._path = control_path(place)
        try:
            self._look()
        except OSError as error:
            raise ConnectionError(
                f"the process at {self._path} did not answer ({error}): it is stopped, or hangs; look at its log lines"
            ) from None

    def call(
        self, method: str, params: JsonMapping | None = None, *, timeout: float | None = 60.0
    ) -> JsonObject:
        """Call a method and return its payload.

        Raises:
            ToolRefused: it was refused, or did not answer in time (`unavailable`).
        """
        return self._ask({"method": method, "params": dict(params or {})}, timeout)

    def call_tool(self, tool: str, arguments: JsonMapping, *, session_key: str | None = None) -> JsonObject:
        """Call a session tool, as a session or as the operator, and return its answer; a refusal is an answer as well."""
        return self._ask({"tool": tool, "args": dict(arguments), "session_key": session_key}, None)

    def tools(self, session_key: str) -> "ControlTools":
        """Return the tools of a session there.

        Raises:
            ToolRefused: nobody is there any more (`unavailable`).
        """
        return ControlTools(
            self, session_key, tuple(self._ask({"tools_of": session_key}, PATIENCE_S)["names"])
        )

    def close(self) -> None:
        """Do nothing: each call has a connection of its own."""

    def _ask(self, request: JsonMapping, timeout: float | None) -> JsonObject:
        try:
            answer = self._exchanged(request, timeout)
        except OSError as error:
            raise ToolRefused("unavailable", f"{self._path} did not answer: {error}") from None
        if answer.get("ok") is not True:
            code = answer.get("code")
            known: RefusalCode = code if code in REFUSAL_CODES else "invalid_request"
            raise ToolRefused(known, str(answer.get("error", "refused")))
        payload: JsonObject = answer.get("payload") or {}
        return payload

    def _look(self) -> None:
        self._exchanged({}, PATIENCE_S)  # refused at once by whoever is at work

    def _exchanged(self, request: JsonMapping, timeout: float | None) -> JsonObject:
        """Put a request, and return its answer.

        Raises:
            ToolRefused: nobody is there, or another user.
            OSError: there is no answer in time, or none that is one.
        """
        with self._connected() as connection:
            connection.settimeout(timeout)
            connection.sendall(msgspec.json.encode(request) + b"\n")
            while timeout is None and not select.select([connection], [], [], PATIENCE_S)[0]:
                self._look()
            try:
                answer: object = msgspec.json.decode(_line(connection))
            except msgspec.MsgspecError as error:
                raise OSError(str(error)) from None
        if not is_object(answer):
            raise OSError("its answer is no object")
        return answer

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(PATIENCE_S)
            with _address(self._path) as address:
                connection.connect(address)
            user = _user_of(connection)
        except OSError as error:
            connection.close()
            raise ToolRefused("unavailable", f"{self._path} does not answer: {error.strerror}") from None
        if user != os.geteuid():
            connection.close()
            raise ToolRefused("forbidden", f"user {user} answers at {self._path}, and is told nothing")
        return connection


class ControlTools:
    """The tools of a session, called through the control socket of its log."""

    def __init__(self, client: ControlClient, session_key: str, names: tuple[str, ...]) -> None:
        self._client, self._session_key = client, session_key
        self.names = names

    async def acall(self, name: str, arguments: JsonMapping | None = None) -> JsonObject:
        """Call one and return its answer; a refusal is an answer as well."""
        return await off_loop(self._client.call_tool, name, arguments or {}, session_key=self._session_key)


@contextmanager
def _address(path: Path) -> Generator[str]:
    """Lend an address of a socket that is short enough, wherever its folder lies."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _user_of(connection: socket.socket) -> int:
    """Return the user of the process at the other end, as the kernel says."""
    size = struct.calcsize(_CREDENTIALS)
    _, user, _ = struct.unpack(
        _CREDENTIALS, connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    found: int = user
    return found


def _line(connection: socket.socket) -> bytes:
    """Return what comes up to the end of a line.

    Raises:
        OSError: it does not come in time, or is too long.
    """
    found = bytearray()
    while not found.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part or len(found) > MOST_BYTES:
            raise OSError("the connection ended before its line did" if not part else "the line is too long")
        found += part
    return bytes(found)


_open: Final[weakref.WeakSet[ControlSocket]] = weakref.WeakSet()


def _let_go_in_the_child() -> None:
    for each in list(_open):
        each.let_go()
    _open.clear()


os.register_at_fork(after_in_child=_let_go_in_the_child)
