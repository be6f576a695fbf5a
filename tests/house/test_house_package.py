"""What is installed is what it should be: four typed packages and nothing beside them, the same from the sdist."""

import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from intersession_events.basics import machine
from support.paths import ROOT

PACKAGES = {"intersession", "intersession_actors", "intersession_events", "intersession_projections"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


def test_the_package_knows_its_own_version() -> None:
    assert machine.VERSION == VERSION


def build_wheel(source: Path, into: Path) -> Path:
    return Path(next(WheelBuilder(str(source)).build(directory=str(into), versions=["standard"])))


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def info_of(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"intersession-{VERSION}.dist-info/{name}").decode()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> set[str]:
    return names_in(built)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    return Path(next(SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


def test_the_extra_all_has_every_other() -> None:
    extras = PROJECT["optional-dependencies"]

    assert extras["all"] == [f"intersession[{','.join(sorted(extras.keys() - {'all'}))}]"]


def test_nothing_but_our_packages_lands_in_site_packages(wheel: set[str]) -> None:
    assert {name.partition("/")[0] for name in wheel} == PACKAGES | {f"intersession-{VERSION}.dist-info"}


def test_the_page_of_an_index_has_addresses_and_no_link_that_leads_nowhere(built: Path) -> None:
    """D12: README's relative links are dead on an index page."""
    said = info_of(built, "METADATA")

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


def test_the_command_and_the_licence_come_with_it(built: Path, wheel: set[str]) -> None:
    assert "intersession = intersession.cli:main" in info_of(built, "entry_points.txt")
    assert f"intersession-{VERSION}.dist-info/licenses/LICENSE" in wheel


@pytest.mark.ci
def test_the_sdist_has_what_somebody_needs_to_work_on_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames()}

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


@pytest.mark.ci
def test_a_wheel_from_the_sdist_is_the_wheel_from_the_checkout(
    wheel: set[str], sdist: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        needed = [member for member in archive.getmembers() if member.name.split("/")[1] != "tests"]
        archive.extractall(tmp_path, needed, filter="data")

    assert names_in(build_wheel(tmp_path / f"intersession-{VERSION}", tmp_path / "again")) == wheel
