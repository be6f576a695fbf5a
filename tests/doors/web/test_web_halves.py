"""A login is two halves: the cookie, which browsers send to every port of a machine, and a word that the page keeps."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from intersession.web.alone import Alone
from intersession.web.questions.table import routes
from intersession_actors.hindsight.debugger.opened import open_log
from support.doors.chromium import WAIT_MS, chromium, come_in
from support.doors.command_line import DemoLog
from support.doors.gateway_live import READER, TOKEN, LiveGateway
from support.doors.page_questions import ASKED
from support.doors.web_log import played
from support.every_day import every_day

expect.set_options(timeout=WAIT_MS)
API: Final = "/debug/api/"
REVEAL: Final = {"method": "POST", "url": f"{API}reveal", "json": {"at": 20}}
DO: Final = {
    "method": "POST",
    "url": f"{API}do",
    "json": {"method": "notes.pin", "params": {"run": "RUN", "text": "seen"}},
}


class Served(NamedTuple):
    live: LiveGateway
    run: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with played(store=tmp_path_factory.mktemp("halves") / "played.db") as (system, live):
        yield Served(live, system.debug.runs(kind=["exchange"])["runs"][0]["id"])


def whole_table() -> list[dict[str, Any]]:
    """Return a request for each route that the debugger has, as its table has them, and for each action."""
    gets: list[dict[str, Any]] = []
    for route in routes():
        (path,) = route.paths
        name = path.removeprefix(API)
        if name == "reveal":
            continue
        given = {"run": "RUN", "what": "log"} if name == "file" else ASKED.get(name, [{}])[0]
        gets.append({"method": "GET", "url": path, "params": given})
    return [*gets, REVEAL, DO]


def asked(client: httpx.Client, run: str, asking: dict[str, Any], **headers: str) -> int:
    """Ask; return the status. A stream is not read."""
    given = {**asking, "params": {key: _of(run, one) for key, one in asking.get("params", {}).items()}}
    if asking is DO:
        given["json"] = {"method": "notes.pin", "params": {"run": run, "text": "seen"}}
    with client.stream(**given, headers=headers) as answer:
        return answer.status_code


def _of(run: str, value: Any) -> Any:
    return value.replace("RUN", run) if isinstance(value, str) else value


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("token", every_day({"operator": TOKEN, "limited": READER}, "limited"))
def test_each_question_of_the_table_takes_both_halves(served: Served, token: str) -> None:
    with served.live.http(None) as client:
        page = client.post("/debug/login", json={"token": token}, headers={"x-intersession": "1"}).json()[
            "page"
        ]
        table = whole_table()
        replayed = {one["url"]: asked(client, served.run, one) for one in table}
        with_any = {one["url"]: asked(client, served.run, one, **{"x-intersession": "1"}) for one in table}
        both = {one["url"]: asked(client, served.run, one, **{"x-intersession": page}) for one in table}
        client.cookies.clear()
        page_alone = {one["url"]: asked(client, served.run, one, **{"x-intersession": page}) for one in table}

    assert {
        f"{API}{name}" for name in (*ASKED, "attachment", "live", "file", "about", "do", "reveal")
    } <= both.keys()
    assert {*replayed.values(), *with_any.values(), *page_alone.values()} == {401}
    assert 401 not in both.values()
    if token == TOKEN:
        assert {both[f"{API}{name}"] for name in ("about", "runs", "file", "live", "reveal", "do")} == {200}


@pytest.mark.clause("VIS-6")
def test_the_halves_of_two_logins_are_no_login(served: Served) -> None:
    halves: list[tuple[str, str]] = []
    for _ in range(2):
        with served.live.http(None) as client:
            page = client.post("/debug/login", json={"token": TOKEN}, headers={"x-intersession": "1"})
            halves.append((client.cookies["intersession"], page.json()["page"]))

    def status(cookie: str, *pages: str) -> int:
        headers = [("cookie", f"intersession={cookie}"), *(("x-intersession", page) for page in pages)]
        with served.live.http(None) as client:
            return client.get(f"{API}about", headers=headers).status_code

    (one, its), (two, others) = halves
    assert [status(one, its), status(two, others)] == [200, 200]
    assert [status(one, others), status(two, its), status(one, its, its), status(its, one)] == [401] * 4


async def test_a_log_alone_takes_both_halves_for_each_question(demo_log: DemoLog) -> None:
    with open_log(demo_log.path) as log:
        alone = Alone(monotonic=lambda: 0.0)
        alone.opened(log.debug.view.reader)
        app: Any = alone  # each library has its own types of ASGI
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000"
        ) as client:
            login = await client.post(
                "/debug/login", json={"token": alone.word}, headers={"x-intersession": "1"}
            )
            urls = [one["url"] for one in whole_table() if one["method"] == "GET"]
            replayed = {(await client.get(url)).status_code for url in urls}
            both = await client.get(f"{API}about", headers={"x-intersession": login.json()["page"]})
            page = await client.get("/debug/runs")

    assert (replayed, both.status_code, page.status_code) == ({401}, 200, 200)


def came_to(page: Page, heading: str) -> None:
    come_in(page)
    expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()


def other_port(context: BrowserContext, address: str) -> list[str]:
    """Open a page of another server on this machine, whose script asks this one; return what it got, as its browser says."""
    page = context.new_page()
    page.route("http://127.0.0.1:9/", lambda route: route.fulfill(body="<p>x", content_type="text/html"))
    page.goto("http://127.0.0.1:9/")
    found: list[str] = page.evaluate(
        """async address => {
          const heard = [];
          const tabs = new BroadcastChannel('intersession /debug/');
          tabs.onmessage = ({ data }) => heard.push(`heard ${JSON.stringify(data)}`);
          tabs.postMessage({ wanted: true });
          for (const headers of [{}, { 'x-intersession': '1' }]) {
            try {
              const answer = await fetch(`${address}/debug/api/about`, { credentials: 'include', headers });
              heard.push(`${answer.status}`);
            } catch {
              heard.push('refused');
            }
          }
          return [...heard, sessionStorage.length];
        }""",
        address,
    )
    page.close()
    return [str(one) for one in found]


@pytest.mark.ci
@pytest.mark.clause("VIS-6")
@pytest.mark.timeout(240)
def test_a_tab_stays_in_and_lets_the_next_one_in_and_a_tab_by_itself_shows_the_door(served: Served) -> None:
    address = served.live.address
    place = f"{address}/debug/sessions?search=research"
    with chromium() as browser:
        context = browser.new_context(reduced_motion="reduce", accept_downloads=True)
        first = context.new_page()
        first.goto(place)
        came_to(first, "Sessions")
        assert first.url == place
        first.reload()
        expect(first.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
        expect(first.locator(".status")).to_contain_text("live")

        (sent_there,) = context.cookies("http://127.0.0.1:9/debug/elsewhere")
        assert (sent_there["name"], sent_there["httpOnly"]) == ("intersession", True)
        assert other_port(context, address) == ["refused", "refused", "0"]
        second = context.new_page()
        second.goto(f"{address}/debug/run/{served.run}?at=turn:2")
        expect(second.locator(".now")).to_contain_text("after turn 2")
        second.keyboard.press("s")
        with second.expect_download() as coming:
            second.get_by_role("dialog").get_by_role("link", name="The run as a log").click()
        assert re.fullmatch(r"run-\w{8}\.db", coming.value.suggested_filename)
        assert coming.value.path().read_bytes().startswith(b"SQLite format 3")

        first.close()
        second.close()
        third = context.new_page()
        third.goto(place)
        expect(third.get_by_label("Token")).to_be_visible()
        fourth = context.new_page()
        fourth.goto(place)
        expect(fourth.get_by_label("Token")).to_be_visible()
        came_to(third, "Sessions")
        expect(fourth.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()

        third.get_by_role("button", name="Leave").click()
        expect(third.get_by_label("Token")).to_be_visible()
        third.reload()
        expect(third.get_by_label("Token")).to_be_visible()
        fourth.reload()
        expect(fourth.get_by_label("Token")).to_be_visible()
