"""Tool calls that wait for a person: held before they act, found and released by every door (ASK)."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from intersession_actors.calls.service.asking import ask_session
from intersession_actors.calls.service.callers import Caller, CallingRun
from intersession_actors.calls.service.deliveries import deliver, delivery_of, route_of
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.turn import Approval, AwaitedApproval
from intersession_actors.owners.session.commands import HoldCall, ReleaseCall
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.config.tools import names_tool
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.answers import fit_block
from intersession_actors.rules.gate.texts import word_of
from intersession_actors.rules.gate.values import invalid, json_or_text
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.tools import is_own_denied, workshop_of
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_object
from intersession_events.facts import CallRelease, Route, ToolCallBlock, ToolCallHeld, ToolCallReleased
from intersession_projections.views.held_calls import CallHold, HeldCalls, held_call_value

SHORTEST: Final = 6
"""How many characters of a hold's id name it at least."""

_NAME: Final = 128

_SHOWN: Final = 1_000
"""How much of a call's arguments a channel is shown, in characters."""


def rule_for(service: Service, agent_id: str, tool: str) -> str | None:
    """Return the setting that has a call of a tool wait for a person; None if none does."""
    everyone, own = service.config.tools.ask, service.config.agent(agent_id).tools.ask
    if not everyone and not own:
        return None
    name = tool.lower()
    for setting, patterns in (("tools.ask", everyone), (f"agents.list[{agent_id}].tools.ask", own)):
        for pattern in patterns:
            if names_tool((pattern,), name):
                return f"{setting}: {pattern}"
    return None


def begin_approval(  # noqa: PLR0917 - what a call is
    service: Service,
    key: str,
    run: CallingRun,
    call_id: str,
    name: str,
    arguments: JsonMapping,
    hold_of: Callable[[], str],
    *,
    is_new: bool = False,
    may_have_acted: bool = False,
) -> Approval | AwaitedApproval:
    """Hold a call if a setting says so, and return what was said of it, or the wait for that.

    `hold_of` gives the id of the hold: the same for the same call of each attempt. `is_new` is recorded with it. What an earlier attempt `may_have_acted` on without a hold is
    not held any more.

    Raises:
        ToolRefused: the attempt is over, too many calls are held, or the log did not take the hold.
    """
    parsed = service.reader.parse(key)
    agent_id = parsed.agent_id
    requester = Requester(key=parsed, agent_id=agent_id, sender=run.budget.sender, model=run.model)
    if is_own_denied(name, workshop_of(service.config, requester)):
        return Approval(
            arguments=arguments, refused=f"tool: {name[:_NAME]!r} is not given in this run, go on without it"
        )
    rule = rule_for(service, agent_id, name)
    if rule is None:
        return Approval(arguments=arguments)
    holds = HeldCalls(service.log)
    hold_id = hold_of()
    if may_have_acted and not holds.named(hold_id):
        return Approval(arguments=arguments)
    block = fit_block(ToolCallBlock(id=call_id, name=name, arguments=_source(arguments)))
    assert isinstance(block, ToolCallBlock)  # noqa: S101 - a call stays one
    held = ToolCallHeld(
        run_id=run.run_id,
        attempt=run.attempt,
        hold_id=hold_id,
        call_id=block.id,
        tool=word_of(name) or "",
        arguments=block.arguments,
        rule=rule,
        is_new=is_new,
        timeout_ms=milliseconds(service.config.tools.ask_timeout_seconds),
    )
    future = service.waits.expect(hold_id)
    try:
        ask_session(service, key, HoldCall(held=held))
        (hold,) = holds.named(hold_id)
        if hold.released is None:
            _put_to_people(service, hold, run)
    except BaseException:
        service.waits.forget(hold_id, future)
        raise
    if hold.released is not None:
        service.waits.finish(hold_id, future)

    def finish() -> Approval:
        (hold,) = holds.named(hold_id)
        return _said(arguments, hold.released)

    def wait() -> Approval:
        with service.world.agents.waiting():
            service.blocking.wait(future, None)
        with service.refusing_without_store:
            return finish()

    return AwaitedApproval(future=future, finish=finish, wait=wait)


def _said(arguments: JsonMapping, released: ToolCallReleased | None) -> Approval:
    if released is None:
        raise ToolRefused("unavailable", "the system stops while the call waits for a release, try again")
    match released.action:
        case "go_on":
            return Approval(arguments=arguments)
        case "edit":
            edited = json_or_text(released.arguments or "{}")
            return Approval(arguments=edited if is_object(edited) else {}, edited_by=released.by)
        case "refuse":
            said = "" if not released.text else f": {released.text}"
            refused = f"tool: {released.by} refused the call of {released.tool}{said}"
            return Approval(arguments=arguments, refused=refused)
        case "expired":
            refused = f"tool: nobody approved the call of {released.tool} in time, go on without it"
            return Approval(arguments=arguments, refused=refused)
        case "ended":
            raise ToolRefused("invalid_request", "run: this attempt is over, stop working on it")


def _put_to_people(service: Service, hold: CallHold, run: CallingRun) -> None:
    """Send the question out, once: to the configured route, else to that of the session."""
    key = service.reader.parse(hold.session_key)
    configured = service.config.tools.ask_route
    if configured is not None:
        route: Route | None = Route(
            channel=configured.channel,
            to=configured.to,
            account=configured.account,
            thread=configured.thread,
        )
    else:
        route = route_of(service.sessions.get(str(key)), key)
    if route is None:
        return
    name = hold.held.hold_id[:8]
    shown, _ = redact_text(hold.held.arguments)
    cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    text = (
        f"{key.agent_id} wants to call {hold.held.tool} with {cut}. "
        f"Answer /approve {name} or /deny {name}, with a reason behind it if you like."
    )
    asked = delivery_of(
        service,
        key=key,
        route=route,
        text=text,
        run_id=hold.held.hold_id,
        budget=run.budget,
        purpose="approval",
        causation=hold.recorded.id,
    )
    if not service.log.stream(asked.stream, to=1):
        deliver(service, asked)


def _source(arguments: JsonMapping) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError):
        return "{}"


# --- for those that look and release


def value_of(hold: CallHold) -> JsonObject:
    """Return a held call in an answer."""
    return held_call_value(hold) | {"arguments": json_or_text(hold.held.arguments)}


def held_calls(service: Service, caller: Caller) -> list[CallHold]:
    """Return the calls within a caller's reach that wait for a release, the longest-held first."""
    parse = service.reader.parse
    return [one for one in HeldCalls(service.log).waiting() if caller.reaches(parse(one.session_key))]


def release_call(
    service: Service,
    caller: Caller,
    named: str,
    action: CallRelease,
    *,
    arguments: JsonMapping | None = None,
    text: str | None = None,
    by: str | None = None,
) -> Result:
    """Release a held call, by its id or the beginning of it.

    Raises:
        ToolRefused: there is no such call within reach, it was released before, or its run is over (`invalid_request`).
    """
    if (action == "edit") != (arguments is not None):
        raise invalid("arguments", "give them to have the call go on with others, and only then")
    if text is not None and action != "refuse":
        raise invalid("text", "it tells the agent why a call is refused, give it with action refuse alone")
    hold = _found(service, caller, named)
    command = ReleaseCall(
        hold_id=hold.held.hold_id,
        action=action,
        by=by or caller.name,
        arguments=None if arguments is None else _source(arguments),
        text=text,
    )
    before = hold.released
    if before is None:
        again = not ask_session(service, hold.session_key, command).recorded
    elif (before.action, before.arguments, before.text) == (action, command.arguments, text):
        again = True
    else:
        raise invalid("holdId", f"the call was released before, by {before.by or 'time'} ({before.action})")
    return {
        "status": "released",
        "holdId": hold.held.hold_id,
        "sessionKey": hold.session_key,
        "runId": hold.held.run_id,
        "tool": hold.held.tool,
        "action": action,
        "again": again,
    }


def _found(service: Service, caller: Caller, named: str) -> CallHold:
    parse = service.reader.parse
    long_enough = len(named) >= SHORTEST
    holds: Sequence[CallHold] = HeldCalls(service.log).named(named, most=64) if long_enough else ()
    found = [one for one in holds if caller.reaches(parse(one.session_key))]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        raise invalid("holdId", f"{named!r} is the beginning of several, give more of it")
    raise invalid("holdId", f"no call is held as {named[:128]!r}, calls.held lists those that are")
