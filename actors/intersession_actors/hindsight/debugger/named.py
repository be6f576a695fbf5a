"""Resolves names that commands print: short names of sessions, and beginnings of ids."""

import re
from typing import Final

from intersession_actors.calls.service.reader import Reader
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.references import IdReference, KeyReference, LookupMiss, parse_agent_id
from intersession_events.basics.keys.short_names import short_name
from intersession_projections.questions.known_names import KnownNames, near
from intersession_projections.questions.places.grammar import UnknownPlace
from intersession_projections.questions.places.runs_named import FEWEST, RunNames, Sees
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.sessions.names import SessionNames
from intersession_projections.views.sessions.row import SessionRow

_LOOKED_AT: Final = 2_000
_HEX: Final = re.compile(r"[0-9a-f]{8}", re.IGNORECASE)


def session_named(
    reader: Reader, typed: str, *, field: str, by_label: bool = True, sees: Sees | None = None
) -> str:
    """Return the key of the named session, archived or not, for a reader of certain sessions (None: all).

    It is a key in any form, a session id or its beginning, the short name that lists and stories print (`research`,
    `main/detour`, `main/subagent:54f1abcd`), or else the label of a session (`detour`), of archived ones where no other has it:
    agents give labels, so leave that out for what can't be had back.

    For a reader of certain sessions, one that is there and not seen takes the way of one that is not there, so that neither words nor
    time tell of it; such a reader is not told what resembles a name, either.

    Raises:
        ToolRefused: there is no such session (`not_visible`), several are meant (`ambiguous_label`), or it is no key
            (`invalid_key`).
    """
    try:
        reference = reader.config.refer(typed)
    except InvalidKey as error:
        if (found := _by_shown_name(reader, typed, field, sees, by_label=by_label)) is not None:
            return found
        raise ToolRefused("invalid_key", f"{field}: {error}") from None
    match reference:
        case KeyReference(key=key) if reader.sessions.get(str(key)) is not None and _is_seen(str(key), sees):
            return str(key)
        case IdReference(text=session_id):
            whole = reader.sessions.session_ids(session_id, 2) if len(session_id) >= FEWEST else []
            named = reader.sessions.by_session_id(whole[0] if len(whole) == 1 else session_id)
            if named is not None and _is_seen(named.key, sees):
                return named.key
        case KeyReference() | LookupMiss():
            pass
    if (shown := _by_shown_name(reader, typed, field, sees, by_label=by_label)) is not None:
        return shown
    alike = alike_sessions(reader, typed) if sees is None else ""
    raise ToolRefused(
        "not_visible",
        f"{field}: no session is called {typed[:128]!r}{alike}, `intersession sessions` shows what there is",
    )


def _is_seen(key: str, sees: Sees | None) -> bool:
    return sees is None or sees(key)


def near_sessions(reader: Reader, typed: str) -> tuple[str, ...]:
    """Return the short names or keys of the latest updated sessions that resemble a text."""
    keys = KnownNames(reader.log).sessions(_LOOKED_AT)
    return near(typed.strip(), [*dict.fromkeys((*SessionNames(reader.log).of(keys).values(), *keys))])


def alike_sessions(reader: Reader, typed: str) -> str:
    """Return what a refusal of a name says of the sessions that resemble it; nothing where none does."""
    alike = near_sessions(reader, typed)
    return f" (there is {', '.join(alike)})" if alike else ""


def as_key(reader: Reader, typed: str) -> str:
    """Return the key for a session's short name, a label, or the beginning of an id; other texts unchanged."""
    if not _is_known(reader, typed) and (shown := _by_shown_name(reader, typed, "session", None)) is not None:
        return shown
    whole = reader.sessions.session_ids(typed, 2) if len(typed) >= FEWEST else []
    return whole[0] if len(whole) == 1 else typed


def run_named(reader: Reader, typed: str) -> str:
    """Return the id of the exchange, spawn or run whose id begins so; other texts unchanged.

    Raises:
        ToolRefused: several begin so (`invalid_request`); it names them.
    """
    try:
        return RunNames(reader.log).named(typed, field="run")
    except UnknownPlace as error:
        if error.candidates:
            raise ToolRefused("invalid_request", str(error)) from None
        return typed.strip()


def run_meant(reader: Reader, typed: str) -> RunOutcome | None:
    """Return the named run; of an exchange or a spawn the one that it waits for, else its first.

    Raises:
        ToolRefused: several begin so (`invalid_request`); it names them.
    """
    name = run_named(reader, typed)
    flow = reader.flows.exchange(name) or reader.flows.spawn(name)
    return reader.runs.get(name if flow is None else flow.awaits or flow.run_id)


def delivery_named(reader: Reader, typed: str) -> str:
    """Return the id of a delivery, given its beginning.

    Raises:
        ToolRefused: there is none, or several begin so (`invalid_request`).
    """
    typed = typed.strip().removeprefix("delivery:")
    return _one(typed, reader.flows.delivery_ids(typed, 2), "delivery", "intersession deliveries")


def _one(typed: str, found: list[str], what: str, shown_by: str) -> str:
    if typed in found:
        return typed
    if len(found) == 1 and len(typed) >= FEWEST:
        return found[0]
    if found:
        raise ToolRefused(
            "invalid_request",
            f"{typed[:128]!r}: several begin so, give more of the id; `{shown_by}` shows them",
        )
    raise ToolRefused(
        "invalid_request", f"no {what} is called {typed[:128]!r}, `{shown_by}` shows what there is"
    )


def _by_shown_name(
    reader: Reader, typed: str, field: str, sees: Sees | None, *, by_label: bool = True
) -> str | None:
    """Return the session whose name a text is; else the one that has it as its label, else the one whose name begins so."""
    typed = typed.strip()
    names = {key: name for key, name in _short_names(reader, typed).items() if _is_seen(key, sees)}
    found = [key for key, short in names.items() if short == typed]
    if not found and by_label:
        found = [row.key for row in _labelled(reader, typed) if _is_seen(row.key, sees)]
        if len(found) > 1:
            raise ToolRefused(
                "ambiguous_label",
                f"{field}: several sessions have the label {typed[:128]!r}: {', '.join(found)}",
            )
    if not found and len(typed.partition("/")[2]) >= FEWEST:
        found = [key for key, short in names.items() if short.startswith(typed)]
    if len(found) > 1:
        raise ToolRefused(
            "ambiguous_label", f"{field}: several sessions are called {typed!r}: {', '.join(found)}"
        )
    return found[0] if found else None


def _labelled(reader: Reader, typed: str) -> list[SessionRow]:
    """Return the sessions that a label means; as a sub-agent is called by it (`main/detour`), those of that agent."""
    found = reader.sessions.named_by(typed)
    agent, _, label = typed.partition("/")
    if found or not label:
        return found
    try:
        return reader.sessions.named_by(label, parse_agent_id(agent))
    except InvalidKey:
        return []


def _short_names(reader: Reader, typed: str) -> dict[str, str]:
    """Return the short names, by their keys, that a text may be, or begin; of an agent alone that of its main session."""
    agent, _, rest = typed.partition("/")
    try:
        agent_id = parse_agent_id(agent)
    except InvalidKey:
        return {}
    if not rest:
        main = str(reader.main_key(agent_id))
        there = reader.sessions.get(main) is not None or agent_id in reader.config.agent_ids
        return {main: typed} if there else {}
    # As far as the short name is the key's own text: behind the first id of a key, something is left out.
    first_id = _HEX.search(rest)
    own = rest if first_id is None else rest[: first_id.end()]
    return {key: short_name(key) for key in reader.sessions.keys_beginning(f"agent:{agent_id}:{own}")}


def _is_known(reader: Reader, typed: str) -> bool:
    """Whether a text names a session that is there, without being a short name."""
    try:
        reference = reader.config.refer(typed)
    except InvalidKey:
        return False
    match reference:
        case KeyReference(key=key):
            return reader.sessions.get(str(key)) is not None
        case IdReference(text=session_id):
            return reader.sessions.by_session_id(session_id) is not None
        case LookupMiss():
            return False
