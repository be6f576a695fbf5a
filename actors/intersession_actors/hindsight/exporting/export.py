"""Exports a log, or a part of it, in a form that other tools read (OUT-1)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from intersession_actors.hindsight.bundling.selecting import selection_of
from intersession_actors.hindsight.bundling.wanted import BundleWanted, name_of
from intersession_actors.hindsight.debugger.view import At, View
from intersession_actors.hindsight.exporting.chat_forms import chat_body
from intersession_actors.hindsight.exporting.cloudevents import cloud_event
from intersession_actors.hindsight.exporting.otlp import otlp_lines
from intersession_actors.hindsight.exporting.parquet import write_tables
from intersession_actors.hindsight.exporting.tables import table_rows
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import ExportFailed
from intersession_events.basics.ids import session_stream
from intersession_events.basics.machine import private_file
from intersession_events.basics.plain_json import JsonObject
from intersession_events.basics.progress import Progress, not_told
from intersession_events.log.recorded import Recorded
from intersession_events.stores.opened import check_clear
from intersession_projections.copies.openclaw_state.directory import new_directory

ExportTo = Literal["otlp", "cloudevents", "openai", "responses", "anthropic", "parquet"]
FORMS: Final[tuple[ExportTo, ...]] = get_args(ExportTo)
_OF_A_SESSION: Final = frozenset(["openai", "responses", "anthropic"])
_ENDINGS: Final = {"otlp": ".jsonl", "cloudevents": ".jsonl", "parquet": ""}
_TOLD_EVERY: Final = 500
_SESSION: Final = session_stream("")


class ExportWanted(msgspec.Struct, frozen=True, kw_only=True):
    """The query for an export: its form, and a part of the log; without one it is all of it.

    `run` is an exchange, a spawn or a run with the sessions that take part in it, `session` a session, its flows and deliveries; with
    `since` and `until` the events between two places. `at` is the last place. `raw`: secrets are not hidden.
    """

    to: str
    run: str | None = None
    session: str | None = None
    since: At | None = None
    until: At | None = None
    at: At | None = None
    raw: bool = False


class ExportMade(msgspec.Struct, frozen=True, kw_only=True):
    """An export that was written: `counts` says how many of what are in it, `position` up to where the log was read.

    `open` spans, which had not ended there, are left out.
    """

    path: Path
    to: str
    position: int
    counts: Mapping[str, int]

    @property
    def value(self) -> JsonObject:
        """What doors say of it."""
        return {
            "ok": True,
            "to": self.to,
            "position": self.position,
            "counts": dict(self.counts),
        }


def export(
    view: View,
    wanted: ExportWanted,
    out: Path,
    *,
    inside: bool = False,
    progress: Progress = not_told,
) -> ExportMade:
    """Write an export to a file, or for `parquet` to a directory, that is not there yet. Only its owner can read it.

    With `inside`, `out` is a folder, in which it gets a name of its own.
    The same question at the same place gives the same content. It is read as a stream, and never held as a whole.

    Raises:
        ToolRefused: the query is invalid, names nothing that is there, or selects nothing (`invalid_request`, `not_visible`).
        ExportFailed: the file is there already or can't be written.
        MissingExtra: `parquet` needs the extra of that name.
        CorruptEvent: a row of the log can't be read.
        BadKey: the log is kept encrypted, and its keys are not at hand.
    """
    _check(view, wanted)
    check_clear(view.log)
    read = view if wanted.raw else view.hiding()
    last = wanted.until if wanted.at is None else wanted.at
    at = view.place(last, is_end=wanted.at is None).position
    if inside:
        out /= name_of(wanted.to, msgspec.to_builtins(wanted), at) + _ENDINGS.get(wanted.to, ".json")
    if wanted.to == "parquet":
        with new_directory(out) as made:
            counts = write_tables(made, table_rows(_events(view, read, wanted, at, progress)))
            _check_found(counts, wanted.to, at)
            return ExportMade(path=made.path, to=wanted.to, position=at, counts=counts)
    try:
        with private_file(out, new=True) as file:
            if wanted.to in _OF_A_SESSION:
                key = view.session(wanted.session or "", field="session")
                body, messages = chat_body(read, key, wanted.to, at)
                file.write(body + b"\n")
                counts = {"messages": messages}
            else:
                counts = dict[str, int]()
                events = _events(view, read, wanted, at, progress)
                for line in _lines(wanted.to, view.log.log_id, events, counts):
                    file.write(line + b"\n")
            _check_found(counts, wanted.to, at)
    except FileExistsError:
        raise ExportFailed(f"{out} is there already, and nothing is overwritten: name a new file") from None
    except OSError as error:
        raise ExportFailed(f"{out} can't be written: {error.strerror or error}") from error
    return ExportMade(path=out.absolute(), to=wanted.to, position=at, counts=counts)


def _check(view: View, wanted: ExportWanted) -> None:
    if not view.is_operator:
        raise ToolRefused("forbidden", "exports hold whole sessions, they are the operator's to make")
    if wanted.to not in FORMS:
        raise invalid("to", f"{wanted.to[:64]!r} is no form, use one of {', '.join(FORMS)}")
    parts = {"run": wanted.run, "session": wanted.session, "since": wanted.since}
    named = [name for name, value in parts.items() if value is not None]
    if wanted.until is not None and wanted.since is None:
        named.append("until")
    if wanted.to in _OF_A_SESSION and named != ["session"]:
        raise invalid(
            "session",
            f"{wanted.to} is the form of one session: name that alone, and its last place with at",
        )
    if len(named) > 1:
        raise invalid(named[1], f"{' and '.join(named)} are given, name one part of the log")
    if wanted.until is not None and wanted.at is not None:
        raise invalid("at", "until is the last place already, leave one of them out")


def _check_found(counts: Mapping[str, int], to: str, at: int) -> None:
    """Refuse an export of nothing, as a bundle of nothing is: an empty file looks like one that has all that there is."""
    if not any(count for name, count in counts.items() if name != "open"):
        found = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise ToolRefused(
            "invalid_request",
            f"nothing of that part of the log, up to position {at}, goes into {to}: {found}",
        )


def _lines(to: str, log_id: str, events: Iterator[Recorded], counts: dict[str, int]) -> Iterator[bytes]:
    if to == "cloudevents":
        for number, recorded in enumerate(events, start=1):
            yield cloud_event(recorded, log_id)
            counts["events"] = number
        counts.setdefault("events", 0)
        return

    def told(ended: int, still_open: int) -> None:
        counts.update(spans=ended, open=still_open)

    yield from otlp_lines(events, log_id, told=told)


def _events(view: View, read: View, wanted: ExportWanted, at: int, progress: Progress) -> Iterator[Recorded]:
    """Yield the events of an export, in order; `read` has them as they are written."""
    streams: frozenset[str] | None = None
    of_log: frozenset[int] = frozenset()
    after, seen = 0, set[str]()
    if wanted.run is not None or wanted.session is not None:
        selection = selection_of(view, BundleWanted(run=wanted.run, session=wanted.session, at=at), at)
        streams, of_log = selection.streams, frozenset(selection.of_log)
    elif wanted.since is not None:
        after = view.place(wanted.since, field="since").position
    for recorded in read.log.all(after=after, to=at):
        if recorded.position % _TOLD_EVERY == 0:
            progress(recorded.position - after, at - after)
        stream = recorded.stream
        if streams is None or stream in streams or recorded.position in of_log:
            if stream not in seen and stream.startswith(_SESSION):
                seen.add(stream)
                view.is_seen(stream.removeprefix(_SESSION))  # for the receipt of what was taken out
            yield recorded
    progress(at - after, at - after)
