"""Records in stream `log` who opened the log when, and which configuration came into force. Used at each start."""

from importlib.metadata import version

from intersession_actors.config import Config
from intersession_actors.service import Service
from intersession_events.facts import ConfigLoaded, Event, LogOpened
from intersession_events.log import ANY_VERSION, Draft, StreamAppend

STREAM = "log"
_PAGE = 50


def record_opening(service: Service, config: Config) -> None:
    """Record that this process is the writer now; and its configuration, unless it is the one that was in force.

    Raises:
        StoreUnavailable: the store could not take it; then it would not take anything else either.
    """
    events: list[Event] = [LogOpened(epoch=service.log.epoch, version=version("intersession"))]
    before = config_in_force(service)
    if before is None or before.digest != config.digest():
        events.append(ConfigLoaded(digest=config.digest(), config=config.redacted()))
    now = service.clock.now_ms()
    drafts = tuple(Draft(event=event, id=service.new_id(), time=now) for event in events)
    service.log.append_now((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=drafts),))


def config_in_force(service: Service) -> ConfigLoaded | None:
    """Return the configuration that was loaded last, as far as the log knows it; None for a new log."""
    after = None
    while True:
        page = service.log.stream(STREAM, to=after, backwards=True, limit=_PAGE)
        for recorded in page:
            if isinstance(recorded.event, ConfigLoaded):
                return recorded.event
        if len(page) < _PAGE:
            return None
        after = page[-1].version - 1
