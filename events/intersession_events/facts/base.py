"""What all facts have in common: frozen, keyword-only, camelCase on disk, defaults left out."""

from collections.abc import Callable
from typing import Annotated, Final, TypeVar, cast

import msgspec

S = TypeVar("S")
F = TypeVar("F", bound="Fact")


LARGEST: Final = 2**53 - 1
"""RFC 8785 writes numbers as doubles do: beyond this they are no longer exact."""

Whole = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
"""A number as an event has it. Nothing else is decoded where it stands, no fraction either."""

EMPTY: Final = cast("Callable[[], dict[str, str]]", dict)
"""Makes the default of a field that is a map of texts: of no other factory msgspec leaves out what is empty."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of everything that can have happened.

    A default is a promise for ever: a field that is its default is not stored (`lean`, where it is only equal to it). Numbers are `Whole`,
    so that the stored bytes are RFC 8785 canonical JSON.
    """


def lean(fact: F, default: F | None = None) -> F:
    """Return a fact in which each field that equals its default is the default itself: msgspec leaves out only those.

    Where the whole of it is a `default` of something else, it is that.
    """
    if default is not None and fact == default:
        return default
    own = type(fact)
    return own(
        **{
            field.name: field.default if (value := getattr(fact, field.name)) == field.default else value
            for field in msgspec.structs.fields(own)
        }
    )


def ready(kind: type[S]) -> type[S]:
    """Let msgspec learn a struct now: a decorator, for every struct that something is decoded or converted to.

    It learns a struct when it first needs to, and two threads that make it learn the same one at once crash the
    interpreter (msgspec 0.22).
    """
    msgspec.json.Decoder(kind)
    return kind
