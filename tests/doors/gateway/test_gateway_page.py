"""What a browser gets from the gateway (finding D6): a page for people, where a program gets JSON."""

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession import SessionSystem, echo
from intersession.gateway.http.page import page, wants_page
from support.doors.gateway_live import GATEWAY, TOKEN, LiveGateway
from support.running import merged

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def live(**control_ui: Any) -> Iterator[LiveGateway]:
    config = merged(GATEWAY, {"gateway": {"controlUi": control_ui}})
    with (
        SessionSystem(":memory:", agents={"main": echo()}, config=config) as system,
        LiveGateway(system) as gateway,
    ):
        yield gateway


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    yield from live()


@pytest.fixture
def without_page() -> Iterator[LiveGateway]:
    yield from live(enabled=False)


def opened(gateway: LiveGateway, path: str, accept: str | None = BROWSER, **headers: str) -> httpx.Response:
    with gateway.http(None) as client:
        asked = headers if accept is None else {"accept": accept, **headers}
        return client.get(path, headers=asked)


class Seen(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_browser_is_told_what_this_is_and_how_to_get_in(gateway: LiveGateway) -> None:
    answer = opened(gateway, "/events")

    seen = Seen(answer.text)
    links = [attributes["href"] for tag, attributes in seen.tags if tag == "a"]
    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert f"{gateway.address}/debug/" in links
    assert "session tools of the AI agents" in seen.text
    assert f"curl {gateway.address}/tools/invoke" in seen.text
    assert "gateway.auth.token" in seen.text
    assert f"{gateway.address}/openapi.json" in links
    assert any("docs" in str(link) for link in links)
    assert TOKEN not in answer.text


def test_the_page_holds_to_its_own_policy(gateway: LiveGateway) -> None:
    answer = opened(gateway, "/metrics")

    policy = answer.headers["content-security-policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    seen = Seen(answer.text)
    assert "default-src 'none'" in policy
    assert f"style-src 'sha256-{digest}'" in policy
    assert not {"script", "img", "link", "iframe", "form", "object"} & {tag for tag, _ in seen.tags}
    assert not [
        name for _, attributes in seen.tags for name in attributes if name[:2] == "on" or name == "style"
    ]


@pytest.mark.parametrize("path", ["/events", "/metrics", "/mcp", "/nowhere/at/all"])
def test_what_is_refused_is_said_on_the_page_with_its_status(gateway: LiveGateway, path: str) -> None:
    answer = opened(gateway, path)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "Not answered: Unauthorized" in Seen(answer.text).text


def test_another_hosts_name_stands_on_no_page(gateway: LiveGateway) -> None:
    answer = opened(gateway, "/", host="evil.example")

    assert answer.status_code == 421
    assert "gateway.allowedHosts" in Seen(answer.text).text
    assert "evil.example" not in answer.text


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream", "text/html;q=0"])
def test_a_program_gets_json_as_before(gateway: LiveGateway, accept: str | None) -> None:
    answer = opened(gateway, "/", accept)

    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/json")
    assert answer.json() == {"ok": False, "error": {"type": "unauthorized", "message": "Unauthorized"}}


def test_a_call_gets_json_whatever_it_accepts(gateway: LiveGateway) -> None:
    with gateway.http(None, follow_redirects=False) as client:
        answer = client.post("/tools/invoke", json={"tool": "agents_list"}, headers={"accept": BROWSER})

    assert (answer.status_code, answer.json()["ok"]) == (401, False)


@pytest.mark.parametrize("path", ["/", "/events"])
def test_without_the_setting_there_is_no_page(without_page: LiveGateway, path: str) -> None:
    """Before: `gateway.controlUi.enabled` did nothing."""
    answer = opened(without_page, path)

    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/json")


@given(st.text(), st.text())
def test_what_is_said_on_the_page_is_text(address: str, refused: str) -> None:
    seen = Seen(page(address, refused=f"{refused}<script>").decode(errors="replace"))

    assert "script" not in {tag for tag, _ in seen.tags}
    assert {tag for tag, _ in seen.tags} == {tag for tag, _ in Seen(page("", refused="").decode()).tags}


@pytest.mark.parametrize(
    ("method", "accept", "wants"),
    [
        ("GET", BROWSER, True),
        ("HEAD", "TEXT/HTML", True),
        ("GET", "application/json, text/html;q=0.5", True),
        ("GET", "text/html; q=0.000, */*", False),
        ("GET", "text/html; charset=utf-8; q=0", False),
        ("GET", "text/html;q=0.001", True),
        ("GET", "text/*", False),
        ("GET", "", False),
        ("POST", BROWSER, False),
        ("GET", None, False),
    ],
)
def test_only_who_asks_for_html_by_name_gets_a_page(method: str, accept: str | None, *, wants: bool) -> None:
    assert wants_page(method, accept) is wants
