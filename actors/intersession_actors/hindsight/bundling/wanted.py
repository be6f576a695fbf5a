"""The question that a bundle answers."""

from collections.abc import Collection
from hashlib import sha256
from typing import Final, Literal, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.view import At
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject

Redact = Literal["secrets", "words", "people"]
"""What a redacted edition withholds: secrets in words, all words, or who people are."""
ENCODE: Final = msgspec.json.Encoder(order="sorted").encode
_SELECTING: Final = ("run", "session", "person", "since", "everything", "positions")


def name_of(kind: str, question: JsonObject, at: int) -> str:
    """Return the name of a file with a part of a log: what kind it is of, the hash of the question, and the place."""
    return f"{kind}-{sha256(ENCODE(question)).hexdigest()[:8]}-{at}"


class BundleFields(TypedDict, total=False):
    """The fields of a query for a bundle, as a caller of Python gives them: `everything` for the whole log."""

    run: str | None
    session: str | None
    person: str | None
    since: At | None
    until: At | None
    everything: bool
    at: At | None
    redact: Redact | None


class BundleWanted(msgspec.Struct, frozen=True, kw_only=True):
    """The query for a bundle: one selection of the log, up to a place.

    `run` is an exchange, a spawn or a run, `session` a session, by any name; `person` is on whose behalf things were done, by the
    id or the name on a channel or as shown (`telegram:ada`). `since` and `until` are places: all streams with events between.
    `everything` is the whole log. `positions` are the events of an `answer` to a `question`. `at` is the last place; None is the
    head, or `until`. `question` says what was asked in the words of the door; without one it is the selection.
    """

    run: str | None = None
    session: str | None = None
    person: str | None = None
    since: At | None = None
    until: At | None = None
    everything: bool = False
    positions: Collection[int] | None = None
    at: At | None = None
    redact: Redact | None = None
    question: JsonObject = {}
    answer: JsonObject | None = None

    def check(self) -> None:
        """Refuse a query that selects nothing, or in two ways at once.

        Raises:
            ToolRefused: it does (`invalid_request`).
        """
        given = {name: getattr(self, name) for name in _SELECTING}
        named = [name for name, value in given.items() if value is not None and value is not False]
        if self.until is not None and self.since is None:
            named.append("until")  # from the beginning
        if len(named) != 1:
            said = f"these are {len(named)}: {', '.join(named)}" if named else "nothing says what is bundled"
            raise invalid(
                "run", f"{said}; give one of run, session, person, since with until, or everything (`--all`)"
            )
        if self.until is not None and self.at is not None:
            raise invalid("at", "until is the last place already, leave one of them out")
