"""`intersession keys`: makes the keys that sign checkpoints, shows their public halves, and says which ones signed a log."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from intersession.cli.host.reading import reading_log
from intersession.cli.shell.answer import COMMON, Answer, Common, Json, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession_events.basics.errors import BadKey
from intersession_events.basics.machine import machine_entropy
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.held_checkpoints import checkpoints_of
from intersession_events.proofs.signatures import (
    NamedKey,
    PublicKey,
    is_key_name,
    new_private,
    public_keys,
    read_private,
    write_private,
)

keys = App(name="keys", help="Keys that sign checkpoints (extra `sign`).")


@keys.command
def new(
    file: Annotated[Path, Parameter(help="Where the private key is put. There must be nothing yet.")],
    /,
    *,
    json: Json = False,
) -> Answer:
    """Make a private key in a file that only this user may read, and print its public half.

    Name the file as `checkpoints.keyFile`. A verifier needs the public half: give it away by another way than the log.
    """
    del json
    key = new_private(machine_entropy)
    try:
        write_private(key, file)
    except FileExistsError:
        raise UsageError(f"{file} exists already; a key is never written over, name a new file") from None
    except OSError as error:
        raise UsageError(f"{file} can't be written ({error.strerror or error})") from error
    return _shown(((str(file), key.public),))


@keys.command
def show(
    given: Annotated[
        tuple[str, ...], Parameter(help="Files with private or public keys, or public keys themselves.")
    ],
    /,
    *,
    name: str | None = None,
    witness: bool = False,
    json: Json = False,
) -> Answer:
    """Print the public halves of keys with their ids: one line each, as `verify --trust` takes them.

    Args:
        name: Print vkeys instead, as witnesses and tools for signed notes take them: of a log that has this as `checkpoints.origin`.
        witness: With --name, the vkey of the witness of that name.
    """
    del json
    if name is None:
        if witness:
            raise UsageError("--witness says of which kind the vkey is that --name asks for")
        return _shown(tuple((one, key) for one in given for key in _public_halves(one)))
    if not is_key_name(name):
        raise UsageError(f"--name {name!r}: a name has 1 to 200 characters, and neither spaces nor +")
    halves = [(one, key) for one in given for key in _public_halves(one)]
    return _shown(tuple((one, NamedKey(name, _raw(key), is_witness=witness)) for one, key in halves))


@keys.command(name="list")
def listed(*, common: Common = COMMON) -> Answer:
    """List the keys that have signed a log's checkpoints, by their ids: from which position to which, and how many."""
    found: dict[str | None, list[int]] = {}
    with reading_log(common) as log:
        for taken in checkpoints_of(log.log_id, log.query):
            found.setdefault(taken.event.key_id, []).append(taken.event.position)
    rows: list[JsonObject] = [
        {"keyId": key_id, "checkpoints": len(positions), "from": positions[0], "to": positions[-1]}
        for key_id, positions in found.items()
    ]

    def shown(screen: Screen) -> None:
        for row in rows:
            screen.line(
                safe(f"{row['keyId'] or 'unsigned':<16}", "bold"),
                f"  {row['checkpoints']} checkpoints, positions {row['from']} to {row['to']}",
            )
        if not rows:
            screen.line("the log has no checkpoints yet")

    return Answer({"keys": rows}, shown)


def _raw(key: PublicKey | NamedKey) -> PublicKey:
    return key.key if isinstance(key, NamedKey) else key


def _public_halves(given: str) -> Sequence[PublicKey | NamedKey]:
    try:
        return public_keys(given)
    except BadKey:
        if not Path(given).is_file() or b"PRIVATE KEY" not in Path(given).read_bytes()[:100]:
            raise
        return [read_private(Path(given)).public]


def _shown(found: tuple[tuple[str, PublicKey | NamedKey], ...]) -> Answer:
    value: JsonObject = {
        "keys": [{"from": name, "keyId": _raw(key).id, "publicKey": str(key)} for name, key in found]
    }

    def show_lines(screen: Screen) -> None:
        for _, key in found:
            screen.line(str(key) if isinstance(key, NamedKey) else f"{key}  {key.id}")

    return Answer(value, show_lines)
