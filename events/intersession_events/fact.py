"""What all facts have in common: frozen, keyword-only, camelCase on disk, defaults left out."""

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything that can have happened.

    A default is a promise for ever: a field that equals its default is not stored. Integers stay below
    2**53 and no field holds a float, so that the stored bytes are RFC 8785 canonical JSON.
    """
