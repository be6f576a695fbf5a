"""The table of commands that `intersession` reads: a name, and the module that is loaded when it is called."""

from importlib.metadata import PackageNotFoundError, version

from cyclopts import App, Parameter


def _version() -> str:
    try:
        return f"intersession {version('intersession')}"
    except PackageNotFoundError:
        return "intersession (not installed)"


app = App(
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

_HERE = "intersession.cli.commands"
_CHANGES = "intersession.cli.changes"
_QUESTIONS = "intersession.cli.questions"

# By name, so that each command only loads what it needs.
app.command(f"{_HERE}.demo:demo", name="demo")
app.command(f"{_HERE}.sessions:sessions", name="sessions")
app.command(f"{_HERE}.history:history", name="history")
app.command(f"{_QUESTIONS}.runs:runs", name="runs")
app.command(f"{_QUESTIONS}.messages:messages", name="messages")
app.command(f"{_QUESTIONS}.deliveries:deliveries", name="deliveries")
app.command(f"{_HERE}.replay:replay", name="replay")
app.command(f"{_HERE}.send:send", name="send")
for _change in ("abort", "reset", "label", "delete"):
    app.command(f"{_CHANGES}.sessions:{_change}", name=_change)
app.command(f"{_HERE}.serve:serve", name="serve")
app.command(f"{_HERE}.mcp:mcp", name="mcp")
app.command(f"{_HERE}.openclaw_state:importing", name="import")
app.command(f"{_HERE}.openclaw_state:exporting", name="export")
app.command(f"{_HERE}.doctor:doctor", name="doctor")
app.command(f"{_HERE}.verify:verify", name="verify")
app.command(f"{_CHANGES}.rebuild:rebuild", name="rebuild")
app.command(f"{_HERE}.audit:audit", name="audit")
app.command(f"{_HERE}.config:config", name="config")
app.command(f"{_HERE}.policy:policy", name="policy")
app.command(f"{_HERE}.completion:completion", name="completion")


def load_all() -> None:
    """Load every command, so that the help of all says a line of each."""
    for name in app:
        app[name]
