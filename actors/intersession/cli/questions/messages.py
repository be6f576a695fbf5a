"""`intersession messages`: who said what to which session, on whose behalf, and what became of the answers."""

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from cyclopts import Parameter

from intersession.cli.host import reader_of
from intersession.cli.questions.paging import PAGE, Listing, Page
from intersession.cli.shell import READING, Answer, Reading, Screen, moment, safe
from intersession.cli.story import Names, delivery_in_words, names_of, unknown_names
from intersession_actors.debugger import said_value, session_named, speaker
from intersession_events.facts import Provenance, text_of
from intersession_events.stores import has_writer
from intersession_projections.flows import DeliveryNote, DeliverySummary
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.said import Messages, Said, SaidWanted
from intersession_projections.wording import OPENCLAW, is_openclaws

_INDENT: Final = 4


_NOTHING: Final = "nothing of it went outside"
_UNKNOWN: Final = (
    "what of it went outside was not imported; `intersession runs` says what the record shows of announces"
)


class _Row(NamedTuple):
    said: Said
    deliveries: tuple[tuple[DeliverySummary, DeliveryNote | None], ...]


def messages(
    *,
    inter_session: Annotated[bool, Parameter(help="Only what sessions said to each other.")] = False,
    sender: Annotated[str | None, Parameter(name="--from", help="Only what this session said.")] = None,
    target: Annotated[str | None, Parameter(name="--to", help="Only what was said to this session.")] = None,
    person: Annotated[
        str | None,
        Parameter(
            help="Only what was said by this person, or on their behalf: their id or name on the channel, or any name that is shown (telegram:ada)."
        ),
    ] = None,
    why: Annotated[bool, Parameter(help="Also the message that it all began with.")] = False,
    delivered: Annotated[
        bool, Parameter(help="Also what became of the texts that went outside for it.")
    ] = False,
    page: Page = PAGE,
    reading: Reading = READING,
) -> Answer:
    """List what was said to sessions: who, to whom, on whose behalf.

    Newest first. `intersession messages --to research --since TIME --until TIME --why --delivered` says who spoke to research, why, and
    whether somebody outside got the answer. What agents answered is told by `replay` and `history`.
    """
    with reader_of(reading) as reader:
        wanted = SaidWanted(
            inter_session=inter_session,
            sender=None if sender is None else session_named(reader, sender, field="--from"),
            target=None if target is None else session_named(reader, target, field="--to"),
            person=person,
            span=page.span(reader),
        )
        at_work = has_writer(reader.log)
        found = Messages(reader.log)
        said = page.of(found.said(wanted), lambda one: one.position)
        sent: list[list[DeliverySummary]] = (
            found.deliveries_of(said.rows) if delivered else [[] for _ in said.rows]
        )
        notes = iter(reader.flows.notes_of([row for rows in sent for row in rows]))
        listing = Listing(
            [
                _Row(one, tuple((row, next(notes)) for row in rows))
                for one, rows in zip(said.rows, sent, strict=True)
            ],
            said.cursor,
            as_lines=said.as_lines,
        )
        names = names_of(reader.log, [key for row in listing.rows for key in _keys(row.said)])
        unknown = [] if listing.rows else unknown_names(reader, {"--person": person})
    return listing.answer(
        "messages",
        lambda row: said_value(row.said, row.deliveries, why=why, delivered=delivered),
        lambda screen, rows: _show(screen, rows, names, why=why, delivered=delivered, at_work=at_work),
        what="message",
        unknown=unknown,
    )


def _run(run: RunOutcome) -> str:
    again = "" if run.retry_of is None else f", again, for run {run.retry_of}"
    return f"  run {run.run_id}{again}"


def _keys(said: Said) -> tuple[str, ...]:
    began = () if said.began is None else (said.began[1],)
    return (speaker(said.message), said.target, *began)


def _show(
    screen: Screen, rows: Sequence[_Row], names: Names, *, why: bool, delivered: bool, at_work: bool
) -> None:
    for row in rows:
        said = row.said
        who, behalf = _told(said, names)
        screen.line(
            safe(f"#{said.position}  {moment(said.time_ms)}  ", "dim"),
            safe(f"{who} → {names.of(said.target)}", "bold"),
            safe("".join((behalf, "" if said.run is None else _run(said.run))), "dim"),
        )
        screen.indented(text_of(said.message), _INDENT)
        if why and said.began is not None and said.began[0] != said.position:
            position, key, message = said.began
            screen.indented(
                safe(f"because of #{position} to {names.of(key)}: {text_of(message)}", "dim"), _INDENT
            )
        for text, note in row.deliveries:
            screen.indented(safe(delivery_in_words(text, note, at_work=at_work), "dim"), _INDENT)
        if delivered and not row.deliveries:
            screen.indented(safe(_UNKNOWN if said.imported else _NOTHING, "dim"), _INDENT)


def _told(said: Said, names: Names) -> tuple[str, str]:
    """Return who spoke, and on whose behalf where that is somebody else, in words."""
    spoke = OPENCLAW if is_openclaws(said.message) else speaker(said.message)
    if spoke == "person" and said.person is not None:
        return _called(said.person), ""
    behalf = "" if said.person is None else f" for {_called(said.person)}"
    return (names.of(spoke) if ":" in spoke else spoke), behalf


def _called(person: Provenance) -> str:
    channel = person.source_channel or "an unknown channel"
    if channel == "operator":
        return "operator"
    if person.sender is None:
        return f"somebody on {channel} (not recorded who)"
    return f"{person.sender_name or person.sender} on {channel}"
