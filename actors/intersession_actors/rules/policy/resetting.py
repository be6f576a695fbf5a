"""When a conversation begins anew: by an owner's command, daily, or after a silence. Pure (RESET)."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from intersession_actors.rules.config.session import Reset, SessionSettings
from intersession_events.facts import ChatType, ready

_MINUTE_MS: Final = 60_000


@ready
class Renewal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How a person's message can begin its session anew: settings in force, or an owner's command.

    `day_began_ms` is when the present day of resets began (None: not daily), `idle_ms` the silence after which a
    conversation is over (None: never). `command` is the owner's, such as `/new`, and `by` the owner.
    """

    day_began_ms: int | None = None
    idle_ms: int | None = None
    command: str | None = None
    by: str | None = None


class Due(NamedTuple):
    """Why a conversation is over, and since when (milliseconds)."""

    reason: str
    at_ms: int


def renewal_of(
    session: SessionSettings, *, chat_type: ChatType, in_thread: bool, channel: str, now_ms: int
) -> Renewal | None:
    """Return what the settings say of a chat's session; None if they never begin it anew (RESET-1)."""
    reset = _reset_of(session, chat_type, channel, in_thread=in_thread)
    idle = reset.idle_minutes if reset.idle_minutes is not None else session.idle_minutes
    mode = reset.mode or ("daily" if reset.at_hour is not None else None)
    idle_ms = round(idle * _MINUTE_MS) if idle else None
    if mode != "daily":
        return None if idle_ms is None else Renewal(idle_ms=idle_ms)
    zone = reset.tz or session.reset.tz or "UTC"
    return Renewal(
        day_began_ms=day_began(now_ms, 4 if reset.at_hour is None else reset.at_hour, zone), idle_ms=idle_ms
    )


def _reset_of(session: SessionSettings, chat_type: ChatType, channel: str, *, in_thread: bool) -> Reset:
    """Return a channel's own settings, else the kind's over the general ones."""
    own = session.reset_by_channel.get(channel)
    if own is not None:
        return own
    kinds = session.reset_by_type
    kind = kinds.thread if in_thread else kinds.direct if chat_type == "direct" else kinds.group
    if kind is None:
        return session.reset
    given = {name: value for name in Reset.__struct_fields__ if (value := getattr(kind, name)) is not None}
    return msgspec.structs.replace(session.reset, **given)


def day_began(now_ms: int, hour: int, zone: str) -> int:
    """Return the last time (ms) at which it was this hour in a zone.

    An hour that the clocks skip counts as the moment of the change; of one that they repeat the first counts.
    """
    where: tzinfo = UTC if zone == "UTC" else ZoneInfo(zone)
    today = datetime.fromtimestamp(now_ms / 1000, where).date()
    for back in range(3):
        day = today - timedelta(days=back)
        at = datetime(day.year, day.month, day.day, hour, tzinfo=where).astimezone(UTC)
        began = round(at.timestamp() * 1000)
        if began <= now_ms:
            return began
    raise AssertionError(zone)  # no zone is two days behind itself


def due(renewal: Renewal, *, began_ms: int, said_ms: int, now_ms: int) -> Due | None:
    """Return why a conversation is over by the clock; the earlier of two reasons. None: it goes on (RESET-2).

    It began at `began_ms`, and a person spoke last at `said_ms`, 0 if none has.
    """
    found: list[Due] = []
    if renewal.day_began_ms is not None and began_ms < renewal.day_began_ms:
        found.append(Due("daily", renewal.day_began_ms))
    if renewal.idle_ms is not None and (quiet_since := max(said_ms, began_ms) + renewal.idle_ms) < now_ms:
        found.append(Due("idle", quiet_since))
    return min(found, key=lambda one: one.at_ms, default=None)


class ResetCommand(NamedTuple):
    """An owner's command to begin anew, and the text behind it."""

    command: str
    rest: str


def parse_reset(text: str, triggers: Collection[str]) -> ResetCommand | None:
    """Return the command that a message begins with, in any case of its letters; None if it is text (RESET-3)."""
    word, *rest = text.split(maxsplit=1) or [""]
    known = {trigger.casefold(): trigger for trigger in triggers}
    trigger = known.get(word.casefold())
    return None if trigger is None else ResetCommand(trigger, "".join(rest).strip())
