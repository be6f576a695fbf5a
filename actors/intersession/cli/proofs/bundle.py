"""`intersession bundle`: a part of a log as one file for an auditor, who checks it with nothing of ours."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from intersession.cli.host.bundles import bundled, show_made, value_of
from intersession.cli.shell.answer import READING, Answer, AsOf, Reading, Since, Until, UsageError
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.bundles.archive import digest_of
from intersession_events.copies.bundles.verifying import write_verifier


def bundle(
    *,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    run: str | None = None,
    session: str | None = None,
    person: str | None = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    at: AsOf = None,
    redact: Literal["secrets", "words", "people"] | None = None,
    key: Path | None = None,
    verifier: Path | None = None,
    reading: Reading = READING,
) -> Answer:
    """Write a part of a log as one file for an auditor.

    It is a zip with the events as JSON lines and as a log that opens, the proof that they are the log's and that none was left
    out, all checkpoints, and verify.py, which checks it anywhere. Whole streams are in it, with all that they refer to, so
    it may hold more than was asked for. The same question at the same place makes the same file, bit for bit.

    Args:
        output: The file, which must not exist; or a folder, where it gets a name.
        run: An exchange, a spawn or a run, by any name that is shown.
        session: A session: its stream, its flows and deliveries.
        person: All that this person asked for: their id or name on the channel, or as they are shown (telegram:ada).
        everything: The whole log.
        redact: Withhold secrets, all words, or who people are; the rest is proven as before.
        key: A private key that signs the bundle. Default: checkpoints.keyFile of the configuration.
        verifier: Write verify.py to this new file, to be sent by another way than the bundle; alone, no log is looked at.
    """
    if output is None and verifier is None:
        raise UsageError("give the file with -o FILE.zip; --verifier FILE alone writes verify.py")
    if verifier is not None:
        write_verifier(verifier)
    if output is None:
        value: JsonObject = {
            "ok": True,
            "verifier": str(verifier),
            "sha256": digest_of(verifier or Path())[1],
        }
        return Answer(
            value, lambda screen: screen.line(f"verify.py is in {verifier}, sha256 {value['sha256']}")
        )
    wanted = BundleWanted(
        run=run,
        session=session,
        person=person,
        since=since,
        until=until,
        everything=everything,
        at=at,
        redact=redact,
    )
    made = bundled(reading, wanted, output, key)
    return Answer(value_of(made), lambda screen: show_made(screen, made))
