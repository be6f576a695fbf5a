"""The screenshots of the pages: the web debugger's views with the demo's log, in the system's Chromium.

python tests/support/pages/screenshots.py --write    makes docs/pictures/web-*.png anew
"""

import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from playwright.sync_api import Error

from support.doors.chromium import chromium, come_in
from support.doors.web_log import played

PICTURES: Final = Path(__file__).resolve().parents[3] / "docs" / "pictures"
WIDE: Final = (1280, 800)
NARROW: Final = (375, 812)


class View(NamedTuple):
    """A view: its name, its address (`RUN` is the exchange), and what is there once it is drawn."""

    name: str
    address: str
    drawn: str


class Look(NamedTuple):
    """How a view is looked at: what its picture is called behind its name, how wide it is, and whether it is dark."""

    suffix: str
    size: tuple[int, int] = WIDE
    dark: bool = False


EVERY: Final = (Look(""), Look("-dark", dark=True), Look("-narrow", NARROW))
README: Final = (Look("", (1280, 720)), Look("-dark", (1280, 720), dark=True))
VIEWS: Final = (
    View("readme", "run/RUN?at=turn:2", ".col .msg"),
    View("runs", "runs", "tbody tr"),
    View("run", "run/RUN?at=turn:2", ".col .msg"),
    View("why", "run/RUN?tab=why", ".rule"),
    View("prompt", "run/RUN?at=turn:2&tab=lens", ".sec .msg"),
    View("event", "run/RUN?at=turn:2&tab=event", ".diff"),
    View("marked", "run/RUN?at=turn:4&mark=36&tab=since", ".diff"),
    View("table", "run/RUN?at=turn:2&view=table&tab=raw", ".sec pre"),
    View("compare", "diff?a=RUN&b=RUN&other=FORK", ".dg .pair"),
    View("forks", "forks", "tbody tr"),
    View("sessions", "sessions", "tbody tr"),
    View("session", "session/agent:main:main", ".msg"),
    View("log", "log?at=46", ".sec pre"),
    View("deliveries", "deliveries", "tbody tr"),
    View("integrity", "integrity", ".kv"),
    View("settings", "settings", "tbody tr"),
    View("search", "search?words=ferry", "tbody tr"),
)


def taken() -> dict[str, bytes]:
    """Return each picture as PNG."""
    found: dict[str, bytes] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        played(store=Path(folder) / "demo.db") as (_, gateway),
        chromium() as browser,
        gateway.http() as client,
    ):
        run = client.get("/debug/api/runs", params={"kind": "exchange"}).json()["runs"][0]["id"]
        edit = {"kind": "reply", "value": "Only up to 2.8 tonnes this week: the deck is being mended."}
        asked = {"run": run, "at": f"{run}@turn:2", "edits": [edit], "agents": {"*": "recorded"}}
        made = client.post(
            "/debug/api/do",
            json={"method": "forks.make", "params": {**asked, "onDivergence": "live"}},
            timeout=60,
        )
        fork = made.json()["result"]["fork"]
        note = {"run": run, "at": f"{run}@turn:4", "text": "It never tells Ada. Why?"}
        client.post("/debug/api/do", json={"method": "notes.pin", "params": note})
        page = browser.new_context(reduced_motion="reduce", timezone_id="UTC").new_page()
        come_in(page, f"{gateway.address}/debug/")
        page.locator("tbody tr").first.wait_for()
        looks = ((view, look) for view in VIEWS for look in (README if view.name == "readme" else EVERY))
        for view, look in looks:
            page.set_viewport_size({"width": look.size[0], "height": look.size[1]})
            page.emulate_media(color_scheme="dark" if look.dark else "light")
            page.goto(f"{gateway.address}/debug/{view.address.replace('RUN', run).replace('FORK', fork)}")
            page.locator(view.drawn).first.wait_for()
            page.locator(".proof.ok").wait_for()
            # What was asked for behind what is there already. The live stream can stay open for longer than any wait.
            with suppress(Error):
                page.wait_for_load_state("networkidle", timeout=1_500)
            page.evaluate("() => document.fonts.ready")
            page.wait_for_function(
                "() => document.querySelector('.now b')?.textContent.includes('#') ?? true"
            )
            found[f"{view.name}{look.suffix}"] = page.screenshot(full_page=look.size == NARROW)
    return found


if __name__ == "__main__" and "--write" in sys.argv:
    for name, picture in taken().items():
        (PICTURES / f"web-{name}.png").write_bytes(picture)
        sys.stdout.write(f"web-{name}.png  {len(picture)}\n")
