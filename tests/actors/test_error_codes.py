"""The closed list of refusal codes, and that the documentation keeps up with it."""

import re
from typing import get_args

import pytest

from intersession_actors.rules.errors import REFUSAL_CODES, ToolRefused, status_of
from intersession_events.facts import FailureCode
from support.paths import DOCS

DOC = (DOCS / "errors.md").read_text(encoding="utf-8")
REFUSALS, FAILURES = DOC.split("## Runs that failed")


def test_every_code_is_documented_with_its_status_and_nothing_else_is() -> None:
    documented = dict(re.findall(r"^\| `(\w+)` \| (error|forbidden) \|", REFUSALS, re.MULTILINE))

    assert documented == {code: status_of(code) for code in REFUSAL_CODES}


def test_every_way_a_run_fails_is_documented() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", FAILURES, re.MULTILINE))

    assert documented == set(get_args(FailureCode))


@pytest.mark.parametrize("code", REFUSAL_CODES)
def test_a_refusal_answers_status_code_and_error_and_no_run(code: str) -> None:
    refused = ToolRefused(code, "label: two sessions have it, use a key")  # type: ignore[arg-type]

    assert set(refused.as_result()) == {"status", "code", "error"}
    assert refused.as_result()["code"] == code
