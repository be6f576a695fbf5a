"""The record of a judgement at a door says all of it that is not usual, and nothing that its event says."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.owners.streams.judgements import judgement_in, judgement_record, lists_in
from intersession_actors.owners.streams.records import record_in
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.config.session import SendMatch, SendRule
from intersession_actors.rules.errors import Judgement, Known, Question
from intersession_actors.rules.policy.access import SeeSession, Sight
from intersession_actors.rules.policy.judgements import KNOWN
from intersession_actors.rules.policy.sending import Speak, Speech
from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.facts import Limits
from support.paths import ROOT
from support.vocabulary import struct_of

RULES = (
    SendRule(action="deny"),
    SendRule(action="allow", match=SendMatch(channel="x", chat_type="group")),
    SendRule(action="deny", match=SendMatch(key_prefix="agent:main:", raw_key_prefix="agent:")),
)
OTHER: dict[type[Known], st.SearchStrategy[Known]] = {
    Speech: st.builds(Speech, rules=st.lists(st.sampled_from(RULES)).map(tuple))
}
"""What is known where not each value of its type can be."""
st.register_type_strategy(Limits, struct_of(Limits))  # hypothesis knows nothing of the bounds of its numbers
NOTHING: JsonObject = {}


def nowhere(_: str) -> JsonValue:
    return None


@pytest.mark.clause("C7")
@pytest.mark.parametrize("asked", KNOWN, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_judgement_is_read_back_as_it_was(asked: type[Question], data: st.DataObject) -> None:
    question: Question = data.draw(st.from_type(asked))
    known: Known = data.draw(OTHER.get(KNOWN[asked], st.from_type(KNOWN[asked])))
    judgement = Judgement(question, known)
    said = data.draw(
        st.sampled_from([NOTHING, {"requester": "agent:main:main", "key": None, "tool": "exec"}])
    )
    lists: dict[str, JsonValue] = {}
    for each in (question, known):
        lists |= lists_in(_without_none(msgspec.to_builtins(each)))

    record = record_in(judgement_record(judgement, said))

    assert judgement_in(record, said, lists.get) == judgement


def _without_none(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _without_none(inner) for name, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


@pytest.mark.clause("C7")
def test_what_is_usual_and_what_the_event_says_is_left_out() -> None:
    judgement = Judgement(SeeSession(key="agent:main:main"), Sight(requester="agent:ops:main", in_tree=True))

    bare = judgement_record(judgement, {"requester": "agent:ops:main", "key": "agent:main:main"})
    of_nobody = judgement_record(Judgement(SeeSession(), Sight()), {"requester": "a", "key": "b"})

    assert bare == '{"asked":"SeeSession","knew":{"inTree":true}}'
    assert of_nobody == '{"asked":"SeeSession","knew":{"requester":null},"with":{"key":null}}'


@pytest.mark.clause("C7")
def test_a_long_list_of_the_settings_is_found_again_among_the_configurations() -> None:
    rules = [{"action": "deny", "match": {"keyPrefix": f"agent:one-{number}:"}} for number in range(9)]
    config = load_config({"session": {"sendPolicy": {"rules": rules}}}).config
    loaded = lists_in(msgspec.json.decode(config.redacted()))
    judgement = Judgement(Speak(key="agent:a:main"), Speech(rules=config.session.send_policy.rules))

    record = judgement_record(judgement)

    assert "keyPrefix" not in record
    assert len(record) < 160
    assert judgement_in(record_in(record), {}, loaded.get) == judgement
    with pytest.raises(ValueError, match="no configuration"):
        judgement_in(record_in(record), {}, nowhere)


@pytest.mark.clause("C7")
def test_a_short_list_is_there_by_value() -> None:
    rules = (SendRule(action="deny", match=SendMatch(channel="x")),)

    record = judgement_record(Judgement(Speak(key="agent:a:main"), Speech(rules=rules)))

    assert '"rules":[{"action":"deny","match":{"channel":"x"}}]' in record


@pytest.mark.clause("C7")
def test_the_page_of_events_has_each_field_of_each_judgement() -> None:
    page = (ROOT / "docs" / "events.md").read_text()
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    for asked, known in KNOWN.items():
        fields = {*asked.__struct_encode_fields__, *known.__struct_encode_fields__}
        if asked.__name__ != "ListSessions":
            assert {name for name in fields if f"`{name}`" not in rows[asked.__name__]} == set()
