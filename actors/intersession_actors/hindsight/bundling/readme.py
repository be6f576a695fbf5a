"""The page of a bundle that its reader opens first: what each entry is, and how to check them (BUNDLE-6)."""

from collections.abc import Collection
from typing import Final

import msgspec

from intersession_actors.hindsight.bundling.editions import EDITIONS
from intersession_actors.hindsight.bundling.parts import Contents
from intersession_events.facts.reasons import counted

ENTRIES: Final = {
    "README.txt": "this page",
    "manifest.json": "every other file with its size and SHA-256; the log, the place, the question",
    "manifest.sig": "the signature over manifest.json, with the key that it names",
    "verify.py": "checks all of this; it needs Python 3.8 and nothing else",
    "report.html": "what happened, to read and to print; opens in any browser, offline",
    "events.jsonl": "the events, one a line, in order; `data` byte for byte as it was hashed",
    "log.db": "the same events as a log that opens",
    "proof.json": "proves that the events are the log's, each at its place",
    "heads.jsonl": "proves with which event each stream ends, so that none was left out",
    "checkpoints.jsonl": "the log's checkpoints up to the one that proves",
    "checkpoints.txt": "the same as signed notes, as other transparency logs have them",
    "keys.txt": "the public keys of the bundle's issuer; compare them with those you were given another way",
    "erasures.json": "which words were erased: who wanted it, why, and which checkpoint covers it",
    "refusals.json": "what was refused to whom",
    "settings.json": "the settings in force at the place, secrets hidden",
    "questions.jsonl": "the question of this bundle, and what was asked of its sessions",
    "answer.json": "the answer that this bundle proves",
    "notes.json": "what people wrote beside it",
    "run.svg": "the run as a diagram",
}
"""What each file is, in the order of the archive; others follow by their names, contents of files last."""
_SAID: Final = """A part of the log {log_id}, up to position {at}.
{held}. The question: {question}

{entries}

To check it:         unzip -p BUNDLE.zip verify.py > verify.py && python3 verify.py BUNDLE.zip
To check who made it: add --trust ed25519:... (the issuer's key), or --published FILE (its published checkpoints)
To look at it:       {look}

A verify.py that came with the bundle is as honest as the bundle: take one from a place that you trust.
{words}
"""
_LOG: Final = "unzip BUNDLE.zip log.db && intersession debug log.db"
_REPORT: Final = "report.html; there is no log.db, since with other names none could be proven"
_WHOLE: Final = "Whole texts are in it, secrets among them: give it to those who may read them."
_REDACTED: Final = "It is redacted ({name}): {what}"
_PREFIX: Final = "test_run_"


def readme_of(contents: Contents, names: Collection[str]) -> str:
    """Return the text of the page, for a bundle with these files."""
    known = {**ENTRIES, **{name: _other(name) for name in sorted(names) if name not in ENTRIES}}
    present = [name for name in known if name in {*names, "manifest.json"} and not name.startswith("files/")]
    known.update(
        {name: "a timestamp (RFC 3161) of a checkpoint" for name in names if name.startswith("timestamps/")}
    )
    redacted = contents.wanted.redact
    if redacted is not None:
        known["events.jsonl"] += ", unless a row says that something is `withheld`"
    if redacted == "words":
        known["log.db"] += "; [erased] stands there for withheld words, as its own events say"
    if any(name.startswith("files/") for name in names):
        known["files/"] = "pictures and files of messages, by their SHA-256"
        present.append("files/")
    return _SAID.format(
        log_id=contents.view.log.log_id,
        at=contents.at,
        held=f"{counted(contents.taken.events, 'event')} of {counted(contents.taken.streams, 'stream')}",
        question=msgspec.json.encode(contents.question).decode(),
        entries="\n".join(f"  {name:<24} {known[name]}" for name in present),
        look=_LOG if "log.db" in names else _REPORT,
        words=_WHOLE if redacted is None else _REDACTED.format(name=redacted, what=EDITIONS[redacted]),
    )


def _other(name: str) -> str:
    if not name.startswith(_PREFIX):
        return ""
    return "a test that replays the run: pytest" if name.endswith(".py") else "the recording of that test"
