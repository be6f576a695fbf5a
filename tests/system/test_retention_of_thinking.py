"""FORGET-6: what a model thought goes by a rule of its own; what it said stays, and stays proven to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from intersession import Message, Reply, SessionSystem, Turn
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted, Redact
from intersession_events.basics.errors import CorruptEvent
from intersession_events.copies.bundles.verifying import check_bundle
from intersession_events.copies.following.source import LogSource
from intersession_events.copies.following.taking import LogCopy
from intersession_events.copies.forks.files import forks_beside
from intersession_events.facts import ERASED, Erased, RunCompleted, TextBlock, ThinkingBlock, encode
from intersession_events.log.envelope import seal
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import opened
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.any_log import changed_behind
from support.bundled import lines_of, parts_of, sealed, with_lines, zipped
from support.encrypted import master_key, where, with_key
from support.fakes import ManualClock
from support.openclaw.samples import header, message, write_state
from support.running import Booth, recorded

DAY_MS = 86_400_000
MAIN = "agent:main:main"
CANARY = "zanzibar"
SAID = "cinnamon"
REPLACED = "UPDATE stored_events SET state=? WHERE originator_version=? AND topic='run_completed.1'"
RULES = {"thinking": "7d", "messages": "30d"}


def main(_: Turn) -> Reply:
    blocks = (ThinkingBlock(thinking=f"maybe {CANARY}", thinking_signature=CANARY), TextBlock(text=SAID))
    return Reply(text=SAID, messages=(Message(id="", role="assistant", content=blocks, timestamp=0),))


def started(booth: Booth, clock: ManualClock, **config: Any) -> SessionSystem:
    return booth.start({"main": main}, {}, {"retention": RULES, **config}, clock=clock)


def said(system: SessionSystem, text: str) -> str:
    sent = system.gateway.call("chat.send", {"sessionKey": MAIN, "message": text, "idempotencyKey": text})
    run: str = sent.get("runId", "")
    assert system.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})["status"] == "ok"
    return run


def applied(system: SessionSystem, **given: Any) -> Any:
    return system.gateway.perform("retention.apply", given)


def answers(system: SessionSystem) -> list[Any]:
    history: Any = system.gateway.call("chat.history", {"sessionKey": MAIN})
    return [one["content"] for one in history["messages"] if one["role"] == "assistant"]


def hits(system: SessionSystem, text: str) -> int:
    return len(system.debug.search(text)["hits"])


def findings(url: str) -> list[str]:
    with open_log(url, read_only=True) as log:
        return [f"{one.code}: {one.problem}" for one in verify_log(log).findings]


def words(url: str) -> str:
    with open_log(url, read_only=True) as log:
        return str([encode(one.event) for one in log.all()])


def states(url: str) -> dict[int, bytes]:
    """Return the rows of answers, as they are stored, by their versions in their stream."""
    asked = "SELECT originator_version, state FROM stored_events WHERE topic=?"
    return {row: bytes(state) for row, state in changed_behind(url, asked, RunCompleted.topic)}


@pytest.mark.clause("FORGET-6")
def test_thinking_goes_by_its_age_and_the_answer_stays(booth: Booth) -> None:
    clock = ManualClock()
    system = started(booth, clock)
    said(system, "long ago")
    clock.advance(8 * DAY_MS)
    said(system, "today")
    before = hits(system, CANARY)

    dry, answer, again = applied(system, dryRun=True), applied(system), applied(system)

    assert before == 2
    assert (dry["rules"], dry["counts"]["thinking"]) == ({"thinking 7d": 1}, 1)
    assert (answer["rules"], answer["erased"], again["erased"]) == ({"thinking 7d": 1}, 1, 0)
    gone, here = answers(system)
    assert gone == [{"type": "thinking", "thinking": ERASED}, {"type": "text", "text": SAID}]
    assert here[0] == {"type": "thinking", "thinking": f"maybe {CANARY}", "thinkingSignature": CANARY}
    assert (hits(system, SAID), hits(system, CANARY)) == (2, 1)
    (event,) = recorded(system, Erased)
    assert (event.rule, event.thinking) == ("thinking 7d", True)
    assert system.debug.replay()["same"]
    assert findings(booth.url) == []


@pytest.mark.ci
@pytest.mark.clause("FORGET-6")
def test_no_byte_of_it_stays_and_the_rest_goes_later(booth: Booth, tmp_path: Path) -> None:
    clock = ManualClock()
    system = started(booth, clock, transcripts={"mirror": True})
    run = said(system, "long ago")
    hits(system, SAID)
    with system.fork(run, at="end", agents={"main": main}):
        pass
    copy, late = LogCopy(tmp_path / "kept" / "copy.db"), LogCopy(tmp_path / "kept" / "late.db")
    copy.path.parent.mkdir()

    def taken(by: LogCopy) -> int:
        with open_log(booth.url, read_only=True) as log:
            return by.take(LogSource(log)).erased

    (fork,) = forks_beside(system.log.place)
    assert (taken(copy), taken(late)) == (0, 0)
    clock.advance(8 * DAY_MS)
    answer = applied(system)
    assert answer["forks"] == [{"fork": fork.stem, "erased": 1}]
    assert taken(copy) == 1
    copies = {"kept/late.db"}
    assert {name.removesuffix("-wal") for name in where(booth.url, tmp_path, CANARY.encode())} == copies
    assert SAID in words(booth.url)
    assert findings(booth.url) == findings(str(copy.path)) == findings(str(fork)) == []

    clock.advance(30 * DAY_MS)
    answer = applied(system)
    assert [*answer["rules"]] == ["messages 30d"]
    assert (taken(copy), taken(late)) == (2, 2)
    system.close()
    assert SAID not in words(booth.url)
    assert where(booth.url, tmp_path, CANARY.encode(), b'"text":"cinnamon') == []
    assert (
        findings(booth.url)
        == findings(str(copy.path))
        == findings(str(late.path))
        == findings(str(fork))
        == []
    )


@pytest.mark.ci
@pytest.mark.clause("FORGET-6", "CRYPT-1")
def test_in_an_encrypted_log_the_rest_stays_encrypted_as_it_is(booth: Booth, tmp_path: Path) -> None:
    """No nonce is used for two texts: what stays is not encrypted anew."""
    clock = ManualClock()
    system = started(booth, clock, **with_key(master_key(tmp_path)))
    said(system, "long ago")
    ((version, before),) = states(booth.url).items()
    clock.advance(8 * DAY_MS)
    said(system, "today")

    answer = applied(system)

    assert answer["counts"]["keys"] == 0
    assert any(f"session:{MAIN}" in one for one in answer["notReached"])
    was, now = opened(before, where="a row"), opened(states(booth.url)[version], where="a row")
    assert was.sealed.startswith(f"{now.sealed}.")
    assert (was.data, was.hash) == (now.data, now.hash)
    assert answers(system)[0] == [{"type": "thinking", "thinking": ERASED}, {"type": "text", "text": SAID}]
    assert answers(system)[1][0]["thinking"] == f"maybe {CANARY}"
    assert where(booth.url, tmp_path, CANARY.encode(), SAID.encode()) == []
    assert findings(booth.url) == []
    copy = LogCopy(tmp_path / "copy.db")
    with open_log(booth.url, read_only=True) as log:
        copy.take(LogSource(log))
    assert findings(str(copy.path)) == []
    clock.advance(40 * DAY_MS)
    assert applied(system)["counts"]["keys"] >= 1
    assert findings(booth.url) == []


@pytest.mark.ci
@pytest.mark.clause("FORGET-6")
def test_thinking_of_before_is_counted_and_goes_with_its_message(booth: Booth) -> None:
    clock = ManualClock()
    system = started(booth, clock)
    said(system, "long ago")
    system.close()
    with open_log(booth.url, read_only=True) as log:
        (old,) = (one for one in log.all() if isinstance(one.event, RunCompleted))
        draft = Draft(
            event=old.event, id=old.id, time=old.time, causation=old.causation, correlation=old.correlation,
            decision=old.decision,
        )  # fmt: skip
        state, _ = seal(
            draft, old.topic, encode(old.event), log_id=log.log_id, stream=old.stream, version=old.version,
            epoch=old.epoch, prev=old.prev, salt=bytes(16),
        )  # fmt: skip
    changed_behind(booth.url, REPLACED, state, old.version)
    clock.advance(8 * DAY_MS)
    system = started(booth, clock)

    dry, answer = applied(system, dryRun=True), applied(system)

    said_so = "the thinking in 1 event of before a log kept it apart: it goes with their words, by a rule for messages"
    assert said_so in dry["notReached"]
    assert (dry["erased"], answer["erased"]) == (0, 0)
    assert CANARY in words(booth.url)
    clock.advance(30 * DAY_MS)
    assert applied(system)["rules"] == {"messages 30d": 2}
    assert CANARY not in words(booth.url)


@pytest.mark.ci
@pytest.mark.clause("FORGET-6", "V1")
def test_thinking_that_is_taken_away_or_changed_by_somebody_is_found(booth: Booth) -> None:
    system = started(booth, ManualClock())
    said(system, "hello")
    system.close()
    ((version, state),) = states(booth.url).items()
    told: dict[str, Any] = json.loads(state)
    apart = told.pop("apart")

    def found_with(**changed: Any) -> str:
        fields = {"apart": changed} if changed else {}
        made = json.dumps(fields | told, separators=(",", ":"), ensure_ascii=False).encode()
        changed_behind(booth.url, REPLACED, made, version)
        return findings(booth.url)[0]

    other = [one.replace(CANARY, "madagascar") for one in apart["pieces"]]
    for pieces, salt in (
        (other, apart["salt"]),
        ([], apart["salt"]),
        (apart["pieces"], "00" * 16),
        (other, "?"),
    ):
        assert found_with(pieces=pieces, salt=salt).startswith("changed: the thinking beside the payload")
    assert found_with().startswith("erased: the payload was erased, and no event authorises")
    with open_log(booth.url, read_only=True) as log, pytest.raises(CorruptEvent, match="no event authorises"):
        list(log.all())


@pytest.mark.ci
@pytest.mark.sqlite("bundles are the same of every store")
@pytest.mark.clause("FORGET-6", "BUNDLE-10", "BUNDLE-20", "BUNDLE-24")
def test_a_bundle_proves_what_thinking_is_and_what_is_gone(booth: Booth, tmp_path: Path) -> None:
    clock = ManualClock()
    system = started(booth, clock)
    said(system, "long ago")
    clock.advance(8 * DAY_MS)
    said(system, "today")
    place = system.log.head()
    system.checkpoint()
    applied(system)
    system.checkpoint()

    def bundled(redact: Redact | None, at: int | None = None) -> Path:
        made = tmp_path / f"{redact}-{at}.zip"
        make_bundle(system.debug.view, BundleWanted(everything=True, redact=redact, at=at), made)
        return made

    whole = bundled(None)
    found = [
        check_bundle(made)
        for made in (whole, bundled(None, place), bundled("secrets"), bundled("words"), bundled("people"))
    ]
    assert [one.wrong for one in found] == [[]] * 5
    assert [one.said["erased"] for one in found] == [1, 1, 1, 1, None]
    parts = parts_of(whole)
    lines = lines_of(parts)
    (at,) = (number for number, one in enumerate(lines) if "apart" in one.said)
    apart: Any = lines[at].said["apart"]
    assert CANARY in str(apart)

    def wrong_with(**changed: Any) -> str:
        fields = {name: changed.get(name, value) for name, value in lines[at].said.items()}
        made = {name: value for name, value in fields.items() if value is not None}
        other = [*lines[:at], lines[at]._replace(said=made), *lines[at + 1 :]]
        path = tmp_path / "changed.zip"
        path.write_bytes(zipped(sealed(with_lines(parts, other))))
        return str(check_bundle(path).wrong)

    assert "no event authorises what stands there" in wrong_with(apart=None)
    assert "the thinking beside its data is not what was hashed" in wrong_with(
        apart={**apart, "pieces": ["1"]}
    )
    assert "the thinking beside its data is not what was hashed" in wrong_with(
        apart={**apart, "salt": "00" * 16}
    )


@pytest.mark.ci
@pytest.mark.clause("FORGET-6")
def test_thinking_of_an_import_goes_with_the_line_that_it_came_in(booth: Booth, tmp_path: Path) -> None:
    content = [{"type": "thinking", "thinking": CANARY}, {"type": "text", "text": SAID}]
    lines = [
        header("s-1"),
        message("m-1", {"role": "assistant", "content": content, "timestamp": 1772442000000}, 1),
    ]
    system = booth.start(
        {"main": main}, {}, {"retention": {"thinking": "7d"}}, clock=ManualClock(1_800_000_000_000)
    )
    entries = {MAIN: {"sessionId": "s-1", "updatedAt": 1772442000009}}
    system.import_openclaw(write_state(tmp_path / "state", lines, entries=entries))
    before = words(booth.url).count(CANARY)

    answer = applied(system)

    assert (before, answer["rules"]) == (2, {"thinking 7d": 1})
    assert (CANARY in words(booth.url), SAID in words(booth.url)) == (False, True)
    system.export_openclaw(tmp_path / "out")
    system.close()
    assert {*where(booth.url, tmp_path, CANARY.encode())} == {"state/agents/main/sessions/s-1.jsonl"}
    assert where("", tmp_path / "out", CANARY.encode()) == []
    assert len(where("", tmp_path / "out", SAID.encode())) == 1
    assert findings(booth.url) == []
