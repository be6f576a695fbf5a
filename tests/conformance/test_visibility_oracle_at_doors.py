"""Visibility against the oracle again, through the doors: a sample that has every pair of circumstances, and all of it by night (X1).

No tool names a session to spawn from or to look at the status of, and `sessions_history` takes no label. All else of the oracle's
combinations can be asked at a door.
"""

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from intersession import SessionSystem
from support.any_log import Logs
from support.doors.every import Door, open_doors
from support.doors.gateway_live import GATEWAY
from support.oracle import (
    CONFIGURATIONS,
    FAMILY,
    RELATIONS,
    SESSION_IDS,
    VISIBILITIES,
    configuration,
    label,
    oracle,
    tell,
)
from support.running import merged
from support.story import Story

NETWORK = ("HTTP", "WebSocket", "MCP over HTTP")
DOORS = (*NETWORK, "command line", "pykka")
ASKED = [
    *(("list", form) for form in ("canonical", "display", "session_id", "label")),
    *(("history", form) for form in ("canonical", "display", "session_id")),
    *(("send", form) for form in ("canonical", "display", "session_id", "label")),
]
"""What can be asked of a session, and by which of its names."""

EVERYWHERE = merged(
    GATEWAY,
    {
        "audit": {"access": "off"},
        "gateway": {"tools": {"allow": ["sessions_send"]}},
        # Who gets as far as the send policy may see its target, and nothing is written.
        "session": {"sendPolicy": {"default": "deny"}},
        "tools": {"subagents": {"tools": {"alsoAllow": ["group:sessions"]}}},
        "runs": {"shutdownGraceSeconds": 0},
    },
)


class Combination(NamedTuple):
    """One of 2,816."""

    visibility: str
    sandboxed: bool
    clamp: str
    across: bool
    relation: str
    asked: tuple[str, str]


ALL = [
    Combination(*configured, relation, asked)
    for configured in CONFIGURATIONS
    for relation, asked in itertools.product(RELATIONS, ASKED)
]


def pairs(one: Combination) -> set[tuple[int, Any, int, Any]]:
    return {(i, one[i], j, one[j]) for i, j in itertools.combinations(range(len(one)), 2)}


def sample(seed: int = 1) -> list[Combination]:
    """Return one combination for each relation and question, such that every pair of values is in some of them."""
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    configurations = CONFIGURATIONS[:]
    missing = set[tuple[int, Any, int, Any]]().union(*(pairs(one) for one in ALL))
    chosen: list[Combination] = []
    for relation, asked in itertools.product(RELATIONS, ASKED):
        chance.shuffle(configurations)
        candidates = [Combination(*configured, relation, asked) for configured in configurations]
        best = max(candidates, key=lambda one: len(pairs(one) & missing))
        missing -= pairs(best)
        chosen.append(best)
    return sorted(chosen)


class House:
    """A running system with two families, and its doors, under any configuration."""

    def __init__(self, system: SessionSystem, doors: dict[str, Door], folder: Path) -> None:
        self._system = system
        self._doors = doors
        self._folder = folder
        self._configured: tuple[Any, ...] = ()

    def ask(self, name: str, one: Combination) -> str:
        """Ask through a door, and say what it answered in the oracle's words."""
        self._configure(one)
        requester = FAMILY[one.sandboxed]["self"]
        key = FAMILY[one.sandboxed][one.relation]
        operation, form = one.asked
        given = self._name(form, requester, key)
        match operation:
            case "list":
                field = {"label": {"label": given}, "session_id": {}}.get(form, {"search": given})
                said = self._said(name, requester, "sessions_list", {"limit": 200, **field})
                listed = {row["sessionId"] for row in said["sessions"]}
                return "allowed" if SESSION_IDS[key] in listed else "denied"
            case "history":
                said = self._said(name, requester, "sessions_history", {"sessionKey": given})
                return str(said.get("code", "allowed"))
            case _:
                field = {"label": given} if form == "label" else {"sessionKey": given}
                args = {"message": "hi", "timeoutSeconds": 0, **field}
                code = self._said(name, requester, "sessions_send", args)["code"]
                return "allowed" if code in {"policy_denied", "self_send"} else str(code)

    def _said(self, name: str, requester: str, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._doors[name].ask(requester, tool, args))
        return said

    def _configure(self, one: Combination) -> None:
        wanted = (one.visibility, one.clamp, one.across)
        if wanted != self._configured:
            config = merged(EVERYWHERE, configuration(one.visibility, one.clamp, across=one.across))
            self._system.reload(config)
            (self._folder / "config.json5").write_text(json.dumps(config))
            self._configured = wanted

    def _name(self, form: str, requester: str, key: str) -> str:
        reader = self._system.service.reader
        match form:
            case "canonical":
                return key
            case "display":
                return reader.show(reader.parse(key), reader.requester(requester))
            case "session_id":
                return SESSION_IDS[key]
            case _:
                return label(key)


@pytest.fixture(scope="module")
def house(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("families")
    story = Story(logs.at(folder))
    tell(story)
    config = merged(EVERYWHERE, configuration("self", "spawned", across=False))
    with (
        SessionSystem(story.log, config=config, clock=story.clock) as system,
        open_doors(system, config, folder, DOORS) as doors,
    ):
        yield House(system, doors, folder)
    story.close()


def judged_otherwise(house: House, name: str, combinations: Sequence[Combination]) -> list[Any]:
    """Return what a door answers otherwise than the oracle."""
    differing: list[Any] = []
    for one in combinations:
        said = oracle(
            visibility=one.visibility,
            sandboxed=one.sandboxed,
            clamp=one.clamp,
            across=one.across,
            relation=one.relation,
            form=one.asked[1],
        )
        expected = "denied" if one.asked[0] == "list" and said != "allowed" else said
        got = house.ask(name, one)
        if got != expected:
            differing.append((one, expected, got))
    return differing


@pytest.mark.clause("X1")
def test_the_sample_has_every_pair_of_circumstances() -> None:
    every = set[Any]().union(*(pairs(one) for one in ALL))

    assert set[Any]().union(*(pairs(one) for one in sample())) == every
    assert len(sample()) == 88


@pytest.mark.clause("VIS-1", "VIS-2", "VIS-3", "VIS-5", "VIS-6", "HIST-6", "X1")
@pytest.mark.parametrize("name", DOORS)
def test_every_door_judges_as_the_oracle_says(house: House, name: str) -> None:
    # A command opens the log anew each time: every second one will do.
    asked = sample()[::2] if name == "command line" else sample()

    assert judged_otherwise(house, name, asked) == []


@pytest.mark.nightly
@pytest.mark.clause("VIS-1", "VIS-2", "VIS-3", "VIS-5", "VIS-6", "HIST-6", "X1")
@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_every_door_judges_every_combination_as_the_oracle_says(
    house: House, name: str, visibility: str
) -> None:
    combinations = [one for one in ALL if one.visibility == visibility]

    assert judged_otherwise(house, name, combinations) == []
