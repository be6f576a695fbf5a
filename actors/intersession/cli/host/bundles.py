"""Makes bundles for commands: of a query, or of the answer that a command has just given; and what MCP writes into a folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import Answer, Reading, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.assembly.checkpoints.targets import signing_key
from intersession_actors.assembly.methods.debug import Made, bundle_in, export_in
from intersession_actors.assembly.methods.params import BundleParams, ExportParams
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.bundling.answered import bundle_of
from intersession_actors.hindsight.bundling.bundle import BundleMade, make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted, Redact
from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_object
from intersession_events.facts.reasons import counted
from intersession_events.proofs.signatures import read_private

_MIB = 1024 * 1024


def bundled(reading: Reading, wanted: BundleWanted, output: Path, key: Path | None = None) -> BundleMade:
    """Make a bundle of the log that a command reads, signed with a key, else with that of checkpoints, if there is one.

    Raises:
        ToolRefused: the query is invalid, or names nothing that is there.
        BundleFailed: the file is there already, or can't be written.
        ConfigError: the configured key can't be used.
        BadKey: the given key can't be used.
    """
    with reader_of(reading) as reader, Screen().progress("Bundling") as progress:
        signing = signing_key(reader.config) if key is None else read_private(key)
        return make_bundle(View(reader), wanted, output, key=signing, progress=progress)


def with_bundle(
    answer: Answer, reading: Reading, verb: str, given: JsonObject, output: Path, *, redact: Redact | None
) -> Answer:
    """Return a command's answer once it is bundled, with what the bundle is.

    Raises:
        UsageError: it names no events.
    """
    value = answer.value
    if not is_object(value):
        raise UsageError("--bundle: this answer is no list and no object, leave it out")
    made = bundled(reading, bundle_of(verb, given, value, redact=redact), output)

    def show(screen: Screen) -> None:
        answer.show(screen)
        show_made(screen, made)

    return replace(answer, value={**value, "bundle": value_of(made)}, show=show)


def files_into(reader: Reader, folder: Path) -> Callable[[str, JsonMapping], JsonObject]:
    """Return a function that calls `bundles.make` and `exports.make` as the operator of a read-only log: it has a folder for the files."""

    def make(method: str, params: JsonMapping) -> JsonObject:
        if method == "exports.make":
            return value_of(export_in(folder, View(reader), read_arguments(ExportParams, params)))
        given = read_arguments(BundleParams, params)
        return value_of(bundle_in(folder, View(reader), given, key=signing_key(reader.config)))

    return make


def value_of(made: Made) -> JsonObject:
    """Return what `--json` prints of a bundle or an export."""
    return {**made.value, "file": str(made.path)}


def show_made(screen: Screen, made: BundleMade) -> None:
    """Print what a bundle is, and how it is checked."""
    what = (
        f"{counted(made.events, 'event')} of {counted(made.streams, 'stream')} up to position {made.position}"
    )
    screen.line(safe("bundled: ", "bold green"), f"{what}, {made.size / _MIB:.1f} MiB, in {made.path}")
    screen.line(f"  sha256 {made.sha256}")
    if made.unproven:
        verb = "is" if made.unproven == 1 else "are"
        screen.line(
            safe("  not proven: ", "bold yellow"),
            f"that {counted(made.unproven, 'event')} behind the last checkpoint {verb} the log's; "
            "`intersession checkpoint` takes one",
        )
    if made.signed_by is None:
        screen.dim(
            "  not signed, and so refused by --trust: --key, or checkpoints.keyFile of --config, signs it"
        )
    else:
        screen.line(f"  signed by {made.signed_by}")
    screen.line(f"  check it: unzip -p {made.name} verify.py > verify.py; python3 verify.py {made.name}")
