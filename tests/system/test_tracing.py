"""Spans of OpenTelemetry, seen by the SDK's in-memory exporter: names, attributes, parents and links, and no words."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from intersession import DeliveryRefused, MemoryChannel, Outbound, Reply, SessionSystem, Turn, Usage
from intersession_events.facts import (
    DeliveryDone,
    DeliveryFailed,
    ExchangeAccepted,
    ExchangeClosed,
    SpawnClosed,
)
from intersession_events.log.recorded import Recorded, parts_in
from intersession_events.stores.library.frontier import Frontier
from support.running import QUIET, SEES_ALL, WAIT, merged, wait_for, wait_for_number

MAIN = "agent:main:main"


class Traced:
    """A system whose spans are kept here."""

    def __init__(self, log_url: str, agents: dict[str, Any], channel: Any = None, **config: Any) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.system = SessionSystem(
            log_url,
            agents=agents,
            channels={"telegram": channel or MemoryChannel()},
            config=merged(SEES_ALL, QUIET, config),
            tracer_provider=provider,
        )

    def spans(self, name: str) -> Sequence[ReadableSpan]:
        """Stop, and return the spans of a name in the order of their beginning."""
        self.system.close()
        found = [span for span in self.exporter.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)


def asks(turn: Turn) -> str:
    if turn.message == "ask ops":
        turn.tools.call("sessions_send", {"agentId": "ops", "message": "how many?", "timeoutSeconds": WAIT})
    return "done"


def answers(turn: Turn) -> Reply:
    return Reply(f"seven for {turn.message}", usage=Usage(input=11, output=3), model="m-1")


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    return span.get_span_context().span_id  # type: ignore[union-attr]


def test_a_send_is_one_trace_from_the_asking_run_to_the_asked_one(log_url: str) -> None:
    traced = Traced(log_url, {"main": asks, "ops": answers})
    traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text="ask ops", wait=WAIT)
    wait_for(traced.system, ExchangeClosed)
    wait_for(traced.system, DeliveryDone)

    (asking,), (asked,) = traced.spans("invoke_agent main"), traced.spans("invoke_agent ops")
    (tool,), (exchange,), (delivery,) = (
        traced.spans(name) for name in ("execute_tool sessions_send", "exchange", "deliver telegram")
    )

    assert parent_of(asking) is None
    assert parent_of(tool) == id_of(asking)
    assert parent_of(exchange) == id_of(asking)
    assert parent_of(asked) == id_of(exchange)
    assert parent_of(delivery) == id_of(asking)
    attributes = dict(asked.attributes or {})
    assert attributes["gen_ai.operation.name"] == "invoke_agent"
    assert attributes["gen_ai.agent.id"] == "ops"
    assert attributes["gen_ai.response.model"] == "m-1"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (11, 3)
    assert attributes["gen_ai.conversation.id"]
    assert dict(tool.attributes or {})["gen_ai.tool.name"] == "sessions_send"
    assert dict(exchange.attributes or {})["intersession.requester"] == MAIN
    assert dict(delivery.attributes or {})["intersession.outcome"] == "done"
    assert traced.spans("append")


@pytest.mark.parametrize(("contents", "shown"), [(False, False), (True, True)])
def test_words_are_in_spans_only_where_a_setting_asks_for_them(
    log_url: str, *, contents: bool, shown: bool
) -> None:
    traced = Traced(log_url, {"main": asks, "ops": answers}, tracing={"contents": contents})
    traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text="ask ops", wait=WAIT)
    wait_for(traced.system, ExchangeClosed)
    traced.system.close()

    told = " ".join(f"{span.name} {span.attributes}" for span in traced.exporter.get_finished_spans())
    assert ("how many?" in told) == shown
    assert ("seven for" in told) == shown


@pytest.mark.clause("HIST-5")
def test_spans_with_words_have_no_secrets(log_url: str) -> None:
    secrets = (
        "Nest5Qx8Wc2Vb6Er",
        "sk-proj-Re1Su2Lt3Eq4Wx5Yz6Ab7Cd8Ef9",
        "Repl2Qa4Ws6Ed8Rf",
        "Err0r6Bn4Mv2Cx8Z",
    )

    def talkative(turn: Turn) -> str:
        if turn.message == "fail":
            raise RuntimeError(f"refused, password={secrets[3]}")
        call = turn.record_call("login", {"db": {"password": {"value": secrets[0]}}, "user": "quokka"})
        turn.record_result(call, "login", f"your key is {secrets[1]}, quokka")
        return f"quokka, password: {secrets[2]}"

    traced = Traced(log_url, {"main": talkative}, tracing={"contents": True})
    for text in ("hi", "fail"):
        traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text=text, wait=WAIT)
    traced.system.close()

    spans = traced.exporter.get_finished_spans()
    told = " ".join(f"{span.name} {span.attributes} {span.status.description}" for span in spans)
    assert [told.count(word) for word in ("quokka", "refused")] == [3, 1], told
    assert [secret for secret in secrets if secret in told] == []


def test_a_failed_run_is_a_span_in_error(log_url: str) -> None:
    def broken(_turn: Turn) -> str:
        raise ValueError("no model")

    traced = Traced(log_url, {"main": broken})
    traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text="hi", wait=WAIT)

    (span,) = traced.spans("invoke_agent main")
    assert span.status.status_code is trace.StatusCode.ERROR
    assert dict(span.attributes or {})["error.type"] == "backend"


def test_a_text_that_is_tried_once_more_names_its_channel(log_url: str) -> None:
    def refuses(_: Outbound) -> str:
        raise DeliveryRefused("the chat is closed")

    traced = Traced(log_url, {"main": lambda _: "yes"}, refuses)
    traced.system.inbound(channel="telegram", chat_id="ada", sender="ada", text="hi", wait=WAIT)
    wait_for_number(traced.system, DeliveryFailed, 1)
    assert traced.system.gateway.call("deliveries.retry", {"failed": True})["ok"]
    wait_for_number(traced.system, DeliveryFailed, 2)

    assert len(traced.spans("deliver telegram")) == 2


def test_a_sub_agent_is_part_of_the_spawn_that_its_requester_made(log_url: str) -> None:
    def spawns(turn: Turn) -> str:
        if turn.message == "count":
            turn.tools.call("sessions_spawn", {"task": "count to seven"})
        return "done"

    traced = Traced(log_url, {"main": spawns})
    traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text="count", wait=WAIT)
    wait_for(traced.system, SpawnClosed)

    (spawn,) = traced.spans("spawn")
    runs = traced.spans("invoke_agent main")
    assert parent_of(spawn) == id_of(runs[0])
    assert id_of(spawn) in {parent_of(run) for run in runs[1:]}


def test_an_agent_that_is_called_at_once_is_part_of_the_exchange_all_the_same(
    log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its span began a trace of its own, where the agent was faster than the thread that tells of commits."""
    is_called, tell = threading.Event(), Frontier.tell_others

    def late(self: Frontier, recorded: Sequence[Recorded]) -> None:
        if any(isinstance(one.event, ExchangeAccepted) for one in parts_in(recorded)):
            assert is_called.wait(WAIT)
        tell(self, recorded)

    def called(turn: Turn) -> Reply:
        is_called.set()
        return answers(turn)

    monkeypatch.setattr(Frontier, "tell_others", late)
    traced = Traced(log_url, {"main": asks, "ops": called})
    traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text="ask ops", wait=WAIT)
    wait_for(traced.system, ExchangeClosed)

    (asked,), (exchange,) = traced.spans("invoke_agent ops"), traced.spans("exchange")
    assert parent_of(asked) == id_of(exchange)


async def test_what_an_agent_does_is_part_of_its_run(log_url: str) -> None:
    seen: list[int] = []

    async def looks(_turn: Turn) -> str:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "done"

    def looks_too(_turn: Turn) -> str:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "done"

    traced = Traced(log_url, {"main": looks, "ops": looks_too})
    for agent in ("main", "ops"):
        await traced.system.ainbound(
            channel="telegram", chat_id="1", sender="ann", text="hi", wait=WAIT, agent_id=agent
        )
    await traced.system.aclose()

    spans = [id_of(traced.spans(f"invoke_agent {agent}")[0]) for agent in ("main", "ops")]
    assert seen == spans


class Raises(SpanProcessor):
    """A processor of a host's that is broken."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        del parent_context
        raise RuntimeError(f"no place for {span.name}")


class NoTracer:
    def get_tracer(self, *_: Any) -> Any:
        raise RuntimeError("no place for spans")


def test_a_provider_that_fails_keeps_no_agent_from_answering_and_is_told_once(
    log_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: a broken processor of the host's made each run fail, and each commit print a traceback."""
    broken = TracerProvider()
    broken.add_span_processor(Raises())
    providers: list[Any] = [broken, NoTracer()]
    for provider in providers:
        caplog.clear()
        with SessionSystem(log_url, agents={"main": answers}, tracer_provider=provider) as system:
            said = [
                system.inbound(channel="x", chat_id="1", text=text, sender="p", wait=WAIT) for text in "ab"
            ]
        assert [answer["reply"] for answer in said] == ["seven for a", "seven for b"]
        told = [line.getMessage() for line in caplog.records if "span" in line.getMessage() or line.exc_info]
        assert len(told) == 1
        assert "no place for" in told[0]


def test_without_a_provider_or_with_tracing_off_no_span_is_made(log_url: str) -> None:
    traced = Traced(log_url, {"main": asks}, tracing={"enabled": False})
    traced.system.inbound(channel="telegram", chat_id="1", sender="ann", text="hi", wait=WAIT)
    traced.system.close()

    assert traced.exporter.get_finished_spans() == ()
