"""Who gets in with a browser, and what a cookie is good for; the pages without anybody in; the debugger that stands alone."""

import gzip
import json
import lzma
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import intersession.web
from intersession import SessionSystem
from intersession.cli.host.hosting import forking_beside
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import Reading
from intersession.web.alone import Alone, Coming, Deed
from intersession.web.files import file_at
from intersession.web.questions.of_forks import Forks, forks
from intersession.web.questions.of_the_log import Integrity, integrity
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.opened import open_log
from support.doors.command_line import DemoLog, ran
from support.doors.gateway_live import GATEWAY, READER, TOKEN, LiveGateway
from support.doors.web_log import played
from support.paths import ROOT
from support.running import merged

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
OURS = {"x-intersession": "1"}
STATIC = Path(intersession.web.__file__).parent / "static"


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with played() as (_, found):
        yield found


def logged_in(client: httpx.Client) -> httpx.Response:
    """Log in; from then on the client has both halves, the cookie and the page's."""
    answer = client.post("/debug/login", json={"token": TOKEN}, headers=OURS)
    if answer.status_code == 200:
        client.headers["x-intersession"] = answer.json()["page"]
    return answer


async def let_in(client: httpx.AsyncClient, word: str | None) -> httpx.Response:
    answer = await client.post("/debug/login", json={"token": word}, headers=OURS)
    if answer.status_code == 200:
        client.headers["x-intersession"] = answer.json()["page"]
    return answer


def test_the_token_gets_a_cookie_that_no_script_reads_and_no_other_site_sends(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        before = client.get("/debug/api/about").status_code
        answer = logged_in(client)
        after = client.get("/debug/api/about")

    cookie = answer.headers["set-cookie"]
    assert (before, answer.status_code, after.status_code) == (401, 200, 200)
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert TOKEN not in cookie + answer.text
    assert answer.json()["page"] not in cookie
    assert answer.headers["cache-control"] == "no-store"
    assert "Path" not in cookie, "a proxy may have put the debugger below another path"


def test_a_login_is_for_the_debuggers_questions_alone(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        logged_in(client)
        cookies = {"cookie": f"intersession={client.cookies['intersession']}"}
        bearers = [client.cookies["intersession"], client.headers["x-intersession"]]
        bearers += ["".join(bearers), ".".join(bearers)]
        calls = [
            client.post("/tools/invoke", json={"tool": "sessions_list"}, headers=cookies).status_code,
            client.get("/events", headers=cookies).status_code,
            client.get("/metrics", headers=cookies).status_code,
            *(
                client.get("/metrics", headers={"authorization": f"Bearer {word}"}).status_code
                for word in bearers
            ),
        ]

    assert calls == [401] * 7


def test_a_token_in_the_place_of_a_login_is_none_and_so_cannot_be_guessed_there(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        tried = [
            client.get(
                "/debug/api/about", headers={"cookie": f"intersession={cookie}", "x-intersession": page}
            )
            for cookie, page in ((TOKEN, "1"), (TOKEN, TOKEN), (TOKEN[:9], TOKEN[9:]))
        ]

    assert [answer.status_code for answer in tried] == [401, 401, 401]


def test_who_leaves_is_out_and_so_is_whose_cookie_was_made_up(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        logged_in(client)
        kept = {"cookie": f"intersession={client.cookies['intersession']}"}
        alone = client.post("/debug/logout", json={}, headers=OURS | kept)
        still = client.get("/debug/api/about", headers=kept)
        left = client.post("/debug/logout", json={}, headers=kept)
        again = client.get("/debug/api/about", headers=kept)
        made_up = client.get("/debug/api/about", headers={"cookie": "intersession=made-up"})

    assert "Max-Age=0" in left.headers["set-cookie"]
    assert (alone.status_code, still.status_code) == (200, 200), "whoever has the cookie alone ends nothing"
    assert (left.status_code, again.status_code, made_up.status_code) == (200, 401, 401)


@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [
        ({}, TOKEN, 403),
        (OURS, "wrong", 401),
        (OURS, "", 401),
        (OURS | {"origin": "https://evil.example"}, TOKEN, 403),
    ],
    ids=["no header", "wrong", "empty", "other origin"],
)
def test_nobody_else_gets_a_cookie(
    gateway: LiveGateway, headers: dict[str, str], token: str, status: int
) -> None:
    with gateway.http(None) as client:
        answer = client.post("/debug/login", json={"token": token}, headers=headers)

    assert (answer.status_code, "set-cookie" in answer.headers) == (status, False)


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/", "debug/"),
        ("/debug", "debug/"),
        ("/debug/", "./"),
        ("/debug/runs", "./"),
        ("/debug/run/46a2df48", "../"),
        ("/debug/session/agent:main:main", "../"),
    ],
)
def test_every_address_is_the_one_page_with_links_that_hold_below_any_prefix(path: str, base: str) -> None:
    found = file_at(path)

    assert found is not None
    text, headers = found.body.decode(), dict(found.headers)
    links = re.findall(r'(?:href|src)="([^"]+)"', text)
    assert links
    assert all(link.startswith(f"{base}static/") for link in links)
    assert headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    assert not re.search(r"<style|style=|<script(?![^>]*src=)|\son\w+=", text)


def test_a_file_is_kept_for_good_under_an_address_that_says_what_is_in_all_of_them() -> None:
    page = file_at("/debug/")
    assert page is not None
    first = re.findall(r'src="\./(static/\w{16}/)app\.js"', page.body.decode())[0]
    found = file_at(f"/debug/{first}app.js")

    assert found is not None
    assert dict(page.headers)["cache-control"] == "no-store"
    assert dict(found.headers)["cache-control"] == "public, max-age=31536000, immutable"
    for path in (
        "/debug/static/app.js",
        "/debug/static/0123456789abcdef/app.js",
        f"/debug/{first}../__init__.py",
        f"/debug/{first}nothing.js",
        f"/debug/{first}vendor",
        "/debug/api/runs",
    ):
        assert file_at(path) is None, path


def test_the_page_names_every_module_so_that_none_waits_for_another() -> None:
    page = file_at("/debug/run/46a2df48")

    assert page is not None
    asked = re.findall(r'(?:href|src)="\.\./(static/[^"]+\.m?js)"', page.body.decode())
    assert sorted(path.split("/", 2)[2] for path in asked) == sorted(
        path.relative_to(STATIC).as_posix() for path in [*STATIC.rglob("*.js"), *STATIC.rglob("*.mjs")]
    )
    assert all(file_at(f"/debug/{path}") for path in asked)


@pytest.mark.parametrize("path", ["/debug/runs", "app.js", "base/tokens.css", "icon.svg"])
def test_files_go_over_the_wire_small_to_whoever_reads_them_so(path: str) -> None:
    page = file_at("/debug/")
    assert page is not None
    tagged = re.findall(r"static/\w{16}/", page.body.decode())[0]
    address = path if path.startswith("/") else f"/debug/{tagged}{path}"
    plain, packed = file_at(address, encodings="br"), file_at(address, encodings="gzip, deflate, br")

    assert plain is not None
    assert packed is not None
    assert gzip.decompress(packed.body) == plain.body
    assert (dict(packed.headers)["content-encoding"], "content-encoding" in dict(plain.headers)) == (
        "gzip",
        False,
    )
    assert "accept-encoding" in dict(plain.headers)["vary"]


def test_the_page_weighs_little_asks_nothing_elsewhere_and_sets_no_markup() -> None:
    modules = [path for kind in ("js", "css", "mjs", "html") for path in STATIC.rglob(f"*.{kind}")]
    weight = sum(len(gzip.compress(path.read_bytes(), 6)) for path in modules)
    own = {path.name: path.read_text(encoding="utf-8") for path in STATIC.rglob("*.js")}

    assert weight <= 158_000
    for name, text in own.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|dangerously", text
        ), name
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), name
    for folder in (STATIC / "vendor").iterdir():
        assert re.fullmatch(r"[a-z-]+-\d+\.\d+\.\d+", folder.name), (
            "vendored files are pinned by their folder"
        )
        assert (folder / "LICENSE").is_file()


def test_without_the_setting_there_is_neither_page_nor_login() -> None:
    with played(gateway={"controlUi": {"enabled": False}}) as (_, gateway), gateway.http(None) as client:
        page = client.get("/debug/runs", headers={"accept": BROWSER})
        login = logged_in(client)
        program = client.get("/debug/api/about", headers={"authorization": f"Bearer {TOKEN}"})

    assert (page.status_code, login.status_code, program.status_code) == (401, 404, 200)


def test_a_program_that_asks_for_no_page_gets_none(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        page = client.get("/debug/runs", headers={"accept": BROWSER})
        program = client.get("/debug/runs", headers={"accept": "*/*"})

    assert (page.status_code, program.status_code) == (200, 401)
    assert page.headers["content-type"] == "text/html; charset=utf-8"


async def test_a_log_of_another_version_is_verified_as_it_is_stored(tmp_path: Path) -> None:
    """Views that are folded beside such a log are no part of what is stored."""
    with lzma.open(ROOT / "tests" / "golden" / "0.1.0" / "demo.db.xz") as packed:
        (tmp_path / "demo.db").write_bytes(packed.read())
    with open_log(tmp_path / "demo.db") as log:
        found = integrity(log.debug.view, Integrity(verify=True))

    assert (found["ok"], found["findings"]) == (True, [])


def alone_on(reader: Reader, fork: Deed | None = None) -> Alone:
    alone = Alone(monotonic=lambda: 0.0)
    alone.opened(reader, fork)
    return alone


STRANGE = ["é", "\U0001f511", "\ud800", "\x00", "x" * 100_000]


async def test_no_word_and_no_cookie_is_too_strange_to_be_refused(demo_log: DemoLog) -> None:
    with open_log(demo_log.path) as log:
        app: Any = alone_on(log.debug.view.reader)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000"
        ) as client:
            bodies = [json.dumps({"token": word}) for word in STRANGE] + [
                "",
                "[" * 4_000,
                '{"token": 1}',
                "null",
            ]
            logins = [
                (await client.post("/debug/login", content=body, headers=OURS)).status_code for body in bodies
            ]
            cookies = [
                (
                    await client.get("/debug/api/about", headers={b"cookie": b"intersession=" + word})
                ).status_code
                for word in (b"\xe9", b"\xf0\x9f\x94\x91", b"\x00", b"=", b'"')
            ]

    assert set(logins + cookies) == {401}


@pytest.mark.parametrize("word", STRANGE[:2])
def test_a_gateway_refuses_a_strange_token_like_any_other(gateway: LiveGateway, word: str) -> None:
    with gateway.http(None) as client:
        login = client.post("/debug/login", json={"token": word}, headers=OURS)
        cookie = client.get("/debug/api/about", headers={b"cookie": f"intersession={word}".encode()})

    assert (login.status_code, cookie.status_code) == (401, 401)


async def test_a_log_alone_lets_in_once_by_its_word_and_changes_nothing(demo_log: DemoLog) -> None:
    with open_log(demo_log.path) as log:
        alone = alone_on(log.debug.view.reader)
        app: Any = alone  # each library has its own types of ASGI
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000"
        ) as client:
            word = alone.word
            before = (await client.get("/debug/api/about")).status_code
            wrong = (await client.post("/debug/login", json={"token": "guessed"}, headers=OURS)).status_code
            plain = (await client.post("/debug/login", json={"token": word})).status_code
            first = await let_in(client, word)
            about = (await client.get("/debug/api/about")).json()
            runs = (await client.get("/debug/api/runs")).json()["runs"]
            again = (await client.post("/debug/login", json={"token": word}, headers=OURS)).status_code
            others = [
                (await client.get("/debug/api/about", headers={"host": "evil.example"})).status_code,
                (await client.get("/debug/api/about", headers={"origin": "http://evil.example"})).status_code,
                (await client.post("/debug/api/runs", json={})).status_code,
                (await client.get("/elsewhere")).status_code,
            ]
            page = await client.get("/", headers={"accept": BROWSER})

    assert (before, wrong, plain, first.status_code, again) == (401, 401, 401, 200, 401)
    assert (about["readOnly"], about["isOperator"], len(runs)) == (True, True, 5)
    assert others == [421, 421, 405, 404]
    assert page.status_code == 200


@pytest.mark.clause("FORK-9")
async def test_a_log_alone_is_forked_beside_and_by_nobody_else(demo_log: DemoLog, tmp_path: Path) -> None:
    store = tmp_path / "demo.db"
    shutil.copy(demo_log.path, store)
    reading = Reading(store=str(store))
    with reader_of(reading) as reader, forking_beside(reader, reading) as fork:
        alone = alone_on(reader, fork)
        app: Any = alone  # each library has its own types of ASGI
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000"
        ) as client:
            deed: dict[str, Any] = {"method": "forks.make", "params": {}}
            outside = (await client.post("/debug/api/do", json=deed, headers=OURS)).status_code
            await let_in(client, alone.word)
            mine = client.headers.pop("x-intersession")
            replayed = (await client.post("/debug/api/do", json=deed, headers=OURS)).status_code
            client.headers["x-intersession"] = mine
            can = (await client.get("/debug/api/about")).json()["can"]
            (run,) = (await client.get("/debug/api/runs?kind=exchange")).json()["runs"]
            deed["params"] = {
                "run": run["id"],
                "at": f"{run['id']}@turn:2",
                "edits": [{"kind": "reply", "value": "Only up to 2.8 tonnes."}],
                "agents": {"*": "recorded"},
            }
            made = (await client.post("/debug/api/do", json=deed)).json()["result"]
            compared = (
                await client.get(
                    "/debug/api/compare", params={"a": run["id"], "b": made["run"], "other": made["fork"]}
                )
            ).json()
            removed = await client.post(
                "/debug/api/do",
                json={"method": "forks.remove", "params": {"fork": made["fork"]}},
            )
            other = await client.post("/debug/api/do", json={"method": "sessions.erase"})
            listed = (await client.get("/debug/api/forks")).json()["forks"]

    assert can == ["file", "forks.make", "forks.remove"]
    assert (outside, replayed, other.status_code) == (401, 401, 400)
    assert compared["firstDivergence"]["turn"] == "turn:2"
    assert (removed.status_code, listed) == (200, [])


@pytest.mark.clause("LIVE-1")
def test_what_a_page_has_done_takes_the_scope_of_the_method_and_both_halves(gateway: LiveGateway) -> None:
    deed = {"method": "exchanges.hold", "params": {"sessionKey": "agent:main:main"}}
    undone = {"method": "exchanges.release", "params": {"sessionKey": "agent:main:main", "forGood": True}}
    with gateway.http(None) as client:
        logged_in(client)
        can = client.get("/debug/api/about").json()["can"]
        plain = client.post("/debug/api/do", json=deed, headers=OURS)
        done = client.post("/debug/api/do", json=deed)
        undo = client.post("/debug/api/do", json=undone)
        other = client.post("/debug/api/do", json={"method": "sessions.erase"})
    with gateway.http(READER) as client:
        reads = client.post("/debug/api/do", json=deed)
        sees = client.get("/debug/api/about").json()["can"]

    assert {
        "deliveries.retry",
        "calls.release",
        "exchanges.hold",
        "exchanges.release",
        "notes.pin",
        "runs.retry",
        "file",
    } <= {*can}
    assert (plain.status_code, done.status_code, other.status_code) == (401, 200, 400)
    assert undo.status_code in {200, 400}, undo.text
    assert (reads.status_code, sees) == (403, [])


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("question", ["about", "events", "live"])
def test_who_may_not_read_is_told_nothing_by_no_question(question: str) -> None:
    approver = {"name": "approver", "token": "a-token-that-approves", "scopes": ["operator.approvals"]}
    with (
        SessionSystem(
            ":memory:", config=merged(GATEWAY, {"gateway": {"auth": {"credentials": [approver]}}})
        ) as system,
        LiveGateway(system) as live,
        live.http("a-token-that-approves") as client,
        client.stream("GET", f"/debug/api/{question}") as answer,
    ):
        assert answer.status_code == 403
        assert b"missing scope: operator.read" in answer.read()


@pytest.mark.clause("FORK-9")
def test_the_forks_beside_a_log_are_listed_with_where_they_were_cut(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store = demo_log.copy(tmp_path)
    made = ran(
        "fork",
        demo_log.exchange,
        "--at",
        f"{demo_log.exchange}@turn:2",
        "--no-run",
        "--store",
        store,
        "--json",
    )
    assert made.exit_code == 0, made.err
    with open_log(store) as log:
        (fork,) = forks(log.debug.view, Forks(run=demo_log.exchange))["forks"]
        others = forks(log.debug.view, Forks(run=demo_log.spawn))["forks"]

    assert fork["run"] == demo_log.exchange
    assert fork["place"]["text"] == "after turn 2: research has answered, main has not yet"
    assert Path(fork["file"]).is_file()
    assert others == []


async def test_a_log_that_is_still_imported_says_how_far_it_is_to_who_is_in(demo_log: DemoLog) -> None:
    with open_log(demo_log.path) as log:
        alone = Alone(monotonic=lambda: 0.0, coming=Coming(what="state", done=400, total=2_446))
        app: Any = alone
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000"
        ) as client:
            outside = (await client.get("/debug/api/about")).status_code
            await let_in(client, alone.word)
            meanwhile = await client.get("/debug/api/about")
            alone.opened(log.debug.view.reader)
            then = await client.get("/debug/api/about")

    assert (outside, meanwhile.status_code, then.status_code) == (401, 503, 200)
    told = meanwhile.json()["error"]
    assert (told["type"], told["what"], told["done"], told["total"]) == ("importing", "state", 400, 2_446)


def test_a_file_that_is_not_there_is_told_by_its_own_name(tmp_path: Path) -> None:
    """It was taken for a run, and another store was said to be missing."""
    for missing in (tmp_path / "last-night.db", Path("last-night.db")):
        told = ran("debug", missing, "--no-browser", "--store", tmp_path / "other.db")
        assert told.exit_code == 3
        assert "last-night.db" in told.err
