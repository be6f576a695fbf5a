"""Compares what is decided now with what was recorded, field by field, and says in words what differs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypedDict

import msgspec

from intersession_events import facts
from intersession_events.log import Draft, Recorded
from intersession_events.plain_json import JsonValue, is_list_like, is_object
from intersession_projections.wording import words_in

_SHORT: Final = 80
_LAST: Final = 1 << 62
_CLOSE_MS: Final = 1000
"""Times are inputs, and the clock is read more than once for an append: so far apart two times are the same."""


class Field(TypedDict):
    """A field of an event that differs; None where one of the two does not have it."""

    path: str
    recorded: JsonValue
    now: JsonValue


class Difference(TypedDict):
    """The first event that is not as it was recorded.

    `kind`: it is another one, or has other fields (`changed`); nothing decided it (`missing`); it was never
    recorded (`extra`); a door would not let it begin (`refused`), or would say something else of it (`judged`); its actor failed (`failed`); or actors go round in
    circles and never come to it (`stuck`). `erased`: it can't be compared, since words that led to it were erased.
    `command` is what led to it, `text` says all of that in words.
    """

    kind: str
    position: int | None
    stream: str
    version: int
    recorded: str | None
    now: str | None
    fields: list[Field]
    command: str | None
    text: str


_Explains = Callable[[Recorded, JsonValue, JsonValue], bool]


def _was_not_there(_: Recorded, was: JsonValue, __: JsonValue) -> bool:
    return was is None


def _no_turn_followed(recorded: Recorded, _: JsonValue, __: JsonValue) -> bool:
    held = recorded.event
    return isinstance(held, facts.ExchangeHeld) and (held.next_turn, held.next_end) == (None, None)


def _before_budgets(recorded: Recorded, _: JsonValue, __: JsonValue) -> bool:
    return isinstance(recorded.event, facts.RunQueued) and recorded.event.budget is None


def _stats_in_text(_: Recorded, was: JsonValue, now: JsonValue) -> bool:
    return isinstance(was, str) and isinstance(now, str) and was.startswith(f"{now}\nStats: ")


def _always(_: facts.Event) -> bool:
    return True


def _never(_: facts.Event) -> bool:
    return False


def _has_no_hops(event: facts.Event) -> bool:
    provenance = event.message.provenance if isinstance(event, facts.MessageRecorded) else None
    return provenance is not None and provenance.hops == 0


def _announces_a_child(event: facts.Event) -> bool:
    return isinstance(event, facts.RunQueued) and event.spawn_id is not None and event.step == "announce"


_ENDS: Final = facts.ExchangeClosed | facts.SpawnClosed


class _Since(NamedTuple):
    topic: str
    field: str
    words: str
    explains: _Explains = _was_not_there
    shows: Callable[[facts.Event], bool] = _always
    """Whether an event that has the field has it by this rule: some had it before."""


_CHAIN: Final = "what a causal chain may use is recorded with whatever it begins"
_CLOCK: Final = "what the clock said is recorded with what is reckoned from it"
_NEXT: Final = "why no turn would follow a text that is held is recorded with the hold"
_GUARD: Final = "how much a causal chain had used when a guard tripped is recorded with what came of it"
_USED: Final = "what a child has used is recorded beside its announce, no more in its text"

RULES_SINCE: Final = (
    _Since("exchange_accepted.1", "budget", _CHAIN),
    _Since("spawn_accepted.1", "budget", _CHAIN),
    _Since("run_queued.1", "budget", _CHAIN),
    _Since(
        "run_queued.1",
        "chain",
        _CHAIN,
        shows=_announces_a_child,
    ),
    _Since("delivery_decided.1", "budget", _CHAIN),
    _Since("run_started.1", "tools", "the tools that an agent has are recorded with each start of a run"),
    _Since(
        "message_recorded.1",
        "message.provenance.hops",
        "the hops of a message are recorded from the first on",
        shows=_has_no_hops,
    ),
    _Since(
        "run_queued.1",
        "systemContext",
        "what an agent is told beside a message is worded anew",
        _before_budgets,
    ),
    _Since("announce_decided.1", "stats", _USED),
    _Since("announce_decided.1", "text", _USED, _stats_in_text),
    _Since("delivery_decided.1", "text", _USED, _stats_in_text),
    _Since(
        "delivery_started.1",
        "rule",
        "the rule that lets words out is recorded with each attempt",
        shows=_never,  # some attempts had it before
    ),
    _Since("delivery_failed.1", "failedMs", _CLOCK),
    _Since("run_started.1", "startedMs", _CLOCK),
    _Since("exchange_held.1", "nextEnd", _NEXT, _no_turn_followed),
    _Since("exchange_held.1", "nextLimit", _NEXT, _no_turn_followed),
    _Since("exchange_held.1", "nextNote", _NEXT, _no_turn_followed),
    _Since("exchange_held.1", "nextUsed", _GUARD),
    _Since("loop_ended.1", "used", _GUARD),
    _Since("exchange_closed.1", "used", _GUARD),
    _Since("spawn_closed.1", "used", _GUARD),
    _Since("run_failed.1", "limit", _GUARD),
    _Since("run_failed.1", "used", _GUARD),
)
"""In what today's rules deliberately differ from those that wrote a log before: which field of which event, in words, and
how an event that is older is told."""


def have_later_rules(events: Iterable[Recorded]) -> bool:
    """Whether what recorded events had later rules already: one of them has a field that nothing had before."""
    return any(
        _at(msgspec.to_builtins(recorded.event), since.field) is not None
        for recorded in events
        for since in RULES_SINCE
        if since.topic == recorded.topic
        and since.explains in {_was_not_there, _no_turn_followed}
        and since.shows(recorded.event)
    )


def _at(plain: JsonValue, path: str) -> JsonValue:
    for name in path.split("."):
        plain = plain.get(name) if is_object(plain) else None
    return plain


def _led_since(recorded: Recorded, is_of_hold: Callable[[], bool]) -> str | None:
    """Return the later rule of what an event says that led to it, in words; None where there is none."""
    match recorded.event:
        case facts.RunAborted(attempt=0):
            return "what led to an abort of a run that waits is what had queued that run"
        case facts.DeliveryDecided(purpose="announce"):
            return "what led to a text that was held is its release" if is_of_hold() else None
        case facts.SessionArchived(reason="cleanup") | facts.ThreadUnbound(reason="archived"):
            return (
                "what led to the archiving of a sub-agent is recorded with it"
                if recorded.causation is None
                else None
            )
        case _:
            return None


def fields_that_differ(
    recorded: Recorded,
    draft: Draft,
    *,
    is_exact: bool,
    waited_ms: int,
    behind_ms: Callable[[], int],
    is_of_hold: Callable[[], bool],
    is_older: Callable[[], bool],
) -> tuple[list[Field], list[str]]:
    """Return the fields in which an event differs from what was recorded, and the later rules that explain others.

    Times are inputs: here an event is decided at the time at which it was recorded, and there it was decided up to `waited_ms`
    earlier, so that its own times are. `behind_ms` says how far the clock may have been behind the log's time, as one that was set back.
    `is_exact`: what the clock said was recorded, and the same time was given to today's rules. `is_of_hold` says whether what was
    held was recorded as what led to it, `is_older` whether the process that recorded it may have had none of the later rules.
    """
    fields: list[Field] = []
    later: list[str] = []
    was: JsonValue = msgspec.to_builtins(recorded.event)
    now: JsonValue = msgspec.to_builtins(draft.event)
    if type(recorded.event) is not type(draft.event):
        return [Field(path="type", recorded=_name(recorded), now=type(draft.event).__name__)], later
    for path, before, after in _different(was, now, ""):
        since = _since(recorded, path, before, after)
        if since is not None and is_older():
            later.append(since)
        elif is_exact or not _is_same_time(path, before, after, waited_ms, behind_ms):
            fields.append(Field(path=path, recorded=before, now=after))
    led: list[Field] = []
    if recorded.causation is None and draft.causation is not None and isinstance(recorded.event, _ENDS):
        later.append("the end of a delivery that is told again is named as what a flow ended by")
    elif recorded.causation != draft.causation:
        led.append(Field(path="causation", recorded=recorded.causation, now=draft.causation))
    if recorded.correlation != draft.correlation:
        led.append(Field(path="correlation", recorded=recorded.correlation, now=draft.correlation))
    told = _led_since(recorded, is_of_hold) if led else None
    if told is None:
        fields += led
    else:
        later.append(told)
    return fields, later


def misplaced(recorded: Recorded) -> list[Field]:
    """Return in which fields the opening of a session names another one than that in whose stream it stands."""
    if not isinstance(recorded.event, facts.SessionOpened):
        return []
    key = recorded.stream.partition(":")[2]
    named: dict[str, tuple[str, str]] = {"key": (recorded.event.key, key)}
    if key.startswith("agent:"):
        named["agentId"] = recorded.event.agent_id, key.split(":")[1]
    return [Field(path=path, recorded=was, now=now) for path, (was, now) in named.items() if was != now]


class Times:
    """Times that a clock which was set back may explain, and nothing else in the log shows that it was.

    A clock is set now and then, a rule holds always: where most events of a kind differ so, that is a difference.
    """

    def __init__(self) -> None:
        self._same: Counter[str] = Counter()
        self._doubtful: dict[str, list[Difference]] = {}

    def same(self, recorded: Recorded) -> None:
        """Count an event whose times are as they were."""
        self._same[recorded.topic] += 1

    def doubt(self, difference: Difference) -> None:
        """Put a difference aside."""
        self._doubtful.setdefault(difference["recorded"] or "", []).append(difference)

    def judged(self, first: Difference | None) -> tuple[Difference | None, tuple[str, ...]]:
        """Return the first difference, and in words what was not judged."""
        unjudged: list[str] = []
        for topic, doubtful in self._doubtful.items():
            if len(doubtful) <= max(self._same[topic], 1):
                unjudged.append(f"times of {topic} that a clock which was set back explains: {len(doubtful)}")
            elif first is None or (first["position"] or _LAST) > (doubtful[0]["position"] or 0):
                first = doubtful[0]
        return first, tuple(unjudged)


def is_of_times(fields: Sequence[Field]) -> bool:
    """Whether all that differs are times, which were earlier than today's."""
    return all(_is_earlier(field["path"], field["recorded"], field["now"]) for field in fields)


def _is_earlier(path: str, was: JsonValue, now: JsonValue) -> bool:
    return (
        path not in _COPIED and _is_time(path) and isinstance(was, int) and isinstance(now, int) and was < now
    )


def changed(recorded: Recorded, draft: Draft, fields: list[Field], command: str | None) -> Difference:
    """Return that an event is another one than was recorded."""
    was, now = words_in(recorded).brief, words_in(_as_recorded(recorded, draft)).brief
    if type(recorded.event) is type(draft.event):
        parts = ", ".join(
            f"{field['path']} was {_short(field['recorded'])} and is {_short(field['now'])}"
            for field in fields
        )
        text = f"{_name(recorded)} at position {recorded.position} ({was}): {parts}"
    else:
        text = (
            f"at position {recorded.position} {_name(recorded)} was recorded ({was}); "
            f"today's rules decide {type(draft.event).__name__} ({now})"
        )
    return Difference(
        kind="changed",
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        recorded=recorded.topic,
        now=type(draft.event).__name__,
        fields=fields,
        command=command,
        text=_led(text, command),
    )


def missing(recorded: Recorded) -> Difference:
    """Return that nothing decided an event that was recorded."""
    return Difference(
        kind="missing",
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        recorded=recorded.topic,
        now=None,
        fields=[],
        command=None,
        text=(
            f"at position {recorded.position} {_name(recorded)} was recorded ({words_in(recorded).brief}); "
            "today's rules decide nothing there"
        ),
    )


def stuck(recorded: Recorded | None, command: str | None) -> Difference:
    """Return that actors go on and on and decide nothing: what was recorded leads nowhere."""
    text = "today's rules go round in circles" + (
        " behind the end of what was recorded"
        if recorded is None
        else f" and never come to {_name(recorded)} at position {recorded.position}"
    )
    return Difference(
        kind="stuck",
        position=None if recorded is None else recorded.position,
        stream="" if recorded is None else recorded.stream,
        version=0 if recorded is None else recorded.version,
        recorded=None if recorded is None else recorded.topic,
        now=None,
        fields=[],
        command=command,
        text=_led(text, command),
    )


def erased(differs: Difference) -> Difference:
    """Return that nobody can say whether a difference is one: words that today's rules look at were erased."""
    text = (
        "can't be compared: erased. The text of some events that led to this was erased, so nobody can say whether it is "
        f"a difference that {differs['text']}"
    )
    return Difference(
        kind="erased",
        position=differs["position"],
        stream=differs["stream"],
        version=differs["version"],
        recorded=differs["recorded"],
        now=differs["now"],
        fields=differs["fields"],
        command=differs["command"],
        text=text,
    )


def refused(recorded: Recorded, code: str, error: str) -> Difference:
    """Return that a door would refuse what it let in."""
    return Difference(
        kind="refused",
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        recorded=recorded.topic,
        now=code,
        fields=[Field(path="code", recorded=None, now=code), Field(path="error", recorded=None, now=error)],
        command=None,
        text=(
            f"at position {recorded.position} {_name(recorded)} was recorded ({words_in(recorded).brief}); "
            f"today's rules refuse it ({code}): {error}"
        ),
    )


def judged_otherwise(recorded: Recorded, was: str | None, now: str | None, problem: str) -> Difference:
    """Return that a door would say something else today; a code None is that it lets somebody in."""
    return Difference(
        kind="judged",
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        recorded=recorded.topic,
        now=now,
        fields=[Field(path="code", recorded=was, now=now)],
        command=None,
        text=f"at position {recorded.position} {_name(recorded)} was recorded ({words_in(recorded).brief}): {problem}",
    )


def extra(stream: str, version: int, draft: Draft, command: str | None) -> Difference:
    """Return that an event was decided behind the end of its stream."""
    name = type(draft.event).__name__
    return Difference(
        kind="extra",
        position=None,
        stream=stream,
        version=version,
        recorded=None,
        now=name,
        fields=[],
        command=command,
        text=_led(f"{stream} had ended; today's rules decide {name} behind its end", command),
    )


def failed(stream: str, version: int, error: BaseException, command: str | None) -> Difference:
    """Return that an actor failed."""
    return Difference(
        kind="failed",
        position=None,
        stream=stream,
        version=version,
        recorded=None,
        now=type(error).__name__,
        fields=[],
        command=command,
        text=_led(f"{stream} fails: {type(error).__name__}: {error}", command),
    )


def _led(text: str, command: str | None) -> str:
    return text if command is None else f"{text}; the command was {command}"


def _name(recorded: Recorded) -> str:
    return type(recorded.event).__name__


def _as_recorded(recorded: Recorded, draft: Draft) -> Recorded:
    return msgspec.structs.replace(recorded, event=draft.event, id=draft.id)


def _different(was: JsonValue, now: JsonValue, path: str) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    if was == now:
        return
    if is_object(was) and is_object(now):
        for name in dict.fromkeys((*was, *now)):
            yield from _different(was.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif is_list_like(was) and is_list_like(now) and len(was) == len(now):
        for number, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _different(one, other, f"{path}[{number}]")
    else:
        yield path, was, now


def _is_same_time(path: str, was: object, now: object, waited_ms: int, behind_ms: Callable[[], int]) -> bool:
    if path in _COPIED or not _is_time(path) or not isinstance(was, int) or not isinstance(now, int):
        return False
    later = now - was
    return later > -_CLOSE_MS and (later < max(waited_ms, 0) + _CLOSE_MS or later < behind_ms() + _CLOSE_MS)


_COPIED: Final = frozenset({"budget.startedMs", "budget.heldMs", "chainStartedMs", "startedMs"})
"""Times that no clock gave when an event was decided: they are those of what led to it."""


def _is_time(path: str) -> bool:
    name = path.rpartition(".")[2].lower()
    return name.endswith(("ms", "timestamp")) and "timeout" not in name


def _since(recorded: Recorded, path: str, was: JsonValue, now: JsonValue) -> str | None:
    for since in RULES_SINCE:
        if (since.topic, since.field) == (recorded.topic, path) and since.explains(recorded, was, now):
            return since.words
    return None


def _short(value: JsonValue) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
