"""The table of commands that `intersession` reads: name, what it is for, and the module that is loaded when it is called."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from cyclopts import App, Parameter

_HERE = "intersession.cli.commands"
_CHANGES = "intersession.cli.changes"
_PROOFS = "intersession.cli.proofs"
_QUESTIONS = "intersession.cli.questions"

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": (
        f"{_HERE}.demo:demo",
        "Let two agents talk, from a person's message to announces on channels, and replay it from the log.",
    ),
    "sessions": (f"{_HERE}.sessions:sessions", "List the sessions of a log, most recently active first."),
    "history": (f"{_HERE}.history:history", "Print the transcript of a session, oldest first."),
    "runs": (
        f"{_QUESTIONS}.runs:runs",
        "List exchanges, spawns and runs, newest first, with the ids that `replay` takes.",
    ),
    "messages": (
        f"{_QUESTIONS}.messages:messages",
        "List what people and sessions said to sessions, newest first: who, to whom, on whose behalf.",
    ),
    "deliveries": (
        f"{_QUESTIONS}.deliveries:deliveries",
        "List the texts that went outside, or should have: where to, what became of each, and why.",
    ),
    "replay": (
        f"{_HERE}.replay:replay",
        "Read a run, an exchange or a session back from the log: who said what to whom, and why it ended.",
    ),
    "send": (
        f"{_HERE}.send:send",
        "Send a message to a session, and follow what comes of it: reply, ping-pong, announce.",
    ),
    "abort": (
        f"{_CHANGES}.sessions:abort",
        "Stop what a session does: the run under way and those that wait, or one run alone.",
    ),
    "reset": (
        f"{_CHANGES}.sessions:reset",
        "Begin a new generation of a session: it remembers nothing, and its earlier transcript can still be read.",
    ),
    "label": (f"{_CHANGES}.sessions:label", "Give a session a label, by which it can be found and sent to."),
    "delete": (
        f"{_CHANGES}.sessions:delete",
        "Archive a session: it takes no more messages and is in no list. The log keeps all of it; main sessions can only be reset.",
    ),
    "erase": (
        f"{_CHANGES}.sessions:erase",
        "Erase what was said in a session, and the copies of it, from the log for good. That it was erased stays provable.",
    ),
    "serve": (
        f"{_HERE}.serve:serve",
        "Serve the session tools over HTTP and the gateway's WebSocket protocol, until it is told to stop.",
    ),
    "mcp": (f"{_HERE}.mcp:mcp", "Serve the session tools to an MCP client that starts this command."),
    "import": (f"{_HERE}.openclaw_state:importing", "Make a log of another system's transcripts."),
    "export": (f"{_HERE}.openclaw_state:exporting", "Write sessions of a log as another system keeps them."),
    "doctor": (
        f"{_HERE}.doctor:doctor",
        "Say what is wrong now, and what to do about it: the log, its process, deliveries, settings, models.",
    ),
    "verify": (
        f"{_PROOFS}.verify:verify",
        "Hash every row of the log again, walk every chain, prove the views, and say what is wrong and what can't be proven.",
    ),
    "checkpoint": (
        f"{_CHANGES}.checkpoint:checkpoint",
        "Take a checkpoint of the log as it is now: what is in it up to here can't be reordered or cut without a trace.",
    ),
    "keys": (f"{_PROOFS}.keys:keys", "Keys that sign checkpoints (extra `sign`)."),
    "rebuild": (
        f"{_CHANGES}.rebuild:rebuild",
        "Build a view anew from the log, or all of them, and put it in the place of the old one.",
    ),
    "audit": (f"{_HERE}.audit:audit", "Look at who asked for what."),
    "config": (f"{_HERE}.config:config", "Look at configurations."),
    "policy": (f"{_HERE}.policy:policy", "Look at the send policy."),
    "completion": (
        f"{_HERE}.completion:completion",
        "Print the script by which a shell completes commands and options.",
    ),
}
"""By name, so that each command only loads what it needs. What a command is for is the first line of its own help."""


def _version() -> str:
    try:
        return f"intersession {version('intersession')}"
    except PackageNotFoundError:
        return "intersession (not installed)"


def _table(*, brief: bool) -> App:
    table = App(
        name="intersession",
        help=(
            "Session tools for AI agents, on a log that can be replayed and proven. Try `intersession demo` first; "
            "`intersession COMMAND --help` describes a command."
        ),
        help_format="plaintext",
        help_epilogue=(
            "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 store locked or not available, 4 not verified, 130 interrupted."
        ),
        version=_version,
        version_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=False),
        suppress_keyboard_interrupt=False,
    )
    for name, (where, line) in COMMANDS.items():
        table.command(where, name=name, help=line if brief else None)
    return table


app = _table(brief=False)


def overview() -> App:
    """Return the same table with a line for each command, which loads none of them. It is for help on all of them alone."""
    return _table(brief=True)
