"""A whole system on PostgreSQL: nothing is changed but the URL."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession.cli.host.beside import tools_beside
from intersession_events.copies.forks.files import forks_beside
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import gateway_of, located, open_log
from intersession_events.stores.postgres.application import WriterApplication
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.any_log import changed_behind
from support.doors.command_line import ran
from support.doors.gateway_live import GATEWAY, TOKEN, LiveGateway
from support.running import QUIET, SEES_ALL, Heard, closed_exchange, merged
from support.story import MAIN

SECRET = "never-shown-7f3a"


def played(url: str) -> str:
    """Have one session ask another, and return the run that answered."""
    agents = {"main": lambda turn: f"heard {turn.message}", "ops": lambda _: "all is well"}
    with SessionSystem(url, agents=agents, config=merged(SEES_ALL, QUIET)) as system:
        sent = {"sessionKey": MAIN, "message": "are you there", "idempotencyKey": "first"}
        system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent)["runId"]})
        asked = {"sessionKey": "agent:ops:main", "message": "well?", "timeoutSeconds": 20}
        answer = system.tools(MAIN).call("sessions_send", asked)
        assert answer["reply"] == "all is well"
        run_id = str(answer["runId"])
        closed_exchange(system, run_id)
    return run_id


def test_a_system_runs_and_its_log_is_proven_on_postgresql(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The smoke test of the everyday run; `-m postgres` runs more."""
    run = played(postgres_url)

    for command in ("sessions", "runs", "verify", "doctor", "rebuild"):
        done = ran(command, "--store", postgres_url, "--json")
        assert done.exit_code == 0, (command, done.err)
    assert run in ran("replay", run, "--store", postgres_url, "--json").out
    with open_log(postgres_url, read_only=True, inline=inline_views()) as log:
        assert verify_log(log).findings == ()
        assert views_proven(log, inline_views()) == ([], [])
        assert log.written_by() is None
    assert capsys.readouterr().err == ""


@pytest.mark.postgres
@pytest.mark.clause("J1")
def test_a_view_that_is_not_what_the_events_say_is_found(postgres_url: str) -> None:
    played(postgres_url)
    import psycopg  # noqa: PLC0415

    with psycopg.connect(postgres_url.partition("&schema")[0], autocommit=True) as connection:
        schema = postgres_url.partition("schema=")[2].partition("&")[0]
        for statement in (
            "UPDATE {}.session_places SET since = since + 1 WHERE scope = 0 AND label = 0 AND part = 0",
            "DELETE FROM {}.session_search WHERE notification_id = 1",
            "DROP INDEX {}.flows_open",
            "DROP TABLE {}.held_sessions",
        ):
            connection.execute(statement.format(schema).encode())

    with open_log(postgres_url, read_only=True) as log:
        findings, _ = views_proven(log, inline_views())

    found = {(one.view, one.table) for one in findings}
    assert {
        ("session_list", "session_search"),
        ("open_flows", "flows_open"),
        ("held_sessions", "held_sessions"),
    } <= found


@pytest.mark.postgres
def test_forks_and_what_else_lies_in_files_have_a_folder_of_the_log(
    postgres_url: str, tmp_path: Path
) -> None:
    run = played(postgres_url)
    place = located(postgres_url).place
    assert Path(place).is_relative_to(tmp_path)

    made = ran("fork", run, "--no-run", "--store", postgres_url, "--json")
    assert made.exit_code == 0, made.err
    (fork,) = forks_beside(place)
    assert ran("verify", "--store", str(fork), "--source", postgres_url).exit_code == 0
    assert fork.stem in ran("forks", "--store", postgres_url).out
    assert ran("search", "heard", "--store", postgres_url, "--json").exit_code == 0
    assert not Path(f"{place}.views").exists()  # that lies in the database


@pytest.mark.postgres
@pytest.mark.clause("D8")
def test_a_second_system_is_refused_and_commands_find_the_first_ones_gateway(postgres_url: str) -> None:
    with SessionSystem(postgres_url, agents={}) as system:
        system.log.announce_gateway("http://127.0.0.1:18789")
        assert gateway_of(postgres_url) == "http://127.0.0.1:18789"
        refused = ran("import", "openclaw", "nowhere", "--store", postgres_url)
        assert refused.exit_code != 0
    assert gateway_of(postgres_url) is None


@pytest.mark.postgres
@pytest.mark.clause("STBY-6")
def test_commands_find_the_gateway_of_a_writer_on_another_machine_by_what_it_advertises(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", TOKEN)
    config = merged(SEES_ALL, QUIET, GATEWAY)
    with (
        SessionSystem(postgres_url, agents={"main": echo("far: ")}, config=config) as system,
        LiveGateway(system) as live,
    ):
        elsewhere = "1 host-a another-boot"
        changed_behind(postgres_url, "UPDATE log_writer SET holder = ?", elsewhere)
        assert isinstance(system.log, PostgresLog)
        assert isinstance(system.log.application, WriterApplication)
        system.log.application.commits.holder = elsewhere  # as it had written it there
        system.log.announce_gateway(live.address)
        refused = ran("send", "hello", "--agent", "main", "--store", postgres_url)
        assert (refused.exit_code, "gateway.advertise" in refused.err) == (3, True)

        # A name, since an address of this machine's loopback leads nowhere from another one.
        at = live.address.replace("127.0.0.1", "localhost")
        system.reload(merged(config, {"gateway": {"advertise": at}}))
        system.log.announce_gateway(live.address, advertised=at)
        sent = ran("send", "hello", "--agent", "main", "--store", postgres_url, "--json")
        assert (sent.exit_code, sent.json["reply"]) == (0, "far: hello"), sent.err
        assert ran("doctor", "--store", postgres_url).exit_code == 0
        assert tools_beside(located(postgres_url), TOKEN).tools("agent:main:main").names


@pytest.mark.postgres
@pytest.mark.clause("STBY-4")
def test_a_host_hears_that_another_one_has_taken_its_log(postgres_url: str) -> None:
    heard = Heard()
    with SessionSystem(postgres_url, agents={"main": echo()}, on_failure=heard) as system:
        assert (
            system.inbound(channel="c", chat_id="1", sender="ann", text="a", deliver=False)["status"]
            == "accepted"
        )
        changed_behind(postgres_url, "UPDATE log_writer SET alive_until = '-infinity'")
        with SessionSystem(postgres_url, agents={"main": echo()}) as later:
            told = heard.next("store_trouble")  # by the lease: nothing was written here meanwhile
            assert "another one took over" in (told.error or "")
            assert system.status()["store"]["startAgain"]
            refused = system.inbound(channel="c", chat_id="1", sender="ann", text="b", deliver=False)
            assert refused["code"] == "unavailable"
            assert (
                later.inbound(channel="c", chat_id="1", sender="ann", text="c", deliver=False)["status"]
                == "accepted"
            )


@pytest.mark.postgres
def test_no_door_shows_the_password_of_the_log(postgres_url: str) -> None:
    url = postgres_url.replace("postgres@/", f"postgres:{SECRET}@/")
    played(url)
    said = [
        done.out + done.err
        for command in (
            ("sessions",),
            ("status",),
            ("verify",),
            ("doctor",),
            ("rebuild",),
            ("forks",),
            ("runs", "--at", "x"),
        )
        for form in ((), ("--json",))
        if (done := ran(*command, *form, "--store", url))
    ]
    with SessionSystem(url, agents={}) as system:
        said.append(f"{system.log.path}{system.status()}{located(url)!r}")
        said.append(f"{system.tools(MAIN).call('sessions_send', {'sessionKey': 'x', 'message': 'y'})}")
    assert SECRET not in "".join(said)
