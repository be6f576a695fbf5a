"""What a person was told: each text for them, with who said it, for whom, why, and whether it arrived."""

from collections.abc import Iterator
from typing import Any

import pytest

from intersession import Channel, DeliveryRefused, MemoryChannel, Outbound, SessionSystem, ToolRefused, Turn
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_events.facts import DeliveryDone, DeliveryFailed, SpawnClosed
from support.any_log import Logs
from support.doors.command_line import ran
from support.running import SEES_ALL, merged, wait_for, wait_for_number

MAIN, GROUP = "agent:main:main", "agent:main:telegram:group:-100"
LINKED: dict[str, Any] = {"session": {"identityLinks": {"the-owner": ["telegram:ada", "mail:ada@x.example"]}}}


def main(turn: Turn) -> str:
    if turn.message == "Ask research.":
        turn.tools.call("sessions_spawn", {"agentId": "research", "task": "Is the dam open?"})
        return "It is open."
    return f"Noted: {turn.message}"


def research(turn: Turn) -> str:
    return "The dam is open, says research." if turn.step == "announce" else "Open until nine."


def refuses(outbound: Outbound) -> None:
    raise DeliveryRefused(f"mailbox of {outbound.to} is full")


@pytest.fixture(scope="module")
def store(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> str:
    return logs.at(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def people(store: str) -> Iterator[SessionSystem]:
    """Return a system where Ada asked main, wrote to a group behind Ben, and by mail, whose channel takes nothing."""
    agents: dict[str, Any] = {"main": main, "research": research}
    channels = {"telegram": MemoryChannel(), "mail": Channel(deliver=refuses)}
    config = merged(SEES_ALL, LINKED, {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}})
    with SessionSystem(store, agents=agents, channels=channels, config=config) as system:

        def says(chat: str, sender: str, text: str, **more: Any) -> None:
            given = {"channel": "telegram", "agent_id": "main", "wait": 20, **more}
            system.inbound(chat_id=chat, sender=sender, text=text, **given)

        group: dict[str, Any] = {"chat_type": "group"}
        says("-100", "ben", "Is somebody here?", **group)
        says("dm-1", "ada", "Ask research.", sender_name="Ada {Lovelace}")
        wait_for(system, SpawnClosed)
        says("-100", "ada", "I am.", **group)
        says("ada@x.example", "ada@x.example", "By mail.", channel="mail")
        says("dm-2", "ben", "For Ben.")
        wait_for_number(system, DeliveryFailed, 1)
        says("dm-1", "ada", "Once more.")
        system.gateway.call("chat.inject", {"sessionKey": MAIN, "message": "The tide is low."})
        wait_for_number(system, DeliveryDone, 6)
        yield system


def outlines(found: Any) -> list[tuple[str, str, bool | None]]:
    return [(one["text"], one["chat"], one["reached"]) for one in found["texts"]]


OWN = [
    ("The tide is low.", "direct", None),
    ("Noted: Once more.", "direct", True),
    ("Noted: I am.", "group", True),
    ("It is open.", "direct", True),
    ("Noted: Is somebody here?", "group", True),
]
ANNOUNCED = ("Status: success\nResult: The dam is open, says research.\nNotes: (none)", "direct", True)
MAIL = ("Noted: By mail.", "direct", False)


@pytest.mark.clause("ANS-1")
@pytest.mark.parametrize("name", ["ada", "ADA", "telegram:ada", "Ada {Lovelace}"])
def test_all_texts_for_a_person_are_found_by_any_name_of_theirs(people: SessionSystem, name: str) -> None:
    found = people.debug.told(name)

    rows = outlines(found)
    assert sorted(rows) == sorted([*OWN, ANNOUNCED])
    assert [one["position"] for one in found["texts"]] == sorted(
        (one["position"] for one in found["texts"]), reverse=True
    )
    assert {one["id"] for one in found["people"]} == {"ada"}
    assert {(one["chat"], one["route"]["to"]) for one in found["chats"]} == {
        ("direct", "dm-1"),
        ("group", "-100"),
    }
    assert not found["imported"]


@pytest.mark.clause("ANS-1")
def test_each_text_says_by_whom_for_whom_and_why(people: SessionSystem) -> None:
    texts = {one["text"]: one for one in people.debug.told("ada")["texts"]}

    own = texts["It is open."]
    assert (own["sessionKey"], own["agentId"], own["purpose"]) == (MAIN, "main", "auto_reply")
    assert own["answers"]["text"] == "Ask research."
    assert own["person"]["id"] == "ada"
    assert own["endedAt"] >= own["time"]
    assert "why" not in own
    announced = texts[ANNOUNCED[0]]
    assert announced["purpose"] == "spawn_announce"
    assert announced["flow"].startswith("spawn:")
    assert announced["why"]["text"] == "Ask research."
    assert announced["person"]["id"] == "ada"
    early = texts["Noted: Is somebody here?"]
    assert early["beforeFirstWords"]
    assert early["person"]["id"] == "ben"
    assert "beforeFirstWords" not in texts["Noted: I am."]
    put = texts["The tide is low."]
    assert (put["state"], put["purpose"], put["by"]) == ("history", "inject", "operator")


@pytest.mark.clause("ANS-1")
def test_a_text_that_did_not_arrive_is_marked_and_linked_names_are_one_person(
    people: SessionSystem, store: str
) -> None:
    whole = people.debug.told("the-owner")
    assert sorted(outlines(whole)) == sorted([*OWN, ANNOUNCED, MAIL])

    put, mail = people.debug.told("ada@x.example")["texts"]
    assert put["state"] == "history"
    assert (mail["state"], mail["reached"]) == ("failed", False)
    assert "mailbox of ada@x.example is full" in mail["error"]
    lines = ran("told", "ada@x.example", "--store", store).out.splitlines()
    marked = [line.split(" ")[0] for line in lines if "NOT TOLD" in line]
    assert marked == [f"#{mail['position']}"]


@pytest.mark.clause("ANS-1")
@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ({"words": "NOTED here"}, ["Noted: Is somebody here?"]),
        ({"words": "tide"}, ["The tide is low."]),
        ({"words": "nine"}, []),
        ({"from_": GROUP}, ["Noted: I am.", "Noted: Is somebody here?"]),
        ({"until": 0}, []),
    ],
)
def test_filters_of_what_a_person_was_told_hold_at_once(
    people: SessionSystem, given: dict[str, Any], texts: list[str]
) -> None:
    assert [one["text"] for one in people.debug.told("ada", **given)["texts"]] == texts


@pytest.mark.clause("ANS-1")
def test_pages_of_what_a_person_was_told_have_each_text_once(people: SessionSystem) -> None:
    whole = people.debug.told("the-owner")["texts"]
    page = people.debug.told("the-owner", limit=2)
    found = list(page["texts"])
    while page["cursor"] is not None:
        page = people.debug.told("the-owner", limit=2, cursor=page["cursor"])
        found += page["texts"]

    assert found == whole


@pytest.mark.clause("ANS-1", "VIS-6")
def test_a_name_that_nobody_has_is_refused_with_names_like_it(people: SessionSystem) -> None:
    with pytest.raises(ToolRefused, match=r"nobody called 'adda'.*ada"):
        people.debug.told("adda")
    with pytest.raises(ToolRefused, match="person: blank"):
        people.debug.told(" ")
    address = people.debug.told("dm-1", limit=1)
    assert (address["people"], address["chats"][0]["chat"]) == ([], "address")
    reader = people.debug.view.reader
    with pytest.raises(ToolRefused, match="only the operator"):
        Debugger(View(reader, reader.requester(MAIN))).told("ada")


@pytest.mark.clause("ANS-1")
def test_the_command_tells_the_same_as_the_method(people: SessionSystem, store: str) -> None:
    assert ran("told", "ada", "--store", store, "--json").json == people.debug.told("ada")
    told = ran("told", "telegram:ada", "--store", store).out

    for text, _, _ in [*OWN, ANNOUNCED]:
        assert text.partition("\n")[0] in told
    assert "put there by operator" in told
    assert "chats: telegram:dm-1 since #" in told
    assert "before their first words" in told
