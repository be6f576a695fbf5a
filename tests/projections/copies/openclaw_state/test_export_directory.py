"""The directory of an export: new, private, reached by no link, and with all that an import and the original look for."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession_events.basics.errors import ExportFailed, StoreUnavailable
from intersession_events.basics.ids import session_stream, spawn_stream
from intersession_events.facts import (
    Message,
    MessageRecorded,
    Route,
    RouteChanged,
    SessionImported,
    SessionOpened,
    SessionPatched,
    SessionReset,
    SpawnAccepted,
)
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.openclaw_state.exporting import (
    ExportReport,
    StateSettings,
    export_openclaw,
)

KEY = "agent:main:main"
OPENED = SessionOpened(key=KEY, session_id="s-1", agent_id="main", opened_by="person")
HELLO = MessageRecorded(
    session_id="s-1", message=Message(id="m-1", role="assistant", content="hello", timestamp=7)
)


@pytest.fixture
def log(passing_url: str) -> Iterator[PortableLog]:
    with open_log(passing_url) as opened:
        append(opened, OPENED, HELLO)
        yield opened


def append(log: PortableLog, *events: Any, stream: str = session_stream(KEY)) -> None:
    drafts = tuple(Draft(event=event, id=f"e{log.head()}.{n}", time=1_000) for n, event in enumerate(events))
    log.append_now([StreamAppend(stream=stream, expected=ANY_VERSION, drafts=drafts)])


def exported(log: PortableLog, directory: Path, **options: Any) -> ExportReport:
    return export_openclaw(log, directory, settings=options.pop("settings", StateSettings()), **options)


def read(root: Path, name: str) -> Any:
    return json.loads((root / name).read_text(encoding="utf-8"))


def entry_of(root: Path, key: str = KEY) -> dict[str, Any]:
    return dict(read(root, "agents/main/sessions/sessions.json")[key])


@pytest.mark.clause("EXP-1")
def test_an_export_is_for_its_owner_alone(log: PortableLog, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        exported(log, tmp_path / "out")
    finally:
        os.umask(before)
    made = [tmp_path / "out", *(tmp_path / "out").rglob("*")]

    modes = {path.is_dir(): set[int]() for path in made}
    for path in made:
        modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    assert modes == {True: {0o700}, False: {0o600}}


@pytest.mark.clause("EXP-1")
@pytest.mark.parametrize("what", ["full", "file", "link", "below a file"])
def test_nothing_that_is_there_is_written_over_and_no_link_is_followed(
    log: PortableLog, tmp_path: Path, what: str
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "note").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    named = {"full": "kept", "file": "kept/note", "link": "link", "below a file": "kept/note/below"}[what]

    with pytest.raises(ExportFailed, match="empty or not there"):
        exported(log, tmp_path / named)

    assert (tmp_path / "kept" / "note").read_text() == "mine"
    assert list((tmp_path / "empty").iterdir()) == []
    assert list((tmp_path / "kept").iterdir()) == [tmp_path / "kept" / "note"]


def test_a_session_id_that_can_be_no_file_name_gets_one(passing_url: str, tmp_path: Path) -> None:
    with open_log(passing_url) as log:
        append(log, _opened("../../up"), _said("../../up"))
        exported(log, tmp_path / "a" / "out")

    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]
    entry = entry_of(tmp_path / "a" / "out")
    assert Path(entry["sessionFile"]).name == f"{entry['sessionId']}.jsonl"
    assert Path(entry["sessionFile"]).exists()


def test_an_agent_that_no_folder_can_be_named_after_is_refused(passing_url: str, tmp_path: Path) -> None:
    with open_log(passing_url) as log:
        append(log, SessionOpened(key=KEY, session_id="s", agent_id="../up", opened_by="person"))

        with pytest.raises(ExportFailed, match="can't be a folder's name"):
            exported(log, tmp_path / "out")


@pytest.mark.clause("EXP-1")
@pytest.mark.clause("EXP-1")
@pytest.mark.parametrize("is_there", [False, True])
def test_an_export_that_ends_in_the_middle_leaves_the_directory_as_it_was(
    log: PortableLog, tmp_path: Path, *, is_there: bool
) -> None:
    """What was there of it made the same command say that the directory is not empty."""
    out = tmp_path / "out"
    if is_there:
        out.mkdir()
    append(
        log, msgspec.structs.replace(OPENED, key="agent:nul:main"), stream=session_stream("agent:nul:main")
    )

    def server_gone(done: int, _of: int) -> None:
        assert list(out.rglob("*.jsonl")) != []
        if done == 2:
            raise StoreUnavailable("the server is gone")

    with pytest.raises(StoreUnavailable):
        exported(log, out, progress=server_gone)

    assert out.exists() == is_there
    assert exported(log, out).sessions == 2


def test_an_entry_says_what_the_original_goes_by(log: PortableLog, tmp_path: Path) -> None:
    route = Route(channel="telegram", to="42", account="bot", thread="7")
    values = {"label": "desk", "model": "own/small-1", "thinkingLevel": "high", "sendPolicy": "deny"}
    append(log, RouteChanged(route=route, display_name="Ada"), SessionPatched(values=values))
    exported(log, tmp_path / "out")

    entry = entry_of(tmp_path / "out")

    assert entry.pop("sessionFile") == str(tmp_path / "out/agents/main/sessions/s-1.jsonl")
    assert entry == {
        "sessionId": "s-1",
        "updatedAt": 1_000,
        "label": "desk",
        "displayName": "Ada",
        "sendPolicy": "deny",
        "thinkingLevel": "high",
        "modelProvider": "own",
        "model": "small-1",
        "providerOverride": "own",
        "modelOverride": "small-1",
        "lastChannel": "telegram",
        "lastTo": "42",
        "lastAccountId": "bot",
        "lastThreadId": "7",
        "deliveryContext": {"channel": "telegram", "to": "42", "accountId": "bot", "threadId": "7"},
    }


@pytest.mark.clause("EXP-1")
def test_an_imported_entry_keeps_its_fields_but_those_that_changed_since(
    passing_url: str, tmp_path: Path
) -> None:
    source = {
        "sessionId": "s-1",
        "updatedAt": 5,
        "label": "old",
        "lane": None,
        "inputTokens": 9,
        "mood": {"x": 0.5},
    }
    with open_log(passing_url) as log:
        entry = SessionImported(
            session_id="s-1", source="openclaw", entry=json.dumps(source), updated_at=5, label="old"
        )
        append(log, _opened("s-1", by="import"), entry)
        exported(log, tmp_path / "as it came")
        append(log, SessionPatched(cleared=("label",)))
        append(log, SessionReset(session_id="s-2", previous_session_id="s-1"))
        exported(log, tmp_path / "later")

    assert entry_of(tmp_path / "as it came") == source
    assert entry_of(tmp_path / "later") == {
        "sessionId": "s-2",
        "updatedAt": 1_000,
        "lane": None,
        "mood": {"x": 0.5},
    }


@pytest.mark.clause("EXP-2")
def test_a_spawn_that_goes_on_is_closed_in_the_export(log: PortableLog, tmp_path: Path) -> None:
    child = "agent:main:subagent:66b9a8ff-c2c2-5dd0-b687-cf491dee339e"
    spawn = SpawnAccepted(
        spawn_id="sp", run_id="r-1", child=child, child_session_id="c", agent_id="main", task="count",
        message_id="t", requester=KEY, archive_after_ms=1,
    )  # fmt: skip
    append(log, spawn, stream=spawn_stream("sp"))
    exported(log, tmp_path / "out")

    record = read(tmp_path / "out", "subagents/runs.json")["runs"]["r-1"]

    assert (record["childSessionKey"], record["requesterSessionKey"]) == (child, KEY)
    assert record["outcome"] == {"status": "unknown"}
    assert record["cleanupHandled"]
    assert {"endedAt", "cleanupCompletedAt"} <= record.keys()
    assert "archiveAtMs" not in record


@pytest.mark.clause("EXP-2")
def test_only_what_a_session_asked_for_is_exported_and_a_child_that_is_kept_stays_so(
    log: PortableLog, tmp_path: Path
) -> None:
    for name, requester in (("asked", KEY), ("operators", None)):
        spawn = SpawnAccepted(
            spawn_id=name, run_id=name, child=f"agent:main:subagent:{name}", child_session_id=name, agent_id="main",
            task="count", message_id="t", requester=requester, archive_after_ms=1, cleanup="keep",
        )  # fmt: skip
        append(log, spawn, stream=spawn_stream(name))
    exported(log, tmp_path / "out")

    runs = read(tmp_path / "out", "subagents/runs.json")["runs"]

    assert {run_id: record["cleanup"] for run_id, record in runs.items()} == {"asked": "keep"}


@pytest.mark.clause("EXP-1")
def test_an_export_shows_one_position_and_only_the_sessions_asked_for(
    log: PortableLog, tmp_path: Path
) -> None:
    at = log.head()
    append(log, _said("s-1", "m-2"))
    other = "agent:main:notes"
    append(log, _opened("s-9", key=other), stream=session_stream(other))

    then = exported(log, tmp_path / "then", at=at)
    one = exported(log, tmp_path / "one", keys=[other])

    assert (then.position, then.sessions, then.messages) == (at, 1, 1)
    assert (one.sessions, one.messages) == (1, 0)
    assert list(read(tmp_path / "one", "agents/main/sessions/sessions.json")) == [other]
    with pytest.raises(ExportFailed, match="no session 'agent:main:notes'"):
        exported(log, tmp_path / "none", at=at, keys=[other])
    assert not (tmp_path / "none").exists()


@pytest.mark.clause("EXP-1")
def test_the_settings_are_what_the_original_needs_to_find_the_sessions(
    log: PortableLog, tmp_path: Path
) -> None:
    settings = StateSettings(default_agent="main", scope="global", agents=("main", "desk"))
    exported(log, tmp_path / "out", settings=settings)

    assert read(tmp_path / "out", "openclaw.json") == {
        "session": {"scope": "global", "mainKey": "main"},
        "agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]},
    }
    assert entry_of(tmp_path / "out", "global")["sessionId"] == "s-1"


def test_an_answer_has_what_the_original_needs_to_go_on_behind_it(log: PortableLog, tmp_path: Path) -> None:
    exported(log, tmp_path / "out")
    lines = (tmp_path / "out/agents/main/sessions/s-1.jsonl").read_text().splitlines()

    answer = json.loads(lines[1])["message"]

    assert answer["content"] == [{"type": "text", "text": "hello"}]
    assert answer["usage"]["totalTokens"] == answer["usage"]["cost"]["total"] == 0


def _opened(session_id: str, *, key: str = KEY, by: Any = "person") -> SessionOpened:
    return SessionOpened(key=key, session_id=session_id, agent_id="main", opened_by=by)


def _said(session_id: str, message_id: str = "m-1") -> MessageRecorded:
    message = Message(id=message_id, role="user", content="hello", timestamp=7)
    return MessageRecorded(session_id=session_id, message=message)
