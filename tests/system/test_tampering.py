"""Every way to tamper is found, or named as not proven before it is tried (findings B3 and B4)."""

import shutil
from pathlib import Path

import pytest

from intersession import Reply, SessionSystem, Turn
from intersession_actors.session import snapshots_compared
from intersession_events.errors import LogError
from intersession_events.log import LogHead, VerifyReport, head, verify_log
from intersession_events.stores import SqliteLog, views_proven
from intersession_projections.inline_views import inline_views
from support.checkpointed import checkpoint
from support.pages.tampering import PAGE, page
from support.running import SEES_ALL, closed_exchange
from support.tampering import KINDS, Kind, tamper

OPS = "agent:ops:main"


def speak(turn: Turn) -> str | Reply:
    if turn.step == "message" and "ask" in turn.message:
        turn.tools.call("sessions_send", {"sessionKey": OPS, "message": "how are you", "timeoutSeconds": 20})
    return f"you said {turn.message}" if turn.step == "message" else Reply.skip()


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LogHead]:
    """The log of a system that stopped in order, and its head, kept elsewhere."""
    path = tmp_path_factory.mktemp("genuine") / "log.db"
    with SessionSystem(f"sqlite:///{path}", agents={"main": speak, "ops": speak}, config=SEES_ALL) as system:
        for text in ("hello", "ask ops"):
            sent = {"sessionKey": "agent:main:main", "message": text, "idempotencyKey": text}
            system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent)["runId"]})
        (run,) = [
            run
            for run in system.service.runs.recent(20)
            if run.exchange_id and run.session_key == OPS and run.step == "message"
        ]
        closed_exchange(system, run.run_id)
    with SqliteLog(path, inline=inline_views()) as log:
        checkpoint(log)
    with SqliteLog(path, read_only=True) as log:
        return path, head(log)


def verified(path: Path, known: LogHead | None = None) -> VerifyReport:
    """Return what `intersession verify` says."""
    with SqliteLog(path, read_only=True) as log:
        report = verify_log(log, head=known, final=known is not None)
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
def test_the_genuine_log_is_verified(genuine: tuple[Path, LogHead]) -> None:
    path, known = genuine

    assert verified(path).counts == {}
    assert verified(path, known).counts == {}


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.what)
def test_what_is_done_to_a_log_is_found_or_named_as_not_proven(
    genuine: tuple[Path, LogHead], tmp_path: Path, kind: Kind
) -> None:
    path, known = tmp_path / "log.db", genuine[1]
    shutil.copy(genuine[0], path)
    before = verified(path)
    tamper(path, kind)

    if kind.by == "opening" and not kind.finds:
        with pytest.raises(LogError):
            SqliteLog(path, read_only=True)
        return
    if kind.by == "head":
        SqliteLog(path, inline=inline_views()).close()  # whoever is as careful has the views built anew, too
    alone, with_head = verified(path), verified(path, known)
    match kind.by:
        case "opening" | "verify":
            assert kind.finds in alone.counts, alone.counts
        case "repaired":
            assert kind.finds in alone.counts if kind.finds else alone.unproven != before.unproven
        case "head":
            assert alone.counts == {}, "it says more than it should"
            # Which of them, is a matter of how many checkpoints went with it.
            assert {"tail_cut", "head_mismatch"} & with_head.counts.keys(), with_head.counts
            assert any("rewr" in said or "cut" in said for said in before.unproven), before.unproven
        case "unproven":
            assert any(said.startswith(kind.finds) for said in alone.unproven), alone.unproven
    assert is_refused(path) == (kind.by == "opening" or kind.refused)
    if kind.by == "repaired":
        assert verified(path).counts == {}


def test_the_page_says_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/support/pages/tampering.py --write"


def test_there_are_as_many_kinds_as_were_tried_on_the_first_version() -> None:
    assert len(KINDS) >= 49
    assert len({kind.what for kind in KINDS}) == len(KINDS)
