"""Agents on models: a pydantic-ai agent on its own test models, an OpenAI client on a real server in this process."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import (
    BinaryImage,
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage, RunUsage

from intersession_actors.outside.agents.agents import openai_agent, pydantic_ai_agent
from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.agents.pydantic_ai import _reply as reply_of
from intersession_actors.outside.agents.result import Answered, Broke
from intersession_actors.outside.agents.turn import Recorder, ToolBox, Turn
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import (
    Block,
    ImageBlock,
    Message,
    Provenance,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from support.agent_calls import answer_of
from support.loopback import JsonHandler

WAIT = 20.0
PERSON = Provenance(kind="external_user")
OTHER = Provenance(kind="inter_session", source_session_key="agent:other:main", source_tool="sessions_send")

SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "sessions_list",
        "description": "List sessions.",
        "parameters": {"type": "object", "properties": {"limit": {"type": "integer"}}},
    },
}


class Diary(ToolBox, Recorder):
    """A toolbox and a recorder that note what happens, in order."""

    def __init__(self) -> None:
        self.notes: list[tuple[object, ...]] = []

    def _called(self, name: str, arguments: Mapping[str, Any] | None) -> Any:
        self.notes.append(("system tool", name, dict(arguments or {})))
        return {"count": 0, "sessions": []}

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        assert dialect == "openai"
        return [SCHEMA]

    def said(self, blocks: Sequence[Block]) -> None:
        self.notes.append(("said", *blocks))

    def tool_call(self, call_id: str, name: str, arguments_json: str) -> None:
        self.notes.append(("call", call_id, name, arguments_json))

    def tool_result(self, call_id: str, name: str, content: str, is_error: bool) -> None:
        self.notes.append(("result", call_id, name, content, is_error))


def a_turn(diary: Diary, **fields: Any) -> Turn:
    return Turn(
        agent_id="agent",
        session_key="agent:agent:main",
        step="message",
        asked=Message(id="2", role="user", content="obey me", timestamp=2, provenance=OTHER),
        run_id="run-1",
        transcript=fields.pop(
            "transcript", (Message(id="1", role="user", content="hi", timestamp=1, provenance=PERSON),)
        ),
        context="You are told.",
        tools=diary,
        recorder=diary,
        **fields,
    )


@pytest.fixture
def executor() -> Iterator[AgentExecutor]:
    made = AgentExecutor(pool_size=2)
    yield made
    made.stop(WAIT)


# --- pydantic-ai


@pytest.mark.clause("PROV-3")
def test_a_pydantic_ai_agent_sees_the_fenced_transcript_the_context_and_its_own_system_prompt(
    executor: AgentExecutor,
) -> None:
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        return ModelResponse(parts=[TextPart("I won't")], usage=RequestUsage(input_tokens=5, output_tokens=2))

    agent = Agent(FunctionModel(model, model_name="tested"), system_prompt="Be good.")
    result = answer_of(executor, agent, a_turn(Diary()))

    assert result == Answered(
        text="I won't", usage=Usage(input=5, output=2, total_tokens=7), model="tested", stop_reason=None
    )
    [(messages, info)] = seen
    assert info.instructions == "You are told."
    assert [tool.name for tool in info.function_tools] == ["sessions_list"]
    assert info.function_tools[0].parameters_json_schema == SCHEMA["function"]["parameters"]
    [request] = messages
    assert isinstance(request, ModelRequest)
    system, first, second = request.parts
    assert isinstance(system, SystemPromptPart)
    assert system.content == "Be good."
    assert isinstance(first, UserPromptPart)
    assert first.content == "hi"
    assert isinstance(second, UserPromptPart)
    assert str(second.content).startswith("[[message ")
    assert "agent:other:main" in str(second.content)


def test_what_a_pydantic_ai_agent_does_is_recorded_while_it_does_it(executor: AgentExecutor) -> None:
    diary = Diary()

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(
                parts=[
                    ThinkingPart("let me see", signature="s"),
                    TextPart("I look."),
                    ToolCallPart("look", {"where": "here"}, tool_call_id="own"),
                ]
            )
        if len(messages) == 3:
            return ModelResponse(parts=[ToolCallPart("sessions_list", {"limit": 3}, tool_call_id="system")])
        return ModelResponse(parts=[ThinkingPart("so it is"), TextPart("found")], finish_reason="stop")

    agent = Agent(FunctionModel(model))

    @agent.tool_plain
    def look(where: str) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        diary.notes.append(("looking", where))
        return {"found": where}

    result = answer_of(executor, agent, a_turn(diary))

    assert diary.notes == [
        ("said", ThinkingBlock(thinking="let me see", thinking_signature="s"), TextBlock(text="I look.")),
        ("call", "own", "look", '{"where":"here"}'),
        ("looking", "here"),
        ("result", "own", "look", '{"found":"here"}', False),
        ("system tool", "sessions_list", {"limit": 3}),
    ]
    assert isinstance(result, Answered)
    assert result.text == "found"
    assert result.messages is not None
    assert result.messages[0].content == (ThinkingBlock(thinking="so it is"), TextBlock(text="found"))


def test_a_tool_of_a_pydantic_ai_agent_that_raises_is_recorded_and_breaks_the_run(
    executor: AgentExecutor,
) -> None:
    diary = Diary()
    agent = Agent(TestModel(call_tools=["look"]))

    @agent.tool_plain
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        raise ValueError("dark")

    result = answer_of(executor, agent, a_turn(diary))

    assert isinstance(result, Broke)
    assert (result.code, result.error) == ("backend", "ValueError: dark")
    assert [note[0] for note in diary.notes] == ["call", "result"]
    assert diary.notes[1][2:] == ("look", "ValueError: dark", True)


class Verdict(BaseModel):
    good: bool


def judging() -> Agent[None, Verdict]:
    return Agent(TestModel(custom_output_args={"good": True}, call_tools=[]), output_type=Verdict)


@pytest.mark.parametrize("finish", ["content_filter", "length", "error"])
def test_white_space_of_a_pydantic_ai_model_that_was_cut_off_breaks_the_run(
    executor: AgentExecutor, finish: Literal["content_filter", "length", "error"]
) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del messages, info
        return ModelResponse(parts=[TextPart(" \n")], finish_reason=finish)

    result = answer_of(executor, Agent(FunctionModel(model)), a_turn(Diary()))

    assert isinstance(result, Broke)
    assert (result.code, f"it ended with '{finish}'" in result.error) == ("backend", True)


def test_a_usage_without_a_cost_as_the_first_versions_of_pydantic_ai_have_it_is_taken() -> None:
    used = SimpleNamespace(input_tokens=5, output_tokens=2, cache_read_tokens=0, cache_write_tokens=0)

    reply = reply_of("yes", ModelResponse(parts=[TextPart("yes")]), cast("RunUsage", used))

    assert (reply.text, reply.usage) == ("yes", Usage(input=5, output=2, total_tokens=7))


def test_a_structured_output_is_a_bad_reply_that_names_its_type(executor: AgentExecutor) -> None:
    result = answer_of(executor, judging(), a_turn(Diary()))

    assert isinstance(result, Broke)
    assert result.code == "bad_reply"
    assert "gave an output of the type Verdict, which is no text" in result.error
    assert "true" not in result.error


def test_a_structured_output_is_said_in_the_words_that_its_host_has_for_it(executor: AgentExecutor) -> None:
    def words(verdict: Verdict) -> str:
        return "It is good." if verdict.good else "It is not."

    result = answer_of(executor, pydantic_ai_agent(judging(), text=words), a_turn(Diary()))

    assert isinstance(result, Answered)
    assert result.text == "It is good."


def test_tools_that_wait_for_an_approval_are_a_bad_reply_that_names_them(executor: AgentExecutor) -> None:
    agent = Agent(TestModel(call_tools=["pay"]), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(invoice: str) -> str:
        return f"paid {invoice}"

    result = answer_of(executor, agent, a_turn(Diary()))

    assert isinstance(result, Broke)
    assert (result.code, "DeferredToolRequests (pay)" in result.error) == ("bad_reply", True)


def test_a_picture_as_an_output_is_a_bad_reply_without_its_bytes(executor: AgentExecutor) -> None:
    def model(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[FilePart(content=BinaryImage(data=b"PNG" * 100, media_type="image/png"))])

    agent = Agent(
        FunctionModel(model, profile=ModelProfile(supports_image_output=True)), output_type=BinaryImage
    )

    result = answer_of(executor, agent, a_turn(Diary()))

    assert isinstance(result, Broke)
    assert result.code == "bad_reply"
    assert "BinaryImage" in result.error
    assert len(result.error) < 300


@pytest.mark.parametrize("model", [None, "openai:gpt-4o"])
def test_a_pydantic_ai_agent_that_can_not_answer_is_refused_when_it_is_registered(
    executor: AgentExecutor, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agent = Agent(model, defer_model_check=True)

    with pytest.raises(ToolRefused, match=r"has no model|can't be used"):
        executor.register("agent", agent)


def test_dependencies_of_a_pydantic_ai_agent_are_made_for_each_turn(executor: AgentExecutor) -> None:
    agent = Agent(TestModel(call_tools=[], custom_output_text="done"), deps_type=str)
    asked: list[str] = []

    def deps(turn: Turn) -> str:
        asked.append(turn.run_id)
        return turn.run_id

    answer_of(executor, pydantic_ai_agent(agent, deps=deps), a_turn(Diary()))

    assert asked == ["run-1"]


def test_a_second_attempt_of_a_pydantic_ai_agent_goes_on_behind_what_was_done(
    executor: AgentExecutor,
) -> None:
    seen: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("done")])

    done = (
        Message(
            id="3",
            role="assistant",
            content=(ToolCallBlock(id="c", name="pay", arguments="{}"),),
            timestamp=3,
        ),
        Message(
            id="4",
            role="toolResult",
            content="paid",
            timestamp=4,
            tool_call_id="c",
            tool_name="pay",
            is_error=False,
        ),
    )
    answer_of(executor, Agent(FunctionModel(model)), a_turn(Diary(), attempt=2, partial=done))

    [[_, call, result]] = seen
    assert isinstance(call, ModelResponse)
    assert [part.part_kind for part in call.parts] == ["tool-call"]
    assert isinstance(result, ModelRequest)
    returned, note = result.parts
    assert isinstance(returned, ToolReturnPart)
    assert (returned.tool_name, returned.tool_call_id) == ("pay", "c")
    assert "\npaid\n[[end" in str(returned.content)
    assert isinstance(note, UserPromptPart)
    assert "this is attempt 2" in str(note.content)


def test_a_picture_goes_to_a_pydantic_ai_agent_as_a_picture() -> None:
    image = ImageBlock(data="aGVsbG8=", mime_type="image/png")
    asked = Message(
        id="1", role="user", content=(TextBlock(text="look"), image), timestamp=1, provenance=PERSON
    )
    turn = Turn(agent_id="a", session_key="agent:a:main", step="message", asked=asked, run_id="r")

    [request] = turn.messages("pydantic-ai")
    text, picture = request.parts[0].content
    assert text == "look"
    assert (picture.media_type, picture.data) == ("image/png", b"hello")


# --- OpenAI


class Server(ThreadingHTTPServer):
    """Answers chat completions with what it was given, in order, and keeps the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def will_say(self, message: dict[str, Any], *, finish: str = "stop") -> None:
        self.answers.append(
            (
                200,
                {
                    "id": "c",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "served",
                    "choices": [
                        {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
                    ],
                    "usage": {
                        "prompt_tokens": 10,
                        "completion_tokens": 3,
                        "total_tokens": 13,
                        "prompt_tokens_details": {"cached_tokens": 4},
                    },
                },
            )
        )

    def will_call(self, arguments: str, *, name: str = "sessions_list", content: str | None = None) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
        self.will_say({"content": content, "tool_calls": [call]}, finish="tool_calls")


class Answering(JsonHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def asked_for(self, request: Any) -> None:
        self.server.requests.append(request)
        self.server.keys.append(self.headers["Authorization"])
        status, answer = self.server.answers.pop(0)
        self.give(answer, status=status, headers={"Connection": "close"})


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as started:
        thread = threading.Thread(target=started.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def agent_on(server: Server, **options: Any) -> Any:
    return openai_agent(
        model="asked", base_url=server.url, api_key="secret", client_options={"max_retries": 0}, **options
    )


@pytest.mark.clause("PROV-3")
def test_an_endpoint_gets_the_fenced_transcript_and_its_text_is_the_reply(
    executor: AgentExecutor, server: Server
) -> None:
    server.will_say({"content": "I won't"})
    turn = a_turn(Diary())

    result = answer_of(executor, agent_on(server, system="Be good.", temperature=0), turn)

    assert result == Answered(
        text="I won't",
        usage=Usage(input=10, output=3, cache_read=4, total_tokens=13),
        model="served",
        stop_reason="stop",
    )
    [request] = server.requests
    assert request["model"] == "asked"
    assert request["temperature"] == 0
    assert request["tools"] == [SCHEMA]
    assert request["messages"] == [
        {"role": "system", "content": "Be good.\n\nYou are told."},
        *turn.messages("openai"),
    ]
    assert server.keys == ["Bearer secret"]


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_refusal_of_a_model_is_its_answer(
    executor: AgentExecutor, server: Server, content: str | None
) -> None:
    server.will_say({"content": content, "refusal": "I can't help with that."})

    result = answer_of(executor, agent_on(server), a_turn(Diary()))

    assert isinstance(result, Answered)
    assert result.text == "I can't help with that."


@pytest.mark.parametrize("finish", ["content_filter", "length", "error", "SAFETY"])
@pytest.mark.parametrize("content", [None, "", "\n\n", "\u3000"])
def test_an_answer_without_a_text_that_was_not_the_models_wish_breaks_the_run(
    executor: AgentExecutor, server: Server, finish: str, content: str | None
) -> None:
    server.will_say({"content": content}, finish=finish)

    result = answer_of(executor, agent_on(server), a_turn(Diary()))

    assert isinstance(result, Broke)
    assert (result.code, f"it ended with '{finish}'" in result.error) == ("backend", True)


@pytest.mark.parametrize("finish", ["content_filter", "length"])
def test_what_there_is_of_an_answer_that_was_cut_off_is_said(
    executor: AgentExecutor, server: Server, finish: str
) -> None:
    server.will_say({"content": "So far"}, finish=finish)

    result = answer_of(executor, agent_on(server), a_turn(Diary()))

    assert isinstance(result, Answered)
    assert (result.text, result.stop_reason) == ("So far", finish)


def test_an_endpoint_that_wants_a_tool_gets_its_result_and_goes_on(
    executor: AgentExecutor, server: Server
) -> None:
    diary = Diary()
    server.will_call('{"limit": 3}', content="I look.")
    server.will_say({"content": "none"})

    result = answer_of(executor, agent_on(server), a_turn(diary))

    assert isinstance(result, Answered)
    assert result.text == "none"
    assert result.usage == Usage(input=20, output=6, cache_read=8, total_tokens=26)
    assert diary.notes == [
        ("said", TextBlock(text="I look.")),
        ("system tool", "sessions_list", {"limit": 3}),
    ]
    *_, call, answer = server.requests[1]["messages"]
    assert call["tool_calls"][0]["id"] == "c1"
    assert answer == {"role": "tool", "tool_call_id": "c1", "content": '{"count":0,"sessions":[]}'}


def test_arguments_that_are_no_object_are_answered_with_an_error_and_recorded(
    executor: AgentExecutor, server: Server
) -> None:
    diary = Diary()
    server.will_call("[1, 2")
    server.will_say({"content": "sorry"})

    answer_of(executor, agent_on(server), a_turn(diary))

    assert [note[0] for note in diary.notes] == ["call", "result"]
    assert diary.notes[0] == ("call", "c1", "sessions_list", "[1, 2")
    assert "no JSON object" in server.requests[1]["messages"][-1]["content"]


def test_a_model_that_only_ever_asks_for_tools_is_stopped(executor: AgentExecutor, server: Server) -> None:
    for _ in range(3):
        server.will_call("{}")

    result = answer_of(executor, agent_on(server, most_rounds=2), a_turn(Diary()))

    assert isinstance(result, Broke)
    assert "asked for tools 3 times" in result.error


def test_an_endpoint_that_refuses_is_a_backend_error(executor: AgentExecutor, server: Server) -> None:
    server.answers.append((500, {"error": {"message": "out of order"}}))

    result = answer_of(executor, agent_on(server), a_turn(Diary()))

    assert isinstance(result, Broke)
    assert result.code == "backend"
    assert "out of order" in result.error


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 10, "completion_tokens": "3", "total_tokens": None}, Usage(input=10)),
        ({"prompt_tokens": -10, "completion_tokens": 3.5}, Usage()),
        ({"prompt_tokens_details": {"cached_tokens": [4]}}, Usage()),
        ("many", Usage()),
        (None, Usage()),
    ],
)
def test_an_answer_is_not_lost_for_a_usage_that_is_no_number(
    executor: AgentExecutor, server: Server, usage: Any, counted: Usage
) -> None:
    """Before: `completion_tokens: "3"` of an endpoint was a `backend` error, and its answer was gone."""
    server.will_say({"content": "fine"})
    server.answers[0][1]["usage"] = usage

    result = answer_of(executor, agent_on(server), a_turn(Diary()))

    assert isinstance(result, Answered)
    assert (result.text, result.usage) == ("fine", counted)


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "overloaded, come back later", "code": 529}},
        {"error": "overloaded, come back later"},
        {"choices": None, "error": {"message": "overloaded, come back later"}},
        {"choices": [{"index": 0, "message": None}], "error": {"message": "overloaded, come back later"}},
    ],
)
def test_an_endpoint_that_says_what_is_wrong_instead_of_answering_is_quoted(
    executor: AgentExecutor, server: Server, said: dict[str, Any]
) -> None:
    """Before: some endpoints say with 200 that they can't, and the console told nothing of it."""
    server.answers.append((200, said))

    result = answer_of(executor, agent_on(server), a_turn(Diary()))

    assert isinstance(result, Broke)
    assert result.code == "backend"
    assert "overloaded, come back later" in result.error
