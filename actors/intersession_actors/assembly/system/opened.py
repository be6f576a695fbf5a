"""Opens the log of a system, and records in stream `log` who opened the log when, and which configuration came into force, at a start or by a reload.

A configuration under which main sessions of the log would have no name any more is refused (KEY-2). The stream of a main
session is named after `session.mainKey`. With another one, every `main` would name another session, and the old one, with
all that was said there, would be beyond reach.
"""

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

import msgspec

from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.registry import described
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.host import Encryption
from intersession_actors.rules.config.redacted import config_digest
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.runtime import Runtime
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.machine import VERSION
from intersession_events.facts import ConfigLoaded, LogOpened, ready
from intersession_events.facts import Event as Fact
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import ANY_VERSION, Draft, Outcome, StreamAppend, Unavailable
from intersession_events.stores.opened import check_clear, located, open_log
from intersession_events.stores.standby import when_free
from intersession_projections.views.inline_views import inline_views

logger = logging.getLogger("intersession.config")

STREAM = "log"
# Most events of the stream are checkpoints: one by one they would be a long way back.
_LAST_LOADED = "SELECT MAX(originator_version) FROM stored_events WHERE originator_id=? AND topic LIKE 'config\\_loaded.%' ESCAPE '\\'"


_AS_IT_WAS: Final = Encryption()
_FOLDING: Final = logging.getLogger("intersession.log")
_PAGE: Final = 500
_TOLD_EVERY: Final = 100_000
"""Positions between two lines about views that are built anew."""


def checked_store(store: str | Path | HostLog | None) -> str | Path | HostLog | None:
    """Return the log of a host, or the name that stands for one.

    Raises:
        ToolRefused: it is neither.
    """
    if store is None or isinstance(store, str | Path) or hasattr(store, "append_now"):
        return store
    raise invalid(
        "store", f"it is no log but {type(store).__name__}, give a URL, a path, or a log that is open"
    )


def open_store(
    store: str | Path | None,
    clock: Clock,
    runtime: Runtime,
    *,
    encryption: Encryption = _AS_IT_WAS,
    waiting: Event | None = None,
    read_only: bool = False,
) -> HostLog:
    """Open a log for writing, or to follow it, with the inline views. In a simulation, its random values come from the simulation's seed.

    With `waiting` a log that another process writes is waited for, until that is set (STBY-1).

    Raises:
        StoreLocked: another process is the writer of this log.
        BadKey: it is kept encrypted, or is to be, and the master key can't be had.
        StoreUnavailable: the log can't be opened, or the wait was ended.
    """
    url = f"sqlite:///{store}" if isinstance(store, Path) else store
    opened = partial(
        open_log,
        url,
        inline=inline_views(),
        read_only=read_only,
        clock=clock.now_ms,
        monotonic=clock.monotonic,
        entropy=runtime.entropy,
        new_log_id=runtime.new_id,
        threads=not runtime.threads.by_hand,
        encryption=encryption.wanted,
        on_folding=_tell_folding,
    )
    if waiting is None:
        found = opened()
        try:
            if read_only:
                check_clear(found)
        except BaseException:
            found.close()
            raise
        return found
    log = when_free(located(url), opened, stopping=waiting, encryption=encryption.wanted)
    if log is None:
        raise StoreUnavailable("the wait for the log was ended, before it had no writer")
    return log


def _tell_folding(position: int, head: int) -> None:
    if position >= head or position % _TOLD_EVERY < _PAGE:
        _FOLDING.info("views that another version wrote are built anew: position %d of %d", position, head)


def record_opening(service: Service, config: Config) -> None:
    """Record that this process is the writer now, and its configuration and tools, unless these were already in force.

    Raises:
        StoreUnavailable: the store could not take it; then it would not take anything else either.
    """
    events: list[Fact] = [LogOpened(epoch=service.log.epoch, version=VERSION)]
    loaded = _fresh(service, config)
    if loaded is not None:
        events.append(loaded)
    now = service.clock.now_ms()
    drafts = tuple(Draft(event=event, id=service.new_id(), time=now) for event in events)
    service.log.append_now((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=drafts),))


def record_reload(service: Service, config: Config) -> None:
    """Record a new configuration, unless it was already in force, without waiting (PLACE-3)."""
    loaded = _fresh(service, config)
    if loaded is None:
        return
    draft = Draft(event=loaded, id=service.new_id(), time=service.clock.now_ms())
    service.log.append((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=(draft,)),), _note)


def _fresh(service: Service, config: Config) -> ConfigLoaded | None:
    """Return the configuration and tools to record; None if both were already in force."""
    before = config_in_force(service)
    text = config.redacted()
    loaded = ConfigLoaded(digest=config_digest(text), config=text, tools=described())
    known = before is not None and (before.digest, before.tools) == (loaded.digest, loaded.tools)
    return None if known else loaded


def _note(outcome: Outcome) -> None:
    if isinstance(outcome, Unavailable):
        logger.warning("that another configuration came into force could not be recorded: %s", outcome.error)


def config_in_force(service: Service) -> ConfigLoaded | None:
    """Return the configuration that was loaded last, as the log has it; None for a new log."""
    ((version,),) = service.log.query(_LAST_LOADED, (STREAM,))
    if version is None:
        return None
    (recorded,) = service.log.stream(STREAM, after=version - 1, to=version)
    return recorded.event if isinstance(recorded.event, ConfigLoaded) else None


MOST_NAMED: Final = 3


@ready
class _Session(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    main_key: str = "main"
    scope: str = "per-sender"


@ready
class _Loaded(msgspec.Struct, frozen=True, kw_only=True):
    session: _Session = _Session()


def refuse_orphans(service: Service, config: Config) -> None:
    """Refuse a configuration unless each main session keeps its name, and encrypted words stay so.

    Raises:
        ConfigError: it would have words of an encrypted log in clear beside it (CRYPT-1), or it has another main key, or another default agent for the one session of all, than the log's sessions.
    """
    _refuse_in_clear(service, config)
    loaded = config_in_force(service)
    if loaded is None:
        return
    before, now = msgspec.json.decode(loaded.config, type=_Loaded).session, config.session
    old, new = before.main_key, now.main_key
    if old != new:
        lost = tuple(key for key in _live(service, old) if key.rest.partition(":")[0] == old)
        _refuse("session.mainKey", f"{new!r}", f"set it back to {old!r}", lost)
    elif before.scope == now.scope == "global":
        main = SessionKey.main(config.default_agent, new)
        mains = tuple(key for key in _live(service, new) if key.is_main)
        if main not in mains:
            what = f"the default agent {main.agent_id!r}"
            _refuse("agents.list", what, "make the agent of that session the default again", mains)


def _refuse_in_clear(service: Service, config: Config) -> None:
    if service.log.is_encrypted and config.transcripts.mirror:
        message = "the log is kept encrypted, and mirrored transcripts are not: turn them off"
        raise ConfigError((ConfigProblem("transcripts.mirror", message),))


def _refuse(path: str, what: str, instead: str, lost: tuple[SessionKey, ...]) -> None:
    if not lost:
        return
    named = ", ".join(str(key) for key in lost[:MOST_NAMED]) + (", …" if len(lost) > MOST_NAMED else "")
    message = f"with {what}, sessions of this log could not be named any more ({named}); {instead}, or begin another log"
    raise ConfigError((ConfigProblem(path, message),))


def _live(service: Service, main_key: str) -> Iterator[SessionKey]:
    """Yield the keys of all sessions, as they were written under a main key."""
    for place in service.sessions.order().places():
        yield SessionKey.parse(place.key, main_key=main_key)
