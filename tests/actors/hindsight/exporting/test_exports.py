"""What other tools read of a log: the real readers of each form read it, and it says what the log says (OUT-1 to OUT-5)."""

import base64
import io
import json
import re
import stat
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from intersession import DeliveryRefused, Outbound, Reply, SessionSystem, ToolRefused, Turn, Usage
from intersession_actors.hindsight.exporting.export import FORMS, ExportMade
from intersession_events.basics.errors import ExportFailed
from intersession_events.facts import DeliveryDone, ExchangeClosed
from support.paths import DOCS
from support.running import QUIET, SEES_ALL, WAIT, merged, wait_for, wait_until_done

MAIN = "agent:main:main"
SECRET = "sk-proj-Re1Su2Lt3Eq4Wx5Yz6Ab7Cd8Ef9"
LINES = ("otlp", "cloudevents")


def main(turn: Turn) -> Reply:
    if turn.message == "fail":
        raise RuntimeError("no model")
    if turn.message == "ask ops":
        turn.tools.call("sessions_send", {"agentId": "ops", "message": "how many?", "timeoutSeconds": WAIT})
    call = turn.record_call("login", {"key": SECRET})
    turn.record_result(call, "login", "in")
    return Reply("seven", usage=Usage(input=11, output=3, cost_micros=5), model="openai/m-1")


def deliver(sent: Outbound) -> str:
    if sent.to == "bo":
        raise DeliveryRefused("the chat is closed")
    return "r1"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def system(log_url: str, spans: InMemorySpanExporter) -> Iterator[SessionSystem]:
    """A person's message that leads to an exchange, one that fails, and a text that is refused."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    config = merged(SEES_ALL, QUIET, {"tracing": {"contents": True}, "session": {"dmScope": "main"}})
    with SessionSystem(
        log_url,
        agents={"main": main, "ops": lambda _: Reply("seven boats")},
        channels={"telegram": deliver},
        config=config,
        tracer_provider=provider,
    ) as running:
        running.inbound(channel="telegram", chat_id="ada", sender="ada", text="ask ops", wait=WAIT)
        wait_for(running, ExchangeClosed)
        wait_for(running, DeliveryDone)
        running.inbound(channel="telegram", chat_id="ada", sender="ada", text="fail", wait=WAIT)
        running.inbound(channel="telegram", chat_id="bo", sender="bo", text="hi", wait=WAIT)
        wait_until_done(running)  # one chat does not wait for the other
        yield running


def exported(system: SessionSystem, out: Path, to: Any, **asked: Any) -> tuple[ExportMade, list[Any]]:
    made = system.debug.export(out, to, **asked)
    return made, [json.loads(line) for line in out.read_text().splitlines()] if to in LINES else []


def otlp_spans(lines: list[Any]) -> list[Any]:
    return [
        span for line in lines for each in line["resourceSpans"] for span in each["scopeSpans"][0]["spans"]
    ]


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def attributes(span: Any) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


@pytest.mark.clause("OUT-2")
def test_exported_spans_are_those_that_tracing_makes_with_the_same_parents(
    system: SessionSystem, spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    made, lines = exported(system, tmp_path / "spans.json", "otlp", raw=True)
    system.close()

    live = [span for span in spans.get_finished_spans() if span.name != "append"]
    names = {id_of(span): span.name for span in live}
    found = otlp_spans(lines)
    own = {span["spanId"]: span["name"] for span in found}
    assert made.counts == {"spans": len(live), "open": 0}
    assert sorted(
        (span["name"], own.get(span.get("parentSpanId")), span["startTimeUnixNano"], sorted(attributes(span)))
        for span in found
    ) == sorted(
        (
            span.name,
            None if span.parent is None else names.get(span.parent.span_id),
            str(span.start_time),
            sorted(span.attributes or {}),
        )
        for span in live
    )
    assert {span["status"].get("message") for span in found if span["status"]} >= {
        "DeliveryRefused: the chat is closed"
    }


@pytest.mark.ci
@pytest.mark.clause("OUT-2")
def test_spans_are_read_by_the_protocols_own_classes(system: SessionSystem, tmp_path: Path) -> None:
    services = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="install opentelemetry-proto"
    )
    parse = pytest.importorskip("google.protobuf.json_format").Parse

    _, lines = exported(system, tmp_path / "spans.json", "otlp")

    for span in otlp_spans(lines):
        for one in (span, *span["links"]):
            # Protobuf's JSON has bytes in base64, OTLP's has ids in hex.
            for name in {"traceId", "spanId", "parentSpanId"} & one.keys():
                one[name] = base64.b64encode(bytes.fromhex(one[name])).decode()
    request = parse(json.dumps(lines[0]), services.ExportTraceServiceRequest())
    read = request.resource_spans[0].scope_spans[0].spans
    assert {(len(span.trace_id), len(span.span_id)) for span in read} == {(16, 8)}
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in read)


@pytest.mark.ci
@pytest.mark.clause("OUT-3")
def test_each_event_is_a_cloud_event(system: SessionSystem, tmp_path: Path) -> None:
    formats = pytest.importorskip("cloudevents.core.formats.json", reason="install cloudevents")

    made, lines = exported(system, tmp_path / "events.json", "cloudevents")

    recorded = list(system.log.all(to=made.position))
    read = [formats.JSONFormat().read(None, json.dumps(line)) for line in lines]
    assert made.counts == {"events": len(recorded)}
    assert [
        (each.get_id(), each.get_subject(), each.get_extension("position"), each.get_extension("hash"))
        for each in read
    ] == [(each.id, each.stream, each.position, each.hash) for each in recorded]
    assert {each.get_source() for each in read} == {f"urn:intersession:log:{system.log.log_id}"}
    assert all(each.get_type().startswith("intersession.") and each.get_time() is not None for each in read)


@pytest.mark.ci
@pytest.mark.clause("OUT-4")
@pytest.mark.parametrize("to", ["openai", "responses", "anthropic"])
def test_a_session_is_in_the_form_that_the_servers_libraries_take(
    system: SessionSystem, tmp_path: Path, to: Any
) -> None:
    pydantic = pytest.importorskip("pydantic")
    types = {
        "openai": ("openai.types.chat", "ChatCompletionMessageParam", "messages"),
        "responses": ("openai.types.responses", "ResponseInputItemParam", "input"),
        "anthropic": ("anthropic.types", "MessageParam", "messages"),
    }
    module, name, field = types[to]
    param = getattr(pytest.importorskip(module), name)
    out = tmp_path / "body.json"

    system.debug.export(out, to, session="agent:ops:main")

    body = json.loads(out.read_text())
    last = system.debug.call("runs", {"session": "agent:ops:main", "limit": 1})["runs"][0]["id"]
    given = system.debug.lens(last, dialect=to, all=True)
    system_text = body.get("instructions") or body.get("system") or body["messages"][0]["content"]
    shown = body[field][1:] if to == "openai" else body[field]
    for message in body[field]:
        _walk(pydantic.TypeAdapter(param).validate_python(message))
    assert body["model"] == "m-1" or body["model"] == "unknown"
    assert system_text == given["systemContext"] != ""
    assert [json.dumps(one) for one in shown[: len(given["rendered"]) - 1]] == [
        json.dumps(one) for one in given["rendered"][:-1]
    ]
    assert "sessions_send" in json.dumps(body["tools"])


def _walk(value: Any) -> None:
    """Go through all of a value: what a type calls iterable is checked on the way."""
    for each in value.values() if isinstance(value, dict) else value if not isinstance(value, str) else ():
        if not isinstance(each, str | int | float | bool | None):
            _walk(each)


@pytest.mark.ci
@pytest.mark.clause("OUT-5")
def test_tables_are_asked_with_sql_and_agree_with_the_log(system: SessionSystem, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="install duckdb")
    pytest.importorskip("pyarrow", reason="install the extra parquet")
    made = system.debug.export(tmp_path / "tables", "parquet")

    def ask(sql: str) -> Any:
        return duckdb.sql(sql.replace("$", str(tmp_path / "tables"))).fetchall()

    assert ask("SELECT count(*), max(position) FROM '$/events.parquet'") == [(made.position, made.position)]
    assert ask(
        "SELECT status, count(*) FROM '$/runs.parquet' WHERE session_key = 'agent:ops:main' GROUP BY 1"
    ) == [("ok", ask("SELECT count(*) FROM '$/runs.parquet' WHERE session_key = 'agent:ops:main'")[0][0])]
    assert ask("SELECT error FROM '$/runs.parquet' WHERE status = 'error'")[0][0].endswith("no model")
    assert ask("SELECT state, error FROM '$/deliveries.parquet' WHERE \"to\" = 'bo'") == [
        ("failed", "DeliveryRefused: the chat is closed")
    ]
    assert ask("SELECT DISTINCT tool, result FROM '$/calls.parquet' WHERE tool = 'login'") == [
        ("login", "in")
    ]
    assert ask("SELECT sum(cost_micros) FROM '$/usage.parquet'") == ask(
        "SELECT sum(cost_micros) FROM '$/runs.parquet'"
    )
    assert ask("SELECT text FROM '$/messages.parquet' WHERE sender = 'bo'") == [("hi",)]
    page = (DOCS / "howto" / "export-and-import.md").read_text()
    shown = re.search(r'duckdb -c "(.+?)"\n', page, re.DOTALL)
    assert shown is not None
    asked = ask(shown[1].replace("tables/runs.parquet", "$/runs.parquet"))
    assert asked[0][0] == MAIN
    assert ask("SELECT year(time) >= 2024 FROM '$/events.parquet' LIMIT 1") == [(True,)]


@pytest.mark.clause("OUT-1")
def test_a_host_hands_out_what_the_log_exports_and_keeps_a_receipt(
    system: SessionSystem, tmp_path: Path
) -> None:
    asked: list[tuple[Any, dict[str, Any]]] = [
        ("cloudevents", {"until": 20, "since": 2}),
        ("otlp", {"at": 20}),
        ("anthropic", {"session": MAIN, "at": 20}),
    ]
    for to, part in asked:
        answer: Any = system.gateway.call("exports.make", {"to": to, **part})
        content = base64.b64decode(answer["content"])
        made, _ = exported(system, tmp_path / to, to, **part)
        assert content == made.path.read_bytes()
        assert (answer["sha256"], answer["bytes"]) == (sha256(content).hexdigest(), len(content))
        assert (answer["to"], answer["position"], answer["counts"]) == (to, made.position, made.counts)
        assert answer["name"].startswith(f"{to}-")
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "kept"})  # receipts ride with a commit
    receipts = system.debug.access(tool="exports.make")["receipts"]
    assert [one["filters"]["to"] for one in receipts] == ["anthropic", "otlp", "cloudevents"]
    assert all(one["allowed"] for one in receipts)


@pytest.mark.ci
@pytest.mark.clause("OUT-5")
def test_tables_are_handed_out_as_a_zip_of_their_files(system: SessionSystem) -> None:
    pytest.importorskip("pyarrow", reason="install the extra parquet")
    answer: Any = system.gateway.call("exports.make", {"to": "parquet", "session": MAIN})

    with zipfile.ZipFile(io.BytesIO(base64.b64decode(answer["content"]))) as archive:
        assert archive.namelist() == sorted(f"{name}.parquet" for name in answer["counts"])
        assert archive.read("runs.parquet").startswith(b"PAR1")


@pytest.mark.clause("OUT-1")
def test_an_export_that_can_not_be_is_refused_with_the_field(system: SessionSystem) -> None:
    asked: list[tuple[dict[str, Any], str]] = [
        ({}, "to: required"),
        ({"to": "xml"}, "to: "),
        ({"to": "openai"}, "openai is the form of one session: name that alone"),
        ({"to": "otlp", "run": "x", "session": MAIN}, "run and session are given, name one part"),
        ({"to": "otlp", "run": "nope"}, "no exchange, spawn or run is called 'nope'"),
        ({"to": "otlp", "since": 1, "until": 5, "at": 5}, "until is the last place already"),
        ({"to": "otlp", "at": "tomorrow at noon"}, "at: "),
    ]
    for params, said in asked:
        refused: Any = system.gateway.call("exports.make", params)
        assert refused["code"] == "invalid_request", params
        assert said in refused["error"]


@pytest.mark.clause("OUT-1")
def test_a_part_of_the_log_is_exported_as_it_stood_at_a_place(system: SessionSystem, tmp_path: Path) -> None:
    run = system.debug.runs(kind=["exchange"])["runs"][0]["id"]

    _, whole = exported(system, tmp_path / "all", "cloudevents")
    _, early = exported(system, tmp_path / "early", "cloudevents", at=9)
    _, window = exported(system, tmp_path / "window", "cloudevents", since=4, until=9)
    _, of_run = exported(system, tmp_path / "run", "cloudevents", run=run)
    _, of_ops = exported(system, tmp_path / "ops", "cloudevents", session="agent:ops:main")

    assert early == whole[:9]
    assert window == whole[4:9]
    assert {line["subject"] for line in of_run} >= {f"exchange:{run}", f"session:{MAIN}"}
    assert {line["subject"] for line in of_ops} >= {"session:agent:ops:main"}
    assert len(of_run) < len(whole)


@pytest.mark.clause("OUT-1")
def test_exports_hide_secrets_unless_told_otherwise_repeat_themselves_and_are_private(
    system: SessionSystem, tmp_path: Path
) -> None:
    forms: tuple[Any, ...] = (*LINES, "openai")
    for to in forms:
        asked: dict[str, Any] = {"session": MAIN} if to == "openai" else {}
        for name, raw in (("shown", False), ("again", False), ("raw", True)):
            system.debug.export(tmp_path / f"{to}-{name}", to, raw=raw, **asked)
        shown, again, raw_text = (
            (tmp_path / f"{to}-{name}").read_text() for name in ("shown", "again", "raw")
        )

        assert SECRET not in shown
        assert SECRET in raw_text
        assert shown == again
        assert stat.S_IMODE((tmp_path / f"{to}-shown").stat().st_mode) == 0o600


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"to": "csv"}, f"use one of {', '.join(FORMS)}"),
    ({"to": "openai"}, "form of one session"),
    ({"to": "anthropic", "run": "x"}, "form of one session"),
    ({"to": "otlp", "run": "x", "session": "y"}, "name one part"),
    ({"to": "otlp", "since": 1, "until": 2, "at": 3}, "leave one of them out"),
    ({"to": "otlp", "run": "no-such-run"}, "no exchange, spawn or run"),
    ({"to": "cloudevents", "session": "nobody"}, "nobody"),
    ({"to": "cloudevents", "since": "head"}, "nothing of that part of the log.*cloudevents: 0 events"),
    ({"to": "otlp", "since": "head"}, "goes into otlp: 0 spans, 0 open"),
    ({"to": "openai", "session": MAIN, "at": 3}, "goes into openai: 0 messages"),
    ({"to": "parquet", "since": "head"}, "goes into parquet: 0 events, 0 messages"),
]


@pytest.mark.clause("OUT-1")
def test_what_can_not_be_exported_is_refused_in_words_and_leaves_no_file(
    system: SessionSystem, tmp_path: Path
) -> None:
    for asked, words in REFUSED:
        with pytest.raises(ToolRefused, match=words):
            system.debug.export(tmp_path / "out", **asked)
        assert not (tmp_path / "out").exists()


@pytest.mark.clause("OUT-1")
def test_nothing_is_written_over(system: SessionSystem, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()

    with pytest.raises(ExportFailed, match="there already"):
        system.debug.export(tmp_path / "there", "otlp")
    with pytest.raises(ExportFailed, match="can't be written"):
        system.debug.export(tmp_path / "nowhere" / "out", "otlp")
    with pytest.raises(ExportFailed, match="not empty"):
        system.debug.export(full, "parquet")
    assert (tmp_path / "there").read_text() == "mine"
