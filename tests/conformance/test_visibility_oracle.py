"""Visibility against an independent oracle, over every combination there is (X1)."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import TargetRefused, resolve_label, resolve_target
from intersession_actors.calls.tools.sessions_history import read_history
from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.rules.config.config import load_config
from support.oracle import (
    CONFIGURATIONS,
    FAMILY,
    FORMS,
    RELATIONS,
    SESSION_IDS,
    VISIBILITIES,
    configuration,
    label,
    oracle,
    tell,
    uuid,
)
from support.story import Story

OPERATIONS = ("list", "history", "send", "spawn", "status")


class House:
    """One log with two families, one of them sandboxed, read under any configuration."""

    def __init__(self) -> None:
        self.story = Story()
        self.config = load_config(None).config
        tell(self.story)
        self.reader = Reader(self.story.log, config=lambda: self.config, clock=self.story.clock)

    def configure(self, visibility: str, clamp: str, *, across: bool) -> None:
        self.config = load_config(configuration(visibility, clamp, across=across)).config

    def identifier(self, form: str, requester: str, key: str) -> str:
        match form:
            case "canonical":
                return key
            case "display":
                return self.reader.show(self.reader.parse(key), self.reader.requester(requester))
            case "session_id":
                return SESSION_IDS[key]
            case _:
                return label(key)

    def answer(self, operation: str, form: str, requester: str, key: str) -> str:
        """Ask the system, and say what it answered in the oracle's words."""
        who, given = self.reader.requester(requester), self.identifier(form, requester, key)
        if operation == "list":
            return "allowed" if key in self.listed(requester) else "denied"
        try:
            if form == "label":
                resolve_label(self.reader, who, given, None, operation)  # type: ignore[arg-type]
            elif operation == "history":
                read_history(self.reader, who, {"sessionKey": given})
            else:
                resolve_target(self.reader, who, given, operation)  # type: ignore[arg-type]
        except TargetRefused as refused:
            return refused.code
        return "allowed"

    def listed(self, requester: str) -> set[str]:
        answer, _summary = list_sessions(self.reader, self.reader.requester(requester), {"limit": 200})
        ids = {session_id: key for key, session_id in SESSION_IDS.items()}
        return {ids[row["sessionId"]] for row in answer["sessions"]}


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    made = House()
    yield made
    made.story.close()


@pytest.mark.clause("VIS-1", "VIS-2", "VIS-3", "VIS-5", "HIST-6", "X1")
@pytest.mark.parametrize(("visibility", "sandboxed", "clamp", "across"), CONFIGURATIONS)
def test_every_relation_operation_and_identifier_is_judged_as_the_oracle_says(
    house: House, visibility: str, sandboxed: bool, clamp: str, across: bool
) -> None:
    house.configure(visibility, clamp, across=across)
    family = FAMILY[sandboxed]
    differing: list[Any] = []
    for relation, operation, form in itertools.product(RELATIONS, OPERATIONS, FORMS):
        said = oracle(
            visibility=visibility,
            sandboxed=sandboxed,
            clamp=clamp,
            across=across,
            relation=relation,
            form=form,
        )
        expected = said if operation != "list" or said == "allowed" else "denied"
        if operation == "list" and form != FORMS[0]:
            continue  # nobody is named in it
        got = house.answer(operation, form, family["self"], family[relation])
        if got != expected:
            differing.append((relation, operation, form, expected, got))

    assert differing == []


@pytest.mark.clause("VIS-2")
@pytest.mark.parametrize("across", [False, True])
def test_each_level_contains_the_one_before_it(house: House, across: bool) -> None:
    seen: list[set[str]] = []
    for visibility in VISIBILITIES:
        house.configure(visibility, "all", across=across)
        seen.append(house.listed(FAMILY[False]["self"]))

    assert all(narrow < wide or (narrow == wide and not across) for narrow, wide in itertools.pairwise(seen))


@pytest.mark.clause("VIS-6")
def test_the_operator_sees_all(house: House) -> None:
    house.configure("self", "spawned", across=False)

    answer, _summary = list_sessions(house.reader, house.reader.requester(None), {"limit": 200})

    assert len(answer["sessions"]) == len(SESSION_IDS)


@pytest.mark.clause("HIST-6", "X2")
@pytest.mark.parametrize("operation", ["history", "send", "status"])
def test_absent_and_invisible_are_refused_in_the_same_words(house: House, operation: str) -> None:
    house.configure("tree", "spawned", across=False)
    requester = house.reader.requester(FAMILY[False]["self"])
    errors: set[str] = set()
    for given in (SESSION_IDS[FAMILY[False]["parent"]], uuid(999)):
        with pytest.raises(TargetRefused) as refused:
            resolve_target(house.reader, requester, given, operation)  # type: ignore[arg-type]
        errors.add(str(refused.value.as_result()).replace(given, "ID"))

    assert len(errors) == 1
