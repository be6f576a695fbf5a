"""The log of every release opens: it reads as that release read it, is written on, and stays what it was.

`tests/golden/make_golden.py` makes such logs; `tests/support/golden_logs.py` says what is read out of them.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, echo
from intersession_events.facts import words
from intersession_events.stores.opened import open_log
from support.doors.command_line import ran
from support.encrypted import master_key, with_key
from support.every_day import every_day
from support.golden_logs import (
    HEAD_KEY,
    GoldenLog,
    asked,
    called,
    differences,
    digest_of,
    golden_logs,
    heads_of,
    rows_of,
)
from support.paths import ROOT
from support.row_states import with_states
from support.rows import edited

WAIT = 20
"""Seconds that an answer may take; it comes in milliseconds, or never."""

LONG = 12
"""Characters of words that stand nowhere else by chance."""

FIRST = "0.1.0"
MAIN = "agent:main:main"

NAMES = re.compile(r" (?:(agent):\S+|[0-9a-f]{8}-[0-9a-f-]{27})")
"""Questions that differ in nothing but what they name are of one kind."""

LOGS = {f"{golden.version}-{golden.name}": golden for golden in golden_logs()}
each_log = pytest.mark.parametrize("golden", LOGS.values(), ids=LOGS)


def verified(path: Path, golden: GoldenLog) -> Any:
    """Verify a log against the head that its release exported."""
    head, key = path.with_name("head.json"), path.with_name("head.key")
    head.write_text(golden.readings()["head"], encoding="utf-8")
    key.write_bytes(HEAD_KEY)
    return ran("verify", "--head", head, "--key", key, "--store", path, "--json")


def told_otherwise(path: Path, questions: Iterable[Any]) -> list[str]:
    """Return what the command line answers now that the release did not."""
    return [
        f"{' '.join(question['ask'])}{difference}"
        for question in questions
        for difference in differences(question["answer"], asked(path, *question["ask"]))
    ]


def one_of_each_kind(questions: Iterable[Any]) -> Iterable[Any]:
    return {NAMES.sub(r" a \1", " ".join(one["ask"])): one for one in questions}.values()


def test_the_logs_of_the_first_release_are_kept() -> None:
    kept = {golden.name for golden in golden_logs() if golden.version == FIRST}

    assert kept == {"base", "demo", "global", "restricted"}


def test_every_release_in_the_changelog_has_its_logs() -> None:
    changelog = ROOT / "CHANGELOG.md"
    released = set(re.findall(r"^## \[([0-9.]+)\]", changelog.read_text(encoding="utf-8"), re.MULTILINE))

    assert released, "no release stands there as `## [0.1.0]`"
    assert released <= {golden.version for golden in golden_logs()}, "tests/golden/make_golden.py makes them"


@each_log
@pytest.mark.clause("E1")
def test_a_log_of_a_release_is_read_as_that_release_read_it(
    golden: GoldenLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One question of each kind: the command folds the log for it, since the views are of another shape."""
    path, was = golden.unpack(tmp_path), golden.readings()

    rows = rows_of(path)
    told = told_otherwise(path, one_of_each_kind(was["commandLine"]))

    assert told == []
    assert "changed by somebody else" not in caplog.text
    assert (len(rows), digest_of(rows), heads_of(rows)) == (was["events"], was["rows"], was["heads"])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == was["bytes"], "reading has written"


@pytest.mark.parametrize(
    "golden",
    every_day(
        {name: (golden,) for name, golden in LOGS.items()}, *(name for name in LOGS if name[-5:] != "-base")
    ),
)
@pytest.mark.clause("E1", "J2")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_with_its_views_built_for_good_each_question_has_its_answer(
    golden: GoldenLog, tmp_path: Path, *, every: bool
) -> None:
    """They are row for row what a command folds that only reads, so it has the same answers."""
    path, was = golden.unpack(tmp_path), golden.readings()
    questions = was["commandLine"] if every else one_of_each_kind(was["commandLine"])
    before = rows_of(path)

    built = ran("rebuild", "--store", path, "--json")
    proven = ran("verify", "--views", "--store", path, "--json")

    assert told_otherwise(path, questions) == []
    assert (built.exit_code, proven.exit_code, proven.json["ok"]) == (0, 0, True)
    assert rows_of(path) == before


@each_log
@pytest.mark.clause("E1")
def test_a_log_of_a_release_goes_on_and_what_was_in_it_stays(golden: GoldenLog, tmp_path: Path) -> None:
    path, was = golden.unpack(tmp_path), golden.readings()
    before = rows_of(path)

    with SessionSystem(path, agents={"main": echo("You said: ")}) as system:
        opened = {recorded.stream: recorded.hash for recorded in system.log.all(to=len(before))}
        told = [
            f"{tool} {arguments}{difference}"
            for tool, arguments, answer in (
                (*question["ask"], question["answer"]) for question in was["tools"]
            )
            for difference in differences(answer, called(system, tool, arguments, folder=tmp_path))
        ]
        answer = system.inbound(channel="web", chat_id="1", sender="ann", text="Still there?", wait=WAIT)

    after, proven = rows_of(path), verified(path, golden)
    last = ran("history", MAIN, "--raw", "--limit", "2", "--store", path, "--json").json["messages"]
    assert told == []
    assert opened == was["heads"]
    assert (answer["status"], answer["reply"]) == ("ok", "You said: Still there?")
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert [message["role"] for message in last] == ["user", "assistant"]
    assert (proven.exit_code, proven.json["ok"], proven.json["events"]) == (0, True, len(after))


@pytest.mark.clause("V1", "E1")
def test_one_changed_word_in_a_log_of_a_release_is_seen(tmp_path: Path) -> None:
    golden = GoldenLog(FIRST, "demo")
    path, was = golden.unpack(tmp_path), golden.readings()
    asked_of = (question for question in was["commandLine"] if question["ask"][0] == "history")
    history = next(question for question in asked_of if question["ask"][1] == "agent:research:main")

    with edited(path) as database:
        with_states(database).execute(
            "UPDATE stored_events SET state = stated(replace(said(state), '3.5 tonnes', '9.5 tonnes')) "
            "WHERE rowid = (SELECT min(rowid) FROM stored_events "
            "WHERE topic = 'run_completed.1' AND instr(said(state), '3.5 tonnes'))"
        )
    proven = verified(path, golden)

    assert digest_of(rows_of(path)) != was["rows"]
    assert list(differences(history["answer"], asked(path, *history["ask"])))
    assert (proven.exit_code, proven.json["counts"]["changed"]) == (4, 1)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"a": [1, {"b": None}], "c": "x"}, []),
        ({"a": [1, {"b": None, "new": 2}], "c": "x", "more": []}, []),
        ({"a": [1, {"b": 0}], "c": "x"}, [".a[1].b: is 0, was null"]),
        ({"a": [True, {"b": None}], "c": "x"}, [".a[0]: is true, was 1"]),
        ({"a": [1, {}], "c": "x"}, [".a[1].b: is gone, was null"]),
        ({"a": [1], "c": "y"}, ['.a: is [1], was [1, {"b": null}]', '.c: is "y", was "x"']),
        ([], ['is [], was {"a": [1, {"b": null}], "c": "x"}']),
    ],
    ids=json.dumps,
)
def test_more_may_be_said_than_was_and_nothing_else(now: Any, told: list[str]) -> None:
    was = {"a": [1, {"b": None}], "c": "x"}

    assert [difference.removeprefix(": ") for difference in differences(was, now)] == told


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ([{"at": 1, "cause": None}, {"at": 2}], []),
        ([{"at": 0}, {"at": 1, "cause": 0}, {"at": 1.5}, {"at": 2, "new": 1}], []),
        ([{"at": 2}, {"at": 1}, {"at": 3}], ['.beats[1]: is gone or stands elsewhere, was {"at": 2}']),
        ([{"at": 1, "cause": None}], ['.beats[1]: is gone or stands elsewhere, was {"at": 2}']),
    ],
    ids=json.dumps,
)
def test_a_story_may_tell_more_and_has_to_tell_what_it_told_in_order(now: Any, told: list[str]) -> None:
    was = {"beats": [{"at": 1, "cause": None}, {"at": 2}]}

    assert list(differences(was, {"beats": now})) == told


@pytest.mark.parametrize(
    "golden", [pytest.param(one, id=name) for name, one in LOGS.items() if name[-5:] != "-base"]
)
@pytest.mark.ci
@pytest.mark.clause("E1", "CRYPT-7")
def test_no_words_are_left_of_a_log_of_a_release_that_is_encrypted(golden: GoldenLog, tmp_path: Path) -> None:
    path, host = golden.unpack(tmp_path), tmp_path / "host.json"
    host.write_text(json.dumps(with_key(master_key(tmp_path))), encoding="utf-8")
    with open_log(str(path), read_only=True) as log:
        before = [*log.all()]
    told = {text for one in before for text in words(one.event) if len(text) >= LONG}

    done = ran("encryption", "apply", "--store", path, "--config", host, "--json")

    with open_log(str(path), read_only=True) as log:
        assert [*log.all()] == before
    content = path.read_bytes()
    left = [text for text in told if text.encode() in content or json.dumps(text)[1:-1].encode() in content]
    assert (done.exit_code, done.json["ok"], left, len(told) > 0) == (0, True, [], True)
    assert verified(path, golden).exit_code == 0
