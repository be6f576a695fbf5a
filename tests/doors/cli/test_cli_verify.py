"""`verify` finds what was changed, says what it can't know, and knows more with a head that was kept elsewhere."""

from pathlib import Path

import pytest

from intersession_actors.owners.session.context_cache import ContextCache
from intersession_events.facts import SessionOpened
from intersession_events.log.verifying.report import SNAPSHOTS_UNPROVEN
from intersession_events.stores.opened import open_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.doors.command_line import DemoLog, ran, ran_forked
from support.log_drafts import anywhere, draft, said
from support.rows import edited

EVERY = 250
"""After so many events of a stream its state is kept (docs/explanation/design.md)."""


def test_a_log_as_it_was_written_is_verified_and_what_is_not_proven_is_said(demo_log: DemoLog) -> None:
    done = ran_forked("verify", "--store", demo_log.path)

    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith(f"verified: {demo_log.value['position']} events in ")
    assert "1 checkpoint, true up to position " in done.out
    assert "Not proven by this:\n  That no attacker who can hash rewrote it from the start" in done.out


def test_a_changed_word_is_found_and_is_exit_code_4(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)
    with edited(store) as database:
        database.execute(
            "UPDATE stored_events SET state = CAST(replace(CAST(state AS TEXT), '3.5 tonnes', '9.5 tonnes') AS BLOB)"
        )

    in_words = ran("verify", "--store", store)
    in_json = ran("verify", "--store", store, "--json")

    assert (in_words.exit_code, in_json.exit_code) == (4, 4)
    assert in_words.out.startswith("NOT verified: ")
    assert not in_json.json["ok"]
    assert in_json.json["counts"]["changed"] > 0


@pytest.mark.parametrize(
    "cut", ["DELETE FROM stored_events WHERE rowid > 45", "DELETE FROM stored_events WHERE rowid = 40"]
)
def test_with_a_head_that_was_exported_cutting_is_found(demo_log: DemoLog, tmp_path: Path, cut: str) -> None:
    store, head = demo_log.copy(tmp_path), tmp_path / "head.json"

    exported = ran("verify", "--export-head", head, "--store", store)
    whole = ran("verify", "--head", head, "--store", store)
    with edited(store) as database:
        database.execute(cut)
        database.execute("UPDATE sqlite_sequence SET seq = (SELECT MAX(rowid) FROM stored_events)")
    after = ran("verify", "--head", head, "--store", store, "--json")

    assert (exported.exit_code, whole.exit_code, after.exit_code) == (0, 0, 4)
    assert {"tail_cut", "head_mismatch", "position_missing"} & after.json["counts"].keys()


@pytest.mark.clause("D14")
def test_a_head_that_can_not_be_written_is_named(demo_log: DemoLog, tmp_path: Path) -> None:
    head = tmp_path / "missing" / "head.json"

    done = ran("verify", "--export-head", head, "--store", demo_log.path)

    assert done.exit_code == 2
    assert f"--export-head: {head} can't be written: No such file or directory" in done.err


def test_a_signed_head_is_proven_with_its_key_and_no_other(demo_log: DemoLog, tmp_path: Path) -> None:
    head, right, wrong = tmp_path / "head.json", tmp_path / "right", tmp_path / "wrong"
    right.write_bytes(b"the key")
    wrong.write_bytes(b"another key")
    ran("verify", "--export-head", head, "--key", right, "--store", demo_log.path)

    good = ran("verify", "--head", head, "--key", right, "--store", demo_log.path, "--json")
    bad = ran("verify", "--head", head, "--key", wrong, "--store", demo_log.path, "--json")

    unsaid = ran("verify", "--head", head, "--store", demo_log.path, "--json")

    assert good.exit_code == unsaid.exit_code == 0
    assert not any("head" in what for what in good.json["unproven"])
    assert "its signature was not checked" in unsaid.json["unproven"][0]
    assert (bad.exit_code, bad.json["counts"]) == (4, {"head_forged": 1})


def test_no_head_is_exported_of_a_damaged_log_and_none_is_overwritten(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store, head, kept = demo_log.copy(tmp_path), tmp_path / "head.json", tmp_path / "kept.json"
    kept.write_text("mine", encoding="utf-8")
    with edited(store) as database:
        database.execute("DELETE FROM stored_events WHERE rowid = 40")

    damaged = ran("verify", "--export-head", head, "--store", store)
    there = ran("verify", "--export-head", kept, "--store", demo_log.path)

    assert (damaged.exit_code, head.exists()) == (4, False)
    assert "No head was exported" in damaged.out
    assert (there.exit_code, kept.read_text(encoding="utf-8")) == (2, "mine")


def test_what_is_no_head_is_wrong_usage(demo_log: DemoLog, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("[1]", encoding="utf-8")

    done = ran("verify", "--head", tmp_path / "no.json", "--store", demo_log.path, "--json")

    assert (done.exit_code, done.json["code"]) == (2, "usage")


VIEW_KINDS = {
    "who spawned whom": (
        "UPDATE session_list SET parent=parent+1 WHERE parent IS NOT NULL",
        "session_list",
    ),
    "a row of the list away": ("DELETE FROM session_list WHERE no=1", "session_list"),
    "a row of the list more": (
        "INSERT INTO session_list (session_key, state) SELECT 'agent:x:y', state FROM session_list LIMIT 1",
        "session_list",
    ),
    "a state in the list": (
        "UPDATE session_list SET state=state || x'00' WHERE no=1",
        "session_list",
    ),
    "the last versions of a row": ("UPDATE session_list SET recent=state WHERE no=1", "session_list"),
    "older versions of a row": ("INSERT INTO session_versions VALUES (1, 1, x'dc0000')", "session_versions"),
    "a place in the list": ("UPDATE session_places SET falling=falling-1", "session_places"),
    "a place that was": ("DELETE FROM session_past", "session_past"),
    "how many there are": ("UPDATE session_counts SET number=number+1", "session_counts"),
    "where a message lies": ("INSERT INTO session_messages VALUES (1, 1, 1)", "session_messages"),
    "a name that is searched by": (
        "INSERT INTO session_search (rowid, grams) VALUES (1, 'a1g616161')",
        "session_search",
    ),
    "an index of names emptied": ("DELETE FROM session_search_data WHERE id > 10", "session_search"),
    "a generation": ("DELETE FROM session_generations WHERE no=1", "session_generations"),
    "a flow away": ("DELETE FROM flows WHERE accepted=(SELECT MIN(accepted) FROM flows)", "flows"),
    "a flow open again": ("UPDATE flows SET is_open=1-is_open", "flows"),
    "a run of another flow": ("UPDATE flow_runs SET flow=flow+1", "flow_runs"),
    "an outcome": ("UPDATE run_outcomes SET tokens=tokens+1", "run_outcomes"),
    "a number that is text now": (
        "UPDATE run_outcomes SET position=position || 'x'",
        "run_outcomes",
    ),
    "a key of idempotency": ("INSERT INTO run_keys VALUES ('k', 'c', 'r', 1, NULL)", "run_keys"),
    "text that is none": ("INSERT INTO run_keys VALUES (CAST(x'ff' AS TEXT), 'c', 'r', 1, NULL)", "run_keys"),
    "the clock": ("UPDATE clock SET position=position+1", "clock"),
    "a thread": ("INSERT INTO thread_bindings VALUES ('a', 'b', 'c', 'd', 'e', 1, 0)", "thread_bindings"),
    "an index away": ("DROP INDEX flows_run", "flows_run"),
    "an index that refuses": ("CREATE UNIQUE INDEX one ON flows (kind, accepted)", "one"),
    "a table away": ("DROP TABLE thread_bindings", "thread_bindings"),
    "a position set back": ("UPDATE inline_views SET position=9 WHERE name='session_list'", "inline_views"),
    "a position ahead": (
        "UPDATE inline_views SET position=position+1 WHERE name='positions'",
        "inline_views",
    ),
    "an event set aside": ("INSERT INTO set_aside VALUES ('positions', 3, 's', 1, 't', 'r')", "set_aside"),
}


def tampered(demo_log: DemoLog, folder: Path, *kinds: str) -> Path:
    store = demo_log.copy(folder)
    with edited(store) as database:
        for kind in kinds:
            database.execute(VIEW_KINDS[kind][0])
    return store


@pytest.mark.clause("J1", "V1")
@pytest.mark.parametrize("kind", VIEW_KINDS)
def test_what_was_done_to_a_view_is_found(demo_log: DemoLog, tmp_path: Path, kind: str) -> None:
    """Before: edits of any view went unseen."""
    store = tampered(demo_log, tmp_path, kind)

    with open_log(f"sqlite:///{store}", read_only=True) as log:
        findings, unproven = views_proven(log, inline_views())

    assert VIEW_KINDS[kind][1] in {finding.table for finding in findings}
    assert unproven == []


@pytest.mark.clause("J1", "V1")
def test_views_are_verified_unless_left_out_and_a_rebuild_mends_them(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store = tampered(
        demo_log, tmp_path, "who spawned whom", "an outcome", "a table away", "a position set back"
    )

    found = ran("verify", "--store", store, "--json")
    events = ran("verify", "--events-only", "--store", store, "--json")
    rebuilt = ran("rebuild", "--store", store, "--json")
    after = ran("verify", "--views", "--store", store, "--json")

    assert (found.exit_code, found.json["counts"].keys()) == (4, {"view_differs"})
    assert events.exit_code == 0
    assert any("the views hold" in what for what in events.json["unproven"])
    assert not any("the views hold" in what for what in found.json["unproven"])
    assert (rebuilt.exit_code, after.exit_code, after.json["counts"]) == (0, 0, {})


def test_a_finding_in_a_view_names_table_and_key_and_what_differs(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)
    with edited(store) as database:
        database.execute("UPDATE session_list SET opened=7000 WHERE session_key='agent:main:main'")

    said = ran("verify", "--store", store).out

    assert "  session_list: session_list no=" in said
    assert " view_differs: opened is 7000, the events say " in said


def test_one_view_is_rebuilt_and_one_that_is_not_there_is_wrong_usage(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store = demo_log.copy(tmp_path)

    one = ran("rebuild", "open_flows", "--store", store)
    none = ran("rebuild", "flow", "--store", store, "--json")
    nowhere = ran("rebuild", "--store", tmp_path / "no.db", "--json")

    assert (one.exit_code, one.out) == (
        0,
        f"rebuilt: open_flows up to position {demo_log.value['position']}\n",
    )
    assert (none.exit_code, none.json["code"]) == (2, "usage")
    assert (nowhere.exit_code, (tmp_path / "no.db").exists()) == (3, False)


def test_snapshots_are_compared_with_the_events_and_a_rebuild_takes_them_anew(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    stream = "session:agent:main:main"
    opened = SessionOpened(key="agent:main:main", session_id="s", agent_id="main", opened_by="person")
    with SqliteLog(store, inline=inline_views()) as log:
        log.append_now(
            (anywhere(stream, draft(opened, "o"), *(said(str(number)) for number in range(EVERY))),)
        )
        log.states.fold(stream, ContextCache(log).folding("agent:main:main"))
    whole = ran("verify", "--store", store, "--json")
    with edited(store) as database:
        database.execute("UPDATE stored_snapshots SET state=replace(state, 'false', 'true')")

    found = ran("verify", "--store", store, "--json")
    events = ran("verify", "--events-only", "--store", store, "--json")
    rebuilt = ran("rebuild", "snapshots", "--store", store)
    after = ran("verify", "--store", store, "--json")
    everything = ran("rebuild", "--store", store, "--json")

    assert (whole.exit_code, whole.json["counts"]) == (0, {})
    assert (found.exit_code, found.json["counts"]) == (4, {"view_differs": 1})
    assert [finding["view"] for finding in found.json["findings"]] == ["snapshots"]
    assert SNAPSHOTS_UNPROVEN not in [*whole.json["unproven"], *found.json["unproven"]]
    assert (events.exit_code, SNAPSHOTS_UNPROVEN in events.json["unproven"]) == (0, True)
    assert rebuilt.out == "dropped: 1 snapshot; 1 long session folded anew\n"
    assert (after.exit_code, after.json["counts"]) == (0, {})
    # They are there again: who wakes it reads a snapshot, as in a log of an earlier version, which has none.
    assert (everything.json["snapshotsDropped"], everything.json["sessionsFolded"]) == (1, 1)


@pytest.mark.clause("ERASE-2")
def test_an_erasure_is_listed_with_who_wanted_it_why_and_how_much(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)
    erased = ran("erase", "agent:research:main", "--reason", "Ada asked", "--yes", "--store", store)
    assert erased.exit_code == 0, erased.err

    in_words = ran("verify", "--events-only", "--store", store)
    in_json = ran("verify", "--events-only", "--store", store, "--json")

    assert (in_words.exit_code, in_json.exit_code) == (0, 0)
    assert "Ada asked" in in_words.out
    listed = in_json.json["erasures"]
    assert {(one["by"], one["reason"]) for one in listed} == {("operator", "Ada asked")}
    assert all(one["checkpoint"] >= one["position"] for one in listed)
    assert sum(one["rows"] for one in listed) > 0
