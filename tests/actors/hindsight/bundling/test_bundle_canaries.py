"""What a redacted bundle withholds is nowhere in it: every byte of every entry is looked through, on both stores."""

import base64
import json
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from intersession import File, Reply, SessionSystem
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted, Redact
from intersession_events.copies.bundles.verifying import check_bundle
from intersession_events.facts import (
    DeliveryDone,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from support.running import WAIT, wait_for_number

SECRETS: Final = {"secret": "sk-proj-canaryabcdefghijklmnopqrstuv1234567890"}
WORDS: Final = {
    "text": "canary-asked",
    "answer": "canary-answer",
    "thinking": "canary-thought",
    "arguments": "canary-argument",
    "result": "canary-result",
    "error": "canary-error",
    "file": "canary-content",
    "file name": "canary-file.txt",
    "sent": "canary-between",
    "receipt": "canary-receipt",
    "note": "canary-note",
    "answered": "canary-of-an-answer",
    "sender name": "Canary Smith",
}
PEOPLE: Final = {
    "sender": "canary.ann",
    "number": "4915550001111",
    "group": "canary-group",
    "chat name": "Canary Club",
    "label": "canary-label",
    "account": "canary-account",
}
GROUP: Final = f"agent:main:telegram:group:{PEOPLE['group']}"
HIDDEN: Final[dict[Redact, dict[str, str]]] = {
    "secrets": SECRETS,
    "words": SECRETS | WORDS,
    "people": SECRETS | WORDS | PEOPLE,
}


def main(turn: Any) -> Reply | str:
    """Say, think, call and get each canary; fail where the message wants that."""
    if "fail" in turn.message:
        raise RuntimeError(WORDS["error"])
    if "ask" in turn.message:
        turn.tools.call(
            "sessions_send",
            {"sessionKey": "agent:main:other", "message": WORDS["sent"], "timeoutSeconds": 0},
        )
    content = (
        ThinkingBlock(thinking=WORDS["thinking"]),
        ToolCallBlock(id="c", name="look", arguments=json.dumps({"q": WORDS["arguments"]})),
    )
    return Reply(
        text=WORDS["answer"],
        messages=(
            Message(id="", role="assistant", content=content, timestamp=0),
            Message(
                id="",
                role="toolResult",
                content=WORDS["result"],
                timestamp=0,
                tool_call_id="c",
                tool_name="look",
            ),
            Message(id="", role="assistant", content=(TextBlock(text=WORDS["answer"]),), timestamp=0),
        ),
    )


@contextmanager
def told(url: str) -> Generator[SessionSystem]:
    """Start a system, and let it be told all canaries."""
    config = {"tools": {"sessions": {"visibility": "all"}}}
    channels = {"telegram": lambda _delivery: {"id": WORDS["receipt"]}}
    with SessionSystem(url, agents={"main": main}, channels=channels, config=config) as system:
        file = File(data=WORDS["file"].encode(), name=WORDS["file name"])
        runs = [
            system.inbound(
                channel="telegram", chat_id=PEOPLE["number"], sender=PEOPLE["sender"], sender_name=WORDS["sender name"],
                account=PEOPLE["account"], text=f"ask {WORDS['text']} {SECRETS['secret']}", files=(file,), wait=WAIT,
            ),
            system.inbound(
                channel="telegram", chat_id=PEOPLE["group"], sender=PEOPLE["sender"], chat_type="group",
                chat_name=PEOPLE["chat name"], text="fail", wait=WAIT,
            ),
        ]  # fmt: skip
        assert [one.get("status") for one in runs] == ["ok", "error"]
        system.gateway.call("sessions.patch", {"key": GROUP, "label": PEOPLE["label"]})
        system.gateway.perform("notes.pin", {"run": runs[0].get("runId", ""), "text": WORDS["note"]})
        wait_for_number(system, DeliveryDone, 2)
        system.checkpoint()
        yield system


@pytest.mark.clause("BUNDLE-23")
@pytest.mark.parametrize("redacted", HIDDEN)
def test_nothing_that_an_edition_withholds_is_anywhere_in_it(
    log_url: str, tmp_path: Path, redacted: Redact
) -> None:
    question = {"verb": "told", "person": WORDS["sender name"], "words": WORDS["answered"]}
    answer = {
        "matches": [
            {
                "text": WORDS["answered"],
                "who": f"{WORDS['sender name']} ({PEOPLE['sender']})",
                "sessionKey": GROUP,
            }
        ]
    }
    made = {}
    with told(log_url) as system:
        for name, redact in (("whole", None), ("redacted", redacted)):
            wanted = BundleWanted(everything=True, redact=redact, answer=answer, question=question)
            made[name] = make_bundle(system.debug.view, wanted, tmp_path / f"{name}.zip")

    whole, edition = (content(tmp_path / f"{name}.zip") for name in made)
    for name, canary in HIDDEN[redacted].items():
        assert any(canary.encode() in entry for entry in whole.values()), name
        for form in forms(canary):
            assert [entry for entry, held in edition.items() if form in held] == [], (name, form)
    for name, canary in PEOPLE.items():
        assert any(canary.encode() in held for held in edition.values()) == (redacted != "people"), name
    assert check_bundle(tmp_path / "redacted.zip").wrong == []
    # By a salt, or by an id or a digest that is made of a name, what is withheld could be guessed.
    lines = [json.loads(line) for line in whole["events.jsonl"].partition(b"jsonl")[2].splitlines()]
    shown = {
        line["position"]: line
        for line in map(json.loads, edition["events.jsonl"].partition(b"jsonl")[2].splitlines())
    }
    held = b"".join(edition.values())
    for line in lines:
        row = shown.get(line["position"], {})
        if "withheld" in row or (not row and line["stream"] != "log"):
            assert line["salt"].encode() not in held
            assert bytes.fromhex(line["salt"]) not in edition.get("log.db", b"")
        if redacted == "people":
            assert line["id"].encode() not in held
            assert line["digest"].encode() not in held
            assert bytes.fromhex(line["id"].replace("-", "")) not in edition.get("log.db", b"")
    assert made["whole"].checkpoint == made["redacted"].checkpoint


def content(path: Path) -> dict[str, bytes]:
    """Return the entries of a zip, and the zip itself without what it compresses."""
    with zipfile.ZipFile(path) as archive:
        found = {name: name.encode() + archive.read(name) for name in archive.namelist()}
        return found | {"zip": archive.comment}


def forms(text: str) -> list[bytes]:
    """Return a text as it could stand somewhere."""
    return [
        text.encode(),
        text.casefold().encode(),
        json.dumps(text)[1:-1].encode(),
        base64.b64encode(text.encode())[:-4],
        text.encode("utf-16-le"),
        text.encode().hex().encode(),
    ]
