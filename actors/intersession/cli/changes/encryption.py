"""`intersession encryption`: how a log's words are kept encrypted, and another master key for them."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from intersession.cli.host.reading import reading_log
from intersession.cli.shell.answer import COMMON, Answer, Common, UsageError
from intersession.cli.shell.terminal import Screen
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.keys.source import Source
from intersession_events.stores.opened import check_clear

encryption = App(name="encryption", help="How words are kept encrypted (extra `encrypt`).")


@encryption.command
def show(*, common: Common = COMMON) -> Answer:
    """Show whether a log is kept encrypted: where its keys are, how many there are, and where its master key is."""
    with reading_log(common) as log:
        if log.keys is None:
            check_clear(log)
        value: JsonObject = {"encrypted": False} if log.keys is None else _standing(log.keys)

    def shown(screen: Screen) -> None:
        if not value["encrypted"]:
            screen.line("it is not kept encrypted: name encryption.keys in the configuration of its host")
            return
        sessions = value["sessions"]
        screen.line(
            f"kept encrypted: {'all sessions' if sessions == 'all' else ', '.join(map(str, sessions))}"
        )
        screen.line(f"  {value['keys']} keys in {value['file']}, {value['destroyed']} destroyed")
        screen.line(f"  the master key: {value['masterKey'] or value['trouble']}")

    return Answer(value, shown)


@encryption.command
def rotate(
    *,
    file: Annotated[Path | None, Parameter(help="The file of the new master key.")] = None,
    keyring: Annotated[str | None, Parameter(help="The service of the keyring that has the new one.")] = None,
    command: Annotated[
        str | None, Parameter(help="The command that prints the new one, as a shell has it.")
    ] = None,
    common: Common = COMMON,
) -> Answer:
    """Wrap the keys of a log anew, by another master key: the old one opens nothing from then on. Rows stay as they are.

    Also while a host runs, if that can read the new key too. Name the new key in the configuration of the host afterwards.
    """
    try:
        source = Source(
            file=None if file is None else str(file.expanduser().absolute()),
            keyring=keyring,
            command=tuple(shlex.split(command or "")),
        )
    except ValueError as error:
        raise UsageError(f"{error}: give one of --file, --keyring and --command") from error
    with reading_log(common) as log:
        if log.keys is None:
            raise UsageError(f"{log.path} is not kept encrypted, so it has no keys")
        number = log.keys.rotate(source, source.key())
    said = f"{counted(number, 'key')} wrapped by {source}; delete the old master key, and its copies"
    return Answer({"ok": True, "keys": number}, lambda screen: screen.line(said))


def _standing(keys: Keyring) -> JsonObject:
    known = keys.all()
    destroyed = sum(key.destroyed is not None for key in known)
    sessions = keys.header.sessions
    return {
        "encrypted": True,
        "sessions": sessions if sessions == "all" else [*sessions],
        "file": keys.shown,
        "keys": len(known) - destroyed,
        "destroyed": destroyed,
        "masterKey": None if keys.source is None else str(keys.source),
        "trouble": None if keys.trouble is None else str(keys.trouble),
    }
