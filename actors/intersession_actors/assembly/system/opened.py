"""Records in stream `log` who opened the log when, and which configuration came into force, at a start or by a reload."""

import logging

from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.registry import described
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.redacted import config_digest
from intersession_events.basics.machine import VERSION
from intersession_events.facts import ConfigLoaded, Event, LogOpened
from intersession_events.log.recorded import ANY_VERSION, Draft, Outcome, StreamAppend, Unavailable

logger = logging.getLogger("intersession.config")

STREAM = "log"
# Most events of the stream are checkpoints: one by one they would be a long way back.
_LAST_LOADED = "SELECT MAX(originator_version) FROM stored_events WHERE originator_id=? AND topic LIKE 'config\\_loaded.%' ESCAPE '\\'"


def record_opening(service: Service, config: Config) -> None:
    """Record that this process is the writer now; and its configuration and its tools, unless they are those that were in force.

    Raises:
        StoreUnavailable: the store could not take it; then it would not take anything else either.
    """
    events: list[Event] = [LogOpened(epoch=service.log.epoch, version=VERSION)]
    loaded = _fresh(service, config)
    if loaded is not None:
        events.append(loaded)
    now = service.clock.now_ms()
    drafts = tuple(Draft(event=event, id=service.new_id(), time=now) for event in events)
    service.log.append_now((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=drafts),))


def record_reload(service: Service, config: Config) -> None:
    """Record the configuration that came into force, unless it is the one that was; nobody waits for that (PLACE-3)."""
    loaded = _fresh(service, config)
    if loaded is None:
        return
    draft = Draft(event=loaded, id=service.new_id(), time=service.clock.now_ms())
    service.log.append((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=(draft,)),), _note)


def _fresh(service: Service, config: Config) -> ConfigLoaded | None:
    """Return what is to be recorded of a configuration and the tools; None where both are those that were in force."""
    before = config_in_force(service)
    text = config.redacted()
    loaded = ConfigLoaded(digest=config_digest(text), config=text, tools=described())
    known = before is not None and (before.digest, before.tools) == (loaded.digest, loaded.tools)
    return None if known else loaded


def _note(outcome: Outcome) -> None:
    if isinstance(outcome, Unavailable):
        logger.warning("that another configuration came into force could not be recorded: %s", outcome.error)


def config_in_force(service: Service) -> ConfigLoaded | None:
    """Return the configuration that was loaded last, as far as the log knows it; None for a new log."""
    ((version,),) = service.log.query(_LAST_LOADED, (STREAM,))
    if version is None:
        return None
    (recorded,) = service.log.stream(STREAM, after=version - 1, to=version)
    return recorded.event if isinstance(recorded.event, ConfigLoaded) else None
