"""ERASE-1: each way on which a text leaves its session, and what becomes of the copy there once the session is erased."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn, echo
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import AccessRecorded, ExchangeHeld, RunCompleted, encode
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.openclaw.samples import header, message, said, write_state
from support.running import WAIT, Booth, Gate, asked, at_rest, merged, wait_for, wait_for_number

CHAT, OPS, SIDE = "agent:main:telegram:group:42", "agent:ops:main", "agent:side:main"
SECRET = "the parcel lies under the third bridge"
LONG = (
    "where it lies: "
    + "then some steps to the north, " * 30
    + "and a few more to the old mill behind the church of the village"
)


class Way(NamedTuple):
    """How a text gets from its session to somewhere else; `named`: what is left there is named, and stays.

    `seen`: whether words that `copies` looks for are recorded once more.
    """

    go: Callable[[SessionSystem], object]
    named: str | None = None
    seen: bool = True


def note(system: SessionSystem, text: str) -> object:
    run = asked(system, SIDE, "hello")
    assert isinstance(run, dict)
    return system.gateway.perform("notes.pin", {"run": run["runId"], "text": text})


def receipt_with(system: SessionSystem, tool: str, words: str) -> object:
    """Record who looked for what, as it was recorded before receipts left the words out."""
    filters = msgspec.json.encode({"words": words}).decode()
    event = AccessRecorded(requester=None, tool=tool, filters=filters, allowed=1)
    draft = Draft(event=event, id=f"receipt of {tool}", time=1_772_442_000_000)
    append = StreamAppend(stream="access:operator", expected=ANY_VERSION, drafts=(draft,))
    return system.log.append_now((append,))


WAYS: dict[str, Way] = {
    "another session reads it by a tool": Way(lambda system: asked(system, SIDE, "read")),
    "it is in a list that another session reads": Way(lambda system: asked(system, SIDE, "list")),
    "another session tells it again": Way(lambda system: asked(system, SIDE, f"say: {SECRET}")),
    "a person quotes it elsewhere": Way(lambda system: asked(system, SIDE, f"> {SECRET}\n\nis that so?")),
    "in other letters and spaces": Way(
        lambda system: asked(system, SIDE, "The parcel  lies\nunder THE third bridge")
    ),
    "within JSON within JSON": Way(
        lambda system: asked(
            system, SIDE, msgspec.json.encode({"a": msgspec.json.encode({"b": SECRET}).decode()}).decode()
        )
    ),
    "cut short": Way(lambda system: asked(system, SIDE, SECRET[:30] + "…"), seen=False),
    "a long one, cut short, within other words": Way(
        lambda system: asked(system, SIDE, f"he said: {LONG[:900]}… and so on")
    ),
    "another session sends it on": Way(lambda system: asked(system, SIDE, f"send: {SECRET}")),
    "another session has a sub-agent do something with it": Way(
        lambda system: asked(system, SIDE, f"spawn: {SECRET}")
    ),
    "another session fails on it": Way(lambda system: asked(system, SIDE, f"fail: {SECRET}")),
    "the operator puts it into a session": Way(
        lambda system: (
            asked(system, SIDE, "hello"),
            system.gateway.perform("chat.inject", {"sessionKey": SIDE, "message": SECRET}),
        )
    ),
    "a note beside another run": Way(lambda system: note(system, f"remember: {SECRET}")),
    "the operator looks for a word of it": Way(
        lambda system: (
            system.gateway.perform("debug.search", {"words": "third bridge"}),
            asked(system, SIDE, "hello"),
        ),
        seen=False,
    ),
    "the operator asks where it came from": Way(
        lambda system: (
            system.gateway.perform("debug.origin", {"words": SECRET}),
            asked(system, SIDE, "hello"),
        ),
        seen=False,
    ),
    "an old receipt says that the operator looked for a word of it": Way(
        lambda system: receipt_with(system, "debug.search", "third bridge")
    ),
    "an old receipt says that the operator asked where it came from": Way(
        lambda system: receipt_with(system, "debug.origin", SECRET)
    ),
    "it is the label of a session": Way(
        lambda system: system.gateway.perform("sessions.patch", {"key": SIDE, "label": SECRET}),
        "never erased",
    ),
    "a part of it is quoted": Way(
        lambda system: asked(
            system, SIDE, "and a few more to the old mill behind the church of the town, or what?"
        ),
        "parts of texts",
    ),
}


def main(turn: Turn) -> str:
    return f"noted: {turn.message}"


def side(turn: Turn) -> str | Reply:
    do, _, text = turn.message.partition(": ")
    match do:
        case "read":
            return str(turn.tools.call("sessions_history", {"sessionKey": CHAT, "limit": 50}))
        case "list":
            return str(turn.tools.call("sessions_list", {"messageLimit": 20}))
        case "send":
            turn.tools.call("sessions_send", {"sessionKey": OPS, "message": text, "timeoutSeconds": WAIT})
            return "sent"
        case "spawn":
            turn.tools.call("sessions_spawn", {"task": text})
            return "begun"
        case "fail":
            raise ValueError(text)
        case _:
            return text or turn.message


def ops(turn: Turn) -> str | Reply:
    return turn.message if turn.step == "message" else Reply.skip()


def started(booth: Booth) -> SessionSystem:
    system = booth.start(
        {"main": main, "side": side, "ops": ops},
        {"telegram": MemoryChannel()},
        {"transcripts": {"mirror": True}},
    )
    for text in (SECRET, LONG):
        system.inbound(
            channel="telegram", chat_id="42", chat_type="group", sender="ann", text=text, wait=WAIT
        )
    return system


def copies(system: SessionSystem) -> list[str]:
    """Where the words still stand, or what came of them."""
    found: list[str] = []
    for one in system.log.all():
        text = " ".join(encode(one.event).decode().split()).casefold()
        if any(
            word in text
            for word in ("third bridge", "under the third", "steps to the north", "few more to the old mill")
        ):
            found.append(f"{one.topic} of {one.stream}")
    return found


@pytest.mark.clause("ERASE-1")
@pytest.mark.parametrize("way", WAYS)
def test_copies_go_with_the_session_whose_words_they_are(booth: Booth, way: str, tmp_path: Path) -> None:
    system = started(booth)
    at_rest(system)
    own = len(copies(system))
    WAYS[way].go(system)
    at_rest(system)
    assert (len(copies(system)) > own) is WAYS[way].seen

    answer = system.erase(CHAT)

    named = [said for said in answer["notReached"] if (WAYS[way].named or "?") in said]
    if WAYS[way].named is None:
        assert copies(system) == []
        system.close()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path.name for path in files if b"third bridge" in path.read_bytes()] == []
    else:
        assert len(named) == 1
        assert SIDE in named[0]


@pytest.mark.clause("ERASE-1")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("sessions_history", {"sessionKey": CHAT, "limit": 1}),
        ("sessions_history", {"sessionKey": CHAT, "limit": 2, "includeTools": True}),
        ("sessions_list", {"messageLimit": 1}),
        ("sessions_search", {"query": "4711", "limit": 3}),
    ],
)
def test_what_another_session_was_shown_goes_however_short_and_whatever_it_is(
    booth: Booth, tool: str, arguments: dict[str, Any]
) -> None:
    def keeps(turn: Turn) -> str:
        call = turn.record_call("find", {"id": 7})
        turn.record_result(call, "find", '{"pin": "4711 of ann"}')
        return "pin 4711"

    def looks(turn: Turn) -> str:
        turn.tools.call(tool, arguments)
        return "seen"

    system = booth.start({"main": keeps, "side": looks}, {"telegram": MemoryChannel()})
    system.inbound(channel="telegram", chat_id="42", chat_type="group", sender="ann", text="pin?", wait=WAIT)
    asked(system, SIDE, "look")
    at_rest(system)

    def shown() -> list[str]:
        results = [
            one
            for one in system.log.stream(f"session:{SIDE}")
            if '"toolResult"' in encode(one.event).decode()
        ]
        return [one.topic for one in results if "pin" in encode(one.event).decode()]

    assert shown()
    system.erase(CHAT)

    assert shown() == []


@pytest.mark.clause("ERASE-1")
def test_what_shares_no_text_of_twenty_characters_is_left_alone(booth: Booth) -> None:
    system = started(booth)
    asked(system, SIDE, "the parcel")
    asked(system, SIDE, "under which bridge does the parcel lie, do you know?")
    at_rest(system)
    before = [encode(one.event) for one in system.log.stream(f"session:{SIDE}")]

    answer = system.erase(CHAT)

    assert [encode(one.event) for one in system.log.stream(f"session:{SIDE}")] == before
    assert f"session:{SIDE}" not in answer["streams"]


@pytest.mark.clause("ERASE-1")
def test_a_form_that_others_filled_in_stays_and_is_named(booth: Booth) -> None:
    system = booth.start({"main": lambda _: "yes", "side": lambda _: "yes"})
    form = "where it lies: then some steps to the north, " * 10
    asked(system, "agent:main:main", f"{form} and what ada has filled in {'here ' * 20}")
    asked(system, SIDE, f"{form} and another text of bob {'there ' * 20}")
    at_rest(system)

    answer = system.erase("agent:main:main", dry_run=True)

    assert f"session:{SIDE}" not in answer["streams"]
    assert [said for said in answer["notReached"] if "parts of texts" in said and SIDE in said]


@pytest.mark.clause("ERASE-1")
def test_a_session_with_a_copy_that_is_still_acted_on_keeps_all_from_being_erased(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": main, "side": gate.before(echo())}, {"telegram": MemoryChannel()})
    system.inbound(channel="telegram", chat_id="42", chat_type="group", sender="ann", text=SECRET, wait=WAIT)
    at_rest(system)
    system.gateway.perform(
        "chat.send", {"sessionKey": SIDE, "message": f"so {SECRET}", "idempotencyKey": "x"}
    )
    gate.reached()

    with pytest.raises(
        ToolRefused, match="session:agent:side:main has copies of it and is still under way"
    ) as refused:
        system.erase(CHAT)

    assert (refused.value.code, bool(copies(system))) == ("busy", True)
    gate.open()
    wait_for_number(system, RunCompleted, 2)
    at_rest(system)
    system.erase(CHAT)
    assert copies(system) == []


@pytest.mark.clause("ERASE-1")
def test_a_copy_that_an_exchange_names_and_may_carry_on_keeps_all_from_being_erased(booth: Booth) -> None:
    """The exchange says whose run said it, and has no text itself."""

    def knows(turn: Turn) -> str | Reply:
        return f"as I heard, {SECRET}" if turn.step == "message" else Reply.skip()

    hold = {"session": {"agentToAgent": {"hold": "reply"}}}
    system = booth.start(
        {"main": main, "side": side, "ops": knows}, {"telegram": MemoryChannel()}, merged(hold)
    )
    system.inbound(channel="telegram", chat_id="42", chat_type="group", sender="ann", text=SECRET, wait=WAIT)
    at_rest(system)
    sent = {"sessionKey": OPS, "message": "where does it lie?", "timeoutSeconds": 0}
    run_id = str(dict(system.tools(SIDE).call("sessions_send", sent))["runId"])
    wait_for(system, ExchangeHeld)
    (exchange,) = system.service.flows.open_exchanges()

    with pytest.raises(ToolRefused, match=f"{exchange} has copies of it and is still under way") as refused:
        system.erase(CHAT)

    assert (refused.value.code, bool(copies(system))) == ("busy", True)
    system.release(run_id, action="drop")
    at_rest(system)
    system.erase(CHAT)
    assert copies(system) == []


def forked(system: SessionSystem) -> Path:
    """Fork a run of another session that repeats the words, and return the fork's file."""
    run: Any = asked(system, SIDE, f"say: {SECRET}")
    at_rest(system)
    fork = system.fork(run["runId"], at="end")
    fork.close()
    return Path(fork.log.path)


@pytest.mark.clause("ERASE-1", "FORGET-2")
def test_copies_in_forks_go_by_events_of_the_forks_own(booth: Booth) -> None:
    system = started(booth)
    file = forked(system)

    dry = system.erase(CHAT, dry_run=True)
    answer = system.erase(CHAT)

    assert copies(system) == []
    assert (dry["erased"], dry["counts"]) == (answer["erased"], answer["counts"])
    assert [(one["fork"], one["erased"] > 0) for one in answer["forks"]] == [(file.stem, True)]
    assert not any("fork" in said for said in answer["notReached"])
    beside = [path for path in file.parent.rglob("*") if path.is_file()]
    assert [path.name for path in beside if b"third bridge" in path.read_bytes()] == []
    with open_log(str(file), read_only=True) as log:
        verified = verify_log(log)
        assert (verified.ok, len(verified.erasures) > 0) == (True, True)


@pytest.mark.clause("FORGET-2")
def test_a_fork_that_somebody_writes_is_named(booth: Booth) -> None:
    system = started(booth)
    file = forked(system)

    with open_log(str(file)):
        answer = system.erase(CHAT)

    assert answer["forks"] == []
    (said,) = [said for said in answer["notReached"] if file.stem in said]
    assert "erase it there or delete it" in said


@pytest.mark.clause("ERASE-1")
def test_all_is_as_provable_as_before(booth: Booth) -> None:
    system = started(booth)
    for way in ("another session reads it by a tool", "another session sends it on"):
        WAYS[way].go(system)
    at_rest(system)
    system.erase(CHAT)
    with system.log.again() as log:  # type: ignore[attr-defined]
        assert verify_log(log).ok


@pytest.mark.clause("ERASE-1")
def test_an_import_has_no_copies_left_once_a_session_is_erased(booth: Booth, tmp_path: Path) -> None:
    """Its messages between sessions belong to no exchange of ours: provenance and text find them."""
    theirs = "agent:main:theirs"
    lines = [
        message("t-1", said("the answer is under the doormat of number 9"), 1),
        message("t-2", said("yes"), 2),
    ]
    quoted = message("m-1", said("They said: the answer is under the doormat of number 9. Well?"), 3)
    sent = message("m-2", said("short"), 4)
    sent["message"]["provenance"] = {
        "kind": "inter_session",
        "sourceSessionKey": theirs,
        "sourceTool": "sessions_send",
    }
    system = booth.start({"main": main})
    for name, key, some in (("s-1", theirs, lines), ("s-2", "agent:main:ours", [quoted, sent])):
        entries = {key: {"sessionId": name, "updatedAt": 1772442000009}}
        root = tmp_path / name
        system.import_openclaw(
            write_state(root, [header(name), *some], entries=entries, name=f"{name}.jsonl")
        )

    answer = system.erase(theirs)

    everything = " ".join(encode(one.event).decode() for one in system.log.all())
    assert "doormat" not in everything
    assert '"short"' not in everything
    assert "session:agent:main:ours" in answer["streams"]
