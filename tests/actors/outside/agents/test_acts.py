"""What a worker sends of a turn: acts, and the result of the agent."""

import msgspec
import pytest

from intersession_actors.outside.agents.acts import READ_ACT, CallTool, RecordCalls
from intersession_actors.outside.agents.result import Answered, Broke, received_result, sent_result
from intersession_events.facts import ToolCallBlock, Usage


@pytest.mark.parametrize(
    "act",
    [
        CallTool(name="sessions_list", args={"limit": 1}, number=2, place=3),
        RecordCalls(calls=(ToolCallBlock(id="c", name="look", arguments="{}"),), number=1),
    ],
)
def test_an_act_is_read_as_it_was_sent(act: CallTool | RecordCalls) -> None:
    assert READ_ACT.decode(msgspec.json.encode(act)) == act


@pytest.mark.parametrize(
    "act",
    [{}, {"type": "deed"}, {"type": "call", "name": "x", "args": {}, "number": 0}, {"type": "has"}],
)
def test_anything_else_is_no_act(act: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        READ_ACT.decode(msgspec.json.encode(act))


@pytest.mark.parametrize(
    "result",
    [
        Answered(text=None),
        Answered(text="hello", usage=Usage(input=3), notes=("a note",)),
        Broke(code="backend", error="refused", traceback="…", too_long=True),
    ],
)
def test_a_result_is_read_as_it_was_sent(result: Answered | Broke) -> None:
    assert received_result(sent_result(result)) == result


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"broke": {}}', b'{"answered": 1}'])
def test_anything_else_is_no_result(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"neither|truncated|[Ee]xpected|required"):
        received_result(content)
