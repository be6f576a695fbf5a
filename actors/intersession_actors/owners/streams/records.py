"""The decision record, which an append carries beside its first event: a decision's command and inputs.

It names the command (`asked`), its inputs (`with`) and every part of the circumstances that was not as it nearly always is
(`knew`). What the log has is not said again: how a run or a delivery ended stands in the event that the append was caused by. It
never holds words, which could be erased: they stand in the events of the append, and the record says which of them. In the
first logs it has their SHA-256 instead.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from intersession_actors.owners.streams.commands import StepRefused
from intersession_actors.rules.policy.chain import Spent
from intersession_events import facts
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.recorded import Recorded

Words = Callable[[int | str], str]
"""Returns the words that have a number (in the first logs, a digest) among the texts of the append."""

_NOWHERE: Final = -1
"""Stands for words that no event of the append has: nothing that was decided holds them."""

_MOST_BREAKS: Final = 8
"""The most blank lines that a notice to a person may have to be known again behind what an agent had shown."""

_NOTHING: Final[JsonObject] = {}


@facts.ready
class Record(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A decision record as it is stored: canonical JSON without empty fields."""

    asked: str
    knew: JsonObject = {}
    inputs: JsonObject = msgspec.field(default={}, name="with")


_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode
_DECODE: Final = msgspec.json.Decoder(Record).decode


class Wording:
    """Words in a record that is being made: there stands their number among the texts of the append."""

    __slots__ = ("words",)

    def __init__(self, words: str) -> None:
        self.words = words


def record_of(
    asked: str,
    inputs: JsonObject = _NOTHING,
    knew: JsonObject = _NOTHING,
    append: Callable[[], Iterable[facts.Event]] = tuple,
) -> str:
    """Return the record of a decision about a command of that name; `append` returns its events, those that it carries last."""
    if not inputs and not knew:
        return _bare(asked)

    def number(told: object) -> int:
        if not isinstance(told, Wording):
            raise TypeError(f"a record holds no {type(told).__name__}")
        texts = texts_in(append())
        return texts.index(told.words) if told.words in texts else _NOWHERE

    return msgspec.json.encode(Record(asked, knew, inputs), order="sorted", enc_hook=number).decode()


@lru_cache(64)
def _bare(asked: str) -> str:
    return _ENCODE(Record(asked)).decode()


def record_in(decision: str) -> Record:
    """Parse a decision record.

    Raises:
        ValueError: it is invalid.
    """
    return _DECODE(decision)


def words_of(append: Iterable[facts.Event]) -> Words:
    """Return a function from numbers to the texts of an append, and from digests; one that is not there, or not any more, is `[erased]`."""
    texts = texts_in(append)

    def words(told: int | str) -> str:
        if isinstance(told, str):
            return next((text for text in texts if _digest_of(text) == told), told)
        return texts[told] if 0 <= told < len(texts) else facts.ERASED

    return words


def _digest_of(words: str) -> str:
    return sha256(words.encode(errors="surrogatepass")).hexdigest()


def texts_in(append: Iterable[facts.Event]) -> list[str]:
    """Return all texts in the events of an append; an erasure leaves each its number, but for the parts at the end."""
    found, parts = list[str](), list[str]()
    for event in append:
        found += facts.words(event)
        if isinstance(event, facts.DeliveryDone | facts.DeliveryPartDone) and event.receipt is not None:
            found.append(event.receipt)
        if isinstance(event, facts.DeliveryDecided) and event.edits is not None:
            parts += _behind_breaks(event.text)  # a notice stands behind what was shown before it (STREAM-5)
    return found + parts


def _behind_breaks(text: str) -> list[str]:
    """Return what of a text stands behind its last blank lines, from each of them on."""
    parts = text.rsplit("\n\n", _MOST_BREAKS)
    return ["\n\n".join(parts[at:]) for at in range(1, len(parts))]


def appends_in(stream: Iterable[Recorded]) -> Iterator[tuple[Recorded, ...]]:
    """Split a stream into appends: a record begins one, and each further event of it was caused by the one before."""
    append: list[Recorded] = []
    for one in stream:
        if append and (one.decision or one.causation != append[-1].id):
            yield tuple(append)
            append = []
        append.append(one)
    if append:
        yield tuple(append)


def present(values: Mapping[str, object]) -> JsonObject:
    """Return the values without the empty ones: None, false, zero and empty are left out of a record."""
    return {name: value for name, value in values.items() if value}


def spent_of(spent: Spent) -> JsonObject:
    """Return a record's form of a chain's usage."""
    said: JsonObject = {}
    if spent.cost_micros:
        said["costMicros"] = spent.cost_micros
    if spent.runs:
        said["runs"] = spent.runs
    if spent.tokens:
        said["tokens"] = spent.tokens
    return said


def spent_in(knew: JsonMapping) -> Spent:
    """Return a chain's usage from a record."""
    spent: Mapping[str, int] = knew.get("spent", {})
    return Spent(
        runs=spent.get("runs", 0), tokens=spent.get("tokens", 0), cost_micros=spent.get("costMicros", 0)
    )


def refused_of(refused: Mapping[str, StepRefused]) -> JsonObject:
    """Return a record's form of steps that sessions refused."""
    return {run_id: {"code": one.code, "error": Wording(one.error)} for run_id, one in refused.items()}


def refused_in(knew: JsonMapping, stream: str, words: Words) -> dict[str, StepRefused]:
    """Return the steps that sessions refused, from a record."""
    found: JsonMapping = knew.get("refused", {})
    return {
        run_id: StepRefused(stream=stream, run_id=run_id, code=refused["code"], error=words(refused["error"]))
        for run_id, refused in found.items()
    }
