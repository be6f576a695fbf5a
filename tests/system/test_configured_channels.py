"""Channels that the configuration itself delivers for: what goes out, what the log says of it, who wins, what is refused."""

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from intersession import ConfigError, MemoryChannel, MissingExtra, Outbound, SessionSystem, echo
from intersession_actors.outside.channels.configured import configured_channels
from intersession_events.facts import DeliveryDone, DeliveryFailed, DeliveryUnknown
from support.doors.command_line import environment, ran
from support.fakes import ManualClock
from support.loopback import Answer, Loopback
from support.running import WAIT, Booth

SECRET = "secret-path-of-a-hook"


def delivering(url: str, **more: Any) -> dict[str, Any]:
    return {"channels": {"ops": {"deliver": url, **more}}}


def outcome(system: SessionSystem, to: str = "42") -> DeliveryDone | DeliveryFailed | DeliveryUnknown:
    """Say something on the channel, and return how the first try to deliver the answer ended."""
    at = system.log.head()
    system.inbound(channel="ops", chat_id=to, sender="ann", text="hello", wait=WAIT)
    for recorded in system.follow(at, timeout=WAIT):
        if isinstance(recorded.event, DeliveryDone | DeliveryFailed | DeliveryUnknown):
            return recorded.event
    raise AssertionError("no text went out")


@pytest.mark.clause("ANN-3")
def test_an_answer_goes_to_the_url_of_its_channel_and_the_receipt_is_an_event(booth: Booth) -> None:
    with Loopback(lambda _: Answer(200, b'{"id": 7}')) as server:
        system = booth.start(
            {"main": echo()},
            None,
            delivering(f"http://127.0.0.1:{server.port}/{SECRET}/{{to}}", allowHosts=["127.0.0.1"]),
        )
        done = outcome(system)

    assert isinstance(done, DeliveryDone)
    assert done.receipt == '{"status":200,"answer":{"id":7}}'
    assert [(asked.path, json.loads(asked.body)["text"]) for asked in server.asked] == [
        (f"/{SECRET}/42", "hello")
    ]
    assert system.status()["channels"] == ["ops"]


@pytest.mark.clause("ANN-3")
def test_the_outbox_tries_again_what_a_url_did_not_take_and_shows_no_secret_of_it(
    booth: Booth, tmp_path: Path
) -> None:
    with Loopback(lambda _: Answer(503)) as server:
        system = booth.start(
            {"main": echo()},
            None,
            delivering(f"http://127.0.0.1:{server.port}/{SECRET}", allowHosts=["127.0.0.1"]),
            clock=ManualClock(),  # it stands: the second call does not come
        )
        failed = outcome(system)

        assert isinstance(failed, DeliveryFailed)
        assert failed.retry_at_ms is not None
        assert failed.error == "ConnectionError: HTTP 503 Service Unavailable"
        assert len(server.asked) == 1
    assert SECRET.encode() not in b"".join(
        file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    )
    assert '{"allowHosts":["127.0.0.1"],"deliver":"<hidden>"}' in repr(system.config)


@pytest.mark.clause("ANN-3")
def test_no_answer_is_recorded_as_unknown_and_nothing_is_sent_twice(booth: Booth) -> None:
    with Loopback(lambda _: None) as server:
        system = booth.start(
            {"main": echo()}, None, delivering(f"http://127.0.0.1:{server.port}/", allowHosts=["127.0.0.1"])
        )

        assert isinstance(outcome(system), DeliveryUnknown)
        assert len(server.asked) == 1


@pytest.mark.clause("X13")
def test_a_chat_that_would_lead_elsewhere_is_never_tried_again(booth: Booth) -> None:
    with Loopback() as server:
        system = booth.start(
            {"main": echo()},
            None,
            delivering(f"http://127.0.0.1:{server.port}/chat/{{to}}", allowHosts=["127.0.0.1"]),
        )
        failed = outcome(system, to="../admin")

    assert isinstance(failed, DeliveryFailed)
    assert failed.retry_at_ms is None
    assert server.asked == []


def test_a_channel_of_the_host_wins_and_a_notice_says_so(booth: Booth) -> None:
    with Loopback() as server:
        memory = MemoryChannel()
        system = booth.start(
            {"main": echo()},
            {"ops": memory},
            delivering(f"http://127.0.0.1:{server.port}/", allowHosts=["127.0.0.1"]),
        )
        outcome(system)

    assert len(memory.delivered) == 1
    assert server.asked == []
    assert [notice for notice in system.notices if notice.startswith("channels.ops.deliver: not used")]


def test_a_channel_that_is_not_enabled_is_none(booth: Booth) -> None:
    system = booth.start({"main": echo()}, None, delivering("http://127.0.0.1/", enabled=False))

    assert system.status()["channels"] == []


BAD = [
    (delivering(f"http://10.0.0.1/{SECRET}"), "channels.ops.deliver", "allowHosts, beside the URL"),
    (delivering(f"http://user:{SECRET}@hooks.example/"), "channels.ops.deliver", "user name or password"),
    (delivering(f"http://{{to}}.example/{SECRET}"), "channels.ops.deliver", "behind the host"),
    (delivering(f"http://hooks.example:99999/{SECRET}"), "channels.ops.deliver", "host or port"),
    (delivering("http://hooks.example/", allowHosts=["http://x"]), "channels.ops.allowHosts", "no host"),
    (delivering("http://hooks.example/", allowHosts="x"), "channels.ops.allowHosts", "expected a list"),
    (delivering("http://hooks.example/", allowHosts=[7]), "channels.ops.allowHosts[0]", "expected a string"),
    (delivering(""), "channels.ops.deliver", "expected a string of length"),
    ({"channels": {"ops": {"deliver": ["http://hooks.example/"]}}}, "channels.ops.deliver", "a string"),
    (delivering("${NO_SUCH_VARIABLE_HERE}"), "channels.ops.deliver", "NO_SUCH_VARIABLE_HERE"),
]


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(("config", "path", "what"), BAD)
def test_a_bad_url_is_refused_before_anything_starts_and_by_config_check(
    config: dict[str, Any], path: str, what: str, log_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps(config), encoding="utf-8")

    with pytest.raises(ConfigError) as refused:
        SessionSystem(log_url, config=file)
    checked = ran("config", "check", file, "--json")

    assert refused.value.path == path
    assert what in str(refused.value)
    assert SECRET not in str(refused.value)
    assert not (tmp_path / "log.db").exists()
    assert checked.exit_code == 1
    assert [problem["path"] for problem in checked.json["problems"]] == [path]
    assert SECRET not in checked.out + checked.err


@pytest.mark.clause("CFG-4")
def test_a_reload_with_a_bad_url_is_refused_and_the_old_one_stays(booth: Booth) -> None:
    system = booth.start({"main": echo()}, None, delivering("https://hooks.example/"))

    with pytest.raises(ConfigError):
        system.reload(delivering("http://10.0.0.1/"))

    assert system.config.channels["ops"] == {"deliver": "https://hooks.example/"}
    assert "ssrf_blocked" in system.status()["configError"]


def test_a_secret_comes_from_the_environment(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    with Loopback() as server:
        system = booth.start(
            {"main": echo()},
            None,
            delivering(f"http://127.0.0.1:{server.port}/${{HOOK_SECRET}}/{{to}}", allowHosts=["127.0.0.1"]),
        )
        outcome(system)

    assert [asked.path for asked in server.asked] == [f"/{SECRET}/42"]


async def test_a_channel_that_is_registered_in_a_coroutine_runs_on_its_loop(booth: Booth) -> None:
    loops: asyncio.Queue[asyncio.AbstractEventLoop] = asyncio.Queue()

    async def deliver(_: Outbound) -> None:
        loops.put_nowait(asyncio.get_running_loop())

    system = booth.start({"main": echo()})
    said = partial(system.inbound, channel="ops", chat_id="42", sender="ann", text="hello", wait=WAIT)
    await asyncio.to_thread(said)
    system.register_channel("ops", deliver)

    assert await asyncio.wait_for(loops.get(), WAIT) is asyncio.get_running_loop()
    await asyncio.to_thread(system.close)


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['apprise'] = None\n"
        "from intersession import MissingExtra, SessionSystem\n"
        "try: SessionSystem(':memory:', config={'channels': {'ops': {'deliver': 'tgram://123:secret/{to}'}}})\n"
        "except MissingExtra as error: print(error)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )

    assert done.stdout == (
        "channels.ops.deliver (tgram://…) needs Apprise: pip install 'intersession[channels]'\n"
    )
    assert issubclass(MissingExtra, ImportError)


@pytest.mark.clause("WORK-15")
def test_the_url_of_a_channel_at_workers_is_the_workers(booth: Booth) -> None:
    url = "http://127.0.0.1:1/"
    config = delivering(url, allowHosts=["127.0.0.1"], worker=True)
    system = booth.start({"main": echo()}, None, config)

    assert configured_channels(system.config) == {}
    assert list(configured_channels(system.config, of_worker=["ops"])) == ["ops"]
    with pytest.raises(ConfigError, match=r"channels\.other\.deliver: is missing"):
        configured_channels(system.config, of_worker=["ops", "other"])
