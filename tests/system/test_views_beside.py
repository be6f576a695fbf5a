"""The views beside a log that a running system keeps, for whoever reads beside it (issue 10)."""

from contextlib import closing
from pathlib import Path

from intersession import SessionSystem, echo
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.tailing.file import ViewFile
from intersession_projections.views.full_text.view import FullTextView
from intersession_projections.views.tailed_views import tailed_views, take_in
from intersession_projections.views.usage import UsageView
from support.running import WAIT
from support.soaking import until


def said(system: SessionSystem) -> None:
    system.inbound(channel="telegram", chat_id="1", sender="ann", text="the ferry goes at noon", wait=WAIT)


def play(path: Path, seconds: float | None) -> None:
    views: dict[str, object] = {} if seconds is None else {"views": {"afterSeconds": seconds}}
    with SessionSystem(path, agents={"main": echo()}, config=views) as system:
        said(system)
        if seconds is not None:
            until(lambda: len(list(path.parent.glob("log.db.views/*.db"))) == len(tailed_views(redact_raw)))


def test_a_host_leaves_the_views_beside_its_log_as_far_as_the_log_goes(tmp_path: Path) -> None:
    """Who asked first waited seconds for words to be read that a host had had hours for."""
    path = tmp_path / "log.db"
    play(path, 0)
    with SqliteLog(path, read_only=True) as log:
        for view in (FullTextView(redact_raw), UsageView()):
            with closing(ViewFile(view, log)) as file:
                # What is committed while it stops, the stop itself, has nothing that they take.
                assert not list(
                    log.all(after=file.position, topics={"message_recorded.1", "run_completed.1"})
                )
                assert file.position > 0


def test_a_system_that_is_soon_over_builds_no_views(tmp_path: Path) -> None:
    play(tmp_path / "log.db", None)
    assert not (tmp_path / "log.db.views").exists()


def test_a_log_in_memory_gets_none() -> None:
    with SessionSystem(":memory:", agents={"main": echo()}, config={"views": {"afterSeconds": 0}}) as system:
        said(system)
        assert system.debug.search("ferry")["hits"]


def test_who_added_much_to_a_log_leaves_all_of_them_built(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    play(path, None)
    with SqliteLog(path) as log:
        moved: list[tuple[int, int]] = []
        take_in(log, redact_raw, lambda done, of: moved.append((done, of)))
        assert moved[-1] == (log.head(), log.head())
        for view in tailed_views(redact_raw):
            with closing(ViewFile(view, log)) as file:
                assert file.position == log.head()
