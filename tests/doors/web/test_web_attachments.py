"""The files of messages on the pages: pictures that are drawn, all else to be saved (FILE-8)."""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import pytest
from playwright.sync_api import expect

from intersession import File, MemoryChannel, SessionSystem, echo
from intersession_events.facts import AccessRecorded
from support.doors.chromium import WAIT_MS, Tab, chromium, found_by_axe
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WRITER, LiveGateway
from support.running import WAIT

expect.set_options(timeout=WAIT_MS)
SECRET: Final = "sk-proj-Aa9Bb8Cc7Dd6Ee5Ff4Gg3Hh2Ii1"
TEXT: Final = f"the key is {SECRET}\n".encode()
SVG: Final = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
NAME: Final = "Gr\u00fc\u00dfe; filename=x.exe.txt"


def png(width: int, height: int) -> bytes:
    """Return a picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\x00" + b"\x20\x80\x40" * width) * height
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


PNG: Final = png(40, 30)


class Served(NamedTuple):
    system: SessionSystem
    live: LiveGateway
    key: str

    def get(self, content: bytes, token: str = TOKEN, **given: str) -> httpx.Response:
        asked = {"session": self.key, "file": hashlib.sha256(content).hexdigest(), **given}
        with self.live.http(token) as client:
            return client.get("/debug/api/attachment", params=asked)


@pytest.fixture
def served(log_url: str) -> Iterator[Served]:
    with (
        SessionSystem(
            log_url,
            agents={"main": echo(), "ops": echo()},
            channels={"chat": MemoryChannel()},
            config=GATEWAY,
        ) as system,
        LiveGateway(system) as live,
    ):
        said: dict[str, Any] = {"channel": "chat", "chat_id": "1", "sender": "p", "wait": WAIT}
        files = [
            File(data=PNG, name="boat.png"),
            File(data=TEXT, name=NAME),
            File(data=SVG, name="a.svg"),
            File(data=b"\x00\x01", name="no.bin"),
        ]
        key = system.inbound(text="look", files=files, **said)["sessionKey"]
        system.inbound(text="more", agent_id="ops", files=[File(data=png(2, 2))], **said)
        yield Served(system, live, key)


@pytest.mark.clause("FILE-8", "VIS-4")
def test_a_picture_is_shown_and_all_else_is_saved(served: Served) -> None:
    picture, text, drawing = (served.get(content) for content in (PNG, TEXT, SVG))

    assert (picture.content, picture.headers["content-type"]) == (PNG, "image/png")
    assert picture.headers["content-disposition"] == "inline; filename*=UTF-8''boat.png"
    for saved, content in ((text, TEXT), (drawing, SVG)):
        assert (saved.content, saved.headers["content-type"]) == (content, "application/octet-stream")
        assert saved.headers["content-disposition"].startswith("attachment; ")
    assert text.headers["content-disposition"].endswith("Gr%C3%BC%C3%9Fe%3B%20filename%3Dx.exe.txt")
    for answer in (picture, text, drawing):
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    served.system.checkpoint()
    receipts = [
        one.event
        for one in served.system.log.all()
        if isinstance(one.event, AccessRecorded) and one.event.tool == "debug.attachment"
    ]
    assert len(receipts) == 3


@pytest.mark.clause("FILE-8", "HIST-5")
def test_a_limited_caller_has_the_files_of_its_sessions_and_a_text_without_secrets(served: Served) -> None:
    assert served.get(PNG, READER).content == PNG
    shown = served.get(TEXT, READER)
    assert (shown.status_code, SECRET.encode() in shown.content) == (200, False)

    hidden, absent = served.get(PNG, WRITER), served.get(PNG, WRITER, session="agent:none:main")
    assert hidden.status_code == absent.status_code == 403
    assert hidden.text.replace(served.key, "K") == absent.text.replace("agent:none:main", "K")
    others = served.get(png(2, 2), READER)
    never = served.get(b"never", READER)
    shas = [hashlib.sha256(one).hexdigest()[:16] for one in (png(2, 2), b"never")]
    assert others.status_code == never.status_code == 400
    assert others.text.replace(shas[0], "S") == never.text.replace(shas[1], "S")


@pytest.mark.clause("FILE-8")
@pytest.mark.parametrize("given", [{"file": "../../etc/passwd"}, {"file": "A" * 64}, {"name": "x"}])
def test_what_names_no_file_is_refused(served: Served, given: dict[str, str]) -> None:
    assert served.get(PNG, **given).status_code == 400


@pytest.mark.clause("FILE-7", "FILE-8")
def test_an_erased_file_is_gone(served: Served) -> None:
    served.system.erase(served.key, reason="asked for", unsent="giveUp")

    assert [served.get(one).status_code for one in (PNG, TEXT)] == [400, 400]


@pytest.mark.sqlite("changes the files of contents")
@pytest.mark.clause("FILE-8")
def test_a_file_that_is_lost_or_altered_is_said_to_be(served: Served) -> None:
    lost, altered = (served.system.log.files.path(hashlib.sha256(one).hexdigest()) for one in (PNG, TEXT))
    assert lost is not None
    assert altered is not None
    lost.unlink()
    altered.write_bytes(b"another text")

    gone, other = served.get(PNG), served.get(TEXT)
    assert (gone.status_code, other.status_code) == (400, 500)
    assert "boat.png is not there any more" in gone.text
    assert "is not as it was written" in other.text


@pytest.mark.nightly
@pytest.mark.timeout(240)
@pytest.mark.clause("FILE-8")
def test_pages_draw_pictures_and_save_files(served: Served, tmp_path: Path) -> None:
    run = served.system.debug.runs()["runs"][-1]["id"]
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, reduced_motion="reduce", accept_downloads=True
        )
        tab = Tab(context, served.live.address)
        tab.come_in()
        for path in (f"session/{served.key}", f"run/{run}?tab=transcripts", f"run/{run}?tab=lens"):
            tab.page.goto(f"{served.live.address}/debug/{path}")
            tab.page.locator(".picture").scroll_into_view_if_needed()
            picture = tab.page.get_by_role("img", name="boat.png", exact=True)
            expect(picture).to_be_visible()
            assert picture.evaluate("one => [one.width, one.height]") == [40, 30]
            assert picture.evaluate("one => [...one.getContext('2d').getImageData(9, 9, 1, 1).data]") == [
                0x20,
                0x80,
                0x40,
                255,
            ]
            with tab.page.expect_download() as coming:
                tab.page.get_by_role("link", name="a.svg", exact=True).click()
            assert coming.value.suggested_filename == "a.svg"
            coming.value.save_as(tmp_path / "a.svg")
            assert (tmp_path / "a.svg").read_bytes() == SVG
            assert found_by_axe(tab.page) == []
        tab.check()
