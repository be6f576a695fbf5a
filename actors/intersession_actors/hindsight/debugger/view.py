"""A verb's view of a log, with the caller's rights. All verbs read through it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, TypeVar

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.answers import PlaceAnswer, place_answer
from intersession_actors.hindsight.debugger.named import alike_sessions, session_named
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.disclosure.events import hidden_event
from intersession_actors.rules.disclosure.redaction import redact_text, redact_value
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.rules.policy.access import Requester, not_visible
from intersession_actors.rules.policy.questions import check_asked
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_object
from intersession_events.facts import ConfigLoaded
from intersession_events.log.log import Log
from intersession_events.log.other_words import as_it_is, reworded
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.questions.places.described import PlaceWords
from intersession_projections.questions.places.grammar import InRun, UnknownPlace, parse_place
from intersession_projections.questions.places.located import (
    Located,
    Places,
    ReadFlow,
    sessions_of,
    sessions_of_each,
)
from intersession_projections.questions.places.runs_named import Flow, RunNames, Sees

T = TypeVar("T")

At = int | float | str
"""A place in any of its forms (PLACE-1). A number below zero counts from the head."""


class View:
    """A log as one requester sees it: the operator (the default), or a session. `within` restricts it to some sessions.

    Verbs ask it for places, names and sessions; what is beyond reach is as if it were not there. One that `hides` has no secrets
    of anybody: it is made by `hiding`, and reads a log whose events have none (HIST-5).
    """

    def __init__(
        self,
        reader: Reader,
        requester: Requester | None = None,
        *,
        within: Sees | None = None,
        hides: bool = False,
    ) -> None:
        self.reader = reader
        self.hides = hides
        self.requester = reader.requester(None) if requester is None else requester
        self._within = within
        self.sees: Sees | None = _both(reader.sees(self.requester), within)
        self.touched: set[str] = set()
        """The sessions, by their keys, that something in the answers may be of; for receipts (VIS-4)."""
        self.hidden_at: set[int] = set()
        """Where events with secrets were read, which were hidden."""
        self._words = PlaceWords(reader.log, self.sees)
        self.names = RunNames(reader.log, self.sees)

    @property
    def log(self) -> Log:
        """The log."""
        return self.reader.log

    def hiding(self) -> "View":
        """Return the same view with secrets hidden in all events: nothing that is drawn, cut or found there has one."""
        if self.hides:
            return self

        def hidden(recorded: Recorded) -> Recorded:
            event = hidden_event(recorded.event)
            if event is recorded.event:
                return recorded
            self.hidden_at.add(recorded.position)
            return msgspec.structs.replace(recorded, event=event)

        return self._of(
            View(self.reader.on(reworded(self.log, hidden)), self.requester, within=self._within, hides=True)
        )

    def _of(self, view: "View") -> "View":
        """Return a view of the same question."""
        view.touched, view.hidden_at = self.touched, self.hidden_at
        return view

    def revealed(self) -> "View":
        """Return the same view without hiding, for the operator who asked for it."""
        return self._of(View(self.reader.on(as_it_is(self.log)), self.requester, within=self._within))

    def handed_out(self, answer: Mapping[str, object]) -> Mapping[str, object]:
        """Return an answer as a door sends it: a view that `hides` also checks names and other values outside of events.

        `redacted` says there that something was hidden. What a configuration has is left: it has no secrets, though names like theirs.
        """
        if not self.hides:
            return answer
        shown, found = redact_value({name: value for name, value in answer.items() if name not in _SETTINGS})
        told = {**answer, **shown} if found and is_object(shown) else answer
        is_redacted = found or bool(answer["redacted"] if "redacted" in answer else self._has_hidden())
        return {**told, "redacted": True} if is_redacted else told

    def _has_hidden(self) -> bool:
        """Whether something was hidden that the caller may know of; what others said may have been read on the way, and is left out."""
        sees = self.sees
        if sees is None:
            return bool(self.hidden_at)
        read = self.log.at(sorted(self.hidden_at))
        return any(sees(key) for recorded in read for key in sessions_of(self.log, recorded))

    def is_stranger(self, key: str) -> bool:
        """Whether the caller reads a session's texts without its secrets."""
        return self.hides or self.reader.is_stranger(self.requester, key)

    @property
    def is_operator(self) -> bool:
        """Whether the caller sees everything."""
        return self.sees is None

    def check_asked(self, question: str, given: JsonMapping) -> None:
        """Refuse a question, with its arguments as JSON, that the caller may not ask. Every door calls it first.

        Raises:
            ToolRefused: only the operator may ask so (`forbidden`).
        """
        asked = (field for field, value in given.items() if value is not None)
        check_asked(question, asked, is_operator=self.is_operator)

    def saw_stream(self, stream: str) -> None:
        """Take down for the receipt whose session a stream is; others are nobody's."""
        kind, _, key = stream.partition(":")
        if kind == "session":
            self.is_seen(key)

    def is_seen(self, key: str) -> bool:
        """Whether the caller sees a session, by its canonical key."""
        seen = self.sees is None or self.sees(key)
        if seen:
            self.touched.add(key)
        return seen

    def seen_of(self, found: Iterable[T], sessions: Callable[[T], Iterable[str]]) -> Iterator[T]:
        """Yield the items whose sessions the caller sees. Checks several at once, and more each time."""
        if self.is_operator:
            yield from (one for one in found if any(map(self.is_seen, sessions(one))))
            return
        left, size = iter(found), _LOOKED_AT
        while some := list(islice(left, size)):
            seen = self._seen_among(list(dict.fromkeys(key for one in some for key in sessions(one))))
            for one in some:
                key = next((key for key in sessions(one) if key in seen), None)
                if key is not None:
                    self.touched.add(key)
                    yield one
            size *= 2

    def _seen_among(self, keys: Sequence[str]) -> set[str]:
        seen = self.reader.seen_among(self.requester, keys)
        return seen if self._within is None else set(filter(self._within, seen))

    def may_know(self, recorded: Recorded) -> bool:
        """Whether the caller sees an event: it belongs to a visible session."""
        return self.is_operator or any(map(self.is_seen, sessions_of(self.log, recorded)))

    def known(self, found: Iterable[Recorded]) -> Iterator[Recorded]:
        """Yield the events that the caller sees. Checks several at once, and more each time."""
        if self.is_operator:
            yield from found
            return
        left, size = iter(found), _LOOKED_AT
        while some := list(islice(left, size)):
            each = sessions_of_each(self.log, some)
            sessions = {recorded.position: of_one for recorded, of_one in zip(some, each, strict=True)}
            yield from self.seen_of(some, partial(_known_of, sessions))
            size *= 2

    def place(self, at: At | None, *, field: str = "at", is_end: bool = False) -> Located:
        """Return a resolved place; None is the head, and so is a future time if it `is_end` of the selected part.

        Raises:
            ToolRefused: it is no place, or not in the log (`invalid_request`).
        """
        typed = "head" if at is None else at
        if isinstance(typed, int | float) and -_FAR < typed < 0:
            typed = str(math.floor(typed))
        try:
            places = Places(self.log, now_ms=self.reader.clock.now_ms(), sees=self.sees)
            return places.find(parse_place(typed, field=field), field=field, is_end=is_end)
        except UnknownPlace as error:
            raise ToolRefused("invalid_request", str(error)) from None

    def say(self, place: Located, of: ReadFlow | None = None) -> PlaceAnswer:
        """Return a place in the form of answers, with its description (PLACE-5); with `of`, in that run's words."""
        return place_answer(self._words.say(place, of))

    def say_next(self, place: Located, of: ReadFlow | None = None) -> PlaceAnswer | None:
        """Return what follows a place, which every view shows beside it; None if nothing has come yet."""
        described = self._words.next(place, of)
        return None if described is None else place_answer(described)

    def step_at(self, position: int) -> str:
        """Return an event in a few words; empty if it is not a step, or not visible to the caller."""
        return self._words.step_at(position)

    def end_of(self, run: ReadFlow) -> Located:
        """Return the place after the last event of a run that is visible to the caller."""
        head = self.place(None)
        last = self._words.last_of(run, head.position)
        return head if last is None else msgspec.structs.replace(head, position=last.position, flow=run.flow)

    def at(self, position: int) -> PlaceAnswer:
        """Return the place of an event in the form of answers, with its description if the caller may see the event."""
        return self.say(Located(position=position, time_ms=0, is_named=True))

    def at_each(self, positions: Iterable[int]) -> dict[int, PlaceAnswer]:
        """Return the same for several events."""
        each = list(dict.fromkeys(positions))
        there = list(self.log.at(each))
        if not self.is_operator:
            sessions = sessions_of_each(self.log, there)
            seen = self._seen_among(list(dict.fromkeys(chain.from_iterable(sessions))))
            there = [one for one, keys in zip(there, sessions, strict=True) if not seen.isdisjoint(keys)]
        told = {place.position: place_answer(place) for place in self._words.behind(there)}
        return {position: told.get(position) or self.at(position) for position in each}

    def flow(self, name: str, *, field: str = "run") -> Flow:
        """Return the named exchange or spawn, or that of the named run; else the run.

        Raises:
            ToolRefused: nothing has that name, or several are (`invalid_request`).
        """
        try:
            return self.names.flow(name, field=field)
        except UnknownPlace as error:
            raise ToolRefused("invalid_request", str(error)) from None

    def parted(self, name: str, at: At | None = None, *, field: str) -> tuple[str, At | None]:
        """Split a text into a name and a place in it: `RUN@turn:2` is a run and a place of it.

        Raises:
            ToolRefused: it names a place, and another one is given (`invalid_request`).
        """
        try:
            base = parse_place(name, field=field).base if "@" in name else None
            if not isinstance(base, InRun) or self.is_run(name):
                return name, at
        except UnknownPlace:
            return name, at
        if at is not None:
            raise ToolRefused(
                "invalid_request", f"{field}: {name[:64]!a} is a place already, leave the other one out"
            )
        return base.run, name

    def is_run(self, name: str) -> bool:
        """Whether there is an exchange, a spawn or a run of that name, or several."""
        try:
            self.names.named(name, field="")
        except UnknownPlace as unknown:
            return bool(unknown.candidates)
        return True

    def run(self, name: str, *, field: str = "run") -> Flow:
        """Return exactly the named run, in an exchange or not; of an imported exchange or spawn, which has none, that.

        Raises:
            ToolRefused: nothing has that name, or several are (`invalid_request`).
        """
        try:
            return self.names.run(name, field=field)
        except UnknownPlace as error:
            raise ToolRefused("invalid_request", str(error)) from None

    def session(self, name: str, *, field: str = "sessionKey") -> str:
        """Return the canonical key of the named session, in any displayed form.

        Raises:
            ToolRefused: there is none, or none that is seen (`not_visible`); several are meant, or it is no key.
        """
        try:
            key = session_named(self.reader, name, field=field, sees=self.sees)
        except ToolRefused as refused:
            if self.is_operator or refused.code == "invalid_key":
                raise
            raise ToolRefused("not_visible", f"{field}: {not_visible(name)}") from None
        if not self.is_seen(key):
            raise ToolRefused("not_visible", f"{field}: {not_visible(name)}")
        return key

    def session_or_flow(self, name: str, *, field: str) -> str | Flow:
        """Return what a name refers to: a session's key, or an exchange, a spawn or a run.

        Raises:
            ToolRefused: nothing has that name, or several are.
        """
        try:
            return self.names.flow(name, field=field)
        except UnknownPlace as no_run:
            try:
                return self.session(name, field=field)
            except ToolRefused as refused:
                if refused.code == "ambiguous_label":
                    raise
                if no_run.candidates:
                    raise ToolRefused("invalid_request", str(no_run)) from None
            alike = alike_sessions(self.reader, name) if self.is_operator else ""
            raise ToolRefused(
                "not_visible",
                f"{field}: no session, exchange, spawn or run is called {name[:64]!a}{alike}; `intersession sessions` and "
                "`intersession runs` show what there is",
            ) from None

    def shown(self, text: str | None, key: str) -> str | None:
        """Return a session's text as the caller may read it: strangers see no secrets (HIST-4)."""
        if text is None or not self.is_stranger(key):
            return text
        return redact_text(text)[0]

    def shown_value(self, value: JsonValue, key: str) -> JsonValue:
        """Return a session's JSON value as the caller may read it: a key's name can make its value a secret (HIST-5)."""
        return redact_value(value)[0] if self.is_stranger(key) else value

    def acting_as(self, name: str, *, at: int) -> "View":
        """Return the log as a session would have seen it at a position, under the configuration in force there.

        Raises:
            ToolRefused: there was no such session, or the caller may not act as another one (`forbidden`).
        """
        key = self.session(name, field="as")
        if self.requester.key is not None and key != str(self.requester.key):
            raise ToolRefused("forbidden", "as: only the operator looks through the eyes of another session")
        if self.reader.sessions.get(key, at) is None:
            raise ToolRefused("not_visible", f"as: {name} was not there yet at position {at}")
        config = self.config_at(at) or self.reader.config
        then = Reader(
            self.log,
            config=lambda: config,
            clock=self.reader.clock,
            transcripts=self.reader.transcripts,
            smells=self.reader.smells,
        )
        eyes = View(then, then.requester(key, as_of=at), within=self.sees, hides=self.hides)
        return self._of(eyes)

    def recorded_config(self, at: int) -> ConfigLoaded | None:
        """Return the configuration in force at a position, as recorded, without secrets."""
        return next(
            (
                recorded.event
                for recorded in backwards(self.log, Span(to=at), "log")
                if isinstance(recorded.event, ConfigLoaded)
            ),
            None,
        )

    def config_at(self, at: int) -> Config | None:
        """Return the settings in force at a position; None if none were recorded, or they can't be read any more."""
        recorded = self.recorded_config(at)
        if recorded is None:
            return None
        settings = settings_of(recorded)
        try:
            return load_config(
                {name: settings[name] for name in _RULES if name in settings}, literal=True
            ).config
        except ConfigError:
            return None


def settings_of(recorded: ConfigLoaded) -> JsonObject:
    """Return recorded settings; None if the text can't be read."""
    try:
        settings: object = msgspec.json.decode(recorded.config)
    except msgspec.DecodeError:
        return {}
    return settings if is_object(settings) else {}


def _both(first: Sees | None, second: Sees | None) -> Sees | None:
    if first is None or second is None:
        return first or second
    return lambda key: first(key) and second(key)


def _known_of(sessions: Mapping[int, tuple[str, ...]], recorded: Recorded) -> tuple[str, ...]:
    return sessions[recorded.position]


_SETTINGS: Final = frozenset({"settings", "config"})
_LOOKED_AT: Final = 64
_FAR: Final = 10**18
"""A number that far below zero is refused as one, as is one that far above."""
_RULES: Final = ("agents", "session", "tools")
"""The sections that say who sees what, and what may go out; elsewhere secrets were left out that a reader would miss."""
