"""The methods `exchanges.*` and `calls.*`: list holds, add more, and release them (LIVE-1, ASK-2)."""

from collections.abc import Iterator
from typing import Final, Literal, TypedDict

import msgspec

from intersession_actors.assembly.methods.params import (
    HeldParams,
    HoldParams,
    ReleaseCallParams,
    ReleaseParams,
)
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service.approvals import held_calls, release_call, value_of
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.asking import ask_flow, ask_session
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.run_waits import unknown_run
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.exchange.commands import HoldExchange, ReleaseExchange
from intersession_actors.owners.holding.standing import HELD
from intersession_actors.owners.session.commands import Patch
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonMapping, JsonObject, present
from intersession_events.facts import CallRelease, ExchangeReleased, HoldBefore, HoldWithdrawn, Release
from intersession_projections.views.flows.held import held_value
from intersession_projections.views.flows.rows import ExchangeSummary, Position
from intersession_projections.views.run_outcomes.replies import held_in

_PAGE: Final = 256


def hold_params(run_id: str | None, session_key: str | None, before: HoldBefore) -> JsonObject:
    """Return the parameters of `exchanges.hold`."""
    return present({"runId": run_id, "sessionKey": session_key, "before": before})


class ReleaseFields(TypedDict, total=False):
    """How something is released; `SessionSystem.release` explains each field."""

    session_key: str | None
    action: Release
    text: str | None
    hold_id: str | None
    for_good: bool


class ReleaseCallFields(TypedDict, total=False):
    """How a held tool call is released; `SessionSystem.release_call` explains each field."""

    action: Literal["go_on", "edit", "refuse"]
    arguments: JsonObject
    text: str


def release_params(run_id: str | None, given: ReleaseFields) -> JsonObject:
    """Return the parameters of `exchanges.release`; unknown fields are refused by name."""
    names = {"session_key": "sessionKey", "hold_id": "holdId", "for_good": "forGood"}
    return present({"runId": run_id, **{names.get(name, name): value for name, value in given.items()}})


class GatewayHolds:
    """Holds for the gateway's callers."""

    def __init__(self, service: Service, targets: Targets) -> None:
        self._service = service
        self._targets = targets

    def held(self, call: Call, params: JsonMapping) -> Result:
        """Return the held exchanges, with the waiting texts, the longest-held first."""
        given = read_arguments(HeldParams, params)
        found = [one for one in self._service.flows.held_exchanges() if self._reaches(call, one)]
        shown = sorted(found, key=lambda one: (one.held_since_ms or 0, one.accepted))[: given.limit]
        call.summary = AccessSummary(keys=tuple(dict.fromkeys(one.target for one in shown)))
        return {"count": len(found), "held": [self._value(one) for one in shown]}

    def hold(self, call: Call, params: JsonMapping) -> Result:
        """Have an exchange stop, or all of a session's."""
        given = read_arguments(HoldParams, params)
        if (given.run_id is None) == (given.session_key is None):
            raise invalid("runId", "give a run, or a sessionKey to hold all of that session's exchanges")
        if given.run_id is None:
            return self._hold_session(call, given)
        exchange = self._exchange(call, given.run_id)
        command = HoldExchange(stream=exchange.stream, before=given.before, by=call.caller.name)
        recorded = ask_flow(self._service, command).recorded
        now = self._service.flows.exchange(exchange.exchange_id) or exchange
        return {
            "status": "ok",
            "runId": exchange.run_id,
            "exchangeId": exchange.exchange_id,
            "before": given.before,
            "again": not recorded,
        } | ({"held": held_value(now)} if now.held is not None else {})

    def release(self, call: Call, params: JsonMapping) -> Result:
        """Release a held exchange, or all of a session's."""
        given = read_arguments(ReleaseParams, params)
        if (given.run_id is None) == (given.session_key is None):
            raise invalid("runId", "give a run, or a sessionKey to release all that is held of that session")
        action = given.action
        if given.text is not None and action == "go_on":
            action = "edit"
        if (action == "edit") != (given.text is not None):
            raise invalid("text", "give it to have another text go on, and only then")
        command = ReleaseExchange(
            stream="",
            action=action,
            by=call.caller.name,
            text=given.text,
            hold_id=given.hold_id,
            for_good=given.for_good,
        )
        if given.run_id is None:
            return self._release_session(call, given.session_key or "", command)
        return self._released(self._exchange(call, given.run_id), command)

    def held_calls(self, call: Call, params: JsonMapping) -> Result:
        """Return the tool calls that wait for a release, the longest-held first."""
        given = read_arguments(HeldParams, params)
        found = held_calls(self._service, call.caller)
        shown = found[: given.limit]
        call.summary = AccessSummary(keys=tuple(dict.fromkeys(one.session_key for one in shown)))
        return {"count": len(found), "held": [value_of(one) for one in shown]}

    def release_call(self, call: Call, params: JsonMapping) -> Result:
        """Release a held tool call."""
        given = read_arguments(ReleaseCallParams, params)
        action: CallRelease = (
            "edit" if given.arguments is not None and given.action == "go_on" else given.action
        )
        return release_call(
            self._service, call.caller, given.hold_id, action, arguments=given.arguments, text=given.text
        )

    # --- one exchange

    def _exchange(self, call: Call, named: str) -> ExchangeSummary:
        """Return the exchange of a run, or by its own id.

        Raises:
            ToolRefused: there is none within reach (`unknown_run`), or the run is of none (`invalid_request`).
        """
        flows = self._service.flows
        found = flows.exchange(named)
        if found is None:
            run = self._targets.run(call, named)
            found = flows.exchange(flows.exchange_of_run(run.run_id) or "")
        if found is None:
            raise invalid(
                "runId", f"{named[:128]} is of no exchange, only what sessions_send begins can be held"
            )
        if not self._reaches(call, found):
            # A run of its requester may be within reach; what others say to that is not.
            call.left_out()
            call.was_denied(named, "unknown_run")
            raise unknown_run(named)
        return found

    def _released(self, exchange: ExchangeSummary, command: ReleaseExchange) -> Result:
        asked = msgspec.structs.replace(command, stream=exchange.stream)
        recorded = ask_flow(self._service, asked).recorded
        # Asked again, it is what was said the last time.
        said = recorded or self._service.log.stream(exchange.stream, backwards=True)
        words = (item.event for item in said if isinstance(item.event, ExchangeReleased | HoldWithdrawn))
        last = next(words, None)
        released = last if isinstance(last, ExchangeReleased) else None
        return {
            "status": "withdrawn" if isinstance(last, HoldWithdrawn) else "released",
            "runId": exchange.run_id,
            "exchangeId": exchange.exchange_id,
            "action": command.action,
            "again": not recorded,
        } | present({"holdId": command.hold_id or (released and released.hold_id)})

    def _value(self, exchange: ExchangeSummary) -> Result:
        held = held_in(self._service.log, exchange)
        text = {} if held is None else present({"text": held.text, "to": held.to, "note": held.note})
        speaker = {} if held is None else {"speaker": held.speaker, "turn": held.turn}
        return held_value(exchange) | speaker | text

    def _reaches(self, call: Call, exchange: ExchangeSummary) -> bool:
        parse = self._service.reader.parse
        return call.caller.reaches(parse(exchange.target))

    # --- all of a session

    def _hold_session(self, call: Call, given: HoldParams) -> Result:
        key = self._targets.seen(call, given.session_key or "", "status").key
        recorded = self._patched(str(key), Patch(values={HELD: given.before}, by=call.caller.name))
        return {
            "status": "ok",
            "sessionKey": str(key),
            "before": given.before,
            "again": not recorded,
            "exchanges": [exchange.run_id for exchange in self._open(call, str(key))],
        }

    def _release_session(self, call: Call, typed: str, command: ReleaseExchange) -> Result:
        key = str(self._targets.seen(call, typed, "status").key)
        held = [one for one in self._open(call, key) if one.held is not None]
        if command.hold_id is not None or (command.text is not None and len(held) != 1):
            raise invalid(
                "sessionKey", f"{len(held)} exchanges of it are held, name the one that is meant by its runId"
            )
        recorded = self._patched(key, Patch(values={}, cleared=(HELD,), by=call.caller.name))
        # What was held before, and what was held while its hold was taken away.
        held = [one for one in self._open(call, key) if one.held is not None]
        released = [self._released(one, command)["runId"] for one in held]
        return {
            "status": "released",
            "sessionKey": key,
            "action": command.action,
            "again": not recorded and not released,
            "released": released,
        }

    def _patched(self, key: str, patch: Patch) -> bool:
        """Record what a session's setting is now; say whether it changed. Nothing is decided by the old one from here on."""
        return bool(ask_session(self._service, key, patch).recorded)

    def _open(self, call: Call, key: str) -> Iterator[ExchangeSummary]:
        """Return the open exchanges of a session that the caller reaches: one that it began may be another's to release."""
        last = self._service.log.head()
        while page := self._service.flows.exchanges_at(Position(0, last, key, is_open=True), _PAGE):
            yield from (exchange for exchange in page if self._reaches(call, exchange))
            last = page[-1].accepted - 1
