"""The answers that the pages of the web debugger get, as types: what their scripts are checked against.

python tests/support/pages/answers.py --write    makes actors/intersession/web/types/answers.d.ts anew

A verb's answer has its type beside the verb. What the questions of the pages answer besides is written down here, and held
by the answers themselves: a test reads each as it is typed, and what it has besides is no part of it.
"""

import sys
from pathlib import Path
from typing import Any, Final, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

import msgspec

from intersession_actors.hindsight.debugger.answers import PlaceAnswer, StateAnswer
from intersession_actors.hindsight.debugger.diff import DiffAnswer
from intersession_actors.hindsight.debugger.lens import LensAnswer
from intersession_actors.hindsight.debugger.lists.deliveries import DeliveriesAnswer
from intersession_actors.hindsight.debugger.lists.hosts import HostsAnswer
from intersession_actors.hindsight.debugger.lists.person_texts import PersonTextsAnswer
from intersession_actors.hindsight.debugger.origin import OriginAnswer
from intersession_actors.hindsight.debugger.search import SearchAnswer
from intersession_actors.hindsight.debugger.state import ChangesAnswer
from intersession_actors.hindsight.debugger.why import EffectsAnswer, WhyAnswer
from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.facts import ForkEdit
from intersession_projections.questions.diagram.rows import Arrow, Gap, Mark
from support.paths import ROOT

TYPES: Final = ROOT / "actors" / "intersession" / "web" / "types" / "answers.d.ts"
UNSET: Final = msgspec.UNSET
Unset = msgspec.UnsetType


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An answer, or a part of one."""


class AboutAnswer(Shape, frozen=True, kw_only=True):
    """Which log this is, the viewer, and what they may do."""

    log_id: str
    head: int | None
    speakers: list[str]
    ends: dict[str, str]
    archivals: dict[str, str]
    delivery_states: dict[str, str]
    edits: dict[str, str]
    held_before: dict[str, str]
    who: str
    is_operator: bool
    read_only: bool
    can: list[str]
    store: str | None
    version: str


class LaneAnswer(Shape, frozen=True, kw_only=True):
    """Whoever takes part in a run."""

    id: str
    name: str
    kind: str


class Smelled(Shape, frozen=True, kw_only=True):
    """What is seldom meant, where it shows."""

    code: str
    place: PlaceAnswer
    text: str
    name: str


class CallerAnswer(Shape, frozen=True, kw_only=True):
    """The run that called: positions between which it was at work, and between which it waited."""

    run_id: str
    session_key: str
    from_: int = msgspec.field(name="from")
    to: int | None = None
    waits: list[tuple[int, int | None]]


class HeldCallAnswer(Shape, frozen=True, kw_only=True):
    """A tool call that waits for a release."""

    hold_id: str
    session_key: str
    run_id: str
    call_id: str
    tool: str
    arguments: str
    rule: str
    since: int
    until: int | Unset = UNSET


class ListedRun(Shape, frozen=True, kw_only=True):
    """A run as the list has it."""

    id: str
    kind: Literal["exchange", "spawn", "run"]
    run_id: str
    accepted_at: int
    accepted: int
    position: int
    state: Literal["open", "closed"]
    title: str
    lanes: list[LaneAnswer]
    outline: list[tuple[str, int, int]]
    began: int
    told: str
    ended: tuple[str, str]
    smells: list[Smelled]
    at_work: bool | Unset = UNSET
    requester: str | Unset = UNSET
    target: str | Unset = UNSET
    status: str | Unset = UNSET
    label: str | Unset = UNSET
    close_reason: str | Unset = UNSET
    closed_at: int | Unset = UNSET
    loop_end: str | Unset = UNSET
    limit: str | Unset = UNSET
    turns: int | Unset = UNSET
    max_turns: int | Unset = UNSET
    hold: str | Unset = UNSET
    archived: bool | Unset = UNSET
    attempt: int | Unset = UNSET
    error_code: str | Unset = UNSET
    error: str | Unset = UNSET
    retry_of: str | Unset = UNSET
    inferred: list[str] | Unset = UNSET
    ended_ms: int | Unset = UNSET
    took_ms: int | Unset = UNSET
    held_ms: int | Unset = UNSET
    held_since: int | Unset = UNSET
    held: JsonObject | Unset = UNSET
    pauses: list[tuple[int, int]] | Unset = UNSET
    deliveries: list[JsonObject] | Unset = UNSET
    failed: bool | Unset = UNSET
    waits: JsonObject | Unset = UNSET
    retried_by: str | Unset = UNSET
    frozen: bool | Unset = UNSET


class RunsListed(Shape, frozen=True, kw_only=True):
    """Runs, the newest first."""

    count: int
    runs: list[ListedRun]
    cursor: str | None
    imported: bool | Unset = UNSET
    limit_applied: int | Unset = UNSET


class RunAnswer(ListedRun, frozen=True, kw_only=True):
    """A run as its own page has it."""

    kinds: str
    steps: int
    first: int
    last: int
    sessions: list[str]
    before: str | Unset = UNSET
    after: str | Unset = UNSET
    calls: list[HeldCallAnswer] | Unset = UNSET
    imported: list[str] | Unset = UNSET
    caller: CallerAnswer | Unset = UNSET


class RowsAnswer(Shape, frozen=True, kw_only=True):
    """Rows of a diagram."""

    from_: int = msgspec.field(name="from")
    rows: list[Arrow | Mark | Gap]


class StepAnswer(Shape, frozen=True, kw_only=True):
    """An event of a run."""

    position: int
    time_ms: int
    kind: str
    stream: str
    text: str
    who: str | Unset = UNSET
    to: str | Unset = UNSET
    cause: int | Unset = UNSET
    turn: int | Unset = UNSET
    run_id: str | Unset = UNSET
    message_id: str | Unset = UNSET
    calls: int | Unset = UNSET
    gives: bool | Unset = UNSET


class StepsAnswer(Shape, frozen=True, kw_only=True):
    """Events of a run, in log order."""

    from_: int = msgspec.field(name="from")
    steps: list[StepAnswer]


class WhereAnswer(Shape, frozen=True, kw_only=True):
    """A place in words, and what comes next; of a run also how many of its events are behind it."""

    place: PlaceAnswer
    next: PlaceAnswer | None
    index: int | Unset = UNSET


class NoteAnswer(Shape, frozen=True, kw_only=True):
    """A note that is pinned to a place."""

    position: int
    time_ms: int
    by: str
    text: str
    place: PlaceAnswer


class NotesAnswer(Shape, frozen=True, kw_only=True):
    """The notes beside a run."""

    notes: list[NoteAnswer]


class EventListed(Shape, frozen=True, kw_only=True):
    """An event as the list has it."""

    position: int
    event_id: str
    time_ms: int
    stream: str
    version: int
    kind: str
    topic: str
    text: str
    who: str | Unset = UNSET
    to: str | Unset = UNSET


class EventsListed(Shape, frozen=True, kw_only=True):
    """Events, the newest first."""

    count: int
    events: list[EventListed]
    cursor: str | None
    head: int | None


class EventAnswer(EventListed, frozen=True, kw_only=True):
    """An event as it is stored, and the words that it stands for."""

    said: str | None
    causation: str | None
    correlation: str | None
    decision: JsonObject | None
    epoch: int
    hash: str
    prev: str
    digest: str
    linked_to: int | None
    holds: bool
    redacted: bool
    data: JsonObject


class SessionsAnswer(Shape, frozen=True, kw_only=True):
    """Sessions, most recently active first: as `sessions_list` has them, with `canonical` and `filled`."""

    sessions: list[JsonObject]
    as_of: int
    cursor: str | None


class LoadedAnswer(Shape, frozen=True, kw_only=True):
    """When settings came into force."""

    position: int
    time_ms: int
    digest: str


class SettingsAnswer(Shape, frozen=True, kw_only=True):
    """The settings in force, without secrets."""

    settings: JsonObject
    digest: str
    loaded: list[LoadedAnswer]


class JobAnswer(Shape, frozen=True, kw_only=True):
    """A scheduled job: how it is set, what came of it last, when it is due next."""

    id: str
    name: str | None
    enabled: bool
    paused: bool
    schedule: JsonObject
    session_target: str
    session_key: str | None
    catch_up: str
    delivery: JsonObject
    state: JsonObject


class SchedulesAnswer(Shape, frozen=True, kw_only=True):
    """The scheduled jobs."""

    jobs: list[JobAnswer]


class FindingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What verification has found."""

    code: str
    problem: str
    position: int | None = None
    stream: str | None = None


class IntegrityAnswer(Shape, frozen=True, kw_only=True):
    """Whether the log is as it was written; `problem` stands where that could not be asked."""

    head: int | Unset = UNSET
    verified_to: int | Unset | None = UNSET
    ok: bool | Unset | None = UNSET
    events: int | Unset = UNSET
    streams: int | Unset = UNSET
    erased: int | Unset = UNSET
    erasures: list[JsonObject] | Unset = UNSET
    counts: dict[str, int] | Unset = UNSET
    findings: list[FindingAnswer] | Unset = UNSET
    unproven: list[str] | Unset = UNSET
    checkpoints: JsonObject | Unset = UNSET
    log_head: JsonObject | Unset = UNSET
    problem: str | Unset = UNSET


class OutcomeAnswer(Shape, frozen=True, kw_only=True):
    """How the run of a fork stands."""

    state: str
    run: str
    events: int
    turns: int | None = None
    end: str | None = None
    close: str | None = None
    left: JsonObject | None = None


class ForkAnswer(Shape, frozen=True, kw_only=True):
    """A fork beside the log; `problem` says why it could not be read."""

    id: str
    file: str
    time_ms: int
    problem: str | Unset = UNSET
    parent: str | Unset = UNSET
    run: str | Unset = UNSET
    place: PlaceAnswer | Unset = UNSET
    edits: list[ForkEdit] | Unset = UNSET
    by: str | Unset = UNSET
    outcome: OutcomeAnswer | Unset = UNSET
    title: str | Unset = UNSET


class ForksAnswer(Shape, frozen=True, kw_only=True):
    """The forks beside the log, the newest first."""

    forks: list[ForkAnswer]
    from_: JsonObject | None = msgspec.field(name="from")
    state: str


class CutAnswer(Shape, frozen=True, kw_only=True):
    """Where a fork was cut, and what is otherwise in it."""

    position: int
    edits: list[ForkEdit]
    side: str | Unset = UNSET


class CompareAnswer(DiffAnswer):
    """What differs between two runs, or between a run and its fork; where forks were cut between the two."""

    cut: CutAnswer | None
    cuts: list[CutAnswer]
    titles: dict[str, str]


ANSWERS: Final[dict[str, Any]] = {
    "about": AboutAnswer,
    "compare": CompareAnswer,
    "deliveries": DeliveriesAnswer,
    "event": EventAnswer,
    "events": EventsListed,
    "forks": ForksAnswer,
    "hosts": HostsAnswer,
    "integrity": IntegrityAnswer,
    "lens": LensAnswer,
    "notes": NotesAnswer,
    "origin": OriginAnswer,
    "place": WhereAnswer,
    "rows": RowsAnswer,
    "run": RunAnswer,
    "runs": RunsListed,
    "schedules": SchedulesAnswer,
    "search": SearchAnswer,
    "sessions": SessionsAnswer,
    "settings": SettingsAnswer,
    "state": StateAnswer,
    "steps": StepsAnswer,
    "told": PersonTextsAnswer,
    "why": WhyAnswer,
}
"""What is answered to each question that the pages ask, by its name."""

OTHERWISE: Final[tuple[Any, ...]] = (ChangesAnswer, EffectsAnswer)
"""What `state` and `why` answer where they are asked for what changed, or forward."""


ADDED: Final = frozenset({"names", "openClaws", "redacted"})
"""What any answer may have besides: names of sub-agents, messages whose words are OpenClaw's own, that secrets are hidden."""


def check_typed(question: str, answer: JsonObject) -> None:
    """Fail where an answer to a question of the pages is not of its type, or has more than that says."""
    if question not in ANSWERS:
        return
    kinds = (ANSWERS[question], *(OTHERWISE if question in {"state", "why"} else ()))
    added = ADDED - {"redacted"} if question == "event" else ADDED
    said = {name: value for name, value in answer.items() if name not in added}
    wrong: list[str] = []
    for kind in kinds:
        try:
            msgspec.convert(said, kind, strict=True)
        except msgspec.ValidationError as error:
            wrong.append(f"{question}: {error}")
        else:
            return
    raise AssertionError(wrong)


def typed(schema: JsonValue, indent: str = "") -> str:
    """Return the type that a JSON schema describes, as TypeScript says it."""
    match schema:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2]
        case {"anyOf": [*choices]}:
            return " | ".join(dict.fromkeys(typed(one, indent) for one in choices))
        case {"enum": [*values]}:
            return " | ".join(msgspec.json.encode(value).decode() for value in values)
        case {"type": "array"}:
            return _array(schema, indent)
        case {"type": "object"}:
            return _object(schema, indent)
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": str(kind)}:
            return kind
        case _:
            return "any"


def _array(schema: JsonObject, indent: str) -> str:
    if items := schema.get("prefixItems"):
        return f"[{', '.join(typed(item, indent) for item in items)}]"
    inner = typed(schema.get("items"), indent)
    return f"({inner})[]" if " | " in inner else f"{inner}[]"


def _object(schema: JsonObject, indent: str) -> str:
    if "properties" not in schema:
        return f"Record<string, {typed(schema.get('additionalProperties'), indent)}>"
    required = schema.get("required", [])
    lines = "".join(
        f"{indent}  {name}{'' if name in required else '?'}: {typed(one, indent + '  ')};\n"
        for name, one in schema["properties"].items()
    )
    return f"{{\n{lines}{indent}}}"


def written() -> str:
    """Return the file of types."""
    named = ANSWERS
    schemas, components = msgspec.json.schema_components(
        [*named.values(), *OTHERWISE], ref_template="#/{name}"
    )
    parts = "".join(
        f"  type {name} = {typed(schema, '  ')};\n" for name, schema in sorted(components.items())
    )
    questions = "".join(
        f"    {name}: {typed(schema, '    ')};\n" for name, schema in zip(named, schemas, strict=False)
    )
    return (
        "// The answers of the web debugger's questions. Made by tests/support/pages/answers.py; not to be edited.\n"
        f"declare namespace Answers {{\n{parts}  interface Questions {{\n{questions}  }}\n}}\n"
    )


if __name__ == "__main__" and "--write" in sys.argv:
    TYPES.parent.mkdir(exist_ok=True)
    TYPES.write_text(written(), encoding="utf-8")
