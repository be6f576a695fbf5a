"""Events of exchanges and spawns in words: what was asked, answered, held, announced, and how it ended."""

from intersession_events import facts
from intersession_projections.basics.wording.reasons import (
    ARCHIVALS,
    HELD_BEFORE,
    HELD_TEXTS,
    LOOP_ENDS,
    RELEASES,
    SILENCES,
    STATUSES,
    closed,
    counted,
    loop_end,
    plain_note,
)
from intersession_projections.basics.wording.words import NO_TEXT, OF_RUN, Naming, Sides, Words, route_text


def asker_of(event: facts.ExchangeAccepted | facts.SpawnAccepted) -> str:
    """Return who asked: a session by its key, else `operator` or a credential; `unknown` where an import does not show."""
    return event.requester or event.caller


def of_exchange(event: facts.ExchangeEvent, max_turns: int, sides: Sides, named: Naming) -> Words:
    """Return an event of an exchange in words."""
    asker, asked = sides
    match event:
        case facts.ExchangeAccepted():
            return Words(
                asker_of(event), event.target, event.message or OF_RUN, "asks", event.message, "said",
                step=f"{asker} asks {asked}",
                after=f"after the start: {asker} has asked {asked}, {asked} has not answered yet",
            )  # fmt: skip
        case facts.TurnEnded(turn=0):
            step, after = "the primary reply", f"{_has(asked, event)}, {asker} has not yet"
            words = _of_answer(event, event.speaker, "replies")
            return words._replace(step=f"{step} of {asked}", after=f"after {step}: {after}")
        case facts.TurnRequested():
            turn, speaker = f"turn {event.turn}", named(event.speaker)
            after = f"in {turn}: {speaker} has been asked, and has not answered yet"
            return Words(None, event.speaker, turn, step=f"{turn} is asked of {speaker}", after=after)
        case facts.TurnEnded():
            turn, speaker = f"turn {event.turn}", named(event.speaker)
            after = (
                f"after {turn}: {_has(speaker, event)}, {asked if speaker == asker else asker} has not yet"
            )
            words = _of_answer(event, event.speaker, f"{turn} of {max_turns}" if max_turns else turn)
            return words._replace(step=f"{turn} of {speaker}", after=after)
        case facts.LoopEnded():
            limit = "" if event.limit is None else f" ({event.limit})"
            # Programs read these words, and a log of the first release has to read as it did there: `1 turns`.
            brief = f"{event.reason}{limit} after {event.turns} turns{_note(event.note)}"
            how = loop_end(event.reason, event.turns, event.limit, event.note)
            why = LOOP_ENDS[event.reason]
            after = f"after the loop: it ended after {counted(event.turns, 'turn')}, {why}"
            return Words(None, None, brief, how, step=f"the loop ends: {why}", after=after)
        case facts.AnnounceRequested() | facts.AnnounceDecided():
            return _of_announce(event, named)
        case facts.HoldRequested() | facts.HoldWithdrawn() | facts.ExchangeHeld() | facts.ExchangeReleased():
            return _of_hold(event, named)
        case facts.ExchangeClosed():
            return _of_close(event, f"{asker} and {asked} are done")


def _of_hold(
    event: facts.HoldRequested | facts.HoldWithdrawn | facts.ExchangeHeld | facts.ExchangeReleased,
    named: Naming,
) -> Words:
    match event:
        case facts.HoldRequested():
            what = HELD_BEFORE[event.before]
            return Words(event.by, None, f"hold before {event.before}", f"wants it held before {what}")
        case facts.HoldWithdrawn():
            return Words(event.by, None, "hold withdrawn", "wants it held no more")
        case facts.ExchangeHeld():
            note = _note(event.note)
            what, speaker = HELD_TEXTS[event.step], named(event.speaker)
            return Words(
                event.speaker, event.to, f"{event.step} held by {event.by}{note}: {event.text or OF_RUN}",
                f"Held: {what} waits for a release, as {event.by} wants{note}.",
                step=f"{what} of {speaker} is held",
                after=f"held: {what} of {speaker} waits for a release",
            )  # fmt: skip
        case facts.ExchangeReleased():
            brief = event.action if event.text is None else f"{event.action}: {event.text}"
            how = RELEASES[event.action]
            return Words(
                event.by, None, brief, how, event.text, "note" if event.text is None else "said",
                step=f"a release ({event.action})",
                after=f"after the release: whoever released it {how}",
            )  # fmt: skip


def of_spawn(event: facts.SpawnEvent, sides: Sides, named: Naming) -> Words:  # noqa: C901 - one case an event
    """Return an event of a spawn in words."""
    asker, child = sides
    match event:
        case facts.SpawnAccepted():
            return Words(
                asker_of(event), event.child, event.task or OF_RUN, "spawns a sub-agent", event.task, "said",
                step=f"{asker} spawns {child}",
                after=f"after the start: {asker} has spawned {child}, which has not ended its task yet",
            )  # fmt: skip
        case facts.ChildEnded():
            ok = event.status == "ok"
            how = f"{child} has done its task" if ok else f"the task of {child} {STATUSES[event.status]}"
            return _of_answer(event, None, "ends its task")._replace(
                step=f"{child} ends its task" if ok else f"the task of {child} {STATUSES[event.status]}",
                after=f"after the task: {how}, and nobody has been told yet",
            )
        case facts.AnnounceRequested() | facts.AnnounceDecided():
            return _of_announce(event, named)
        case facts.ResultHanded():
            brief = f"result, {f'run {event.run_id}' if event.limit is None else f'no run: {event.limit}'}"
            return Words(
                None, event.requester, brief, "hands over the result", kind="said",
                step=f"the result is handed to {asker}",
                after=f"after the result was handed over: {asker} has it, and has not answered yet",
            )  # fmt: skip
        case facts.SpawnClosed():
            return _of_close(event, f"the spawn of {child} is over")
        case facts.ChildArchived():
            return Words(
                None, event.child, event.reason, f"left the list ({event.reason}); its record stays",
                step=f"{child} leaves the list: {ARCHIVALS[event.reason]}",
                after=f"after the end of {child}: it has left the list, for {ARCHIVALS[event.reason]}",
            )  # fmt: skip
        case facts.ThreadOpened():
            if event.withheld:
                how = f"would have a thread of its own in {event.route.channel}: the channels of a fork are sealed"
                return Words(None, None, f"would open a thread in {event.route.channel}", how)
            place = route_text(event.route)
            return Words(None, None, f"thread {place}", f"has a thread of its own: {place}")
        case facts.AttachmentsReady():
            files, size, place = f"{event.count} files", f"{event.total_bytes} bytes", event.directory
            if event.withheld:
                how = f"would have {files} ({size}): a fork does not have their contents"
                return Words(None, None, f"{files}, {size}, not in this fork", how)
            return Words(None, None, f"{files}, {size}, in {place}", f"has {files} ({size}) in {place}")
        case facts.AttachmentsRemoved():
            how = f"has no files any more in {event.directory}"
            return Words(None, None, f"files removed from {event.directory}", how)
        case facts.AttachmentRemovalFailed():
            where = f"{event.directory}: {event.error}"
            return Words(None, None, f"files not removed from {where}", f"keeps its files in {where}")


def _of_answer(event: facts.TurnEnded | facts.ChildEnded, who: str | None, how: str) -> Words:
    """Return how a run of a flow ended: with a text for the other side, or without."""
    if event.status != "ok":
        brief = f"{event.status}: {event.error or event.text or NO_TEXT}"
        error = f": {event.error}" if event.error else ""
        return Words(who, None, brief, f"{STATUSES[event.status]}{error}", event.text)
    if event.text is None and event.said != "nothing":
        return Words(who, None, OF_RUN, how, kind="said")
    if event.text is None:
        return Words(who, None, NO_TEXT, f"{how}: answers without a text")
    return Words(who, None, event.text or NO_TEXT, how, event.text, "said")


def _of_announce(event: facts.AnnounceRequested | facts.AnnounceDecided, named: Naming) -> Words:
    match event:
        case facts.AnnounceRequested():
            of = named(event.speaker)
            after = f"at the announce: {of} has been asked for it, and has not answered yet"
            return Words(None, event.speaker, "announce", step=f"the announce is asked of {of}", after=after)
        case facts.AnnounceDecided():
            step, after = "the announce is decided", "after the announce was decided"
            if event.silent:
                # An exchange says of the turn that failed which run it was.
                asked = event.why != "run_failed" or event.run_id is not None
                why = SILENCES[event.why] if asked else "the announce turn could not be asked for"
                how = f"Nothing is announced: {why}."
                after = f"{after}: nothing is announced, {why}"
                return Words(None, None, event.why, how, step=step, after=after)
            how = "announces" if event.edited_by is None else f"announces, in the words of {event.edited_by}"
            after = f"{after}: there is a text to announce"
            return Words(None, None, event.text or OF_RUN, how, event.text, "said", step, after)


def _of_close(event: facts.ExchangeClosed | facts.SpawnClosed, over: str) -> Words:
    """Return why a flow is over. Its `how` is the reason alone, for a story that says which flow it is."""
    reason = event.reason
    how = closed(reason, limit=event.limit)
    brief, after = f"{reason}{_note(event.note)}", f"after the end: {over}, {how}"
    return Words(None, None, brief, how, kind="end", step=f"the end: {how}", after=after)


def _has(speaker: str, event: facts.TurnEnded) -> str:
    if event.status != "ok":
        return f"{speaker} has not answered: it {STATUSES[event.status]}"
    return f"{speaker} has answered" if event.said != "nothing" else f"{speaker} has answered without a text"


def _note(note: str | None) -> str:
    return "" if note is None else f", {plain_note(note)}"
