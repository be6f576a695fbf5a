"""`intersession config`, `policy` and `completion`: checks a configuration, tells the send policy's verdict, prints scripts for shells."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from intersession.cli.app import app
from intersession.cli.host.reading import reading_log
from intersession.cli.shell.answer import OK, REFUSED, Answer, Common, ConfigFile, Json
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.assembly.system.settings import prepared
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.rules.policy.sending import Speak, Speech, judge_send
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import KeyReference
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.row import SessionRow

config = App(name="config", help="Look at configurations.")


@config.command
def check(
    file: Annotated[Path, Parameter(help="The configuration file (JSON5).")], /, *, json: Json = False
) -> Answer:
    """Check a configuration file as a start would: every unknown key and bad value with its path.

    Exit code 1 if it would be refused.
    """
    del json
    try:
        loaded = prepared(file)
    except ConfigError as error:
        problems = [{"path": problem.path, "what": problem.what} for problem in error.problems]
        value = {"ok": False, "file": str(file), "problems": problems, "notices": []}
        lines = [str(problem) for problem in error.problems]
        return Answer(value, lambda screen: _show(screen, file, lines, ()), REFUSED)
    value = {
        "ok": True,
        "file": str(file),
        "problems": [],
        "notices": list(loaded.notices),
        "digest": loaded.config.digest(),
    }
    return Answer(value, lambda screen: _show(screen, file, (), loaded.notices))


def _show(
    screen: Screen, file: Path, problems: list[str] | tuple[str, ...], notices: tuple[str, ...]
) -> None:
    if problems:
        screen.line(safe("refused: ", "bold red"), str(file))
    else:
        screen.line(safe("good: ", "bold green"), str(file))
    for problem in problems:
        screen.indented(problem, 2)
    for notice in notices:
        screen.line(safe("  notice: ", "yellow"), notice)


policy = App(name="policy", help="Look at the send policy.")


@policy.command(name="test")
def verdict(
    session: str,
    /,
    *,
    channel: str | None = None,
    chat_type: Literal["direct", "group", "channel"] | None = None,
    override: Literal["allow", "deny"] | None = None,
    config: ConfigFile = None,
    store: str | None = None,
    json: Json = False,
) -> Answer:
    """Say whether the send policy lets a session's words out, and by which rule. Exit code 1 if it does not.

    The policy is that of --config. With --store, what the log knows of the session counts too.

    Args:
        session: The session's key, in any form.
        channel: Where the words would go. Default: what is known of the session.
        chat_type: The kind of chat. Default: what is known of the session.
        override: The session's own setting. Default: what is known of it.
        store: A log that knows the session. Default: none, its key alone counts.
    """
    del json
    settings = load_config(config).config
    key = _key(settings, session)
    row = None if store is None else _row(store, key)
    policy = settings.session.send_policy
    found = judge_send(
        Speak(key=str(key)),
        Speech(
            default=policy.default,
            rules=policy.rules,
            channel=channel or (None if row is None else row.channel or row.last_channel),
            chat_type=chat_type or (None if row is None else row.chat_type),
            override=override or (None if row is None else row.send_policy),
        ),
    )
    value = {"sessionKey": str(key), "action": found.action, "rule": found.rule}

    def show(screen: Screen) -> None:
        style = "bold green" if found.allowed else "bold red"
        screen.line(safe(found.action, style), f"  {key}")
        screen.dim(f"  {found.rule}")

    return Answer(value, show, OK if found.allowed else REFUSED)


def _key(config: Config, session: str) -> SessionKey:
    try:
        reference = config.refer(session)
    except InvalidKey as error:
        raise ToolRefused("invalid_key", str(error)) from None
    if not isinstance(reference, KeyReference):
        raise ToolRefused(
            "invalid_key", f"{session[:128]!r} is no session key, give one like agent:main:main"
        )
    return reference.key


def _row(store: str, key: SessionKey) -> SessionRow:
    with reading_log(Common(store=store), views=inline_views()) as log:
        row = Sessions(log).get(str(key))
    if row is None:
        raise ToolRefused("not_visible", f"session not visible: {key}")
    return row


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell: bash, zsh or fish.")],
    /,
    *,
    json: Json = False,
) -> Answer:
    """Print the script by which a shell completes commands.

    For bash: `intersession completion bash > ~/.local/share/bash-completion/completions/intersession`.
    """
    del json
    script = app.generate_completion(shell=shell)

    def show(screen: Screen) -> None:
        for line in script.splitlines():
            screen.to_copy(line)

    return Answer({"shell": shell, "script": script}, show)
