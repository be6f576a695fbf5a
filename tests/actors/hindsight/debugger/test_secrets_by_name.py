"""A secret that is one by the name that it stands under: no verb shows it to a stranger, in whatever form it shows a call."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.hindsight.debugger.view import View
from support.any_log import Logs
from support.running import SEES_ALL, merged

MAIN, DESK = "agent:main:main", "agent:desk:main"
LISTED = {"agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]}}
SECRETS = [f"hunter{number}zebra" for number in range(6)]
LOGIN = {
    "password": SECRETS[0],
    "nested": {"api_key": SECRETS[1], "headers": {"Authorization": f"Basic {SECRETS[2]}"}},
    "list": [{"token": SECRETS[3]}],
    "env": [f"DB_PASSWORD={SECRETS[4]}"],
}


def logs_in(turn: Turn) -> str:
    if turn.agent_id == "main" and turn.message == "log in":
        call = turn.record_call("login", LOGIN)
        turn.record_result(call, "login", {"secret": SECRETS[5], "ok": True})
    return "done"


@pytest.fixture(scope="module")
def told(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SessionSystem, str]]:
    path: Path = tmp_path_factory.mktemp("names")
    with SessionSystem(
        logs.at(path), agents={"main": logs_in, "desk": logs_in}, config=merged(SEES_ALL, LISTED)
    ) as system:
        for agent, text in (("main", "log in"), ("desk", "hello"), ("main", "and now?")):
            run = system.inbound(channel="x", chat_id="1", text=text, sender="ann", agent_id=agent, wait=20)[
                "runId"
            ]
        yield system, run


def shown_in(answer: object) -> list[str]:
    text = json.dumps(answer, default=str)
    return [secret for secret in SECRETS if secret in text]


def asked(run: str, first: str, at: int) -> dict[str, list[dict[str, Any]]]:
    """Return how each verb is asked for what has to do with the login."""
    return {
        "lens": [{"run": run, "dialect": one} for one in ("prompt", "openai", "anthropic", "json")]
        + [{"run": run, "than": first}],
        "origin": [{"words": "login"}, {"words": "done", "seen": True}],
        "search": [{"words": "login"}, {"words": "done"}],
        "show": [{"run": first}],
        "state": [{}, {"from": 0}],
        "why": [{"of": str(at)}, {"of": str(at), "forward": True}],
        "diff": [{"a": first, "b": run, "exact": True}],
        "runs": [{"smell": True}],
        "messages": [{"why": True, "delivered": True}],
        "deliveries": [{}],
        "calls": [{}, {"failed": True}],
        "events": [{"limit": 1000}],
        "smells": [{}],
        "usage": [{"by": ["session", "model"]}],
    }


@pytest.mark.clause("HIST-5", "LENS-1", "FIND-1", "ORIGIN-1", "X2")
def test_no_verb_shows_a_stranger_a_secret_that_is_one_by_its_name(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    reader = system.debug.view.reader
    stranger = Debugger(View(reader, reader.requester(DESK)))
    first = system.debug.runs(session=MAIN)["runs"][-1]["id"]
    questions = asked(run, first, at=system.log.head() - 1)
    assert set(questions) == set(VERBS) - {
        "access",
        "erasures",
        "hosts",
        "imports",
        "replay",
        "told",
    }  # the operator's alone

    assert shown_in(system.debug.lens(run, dialect="anthropic")) == SECRETS
    for verb, given in questions.items():
        for arguments in given:
            assert shown_in(stranger.call(verb, arguments)) == [], (verb, arguments)


@pytest.mark.clause("FIND-1", "ORIGIN-1", "X2")
@pytest.mark.parametrize("secret", SECRETS)
def test_nobody_finds_by_its_words_what_they_read_hidden(
    told: tuple[SessionSystem, str], secret: str
) -> None:
    system, _ = told
    reader = system.debug.view.reader
    stranger = Debugger(View(reader, reader.requester(DESK)))

    assert system.debug.origin(secret)["first"] is not None
    assert system.debug.search(secret)["hits"] != []
    assert stranger.origin(secret) == stranger.origin("hunter9zebra")
    assert stranger.search(secret) == stranger.search("hunter9zebra")
