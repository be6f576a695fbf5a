"""Makes a GET route from a question: its arguments are the query, its answer is JSON. Every question of the web debugger is one."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter

from intersession.web.access import ACCESS, Access
from intersession.web.answers import declared, failed, refusal_response
from intersession.web.files import API
from intersession.web.questions.called import with_names
from intersession.web.questions.of_forks import asked_in
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonObject

_REFUSALS: Final = (400, 401, 403, 421, 429, 503)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question: its name is the last part of its address, `arguments` a struct whose fields are its query."""

    name: str
    title: str
    arguments: type[msgspec.Struct]
    part_of: str | None = None
    """The question of which it answers a part: a look at both counts as one."""
    call: Callable[[View, Any], Mapping[str, object]]  # its own arguments, which `arguments` names


def route_of(question: Question) -> HTTPRouteHandler:
    """Return the route of a question."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(question.arguments)}

    # litestar reads the signature that is set below: the query is what the struct of the arguments says.
    async def asked(request: Request[object, object, State], **given: object) -> Response[object]:
        access: Access = request.scope["state"][ACCESS]
        if (unknown := with_unknown(request, fields.keys() | {"fork"})) is not None:
            return unknown
        typed: JsonObject = {
            name: value for name in fields if (value := given.get(_parameter(name))) is not None
        }
        fork = given.get("fork")
        where: JsonObject = {} if fork is None else {"fork": fork}
        return await answered(
            access,
            question.name,
            typed | where,
            asked_in(
                fork if isinstance(fork, str) else None,
                lambda view: with_names(view, question.call(view, read(question, typed))),
            ),
            view=_view(question, typed | where),
        )

    parameters = [_query(field) for field in fields.values()] + [_FORK]
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    request = inspect.Parameter(
        "request",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Request[object, object, State],
    )
    signature = inspect.Signature(
        [request, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters)],
        return_annotation=Response[object],
    )
    asked.__signature__ = signature  # type: ignore[attr-defined] # pyright: ignore[reportFunctionMemberAccess]
    asked.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()} | {
        "return": Response[object]
    }
    asked.__name__ = f"debug_{question.name}"
    asked.__doc__ = question.title
    return get(
        f"{API}{question.name}",
        operation_id=f"debug{question.name.title()}",
        summary=question.title,
        responses={
            200: ResponseSpec(data_container=JsonObject, description=question.title, generate_examples=False),
            **declared(*_REFUSALS),
        },
        raises=[],
    )(asked)


def with_unknown(request: Request[object, object, State], known: Collection[str]) -> Response[object] | None:
    """Return the refusal of a query with an unknown name: a mistyped filter would match everything."""
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        return None
    there = f"give {', '.join(sorted(known))}" if known else "there is nothing to give"
    return failed(400, "invalid_request_error", f"{unknown[0][:64]!a} means nothing here, {there}")


_PAGING: Final = frozenset({"all", "before", "cursor", "limit", "verify"})


def _view(question: Question, given: JsonObject) -> str:
    """Return a question's view: reading further pages of it leaves no second receipt."""
    left_out = _PAGING if question.part_of is None else _PAGING | {"at", "from"}
    of = {name: value for name, value in given.items() if name not in left_out}
    return msgspec.json.encode([question.part_of or question.name, of], order="sorted").decode()


async def answered(
    access: Access,
    name: str,
    given: JsonObject,
    question: Callable[[View], Mapping[str, object]],
    *,
    view: str | None = None,
    revealed: bool = False,
) -> Response[object]:
    """Answer a question within the caller's rights and rate. Every route of a question goes through here.

    Secrets are hidden from every caller, and `redacted` says so; they are `revealed` one event at a time.
    """
    wait = access.may_ask()
    if wait:
        response = failed(429, "rate_limited", "too many questions at a time, ask again in a moment")
        response.set_header("retry-after", str(int(wait) + 1))
        return response

    def asked(of: View) -> Mapping[str, object]:
        of.check_asked(name, given)
        view = of.revealed() if revealed else of.hiding()
        return view.handed_out(question(view))

    try:
        answer = await access.ask(f"debug.{name}", given, asked, view=view)
    except ToolRefused as refused:
        response = refusal_response(ToolRefused(refused.code, redact_text(refused.error)[0]))
        if refused.code == "unavailable" and access.is_away:
            response.set_header("retry-after", "2")
        return response
    return Response(answer, status_code=200)


def read(question: Question, given: JsonObject) -> msgspec.Struct:
    """Return the arguments of a question.

    Raises:
        ToolRefused: one of them is invalid.
    """
    return read_arguments(question.arguments, given)


def _parameter(name: str) -> str:
    """Return the name that a function can have for a field: `from` is a word of Python's own."""
    return f"{name}_" if name in {"from", "in", "as", "with"} else name


def _query(field: msgspec.structs.FieldInfo) -> inspect.Parameter:
    kind, description = _typed(msgspec.inspect.type_info(field.type))
    required = field.required
    said = QueryParameter(name=field.encode_name, description=description)
    return inspect.Parameter(
        _parameter(field.encode_name),
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[kind if required else kind | None, said],
    )


_FORK: Final = inspect.Parameter(
    "fork",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None,
        QueryParameter(
            name="fork", max_length=64, description="Ask this fork of the log, by its id, and not the log."
        ),
    ],
)


def _typed(info: msgspec.inspect.Type) -> tuple[Any, str | None]:  # a type, as annotations have it
    """Return a field's type in a query, and its description."""
    description: str | None = None
    if isinstance(info, msgspec.inspect.Metadata):
        schema: JsonObject = dict(info.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - msgspec's own dict
        description, info = schema.get("description"), info.type
    parts = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    kinds = [
        _typed(part)[0] if isinstance(part, msgspec.inspect.Metadata) else _plain(part)
        for part in parts
        if not isinstance(part, msgspec.inspect.NoneType)
    ]
    named = next((part for part in (str, list[str], bool, int) if part in kinds), str)
    return named, description


def _plain(part: msgspec.inspect.Type) -> Any:  # a type, as annotations have it
    match part:
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return list[str]
        case msgspec.inspect.BoolType():
            return bool
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return int
        case _:
            return str
