"""Small drafts for tests of the log: what is in them does not matter, that they differ does."""

from intersession_events.facts import Event, Message, MessageRecorded
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend


def said(name: str, text: str = "hello") -> Draft:
    message = Message(id=name, role="user", content=text, timestamp=1_000)
    return draft(MessageRecorded(session_id="s", message=message), name)


def draft(event: Event, name: str, *, time: int = 1_000) -> Draft:
    return Draft(event=event, id=f"id-{name}", time=time, correlation="root")


def to(stream: str, expected: int, *drafts: Draft) -> StreamAppend:
    return StreamAppend(stream=stream, expected=expected, drafts=drafts)


def anywhere(stream: str, *drafts: Draft) -> StreamAppend:
    return to(stream, ANY_VERSION, *drafts)
