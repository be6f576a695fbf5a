"""The edits of a fork: valid combinations, the event that each replaces, and how it is written (FORK-4).

An edit is written into the fork before it is opened, in one append with the event that says so. What follows from it the actors
decide, as after a crash.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from intersession_actors.hindsight.forking.cutting import appended_with
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import IDENTITY, MESSAGE, PLACE
from intersession_actors.rules.gate.values import is_storable
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.views.run_outcomes.runs import Runs

REPLACING: Final = frozenset({"reply", "message", "skip", "drop"})
_ANSWERING: Final = frozenset({"reply", "skip", "drop"})
_KINDS: Final[tuple[str, ...]] = get_args(facts.EditKind)


class Replaced(NamedTuple):
    """The target of an edit: the events of one append, and the run that they end or queue."""

    events: tuple[Recorded, ...]
    run_id: str
    session_key: str

    @property
    def cut(self) -> int:
        """The position before it."""
        return self.events[0].position - 1


def check_edits(edits: Sequence[facts.ForkEdit]) -> None:
    """Refuse edits that don't go together, or are incomplete.

    Raises:
        ToolRefused: two of them replace the same event, one says not what, or is nothing that can be recorded.
    """
    if isinstance(edits, str) or not isinstance(edits, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise _refused("edits: they are no list, give [ForkEdit(kind=…, value=…)]")
    for edit in edits:
        _check_texts(edit)
    replacing = [edit.kind for edit in edits if edit.kind in REPLACING]
    if len(replacing) > 1:
        named = " and ".join(f"--{kind}" for kind in replacing)
        raise _refused(
            f"{named}: both replace the event of the place, give one of them; fork the fork for another place"
        )
    for edit in edits:
        if edit.kind in {"reply", "message", "inject"} and not edit.value.strip():
            raise _refused(f"--{edit.kind}: its text is blank, give one, or use --skip or --drop")
        if edit.kind in {"agent", "set", "inject"} and not edit.key:
            raise _refused(f"--{edit.kind}: say which, as NAME=VALUE")


def _check_texts(edit: facts.ForkEdit) -> None:
    """Refuse what a caller gave in the place of an edit or of its texts: `facts` are made of anything."""
    if not isinstance(edit, facts.ForkEdit):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _refused(f"edits: {type(edit).__name__} is no edit, give ForkEdit(kind=…, value=…)")
    if edit.kind not in _KINDS:
        raise _refused(f"edits: there is no kind {str(edit.kind)[:64]!a}, use one of {', '.join(_KINDS)}")
    for field, text, most in (
        ("key", edit.key, IDENTITY.most),
        ("place", edit.place, PLACE.most),
        ("value", edit.value, MESSAGE.most),
    ):
        what = f"--{edit.kind}: its {field}"
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
            raise _refused(f"{what} is no text, give one")
        if len(text) > most:
            raise _refused(f"{what} is too long, give at most {most} characters")
        if not is_storable(text):
            raise _refused(f"{what} is not valid Unicode (a lone surrogate), give valid text")


def replaced_by(log: Log, edit: facts.ForkEdit, position: int, what: str) -> Replaced:
    """Return the target of an edit at a resolved place; `what` is the place as it was typed.

    Raises:
        ToolRefused: this edit can't replace the event there. The refusal says what would do.
    """
    named = next(iter(log.all(after=position - 1, to=position)), None) if position > 0 else None
    if named is None:
        raise _refused(f"at: {what} is before the first event, there is nothing to replace")
    if edit.kind in _ANSWERING:
        run_id = _answered_in(named) or _announced_by(log, named)
        if run_id is None:
            raise _refused(
                f"--{edit.kind}: it replaces an answer, and {what} is {_topic(named)}; "
                "give RUN@reply, RUN@turn:N or RUN@announce, or use --message at RUN@start"
            )
        return _of_end(log, edit, run_id, what)
    together = appended_with(log, position)
    queued = next((one for one in together if isinstance(one.event, facts.RunQueued)), None)
    asked = isinstance(named.event, facts.FlowAccepted | facts.TurnRequested | facts.RunQueued)
    if queued is None or not asked or not isinstance(queued.event, facts.RunQueued):
        raise _refused(
            f"--message: it replaces a message that is answered, and {what} is {_topic(named)}; "
            "give RUN@start, or use --reply at a turn"
        )
    return Replaced(together, queued.event.run_id, queued.stream.partition(":")[2])


def _answered_in(named: Recorded) -> str | None:
    found = (_answered_by(part) for part in facts.parts_of(named.event))
    return next((run_id for run_id in found if run_id is not None), None)


def _answered_by(event: facts.Event) -> str | None:
    match event:
        case (
            facts.FlowAnswered(run_id=run_id)
            | facts.RunCompleted(run_id=run_id)
            | facts.RunFailed(run_id=run_id)
        ):
            return run_id
        case facts.AnnounceDecided(run_id=str() as run_id):
            return run_id
        case event:
            message = facts.message_in(event)
            return message.run_id if message is not None and message.role == "assistant" else None


def _announced_by(log: Log, named: Recorded) -> str | None:
    """Return the run whose text is announced, if the decision does not name it: that of a spawn names none."""
    if not any(isinstance(part, facts.AnnounceDecided) for part in facts.parts_of(named.event)):
        return None
    before = parts_in(log.stream(named.stream, to=named.version, backwards=True))
    return next((one.event.run_id for one in before if isinstance(one.event, facts.AnnounceRequested)), None)


def _of_end(log: Log, edit: facts.ForkEdit, run_id: str, what: str) -> Replaced:
    run = Runs(log).get(run_id)
    events = (
        () if run is None else log.stream(ids.session_stream(run.session_key), after=run.first_version - 1)
    )
    for recorded in events:
        if isinstance(recorded.event, facts.RunEnd) and recorded.event.run_id == run_id:
            return Replaced(appended_with(log, recorded.position), run_id, recorded.stream.partition(":")[2])
    raise _refused(
        f"--{edit.kind}: the log does not have the run that answered at {what}; fork before it and give --agent"
    )


def _topic(named: Recorded) -> str:
    return f"{named.topic.partition('.')[0]} (position {named.position})"


def _refused(error: str) -> ToolRefused:
    return ToolRefused("invalid_request", error)
