"""Makes a fork of a run at a place, with its edits: a file that a system can be opened on (FORK-1, FORK-4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from intersession_actors.hindsight.forking.cutting import consistent
from intersession_actors.hindsight.forking.edits import REPLACING, Replaced, check_edits, replaced_by
from intersession_actors.hindsight.forking.imports import Step, is_imported, replaced_in, under_way
from intersession_actors.hindsight.forking.writing import Writing, names_anew
from intersession_actors.rules.errors import ToolRefused
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.copies.forks.files import remove_fork
from intersession_events.copies.forks.forking import ForkWanted, fork_log
from intersession_events.log.files import named_files
from intersession_events.log.log import Log
from intersession_events.stores.folding.carrying import Carrying
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.forks.closure import closed_streams, roots_of
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.questions.places.grammar import UnknownPlace, parse_place
from intersession_projections.questions.places.located import Places, steps_of_flow
from intersession_projections.questions.places.runs_named import Flow, RunNames, flow_id
from intersession_projections.views.inline_views import inline_views


class MadeFork(NamedTuple):
    """A fork: its log id, its file, the id of its flow, and the cut of its source.

    `forked` is the id of that in the source: an edit of its message makes it another one. `notes` say in words what is otherwise
    than somebody may think who asked for it: where the cut was moved, and what has no effect.
    """

    id: str
    path: str
    run: str
    source: str
    position: int
    edits: tuple[facts.ForkEdit, ...]
    forked: str
    notes: tuple[str, ...] = ()


class Wanted(NamedTuple):
    """The requested fork: `at` is a place, also one without its run (`turn:2`), `by` the caller."""

    run: str
    at: float | str
    edits: Sequence[facts.ForkEdit] = ()
    by: str = "operator"
    exact: bool = False
    """The cut is at the very position, also in the middle of a step: for a fork that is only looked at."""


class Added(NamedTuple):
    """The run that is added to a fork of an imported flow; `is_answered`: with the imported answer."""

    step: Step
    is_answered: bool


def make_fork(
    log: PortableLog,
    wanted: Wanted,
    *,
    fork_id: str,
    now_ms: int,
    directory: Path | None = None,
) -> MadeFork:
    """Make a fork, in the folder of its log's forks; the log is open with its views.

    Raises:
        ToolRefused: there is no such run or place, or an edit is not possible there; it says what would do.
        ForkFailed: the file can't be written.
    """
    check_edits(wanted.edits)
    flow, position, what = _located(log, wanted, now_ms)
    replacing = next((edit for edit in wanted.edits if edit.kind in REPLACING), None)
    step, replaced = _under_way(log, flow, replacing, position, what, exact=wanted.exact)
    if replaced is not None and step is None:
        cut = replaced.cut
    elif step is not None:
        cut = step.cut
    else:
        # Of an import that is not carried on nobody decided anything.
        cut = position if wanted.exact or is_imported(flow) else consistent(log, position)
    _check_place(flow, replacing, cut, what)
    goes_on = flow_id(flow)
    names: dict[str, str] = {}
    if replacing is not None and replacing.kind == "message" and replaced is not None:
        names = names_anew(log, fork_id, log.log_ids, replaced)
        goes_on = names.get(goes_on, goes_on)
    edits = tuple(_placed(edit, wanted.at, what) for edit in wanted.edits)
    roots = [*roots_of(log, flow), *(ids.session_stream(edit.key) for edit in edits if edit.kind == "inject")]
    streams = closed_streams(log, roots, cut)
    fork = fork_log(
        log,
        ForkWanted(streams=streams, at=cut, flow=goes_on, edits=edits, by=wanted.by),
        directory=directory,
        fork_id=fork_id,
        now_ms=now_ms,
        fill=Carrying(log, log.proven, inline_views(), cut).fill,
    )
    try:
        added = (
            None
            if step is None
            else Added(step, is_answered=step.ended is not None and step.ended <= position)
        )
        still = _write(fork.path, edits, (replaced, names), added, by=wanted.by, now_ms=now_ms)
    except BaseException:
        remove_fork(Path(fork.path))
        raise
    _take_files(log, fork.path)
    moved = step is None and replaced is None and cut != position
    return MadeFork(
        id=fork.id,
        path=fork.path,
        run=goes_on,
        source=fork.forked.log_id,
        position=fork.forked.position,
        edits=edits,
        forked=flow_id(flow),
        notes=(*((_moved(position, cut),) if moved else ()), *((_standing_still(still),) if still else ())),
    )


def _take_files(log: PortableLog, path: str) -> None:
    """Give a fork the files that it can't read where its source has them: in a database, in memory, or in another folder."""
    if log.files.own():
        with open_log(path, read_only=True) as fork:
            for named in named_files(fork):
                if fork.files.state(named.file.sha256) == "missing":
                    fork.files.take(named.file.sha256, log.files)


def _moved(asked: int, cut: int) -> str:
    """Say where a fork is cut in the place of the middle of an append."""
    first, last = (asked, cut) if cut > asked else (cut + 1, asked + 1)
    return (
        f"it is cut at #{cut} and not at #{asked} ({cut - asked:+}): around #{first} to #{last} events were recorded together, "
        "and what was decided together is in a fork as a whole or not at all"
    )


def _standing_still(flows: int) -> str:
    """Say what differs in a fork from then, whichever agents answer there."""
    what = "exchange or spawn was" if flows == 1 else "exchanges and spawns were"
    return (
        f"{flows} other {what} open there and stand{'s' if flows == 1 else ''} still in the fork: what else was said and used then "
        "is not in it, so a session that waits for its turn, or a limit of the chain that counted it, makes a difference"
    )


def _write(
    path: str,
    edits: Sequence[facts.ForkEdit],
    replaced: tuple[Replaced | None, dict[str, str]],
    added: Added | None,
    *,
    by: str,
    now_ms: int,
) -> int:
    """Write the edits; return how many exchanges and spawns stand still in a fork that is to be carried on."""
    if not edits and added is None:
        return 0
    there, names = replaced
    with open_log(f"sqlite:///{path}", inline=inline_views()) as fork:
        writing = Writing(fork, by, now_ms)
        if added is not None:
            writing.adding_run(added.step, there, is_answered=added.is_answered)
        for edit in edits:
            if there is None or edit.kind not in REPLACING:
                writing.adding(edit)
            elif edit.kind == "message":
                writing.asking(edit, there, names)
            else:
                writing.answering(edit, there)
        return sum(1 for stream in frozen_in(fork).flows if not stream.startswith(ids.delivery_stream("")))


def _located(log: Log, wanted: Wanted, now_ms: int) -> tuple[Flow, int, str]:
    """Return the flow to fork, the position of the place, and the place in full."""
    what = wanted.at
    if isinstance(what, str):
        bare = what.removeprefix("@")
        if (
            "@" not in bare and bare.partition(":")[0] in {"start", "reply", "turn", "announce", "end"}
        ) or bare.partition("+")[0].partition("-")[0] in {"start", "reply", "announce", "end"}:
            what = f"{wanted.run}@{bare}"
    try:
        flow = RunNames(log).flow(wanted.run, field="run")
        found = Places(log, now_ms=now_ms).find(parse_place(what))
    except UnknownPlace as error:
        raise ToolRefused("invalid_request", str(error)) from None
    return flow, found.position, str(what)


def _under_way(
    log: Log, flow: Flow, replacing: facts.ForkEdit | None, position: int, what: str, *, exact: bool
) -> tuple[Step | None, Replaced | None]:
    """Return the step of an imported flow whose run is added to the fork, if any, and the target of an edit."""
    if replacing is None:
        return (None if exact or not is_imported(flow) else under_way(log, flow, position)), None
    if is_imported(flow):
        step, replaced = replaced_in(log, flow, replacing, position, what)
        return (None if replacing.kind == "message" else step), replaced
    _check_part(log, flow, position, what)
    return None, replaced_by(log, replacing, position, what)


def _check_part(log: Log, flow: Flow, position: int, what: str) -> None:
    """Refuse to replace an event of another run: one whose chain of causes began elsewhere."""
    first, named = (
        next(iter(log.all(after=at - 1, limit=1)), None) if at > 0 else None
        for at in (flow.accepted, position)
    )
    if first is None or named is None or named.correlation == first.correlation is not None:
        return
    if position not in {step.position for step in steps_of_flow(log, flow)}:
        raise ToolRefused(
            "invalid_request",
            f"at: {what} is no place of {flow_id(flow)}, whose events are from {flow.accepted} on; {_OF_THE_RUN}",
        )


_OF_THE_RUN: Final = "give RUN@start, RUN@reply, RUN@turn:N, RUN@announce or RUN@end of this run"


def _check_place(flow: Flow, replacing: facts.ForkEdit | None, cut: int, what: str) -> None:
    is_there = flow.accepted <= cut
    if not is_there and (replacing is None or replacing.kind != "message"):
        raise ToolRefused(
            "invalid_request",
            f"at: {what} is before the run, whose first event is {flow.accepted}; "
            f"{_OF_THE_RUN}, or another message with --message at its @start",
        )


def _placed(edit: facts.ForkEdit, at: float | str, what: str) -> facts.ForkEdit:
    if edit.place not in {"", str(at), what}:
        raise ToolRefused(
            "invalid_request",
            f"--{edit.kind}: its place is {edit.place!a} and the fork's is {what!a}, leave it out: edits are made where the fork is cut",
        )
    return facts.ForkEdit(kind=edit.kind, place=what, key=edit.key, value=edit.value)
