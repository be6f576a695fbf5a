"""The writer's side of other hosts' doors: calls for the callers that they have admitted, each counted once (DOOR-2)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from intersession.gateway.admission import credentials as admission_credentials
from intersession.gateway.admission import scopes
from intersession.gateway.protocol.behalf import PerformParams, Receipt, ReceiptsParams
from intersession.gateway.protocol.frames import Frame
from intersession_actors.assembly.methods.methods import METHODS, unknown_method
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.pending import INVOKE
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.calls.tools.sessions_send import DEFAULT_TIMEOUT_S
from intersession_actors.calls.tools.toolbox import Tools
from intersession_actors.rules.config.host import Gateway
from intersession_actors.rules.config.tools import names_tool
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import may_act_as
from intersession_events.basics import ids
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_object
from intersession_events.log.recorded import ANY_VERSION, Draft, Outcome, StreamAppend

MOST_KEPT: Final = 4_096
"""Answers that are kept for doors whose connection ended before they had them; the oldest are forgotten."""

_AT_LEAST_S: Final = 0.001

_GLOB: Final = frozenset("*?[")
_HERE_ALONE: Final = frozenset({"import.framework", "import.openclaw"})


class Doors:
    """Calls that doors hand on. Belongs to one event loop."""

    def __init__(self, system: SessionSystem, settings: Callable[[], Gateway]) -> None:
        self._system, self._settings = system, settings
        self._calls: OrderedDict[tuple[str, str], asyncio.Task[Frame]] = OrderedDict()

    async def perform(
        self, door: admission_credentials.Credential, params: JsonMapping, *, stopping: str | None
    ) -> Frame:
        """Call a method for a caller: `{result, position}`, or `{refused, position}`; `tryAgain` if nothing could be recorded here.

        A call that comes again, by its number, has the answer of the first. `stopping` is why no more work is taken.

        Raises:
            ToolRefused: the door may not call that, or not for this caller.
        """
        given = read_arguments(PerformParams, params)
        caller = self._admitted(door, given)
        known = (caller.door or "", given.number)
        task = self._calls.get(known)
        if task is None:
            if stopping is not None:
                return {"refused": {"code": "unavailable", "error": stopping}, "tryAgain": True}
            # A task of its own: the call goes on when the door's connection ends, and the door asks for its answer again.
            task = self._calls[known] = asyncio.create_task(self._performed(caller, given))
            self._forget()
        answer = await asyncio.shield(task)
        if answer.get("tryAgain"):
            self._calls.pop(known, None)
        return answer

    def record(self, door: admission_credentials.Credential, params: JsonMapping) -> Frame:
        """Record the access receipts of a door, without waiting.

        Raises:
            ToolRefused: one of them is of a caller that the door may not call for, or is invalid.
        """
        given = read_arguments(ReceiptsParams, params)
        name, now = _name_of(door), self._system.service.clock.now_ms()
        for receipt in given.receipts:
            self._check_receipt(door, receipt)
        for receipt in given.receipts:
            event = receipt.event
            requester = event.requester or (f"credential:{event.credential}" if event.credential else None)
            append = StreamAppend(
                stream=ids.access_stream(requester),
                expected=ANY_VERSION,
                drafts=(_draft(receipt, name, now),),
            )
            self._system.service.log.append((append,), _nothing, patient=True)
        return {"recorded": len(given.receipts)}

    def _check_receipt(self, door: admission_credentials.Credential, receipt: Receipt) -> None:
        self._check_key(door, receipt.event.requester)
        if not door.caller.is_operator and receipt.event.credential is None:
            raise ToolRefused("forbidden", "receipts: this door admits no operator, name a credential")
        try:
            msgspec.json.decode(receipt.decision or "{}", type=dict[str, msgspec.Raw])
        except msgspec.DecodeError as error:
            raise invalid("decision", f"this is no JSON object: {error}") from None

    def _admitted(self, door: admission_credentials.Credential, given: PerformParams) -> Caller:
        """Return the caller, within the door's own limits.

        Raises:
            ToolRefused: the caller, or the method, exceeds them (`forbidden`).
        """
        name = given.params.get("name") if given.method == INVOKE else given.method
        scope = scopes.needed_scope(name if isinstance(name, str) else "")
        if scope not in scopes.all_scopes(door.scopes) or scope == "door":
            raise ToolRefused("forbidden", f"missing scope: {scope}, this door's credential does not have it")
        if given.method in _HERE_ALONE:
            raise ToolRefused(
                "forbidden",
                f"{given.method} is for callers on the machine of the log's writer, at its own gateway",
            )
        if given.method == INVOKE and names_tool(self._settings().tools.deny, str(name)):
            raise ToolRefused("forbidden", f"name: {name} is not given here (gateway.tools.deny)")
        caller, own = given.caller, door.caller
        if not own.is_operator:
            self._check_key(door, caller.key)
            reach = own.act_as if caller.key is None else own.within or ()
            self._check_globs(caller.act_as, reach)
            self._check_globs(caller.sees, own.within or ())
            is_its_own = caller.name == (caller.key or f"credential:{caller.credential}")
            if not is_its_own or (caller.key is None and caller.credential is None):
                raise ToolRefused("forbidden", f"caller.name: {caller.name[:128]!r} is not this caller's own")
        return caller.as_caller(_name_of(door))

    def _check_key(self, door: admission_credentials.Credential, key: str | None) -> None:
        if key is not None and not door.caller.reaches(self._parsed(key)):
            raise _beyond(key)

    def _check_globs(self, globs: tuple[str, ...], within: tuple[str, ...]) -> None:
        """Refuse globs unless each is one of the door's own, or a key that these name: what it matches is then known to be theirs."""
        for glob in globs:
            is_a_key = _GLOB.isdisjoint(glob)
            if glob not in within and not (is_a_key and may_act_as(within, self._parsed(glob))):
                raise _beyond(glob)

    def _parsed(self, text: str) -> SessionKey:
        try:
            return self._system.service.reader.parse(text)
        except InvalidKey as error:
            raise ToolRefused("invalid_key", str(error)) from None

    async def _performed(self, caller: Caller, given: PerformParams) -> Frame:
        answer: JsonObject
        try:
            result = await self._called(caller, given)
            answer = {"result": result}
            if (
                self._system.service.world.agents.closing
                and is_object(result)
                and result.get("status") == "timeout"
            ):
                answer["tryAgain"] = True  # the wait was cut short here, and goes on at the next writer
        except ToolRefused as refused:
            answer = {"refused": {"code": refused.code, "error": refused.error}}
            if refused.code == "unavailable" and not isinstance(refused, InDoubt):
                answer["tryAgain"] = True
        return answer | {"position": self._system.log.head()}

    async def _called(self, caller: Caller, given: PerformParams) -> object:
        system, params, number = self._system, given.params, given.number
        if given.method == INVOKE:
            name, args = params.get("name"), params.get("args")
            if not isinstance(name, str) or not is_object(args):
                raise ToolRefused("invalid_request", "params: give name and args of the tool")
            if given.again and not _counts_once_as_tool(name):
                raise InDoubt(name)
            if given.again and name == "sessions_send":
                args = _with_what_is_left(args, given.waited_ms)
            tools = Tools(system.service, caller, threads=system.threads, number=(number, given.again))
            result = await tools.acall(name, args)
            if (
                result.get("code") == "unavailable"
                and result.get("status") == "error"
                and "runId" not in result
            ):
                raise ToolRefused("unavailable", str(result.get("error")))
            return result
        method = METHODS.get(given.method)
        if method is None:
            raise unknown_method(given.method, METHODS)
        if given.again and not (method.again or method.read):
            raise InDoubt(given.method)
        if given.method == "sessions.compact":
            params = {"idempotencyKey": number, **params}
        return await system.gateway.aperform(given.method, params, caller=caller)

    def _forget(self) -> None:
        over = len(self._calls) - MOST_KEPT
        done = [known for known, task in self._calls.items() if task.done()] if over > 0 else []
        for known in done[:over]:
            del self._calls[known]


class InDoubt(ToolRefused):
    """Another writer may have carried a call out, which would count twice."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "unavailable",
            f"{what}: the log's writer was replaced while it was at work on this, and it may have been done or not; look "
            "before you call it again",
        )


def _beyond(what: str) -> ToolRefused:
    return ToolRefused(
        "forbidden", f"caller: {what[:128]!r} is beyond the sessions that this door's credential names"
    )


def _with_what_is_left(args: JsonObject, waited_ms: int) -> JsonObject:
    """Return the arguments of `sessions_send` with the rest of the time that its caller waits for."""
    seconds = args.get("timeoutSeconds", DEFAULT_TIMEOUT_S)
    if not isinstance(seconds, int | float) or seconds <= 0:
        return args
    return {**args, "timeoutSeconds": max(seconds - waited_ms / 1000, _AT_LEAST_S)}


def _counts_once_as_tool(name: str) -> bool:
    tool = TOOLS.get(name)
    return tool is None or tool.reads or "idempotency_key" in tool.arguments.__struct_fields__


def _name_of(door: admission_credentials.Credential) -> str:
    return door.caller.credential or door.caller.name


def _draft(receipt: Receipt, door: str, now_ms: int) -> Draft:
    return Draft(
        event=msgspec.structs.replace(receipt.event, door=door),
        id=receipt.id,
        time=min(receipt.time, now_ms),  # a clock ahead would take all that comes behind with it
        correlation=receipt.correlation,
        decision=receipt.decision,
    )


def _nothing(_: Outcome) -> None:
    """Do nothing: a receipt that was recorded before is refused, and none is waited for."""
