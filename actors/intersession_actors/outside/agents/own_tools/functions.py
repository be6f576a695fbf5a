"""Makes tools of functions: name, description and arguments are read from the signature and the docstring."""

import copy
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, cast, get_args, get_origin, get_type_hints

import msgspec

from intersession_actors.outside.agents.own_tools.tool import BadArguments, OwnTool
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.rules.gate.schemas import schema_of
from intersession_actors.running.host.own_threads import on_own_thread
from intersession_events.basics.plain_json import JsonObject

CALL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What models' APIs take as the name of a tool."""

_SECTION: Final = re.compile(
    r"(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?):", re.IGNORECASE
)
_OF_PARAMETERS: Final = frozenset({"args", "arguments", "parameters", "params"})
_GOOGLE: Final = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_REST: Final = re.compile(r":(?:param|parameter|arg)(?:\s+[^:]+)??\s+(\w+):\s*(.*)")
_PLAIN: Final = (str, int, float, bool, type(None), bytes, tuple, frozenset)
"""Types of defaults that no call can change."""


class Signature(NamedTuple):
    """A function's parameters: whether the first one is the turn, and the others as a struct, by which a model's arguments are checked."""

    takes_turn: bool
    arguments: type[msgspec.Struct]


def function_tool(function: Callable[..., object]) -> OwnTool:
    """Make a tool of a function, sync or async. A first parameter that is a `Turn` is the turn, which the model does not see.

    Raises:
        TypeError: it is no function with a name, or a parameter can't be described to a model.
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    if not callable(function) or isinstance(function, type):
        raise TypeError(
            f"{function!r} is no tool, give a function with annotated parameters, or mcp_tools(…)"
        )
    if not CALL_NAME.fullmatch(name):
        raise TypeError(f"{name!r} can't be the name of a tool, give it one of letters, digits, _ and -")
    described = _described(inspect.getdoc(function) or "")
    signature = signature_of(function, name, described)
    try:
        schema = schema_of(signature.arguments)
    except RecursionError:
        raise TypeError(
            f"{name}: a parameter's type contains itself, which models' APIs don't take"
        ) from None
    except TypeError as error:
        raise TypeError(
            f"{name}: parameter {_undescribed(signature.arguments)} has a type that can't be described to a model, use str, int,"
            " float, bool, Literal, an enum, a dataclass, a TypedDict, a msgspec struct, or lists and dicts of these"
        ) from error
    return OwnTool(name, described.text, schema, partial(_call, function, signature))


def signature_of(
    function: Callable[..., object], name: str, described: "_Described | None" = None
) -> Signature:
    """Read a function's parameters.

    Raises:
        TypeError: a parameter can't be given by name, or its annotation can't be resolved.
    """
    try:
        known = inspect.signature(function)
        hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise TypeError(f"{name}: its parameters can't be read: {error}") from error
    parameters = list(known.parameters.values())
    told = (described or _described("")).parameters
    takes_turn = bool(parameters) and _is_turn(parameters[0], hints)
    fields: list[tuple[str, Any, Any]] = []  # as msgspec takes them
    for parameter in parameters[takes_turn:]:
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(
                f"{name}: parameter {parameter} can't be given by name, give it a name of its own"
            )
        # Any: a parameter without an annotation takes any JSON.
        kind = _kind(hints.get(parameter.name, Any), told.get(parameter.name))
        fields.append((parameter.name, kind, _default(parameter.default)))
    return Signature(
        takes_turn,
        msgspec.defstruct(name.replace("-", "_"), fields, kw_only=True, forbid_unknown_fields=True),
    )


def _is_turn(parameter: inspect.Parameter, hints: Mapping[str, object]) -> bool:
    found = hints.get(parameter.name)
    return found is Turn or (found is None and parameter.name == "turn")


def _default(given: object) -> object:
    if given is inspect.Parameter.empty:
        return msgspec.NODEFAULT
    if isinstance(given, _PLAIN):
        return cast("object", given)
    return msgspec.field(default_factory=partial(copy.copy, given))


def _kind(hint: object, told: str | None) -> object:
    """Return a parameter's type with its description: from the docstring, or from `Annotated`, as a text or with a `description`."""
    if get_origin(hint) is not Annotated:
        plain = cast("Any", hint)  # Any: `Annotated` takes no object
        return hint if told is None else Annotated[plain, msgspec.Meta(description=told)]
    plain, *notes = get_args(hint)
    metas = [note for note in notes if isinstance(note, msgspec.Meta)]
    said = [
        note if isinstance(note, str) else getattr(note, "description", None)
        for note in notes
        if not isinstance(note, msgspec.Meta)
    ]
    told = next((text for text in said if isinstance(text, str)), told)
    if told is not None and not any(meta.description for meta in metas):
        metas.append(msgspec.Meta(description=told))
    for meta in metas:
        plain = Annotated[plain, meta]
    return plain


async def _call(
    function: Callable[..., object], signature: Signature, turn: Turn, arguments: JsonObject
) -> object:
    try:
        checked = msgspec.convert(arguments, signature.arguments)
    except msgspec.ValidationError as error:
        raise BadArguments(str(error)) from None
    given = {field: getattr(checked, field) for field in signature.arguments.__struct_fields__}
    work = partial(function, *([turn] if signature.takes_turn else []), **given)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return await cast("Awaitable[object]", work())
    found = await on_own_thread(work, "own-tool")
    return await found if inspect.isawaitable(found) else found


class _Described(NamedTuple):
    text: str
    parameters: Mapping[str, str]


def _described(doc: str) -> _Described:
    """Part a docstring: what the function does, and what its parameters are, in Google's form or reST's."""
    text: list[str] = []
    parameters: dict[str, str] = {}
    section, current, indent = "", "", 0
    for line in doc.splitlines():
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        rest, heading = _REST.fullmatch(bare), _SECTION.fullmatch(bare)
        if rest is not None:
            section, current = "rest", rest[1]
            parameters[current] = rest[2]
        elif heading is not None and depth == 0:
            section, current, indent = heading[1].lower(), "", 0
        elif bare.startswith(":") and depth == 0:
            section, current = "rest", ""
        elif section in _OF_PARAMETERS and bare:
            named = _GOOGLE.fullmatch(bare) if not indent or depth <= indent else None
            if named is not None:
                indent, current = depth, named[1]
                parameters[current] = named[2]
            elif current:
                parameters[current] = f"{parameters[current]} {bare}".strip()
        elif section == "rest" and bare and depth and current:
            parameters[current] = f"{parameters[current]} {bare}".strip()
        elif not section:
            text.append(line)
    return _Described("\n".join(text).strip(), {name: told for name, told in parameters.items() if told})


def _undescribed(arguments: type[msgspec.Struct]) -> str:
    """Return the first field whose type has no schema."""
    for field in msgspec.structs.fields(arguments):
        try:
            msgspec.json.schema(field.type)
        except (TypeError, RecursionError):
            return repr(field.name)
    return "?"
