"""Events as JSON, for a worker that folds them elsewhere."""

import msgspec
import pytest

from intersession import CorruptEvent, SessionSystem, UnknownTopic
from intersession_events.log.sent import received, sent


def test_each_event_of_a_log_comes_back_as_it_was() -> None:
    with SessionSystem(":memory:", agents={"main": lambda turn: turn.message}) as system:
        system.inbound(channel="chat", chat_id="1", sender="mia", text="hello")
        system.tools().call("sessions_send", {"sessionKey": "agent:main:main", "message": "again"})
        events = list(system.log.all())

    assert [received(msgspec.json.decode(sent(event))) for event in events] == events
    assert len(events) > 5


@pytest.mark.parametrize("event", [None, [], "x", {}, {"position": 1}])
def test_anything_else_is_no_event(event: object) -> None:
    with pytest.raises(CorruptEvent, match="not of its shape"):
        received(event)


def test_an_event_of_a_newer_version_says_so() -> None:
    with SessionSystem(":memory:") as system:
        (first, *_) = system.log.all()

    with pytest.raises(UnknownTopic):
        received(msgspec.json.decode(sent(first)) | {"topic": "log_opened.99"})
