"""Makes a command's options from the fields of a verb: the command adds only how the answer is shown."""

import inspect
import re
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Concatenate, Final, Generic, Literal, ParamSpec, TypeVar, cast

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import inspect as types

from intersession.cli.host.forks import in_fork
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import READING, Answer, Cursor, Reading, Since, Until, UsageError
from intersession_actors.hindsight.bundling.wanted import Redact
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.verbs.verbs import Verb
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import LISTED
from intersession_events.basics.plain_json import JsonObject, present

A = TypeVar("A", bound=Mapping[str, object])
_More = ParamSpec("_More")

_CAPITAL: Final = re.compile(r"(?=[A-Z])")
_SHARED: Final[Mapping[str, object]] = {"since": Since, "until": Until, "cursor": Cursor}
_CHOICES: Any = Literal  # of values that are known when it runs
_BUNDLE: Final = inspect.Parameter(
    "bundle",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Path | None,
        Parameter(
            help="Write the answer to this file as a bundle, with the streams of its events, which prove it."
        ),
    ],
)
_REDACT: Final = inspect.Parameter(
    "redact",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Redact | None,
        Parameter(
            help="With --bundle: withhold secrets, all words, or who people are; the rest is proven as before."
        ),
    ],
)
_PAGING: Final = (*_SHARED, "limit")
"""The fields of every list; they come last."""


@dataclass(frozen=True)
class VerbCall(Generic[A]):
    """A call of a verb by a command. `given` are its arguments as they were typed, `reading` names the log."""

    verb: str
    given: JsonObject
    reading: Reading
    forks: Collection[str]

    @contextmanager
    def view(self) -> Generator[View]:
        """Open the log, or the named fork, as the operator sees it; `given` then has the names as that log has them."""
        inside, named = in_fork(self.reading, *(self.given.get(field) for field in self.forks))
        for field in self.forks:
            if field in self.given:
                self.given[field] = named(self.given[field])
        with reader_of(inside) as reader:
            yield View(reader)

    @contextmanager
    def answered(self) -> Generator[tuple[A, View]]:
        """Ask, and yield the answer; the log stays open for the block."""
        with self.view() as view:
            yield self.of(view), view

    def of(self, view: View) -> A:
        """Return the answer from the open log."""
        return cast("A", Debugger(view).call(self.verb, self.given))

    def bundled(self, answer: Answer, output: Path | None, redact: Redact | None, page: object) -> Answer:
        """Return the answer, once it is bundled in a file if one is named."""
        if output is None:
            if redact is not None:
                raise UsageError("--redact: it says what a bundle withholds, give --bundle FILE with it")
            return answer
        from intersession.cli.host.bundles import with_bundle  # noqa: PLC0415 - few answers are bundled

        inside, _ = in_fork(self.reading, *(self.given.get(field) for field in self.forks))
        given = {**self.given, **getattr(page, "given", {}), "limit": getattr(page, "limit", None)}
        return with_bundle(answer, inside, self.verb, present(given), output, redact=redact)


def asks(
    verb: Verb[..., A],
    *,
    options: Mapping[str, object] | None = None,
    forks: Collection[str] = (),
    **positional: str,
) -> Callable[[Callable[Concatenate[VerbCall[A], _More], Answer]], Callable[..., Answer]]:
    """Return a decorator that turns a function of a verb call into a command with the verb's options and some more.

    `options` are those that the command line takes otherwise than the verb's struct says, `forks` the fields that may name a fork,
    and the rest those that are no options, and how help calls them. A command that takes a `page` has the fields of paging there, and
    one that goes on from the `last` has none.
    """

    def command(show: Callable[Concatenate[VerbCall[A], _More], Answer]) -> Callable[..., Answer]:
        _, *more = inspect.signature(show).parameters.values()
        paging = _PAGING if any(each.name in {"page", "last"} for each in more) else ()
        fields = [each for each in msgspec.structs.fields(verb.arguments) if each.name not in paging]
        fields.sort(key=lambda field: _PAGING.index(field.name) if field.name in _PAGING else -1)

        # cyclopts reads the signature that is set below.
        def called(*args: object, **kwargs: object) -> Answer:
            given = inspect.Signature(parameters).bind(*args, **kwargs)
            given.apply_defaults()
            typed: JsonObject = given.arguments
            reading, bundle, redact = (typed.pop(name, None) for name in ("reading", "bundle", "redact"))
            asked: JsonObject = {
                field.encode_name: [*value] if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - as cyclopts made it
                for field in fields
                if (value := typed.pop(field.name)) != () and value is not None and value is not False
            }
            call = VerbCall[A](verb.name, asked, reading, forks)
            answer = show(call, **typed)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] - what is left is its own
            return call.bundled(answer, bundle, redact, typed.get("page"))

        parameters = [
            *(
                _parameter(field, positional.get(field.name), (options or {}).get(field.name))
                for field in fields
            ),
            *more,
            *([] if any(each.name == "last" for each in more) else [_BUNDLE, _REDACT]),
            inspect.Parameter("reading", inspect.Parameter.KEYWORD_ONLY, default=READING, annotation=Reading),
        ]
        parameters.sort(key=lambda each: each.kind)
        called.__name__, called.__doc__ = show.__name__, show.__doc__
        called.__signature__ = inspect.Signature(parameters, return_annotation=Answer)  # type: ignore[attr-defined] # pyright: ignore[reportFunctionMemberAccess]
        called.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": Answer}
        return called

    return command


def at_most(said: str, most: int = LISTED.most) -> object:
    """Return an option for the number of rows."""
    return Annotated[int | None, Parameter(help=said, validator=Number(gte=1, lte=most))]


def _parameter(
    field: msgspec.structs.FieldInfo, positional: str | None, otherwise: object
) -> inspect.Parameter:
    kind, default, description = _typed(types.type_info(field.type))
    name = positional or f"--{_CAPITAL.sub('-', field.encode_name).lower()}"
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_ONLY if positional else inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.required else default,
        annotation=otherwise
        or _SHARED.get(field.name)
        or Annotated[kind, Parameter(name=name, help=description)],
    )


def _typed(info: types.Type) -> tuple[Any, object, str]:  # a type, as annotations have it
    """Return what an option takes, its default, and what it is for."""
    match info:
        case types.Metadata(type=of, extra_json_schema=schema):  # pyright: ignore[reportUnknownVariableType] - as below
            kind, default, description = _typed(of)
            known: JsonObject = {"description": description, **(schema or {})}  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - msgspec's own dict
            said: str = known["description"]
            if default == ():
                said = f"{said.removesuffix('.')}; may be given several times."
            return kind, default, said.replace("`", "")
        case types.UnionType(types=of):
            return next(_typed(each) for each in reversed(of) if not isinstance(each, types.NoneType))
        case types.BoolType():
            return bool, False, ""
        case types.IntType() | types.FloatType():
            return int | None, None, ""
        case types.LiteralType(values=values):
            return _CHOICES[values] | None, None, ""
        case types.CollectionType(item_type=types.LiteralType(values=values)):
            return tuple[_CHOICES[values], ...], (), ""
        case types.CollectionType():
            return tuple[str, ...], (), ""
        case _:
            return str | None, None, ""
