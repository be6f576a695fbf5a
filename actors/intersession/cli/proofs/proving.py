"""Proofs for `intersession verify`: made of a log, and checked without it."""

from collections.abc import Sequence

import msgspec

from intersession.cli.host import reader_of, reading_log
from intersession.cli.shell import NOT_VERIFIED, OK, Answer, Common, Reading, Screen, safe
from intersession_actors.debugger import View
from intersession_actors.errors import ToolRefused
from intersession_events.checkpoints import prove_growth, prove_stream
from intersession_events.ids import session_stream
from intersession_events.log import Log
from intersession_events.plain_json import JsonObject
from intersession_events.proofs import Checkpoint, Proof, Trusted, check_proof, read_proof
from intersession_projections.places import flow_sessions, flow_stream


def stream_proven(common: Common, stream: str, *, at: int | None) -> Answer:
    """Return the proof of a stream, which is named as in the log, or by any name of its session, exchange, spawn or run.

    Raises:
        ToolRefused: several are called so.
        BadCheckpoint: there is no such checkpoint, or no such stream before it.
        CorruptEvent: the log is not what the checkpoint was taken of.
    """
    with reading_log(common) as log, Screen().progress("Proving") as progress:
        return _proof(prove_stream(log, _stream_named(log, common, stream), at=at, progress=progress))


def _stream_named(log: Log, common: Common, typed: str) -> str:
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


def growth_proven(common: Common, since: int, *, at: int | None) -> Answer:
    """Return the proof that one checkpoint is the beginning of another.

    Raises:
        BadCheckpoint: there is no such checkpoint.
        CorruptEvent: the log is not what the later one was taken of.
    """
    with reading_log(common) as log, Screen().progress("Proving") as progress:
        return _proof(prove_growth(log, since, at=at, progress=progress))


def proof_checked(text: bytes, *, trusted: Trusted, published: Sequence[Checkpoint]) -> Answer:
    """Return what a proof shows.

    Raises:
        BadCheckpoint: it is none.
    """
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

    def show(screen: Screen) -> None:
        for line in text.splitlines():
            screen.to_copy(line)

    return Answer(msgspec.to_builtins(proof), show)
