"""Makes the facts of a session's stream: its opening, its lines in order, resets, its entry (IMP-1 to 3)."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.transcripts.openclaw.reading.foreign_json import a_count, a_text, at
from intersession_events.transcripts.openclaw.reading.lines import Line
from intersession_events.transcripts.openclaw.reading.state import Entry
from intersession_events.transcripts.openclaw.reconstruction.drafts import Links, Place, Planned, StreamPlan
from intersession_events.transcripts.openclaw.reconstruction.sessions import Generation, Session

_BEHIND: Final = 1 << 60
_CHATS: Final[dict[str, facts.ChatType]] = {
    "direct": "direct",
    "dm": "direct",
    "group": "group",
    "channel": "channel",
}
_SEND_POLICIES: Final[dict[str, Literal["allow", "deny"]]] = {"allow": "allow", "deny": "deny"}
_OTHER_SETTINGS: Final = ("reasoningLevel", "elevatedLevel", "responseUsage", "groupActivation")


class Lineage(NamedTuple):
    """A session's parent by canonical key, its depth, and whether it was to be deleted when done."""

    spawned_by: str | None = None
    depth: int = 0
    cleaned_up: bool = False


class _Item(NamedTuple):
    place: Place
    event: facts.Event
    step: str
    line: Line | None = None


def line_event_id(log_id: str, key: str, generation: Generation, line: Line) -> str:
    """Return the event id of a line, from its id or number in its transcript, whatever the place of the directory or of an archived file."""
    return ids.derive(log_id, "import", "line", key, generation.agent, generation.stem, line.identity)


def reset_step(session_id: str) -> str:
    """Return the step name of the `SessionOpened` or `SessionReset` that begins a generation."""
    return f"opened {session_id}"


def archived_step(session_id: str) -> str:
    """Return the step name of the `SessionArchived` that ends a generation."""
    return f"session_archived.1 {session_id}"


def session_facts(
    session: Session, key: str, *, log_id: str, links: Links, lineage: Lineage
) -> list[Planned]:
    """Return the events of a session's stream, in order of time. `key` is its key here."""
    plan = StreamPlan(log_id, ids.session_stream(key))
    named = {line.place: (event_id, parent) for line, event_id, parent in planned_lines(session, key, log_id)}
    for place, event, step, line in sorted(_items(session, key, lineage), key=lambda item: item.place):
        if line is None:
            plan.add(event, place, step=step)
        else:
            event_id, parent = named[line.place]
            cause, root = links.cause_of(line, parent), links.root_of(event_id)
            plan.add(event, place, causation=cause, correlation=root, event_id=event_id)
    return plan.planned


def planned_lines(session: Session, key: str, log_id: str) -> Iterator[tuple[Line, str, str | None]]:
    """Yield (line, event id, parent's event id) of a session, so that causes can be found before any event is placed."""
    for generation in session.generations:
        by_entry = {
            line.entry_id: line_event_id(log_id, key, generation, line)
            for line in generation.lines
            if line.entry_id is not None
        }
        previous: str | None = None
        for line in generation.lines:
            event_id = line_event_id(log_id, key, generation, line)
            yield line, event_id, by_entry.get(line.parent_id or "") or previous
            if line.message is not None:
                previous = event_id


def _items(session: Session, key: str, lineage: Lineage) -> Iterator[_Item]:
    first = session.generations[0]
    start = min(generation.start for generation in session.generations)
    # An empty path sorts before every file: the opening comes before whatever else has its time.
    yield _Item(Place(start, "", 0), _opened(session, key, first, lineage), reset_step(first.session_id))
    for index, generation in enumerate(session.generations):
        following = session.generations[index + 1] if index + 1 < len(session.generations) else None
        yield from _lines(generation)
        yield from _entries(generation, following)
        if following is not None:
            yield from _next(session, key, generation, following, lineage)
        elif session.entry is None and generation.closing is not None:
            yield _archived(generation, lineage, _closed(generation))


def _next(
    session: Session, key: str, generation: Generation, following: Generation, lineage: Lineage
) -> Iterator[_Item]:
    began = _began(generation, following)
    step = reset_step(following.session_id)
    if generation.closing == "deleted":
        yield _archived(generation, lineage, min(_closed(generation), began._replace(path="")))
        yield _Item(began, _opened(session, key, following, lineage), step)
        return
    reason = "run" if session.key.family == "cron" else "reset"
    reset = facts.SessionReset(
        session_id=following.session_id, previous_session_id=generation.session_id, reason=reason
    )
    yield _Item(began, reset, step)


def _began(generation: Generation, following: Generation) -> Place:
    """Return when a generation followed another: when that was reset, as its file's name says, else at its own first line."""
    first_line = Place(following.start, following.place, 0)
    if generation.reset_ms is None:
        return first_line
    # A name may give a time that its neighbours contradict; no line goes over to the other generation by that.
    reset = Place(max(generation.reset_ms, generation.end), generation.place, _BEHIND + 1)
    return reset if reset.time < following.start else first_line


def _opened(session: Session, key: str, generation: Generation, lineage: Lineage) -> facts.SessionOpened:
    values = session.entry.values if session.entry is not None else {}
    return facts.SessionOpened(
        key=key,
        session_id=generation.session_id,
        agent_id=session.key.agent_id,
        opened_by="import",
        chat_type=_CHATS.get(a_text(values.get("chatType")) or "") or session.key.chat_type,
        channel=a_text(values.get("channel")) or a_text(values.get("provider")) or session.key.channel,
        spawned_by=lineage.spawned_by,
        spawn_depth=lineage.depth,
        original_key=session.original if session.original is not None else _moved(session, key),
    )


def _moved(session: Session, key: str) -> str | None:
    return str(session.key) if str(session.key) != key else None


def _lines(generation: Generation) -> Iterator[_Item]:
    for line in generation.lines:
        event: facts.Event
        if line.message is not None:
            event = facts.MessageRecorded(
                session_id=generation.session_id, message=line.message, source=line.source
            )
        else:
            event = facts.LineImported(
                session_id=generation.session_id,
                kind=line.kind,
                source=line.source,
                entry_id=line.entry_id,
                parent_id=line.parent_id,
            )
        # No step: the id of a line's event is derived from the line itself.
        yield _Item(Place(line.time, line.file, line.number), event, "", line)


def _entries(generation: Generation, following: Generation | None) -> Iterator[_Item]:
    for number, entry in enumerate(generation.entries):
        updated = a_count(entry.values.get("updatedAt")) or generation.end
        # An entry may claim an earlier time than the last line of its transcript, and describes all of it.
        place = Place(max(updated, generation.end), generation.place, _BEHIND, number)
        if following is not None:
            # It is the entry of an earlier generation: it must not look like the newest.
            began = _began(generation, following)
            path = (
                began.path if began.line else ""
            )  # behind the lines of its own generation, before those of the next
            place = min(place, began._replace(path=path, line=_BEHIND, rank=number))
        step = f"entry {generation.session_id} {entry.key} {updated}"
        yield _Item(place, _imported(generation, entry, updated), step)


def _imported(generation: Generation, entry: Entry, updated: int) -> facts.SessionImported:
    values = entry.values
    return facts.SessionImported(
        session_id=generation.session_id,
        source=entry.system,
        entry=entry.source,
        updated_at=updated,
        model=a_text(values.get("model")),
        context_tokens=a_count(values.get("contextTokens")),
        total_tokens=a_count(values.get("totalTokens")),
        thinking_level=a_text(values.get("thinkingLevel")),
        verbose_level=a_text(values.get("verboseLevel")),
        send_policy=_SEND_POLICIES.get(a_text(values.get("sendPolicy")) or ""),
        label=a_text(values.get("label")),
        display_name=a_text(values.get("displayName")),
        channel=a_text(values.get("channel")) or a_text(values.get("provider")),
        last_channel=_last_channel(entry),
        last_to=a_text(values.get("lastTo")),
        route=route_of(entry),
        spawned_by=None,  # lineage is canonical in SessionOpened; the entry's own spelling is in `entry`
        system_sent=values.get("systemSent") is True,
        aborted_last_run=values.get("abortedLastRun") is True,
        model_override=_model_override(entry),
        other_settings={
            name: text for name in _OTHER_SETTINGS if (text := a_text(values.get(name))) is not None
        },
    )


def _model_override(entry: Entry) -> str | None:
    """Return the model that was chosen for the session; `model` beside it only tells the last one that ran."""
    model = a_text(entry.values.get("modelOverride"))
    provider = a_text(entry.values.get("providerOverride"))
    return f"{provider}/{model}" if model is not None and provider is not None else model


def route_of(entry: Entry) -> facts.Route | None:
    """Return the route of a session's texts, if its entry has a complete address."""
    context = entry.values.get("deliveryContext")
    channel = a_text(at(context, "channel")) or _last_channel(entry)
    to = a_text(at(context, "to")) or a_text(entry.values.get("lastTo"))
    if channel is None or to is None:
        return None
    account = a_text(at(context, "accountId")) or a_text(entry.values.get("lastAccountId"))
    thread = at(context, "threadId")
    if thread is None:
        thread = entry.values.get("lastThreadId")
    return facts.Route(
        channel=channel,
        to=to,
        account=account,
        thread=str(thread) if isinstance(thread, str | int) and not isinstance(thread, bool) else None,
    )


def _last_channel(entry: Entry) -> str | None:
    return a_text(entry.values.get("lastChannel")) or a_text(entry.values.get("lastProvider"))


def _archived(generation: Generation, lineage: Lineage, place: Place) -> _Item:
    reason: facts.ArchiveReason = "reset"
    if generation.closing == "deleted":
        reason = "cleanup" if lineage.cleaned_up else "deleted"
    event = facts.SessionArchived(session_id=generation.session_id, reason=reason)
    return _Item(place, event, archived_step(generation.session_id))


def _closed(generation: Generation) -> Place:
    closed = generation.closed_ms if generation.closed_ms is not None else generation.end
    return Place(max(closed, generation.end), generation.place, _BEHIND + 1)
