"""The parts of `intersession verify` that look at one proof: make it, check it, or find two histories in two notes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from intersession.cli.host.reading import reader_of, reading_log
from intersession.cli.shell.answer import NOT_VERIFIED, OK, Answer, Common, Reading, UsageError, read_given
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.checkpoints.proving import prove_growth, prove_stream
from intersession_events.log.held_checkpoints import cosignatures_of
from intersession_events.log.log import Log
from intersession_events.proofs.notes import noted, notes_in
from intersession_events.proofs.proof import Proof, StreamProof, check_proof, read_proof
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import NamedKey, Trusted
from intersession_events.proofs.tlog_proof import (
    TLOG_PROOF,
    check_tlog_proof,
    read_tlog_proof,
    tlog_proof,
)
from intersession_events.proofs.witnessing import split_view
from intersession_projections.questions.places.runs_named import flow_sessions, flow_stream

_TWO: Final = 2


class WantedProof(NamedTuple):
    """The options of which one is given, and what goes with `prove` and `prove_since`."""

    prove: str | None
    prove_since: int | None
    check_proof: Path | None
    evidence: Path | None
    at: int | None
    form: Literal["json", "tlog"]


def proof_alone(
    wanted: WantedProof, common: Common, *, trusted: Trusted, published: Sequence[Published]
) -> Answer | None:
    """Return the answer if one proof is all that is wanted."""
    if sum(given is not None for given in wanted[:4]) > 1:
        raise UsageError("give one of --prove, --prove-since, --check-proof and --evidence")
    if wanted.at is not None and wanted.prove is None and wanted.prove_since is None:
        raise UsageError("--at says by which checkpoint --prove or --prove-since proves")
    if wanted.form != "json" and wanted.prove is None:
        raise UsageError("--form says how --prove prints its proof")
    if wanted.check_proof is not None:
        text = read_given(wanted.check_proof, "--check-proof")
        return _checked(text, trusted=trusted, published=published)
    if wanted.evidence is not None:
        return _split_view(read_given(wanted.evidence, "--evidence"), trusted)
    if wanted.prove is None and wanted.prove_since is None:
        return None
    with reading_log(common) as log, Screen().progress("Proving") as progress:
        if wanted.prove_since is not None:
            return _proof(prove_growth(log, wanted.prove_since, at=wanted.at, progress=progress))
        stream = _stream_named(log, common, wanted.prove or "")
        proof = prove_stream(log, stream, at=wanted.at, progress=progress)
        return _proof(proof) if wanted.form == "json" else _tlog_proof(proof, log)


def _stream_named(log: Log, common: Common, typed: str) -> str:
    """Return the stream that is named as in the log, or by any name of its session, exchange, spawn or run."""
    for name in (typed, session_stream(typed)):
        if log.stream(name, limit=1):
            return name
    with reader_of(Reading(store=common.store)) as reader:
        try:
            found = View(reader).session_or_flow(typed, field="--prove")
        except ToolRefused as refused:
            if refused.code == "not_visible":
                return session_stream(typed)  # that there is none is said by the proof
            raise
    if isinstance(found, str):
        return session_stream(found)
    return flow_stream(found) or session_stream(flow_sessions(found)[0])


def _checked(text: bytes, *, trusted: Trusted, published: Sequence[Published]) -> Answer:
    """Return what a proof shows."""
    if text.startswith(TLOG_PROOF.encode()):
        report = check_tlog_proof(read_tlog_proof(text), trusted=trusted)
    else:
        report = check_proof(read_proof(text), trusted=trusted, published=published)

    def show(screen: Screen) -> None:
        if report.ok:
            screen.line(safe("proven: ", "bold green"), report.shows)
        else:
            screen.line(safe("NOT proven: ", "bold red"), "; ".join(report.wrong))
        screen.unproven(report.unproven)

    value: JsonObject = {"ok": report.ok, **msgspec.to_builtins(report)}
    return Answer(value, show, OK if report.ok else NOT_VERIFIED)


def _proof(proof: Proof) -> Answer:
    text = msgspec.json.format(msgspec.json.encode(proof), indent=2).decode()
    return Answer(msgspec.to_builtins(proof), lambda screen: _show_text(screen, text))


def _show_text(screen: Screen, text: str) -> None:
    for line in text.splitlines():
        screen.to_copy(line)


def _tlog_proof(proof: StreamProof, log: Log) -> Answer:
    note = noted(proof.checkpoint)
    if note is not None:
        given = cosignatures_of(log.query).get(proof.checkpoint.position, ())
        note = msgspec.structs.replace(note, signatures=(*note.signatures, *given))
    text = str(tlog_proof(proof, note))
    return Answer({"proof": text}, lambda screen: _show_text(screen, text))


def _split_view(text: bytes, trusted: Trusted) -> Answer:
    notes = notes_in(text)
    if len(notes) != _TWO:
        raise UsageError(f"--evidence: there are {len(notes)} notes in it, two are compared")
    first, second = (one.note for one in notes)
    problem = split_view(first, second, [NamedKey(first.origin, key) for key in trusted.keys])
    shows = (
        ""
        if problem
        else f"{first.origin} has signed two roots of {first.size} leaves: it shows two histories"
    )

    def show(screen: Screen) -> None:
        screen.line(
            safe("NOT proven: ", "bold red") if problem else safe("proven: ", "bold green"), problem or shows
        )

    return Answer(
        {"ok": not problem, "shows": shows, "wrong": [problem] * bool(problem)},
        show,
        NOT_VERIFIED if problem else OK,
    )
