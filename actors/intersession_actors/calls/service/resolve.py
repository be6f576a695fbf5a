"""Resolves a caller's name for a session, or refuses it: the one way, for every tool (KEY-5, HIST-6)."""

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from intersession_actors.calls.service.callers import AccessSummary, Caller
from intersession_actors.calls.service.reader import Reader
from intersession_actors.rules.errors import Judgement, RefusalCode, ToolRefused
from intersession_actors.rules.policy.access import (
    Operation,
    Requester,
    SeeSession,
    Sight,
    closed,
    judge_access,
    not_visible,
)
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import IdReference, KeyReference, LookupMiss, parse_agent_id
from intersession_events.basics.plain_json import JsonMapping
from intersession_projections.views.sessions.row import SessionRow

if TYPE_CHECKING:
    from intersession_actors.calls.service.service import Service  # which loads what writes


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was found and is allowed. `shown` is its key as the requester sees it.

    `session_id` is the generation that was authorised, and what is done is bound to it; `row` is the session as it
    stands, at the position asked for. Both are None for a main session that the call may open (SEND-2).
    `caller` is the session that asks, where it was looked at with the other. `generation_only`: an earlier generation or an archived session, which can be read and nothing else. `judged` is what was asked
    and known of it.
    """

    key: SessionKey
    shown: str
    session_id: str | None
    row: SessionRow | None
    caller: SessionRow | None = None
    generation_only: bool = False
    judged: Judgement | None = None


class TargetRefused(ToolRefused):
    """A refused target. `given` is the typed name, for the receipt (VIS-4).

    `named` is the session that the error names, where it names one: whoever hands the error on has to know who may hear it.
    """

    def __init__(
        self,
        code: RefusalCode,
        error: str,
        given: str,
        named: SessionKey | None = None,
        *,
        judged: Judgement | None = None,
    ) -> None:
        super().__init__(code, error, judged=judged)
        self.given = given
        self.named = named


class _Call(NamedTuple):
    """The question: its caller, its words, its action."""

    reader: Reader
    requester: Requester
    given: str
    operation: Operation
    as_of: int | None = None
    field: str = "sessionKey"

    @property
    def sight(self) -> Sight:
        """The inputs for the requester's sight of an existing session."""
        return self.reader.sight(self.requester)


def resolve_target(
    reader: Reader,
    requester: Requester,
    text: str,
    operation: Operation,
    *,
    as_of: int | None = None,
    field: str = "sessionKey",
) -> Resolved:
    """Return the session that a text names for a requester: a key in any form, or a session id.

    Only `history` reads earlier generations and archived sessions; `send` also finds the main session of a
    configured agent that is not open yet. `as_of` is a position, `field` what an error names.

    Raises:
        TargetRefused: `invalid_key`, `forbidden`, `not_visible`, or `old_generation`.
    """
    call = _Call(reader, requester, text, operation, as_of, field)
    try:
        reference = reader.config.refer(text, requester_agent=requester.agent_id)
    except InvalidKey as error:
        raise TargetRefused("invalid_key", f"{field}: {error}", text) from None
    match reference:
        case KeyReference(key=key):
            return _by_key(call, key)
        case IdReference(text=session_id):
            return _by_id(call, session_id)
        case LookupMiss():
            raise _refused(call)


def resolve_main(reader: Reader, requester: Requester, agent_id: str, operation: Operation) -> Resolved:
    """Return an agent's main session, by the agent's id (SEND-1).

    Raises:
        TargetRefused: `invalid_request` for an invalid agent id, else as `resolve_target`.
    """
    key = reader.main_key(_agent(agent_id))
    return _by_key(_Call(reader, requester, agent_id, operation, field="agentId"), key)


def resolve_label(
    reader: Reader, requester: Requester, label: str, agent_id: str | None, operation: Operation
) -> Resolved:
    """Return the one visible session with exactly this label, of one agent if one is given (SEND-1).

    Raises:
        TargetRefused: `not_visible` where none is visible, the same whether there is one; `ambiguous_label` with the
            keys where several are; `forbidden` where settings close the whole agent; `invalid_request` for an
            invalid agent id.
    """
    agent = None if agent_id is None else _agent(agent_id)
    call = _Call(reader, requester, label, operation, field="agentId")
    found = reader.sessions.by_label(label, agent, seen=reader.seen(requester))
    if len(found) > 1:
        keys = ", ".join(reader.show(reader.parse(row.key), requester) for row in found)
        raise _refused(call, keys=keys, labelled=len(found))
    if found:
        key = reader.parse(found[0].key)
        sight = replace(call.sight, in_tree=_in_tree(call, key))
        judged = _judged(call, key, sight, by_key=False)
        return _resolved(call, found[0], judged)
    main = None if agent is None else SessionKey.main(agent, reader.config.session.main_key)
    raise _refused(call, main)


def _by_key(call: _Call, key: SessionKey) -> Resolved:
    reader, own = call.reader, call.requester.key
    if own is None or call.as_of is not None:
        row, caller, in_tree = reader.sessions.get(str(key), call.as_of), None, _in_tree(call, key)
        if row is None:
            _take_as_long(call, 1)
    else:
        row, caller, in_tree = reader.sessions.called(str(key), str(own))
    if row is not None and row.archived is not None:
        row = None
    opens = call.operation == "send" and key.is_main and key.agent_id in reader.config.agent_ids
    judged = _judged(call, key, replace(call.sight, exists=row is not None or opens, in_tree=in_tree))
    return Resolved(
        key=key,
        shown=reader.show(key, call.requester),
        session_id=None if row is None else row.session_id,
        row=row,
        caller=caller,
        judged=judged,
    )


def _by_id(call: _Call, session_id: str) -> Resolved:
    reader = call.reader
    found = reader.sessions.by_session_id(session_id, call.as_of)
    row = reader.sessions.get(found.key, call.as_of) if found is not None else None
    if found is None or row is None:
        _take_as_long(call, 2)
        _in_tree(call, call.requester.key)
        raise _refused(call)
    key = reader.parse(found.key)
    readable = call.operation == "history" or row.archived is None
    in_tree = _in_tree(call, key)
    sight = replace(call.sight, exists=readable, earlier=not found.current, in_tree=in_tree)
    judged = _judged(call, key, sight, by_key=False)
    if found.current:
        return _resolved(call, row, judged)
    shown = reader.show(key, call.requester)
    return Resolved(key=key, shown=shown, session_id=session_id, row=row, generation_only=True, judged=judged)


def _resolved(call: _Call, row: SessionRow, judged: Judgement) -> Resolved:
    key = call.reader.parse(row.key)
    shown = call.reader.show(key, call.requester)
    return Resolved(key=key, shown=shown, session_id=row.session_id, row=row, judged=judged)


def _in_tree(call: _Call, key: SessionKey | None) -> bool:
    own = call.requester.key
    # Asked of every key, also of one that is not there: how long an answer takes must not tell.
    return own is not None and key is not None and str(own) in call.reader.sessions.ancestors(str(key))


def _take_as_long(call: _Call, rows: int) -> None:
    """Read as many rows as a session that is there would have cost, so that its absence can't be told by the clock."""
    if call.requester.key is not None:
        own = str(call.requester.key)
        call.reader.parse(own)
        for _ in range(rows):
            call.reader.sessions.get(own, call.as_of)


def _judged(
    call: _Call, key: SessionKey | None, sight: Sight, *, by_key: bool = True, keys: str = ""
) -> Judgement:
    """Return the judgement of a reachable session; `keys` are those that a label may mean.

    Raises:
        TargetRefused: it may not.
    """
    asked = SeeSession(operation=call.operation, key=None if key is None else str(key), by_key=by_key)
    judged = Judgement(asked, sight)
    denial = judge_access(asked, sight)
    if denial is None:
        return judged
    error, named = _told(call, denial.code, asked, sight, keys), None
    if denial.code == "old_generation":
        named = key
    raise TargetRefused(denial.code, error, call.given, named, judged=judged)


def _told(call: _Call, code: RefusalCode, asked: SeeSession, sight: Sight, keys: str) -> str:
    match code:
        case "ambiguous_label":
            return f"label: several sessions have it, name one by sessionKey: {keys}"
        case "forbidden":
            return f"{call.field}: {closed(asked, sight)}"
        case "old_generation" if asked.key is not None:
            shown = call.reader.show(call.reader.parse(asked.key), call.requester)
            return f"{call.field}: {call.given} is an earlier generation of {shown}, name the session by that"
        case _:
            return not_visible(call.given)


def _refused(
    call: _Call, key: SessionKey | None = None, *, labelled: int = 1, keys: str = ""
) -> TargetRefused:
    """Return the refusal of what resolved to no session, by the same judge."""
    sight = replace(call.sight, exists=False, labelled=labelled)
    try:
        _judged(call, key, sight, by_key=key is not None, keys=keys)
    except TargetRefused as refusal:
        return refusal
    raise AssertionError(f"the judge allowed a session that is not there: {call.given!r}")


def _agent(agent_id: str) -> str:
    try:
        return parse_agent_id(agent_id)
    except InvalidKey as error:
        raise TargetRefused("invalid_request", f"agentId: {error}", agent_id) from None


def claimed_session(
    service: "Service", caller: Caller, text: str, *, field: str, what: str, arguments: JsonMapping
) -> SessionKey:
    """Return a claimed session: it exists, or is a configured agent's main one, and is within reach.

    `field` is what an error names, `what` the tool or method that is called, with its arguments: a claim that is
    refused leaves a receipt (VIS-4).

    Raises:
        ToolRefused: this is no key (`invalid_key`); the session is not there or beyond reach (`not_visible`, the same).
    """
    refused_by = None
    try:
        key = resolve_target(service.reader, service.reader.requester(None), text, "send", field=field).key
    except ToolRefused as refused:
        if refused.code == "invalid_key":
            raise
        key, refused_by = None, refused.judged
    if key is None or not caller.reaches(key):
        judged = refused_by if key is None else caller.judged(key)
        service.receipts.keep(caller, what, arguments, AccessSummary.of_refused(text, "not_visible", judged))
        # Whatever else there is to say of it would say that it is there.
        raise ToolRefused("not_visible", not_visible(text)) from None
    return key
