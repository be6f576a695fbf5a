"""What the documentation shows is typed: mypy, strict, over the Python of every page in one run, as a host would (D3).

Blocks that are not run are checked too, each by itself. What they import comes from this tree.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from house.test_house_docs import BLOCK, PAGES, name_of
from support.paths import ROOT

NOT_FOLLOWED = (
    "anyio",
    "cryptography",
    "cyclopts",
    "discord.audit_logs",
    "fastapi.telemetry",
    "genai_prices",
    "griffe",
    "httpx",
    "httpx2",
    "httpcore2",
    "litestar",
    "logfire_api",
    "mcp",
    "mcp_types",
    "openai",
    "opentelemetry",
    "pydantic_ai.capabilities",
    "pydantic_ai.durable_exec",
    "pydantic_ai.mcp",
    "pydantic_ai.native_tools",
    "pydantic_ai.realtime",
    "pydantic_ai.ui",
    "rich",
    "truststore",
    "uvicorn",
    "websockets",
    "werkzeug",
)
"""What the libraries of the pages, and we, are built on, and no page shows: without a cache mypy takes longer for it than for
all the rest."""

SOURCES = os.pathsep.join(str(ROOT / name) for name in ("actors", "events", "projections"))


def modules(page: Path) -> dict[str, str]:
    """Return the code of a page as modules: what is run is one, with its lines where they are on the page."""
    text = page.read_text(encoding="utf-8")
    stem = "page_" + name_of(page).removesuffix(".md").replace("/", "_").replace("-", "_").lower()
    run: list[str] = []
    found: dict[str, str] = {}
    for block in BLOCK.finditer(text):
        if block["language"] != "python":
            continue
        line = text.count("\n", 0, block.start("code"))
        if block["not_run"]:
            found[f"{stem}_{len(found)}"] = "\n" * line + block["code"]
        else:
            run += [""] * (line - len(run)) + block["code"].splitlines()
    return found | ({stem: "\n".join(run) + "\n"} if run else {})


def written(folder: Path, code: dict[str, str]) -> list[str]:
    for name, text in code.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return [f"{name}.py" for name in code]


def complaints(folder: Path, code: dict[str, str]) -> str:
    settings = folder / "mypy.ini"
    skipped = ",".join(f"{name}.*" for name in NOT_FOLLOWED)
    settings.write_text(f"[mypy]\n[mypy-{skipped}]\nfollow_imports = skip\n", encoding="utf-8")
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"),
            *("--config-file", str(settings), "--cache-dir", str(ROOT / ".mypy_cache" / "pages")),
            *written(folder, code),
        ],
        cwd=folder,
        env=os.environ | {"MYPYPATH": SOURCES},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return checked.stdout + checked.stderr


def code_of_all_pages() -> dict[str, str]:
    for library in ("discord", "slack_bolt", "telegram", "pydantic_ai"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    # What that page shows is not installed here: its own test runs its code (`tests/doors/test_frameworks.py`).
    pages = [page for page in PAGES if page.name != "frameworks.md"]
    return {name: text for page in pages for name, text in modules(page).items()}


@pytest.mark.types
@pytest.mark.timeout(300)
def test_the_python_of_every_page_is_typed(tmp_path: Path) -> None:
    code = code_of_all_pages()
    imported = re.compile(rf"^\s*(?:from|import) ({'|'.join(map(re.escape, NOT_FOLLOWED))})\b", re.MULTILINE)
    shown = {found for text in code.values() for found in imported.findall(text)}
    wrong = "from intersession import SessionSystem\nSessionSystem().inbound(chat='1')\n"

    said = complaints(tmp_path, code | {"page_planted": wrong})

    assert shown == set(), "mypy has to follow what a page shows"
    planted = [line for line in said.splitlines() if line.startswith("page_planted.py:2: error")]
    assert planted, said
    assert [line for line in said.splitlines() if ": error:" in line and line not in planted] == []


@pytest.mark.types
def test_pyright_takes_the_python_of_every_page(tmp_path: Path) -> None:
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": SOURCES.split(os.pathsep),
        # Of the chat services' libraries, which are not typed throughout.
        "reportUnknownMemberType": False,
        "reportUnknownArgumentType": False,
        "reportUnknownVariableType": False,
        # The scripts of a page are checked as one.
        "reportDuplicateImport": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    written(tmp_path, code_of_all_pages())

    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout
