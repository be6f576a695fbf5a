"""What an agent on an endpoint needs of an API of models, and how it reads what an endpoint says."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard, cast

from intersession_actors.outside.agents.own_tools.calling import ModelCall
from intersession_actors.outside.agents.turn import Dialect as Rendering
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Usage


class NoAnswer(RuntimeError):
    """The model's answer has no text, and the reason it ended for does not explain that."""


class NotUnderstood(ValueError):
    """What the endpoint said is no answer of this API."""


class ModelAnswer(NamedTuple):
    """What a model said. `said` goes back to it, as it is, if it goes on.

    `stop_reason` is the API's word. `is_whole`: by that word the model has said all that it wanted to.
    """

    said: Sequence[JsonObject]
    text: str | None
    calls: Sequence[ModelCall]
    usage: Usage
    model: str | None
    stop_reason: str | None
    is_whole: bool


class Chunks(Protocol):
    """The pieces of one answer, as far as they have come."""

    def take(self, chunk: Mapping[str, Any]) -> str:  # JSON of an endpoint's
        """Take a piece in; return the text that came with it."""
        ...

    def whole(self) -> JsonObject | None:
        """Return the body; None where the answer has not ended."""
        ...


class Dialect(Protocol):
    """An API of models."""

    renders: Rendering
    """In which form it is shown a session, and the tools."""

    def streaming(self, body: JsonObject) -> JsonObject:
        """Return the body of the same request for a stream."""
        ...

    def chunks(self) -> Chunks:
        """Return what puts the pieces of a stream together."""
        ...

    def path(self, base_url: str) -> str:
        """Return where requests go, below the endpoint's address."""
        ...

    def request(
        self, model: str, system: str, shown: Sequence[JsonObject], tools: Sequence[JsonObject]
    ) -> JsonObject:
        """Return the body of a request without its options."""
        ...

    def answer(self, body: JsonObject) -> ModelAnswer:
        """Read the endpoint's answer.

        Raises:
            NotUnderstood: it is no answer of this API.
            NoAnswer: the endpoint says that it has no answer.
        """
        ...

    def results(self, calls: Sequence[ModelCall], answers: Sequence[str]) -> list[JsonObject]:
        """Return what tells the model the results of its calls."""
        ...


def is_json_object(value: object) -> TypeGuard[Mapping[str, Any]]:  # JSON of an endpoint's
    """Whether this is a JSON object."""
    return isinstance(value, dict)


def objects_in(value: object) -> list[Mapping[str, Any]]:  # JSON of an endpoint's
    """Return the objects of a list; an empty list for anything else."""
    return (
        [one for one in cast("list[object]", value) if is_json_object(one)] if isinstance(value, list) else []
    )


def word_in(value: object, name: str) -> str | None:
    """Return a text of an object, or None."""
    found = value.get(name) if is_json_object(value) else None
    return found if isinstance(found, str) else None


def count_in(value: object, name: str) -> int:
    """Return a number of an object. What an endpoint says is not held against its type, and its answer is not lost for it."""
    found = value.get(name) if is_json_object(value) else None
    return found if isinstance(found, int) and found > 0 else 0


def without_none(value: Mapping[str, Any]) -> JsonObject:  # JSON of an endpoint's
    """Return an object without what is null: an endpoint does not always take what it gives."""
    return {name: item for name, item in value.items() if item is not None}
