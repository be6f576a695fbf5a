"""What all facts have in common: frozen, keyword-only, camelCase on disk, defaults left out."""

from typing import TypeVar

import msgspec

S = TypeVar("S")


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of everything that can have happened.

    A default is a promise for ever: a field that equals its default is not stored. Integers stay below
    2**53 and no field holds a float, so that the stored bytes are RFC 8785 canonical JSON.
    """


def ready(kind: type[S]) -> type[S]:
    """Let msgspec learn a struct now: a decorator, for every struct that something is decoded or converted to.

    It learns a struct when it first needs to, and two threads that make it learn the same one at once crash the
    interpreter (msgspec 0.22).
    """
    msgspec.json.Decoder(kind)
    return kind
