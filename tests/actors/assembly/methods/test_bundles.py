"""`bundles.make`: a host hands out a part of its log that proves itself, and signs it."""

import base64
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, echo
from intersession_events.copies.bundles.verifying import check_bundle
from intersession_events.proofs.signatures import PrivateKey, Trusted, new_private, write_private


@pytest.fixture
def key(tmp_path: Path) -> PrivateKey:
    made = new_private(os.urandom)
    write_private(made, tmp_path / "key.pem")
    return made


@pytest.fixture
def system(log_url: str, tmp_path: Path, key: PrivateKey) -> Iterator[SessionSystem]:
    del key
    config = {"checkpoints": {"keyFile": str(tmp_path / "key.pem")}}
    with SessionSystem(log_url, agents={"main": echo()}, config=config) as opened:
        opened.inbound(channel="telegram", chat_id="1", sender="ann", text="Is it safe?", wait=10)
        yield opened


def made(system: SessionSystem, **params: Any) -> dict[str, bytes]:
    """Have a bundle made, and return its files."""
    answer: Any = system.gateway.call("bundles.make", params)
    content = base64.b64decode(answer["content"])
    assert answer["bytes"] == len(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.clause("BUNDLE-8")
def test_a_host_takes_a_checkpoint_first_and_signs(
    system: SessionSystem, key: PrivateKey, tmp_path: Path
) -> None:
    files = made(system, person="ann")

    manifest = json.loads(files["manifest.json"])
    assert all(json.loads(line)["index"] is not None for line in files["events.jsonl"].splitlines())
    assert key.public.has_signed(
        b"intersession bundle 1\n" + files["manifest.json"], files["manifest.sig"].decode().strip()
    )
    assert manifest["key"] == files["keys.txt"].decode().strip() == str(key.public)
    assert json.loads(files["proof.json"])["checkpoint"]["position"] == manifest["position"]
    bundle = system.bundle(tmp_path, run=system.debug.runs()["runs"][0]["id"])
    assert bundle.path.parent == tmp_path
    assert check_bundle(bundle.path, trusted=Trusted([key.public])).ok
    assert bundle.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.clause("BUNDLE-7")
def test_an_answer_is_bundled_with_the_streams_of_the_events_that_it_names(
    system: SessionSystem, tmp_path: Path
) -> None:
    asked = {"verb": "messages", "arguments": {"person": "ann"}}

    files = made(system, **asked)

    answer = json.loads(files["answer.json"])
    assert json.loads(files["manifest.json"])["question"] == asked
    assert answer["answer"]["messages"][0]["text"] == "Is it safe?"
    there = {json.loads(line)["position"] for line in files["events.jsonl"].splitlines()}
    assert answer["answer"]["messages"][0]["position"] in there
    assert system.debug.bundle_answer(tmp_path, "messages", {"person": "ann"}).events == len(there)
    sums = made(system, verb="usage", arguments={"by": ["agent"]})
    manifest = json.loads(sums["manifest.json"])
    assert manifest["events"] == manifest["position"] >= len(there)  # a sum is over the whole log
    assert json.loads(sums["answer.json"])["verb"] == "usage"


@pytest.mark.clause("BUNDLE-8")
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "nothing says what is bundled"),
        ({"all": True, "verb": "runs"}, "an answer is bundled by itself"),
        ({"all": True, "arguments": {"person": "ann"}}, "they belong to a verb"),
        ({"verb": "surprise"}, "there is no 'surprise'"),
        ({"verb": "calls"}, "names no events"),
        ({"run": "nope"}, "no exchange, spawn or run is called 'nope'"),
        ({"all": True, "redact": "everything"}, "redact"),
    ],
)
def test_a_bundle_of_nothing_is_refused_with_the_field(
    system: SessionSystem, params: dict[str, Any], said: str
) -> None:
    refused: Any = system.gateway.call("bundles.make", params)

    assert refused["code"] == "invalid_request"
    assert said in refused["error"]


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-8", "OUT-1")
def test_a_bundle_that_is_too_large_to_be_handed_out_says_where_to_make_it(system: SessionSystem) -> None:
    for _ in range(3):
        text = base64.b64encode(os.urandom(750_000)).decode()
        system.inbound(channel="telegram", chat_id="1", sender="ann", text=text, wait=20)

    refused: Any = system.gateway.call("bundles.make", {"all": True})

    exported: Any = system.gateway.call("exports.make", {"to": "cloudevents"})

    for answer in (refused, exported):
        assert answer["code"] == "too_large"
        assert "at most 8388608 are handed out" in answer["error"]
