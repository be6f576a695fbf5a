"""`import.openclaw`: who may, from where, what comes of it, and the command that uses it beside a gateway."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import ImportFailed, SessionSystem, ToolRefused, echo
from intersession.cli.host.beside import import_beside
from intersession.gateway.admission.addresses import is_this_machine
from intersession.gateway.protocol.client import GatewayClient
from intersession_actors.rules.errors import RefusalCode
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import ImportReported
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.transcripts.openclaw import appending
from intersession_events.transcripts.openclaw.importing import import_openclaw
from support.doors.command_line import ran
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WAIT, WRITER, LiveGateway, WireClient
from support.foreign.recording import recorded
from support.paths import DATA
from support.running import merged, wait_for

STATE = DATA / "openclaw" / "household"
HOME = "agent:home:main"
ADMIN = "a-token-for-everything"
METHOD = "import.openclaw"
PARAMS = {"directory": str(STATE), "onTaken": "beside"}
CONFIG = merged(
    GATEWAY,
    {
        "gateway": {
            "auth": {
                "credentials": [
                    *GATEWAY["gateway"]["auth"]["credentials"],
                    {"name": "all", "token": ADMIN, "actAs": ["*"], "scopes": ["operator.admin"]},
                ]
            }
        }
    },
)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[SessionSystem]:
    with SessionSystem(tmp_path / "s.db", agents={"home": echo()}, config=CONFIG) as running:
        yield running


@pytest.fixture
def live(system: SessionSystem) -> Iterator[LiveGateway]:
    with LiveGateway(system) as serving:
        yield serving


@pytest.fixture
def options(system: SessionSystem, live: LiveGateway, tmp_path: Path) -> tuple[str, ...]:
    """What a command has to be given to find and use the gateway."""
    log = system.log
    assert isinstance(log, SqliteLog)
    log.announce_gateway(live.address)
    config = tmp_path / "config.json5"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    return (f"--store={log.path}", f"--config={config}", "--json")


def asked(client: WireClient, directory: object = STATE, **more: Any) -> dict[str, Any]:
    return client.request("import.openclaw", {"directory": str(directory), **more})


def code(answer: dict[str, Any]) -> Any:
    return answer["error"]["details"]["code"]


@pytest.mark.clause("IMP-1", "GATE-1")
def test_the_operator_imports_through_the_gateway_and_gets_the_report(live: LiveGateway) -> None:
    with live.client(TOKEN) as client:
        report = asked(client)["payload"]
        again = asked(client)["payload"]

    assert "import.openclaw" in client.hello["features"]["methods"]
    assert report["sessions"] > 1
    assert report["appended"] == report["events"] > 0
    assert (again["appended"], again["alreadyImported"]) == (0, True)


@pytest.mark.clause("VIS-6", "X11")
def test_nobody_else_imports_whatever_their_scopes(system: SessionSystem, live: LiveGateway) -> None:
    head = system.log.head()
    for token in (READER, WRITER):
        with live.client(token, scopes=["operator.admin"]) as client:
            assert asked(client)["error"]["message"] == "missing scope: operator.admin"
    with live.client(ADMIN) as client:
        assert code(asked(client)) == "forbidden"
    with live.client(TOKEN, scopes=["operator.write"]) as client:
        assert asked(client)["error"]["message"] == "missing scope: operator.admin"

    assert live.invoke("import.openclaw", {"directory": str(STATE)}).status_code == 404
    assert system.log.head() == head


@pytest.mark.clause("X11")
@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_who_comes_through_a_proxy_does_not_import(live: LiveGateway, header: str) -> None:
    with live.socket(additional_headers={header: "203.0.113.9"}) as opened:
        client = WireClient(opened)
        client.challenge()
        client.connect(TOKEN)

        assert code(asked(client)) == "forbidden"
        assert client.request("status")["ok"]


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.168.0.4", False),
        ("192.168.0.4", False),
        ("0.0.0.0", False),  # noqa: S104 - nothing is bound
        ("testclient", False),
        (None, False),
    ],
)
def test_this_machine_is_its_loopback_alone(address: str | None, here: bool) -> None:
    assert is_this_machine(address, []) is here
    assert not is_this_machine(address, [(b"X-Forwarded-For", b"127.0.0.1")])


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({}, "invalid_request"),
        ({"directory": ""}, "invalid_request"),
        ({"directory": "states/x"}, "invalid_request"),
        ({"directory": str(STATE), "onTaken": "mix"}, "invalid_request"),
        ({"directory": str(STATE), "more": 1}, "invalid_request"),
        ({"directory": "/nowhere/at/all"}, "import_failed"),
        ({"directory": "/a\0b"}, "import_failed"),
        ({"directory": f"/{'x' * 4000}"}, "import_failed"),
        ({"directory": f"/{'x' * 100_000}"}, "invalid_request"),
        ({"directory": str(STATE.parent)}, "import_failed"),
    ],
)
def test_what_can_not_be_imported_is_refused(live: LiveGateway, params: dict[str, Any], refusal: str) -> None:
    with live.client(TOKEN) as client:
        assert code(client.request("import.openclaw", params)) == refusal


@pytest.mark.clause("IMP-1")
def test_the_command_imports_through_the_gateway_and_prints_the_same_report(
    system: SessionSystem, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_home = ran("import", "openclaw", STATE, "--store", tmp_path / "home.db", "--json").json
    monkeypatch.chdir(STATE.parent)

    done = ran("import", "openclaw", STATE.name, *options)
    shown = ran("import", "openclaw", STATE, *options[:2])

    own = {"importId", "store"}
    assert done.exit_code == 0, done
    assert {name: value for name, value in done.json.items() if name not in own} == {
        name: value for name, value in at_home.items() if name not in own
    }
    assert done.json["store"] == str(tmp_path / "s.db")
    assert "all in the log already, nothing was added" in shown.out
    assert system.service.sessions.get(HOME) is not None


def test_refusals_have_the_codes_they_have_without_a_gateway(
    system: SessionSystem, options: tuple[str, ...], tmp_path: Path
) -> None:
    opened = system.gateway.call(
        "agent", {"sessionKey": HOME, "message": "hi", "idempotencyKey": "k", "timeout": round(WAIT)}
    )
    missing = ran("import", "openclaw", tmp_path / "missing", *options)
    taken = ran("import", "openclaw", STATE, "--on-taken", "refuse", *options)
    foreign = ran("import", "openclaw", STATE, options[0], "--json")

    assert opened["status"] == "accepted"
    assert (missing.exit_code, missing.json["code"]) == (1, "import_failed")
    assert (taken.exit_code, taken.json["code"]) == (1, "import_failed")
    assert HOME in taken.json["error"]
    assert (foreign.exit_code, foreign.json["code"]) == (1, "forbidden")


def test_a_gateway_that_is_stopping_is_a_store_that_is_locked(
    system: SessionSystem, live: LiveGateway, options: tuple[str, ...]
) -> None:
    live.door.drain()

    done = ran("import", "openclaw", STATE, *options)

    assert (done.exit_code, done.json["code"]) == (3, "store_locked")
    assert system.service.sessions.get(HOME) is None


class Client:
    """A gateway that goes away in the middle, or is busy."""

    def __init__(self, code: RefusalCode) -> None:
        self._code: RefusalCode = code
        self.closed = False

    def call(self, *_: object, **__: object) -> dict[str, Any]:
        raise ToolRefused(self._code, "the gateway says no")

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("unavailable", StoreUnavailable),
        ("import_failed", ImportFailed),
        ("busy", ToolRefused),
        ("forbidden", ToolRefused),
    ],
)
def test_whatever_the_gateway_says_no_to_is_the_error_it_would_be_here(
    system: SessionSystem, given: RefusalCode, error: type[Exception]
) -> None:
    client = Client(given)

    with pytest.raises(error, match="the gateway says no"):
        import_beside(client, system.log, METHOD, PARAMS, progress=lambda _done, _of: None)

    assert client.closed


@pytest.mark.clause("IN-1")
def test_a_framework_is_imported_beside_a_gateway_as_without_one(
    system: SessionSystem, options: tuple[str, ...], tmp_path: Path
) -> None:
    source = recorded("langgraph", tmp_path)

    done = ran("import", source, "--from", "langgraph", *options)
    refused = ran("import", tmp_path / "gone.db", "--from", "langgraph", *options)
    local = ran("import", source, "--from", "langgraph", "--json", "--store", tmp_path / "local.db")

    ids = {"importId", "store"}
    assert {name: value for name, value in done.json.items() if name not in ids} == {
        name: value for name, value in local.json.items() if name not in ids
    }
    assert (refused.exit_code, refused.json["code"]) == (1, "import_failed")
    assert system.import_framework("langgraph", source).already_imported


@pytest.mark.clause("IMP-1")
def test_who_stops_waiting_does_not_stop_the_import(
    system: SessionSystem, live: LiveGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "BATCH", 2)
    begun, go_on = threading.Event(), threading.Event()

    def wait_once(_batch: object) -> None:
        begun.set()
        go_on.wait(WAIT)

    stop = system.log.on_committed(wait_once)
    with live.client(TOKEN) as client:
        client.ask("import.openclaw", {"directory": str(STATE)})
        assert begun.wait(WAIT)
    go_on.set()
    stop()

    reported = wait_for(system, ImportReported)
    again = import_openclaw(STATE, system.log, clock=lambda: 0)
    assert reported.sessions > 1
    assert (again.import_id, again.already_imported) == (reported.import_id, True)


def test_the_bar_moves_with_the_log(system: SessionSystem, live: LiveGateway) -> None:
    moved: list[int] = []
    went_on = threading.Event()

    class Waiting(GatewayClient):
        """Comes back with the report once the growth was seen."""

        def call(self, method: str, *given: Any, **options: Any) -> dict[str, Any]:
            answer = super().call(method, *given, **options)
            if method == METHOD:
                assert went_on.wait(WAIT)
            return answer

    def progress(done: int, of: int | None) -> None:
        assert of is None
        moved.append(done)
        if done > 0:
            went_on.set()

    report = import_beside(Waiting(live.address, TOKEN), system.log, METHOD, PARAMS, progress=progress)

    assert moved[0] == 0
    assert 0 < moved[-1] <= report.appended + 1
    assert system.import_openclaw(STATE).already_imported
