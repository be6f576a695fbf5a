"""What all facts have in common: frozen, keyword-only, camelCase on disk, defaults left out."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, ClassVar, Final, Literal, TypeVar, cast

import msgspec

from intersession_events.facts.words import Frame, Words

__all__ = [
    "ERASED",
    "ERASED_OBJECT",
    "LARGEST",
    "NO_OTHER_LIMITS",
    "Budget",
    "Digest",
    "Fact",
    "Limits",
    "Mark",
    "Remark",
    "Root",
    "Said",
    "Source",
    "Whole",
    "Work",
    "lean",
    "ready",
    "same_request",
]

S = TypeVar("S")
F = TypeVar("F", bound="Fact")


LARGEST: Final = 2**53 - 1
"""RFC 8785 writes numbers as doubles do: beyond this they are no longer exact."""

Whole = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
"""A number as an event has it. Nothing else is decoded where it stands, no fraction either."""

Work = Literal["run", "exchange", "spawn", "delivery"]
"""What is begun and comes to an end."""

Mark = Literal["note", "failed", "end"]
"""`note`: what happened besides; `failed`: what went wrong; `end`: how it ended."""

Root = Literal["person", "operator", "timer", "start", "import", "system"]
"""What a chain of causes began with: a person's words, a call by a door (of the operator, or of code of the host's), time that came, a
start of the system, an import that shows no more, or the system's own accounts of itself."""

Said = Annotated[str, msgspec.Meta(extra={"holds": "words"})]
"""What a person or an agent said: an erasure takes it out of the event."""

Remark = Annotated[str, msgspec.Meta(extra={"holds": "remark"})]
"""An error, a note, or another text beside what was said: such texts come about alike in sessions that share nothing."""

Source = Annotated[str, msgspec.Meta(extra={"holds": "source"})]
"""The source text of JSON, in which words may stand: an erasure takes out all of it."""

Digest = Annotated[str, msgspec.Meta(extra={"holds": "digest"})]
"""The SHA-256 of words, by which a guess of them could be tested: it goes with them."""

ERASED: Final = "[erased]"
"""What is read where there were words."""

ERASED_JSON: Final = f'"{ERASED}"'
ERASED_OBJECT: Final = f'{{"text":{ERASED_JSON}}}'
"""What is read where there was the source text of JSON: where a tool was given something, for one."""

EMPTY: Final = cast("Callable[[], dict[str, str]]", dict)
"""Makes the default of a field that is a map of texts: of no other factory msgspec leaves out what is empty."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of everything that can have happened.

    A default is a promise for ever: a field that is its default is not stored (`lean`, where it is only equal to it). Numbers are `Whole`,
    so that the stored bytes are RFC 8785 canonical JSON. Fields that hold words are `Said`, `Remark` or `Source`.
    """

    topic: ClassVar[str]
    """The stored name of an event, `<name>.<version>`: frozen for ever, and independent of the name of its class."""

    origin: ClassVar[Root] = "operator"
    """The kind of caller or cause of such events."""

    mark: ClassVar[Mark | None] = None
    """How a diagram marks it beside the texts; None where it does not."""

    in_stories: ClassVar[bool] = True
    """Whether stories may tell it."""

    from_outside: ClassVar[bool] = False
    """Whether it begins an append if somebody outside said so: nobody decides it anew."""

    begins: ClassVar[Work | None] = None
    """What it begins, or begins once more."""

    ends: ClassVar[Work | None] = None
    """What it ends, if it `is_final`."""

    @property
    def is_final(self) -> bool:
        """Whether nothing comes behind it of what it ends."""
        return True

    @property
    def doer(self) -> str | None:
        """Who called for it: `operator`, a credential, a session; None where nobody did, or it does not say who."""
        who: str | None = getattr(self, "by", None)
        return who

    @property
    def begun_by(self) -> Root:
        """What it all began with, where nothing recorded led to it."""
        return self.origin

    def frame(self) -> Frame:
        """Return what is known, once it has begun its stream, around the events behind it."""
        return Frame()

    def in_words(self, at: Frame) -> Words:
        """Return it in words."""
        raise NotImplementedError

    def left_of_sources(self) -> Mapping[str, str | None]:
        """Return what an erasure leaves of each field that is a `Source`."""
        return {}


def lean(fact: F, default: F | None = None) -> F:
    """Return a fact in which each field that equals its default is that default itself: msgspec leaves out only those.

    A fact that equals `default` as a whole is returned as `default`.
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


def same_request(recorded: Iterable[str | None], digests: Iterable[str]) -> bool:
    """Whether a request under the same key is the recorded one (SEND-11). One whose words were erased is known by its key alone."""
    known = {*recorded}
    return ERASED in known or not known.isdisjoint(digests)


def ready(kind: type[S]) -> type[S]:
    """Let msgspec learn a struct now: a decorator for every struct that JSON is decoded or converted to.

    msgspec learns a struct when it first meets it. Two threads that make it learn one struct at once crash the
    interpreter (msgspec 0.22).
    """
    msgspec.json.Decoder(kind)
    return kind


@ready
class Limits(Fact, frozen=True, kw_only=True):
    """The guards over a causal chain (LOOP-5); 0 turns one off."""

    hops: Whole = 8
    revisits: Whole = 4
    runs: Whole = 64
    tokens: Whole = 0
    cost_micros: Whole = 0
    wall_seconds: Whole = 3600


NO_OTHER_LIMITS: Final = Limits()
"""The guards that stand where none are configured; as one value, which is not stored."""


class Budget(Fact, frozen=True, kw_only=True):
    """How far a causal chain has come at one of its places, and how far it may go.

    `root` is the run it began with, `started_ms` when that was accepted (0: not known). `path` are the sessions it came through, the
    one that this is for last; `hops` the sends and spawns on the way. `limits` were in force when it was last handed on
    by one (CFG-3). What it has used in all is counted from the events of all its runs. `held_ms` is for how long exchanges on
    the way were held, which is no time of the chain's (LIVE-1). `sender` is the person whose message it began with, as
    `channel:id`, where the settings give tools by the sender (TOOLS-2).
    """

    root: str
    started_ms: Whole = 0
    path: tuple[str, ...] = ()
    hops: Whole = 0
    limits: Limits = NO_OTHER_LIMITS
    held_ms: Whole = 0
    sender: str | None = None
