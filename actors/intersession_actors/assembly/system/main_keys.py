"""Refuses a configuration under which main sessions of the log would have no name any more; used at starts and reloads (KEY-2).

The stream of a main session is named after `session.mainKey`. With another one, every `main` would name another session, and
the old one, with all that was said there, would be beyond reach.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from intersession_actors.assembly.system.opened import config_in_force
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ready

MOST_NAMED: Final = 3


@ready
class _Session(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    main_key: str = "main"
    scope: str = "per-sender"


@ready
class _Loaded(msgspec.Struct, frozen=True, kw_only=True):
    session: _Session = _Session()


def refuse_orphans(service: Service, config: Config) -> None:
    """Let a configuration pass under which each main session keeps its name.

    Raises:
        ConfigError: it has another main key, or another default agent for the one session of all, than the log's sessions.
    """
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
