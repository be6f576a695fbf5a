"""What is installed is what it should be: four typed packages and nothing beside them, the same from the sdist."""

import re
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from support.paths import ROOT

PACKAGES = {"intersession", "intersession_actors", "intersession_events", "intersession_projections"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


def build_wheel(source: Path, into: Path) -> set[str]:
    """Build a wheel and return the names in it."""
    wheel = next(WheelBuilder(str(source)).build(directory=str(into), versions=["standard"]))
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture
def wheel(tmp_path: Path) -> set[str]:
    return build_wheel(ROOT, tmp_path / "wheel")


@pytest.fixture
def unpacked_sdist(tmp_path: Path) -> Path:
    sdist = next(SdistBuilder(str(ROOT)).build(directory=str(tmp_path / "sdist"), versions=["standard"]))
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    return tmp_path / "unpacked" / f"intersession-{VERSION}"


def test_the_extra_all_has_every_other() -> None:
    extras = PROJECT["optional-dependencies"]

    assert extras["all"] == [f"intersession[{','.join(sorted(extras.keys() - {'all'}))}]"]


def test_nothing_but_our_packages_lands_in_site_packages(wheel: set[str]) -> None:
    assert {name.partition("/")[0] for name in wheel} == PACKAGES | {f"intersession-{VERSION}.dist-info"}


def test_the_page_of_an_index_has_addresses_and_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    """D12: README's relative links are dead on an index page."""
    build_wheel(ROOT, tmp_path)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        said = archive.read(f"intersession-{VERSION}.dist-info/METADATA").decode()

    head, _, readme = said.partition("\n\n")
    urls = {line.split(",")[0].removeprefix("Project-URL: ") for line in head.splitlines() if "-URL:" in line}
    assert urls == {"Changelog", "Documentation", "Issues", "Source"}
    assert "# Intersession" in readme
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []


def test_every_package_is_typed(wheel: set[str]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= wheel


def test_every_module_is_in_the_wheel(wheel: set[str]) -> None:
    modules = {
        str(path.relative_to(ROOT / folder))
        for folder in ("actors", "events", "projections")
        for path in (ROOT / folder).rglob("*.py")
    }

    assert modules == {name for name in wheel if name.endswith(".py")}


def test_the_command_and_the_licence_come_with_it(tmp_path: Path) -> None:
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    with zipfile.ZipFile(wheel) as archive:
        info = f"intersession-{VERSION}.dist-info"
        commands = archive.read(f"{info}/entry_points.txt").decode()
        names = archive.namelist()

    assert "intersession = intersession.cli:main" in commands
    assert f"{info}/licenses/LICENSE" in names


def test_the_sdist_has_what_somebody_needs_to_work_on_it(unpacked_sdist: Path) -> None:
    top = {path.name for path in unpacked_sdist.iterdir()}

    assert {
        "actors",
        "events",
        "projections",
        "tests",
        "docs",
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
    } <= top


def test_a_wheel_from_the_sdist_is_the_wheel_from_the_checkout(
    wheel: set[str], unpacked_sdist: Path, tmp_path: Path
) -> None:
    shutil.rmtree(unpacked_sdist / "tests")

    assert build_wheel(unpacked_sdist, tmp_path / "again") == wheel
