"""What an agent on an OpenAI-compatible endpoint sends, and how long it keeps its connection: a real server on HTTP/1.1."""

import asyncio
import gc
import inspect
import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from openai import NOT_GIVEN, AsyncOpenAI, DefaultAsyncHttpxClient
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses

from intersession_actors.calls.tools.registry import schemas
from intersession_actors.outside.agents.agents import openai_agent
from intersession_actors.outside.agents.endpoint_options import (
    DO_NOT_WORK,
    OF_A_CLIENT,
    OF_A_REQUEST,
    OF_A_RESPONSE,
)
from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.agents.result import Answered, Broke
from intersession_actors.outside.agents.turn import Reply, Turn
from intersession_events.facts import Message
from support.agent_calls import answer_of
from support.loopback import JsonHandler

WAIT = 20.0

ANSWER: dict[str, Any] = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "served",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
}


class Endpoint(ThreadingHTTPServer):
    """Answers every request alike, and counts connections. `refusals` is how many it refuses before that."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Talking)
        self.changed = threading.Condition()
        self.accepted = 0
        self.open = 0
        self.requests: list[dict[str, Any]] = []
        self.refusals = 0
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changed:
            self.accepted += 1
            self.open += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.open -= 1
            self.changed.notify_all()

    def is_asked(self) -> bool:
        """Wait until there was a request."""
        with self.changed:
            return self.changed.wait_for(lambda: bool(self.requests), timeout=WAIT)

    def is_left(self) -> bool:
        """Wait until the other side has closed every connection."""
        with self.changed:
            return self.changed.wait_for(lambda: self.open == 0, timeout=WAIT)


class Talking(JsonHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint  # pyright: ignore[reportIncompatibleVariableOverride]

    def asked_for(self, request: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.changed:
            self.server.requests.append({"path": self.path, "headers": headers, "body": request})
            self.server.changed.notify_all()
        self.server.go_on.wait(WAIT)
        refused = self.server.refusals > 0
        self.server.refusals -= refused
        status, answer = (503, {"error": {"message": "busy"}}) if refused else (200, ANSWER)
        self.give(answer, status=status, headers={"retry-after-ms": "1"})


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as started:
        thread = threading.Thread(target=started.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield started
        started.go_on.set()
        started.shutdown()
        thread.join()


@contextmanager
def an_executor() -> Generator[AgentExecutor]:
    made = AgentExecutor(pool_size=2)
    yield made
    made.stop(WAIT)


def a_turn(run_id: str = "run") -> Turn:
    asked = Message(id="1", role="user", content="Is it done?", timestamp=1)
    return Turn(agent_id="agent", session_key="agent:agent:main", step="message", asked=asked, run_id=run_id)


def an_agent(endpoint: Endpoint, *, client_options: dict[str, Any] | None = None, **options: Any) -> Any:
    given = {"max_retries": 0, **(client_options or {})}
    return openai_agent(
        model="asked", base_url=endpoint.url, api_key="secret", client_options=given, **options
    )


def test_all_turns_of_an_agent_go_over_one_connection_that_ends_with_its_loop(endpoint: Endpoint) -> None:
    """Before: a client was opened for each turn."""
    with an_executor() as executor:
        agent = an_agent(endpoint)
        answers = [answer_of(executor, agent, a_turn(f"run-{number}")) for number in range(3)]
        assert [answer.text for answer in answers if isinstance(answer, Answered)] == ["yes"] * 3
        assert (endpoint.accepted, endpoint.open) == (1, 1)

    assert endpoint.is_left()


def test_each_loop_has_a_connection_of_its_own_and_closes_it_when_it_ends(endpoint: Endpoint) -> None:
    agent = an_agent(endpoint)

    async def twice() -> list[str | None]:
        first: Reply = await agent(a_turn())
        second: Reply = await agent(a_turn())
        return [first.text, second.text]

    for loops in (1, 2):
        assert asyncio.run(twice()) == ["yes", "yes"]
        assert endpoint.accepted == loops
        assert endpoint.is_left()


@pytest.mark.ci
async def test_an_agent_that_nobody_has_any_more_leaves_no_connection(endpoint: Endpoint) -> None:
    agent = an_agent(endpoint)
    await agent(a_turn())
    assert endpoint.open == 1

    del agent
    gc.collect()
    assert await asyncio.to_thread(endpoint.is_left)


async def test_a_connection_of_the_hosts_own_is_left_to_the_host(endpoint: Endpoint) -> None:
    async with DefaultAsyncHttpxClient() as own:
        agent = an_agent(endpoint, client_options={"http_client": own})
        for _ in range(2):
            assert (await agent(a_turn())).text == "yes"
        del agent
        gc.collect()
        assert not own.is_closed
    assert endpoint.accepted == 1


async def test_options_go_into_the_request_as_they_are(endpoint: Endpoint) -> None:
    agent = an_agent(
        endpoint,
        reasoning_effort="low",
        temperature=0,
        seed=NOT_GIVEN,
        extra_body={"cache_prompt": True, "top_k": 3},
        extra_headers={"X-Desk": "front"},
        extra_query={"tier": "2"},
    )

    await agent(a_turn())

    [request] = endpoint.requests
    assert request["path"] == "/v1/chat/completions?tier=2"
    assert request["headers"]["x-desk"] == "front"
    assert request["headers"]["authorization"] == "Bearer secret"
    assert request["headers"]["content-type"] == "application/json"
    assert request["body"] == {
        "model": "asked",
        "messages": a_turn().messages("openai"),
        "reasoning_effort": "low",
        "temperature": 0,
        "top_k": 3,
        "cache_prompt": True,
    }


async def test_an_endpoint_that_is_busy_is_asked_again_as_often_as_its_client_may(endpoint: Endpoint) -> None:
    endpoint.refusals = 2

    answer = await an_agent(endpoint, client_options={"max_retries": 2})(a_turn())

    assert answer.text == "yes"
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("where", ["client", "request"])
def test_an_endpoint_that_is_slow_is_given_up(endpoint: Endpoint, where: str) -> None:
    endpoint.go_on.clear()
    options: dict[str, Any] = (
        {"client_options": {"timeout": 0.05}} if where == "client" else {"timeout": 0.05}
    )

    with an_executor() as executor:
        result = answer_of(executor, an_agent(endpoint, **options), a_turn())

    assert isinstance(result, Broke)
    assert "timed out" in result.error


async def test_a_model_that_has_not_answered_when_its_run_is_over_is_named(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: all that the console said was how long the run had had."""
    endpoint.go_on.clear()
    asked = asyncio.ensure_future(an_agent(endpoint)(a_turn("waiting")))
    assert await asyncio.to_thread(endpoint.is_asked)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    (line,) = [message for message in caplog.messages if message.startswith("model ")]
    assert line == f"model 'asked' at {endpoint.url} had not answered when its run was over: run=waiting"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tools": [{"type": "function"}]}, r"tools\[0\]: is a description of a tool, give the function"),
        ({"functions": []}, r"functions: give the functions themselves, as tools="),
        ({"n": 2}, r"n: there is one answer"),
        ({"messages": []}, r"messages: what the model is shown is the session"),
        ({"temprature": 0}, r"temprature: is no option .*is temperature meant.*extra_body=\{'temprature'"),
        ({"sytem": "Be good."}, r"sytem: is no option .*is system meant"),
        ({"extra_body": {"tools": [1]}}, r"extra_body.tools: give the functions themselves"),
        ({"client_options": {"max_retrys": 2}}, r"client_options.max_retrys: is no option .*max_retries"),
    ],
    ids=str,
)
def test_an_option_that_does_nothing_here_is_refused_when_the_agent_is_made(
    endpoint: Endpoint, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        an_agent(endpoint, **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": " "}, "model: is ' ', give the name"),
        ({"most_rounds": 0}, "most_rounds: is 0"),
        ({"context_tokens": -1}, "context_tokens: is -1"),
        ({"max_tokens": "many"}, "max_tokens: is 'many'"),
    ],
    ids=str,
)
def test_a_value_that_an_option_can_not_have_is_refused_when_the_agent_is_made(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        openai_agent(**{"model": "asked", "api_key": "secret", **options})


def test_a_key_that_is_missing_is_told_when_the_agent_is_made() -> None:
    """In a process of its own: the variable may be set in this one."""
    made = "from intersession import openai_agent; openai_agent(model='gpt-4o')"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}

    ended = subprocess.run(
        [sys.executable, "-c", made], env=clean, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert "api_key: is missing, and OPENAI_API_KEY is not set" in ended.stderr


def test_the_options_that_work_are_those_of_the_library() -> None:
    of_a_request = {*inspect.signature(AsyncCompletions.create).parameters} - {"self", "model"}
    of_a_response = {*inspect.signature(AsyncResponses.create).parameters} - {"self", "model"}
    of_a_client = {*inspect.signature(AsyncOpenAI.__init__).parameters} - {"self"}

    assert of_a_request <= OF_A_REQUEST | DO_NOT_WORK.keys(), "say of an option that is new whether it works"
    assert of_a_response <= OF_A_RESPONSE | DO_NOT_WORK.keys(), (
        "say of an option that is new whether it works"
    )
    assert of_a_request | of_a_response | {"mcp_servers"} == (
        OF_A_REQUEST | OF_A_RESPONSE | DO_NOT_WORK.keys()
    )
    assert of_a_client == OF_A_CLIENT


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "mcp", "json-schema"])
def test_whoever_asks_for_schemas_gets_objects_of_their_own(dialect: str) -> None:
    """They are made once, so that what an agent does to its own must not reach another's (finding E10)."""
    first = schemas(["sessions_send"], dialect)
    untouched = json.dumps(first)
    first[0].clear()

    assert json.dumps(schemas(["sessions_send"], dialect)) == untouched
