"""The calls of the original's client on the page that tells of it: made on a real gateway, written as they were printed.

    python tests/support/openclaw/transcript.py            prints them
    python tests/support/openclaw/transcript.py --write    writes them into docs/howto/openclaw-client.md

`OPENCLAW_CLIENT` names the folder where the client is, or is to be installed.
"""

import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from support.doors.scripted_endpoint import scripted_endpoint
from support.doors.served_gateway import Served, config_for, token_of
from support.openclaw.client import OpenClaw, install
from support.paths import DOCS

PAGE: Final = DOCS / "howto" / "openclaw-client.md"
BEGIN: Final = "<!-- calls: python tests/support/openclaw/transcript.py --write -->\n"
END: Final = "<!-- end of the calls -->\n"

CALLS: Final = (
    "gateway call health",
    """gateway call agent --expect-final --params '{"message": "good morning", "agentId": "main", "idempotencyKey": "morning"}'""",
    """gateway call agent.wait --params '{"runId": "morning", "timeoutMs": 1000}'""",
    """gateway call sessions.patch --params '{"key": "agent:main:main", "sendPolicy": "deny", "label": "desk"}'""",
    """gateway call sessions.patch --params '{"key": "agent:main:main", "spawnedBy": "agent:ops:main"}'""",
    """gateway call chat.history --params '{"sessionKey": "agent:main:main", "limit": 2}'""",
    "gateway call node.list",
    "gateway call health --token wrong --url $URL",
    "health",
    'agent --agent ops --message "what is new?"',
)
RESTARTED: Final = ("""gateway call agent.wait --params '{"runId": "morning", "timeoutMs": 1000}'""",)


def transcript(installed: Path) -> str:
    """Return what the calls print, each behind its command line, in blocks of a page."""
    with tempfile.TemporaryDirectory() as name, scripted_endpoint() as endpoint:
        folder = Path(name)
        config = config_for(folder, endpoint)
        home = folder / "home"
        serving = ("--store", home / "sessions.db", "--config", config)
        home.mkdir()
        served = Served(*serving)
        client = OpenClaw(installed, home, served.address, token_of(config))
        blocks = [shown(client, call) for call in CALLS]
        served.signal()
        served.end()
        served = Served(*serving)
        client.use(served.address.replace("http", "ws", 1), client.token)
        blocks += [
            "The gateway was stopped and started in between:\n\n" + shown(client, call) for call in RESTARTED
        ]
        served.signal()
        served.end()
    return "\n".join(blocks)


def shown(client: OpenClaw, call: str) -> str:
    """Return a call and what it printed; the client's home is `~`, as it is for who types it."""
    done = client.run(*shlex.split(call.replace("$URL", client.url)))
    said = (done.out + done.err).replace(str(client.home), "~")
    # The reference lists the methods; a second list on this page was out of date with each new one.
    said = re.sub(r"(use one of agent, agent\.identity\.get), .*", r"\1, …", said)
    return f"```console\n$ openclaw {call.replace('$URL', client.url)}\n{said.strip()}\n```\n"


def main() -> None:
    """Print the calls, or write them into the page."""
    named = os.environ.get("OPENCLAW_CLIENT")
    with tempfile.TemporaryDirectory() as folder:
        made = transcript(install(Path(named or folder)))
    if "--write" not in sys.argv:
        sys.stdout.write(made)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, behind = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{behind}", encoding="utf-8")


if __name__ == "__main__":
    main()
