"""The agents of hosts that tests start as processes: `--agents support.processes.echoing:AGENTS`."""

from intersession import echo

AGENTS = {"main": echo("heard ")}
