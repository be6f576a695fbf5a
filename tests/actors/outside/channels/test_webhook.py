"""Plain http channels: what arrives, what every failure means, and that nothing leads to a private address."""

import json
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from intersession import ConfigError, DeliveryInDoubt, DeliveryLater, DeliveryRefused, Outbound
from intersession_actors.outside.channels.addresses import THIS_NETWORK, Network, is_public
from intersession_actors.outside.channels.channels import Channel
from intersession_actors.outside.channels.configured import configured_channels
from intersession_actors.rules.config.config import load_config
from support.hostile import given, row_id, rows
from support.loopback import Answer, Asked, Loopback

PUBLIC = "93.184.216.34"
OUTBOUND = Outbound(channel="ops", to="42", thread="7", account="bot", text="<b>hello</b>", key="key-1")


def channel(url: str, *hosts: str, network: Network = THIS_NETWORK) -> Channel:
    config = load_config({"channels": {"ops": {"deliver": url, "allowHosts": list(hosts)}}}).config
    return configured_channels(config, network)["ops"]


def delivered(made: Channel, outbound: Outbound = OUTBOUND) -> Any:
    assert callable(made.deliver)
    return made.deliver(outbound)


class Names:
    """Names that resolve as a test says, each time to the next answer; `connected` is where connections went.

    What is public is not there: it is led to `public`, a server on this machine.
    """

    def __init__(self, answers: dict[str, list[Sequence[str]]], public: int | None = None) -> None:
        self._answers = {name: list(answers[name]) for name in answers}
        self._public = public
        self.asked: list[str] = []
        self.connected: list[str] = []

    @property
    def network(self) -> Network:
        return Network(resolve=self._resolve, connect=self._connect)

    def _resolve(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, f"nobody knows {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _connect(self, address: tuple[str, int], timeout: float) -> socket.socket:
        self.connected.append(address[0])
        if is_public(address[0]):
            if self._public is None:
                raise ConnectionRefusedError("nobody is there")
            return socket.create_connection(("127.0.0.1", self._public), timeout)
        return socket.create_connection(address, timeout)


def test_a_text_is_posted_as_json_with_its_key() -> None:
    with Loopback(lambda _: Answer(201, b'{"id": 7}')) as server:
        receipt = delivered(channel(f"http://127.0.0.1:{server.port}/hook/{{to}}?t={{thread}}", "127.0.0.1"))

    assert receipt == {"status": 201, "answer": {"id": 7}}
    (asked,) = server.asked
    assert asked.path == "/hook/42?t=7"
    assert asked.headers["Idempotency-Key"] == "key-1"
    assert asked.headers["Host"] == f"127.0.0.1:{server.port}"
    assert json.loads(asked.body) == {
        "channel": "ops",
        "to": "42",
        "thread": "7",
        "account": "bot",
        "text": "<b>hello</b>",
        "key": "key-1",
    }


@pytest.mark.parametrize("body", [b"", b"ok", b"[" * 3000, b'"' + b"x" * 4095 + b'"'])
def test_an_answer_that_is_no_short_json_is_left_out_of_the_receipt(body: bytes) -> None:
    with Loopback(lambda _: Answer(200, body)) as server:
        assert delivered(channel(f"http://127.0.0.1:{server.port}", "127.0.0.1")) == {"status": 200}


def test_an_answer_of_four_kibibytes_of_json_goes_into_the_receipt() -> None:
    with Loopback(lambda _: Answer(200, b'"' + b"x" * 4094 + b'"')) as server:
        receipt = delivered(channel(f"http://127.0.0.1:{server.port}", "127.0.0.1"))

    assert receipt == {"status": 200, "answer": "x" * 4094}


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, ConnectionError) for status in (408, 409, 425, 429, 500, 503, 504, 599)),
        *((status, DeliveryRefused) for status in (400, 401, 403, 404, 410, 422, 426, 428, 431, 451, 499)),
    ],
)
def test_what_the_other_side_says_decides_whether_it_is_tried_again(
    status: int, error: type[Exception]
) -> None:
    with Loopback(lambda _: Answer(status)) as server, pytest.raises(error, match=f"HTTP {status}"):
        delivered(channel(f"http://127.0.0.1:{server.port}", "127.0.0.1"))


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": "Tue, 24 Nov 2026 06:02:30 GMT", "Date": "Tue, 24 Nov 2026 06:00:00 GMT"}, 150),
        ({"Retry-After": "Tue, 24 Nov 2026 05:00:00 GMT", "Date": "Tue, 24 Nov 2026 06:00:00 GMT"}, 0),
    ],
)
def test_the_other_side_says_when_it_wants_to_be_asked_again(
    status: int, headers: dict[str, str], seconds: int
) -> None:
    answer = Answer(status, b"", (*headers.items(),))
    with Loopback(lambda _: answer) as server, pytest.raises(DeliveryLater, match=f"HTTP {status}") as raised:
        delivered(channel(f"http://127.0.0.1:{server.port}", "127.0.0.1"))

    assert raised.value.seconds == seconds


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("said", ["soon", "-5", "", "1.5 hours"])
def test_a_time_that_can_not_be_read_is_as_none(said: str) -> None:
    answer = Answer(429, b"", (("Retry-After", said),))
    with Loopback(lambda _: answer) as server, pytest.raises(ConnectionError, match="HTTP 429"):
        delivered(channel(f"http://127.0.0.1:{server.port}", "127.0.0.1"))


@pytest.mark.clause("ANN-3")
def test_no_answer_leaves_it_in_doubt_and_no_connection_does_not() -> None:
    with Loopback(lambda _: None) as server:
        made = channel(f"http://127.0.0.1:{server.port}", "127.0.0.1")
        with pytest.raises(DeliveryInDoubt):
            delivered(made)

    with pytest.raises(ConnectionRefusedError):
        delivered(made)


def test_what_speaks_no_tls_is_not_told_anything() -> None:
    with Loopback() as server, pytest.raises(OSError, match=r"(?i)ssl|tls"):
        delivered(channel(f"https://127.0.0.1:{server.port}/secret", "127.0.0.1"))

    assert server.asked == []


# --- private addresses

AS_THEY_STAND = [row for row in rows("W") if " " not in given(row)]  # the others are tests of their own below
MORE = [
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://0/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1%25eth0]/",
    "http://localhost/",
    "http://localhost./",
    "http://metadata.google.internal/",
    "http://printer.lan/",
    "http://100.64.0.1/",
    "http://10.0.0.1:22/",
    "http://public.example@127.0.0.1/",
    "http://127.0.0.1#@public.example/",
    "http://127.0.0.1\\@public.example/",
    "http:///127.0.0.1/",
    "http://①②⑦.0.0.1/",
    "gopher://127.0.0.1:11211/_x",
    "ftp://127.0.0.1/",
    "unix:///var/run/docker.sock",
    "//127.0.0.1/",
]
RESOLVES: dict[str, list[Sequence[str]]] = {
    "localhost.localdomain": [["127.0.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "printer.lan": [["192.168.1.9", PUBLIC]],
    "rebind.example": [[PUBLIC], ["127.0.0.1"]],
    "ok.example": [[PUBLIC]],
}


def refusal(url: str, names: Names) -> str:
    """Return how a URL is refused: when the configuration is read, or when a text is to go out."""
    try:
        made = channel(url, network=names.network)
    except ConfigError as error:
        return str(error)
    with pytest.raises(DeliveryRefused) as refused:
        delivered(made)
    return str(refused.value)


@pytest.mark.clause("X13")
@pytest.mark.parametrize("url", [given(row) for row in AS_THEY_STAND] + MORE)
def test_a_url_that_leads_to_a_private_place_is_refused_before_anything_is_connected(url: str) -> None:
    pytest.importorskip("apprise")  # it says which other schemes there are
    names = Names(RESOLVES)

    assert refusal(url, names)
    assert names.connected == []


@pytest.mark.clause("X13")
@pytest.mark.parametrize("row", [row for row in AS_THEY_STAND if given(row).startswith("http")], ids=row_id)
def test_the_refusal_of_a_private_address_says_that_it_is_one(row: dict[str, Any]) -> None:
    assert "ssrf_blocked" in refusal(given(row), Names(RESOLVES))


@pytest.mark.clause("X13")
def test_a_name_is_resolved_once_so_that_a_second_answer_leads_nowhere() -> None:
    # W10: rebind.example is public when it is looked at, and 127.0.0.1 when it is asked for again.
    with Loopback() as private:
        names = Names(RESOLVES)
        with pytest.raises(ConnectionRefusedError):
            delivered(channel(f"http://rebind.example:{private.port}/", network=names.network))

    assert names.asked == ["rebind.example"]
    assert names.connected == [PUBLIC]
    assert private.asked == []

    with pytest.raises(DeliveryRefused, match="ssrf_blocked"):
        delivered(channel("http://rebind.example/", network=names.network))
    assert names.connected == [PUBLIC]


def redirects_to(port: int, status: int) -> Callable[[Asked], Answer]:
    return lambda _: Answer(status, headers=(("Location", f"http://127.0.0.1:{port}/"),))


@pytest.mark.clause("X13")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    # W11, without TLS: a public place that sends one on to a private one.
    with Loopback() as private, Loopback(redirects_to(private.port, status)) as public:
        names = Names(RESOLVES, public.port)
        with pytest.raises(DeliveryRefused, match=f"HTTP {status}.*redirects are not followed"):
            delivered(channel("http://ok.example/", network=names.network))

    assert len(public.asked) == 1
    assert private.asked == []
    assert names.connected == [PUBLIC]


@pytest.mark.clause("X13")
def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as proxy, Loopback() as public:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        delivered(channel("http://ok.example/", network=Names(RESOLVES, public.port).network))

    assert proxy.asked == []
    assert len(public.asked) == 1


@pytest.mark.clause("X13")
@pytest.mark.parametrize("to", ["../admin", "x?y", "x#y", "@127.0.0.1", "\\127.0.0.1"])
def test_no_chat_leads_a_text_elsewhere(to: str) -> None:
    with Loopback() as public:
        names = Names(RESOLVES, public.port)
        made = channel("http://ok.example/chat/{to}", network=names.network)
        try:
            delivered(made, Outbound(channel="ops", to=to, text="hello", key="key"))
        except DeliveryRefused:
            assert public.asked == []
        else:
            assert [asked.path for asked in public.asked] == ["/chat/%40127.0.0.1"]
    assert {*names.connected} <= {PUBLIC}
