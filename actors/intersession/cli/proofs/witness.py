"""`intersession witness`: cosigns the checkpoints of others' logs, so that none of them can show two histories (TLOG-5)."""

import fcntl
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from intersession.cli.shell.answer import Answer, UsageError, read_given
from intersession.cli.shell.terminal import Screen, safe
from intersession_events.basics.errors import BadCheckpoint, BadKey
from intersession_events.basics.machine import read_at_most, sync, wall_clock_ms
from intersession_events.facts import ready
from intersession_events.facts.reasons import counted
from intersession_events.proofs.notes import TreeNote, cosigned_note, read_note
from intersession_events.proofs.signatures import (
    NamedKey,
    PrivateKey,
    is_key_name,
    read_private,
)
from intersession_events.proofs.witnessing import CONFLICT, MOST_BODY_BYTES, OK, judged, known_logs

_MOST_FILE_BYTES: Final = 1 << 26
_MOST_CONNECTIONS: Final = 64
_CONNECTION_SECONDS: Final = 30.0
_MOST_EVIDENCE: Final = 1_000
_MOST_DIGITS: Final = 20
_MS: Final = 1000


class Witnessed:
    """What a witness cosigned last of each log, in a file that one process has at a time. Its methods may be called from any thread."""

    def __init__(
        self,
        path: Path,
        logs: Mapping[str, Sequence[NamedKey]],
        key: PrivateKey,
        name: str,
        *,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._tell = tell
        self._logs = logs
        self._key = key
        self.name = NamedKey(name, key.public, is_witness=True)
        self._turn = threading.Lock()
        # Two processes would each cosign a root of one size: the one that has the file is the witness.
        self._held = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._seen = _seen_in(path)
        except BaseException:
            os.close(self._held)
            raise

    def close(self) -> None:
        """Let another process have the file."""
        os.close(self._held)

    def add_checkpoint(self, body: bytes) -> tuple[int, str]:
        """Judge a request, keep what is to be cosigned, and only then cosign it: the status and the content of the answer.

        Raises:
            OSError: it can't be kept, and nothing was cosigned.
        """
        with self._turn:
            found = judged(body, self._logs, self._seen)
            if found.evidence is not None:
                self._keep_evidence(*found.evidence)
            if found.status != OK or found.note is None:
                return found.status, f"{found.said}\n"
            self._keep({**self._seen, found.note.origin: found.note})
            time = wall_clock_ms() // _MS
            return OK, cosigned_note(found.note.text, self._key, self.name.name, time=time).line

    def in_words(self) -> str:
        """Say for people what the witness has seen."""
        with self._turn:
            lines = [
                f"{origin}\n  {_seen_of(self._seen.get(origin))}\n{self._evidence_of(origin)}"
                for origin in self._logs
            ]
        return f"{self.name}\n\n" + "\n".join(lines)

    def _keep(self, seen: Mapping[str, TreeNote]) -> None:
        whole = {"format": _FORMAT, "logs": {origin: str(note) for origin, note in seen.items()}}
        _write(self._path, msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
        self._seen = seen

    def _keep_evidence(self, first: TreeNote, second: TreeNote) -> None:
        folder = Path(f"{self._path}.evidence")
        folder.mkdir(exist_ok=True)
        file = folder / f"{_short(first.origin)}-{first.size}.txt"
        if not file.exists() and len(os.listdir(folder)) < _MOST_EVIDENCE:  # noqa: PTH208 - as many as there are
            _write(file, f"{first}\n{second}".encode())
            self._tell(f"{first.origin} has signed two roots of {first.size} leaves: {file} has both notes")

    def _evidence_of(self, origin: str) -> str:
        found = sorted(Path(f"{self._path}.evidence").glob(f"{_short(origin)}-*.txt"))
        return "".join(f"  two roots of one size: {file.name}\n" for file in found)


_FORMAT: Final = "intersession witness 1"


def _short(origin: str) -> str:
    return sha256(origin.encode()).hexdigest()[:16]


def _seen_of(note: TreeNote | None) -> str:
    return "nothing yet" if note is None else f"{note.size} leaves, root {note.root.hex()}"


def _write(path: Path, content: bytes) -> None:
    """Put a file in the place of another, whole or not at all, so that it survives a power cut."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync(path.parent)


@ready
class _State(msgspec.Struct):
    format: str
    logs: dict[str, str]


def _seen_in(path: Path) -> Mapping[str, TreeNote]:
    """Return what a state file says; nothing where there is none yet.

    Raises:
        BadCheckpoint: it is something else. To begin anew is for its owner to decide: it would forget what was cosigned.
    """
    try:
        content = read_at_most(path, _MOST_FILE_BYTES)
    except FileNotFoundError:
        return {}
    try:
        state = msgspec.json.decode(content, type=_State)
        if state.format != _FORMAT:
            raise BadCheckpoint(f"its format is {state.format[:40]!r}")  # noqa: TRY301 - told like the rest
        return {origin: read_note(note.encode()) for origin, note in state.logs.items()}
    except (msgspec.MsgspecError, BadCheckpoint) as error:
        raise BadCheckpoint(
            f"{path} is no state of a witness ({error}); with another file it would cosign as if it had seen nothing"
        ) from error


class WitnessServer(socketserver.ThreadingTCPServer):
    """An HTTP server of bounded connections, each of bounded time."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], witnessed: Witnessed) -> None:
        self.witnessed = witnessed
        self._seats = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Take a connection, if a seat is free."""
        if not self._seats.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Serve a connection, and free its seat."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._seats.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "intersession"
    sys_version = ""
    timeout = 10

    @property
    def _witnessed(self) -> Witnessed:
        assert isinstance(self.server, WitnessServer)  # noqa: S101 - nobody else makes it
        return self.server.witnessed

    def setup(self) -> None:
        super().setup()
        # However slowly somebody goes on talking, the seat is free again then.
        self._watchdog = threading.Timer(_CONNECTION_SECONDS, self._cut)
        self._watchdog.daemon = True
        self._watchdog.start()

    def finish(self) -> None:
        self._watchdog.cancel()
        super().finish()

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(OK, self._witnessed.in_words())
        else:
            self._answer(404, "there are POST /add-checkpoint and GET /\n")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length") or ""
        if not (length.isascii() and length.isdecimal() and int(length[:_MOST_DIGITS]) <= MOST_BODY_BYTES):
            self.close_connection = True
            self._answer(413, f"a request says how long it is, at most {MOST_BODY_BYTES} bytes\n")
            return
        body = self.rfile.read(int(length))
        if self.path.split("?")[0] != "/add-checkpoint" or len(body) < int(length):
            self._answer(404, "there are POST /add-checkpoint and GET /\n")
            return
        try:
            self._answer(*self._witnessed.add_checkpoint(body))
        except OSError as error:
            self._answer(500, f"it can't be kept, and was not cosigned ({error.strerror})\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called there
        """Print nothing: requests are no business of this screen."""

    def _answer(self, status: int, content: str) -> None:
        body = content.encode()
        self.send_response(status)
        self.send_header(
            "Content-Type", "text/x.tlog.size" if status == CONFLICT else "text/plain; charset=utf-8"
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def witness(
    *,
    key: Path,
    logs: Path,
    state: Path,
    name: str | None = None,
    listen: Annotated[
        str, Parameter(help="Where to listen, HOST:PORT; port 0 is any free one.")
    ] = "127.0.0.1:18790",
) -> Answer:
    """Cosign the checkpoints of others' logs.

    A witness cosigns a checkpoint only if a key that it knows has signed it, and if it goes on from what the witness cosigned
    last of that log: so nobody can show two histories of one log to those that want the witness's signature. What it cosigns is
    on disk before it answers. It speaks plain HTTP (C2SP's tlog-witness: POST /add-checkpoint); GET / says what it has seen.
    It ends by SIGTERM or Ctrl-C.

    Args:
        key: The private key that cosigns, of this witness alone (`intersession keys new`).
        logs: A file with the logs that it knows: the vkey of each, a line each.
        state: Where it keeps what it cosigned last. With another file it would cosign as if it had seen nothing.
        name: The witness's name, such as a URL without its scheme. Default: intersession/witness/ and the id of its key.
    """
    try:
        secret = read_private(key)
        known = known_logs(read_given(logs, "--logs").decode(errors="replace"))
    except BadKey as error:
        raise UsageError(f"--logs or --key: {error}") from error
    called = name or f"intersession/witness/{secret.public.id}"
    if not is_key_name(called):
        raise UsageError(f"--name {called!r}: a name has 1 to 200 characters, and neither spaces nor +")
    host, _, port = listen.rpartition(":")
    if not (host and port.isascii() and port.isdecimal() and int(port) <= 65_535):  # noqa: PLR2004
        raise UsageError(f"--listen {listen!r}: give HOST:PORT, such as 127.0.0.1:18790")
    screen = Screen()
    with ExitStack() as opened:
        try:
            witnessed = Witnessed(state, known, secret, called, tell=screen.note)
            opened.callback(witnessed.close)
        except BlockingIOError:
            raise UsageError(
                f"--state: another witness has {state}; each needs its own, and its own key"
            ) from None
        except OSError as error:
            raise UsageError(f"--state: {state} can't be used ({error.strerror or error})") from error
        try:
            server = opened.enter_context(WitnessServer((host.strip("[]"), int(port)), witnessed))
        except OSError as error:
            raise UsageError(
                f"--listen: {listen} can't be listened on ({error.strerror or error})"
            ) from error
        screen.line(safe("witness: ", "bold green"), str(witnessed.name))
        address = server.server_address
        screen.line(f"  of {counted(len(known), 'log')}, at http://{host}:{address[1]}")
        screen.flush()
        with suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)
    return Answer({"ok": True}, lambda _: None)
