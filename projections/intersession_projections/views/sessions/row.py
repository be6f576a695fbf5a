"""One row of the session list, and how each event changes it. Pure."""

from typing import Final, Literal

import msgspec

from intersession_events.facts import (
    ArchiveReason,
    ChatType,
    OpenedBy,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionPatched,
    SessionReset,
    ThreadBound,
    ThreadUnbound,
    message_in,
    ready,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.columns import Packing

RunState = Literal["idle", "queued", "running"]
SendOverride = Literal["allow", "deny"]

_OTHERS = {
    "reasoningLevel": "reasoning_level",
    "elevatedLevel": "elevated_level",
    "responseUsage": "response_usage",
    "groupActivation": "group_activation",
}
"""Those settings that an import carries as they are."""

_SETTINGS = {
    "sendPolicy": "send_policy",
    "label": "label",
    "displayName": "display_name",
    "model": "model",
    "thinkingLevel": "thinking_level",
    "verboseLevel": "verbose_level",
    "queueMode": "queue_mode",
    **_OTHERS,
}
"""Names of `sessions.patch` that the list shows, and the fields that hold them. Others pass by unseen."""


@ready
class SessionRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as the list shows it (LIST-5), with the fields that rules need.

    `updated_at` in ms never falls (LIST-3). `model_override` is what a patch or the opening set, `model` what
    is in force or was last used. `position` and `version` are those of the last event that changed the row;
    each recorded message does. `context_tokens` is the window of the model that ran last, `filled` how many percent of what there is
    room for in it were said then: from 100 on the oldest messages are left out (CTX-2). `queued` counts accepted runs that wait, `running` is the run at work.
    """

    key: str
    session_id: str
    agent_id: str
    opened_by: OpenedBy
    updated_at: int
    position: int
    version: int
    chat_type: ChatType | None = None
    channel: str | None = None
    model: str | None = None
    model_override: str | None = None
    context_tokens: int | None = None
    total_tokens: int | None = None
    thinking_level: str | None = None
    verbose_level: str | None = None
    reasoning_level: str | None = None
    elevated_level: str | None = None
    response_usage: str | None = None
    group_activation: str | None = None
    system_sent: bool = False
    aborted_last_run: bool = False
    queued: int = 0
    running: str | None = None
    display_name: str | None = None
    label: str | None = None
    send_policy: SendOverride | None = None
    last_channel: str | None = None
    last_to: str | None = None
    route: Route | None = None
    spawned_by: str | None = None
    spawn_depth: int = 0
    sandboxed: bool = False
    archived: ArchiveReason | None = None
    original_key: str | None = None
    filled: int | None = None
    queue_mode: str | None = None

    @property
    def run_state(self) -> RunState:
        """Whether the session runs something now, has something waiting, or neither."""
        if self.running is not None:
            return "running"
        return "queued" if self.queued > 0 else "idle"


STORED: Final = Packing(SessionRow, apart=("key", "position"), nested={"route": Route})
"""How a row is stored: its key and its position have columns of their own."""


def evolve_row(row: SessionRow | None, key: str, recorded: Recorded) -> SessionRow | None:
    """Return the row after an event of the session's stream; the same object if the event doesn't touch it.

    None stays None until the session is opened.
    """
    event = recorded.event
    if isinstance(event, SessionOpened):
        return _opened(row, key, recorded, event)
    if row is None:
        return None
    changed = _changed(row, recorded)
    if changed.position == recorded.position or changed is row:
        return changed
    return msgspec.structs.replace(changed, position=recorded.position, version=recorded.version)


def _opened(row: SessionRow | None, key: str, recorded: Recorded, event: SessionOpened) -> SessionRow:
    """Return the row of a session that begins.

    A key that was archived can be opened again: the new session takes nothing over but the clock. An imported one is
    as old as its entry and its messages say, not as the import.
    """
    floor = row.updated_at if row is not None else 0
    return SessionRow(
        key=key,
        session_id=event.session_id,
        agent_id=event.agent_id,
        opened_by=event.opened_by,
        updated_at=floor if event.opened_by == "import" else max(floor, recorded.time),
        position=recorded.position,
        version=recorded.version,
        chat_type=event.chat_type,
        channel=event.channel,
        model=event.model,
        model_override=event.model,
        thinking_level=event.thinking_level,
        verbose_level=event.verbose_level,
        display_name=event.display_name,
        label=event.label,
        spawned_by=event.spawned_by,
        spawn_depth=event.spawn_depth,
        sandboxed=event.sandboxed,
        original_key=event.original_key,
    )


def _changed(row: SessionRow, recorded: Recorded) -> SessionRow:
    event = recorded.event
    replace = msgspec.structs.replace
    # What is imported may be older than what is here; a session must not move down the list for that (LIST-3).
    touched = max(row.updated_at, recorded.time)
    if message_in(event) is not None:
        # A new row even where the clock stood still: its version is the index of the last message.
        row = replace(row, updated_at=touched, position=recorded.position, version=recorded.version)
    match event:  # the most frequent first: each kind is asked for in turn
        case RunQueued() | RunStarted() | RunInterrupted() | RunCompleted() | RunFailed() | RunAborted():
            return _after_run_event(row, event)
        case SessionPatched():
            return _patched(replace(row, updated_at=touched), event)
        case RouteChanged():
            return replace(
                row,
                route=event.route,
                last_channel=event.route.channel,
                last_to=event.route.to,
                display_name=event.display_name or row.display_name,
                chat_type=event.chat_type or row.chat_type,
            )
        case SessionReset():
            return replace(
                row,
                session_id=event.session_id,
                updated_at=touched,
                total_tokens=None,
                filled=None,
                system_sent=False,
                aborted_last_run=False,
            )
        case SessionArchived() if event.session_id == row.session_id:
            return replace(row, archived=event.reason)
        case ThreadBound():
            return replace(row, route=event.route, last_channel=event.route.channel, last_to=event.route.to)
        case ThreadUnbound() if event.route == row.route:
            return replace(row, route=None, last_channel=None, last_to=None)
        case SessionImported():
            return _imported(row, event)
        case _:
            return row


def _patched(row: SessionRow, event: SessionPatched) -> SessionRow:
    changes: dict[str, str | None] = {_SETTINGS[name]: None for name in event.cleared if name in _SETTINGS}
    changes.update((_SETTINGS[name], value) for name, value in event.values.items() if name in _SETTINGS)
    if "model" in changes:
        changes["model_override"] = changes["model"]
    return msgspec.structs.replace(row, **changes)


def _imported(row: SessionRow, event: SessionImported) -> SessionRow:
    others = {_OTHERS[name]: value for name, value in event.other_settings.items() if name in _OTHERS}
    return msgspec.structs.replace(
        row,
        **others,
        session_id=event.session_id,
        updated_at=max(row.updated_at, event.updated_at),
        model=event.model_override or event.model or row.model,
        model_override=event.model_override or row.model_override,
        context_tokens=event.context_tokens,
        total_tokens=event.total_tokens,
        thinking_level=event.thinking_level or row.thinking_level,
        verbose_level=event.verbose_level or row.verbose_level,
        send_policy=event.send_policy,
        label=event.label or row.label,
        display_name=event.display_name or row.display_name,
        channel=event.channel or row.channel,
        last_channel=event.last_channel,
        last_to=event.last_to,
        route=event.route,
        spawned_by=event.spawned_by or row.spawned_by,
        system_sent=event.system_sent,
        aborted_last_run=event.aborted_last_run,
    )


def _after_run_event(  # noqa: C901 - one case an event
    row: SessionRow, event: RunQueued | RunStarted | RunInterrupted | RunCompleted | RunFailed | RunAborted
) -> SessionRow:
    replace = msgspec.structs.replace
    match event:
        case RunQueued():
            return replace(row, queued=row.queued + 1)
        case RunStarted():
            if row.running == event.run_id:
                return _reckoned(row, event)
            # Not below 0: the view may have set the event aside that queued the run (J3).
            row = replace(row, queued=max(0, row.queued - 1), running=event.run_id, system_sent=True)
            return _reckoned(row, event)
        case RunInterrupted():
            if row.running != event.run_id:
                return row
            return replace(row, queued=row.queued + 1, running=None)
        case RunCompleted():
            row = _ended(row, event.run_id)
            if event.covers is not None:
                return row  # a summary is no use of the session's model by what was said
            return replace(
                row,
                aborted_last_run=False,
                model=event.model or row.model,
                total_tokens=row.total_tokens if event.usage is None else event.usage.tokens,
            )
        case RunFailed():
            return replace(_ended(row, event.run_id), aborted_last_run=False)
        case RunAborted(into=None):
            return replace(_ended(row, event.run_id), aborted_last_run=True)
        case RunAborted():
            return _ended(row, event.run_id)


def _reckoned(row: SessionRow, event: RunStarted) -> SessionRow:
    """Note the window of the model that runs, and how full it is; logs written before do not say it."""
    if event.context_tokens is None or not event.words or event.covers is not None:
        return row
    filled = (event.used or 0) * 100 // event.words
    return msgspec.structs.replace(row, context_tokens=event.context_tokens, filled=filled)


def _ended(row: SessionRow, run_id: str) -> SessionRow:
    if row.running == run_id:
        return msgspec.structs.replace(row, running=None)
    return msgspec.structs.replace(row, queued=max(0, row.queued - 1))
