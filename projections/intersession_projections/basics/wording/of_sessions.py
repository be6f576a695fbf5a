"""Events of a session and of its runs in words, and what its messages say."""

from collections.abc import Iterator
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp
from intersession_projections.basics.wording.openclaw import OPENCLAW, is_openclaws
from intersession_projections.basics.wording.reasons import ARCHIVALS, FAILURES, OPENINGS
from intersession_projections.basics.wording.words import NO_TEXT, Naming, Words, route_text

BY_METHOD: Final = "operator"
"""The channel of what was said by a method (`chat.send`, `agent`), as provenance has it, and what whoever says so is called."""
_A_PERSON: Final = "a person"
_A_SESSION: Final = "a session"
_THE_SYSTEM: Final = "the system"
_AN_AGENT: Final = "an agent"
_AN_ANSWER: Final = "its answer"
_ARCHIVE: Final = "archive"
_SPEAKERS: Final = {"internal_system": _THE_SYSTEM, "inter_session": _A_SESSION}


def of_session(event: facts.SessionEvent, key: str | None, task: str, named: Naming) -> Words:  # noqa: C901 - one case an event
    """Return an event of a session in words. `task` is what the run of a message was asked for, if it is of one."""
    match event:
        case facts.SessionOpened():
            why = OPENINGS[event.opened_by] if event.by is None else f"{event.by} asks for it"
            how = f"The session opens: {why}."
            return Words(event.spawned_by or event.by, key, f"opened by {event.by or event.opened_by}", how)
        case facts.SessionPatched():
            cleared = [f"{name} cleared" for name in event.cleared]
            brief = ", ".join([*(f"{name}={value}" for name, value in event.values.items()), *cleared])
            changes = ", ".join([*(f"{name}: {value}" for name, value in event.values.items()), *cleared])
            return Words(event.by, key, brief, f"Settings changed{_by(event.by)}: {changes}.")
        case facts.RouteChanged():
            place = route_text(event.route)
            return Words(None, key, f"words go to {place}", f"From now on its words go to {place}.")
        case facts.SessionReset():
            brief = f"{event.reason}: {event.previous_session_id} is now {event.session_id}"
            how = f"The session is reset{_by(event.by)}; what was said before is {event.previous_session_id}."
            return Words(event.by, key, brief, how)
        case facts.SessionArchived():
            by = _by(event.by)
            how = f"The session leaves the list: {ARCHIVALS[event.reason]}{by}."
            return Words(event.by, key, f"{event.reason}{by}", how)
        case facts.ThreadBound():
            return Words(None, key, f"thread {route_text(event.route)} is its own")
        case facts.ThreadUnbound():
            place, by = route_text(event.route), _by(event.by)
            return Words(event.by, key, f"thread {place} is its own no more: {event.reason}{by}")
        case facts.SessionImported():
            return Words(None, key, event.source, f"Imported from {event.source}.")
        case facts.MessageRecorded():
            anew = "" if event.attempt is None else f", new in attempt {event.attempt}"
            step = _step_of(event.message, key, named) + anew + (f", for {task}" if task else "")
            return _brief(event.message, key)._replace(step=step)
        case facts.LineImported():
            return Words(None, key, event.kind)


def of_run(event: facts.RunEvent, key: str | None, task: str, named: Naming) -> Words:
    """Return an event of a run in words. `task` is what the run was asked for; `after` is true of a run by itself alone."""
    who, task = named(key or _AN_AGENT), task or _AN_ANSWER
    match event:
        case facts.RunQueued():
            said = Words(None, key, event.run_id) if event.message is None else _brief(event.message, key)
            words = Words(
                caller_of(event) or said.who or event.caller, key, said.brief,
                step=f"{who} is asked for {task}",
                after=f"after the start: {who} has been asked, and has not begun yet",
            )  # fmt: skip
            if event.retry_of is None:
                return words
            brief = f"{said.brief} (tries {event.retry_of} again)"
            return words._replace(brief=brief, how=f"wants run {event.retry_of} tried again")
        case facts.RunStarted():
            again = "" if event.attempt == 1 else f" again (attempt {event.attempt})"
            after = f"at work{again}: {who} has begun, and has not answered yet"
            return Words(
                key, None, f"attempt {event.attempt}{_left_out(event.fit)}",
                step=f"{who} begins {task}{again}{_left_out(event.fit)}", after=after,
            )  # fmt: skip
        case facts.RunInterrupted():
            how = f"was cut off in attempt {event.attempt}; the run starts again"
            if event.too_long is not None:
                return Words(
                    key, None, f"attempt {event.attempt} was too long for the model",
                    f"was given more than its model takes in attempt {event.attempt}; the run starts again with less", event.too_long,
                    step=f"{who} is given less, since {task} was too long for its model",
                    after=f"refused as too long: {who} had begun, and is given less",
                )  # fmt: skip
            after = f"cut off: {who} had begun, and has not answered yet"
            return Words(
                key, None, f"attempt {event.attempt} was cut off", how,
                step=f"{who} is cut off at {task}", after=after,
            )  # fmt: skip
        case facts.RunCompleted():
            how = "; ".join(("answers without a text", *event.notes))
            without = "" if event.reply else " without a text"
            after = f"after the reply: {who} has answered{without}, and is done"
            step = f"{who} is done with {task}{without}"
            own = None if event.message is None else _brief(event.message, key).brief
            brief = event.reply or own or NO_TEXT
            return Words(key, None, brief, how, step=step, after=after)
        case facts.RunFailed():
            # An agent's error begins with its code, as it is answered.
            error = event.error.removeprefix(f"{event.code}: ")
            how = f"{FAILURES[event.code]}: {event.error}"
            return Words(
                key, None, f"{event.code}: {error}", how, _with_trace(event.partial, event.traceback),
                step=f"{who} fails at {task}: it {FAILURES[event.code]}",
                after=f"after the end: {who} has not answered: it {FAILURES[event.code]}",
            )  # fmt: skip
        case facts.RunAborted():
            after = f"after the end: {who} was stopped before it had answered"
            how = f"was stopped, as {_archived(event)}" if event.gone else f"was aborted by {event.by}"
            return Words(
                event.by, key, event.partial or NO_TEXT, how, event.partial,
                step=f"{who} is stopped at {task}", after=after,
            )  # fmt: skip
        case facts.LateReplyDropped():
            return Words(
                key, None, event.reply or NO_TEXT, "answered too late; nobody uses it", event.reply,
                step=f"{who} answers too late at {task}",
            )  # fmt: skip


def _left_out(fit: facts.Fit | None) -> str:
    """Say what its model is not shown of a context that is too long for it (CTX-2)."""
    if fit is None:
        return ""
    count = fit.left_out + fit.partial_left_out
    messages = "1 earlier message" if count == 1 else f"{count} earlier messages"
    return f", {messages} left out" if count else ", long texts cut"


def as_read(event: facts.Event) -> facts.Message | None:
    """Return the message that an event brings as it is read: that of an import without its stamp. None where it brings none."""
    message = facts.message_in(event)
    is_stamped = message is not None and facts.is_imported(event) and message.role == "user"
    return without_stamp(message) if message is not None and is_stamped else message


def without_stamp(message: facts.Message) -> facts.Message:
    """Take the stamp `[Sat 2026-11-21 04:05 UTC] ` off an imported user message; the log keeps it (IMP-3)."""
    if isinstance(message.content, str):
        return msgspec.structs.replace(message, content=strip_stamp(message.content))
    for index, block in enumerate(message.content):
        if isinstance(block, facts.TextBlock):
            cut = msgspec.structs.replace(block, text=strip_stamp(block.text))
            return msgspec.structs.replace(
                message, content=(*message.content[:index], cut, *message.content[index + 1 :])
            )
    return message


def words_of_message(message: facts.Message, key: str | None) -> Iterator[Words]:
    """Yield what a message of a session says: its text, then each tool that it calls."""
    text = facts.text_of(message)
    match message.role:
        case "assistant" if isinstance(message.content, str):
            yield Words(key, None, text or NO_TEXT, _says(message), text, "said")
        case "assistant":
            if text:
                yield Words(key, None, text, _says(message), text, "said")
            for block in message.content:
                if isinstance(block, facts.ToolCallBlock):
                    call = f"{block.name}({block.arguments})"
                    yield Words(key, None, call, f"calls {block.name}", block.arguments, "tool")
        case "toolResult":
            tool = message.tool_name or "a tool"
            yield Words(tool, key, text, f"gets from {tool}", text, "tool")
        case "user" | "system":
            yield Words(_asker(message), key, text, _asks(message), text, "said")


def _brief(message: facts.Message, key: str | None) -> Words:
    """Return a message in brief: its text, and each tool that it calls."""
    said = list(words_of_message(message, key))
    who, to = (said[0].who, said[0].to) if said else (key, None)
    return Words(who, to, "\n".join(words.brief for words in said) if said else NO_TEXT)


def _by(who: str | None) -> str:
    """Return ` by` who did something; nothing where the log does not say who."""
    return "" if who is None else f" by {who}"


def _archived(event: facts.RunAborted) -> str:
    """Say that the session of a run was archived or reset, and by whom."""
    if event.reset:
        return f"{event.by} reset its session"
    return "its session was archived" if event.by == _ARCHIVE else f"{event.by} archived its session"


def writer_of(message: facts.Message) -> str | None:
    """Return who wrote what an agent is said to have said (`chat.inject`); None for its own words."""
    origin = message.provenance
    if message.role != "assistant" or origin is None or origin.kind != "internal_system":
        return None
    return origin.edited_by or origin.source_channel


def _says(message: facts.Message) -> str:
    writer = writer_of(message)
    return "says" if writer is None else f"says, in the words of {writer}"


def _step_of(message: facts.Message, key: str | None, named: Naming) -> str:
    who = named(key or _AN_AGENT)
    match message.role:
        case "user":
            return f"a message for {who}"
        case "assistant":
            return f"{who} calls a tool" if facts.calls_of(message) else f"{who} says something"
        case "toolResult":
            return f"a tool answers {who}"
        case "system":
            return f"{who} is told something by the system"


def person(sender: str | None, sender_name: str | None) -> str:
    """Return a person as stories call them: name and id; `a person` where the log does not say who spoke."""
    if sender is None:
        return _A_PERSON
    return sender if sender_name in {None, sender} else f"{sender_name} ({sender})"


def called(origin: facts.Provenance) -> set[str]:
    """Return all that a person is called where they are shown: `ada`, `Ada (ada)`, `telegram:ada`, `Ada (ada) on telegram`.

    Nothing for one that the log does not name.
    """
    if origin.sender is None:
        return set() if origin.sender_name is None else {origin.sender_name}
    whole, channel = person(origin.sender, origin.sender_name), origin.source_channel
    names = {origin.sender, origin.sender_name or origin.sender, whole}
    if channel is not None:
        names |= {f"{channel}:{origin.sender}", *(f"{name} on {channel}" for name in (*names,))}
    return names


def is_by_method(origin: facts.Provenance) -> bool:
    """Whether something was said by a method or a tool, for no session and in no channel: by the operator, or by a credential."""
    if origin.kind == "inter_session":
        is_ours = origin.exchange_id is not None or origin.hops is not None
        return origin.source_session_key is None and origin.source_tool is not None and is_ours
    return (origin.kind, origin.source_channel, origin.sender) == ("external_user", BY_METHOD, None)


def caller_of(event: facts.Event) -> str | None:
    """Return who said something by a method, as the run that was queued for it tells; None for who spoke in a channel."""
    match event:
        case facts.RunQueued(caller=caller, message=facts.Message(provenance=facts.Provenance() as origin)):
            return caller if is_by_method(origin) else None
        case _:
            return None


def speaker(message: facts.Message) -> str:
    """Return the requester of an agent's message: a session's key, or words for a person, the system, or OpenClaw in an import."""
    return OPENCLAW if is_openclaws(message) else recorded_speaker(message)


def recorded_speaker(message: facts.Message) -> str:
    """Return the same, as far as the message's own provenance says."""
    origin = message.provenance
    if origin is None:
        return _THE_SYSTEM if message.role == "system" else _A_PERSON
    if is_by_method(origin):
        return BY_METHOD
    match origin.kind:
        case "external_user":
            who = person(origin.sender, origin.sender_name)
            return who if origin.source_channel is None else f"{who} on {origin.source_channel}"
        case "inter_session":
            return origin.source_session_key or _A_SESSION
        case "internal_system":
            return _THE_SYSTEM


def _asker(message: facts.Message) -> str | None:
    """Return the requester, as a step shows it: None where the message has no record of it."""
    origin = message.provenance
    if origin is None:
        return None
    if is_by_method(origin):
        return BY_METHOD
    if origin.kind == "external_user":
        return person(origin.sender, origin.sender_name)
    return origin.source_session_key or _SPEAKERS[origin.kind]


def _asks(message: facts.Message) -> str:
    origin = message.provenance
    if origin is None or origin.kind != "inter_session":
        return "says"
    if origin.source_tool == "sessions_spawn":
        return "hands over" if origin.turn is None else "says"
    asks = f"asks for turn {origin.turn}" if origin.turn else "asks"
    return asks if origin.edited_by is None else f"{asks}, in the words of {origin.edited_by}"


def _with_trace(partial: str | None, traceback: str | None) -> str | None:
    return "\n".join(text for text in (partial, traceback) if text is not None) or None
