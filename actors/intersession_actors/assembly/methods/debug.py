"""The verbs of the debugger as methods, `debug.state` and so on: for clients that look at a log through its host."""

from collections.abc import Callable, Mapping

from intersession_actors.assembly.methods.terms import METHOD_TERMS, with_advice
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.plain_json import JsonMapping


def view_of(service: Service, call: Call) -> View:
    """Return the log as a caller sees it."""
    reader, caller = service.reader, call.caller

    def reached(key: str) -> bool:
        return caller.reaches(reader.parse(key))

    if caller.is_operator:
        return View(reader, call.requester)
    return View(reader, call.requester, within=reached).hiding()


class GatewayDebug:
    """Calls verbs as the caller: the operator, or who stands for some sessions, for whom the others are not there."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def verb(self, name: str) -> Callable[[Call, JsonMapping], Result]:
        """Return the method of a verb."""

        def method(call: Call, params: JsonMapping) -> Result:
            answer = dict(self.ask(call, lambda view: Debugger(view).call(name, params)))
            return with_advice(answer, METHOD_TERMS)

        return method

    def ask(self, call: Call, question: Callable[[View], Mapping[str, object]]) -> Mapping[str, object]:
        """Answer any question about the log as the caller sees it, and take down which sessions the answer may be of."""
        view = view_of(self._service, call)
        answer = question(view)
        for key in sorted(view.touched):
            call.saw(key)
        return answer
