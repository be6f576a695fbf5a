"""Models that give their answer in chunks: an OpenAI-compatible endpoint on a real socket, and pydantic-ai's own test models."""

import threading
from asyncio import CancelledError, Event, create_task, run, sleep, wait_for
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from httpx import Response
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from intersession import SessionSystem, StreamAnswer, openai_agent, pydantic_ai_agent
from intersession_actors.outside.agents.dialects.chat import ChatCompletions
from intersession_actors.outside.agents.dialects.streaming import streamed
from intersession_actors.outside.agents.endpoint_options import check_options
from intersession_events.facts import RunAborted, RunCompleted, RunFailed, RunInterrupted
from support.endpoint import Endpoint, an_endpoint, as_openai, calling
from support.running import WAIT, recorded


def an_agent(endpoint: Endpoint, **options: Any) -> Any:
    client = {"max_retries": 0}
    return openai_agent(
        model="tiny", base_url=endpoint.url, api_key="none", stream=True, client_options=client, **options
    )


def heard(system: SessionSystem, hears: Callable[[StreamAnswer], object] = bool) -> list[StreamAnswer]:
    told = system.inbound(channel="chat", chat_id="42", sender="ann", text="Who is there?")
    parts: list[StreamAnswer] = []
    for part in system.stream(str(told.get("runId"))):
        parts.append(part)
        hears(part)
    return parts


@pytest.mark.clause("STREAM-1")
def test_an_endpoint_is_asked_for_chunks_and_its_tool_calls_are_made() -> None:
    with an_endpoint() as endpoint:
        calls = {**calling("sessions_list", {"limit": 3}), "content": "Let me look."}
        endpoint.say = lambda asked: (
            calls if asked["messages"][-1]["role"] == "user" else {"content": "You are, and I am."}
        )
        shown = threading.Event()
        endpoint.between = lambda: len(endpoint.taken) == 1 or shown.wait(WAIT)

        def hears(part: StreamAnswer) -> None:
            if "look." in part.get("text", ""):
                shown.set()

        with SessionSystem(":memory:", agents={"main": an_agent(endpoint)}) as system:
            parts = heard(system, hears)
            (completed,) = recorded(system, RunCompleted)

    # The end may overtake the last pieces, which it replaces.
    assert "Let me look.\nYou are, and I am.".startswith(parts[-2].get("text", "nothing"))
    assert (parts[-1]["state"], parts[-1]["reply"]) == ("final", "You are, and I am.")
    assert completed.usage is not None
    assert (completed.usage.output, completed.model, completed.stop_reason) == (2, "served", "stop")
    assert [taken["stream_options"] for taken in endpoint.taken] == [{"include_usage": True}] * 2
    (call,) = endpoint.taken[1]["messages"][-2]["tool_calls"]
    assert call["function"] == calls["tool_calls"][0]["function"]


@pytest.mark.clause("STREAM-1")
@pytest.mark.parametrize("streams", [True, False])
def test_a_refusal_of_the_model_is_its_answer_and_an_endpoint_may_give_it_whole(streams: bool) -> None:
    with an_endpoint() as endpoint:
        endpoint.streams = streams
        endpoint.say = lambda _: {"content": None, "refusal": "I would rather not."}
        with SessionSystem(":memory:", agents={"main": an_agent(endpoint)}) as system:
            parts = heard(system)

    assert (parts[-1]["status"], parts[-1]["reply"]) == ("ok", "I would rather not.")


@pytest.mark.clause("STREAM-1", "STREAM-3")
def test_an_answer_that_breaks_off_fails_and_is_partial() -> None:
    with an_endpoint() as endpoint:
        endpoint.breaks_off = True
        with SessionSystem(":memory:", agents={"main": an_agent(endpoint)}) as system:
            parts = heard(system)
            (failed,) = recorded(system, RunFailed)

    assert "the endpoint's stream ended before the answer did" in parts[-1]["error"]
    assert failed.partial == "Yes."


@pytest.mark.clause("STREAM-1")
def test_a_filtered_answer_fails_as_without_chunks() -> None:
    with an_endpoint() as endpoint:
        endpoint.finish, endpoint.say = "content_filter", lambda _: {"content": None}
        with SessionSystem(":memory:", agents={"main": an_agent(endpoint)}) as system:
            end = heard(system)[-1]

    assert "gave no text: it ended with 'content_filter'" in end["error"]


@pytest.mark.clause("STREAM-1", "CTX-3")
def test_an_endpoint_that_refuses_a_request_as_too_long_is_asked_again() -> None:
    with (
        an_endpoint(400, as_openai) as endpoint,
        SessionSystem(":memory:", agents={"main": an_agent(endpoint)}) as system,
    ):
        for _ in range(8):
            system.inbound(channel="chat", chat_id="42", sender="ann", text="And? " * 40, wait=WAIT)
        interrupted, completed = recorded(system, RunInterrupted), recorded(system, RunCompleted)

    assert interrupted
    assert len(completed) == 8


@pytest.mark.clause("STREAM-3")
def test_an_abort_closes_the_endpoints_response() -> None:
    begun = threading.Event()
    with an_endpoint() as endpoint:
        endpoint.say = lambda _: {"content": "and on " * 100_000}
        endpoint.between = begun.set
        with SessionSystem(":memory:", agents={"main": an_agent(endpoint)}) as system:
            told = system.inbound(channel="chat", chat_id="42", sender="ann", text="Go on")
            run_id = str(told.get("runId"))
            assert begun.wait(WAIT)
            next(iter(system.stream(run_id)))
            system.abort(run_id)
            assert endpoint.hung_up.wait(WAIT)
            (aborted,) = recorded(system, RunAborted)

    assert (aborted.partial or "").startswith("and ")


class _SlowToClose:
    """A response whose connection takes a moment to close."""

    def __init__(self) -> None:
        self.response = Response(200, headers={"content-type": "text/event-stream"})
        self.is_closing, self.may_close, self.closed = Event(), Event(), Event()

    async def __aiter__(self) -> AsyncIterator[object]:
        yield await Event().wait()

    async def close(self) -> None:
        self.is_closing.set()
        await self.may_close.wait()
        self.closed.set()


@pytest.mark.clause("STREAM-3")
def test_a_response_is_closed_though_the_run_ends_once_more_meanwhile() -> None:
    async def played() -> None:
        given = _SlowToClose()

        async def ask(**_: object) -> _SlowToClose:
            return given

        turn: Any = None  # nothing is shown of an answer that does not come
        answering = create_task(streamed(ask, turn, ChatCompletions().chunks()))
        await sleep(0)
        await sleep(0)
        answering.cancel()
        await wait_for(given.is_closing.wait(), WAIT)
        answering.cancel()
        with pytest.raises(CancelledError):
            await answering
        given.may_close.set()
        await wait_for(given.closed.wait(), WAIT)

    run(played())


@pytest.mark.clause("STREAM-1")
def test_a_pydantic_ai_agent_shows_its_models_text() -> None:
    model = TestModel(call_tools=["sessions_list"], custom_output_text="One session, it seems.")
    with SessionSystem(":memory:", agents={"main": pydantic_ai_agent(Agent(model), stream=True)}) as system:
        while len(parts := heard(system)) < 2:
            pass  # the end has overtaken all pieces

    shown = parts[-2].get("text")  # the end may overtake the last pieces
    assert shown
    assert "One session, it seems.".startswith(shown)
    assert (parts[-1]["state"], parts[-1]["reply"]) == ("final", "One session, it seems.")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"stream": "yes"}, "stream: is 'yes', give True or False"),
        ({"stream_options": {}}, "stream_options: give stream=True"),
        ({"extra_body": {"stream": True}}, "extra_body.stream: give stream=True beside it"),
    ],
)
def test_what_is_no_stream_is_refused_by_name(options: dict[str, Any], what: str) -> None:
    with pytest.raises((TypeError, ValueError), match=what):
        check_options({"model": "m", "api_key": "none", **options})
