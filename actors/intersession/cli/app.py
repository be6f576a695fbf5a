"""The table of commands that `intersession` reads: the name and purpose of each, and the module that it loads when called."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cyclopts import App, Group, Parameter

if TYPE_CHECKING:
    from cyclopts.help import DefaultFormatter, HelpPanel
    from rich.console import Console, ConsoleOptions

_ROOM: Final = "intersession.cli"

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("commands.demo:demo", "Let two agents talk, and read it back from the log."),
    "sessions": ("commands.sessions:sessions", "List the sessions of a log, most recently active first."),
    "history": ("commands.sessions:history", "Print the transcript of a session, oldest first."),
    "runs": ("questions.runs:runs", "List exchanges, spawns and runs, newest first."),
    "messages": (
        "questions.messages:messages",
        "List what was said to sessions: who, to whom, on whose behalf.",
    ),
    "deliveries": ("questions.deliveries:deliveries", "List the texts that went outside, or should have."),
    "told": (
        "questions.person_texts:told",
        "List what a person was told: by whom, for whom, if it arrived.",
    ),
    "calls": ("questions.messages:calls", "List the calls of tools that agents made."),
    "imports": ("commands.openclaw_state:imports", "List what imports left out, and why."),
    "usage": (
        "questions.usage:usage",
        "Add up what runs have used; or show what budgets have left.",
    ),
    "erasures": ("questions.erasures:erasures", "List what was erased, by whom and why."),
    "events": ("questions.events:events", "List the events of a log, one a line."),
    "tail": ("questions.events:tail", "Show the events of a log as they come."),
    "replay": ("commands.replay:replay", "Tell a run, an exchange or a session as it happened."),
    "lens": ("time_travel.lens:lens", "Show exactly what an agent was given in a run."),
    "show": ("time_travel.show:show", "Draw a run: who said what to whom, and how it ended."),
    "debug": ("time_travel.debug:debug", "Open a log in the browser: who said what, and why it ended so."),
    "step": ("time_travel.step:step", "Step through a run on a screen: forwards, back, by causes."),
    "state": ("time_travel.state:state", "Show everything as it stood at a place of the log."),
    "why": ("time_travel.why:why", "Say why something is so: what led to it, which rule ended it."),
    "origin": ("time_travel.words:origin", "Say who said some words first, and how they reached others."),
    "diff": ("time_travel.diff:diff", "Say what differs between two runs, or two places of one."),
    "export-test": ("time_travel.export_test:export_test", "Write a test that replays a run sealed."),
    "smells": ("time_travel.show:smells", "Say what is seldom meant in a run, or in all runs."),
    "search": ("time_travel.words:search", "Find where words were said, in all transcripts and events."),
    "fork": ("time_travel.fork:fork", "Fork a run at a place, with something otherwise."),
    "forks": ("time_travel.fork:forks", "List forks, or those of a run; `forks rm ID` deletes one."),
    "send": ("commands.send:send", "Send a message to a session, and follow what comes of it."),
    "schedules": ("changes.schedules:schedules", "List scheduled jobs: when each runs, and how it came out."),
    "abort": ("changes.sessions:abort", "Stop what a session does, or one run."),
    "retry": ("changes.sessions:retry", "Have the message of a run that failed answered after all."),
    "hold": ("changes.sessions:hold", "Have an exchange stop before a text goes on."),
    "release": (
        "changes.sessions:release",
        "Let what is held go on: as it is, edited, or not.",
    ),
    "compact": ("changes.sessions:compact", "Have what was said earlier in a session summarised."),
    "reset": ("changes.sessions:reset", "Begin a session anew: it remembers nothing."),
    "label": ("changes.sessions:label", "Give a session a label to find it by, and to send to."),
    "delete": ("changes.sessions:delete", "Archive a session; the log keeps all of it."),
    "erase": ("changes.forgetting:erase", "Erase what was said in a session from the log, for good."),
    "forget": ("changes.forgetting:forget", "Erase what a person said and was told from the log, for good."),
    "serve": ("commands.serving:serve", "Serve the session tools over HTTP and WebSocket."),
    "work": ("commands.working:work", "Call agents and channels for a writer elsewhere."),
    "mcp": ("commands.serving:mcp", "Give the session tools to an MCP client."),
    "import": ("commands.openclaw_state:importing", "Make a log of another system's transcripts."),
    "export": ("commands.exporting:exporting", "Write sessions of a log as another system keeps them."),
    "migrate": (
        "changes.stores:migrate",
        "Move a log to another store: SQLite to PostgreSQL, or back.",
    ),
    "backup": ("changes.copies:backup", "Copy a log to a file, also while it is in use."),
    "restore": ("changes.restoring:restore", "Put a copy in the place of a log."),
    "hosts": ("questions.hosts:hosts", "Show the hosts of a log now, and what they do."),
    "doctor": ("commands.doctor:doctor", "Say what is wrong now, and what to do about it."),
    "verify": ("proofs.verify:verify", "Prove that a log or a bundle was not changed."),
    "bundle": ("proofs.bundle:bundle", "Write a part of a log as one file for an auditor."),
    "checkpoint": (
        "changes.stores:checkpoint",
        "Take a checkpoint: a proof of all that is in the log by now.",
    ),
    "keys": ("proofs.keys:keys", "Keys that sign checkpoints (extra `sign`)."),
    "witness": ("proofs.witness:witness", "Cosign the checkpoints of others' logs."),
    "encryption": ("changes.encryption:encryption", "How words are kept encrypted (extra `encrypt`)."),
    "fleet": ("commands.fleet:fleet", "Look after many logs: status, proofs, moves and upgrades."),
    "rebuild": ("changes.stores:rebuild", "Build the views of a log anew."),
    "audit": ("questions.audit:audit", "Look at who asked for what."),
    "config": ("commands.settings:config", "Look at configurations."),
    "policy": ("commands.settings:policy", "Look at the send policy."),
    "completion": ("commands.settings:completion", "Print the script by which a shell completes commands."),
}
"""By name, so that each command only loads what it needs. What a command is for is the first line of its own help."""


GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Begin": ("demo", "serve", "work", "mcp", "send", "debug", "completion"),
    "Read what happened": (
        "runs", "sessions", "history", "replay", "messages", "told", "deliveries", "calls", "events", "tail", "search", "usage",
    ),
    "Look closer, and go back in time": (
        "show", "step", "state", "lens", "why", "origin", "diff", "smells",
    ),
    "Ask what if": ("fork", "forks", "export-test"),
    "Change what sessions do": (
        "schedules", "hold", "release", "abort", "retry", "reset", "compact", "label", "delete", "erase",
        "forget",
    ),
    "Prove and check": (
        "doctor", "hosts", "verify", "bundle", "checkpoint", "keys", "witness", "erasures", "audit", "config",
        "policy",
    ),
    "Keep and move a log": ("import", "imports", "export", "backup", "restore", "migrate", "encryption", "fleet", "rebuild"),
}  # fmt: skip
"""Under which heading the help lists each command, in this order."""


_MEANT: Final = {
    "doctor": ("status", "health", "check"),
    "sessions": ("list", "ls"),
    "abort": ("stop", "cancel", "kill"),
    "delete": ("archive", "remove", "rm"),
    "hold": ("pause", "break"),
    "hosts": ("workers", "cluster", "nodes", "standbys"),
    "release": ("approve", "resume", "continue"),
    "serve": ("start", "gateway"),
    "tail": ("follow", "watch", "logs"),
    "work": ("worker", "agent"),
}
"""What people type who mean a command: it is suggested to them."""


class _Help:
    """Prints help, loading its parts on demand.

    What a command does is printed in paragraphs as wide as the terminal; a docstring has its lines broken elsewhere.
    """

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print parameters, or commands."""
        self._usual()(console, options, panel)

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: object) -> None:
        """Print how a command is written."""
        self._usual().render_usage(console, options, usage)

    def _usual(self) -> "DefaultFormatter":
        from cyclopts.help import DefaultFormatter  # noqa: PLC0415

        return DefaultFormatter()

    def render_description(self, console: "Console", options: "ConsoleOptions", description: object) -> None:
        """Print what a command does."""
        from cyclopts.help import InlineText  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        del options
        said = description.primary_renderable if isinstance(description, InlineText) else None
        if isinstance(said, Text):
            for paragraph in said.plain.split("\n\n"):
                console.print(Text(" ".join(paragraph.split())))
                console.print()


def _version() -> str:
    from intersession_events.basics.machine import VERSION  # noqa: PLC0415 - commands need none of it

    return f"intersession {VERSION}"


# Once for both tables: a command that is a table of its own keeps the group that it was given first, and cyclopts takes
# another one of the same name for a mistake.
_HEADINGS: Final = {
    name: group
    for group, names in (
        (Group(heading, sort_key=place), names) for place, (heading, names) in enumerate(GROUPS.items())
    )
    for name in names
}


def _table(*, brief: bool) -> App:
    table = App(
        name="intersession",
        help=(
            "Session tools for AI agents, on a log that can be replayed and proven.\n\nTry `intersession demo` first; "
            "`intersession COMMAND --help` describes a command."
        ),
        help_format="plaintext",
        help_formatter=_Help(),
        help_epilogue=(
            "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 store locked or not available, 4 not verified, 130 interrupted."
        ),
        version=_version,
        version_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=False),
        suppress_keyboard_interrupt=False,
    )
    for name, (where, line) in COMMANDS.items():
        meant = {"synonym": _MEANT[name]} if name in _MEANT else {}  # a group of commands takes none
        table.command(
            f"{_ROOM}.{where}", name=name, help=line if brief else None, group=_HEADINGS[name], **meant
        )
    return table


app = _table(brief=False)


def overview() -> App:
    """Return the same table with a line for each command, loading none of them. Only for the help on all commands."""
    return _table(brief=True)
