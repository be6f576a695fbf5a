"""Channels of Apprise: one attempt per call, public addresses only, no secret in what is said."""

import json
import logging
from typing import Any

import pytest

from intersession import ConfigError, DeliveryInDoubt, DeliveryRefused, Outbound
from intersession_actors.outside.channels.addresses import Network
from intersession_actors.outside.channels.channels import Channel
from intersession_actors.outside.channels.configured import configured_channels
from intersession_actors.outside.channels.fitting import fitted
from intersession_actors.rules.config.config import load_config
from support.loopback import Answer, Asked, Loopback

pytest.importorskip("apprise", reason="channels by Apprise URLs are an extra")

TELEGRAM = "tgram://123456789:very-secret-token-of-a-bot/{to}"
SECRET = "secret-path-of-a-hook"


def channel(url: str, *hosts: str) -> Channel:
    config = load_config({"channels": {"ops": {"deliver": url, "allowHosts": list(hosts)}}}).config
    # Our own look at a name finds a public address; the library resolves it once more, and finds what there is.
    return configured_channels(config, Network(resolve=lambda _host, _port: ["93.184.216.34"]))["ops"]


def delivered(made: Channel, text: str = "hello", to: str = "42") -> Any:
    assert callable(made.deliver)
    return made.deliver(Outbound(channel="ops", to=to, text=text, key="key-1"))


def refused(url: str) -> str:
    with pytest.raises(ConfigError) as found:
        channel(url)
    assert found.value.path == "channels.ops.deliver"
    return str(found.value)


def test_a_text_goes_out_by_a_service_of_apprise() -> None:
    with Loopback() as server:
        receipt = delivered(
            channel(f"json://127.0.0.1:{server.port}/{SECRET}/{{to}}", "127.0.0.1"), "a <b> & *c*"
        )

    assert receipt == {"service": "JSON"}
    (asked,) = server.asked
    assert asked.path == f"/{SECRET}/42"
    assert json.loads(asked.body)["message"] == "a <b> & *c*"


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("more", ["", "?retry=3&wait=0", "?optional=yes", "?overflow=split"])
def test_a_text_that_is_not_taken_is_tried_once_and_the_reason_is_what_apprise_says(more: str) -> None:
    with Loopback(lambda _: Answer(500)) as server:
        made = channel(f"json://127.0.0.1:{server.port}/{SECRET}/{{to}}{more}", "127.0.0.1")
        with pytest.raises(
            ConnectionError, match=r"Failed to send JSON POST notification: .*error=500"
        ) as failed:
            delivered(made, "x" * 40_000)

    assert len(server.asked) == 1
    assert SECRET not in str(failed.value)


@pytest.mark.clause("ANN-3")
def test_a_request_without_an_answer_is_in_doubt() -> None:
    with Loopback(lambda _: None) as server, pytest.raises(DeliveryInDoubt):
        delivered(channel(f"json://127.0.0.1:{server.port}/", "127.0.0.1"))


# --- private addresses


@pytest.mark.clause("X13")
@pytest.mark.parametrize("scheme", ["json", "xml", "form", "ntfy", "mmost", "gotify", "apprise"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "2130706433", "127.1", "localhost", "localhost."])
def test_a_url_that_can_be_seen_to_lead_to_this_machine_is_refused_or_reaches_nothing(
    scheme: str, host: str
) -> None:
    # Where it takes a host for no name, Apprise's ntfy would go to ntfy.sh with it, were its server not said to be private.
    mode = "?mode=private" if scheme == "ntfy" else ""
    with Loopback() as server:
        try:
            made = channel(f"{scheme}://{host}:{server.port}/3ccdd113474722377935511fc85d3dd4{mode}")
        except ConfigError:
            pass
        else:
            with pytest.raises(DeliveryRefused):
                delivered(made)

    assert server.asked == []


@pytest.mark.clause("X13")
@pytest.mark.parametrize(
    "written", ["127.1", "0x7f.1:80", "u:p@127.1", "127%2e1", "10.1:8080", "192.168.258"]
)
def test_a_private_host_that_a_service_reads_as_something_else_is_refused(written: str) -> None:
    # ntfy reads a host that it does not know as a topic of its public server: the text would go out to the world.
    with pytest.raises(ConfigError, match="ssrf_blocked"):
        channel(f"ntfy://{written}/3ccdd113474722377935511fc85d3dd4")


@pytest.mark.clause("X13")
@pytest.mark.parametrize("scheme", ["json", "xml", "form", "ntfy", "mmost", "gotify", "apprise"])
def test_a_name_that_turns_out_to_be_private_when_it_is_connected_to_is_refused(scheme: str) -> None:
    # When it is looked at, the host is where it may be; when the library resolves it again, it is this machine.
    with Loopback() as server:
        made = channel(f"{scheme}://localhost:{server.port}/3ccdd113474722377935511fc85d3dd4", "localhost")
        with pytest.raises(DeliveryRefused, match="ssrf_blocked"):
            delivered(made)

    assert server.asked == []


@pytest.mark.clause("X13")
def test_a_redirect_is_not_followed() -> None:
    def elsewhere(_: Asked) -> Answer:
        return Answer(307, headers=(("Location", f"http://127.0.0.1:{other.port}/"),))

    with Loopback() as other, Loopback(elsewhere) as server:
        made = channel(f"json://127.0.0.1:{server.port}/?redirect=yes", "127.0.0.1")
        with pytest.raises(ConnectionError, match="error=307"):
            delivered(made)

    assert other.asked == []


@pytest.mark.clause("X13")
def test_a_proxy_of_the_environment_is_an_address_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(DeliveryRefused, match="ssrf_blocked"):
            delivered(channel("json://hooks.example/"))

    assert proxy.asked == []


# --- what is said of it


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("tgrm://123456789:very-secret-token-of-a-bot/{to}", "did you mean tgram?"),
        ("tgram://very-secret-token-of-a-bot/{to}", "not one that Apprise takes"),
        ("json://:very-secret-token-of-a-bot@", "not one that Apprise takes"),
        ("mailto://very-secret-token-of-a-bot", "not one that Apprise takes"),
        (
            "json://hooks.example/?method=very-secret-token-of-a-bot",
            "The method specified (<hidden>)",
        ),
        ("mqtt://user:very-secret-token-of-a-bot@mqtt.example/topic", "write a channel for it"),
        ("ntfys://very-secret-token-of-a-bot@ntfy.example/a/b/{to}", "names 3 places"),
        ("file:///very-secret-token-of-a-bot", "which nobody knows"),
    ],
)
def test_a_bad_url_is_refused_with_its_path_and_without_its_secret(
    url: str, what: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said = refused(url)

    assert what in said
    assert "very-secret" not in said + caplog.text + "".join(capfd.readouterr())


def test_what_is_logged_of_a_delivery_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Loopback(lambda _: Answer(401)) as server:
        made = channel(
            f"json://user:very-secret@127.0.0.1:{server.port}/{SECRET}?-key=very%20secret", "127.0.0.1"
        )
        with pytest.raises(ConnectionError):
            delivered(made)

    assert {"apprise", "urllib3.connectionpool"} <= {record.name for record in caplog.records}
    assert not [text for text in caplog.messages if "very" in text or SECRET in text]


def test_a_chat_that_a_service_does_not_take_is_refused_for_good() -> None:
    with pytest.raises(DeliveryRefused, match="to 'a b'"):
        delivered(channel(TELEGRAM), to="a b")


def test_a_channel_takes_as_much_as_its_service_does_and_rings_for_nobody() -> None:
    made = channel(TELEGRAM)

    assert made.max_chars == 4096
    assert made.idempotent is False
    text, sent = fitted("x" * 5000, made)
    assert (len(text), sent) == (4096, 4096)
    text, _ = fitted("@everyone @here <!channel> <@U1> <b> ann@example.com", made)
    assert text.replace("\u200b", "|") == "@|everyone @|here <|!channel> <|@U1> <b> ann@example.com"
