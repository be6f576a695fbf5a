"""The rules and effects of tool calls that wait for a release (ASK). Pure."""

from collections.abc import Collection, Sequence
from typing import Final

from intersession_actors.owners.session.commands import CallDue, HoldCall, ReleaseCall
from intersession_actors.owners.session.state import HeldCall, Session, is_current
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.effects import (
    DropStopwatch,
    Effect,
    Sleep,
    StartStopwatch,
    StopTimer,
    TellSession,
    Until,
)
from intersession_actors.owners.streams.world import ForkOf
from intersession_events import facts

MOST_HELD: Final = 64
"""How many calls of one run may wait for a release at a time."""


def decide_hold(state: Session, command: HoldCall) -> list[facts.Event] | Refused:
    """Return the hold of a call; none if an earlier attempt's call with the same content was held."""
    held = command.held
    if not is_current(state, held.run_id, held.attempt):
        return Refused(code="invalid_request", error="run: this attempt is over, stop working on it")
    if any(one.held.hold_id == held.hold_id for one in state.held):
        return []
    if len(state.held_open) >= MOST_HELD:
        error = f"tool: {MOST_HELD} calls of this run wait for a release already, wait for those first"
        return Refused(code="busy", error=error)
    return [held]


def decide_release(state: Session, command: ReleaseCall) -> list[facts.Event] | Refused:
    """Return the release of a call; none for a repeated one."""
    found = next((one for one in state.held if one.held.hold_id == command.hold_id), None)
    if found is None:
        return Refused(code="invalid_request", error="holdId: its run is over, so it waits for no release")
    action = command.action
    if found.released is None:
        return [_released(found, action, by=command.by, arguments=command.arguments, text=command.text)]
    before = found.released
    if (before.action, before.arguments, before.text) == (action, command.arguments, command.text):
        return []
    error = f"holdId: the call was released before, by {before.by or 'time'} ({before.action})"
    return Refused(code="invalid_request", error=error)


def decide_due(state: Session, command: CallDue) -> list[facts.Event]:
    """Return the refusal of a call that nobody released in time."""
    return [_released(one, "expired") for one in state.held_open if one.held.hold_id == command.hold_id]


def calls_over(state: Session, run_ids: Collection[str]) -> tuple[facts.Event, ...]:
    """Return the end of all holds of runs that end."""
    return tuple(_released(one, "ended") for one in state.held_open if one.held.run_id in run_ids)


def _released(
    of: HeldCall,
    action: facts.CallRelease,
    *,
    by: str | None = None,
    arguments: str | None = None,
    text: str | None = None,
) -> facts.ToolCallReleased:
    held = of.held
    return facts.ToolCallReleased(
        run_id=held.run_id,
        attempt=held.attempt,
        hold_id=held.hold_id,
        tool=held.tool,
        action=action,
        by=by,
        arguments=arguments,
        text=text,
    )


def call_held(key: str, held: facts.ToolCallHeld, since_ms: int, fork: ForkOf) -> Sequence[Effect]:
    """Return the effects that refuse a held call when its time is over."""
    if not held.timeout_ms:
        return ()
    name = ("held", held.hold_id)
    until = Until(name, fork.begun(since_ms), held.timeout_ms)
    due = TellSession(key, CallDue(hold_id=held.hold_id))
    return StartStopwatch(name), Sleep(name, due, until=(until,))


def still_held(key: str, state: Session, fork: ForkOf) -> Sequence[Effect]:
    """Return the effects of all calls that are held in a session that wakes."""
    return [
        effect
        for one in state.held_open
        for effect in call_held(key, one.held, one.since_ms, fork)
        if not isinstance(effect, StartStopwatch)  # this process has not seen it begin
    ]


def call_released(released: facts.ToolCallReleased) -> Sequence[Effect]:
    """Return the effects of a release."""
    name = ("held", released.hold_id)
    return StopTimer(name), DropStopwatch(name)
