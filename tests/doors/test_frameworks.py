"""The agents on the page about frameworks run, each with its framework in an environment of its own, in a ping-pong with a tool."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from support.endpoint import Said, an_endpoint
from support.framework_played import played, say
from support.paths import ROOT

PAGE = ROOT / "docs/howto/frameworks.md"
CODE = re.compile(
    r"^## (?P<title>[^\n]+)\n.*?`pip install (?P<packages>[^`]+)`.*?^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PARTS = {found["title"]: found for found in CODE.finditer(PAGE.read_text(encoding="utf-8"))}


def test_the_page_has_the_frameworks() -> None:
    assert list(PARTS) == ["LangGraph", "OpenAI Agents SDK", "Microsoft Agent Framework"]


@pytest.mark.nightly
@pytest.mark.clause("TOOL-8")
@pytest.mark.parametrize("title", PARTS)
def test_the_agent_of_the_page_plays_a_ping_pong_with_a_tool_of_its_own(title: str, tmp_path: Path) -> None:
    part, python = PARTS[title], tmp_path / "env/bin/python"
    code = tmp_path / "page.py"
    code.write_text(part["code"], encoding="utf-8")
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(tmp_path / "env")], check=True)
    packages = ["-e", str(ROOT), *part["packages"].split()]
    subprocess.run([*uv, "pip", "install", "-q", "--python", str(python), *packages], check=True)

    ran = subprocess.run(
        [str(python), str(ROOT / "tests/support/framework_played.py"), str(code)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    check(json.loads(ran.stdout.splitlines()[-1]))


def test_a_pydantic_ai_agent_does_so_as_it_is() -> None:
    def look_up(order: int) -> str:
        """Say how an order stands."""
        return f"Order {order} is paid."

    with an_endpoint() as endpoint:
        endpoint.say = say
        model = OpenAIChatModel("asked", provider=OpenAIProvider(base_url=endpoint.url, api_key="none"))
        told = played(Agent(model, tools=[look_up], instructions="You are the front desk."))

    check(json.loads(json.dumps(told)))


def check(told: Said) -> None:
    """Check what happened: each looked the order up, one asked the other, and the loop ended by its word."""
    paid = ["look_up", "Order 7 is paid."]
    assert told["answer"] == "Both say paid: It is paid, says ops."
    [looked, (sent, answered)] = told["calls"]["main"]
    assert (looked, sent) == (paid, "sessions_send")
    assert json.loads(answered)["reply"] == "It is paid, says ops."
    assert told["calls"]["ops"] == [paid]
    assert told["loops"] == ["reply_skip"]
    assert all(told["used"])
