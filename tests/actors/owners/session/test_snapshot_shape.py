"""The shape of a session's snapshot has a version. This says when it needs another one."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from intersession_actors.owners.session.folding import SHAPE, SessionFolding
from intersession_actors.rules.prompt.transcript import TranscriptFold, hash_as_recorded
from intersession_actors.rules.prompt.window import nothing_earlier
from intersession_events.facts import RunStarted
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from support.golden_logs import golden_logs

STATES: Final = {
    "session_state.1": "eca358458e6645d08733610f37ffc47f8c74c613fa0864a7c6dbcf40f9f98c06",
    "session_state.2": "2abca9675f640aca93444c19efdd367c0cd6418bfec54ad8523e28ce91b34998",
    "session_state.3": "3af5a06693db94bd83011ed8da80f1923d3e9e7a7293f9e2ef116857c1b39542",
}
"""What a shape makes of the sessions of the first release, at each of their versions. A row is never changed, once that is released."""


def logs(folder: Path) -> Iterator[PortableLog]:
    for golden in golden_logs():
        if golden.version == "0.1.0":
            with open_log(f"sqlite:///{golden.unpack(folder)}", read_only=True) as log:
                yield log


def states(folder: Path) -> Iterator[bytes]:
    folding = SessionFolding(room=0, earlier=nothing_earlier)
    for log in logs(folder):
        for stream in log.streams("session:"):
            state = folding.begin()
            for item in log.stream(stream):
                state = folding.apply(state, [item])
                yield folding.encode(state)


def test_the_same_events_lead_to_the_same_snapshot_as_long_as_the_shape_is_the_same(tmp_path: Path) -> None:
    made = sha256()
    for state in states(tmp_path):
        made.update(state)

    assert made.hexdigest() == STATES.get(SHAPE), (
        f"states of sessions are not what {SHAPE} was: old snapshots must not be read as new ones. "
        "Give SHAPE in session/folding.py the next number, and STATES a row"
    )


def test_every_state_of_the_first_release_is_read_as_it_was_kept(tmp_path: Path) -> None:
    folding = SessionFolding(room=0, earlier=nothing_earlier)

    kept = list(states(tmp_path))

    assert len(kept) > 100
    assert all(folding.encode(folding.decode(state, 7)) == state for state in kept)


@pytest.mark.clause("PROV-4")
def test_every_hash_of_a_context_that_the_first_release_recorded_is_found_again(tmp_path: Path) -> None:
    hashes: list[tuple[str, str]] = []
    for log in logs(tmp_path):
        for stream in log.streams("session:"):
            fold = TranscriptFold()
            for item in log.stream(stream):
                if isinstance(item.event, RunStarted):
                    context = fold.context(item.event.run_id)
                    hashes.append((hash_as_recorded(context, item.event), item.event.context_hash))
                fold.apply(item)

    assert len(hashes) >= 12
    assert [found for found, _ in hashes] == [recorded for _, recorded in hashes]
