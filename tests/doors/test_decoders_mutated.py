"""Every decoder of what comes from outside: whatever is damaged, it is a value or an error of its kind (X7)."""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from intersession.gateway.admission.attempts import FailedAttempts
from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.protocol.connection import Connection
from intersession.gateway.protocol.effects import Close, Effect, Perform, Send, Welcome
from intersession.gateway.protocol.frames import BadFrame, read_request
from intersession.mcp.stdio import parsed
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.tools.list_page import Cursor, read_cursor, write_cursor
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.host import GatewayAuth
from intersession_actors.rules.config.read import read_config_file
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_events.basics.errors import CorruptEvent, InvalidKey, UnknownTopic
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import refer
from intersession_events.facts import TOPICS, Message, Provenance, decode
from intersession_events.log.envelope import FIRST, seal, unseal
from intersession_events.log.recorded import Draft
from intersession_events.log.storable import payload_of
from intersession_events.stores.sqlite.writer_lock import holder_of, lock_path
from intersession_events.transcripts.openclaw.reading.foreign_json import Unreadable, read_json5
from intersession_events.transcripts.openclaw.reading.lines import read_transcript
from intersession_events.transcripts.openclaw.reading.state import SourceFile
from support.doors.gateway_live import CONNECT, TOKEN
from support.fakes import ManualClock
from support.log_drafts import said
from support.mutations import mutations

LOG_ID = "00000000-0000-4000-8000-000000000001"
SLOW = 10
"""What costs this much is written in Python, and has a tenth of a million."""


class Decoder(NamedTuple):
    """What takes bytes from outside. Errors of `typed` are its way to say no; every other one is a fault."""

    take: Callable[[bytes], object]
    typed: tuple[type[Exception], ...]
    seeds: Sequence[bytes]
    costs: int = 1
    """How much slower it is than others: so many fewer bytes are tried on each push."""


def shown(value: Any) -> bytes:
    return json.dumps(value).encode()


ARGUMENTS = [
    shown({"sessionKey": "agent:main:main", "limit": 5, "includeTools": True, "asOf": 3, "before": "m1"}),
    shown(
        {
            "kinds": ["main"],
            "limit": 5,
            "activeMinutes": 3.5,
            "messageLimit": 2,
            "cursor": "eyJ9",
            "search": "x",
        }
    ),
    shown({"sessionKey": "main", "message": "hi", "timeoutSeconds": 0, "idempotencyKey": "k", "label": "x"}),
    shown(
        {
            "task": "do it",
            "agentId": "main",
            "runTimeoutSeconds": 5,
            "cleanup": "keep",
            "attachments": [
                {"name": "a.txt", "content": "aGk=", "encoding": "base64", "mimeType": "text/plain"}
            ],
        }
    ),
]


def arguments(data: bytes) -> None:
    """Read the arguments of each tool, as doors do that parse JSON more leniently than we."""
    try:
        given = json.loads(data.decode(errors="surrogateescape"))
    except (ValueError, RecursionError):
        return
    for tool in TOOLS.values():
        try:
            read_arguments(tool.arguments, given if isinstance(given, dict) else {"limit": given})
        except ToolRefused as refused:
            shown(refused.as_result())
            refused.error.encode()


REQUESTS = [
    shown({"type": "req", "id": "1", "method": "connect", "params": {**CONNECT, "auth": {"token": TOKEN}}}),
    shown({"type": "req", "id": "2", "method": "agent", "params": {"message": "hi", "idempotencyKey": "k"}}),
    shown({"type": "req", "id": "3", "method": "sessions.list", "params": {"limit": 5}}),
    shown(
        {"type": "req", "id": "4", "method": "tools.invoke", "params": {"name": "sessions_list", "args": {}}}
    ),
]
AUTH = GatewayAuth(token=TOKEN)
HELLO = {"type": "hello-ok"}


def connection() -> Connection:
    clock = ManualClock()
    made = Connection(
        nonce="n",
        address="10.0.0.1",
        credentials=Credentials(lambda: AUTH),
        attempts=FailedAttempts(clock.monotonic),
        now_ms=clock.now_ms,
        parse_key=SessionKey.parse,
    )
    made.opened()
    return made


def as_first_frame(data: bytes) -> None:
    _effects_are_sound(connection().received(data))


def as_later_frame(data: bytes) -> None:
    made = connection()
    (welcome,) = made.received(REQUESTS[0])
    assert isinstance(welcome, Welcome)
    made.welcomed(welcome.request_id, HELLO)
    _effects_are_sound(made.received(data))


def _effects_are_sound(effects: Sequence[Effect]) -> None:
    assert effects
    for effect in effects:
        match effect:
            case Send(text=text):
                text.encode()
            case Close(code=code, reason=reason):
                assert code in {1002, 1008, 1009}
                assert len(reason.encode()) <= 123
            case Perform() | Welcome():
                pass


SETTINGS = [
    b"{session: {scope: 'global', agentToAgent: {maxPingPongTurns: 3}}}",
    b'{"agents": {"list": [{"id": "main", "sandbox": {"mode": "all"}}], "defaults": {"model": "a/b"}}}',
    b"{gateway: {port: 1, auth: {token: '${HOME}', credentials: [{name: 'a', token: 'b', actAs: ['agent:*']}]}}}",
    b'{"tools": {"agentToAgent": {"enabled": true, "allow": ["*"]}, "sessions": {"visibility": "all"}}}',
]


class Files:
    """Decoders that want a file."""

    def __init__(self, folder: Path) -> None:
        self._config = folder / "config.json5"
        self._database = folder / "log.db"

    def config(self, data: bytes) -> None:
        self._config.write_bytes(data)
        try:
            load_config(self._config, variables={"HOME": "here"})
        except ConfigError as error:
            str(error).encode()
            raise

    def json5(self, data: bytes) -> None:
        self._config.write_bytes(data)
        read_config_file(self._config)

    def lock(self, data: bytes) -> None:
        Path(lock_path(str(self._database))).write_bytes(data)
        holder_of(str(self._database))


MESSAGE = Message(
    id="m",
    role="user",
    content="hello",
    timestamp=1,
    provenance=Provenance(
        kind="inter_session", source_session_key="agent:main:main", source_tool="sessions_send"
    ),
)


def row() -> bytes:
    draft = said("m")
    topic, payload = payload_of(draft)
    state, _ = seal(
        draft,
        topic,
        payload,
        log_id=LOG_ID,
        stream="session:a",
        version=1,
        epoch=1,
        prev=FIRST,
        salt=bytes(16),
    )
    return state


def stored_row(data: bytes) -> None:
    unseal(log_id=LOG_ID, position=1, stream="session:a", version=1, topic="message_recorded.1", state=data)


def stored_payload(data: bytes) -> None:
    """Decode it as each event in turn; what comes out can be stored again."""
    topic = _TOPICS[len(data) % len(_TOPICS)]
    event = decode(topic, data)
    payload_of(Draft(event=event, id="i", time=1))


_TOPICS = sorted(TOPICS)
LINES = [
    shown({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}),
    shown(
        {
            "type": "message",
            "id": "a",
            "parentId": "b",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "hi"},
                    {"type": "toolCall", "id": "c", "name": "x", "arguments": {"a": 1}},
                    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                    {"type": "thinking", "thinking": "hm"},
                ],
                "timestamp": 1,
                "usage": {"input": 1, "output": 2, "cost": {"total": 0.1}},
                "provenance": {"kind": "inter_session", "sourceSessionKey": "agent:main:main"},
            },
        }
    ),
    shown({"type": "custom", "customType": "x", "data": {"a": [1]}, "id": "d", "timestamp": 5}),
]


def transcript(data: bytes) -> None:
    """Read lines, of which the last is damaged; every line is in the log or said to be left out."""
    lines = ((1, LINES[0]), *enumerate(data.split(b"\n"), 2))
    read = read_transcript(SourceFile(path="a/s.jsonl", agent="main", stem="s", lines=lines))
    for line in read.lines:
        line.source.encode()
    for skipped in read.skipped:
        str(skipped).encode()


def cursor(data: bytes) -> None:
    """Take a text that is a damaged cursor, and one that wraps damaged bytes well."""
    try:
        read_cursor(data.decode(errors="surrogateescape"), "f", 9)
    except ToolRefused:
        read_cursor(base64.urlsafe_b64encode(data).decode(), "f", 9)


CURSOR = Cursor(position=3, reference_ms=5, updated_at=1, key="agent:main:main", filters="f")


def mcp_line(data: bytes) -> None:
    parsed(data).model_dump_json().encode()


def key(data: bytes) -> None:
    refer(
        data.decode(errors="surrogateescape"),
        requester_agent=None,
        default_agent="main",
        main_key="main",
        scope="per-sender",
    )


DECODERS: dict[str, Callable[[Path], Decoder]] = {
    "tool arguments": lambda _: Decoder(arguments, (), ARGUMENTS),
    "WebSocket request": lambda _: Decoder(read_request, (BadFrame,), REQUESTS),
    "first frame": lambda _: Decoder(as_first_frame, (), REQUESTS, 3),
    "later frame": lambda _: Decoder(as_later_frame, (), REQUESTS, 3),
    "configuration": lambda path: Decoder(Files(path).config, (ConfigError,), SETTINGS, 20),
    "JSON5": lambda path: Decoder(
        Files(path).json5,
        (ConfigError,),
        [b"{a: 'x', /* c */ b: [1, +.5e3, 0xFF], // d\n}", b"{'a': '\\\n'}"],
        10,
    ),
    "lock": lambda path: Decoder(
        Files(path).lock, (), [shown({"pid": 1, "host": "h", "since": 1, "gateway": "http://127.0.0.1:1"})], 3
    ),
    "stored row": lambda _: Decoder(stored_row, (CorruptEvent, UnknownTopic), [row()]),
    "stored payload": lambda _: Decoder(
        stored_payload, (CorruptEvent, UnknownTopic), [payload_of(said("m"))[1], *LINES, *ARGUMENTS]
    ),
    "transcript": lambda _: Decoder(transcript, (), LINES, 2),
    "state file": lambda _: Decoder(read_json5, (Unreadable,), [b"{a: 'x', b: [1, +.5]}", *ARGUMENTS], 10),
    "cursor": lambda _: Decoder(
        cursor, (ToolRefused,), [write_cursor(CURSOR).encode(), base64.b64decode(write_cursor(CURSOR))]
    ),
    "MCP message": lambda _: Decoder(
        mcp_line,
        (),
        [
            shown({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sessions_list"}}),
            shown({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            shown({"jsonrpc": "2.0", "id": "x", "result": {"a": 1}}),
            shown({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}}),
        ],
    ),
    "session key": lambda _: Decoder(
        key, (InvalidKey,), [b"agent:main:telegram:group:-100:topic:7", b"main", b"agent:ops:cron:job:run:1"]
    ),
}


def damage(name: str, folder: Path, number: int) -> None:
    """Give a decoder so many damaged inputs; the first that it does not answer as it should is the failure."""
    decoder = DECODERS[name](folder)
    for seed in decoder.seeds:
        decoder.take(seed) if name not in {"cursor", "stored payload"} else None
    for data in mutations(decoder.seeds, number):
        try:
            decoder.take(data)
        except decoder.typed:
            pass
        except BaseException as error:
            raise AssertionError(f"{name}: {type(error).__name__} for {data[:2000]!r}") from error


@pytest.mark.clause("X7")
@pytest.mark.parametrize("name", DECODERS)
def test_damaged_input_is_a_value_or_an_error_of_its_kind(name: str, tmp_path: Path) -> None:
    damage(name, tmp_path, 3000 // DECODERS[name](tmp_path).costs)


@pytest.mark.nightly
@pytest.mark.clause("X7")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", DECODERS)
def test_so_is_a_million_times_damaged_input(name: str, tmp_path: Path) -> None:
    damage(name, tmp_path, 100_000 if DECODERS[name](tmp_path).costs >= SLOW else 1_000_000)
