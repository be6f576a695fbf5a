"""The parts of a configuration that concern the process: gateway, models, runs, transcripts, views, audit, logging."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.config.settings import (
    MAX_SECONDS,
    AtLeastOne,
    Count,
    NameText,
    Seconds,
    Settings,
    Text,
)
from intersession_actors.rules.gate.limits import REPLY
from intersession_events.basics.plain_json import JsonObject
from intersession_events.stores.keys.source import Encryption as Wanted
from intersession_events.stores.keys.source import Source

OperatorScope = Literal[
    "operator.read",
    "operator.write",
    "operator.approvals",
    "operator.fork",
    "operator.admin",
    "worker",
    "door",
    "copy",
]
"""What a credential may do at the gateway; `worker` is for workers, `copy` for copies of the log (COPY-3); neither includes anything else (WORK-7)."""
LogLevel = Literal["silent", "fatal", "error", "warn", "info", "debug", "trace"]


class Credential(Settings, frozen=True, kw_only=True):
    """A token of its own, the sessions it may act as (globs over keys, none by default) and its scopes (VIS-6).

    `of_agent`: an agent has it, and what it calls while a run of such a session is under way is of that run's chain (LOOP-5).
    `sees` are globs over the keys of further sessions, which the tools of those sessions see and send to. A worker with the
    scope `worker` may have the `agents` and `channels` that these globs match (WORK-7). The scope `door` is for a host that
    follows the log: it calls for the callers that it has admitted, within these sessions and scopes (DOOR-2).
    """

    name: NameText
    token: Text
    act_as: tuple[str, ...] = ()
    scopes: tuple[OperatorScope, ...] = ("operator.read",)
    of_agent: bool = False
    sees: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Credential(name={self.name!r}, act_as={self.act_as!r}, scopes={self.scopes!r})"


class GatewayAuth(Settings, frozen=True, kw_only=True):
    """The gateway's tokens. Without a token the gateway does not start; it can't be left open."""

    mode: Literal["token", "password"] = "token"
    token: Text | None = None
    password: Text | None = None
    credentials: tuple[Credential, ...] = ()

    @property
    def secret(self) -> str | None:
        """The shared secret of the operator, if there is one."""
        return self.token if self.mode == "token" else self.password

    def __repr__(self) -> str:
        return f"GatewayAuth(mode={self.mode!r}, credentials={self.credentials!r})"


class ControlUi(Settings, frozen=True, kw_only=True):
    """Which web pages may call the gateway, and whether a browser that opens its address gets a page (`enabled`)."""

    enabled: bool = True
    allowed_origins: tuple[str, ...] = ()


class GatewayTools(Settings, frozen=True, kw_only=True):
    """Tools that the gateway offers beyond its default (`allow`), or leaves out of it (`deny`)."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Gateway(Settings, frozen=True, kw_only=True):
    """The network door."""

    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 18_789
    bind: Literal["auto", "loopback", "lan", "custom"] = "loopback"
    custom_bind_host: Text | None = None
    advertise: Text | None = None
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    auth: GatewayAuth = GatewayAuth()
    control_ui: ControlUi = ControlUi()
    tools: GatewayTools = GatewayTools()
    metrics: Literal["off", "operator", "read"] = "operator"
    control_socket: bool = True
    writer_wait_seconds: Seconds = 30

    @property
    def host(self) -> str:
        """The address to listen on."""
        match self.bind:
            case "auto" | "loopback":
                return "127.0.0.1"
            case "lan":
                return "0.0.0.0"  # noqa: S104 - asked for by name
            case "custom":
                return self.custom_bind_host or "127.0.0.1"


class Models(Settings, frozen=True, kw_only=True):
    """The providers of models: `providers.<id>` has `baseUrl`, `apiKey`, `api` and `models: [{id, …}]`."""

    mode: Literal["merge", "replace"] = "merge"
    providers: dict[str, JsonObject] = msgspec.field(default_factory=dict[str, JsonObject])

    def __repr__(self) -> str:
        return f"Models(mode={self.mode!r}, providers={sorted(self.providers)!r})"


class ToolFilter(Settings, frozen=True, kw_only=True):
    """Which tools of an MCP server agents get: globs over the server's own names. `include`, if given, is the whole choice."""

    include: tuple[Text, ...] | None = None
    exclude: tuple[Text, ...] = ()


class McpServerSettings(Settings, frozen=True, kw_only=True):
    """An MCP server: a program (`command`, `args`, `env`, `cwd`), or one that listens at a `url` (with `headers`)."""

    enabled: bool = True
    command: Text | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: Text | None = None
    url: Text | None = None
    transport: Literal["stdio", "streamable-http"] | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    connection_timeout_ms: AtLeastOne = 30_000
    request_timeout_ms: AtLeastOne = 60_000
    tool_filter: ToolFilter = ToolFilter()

    def __repr__(self) -> str:
        return f"McpServerSettings(enabled={self.enabled!r})"


class Mcp(Settings, frozen=True, kw_only=True):
    """The MCP servers whose tools configured agents have, called `<id>__<tool>` (TOOL-7)."""

    servers: dict[NameText, McpServerSettings] = msgspec.field(
        default_factory=dict[NameText, McpServerSettings]
    )


class Runs(Settings, frozen=True, kw_only=True):
    """How agents are called, and how many calls may wait.

    `failure_text` is what a person is told where their message finds no answer, `limit_text` where their budget is used up
    (LIMIT-2); a blank one tells nothing. A call is lost to a worker that has not said for `worker_alive_seconds` that it lives.
    """

    retry_interrupted: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    pool_size: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    reply_max_bytes: Annotated[int, msgspec.Meta(ge=1, le=REPLY.most)] = 1_048_576
    inbox_max: AtLeastOne = 1_000
    idle_seconds: Seconds = 60
    store_retry_max_seconds: Seconds = 60
    shutdown_grace_seconds: Seconds = 10
    worker_alive_seconds: Annotated[float, msgspec.Meta(ge=1, le=MAX_SECONDS)] = 15
    failure_text: Annotated[str, msgspec.Meta(max_length=4_000)] = (
        "Something went wrong here and there is no answer to your message. Please try again later."
    )
    limit_text: Annotated[str, msgspec.Meta(max_length=4_000)] = (
        "You have used all that there is for you at present. Please try again later."
    )


class Files(Settings, frozen=True, kw_only=True):
    """The files of messages and answers (FILE-2). Sizes in bytes; `types` are globs over what a file is by its bytes."""

    enabled: bool = True
    max_files: AtLeastOne = 10
    max_file_bytes: Count = 5_242_880
    max_total_bytes: Count = 20_971_520
    types: tuple[Text, ...] = ("*/*",)


class Deliveries(Settings, frozen=True, kw_only=True):
    """How channels are called, and how long a text waits for one. Seconds of 0 are no limit of age."""

    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)] = 60
    per_channel: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    max_age_seconds: Seconds = 86_400


class Transcripts(Settings, frozen=True, kw_only=True):
    """The mirrored transcripts beside a log that is a file, in `<store>.transcripts` (LIST-5)."""

    mirror: bool = False


class MasterKey(Settings, frozen=True, kw_only=True):
    """The place of a master key: a file that only its owner may read, a service of the keyring, or a command that prints it."""

    file: Text | None = None
    keyring: Text | None = None
    command: tuple[Text, ...] = ()

    def __repr__(self) -> str:
        return f"MasterKey(file={self.file!r}, keyring={self.keyring!r})"


class Encryption(Settings, frozen=True, kw_only=True):
    """Whether words are kept encrypted from now on (CRYPT-1), by which master key, and of which sessions (patterns of keys).

    Without `keys` the log is kept as it was.
    """

    keys: MasterKey | None = None
    sessions: Literal["all"] | tuple[Text, ...] = "all"

    @property
    def wanted(self) -> Wanted | None:
        """The same as stores have it; None for a log that is kept as it was."""
        keys = self.keys
        if keys is None:
            return None
        file = None if keys.file is None else str(Path(keys.file).expanduser().absolute())
        return Wanted(Source(file=file, keyring=keys.keyring, command=keys.command), self.sessions)


class Views(Settings, frozen=True, kw_only=True):
    """The tailed views that a system keeps current, in `<store>.views`, once it has run for a while."""

    keep: tuple[Literal["search", "usage"], ...] = ("search", "usage")
    after_seconds: Seconds = 5


class Audit(Settings, frozen=True, kw_only=True):
    """Which access decisions are recorded (VIS-4)."""

    access: Literal["all", "denied", "off"] = "all"


class Publish(Settings, frozen=True, kw_only=True):
    """The targets of checkpoints, kept outside of the log. All given targets are used.

    `file` gets a line each, `webhook` a POST each, and `command`, a program with its arguments, a line each on its
    standard input. `form` is that of each: a `line` of JSON, or a signed `note` (TLOG-2). `allow_hosts` are hosts that the
    webhook and witnesses may be at though they are private.
    """

    file: Text | None = None
    webhook: Text | None = None
    command: tuple[Text, ...] = ()
    form: Literal["line", "note"] = "line"
    allow_hosts: tuple[Text, ...] = ()

    def __repr__(self) -> str:
        return f"Publish(file={self.file!r})"


class Witness(Settings, frozen=True, kw_only=True):
    """A witness that cosigns checkpoints: the URL before `/add-checkpoint`, and its public key as a vkey (TLOG-3)."""

    url: Text
    key: Text

    def __repr__(self) -> str:
        return f"Witness(key={self.key!r})"


class Timestamp(Settings, frozen=True, kw_only=True):
    """A command that takes a request of RFC 3161 on its standard input and gives the response on its standard output (TLOG-6)."""

    command: tuple[Text, ...] = ()


class Checkpoints(Settings, frozen=True, kw_only=True):
    """When checkpoints of the log are taken, the key that signs them, and their targets.

    `every_events` and `every_seconds` count what is new since the last one; 0 is never. `key_file` is a private key,
    `origin` the log's name in signed notes (TLOG-1). `quorum` of the `witnesses` make a note cosigned; 0 is all of them.
    """

    every_events: Count = 1_000
    every_seconds: Seconds = 300
    at_stop: bool = True
    key_file: Text | None = None
    origin: Text | None = None
    publish: Publish = Publish()
    witnesses: tuple[Witness, ...] = ()
    quorum: Count = 0
    timestamp: Timestamp = Timestamp()


class Logging(Settings, frozen=True, kw_only=True):
    """The log messages of a process of our command line, apart from its log of events."""

    level: LogLevel = "info"

    @property
    def threshold(self) -> int:
        """The level as `logging` counts: lines below it are not printed."""
        return _THRESHOLDS[self.level]


class Tracing(Settings, frozen=True, kw_only=True):
    """Spans for OpenTelemetry. `contents` includes messages, and arguments and results of tools."""

    enabled: bool = True
    contents: bool = False


_THRESHOLDS: Final[Mapping[LogLevel, int]] = {
    "silent": logging.CRITICAL + 10,
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}
