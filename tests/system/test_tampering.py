"""Every way to tamper is found, or named as not proven before it is tried (findings B3 and B4)."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from intersession import SessionSystem
from intersession_actors.owners.session.snapshots import snapshots_compared
from intersession_events.basics.errors import LogError, LogRewritten
from intersession_events.copies.following.source import LogSource
from intersession_events.copies.following.taking import LogCopy
from intersession_events.facts import CheckpointTaken, Event
from intersession_events.log.verifying.report import LogHead, VerifyReport
from intersession_events.log.verifying.verification import head, verify_log
from intersession_events.proofs.signatures import PublicKey, Trusted
from intersession_events.proofs.statement import Checkpoint, checkpoint_of
from intersession_events.stores.opened import open_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.view_proof import views_proven
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_projections.views.inline_views import inline_views
from support.bundled import speak
from support.checkpointed import checkpoint, key_of
from support.every_day import every_day
from support.file_tampering import FILES, KEPT
from support.fork_tampering import FORKS
from support.openclaw.samples import HOUSEHOLD
from support.pages.tampering import PAGE, page
from support.running import SEES_ALL, closed_exchange
from support.tampering import EVENTS, IMPORTED, KINDS, REFUSED_BY_COPIES, Kind, tamper

OPS = "agent:ops:main"
NOW = 1_800_000_000_000
KEY = key_of(7)


class Genuine(NamedTuple):
    """A log that nobody touched, its head, its last checkpoint as it was published, and what is not proven of it alone."""

    path: Path
    head: LogHead
    published: Checkpoint
    unproven: Sequence[str]
    unsigned: Sequence[str]
    """What is not proven of it with the key that signed its checkpoints."""


def told(path: Path, text: str) -> Event:
    """Have a system hear a text and do all that comes of it, and take a signed checkpoint once it has stopped."""
    with SessionSystem(f"sqlite:///{path}", agents={"main": speak, "ops": speak}, config=SEES_ALL) as system:
        sent = {"sessionKey": "agent:main:main", "message": text, "idempotencyKey": text}
        system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent)["runId"]})
        for run in system.service.runs.recent(20):
            if run.exchange_id and run.session_key == OPS and run.step == "message":
                closed_exchange(system, run.run_id)
    with SqliteLog(path, inline=inline_views()) as log:
        return checkpoint(log, KEY).event


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Genuine:
    """The log of a system that stopped in order, twice, with a signed checkpoint each time; and what was kept of it elsewhere."""
    path = tmp_path_factory.mktemp("genuine") / "log.db"
    for text in ("hello", "ask ops"):
        taken = told(path, text)
    assert isinstance(taken, CheckpointTaken)
    with SqliteLog(path, read_only=True) as log:
        return known(path, head(log), checkpoint_of(log.log_id, taken))


def known(path: Path, at: LogHead, published: Checkpoint) -> Genuine:
    """Return a log with what is not proven of it."""
    by_key = verified(path, trusted=[KEY.public]).unproven
    return Genuine(path, at, published, verified(path).unproven, by_key)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Genuine:
    """The log into which a state directory was imported, with a signed checkpoint."""
    folder = tmp_path_factory.mktemp("imported")
    state = shutil.copytree(HOUSEHOLD, folder / "state")
    with SqliteLog(folder / "log.db", inline=inline_views()) as log:
        import_openclaw(state, log, clock=lambda: NOW)
        taken = checkpoint(log, KEY).event
        assert isinstance(taken, CheckpointTaken)
        at, published = head(log), checkpoint_of(log.log_id, taken)
    return known(folder / "log.db", at, published)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Genuine:
    """A log in which somebody pinned a note, and words were erased, with a signed checkpoint."""
    path = tmp_path_factory.mktemp("kept") / "log.db"
    with SessionSystem(f"sqlite:///{path}", agents={"main": speak, "ops": speak}) as system:
        for agent in ("ops", "main"):
            sent = {"sessionKey": f"agent:{agent}:main", "message": "hello", "idempotencyKey": agent}
            run = system.gateway.call("chat.send", sent)["runId"]
            system.gateway.call("agent.wait", {"runId": run})
        system.gateway.call("notes.pin", {"run": run, "text": "look here"})
        system.gateway.call("sessions.erase", {"key": OPS, "unsent": "giveUp"})
    with SqliteLog(path, inline=inline_views()) as log:
        taken = checkpoint(log, KEY).event
        assert isinstance(taken, CheckpointTaken)
        at, published = head(log), checkpoint_of(log.log_id, taken)
    return known(path, at, published)


def verified(
    path: Path,
    known: LogHead | None = None,
    *,
    published: Sequence[Checkpoint] = (),
    trusted: Sequence[PublicKey] = (),
) -> VerifyReport:
    """Return what `intersession verify` says."""
    with SqliteLog(path, read_only=True) as log:
        report = verify_log(
            log, head=known, final=known is not None, published=published, trusted=Trusted(trusted)
        )
        if not report.counts.get("table_altered"):
            report = report.with_views(*views_proven(log, inline_views()))
            report = report.with_snapshots(*snapshots_compared(log))
    return report


def is_refused(path: Path) -> bool:
    try:
        SqliteLog(path, inline=inline_views()).close()
    except LogError:
        return True
    return False


@pytest.mark.clause("V1")
def test_the_genuine_log_is_verified(genuine: Genuine) -> None:
    assert verified(genuine.path).counts == {}
    assert verified(genuine.path, genuine.head).counts == {}
    assert verified(genuine.path, published=[genuine.published], trusted=[KEY.public]).counts == {}


DONE = {kind.what: (kind,) for kind in (*KINDS, *FILES)}


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", every_day(DONE, *list(DONE)[::8]))
def test_what_is_done_to_a_log_is_found_or_named_as_not_proven(
    genuine: Genuine, tmp_path: Path, kind: Kind
) -> None:
    _is_found_or_named(genuine, tmp_path, kind)


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", IMPORTED, ids=lambda kind: kind.what)
def test_what_is_done_to_an_imported_log_is_found(imported: Genuine, tmp_path: Path, kind: Kind) -> None:
    _is_found_or_named(imported, tmp_path, kind)


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.what)
def test_what_is_done_to_erasures_and_notes_is_found(kept: Genuine, tmp_path: Path, kind: Kind) -> None:
    _is_found_or_named(kept, tmp_path, kind)


@pytest.mark.clause("COPY-2")
@pytest.mark.parametrize("kind", every_day({kind.what: (kind,) for kind in EVENTS}, EVENTS[0].what))
def test_what_is_done_to_the_events_of_a_log_never_reaches_its_copy(
    genuine: Genuine, tmp_path: Path, kind: Kind
) -> None:
    path = Path(shutil.copy(genuine.path, tmp_path / "log.db"))
    copy = LogCopy(tmp_path / "copy.db")
    with open_log(str(path), read_only=True) as log:
        copy.take(LogSource(log))
    with SqliteLog(copy.path, read_only=True) as copied:
        before = copied.rows(limit=1_000)

    tamper(path, kind)
    refused = False
    try:
        with open_log(str(path), read_only=True) as log:
            copy.take(LogSource(log))
    except LogRewritten:
        refused = True
    except LogError:
        assert kind.what not in REFUSED_BY_COPIES  # the log can't be read
    assert refused == (kind.what in REFUSED_BY_COPIES)
    with SqliteLog(copy.path, read_only=True) as copied:
        assert (copied.rows(limit=1_000), verify_log(copied).counts) == (before, {})


def _is_found_or_named(genuine: Genuine, tmp_path: Path, kind: Kind) -> None:
    path, at = tmp_path / "log.db", genuine.head
    shutil.copy(genuine.path, path)
    tamper(path, kind)

    if kind.by == "opening" and not kind.finds:
        with pytest.raises(LogError):
            SqliteLog(path, read_only=True)
        return
    if kind.by == "head":
        SqliteLog(path, inline=inline_views()).close()  # whoever is as careful has the views built anew, too
    alone = verified(path)
    match kind.by:
        case "opening" | "verify":
            assert kind.finds in alone.counts, alone.counts
        case "repaired":
            assert kind.finds in alone.counts if kind.finds else alone.unproven != genuine.unproven
        case "head":
            assert alone.counts == {}, "it says more than it should"
            with_head = verified(path, at)
            # Which of them, is a matter of how many checkpoints went with it.
            assert {"tail_cut", "head_mismatch", "other_log"} & with_head.counts.keys(), with_head.counts
            assert any(said.startswith(kind.named) for said in genuine.unproven), genuine.unproven
            assert kind.signed or any(said.startswith(kind.named) for said in genuine.unsigned), (
                genuine.unsigned
            )
            assert verified(path, published=[genuine.published]).counts
            assert bool(verified(path, trusted=[KEY.public]).counts) == kind.signed
        case "unproven":
            assert any(said.startswith(kind.finds) for said in alone.unproven), alone.unproven
            elsewhere = verified(path, at, published=[genuine.published], trusted=[KEY.public])
            assert elsewhere.counts == {}, "the page says less than is found"
    assert is_refused(path) == (kind.by == "opening")
    if kind.by == "repaired":
        assert verified(path).counts == {}


def test_the_page_says_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/support/pages/tampering.py --write"


def test_there_are_more_kinds_than_were_tried_on_the_first_version() -> None:
    kinds = [*KINDS, *FILES, *IMPORTED, *KEPT, *FORKS]
    assert len(kinds) >= 200
    assert len({kind.what for kind in kinds}) == len(kinds)
