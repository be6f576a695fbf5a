"""`verify` finds what was changed, says what it can't know, and knows more with a head that was kept elsewhere."""

from pathlib import Path

import pytest

from support.doors.command_line import DemoLog, ran, ran_forked
from support.rows import edited


def test_a_log_as_it_was_written_is_verified_and_what_is_not_proven_is_said(demo_log: DemoLog) -> None:
    done = ran_forked("verify", "--store", demo_log.path)

    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith(f"verified: {demo_log.value['position']} events in ")
    assert "Not proven by this:\n  That no events were cut off the end" in done.out


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
    "cut", ["DELETE FROM stored_events WHERE rowid > 90", "DELETE FROM stored_events WHERE rowid = 40"]
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
