"""The table of questions: the debugger's verbs, and the lists and parts of pages, each a route."""

from http import HTTPStatus
from typing import Annotated, Final, Literal

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter
from litestar.response import Stream

from intersession.web.access import ACCESS, Access
from intersession.web.answers import declared, refusal_response
from intersession.web.files import API
from intersession.web.questions.asking import Question, answered, route_of, with_unknown
from intersession.web.questions.files import FileWanted, What, as_attachment, handed_out
from intersession.web.questions.of_attachments import Attachment, attachment, attachment_response
from intersession.web.questions.of_events import Event, Events, event, events
from intersession.web.questions.of_forks import Compare, Forks, asked_in, compare, forks
from intersession.web.questions.of_notes import Notes, notes
from intersession.web.questions.of_runs import Part, Run, RunsQuery, rows, run, runs, steps
from intersession.web.questions.of_sessions import Sessions, sessions
from intersession.web.questions.of_the_log import (
    Integrity,
    Nothing,
    Place,
    integrity,
    place,
    schedules,
    settings,
    speakers,
)
from intersession.web.streams import EVENT_STREAM, After, LastEventId, begun_behind, stream_of, streamed
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import Name, PlaceText
from intersession_events.basics.plain_json import JsonObject, is_object, present
from intersession_events.facts import ready

_OF_PAGES: Final = (
    Question(
        name="compare",
        title="What differs between two runs, or a run and its fork",
        arguments=Compare,
        call=compare,
    ),
    Question(name="event", title="One event with its payload and its hashes", arguments=Event, call=event),
    Question(name="events", title="Events, the newest first", arguments=Events, call=events),
    Question(name="forks", title="Forks that were made of this log", arguments=Forks, call=forks),
    Question(
        name="integrity", title="Whether the log is as it was written", arguments=Integrity, call=integrity
    ),
    Question(name="notes", title="Notes beside a run", arguments=Notes, call=notes, part_of="run"),
    Question(name="place", title="A place in words", arguments=Place, call=place, part_of="run"),
    Question(
        name="rows", title="A part of the rows of a run's diagram", arguments=Part, call=rows, part_of="run"
    ),
    Question(name="run", title="A run: who took part, how it ended, its outline", arguments=Run, call=run),
    Question(
        name="runs", title="Exchanges, spawns and runs, the newest first", arguments=RunsQuery, call=runs
    ),
    Question(name="schedules", title="The scheduled jobs", arguments=Nothing, call=schedules),
    Question(
        name="sessions", title="Sessions, as sessions_list gives them", arguments=Sessions, call=sessions
    ),
    Question(name="settings", title="The settings in force", arguments=Nothing, call=settings),
    Question(name="steps", title="A part of the events of a run", arguments=Part, call=steps, part_of="run"),
)
"""What the pages ask: a list of the same name as a verb has what its page draws besides."""

QUESTIONS: Final = (
    *(
        Question(name=verb.name, title=verb.title, arguments=verb.arguments, call=verb.answer)
        for verb in VERBS.values()
        if verb.name not in {question.name for question in _OF_PAGES}
    ),
    *_OF_PAGES,
)


@get(
    f"{API}about",
    operation_id="debugAbout",
    summary="Which log this is, the viewer, and what they may do",
    responses={
        200: ResponseSpec(data_container=JsonObject, description="The log.", generate_examples=False),
        **declared(400, 401, 403, 421, 429, 503),
    },
    raises=[],
)
async def about(request: Request[object, object, State]) -> Response[object]:
    """Return the log's identity, the viewer, and the viewer's actions."""
    access: Access = request.scope["state"][ACCESS]
    if (unknown := with_unknown(request, ())) is not None:
        return unknown
    return await answered(access, "about", {}, lambda view: {**speakers(view), **access.about})


_BYTES: Final = "application/octet-stream"


def _download(description: str) -> dict[int, ResponseSpec]:
    content = ResponseSpec(
        data_container=bytes, description=description, media_type=_BYTES, generate_examples=False
    )
    return {200: content, **declared(400, 401, 403, 421, 429, 503)}


@get(
    f"{API}file",
    operation_id="debugFile",
    summary="A run or a session as a file: a bundle for an auditor, an export, a test, a log of its own",
    media_type=_BYTES,
    responses=_download("The file, by its name."),
    raises=[],
)
async def file(  # noqa: PLR0917 - a parameter for each field of its query
    request: Request[object, object, State],
    what: Annotated[
        What,
        QueryParameter(
            description="A bundle that proves itself, or the form of an export; of a run a test, or a log of its own."
        ),
    ],
    run: Annotated[
        str | None, QueryParameter(description="An exchange, a spawn or a run, by any name of it.")
    ] = None,
    session: Annotated[str | None, QueryParameter(description="Or a session, by its key.")] = None,
    at: Annotated[
        str | None, QueryParameter(description="The place up to which it is handed out. Default: head.")
    ] = None,
    redact: Annotated[
        Literal["secrets", "words", "people"] | None, QueryParameter(description="What a bundle withholds.")
    ] = None,
    fork: Annotated[
        str | None, QueryParameter(max_length=64, description="The fork that the run is of.")
    ] = None,
) -> Response[object]:
    """Return a run or a session as a file."""
    access: Access = request.scope["state"][ACCESS]
    if (unknown := with_unknown(request, ("run", "session", "what", "at", "redact", "fork"))) is not None:
        return unknown
    given: JsonObject = present(
        {"run": run, "session": session, "what": what, "at": at, "redact": redact, "fork": fork}
    )
    wanted = FileWanted(run=run, session=session, what=what, at=at, redact=redact)
    if what == "bundle" and fork is None:
        try:
            await access.cover()
        except ToolRefused as refused:
            return refusal_response(refused)
    question = asked_in(fork, lambda view: handed_out(view, wanted))
    response = await answered(access, "file", given, question, revealed=True)
    found = response.content
    return as_attachment(found) if response.status_code == HTTPStatus.OK and is_object(found) else response


@get(
    f"{API}attachment",
    operation_id="debugAttachment",
    summary="A file of a message: a picture as such, all else to be saved",
    media_type=_BYTES,
    responses=_download("PNG, JPEG, GIF and WebP by their type, else bytes."),
    raises=[],
)
async def message_file(
    request: Request[object, object, State],
    session: Annotated[str, QueryParameter(description="The session whose message names it.")],
    file: Annotated[str, QueryParameter(description="Its SHA-256, as the message has it.")],
    fork: Annotated[
        str | None, QueryParameter(max_length=64, description="The fork that the message is of.")
    ] = None,
) -> Response[object]:
    """Return a file of a message."""
    access: Access = request.scope["state"][ACCESS]
    if (unknown := with_unknown(request, ("session", "file", "fork"))) is not None:
        return unknown
    given: JsonObject = present({"session": session, "file": file, "fork": fork})

    def question(view: View) -> JsonObject:
        return attachment(view, read_arguments(Attachment, {"session": session, "file": file}))

    same = msgspec.json.encode(["attachment", given]).decode()
    response = await answered(access, "attachment", given, asked_in(fork, question), view=same, revealed=True)
    found = response.content
    return (
        attachment_response(found) if response.status_code == HTTPStatus.OK and is_object(found) else response
    )


@ready
class Reveal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query for an event with its secrets, in a fork if one is named."""

    at: int | PlaceText
    fork: Name | None = None


@post(
    f"{API}reveal",
    status_code=200,
    operation_id="debugReveal",
    summary="One event with its secrets, which leaves a receipt",
    responses={
        200: ResponseSpec(data_container=JsonObject, description="The event.", generate_examples=False),
        **declared(400, 401, 403, 408, 413, 415, 421, 429, 503),
    },
    raises=[],
)
async def reveal(data: JSONBody[Reveal], request: Request[object, object, State]) -> Response[object]:
    """Return an event as it is stored; the viewer is recorded each time."""
    access: Access = request.scope["state"][ACCESS]
    given: JsonObject = present({"at": data.at, "fork": data.fork})
    question = asked_in(data.fork, lambda view: event(view, Event(at=data.at)))
    return await answered(access, "reveal", given, question, revealed=True)


@get(
    f"{API}live",
    operation_id="debugLive",
    summary="Positions as they come",
    media_type=EVENT_STREAM,
    responses=streamed(
        "`head`: the log has come to the position that is its id. `erased`: words were erased, drop what is shown. "
        "`forks`: those beside the log are other ones; for the operator alone. `store`: it can't be read now, or can again."
    ),
    raises=[],
)
async def live(
    request: Request[object, object, State],
    last_event_id: LastEventId = None,
    after: After = None,
) -> Response[object] | Stream:
    """Report new positions, erasures, and changes of the forks beside the log."""
    access: Access = request.scope["state"][ACCESS]
    if (unknown := with_unknown(request, ("after",))) is not None:
        return unknown
    behind = begun_behind(last_event_id, after)
    if isinstance(behind, Response):
        return behind
    try:
        return stream_of(access.live(behind))
    except ToolRefused as refused:
        return refusal_response(refused)


def routes() -> list[HTTPRouteHandler]:
    """Return all routes; they find the viewer in a request's state."""
    return [about, file, live, message_file, reveal, *map(route_of, QUESTIONS)]
