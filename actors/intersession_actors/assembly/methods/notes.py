"""The method `notes.pin`: what somebody who looks at a run writes beside it, as an event of the log."""

from intersession_actors.assembly.methods.debug import view_of
from intersession_actors.assembly.methods.params import NoteParams
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import notes_stream
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import NotePinned
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_projections.questions.places.runs_named import flow_id, flow_sessions


class GatewayNotes:
    """Notes, as the gateway's callers pin them: to the runs that they see."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def pin(self, call: Call, params: JsonMapping) -> Result:
        """Pin a note to a place of a run."""
        given = read_arguments(NoteParams, params)
        if not given.text.strip():
            raise invalid("text", "it is blank, write what is to be known")
        view: View = view_of(self._service, call)
        name, at = view.parted(given.run, given.at, field="run")
        flow, place = view.flow(name), view.place(at)
        run = flow_id(flow)
        note = NotePinned(flow=run, position=place.position, text=given.text, by=call.caller.name)
        draft = Draft(event=note, id=self._service.new_id(), time=self._service.clock.now_ms())
        append = StreamAppend(stream=notes_stream(run), expected=ANY_VERSION, drafts=(draft,))
        committed = self._service.log.append_now((append,))
        for key in flow_sessions(flow):
            view.is_seen(key)
        for key in sorted(view.touched):
            call.saw(key)
        return {
            "status": "ok",
            "run": run,
            "place": view.say(place),
            "position": committed.recorded[0].position,
        }
