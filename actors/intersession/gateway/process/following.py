"""Makes a host that follows a log: it serves the whole gateway, answers from the log, and hands on what writes (DOOR-1)."""

from typing import cast

from intersession.gateway.protocol.link import WriterLink
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_actors.running.runtime.clock import Clock
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_object
from intersession_events.stores.opened import writers_gateway
from intersession_events.stores.portable.log import PortableLog


def following(
    store: str | None = None,
    *,
    config: JsonValue | Config = None,
    writer: str | None = None,
    clock: Clock | None = None,
) -> SessionSystem:
    """Return a system that follows the log of a URL. `writer` is the address of its writer's gateway, else the log says it.

    `clock` is handed in by tests. Its token is that of the credential in the configuration that has the scope `door`.

    Raises:
        ConfigError: no credential has that scope.
        StoreUnavailable: there is no log yet, or it can't be opened.
        ToolRefused: the writer's gateway does not know the token (`forbidden`).
    """
    settings = load_config(config).config
    system: SessionSystem | None = None

    def where() -> tuple[str, int] | None:
        if system is None:
            return None
        log = cast("PortableLog", system.log)
        address, holder = writer or writers_gateway(log), log.written_by()
        return None if address is None else (address, 0 if holder is None else holder.epoch)

    def wait_s() -> float:
        return float((settings if system is None else system.config).gateway.writer_wait_seconds)

    def hear(frame: JsonObject) -> None:
        if system is not None:
            _hear(system, frame)

    link = WriterLink(where, door_token(settings), wait_s=wait_s, hear=hear, announced=writer is None)
    system = SessionSystem(store, config=config, clock=clock, writer=link)
    try:
        link.open()
    except BaseException:
        system.close()
        raise
    return system


def door_token(config: Config) -> str:
    """Return the token by which a door is admitted to the gateway of the log's writer.

    Raises:
        ConfigError: no credential has the scope `door`.
    """
    for credential in config.gateway.auth.credentials:
        if "door" in credential.scopes:
            return credential.token
    what = (
        'none has the scope "door"; add one, here and at the log\'s writer: {name: "door", token: …, actAs: ["*"], '
        'scopes: ["door", "operator.admin", …]}'
    )
    raise ConfigError([ConfigProblem("gateway.auth.credentials", what)])


def _hear(system: SessionSystem, frame: JsonObject) -> None:
    """Take what an agent at the writer has said in pieces: the log does not have it."""
    payload: JsonObject = frame.get("payload") or {}
    if frame.get("event") != "chat" or payload.get("state") != "delta" or not is_object(payload):
        return
    run_id, attempt = payload["runId"], payload["attempt"]
    service = system.service
    pieces = service.world.agents.pieces
    is_new = pieces.of(run_id) is None
    pieces.heard(payload["sessionKey"], run_id, attempt, payload["message"]["content"][0]["text"])
    if is_new and service.runs.has_ended(run_id):
        pieces.over(run_id, attempt)  # the log was faster
