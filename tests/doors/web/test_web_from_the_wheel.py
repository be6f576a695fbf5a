"""The web debugger out of the wheel that is released: installed alone, offline, with an empty cache, below a path of a proxy."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hatchling.builders.wheel import WheelBuilder
from playwright.sync_api import Route, expect

from support.doors.chromium import WAIT_MS, Tab, chromium
from support.doors.proxied import PREFIX, proxied
from support.paths import ROOT

expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install the wheel in an environment of its own; return its Python. What it needs is there already: no index is asked."""
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "wheel"), versions=["standard"]))
    place = tmp_path / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    install = [
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--target",
        str(site),
        wheel,
    ]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)
    # A folder that a .pth file names is searched last, and the .pth files in it are not read: this tree is not found.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return place / "bin" / "python"


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing leads back to this tree, or to a proxy."""
    left_out = ("PYTHON", "VIRTUAL_ENV", "INTERSESSION", "OPENCLAW")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(left_out)}
    return kept | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def debugged(installed: Path, tmp_path: Path) -> Iterator[str]:
    """Play the demo and open it, as somebody does who has just installed the wheel; yield the address that is printed."""
    command = [str(installed), "-m", "intersession"]
    env = environment(tmp_path)
    where = [str(installed), "-c", "import intersession; print(intersession.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, env=env, cwd=tmp_path).stdout
    assert Path(found.strip()).is_relative_to(tmp_path), found
    demo = [*command, "demo", "--store", "demo.db"]
    subprocess.run(demo, check=True, capture_output=True, env=env, cwd=tmp_path)
    debug = [*command, "debug", "demo.db", "--no-browser"]
    with subprocess.Popen(debug, stdout=subprocess.PIPE, text=True, env=env, cwd=tmp_path) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if "http://" in line)
            yield re.findall(r"http://\S+", line)[0]
        finally:
            process.terminate()


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_wheel_alone_shows_a_run_offline_with_an_empty_cache_below_a_path_of_a_proxy(
    debugged: str,
) -> None:
    given = urlsplit(debugged)
    with proxied(given.port or 0) as proxy, chromium() as browser:
        origin = f"http://127.0.0.1:{proxy.port}"
        context = browser.new_context(reduced_motion="reduce")

        def offline(route: Route) -> None:
            route.continue_() if route.request.url.startswith(f"{origin}{PREFIX}/") else route.abort()

        context.route("**/*", offline)
        tab = Tab(context, f"{origin}{PREFIX}/")
        page = tab.page
        page.goto(f"{origin}{PREFIX}{given.path}#{given.fragment}")
        row = page.get_by_role("row").filter(has_text="The limit of turns was reached")
        expect(row).to_be_visible()
        row.get_by_role("link").click()
        expect(page.get_by_role("slider", name="Place in the run")).to_be_visible()
        expect(page.get_by_label("Transcript of research")).to_contain_text("Up to 3.5 tonnes.")
        expect(page.locator(".proof")).to_contain_text("Verified")
        expect(page.locator(".status")).to_contain_text("live")
        page.reload()
        expect(page.get_by_label("Transcript of research")).to_contain_text("Up to 3.5 tonnes.")

        assert proxy.outside == []
        tab.check()
