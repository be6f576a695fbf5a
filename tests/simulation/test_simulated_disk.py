"""The files of a spawn on a disk that dies at any of its calls, and loses with the power what was not synced (ATT-3, P3)."""

import hashlib
from collections.abc import Callable
from itertools import count
from unittest.mock import patch

import pytest

from intersession import ToolRefused
from intersession_actors.outside.attachments.checks import CheckedFile
from intersession_actors.outside.attachments.files import Place, claim_files, stage_files
from intersession_events.facts import AttachedFile, Attachments
from simulation.disk import Disk

CONTENT = b"forty-two"
NOTE = AttachedFile(name="note.txt", bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
GIVEN = Attachments(root="/simulated", directory="d1", files=(NOTE,))
PLACE = Place(root="/simulated", log_id="log", spawn_id="s1")
CLAIMED = ("simulated", ".openclaw", "attachments", "d1")


class Dead(BaseException):
    """The power is gone."""


def stage() -> None:
    stage_files(PLACE, GIVEN, (CheckedFile(file=NOTE, content=CONTENT),))


def claim() -> None:
    claim_files(PLACE, GIVEN)


def dies_at(number: int) -> Callable[[str], None]:
    calls = count(1)

    def hook(call: str) -> None:
        if next(calls) >= number:
            raise Dead(call)

    return hook


EVERYTHING_STAYS = -1
"""Only the process dies, and not the power."""


def after_death(disk: Disk, work: Callable[[], None], at: int, lost: int) -> bool:
    """Do work up to a call of the disk, and lose the power there (`lost` says how much); say whether it was done before."""
    disk.hook = dies_at(at)
    try:
        work()
    except Dead:
        return False
    finally:
        disk.hook = lambda _: None
        if lost != EVERYTHING_STAYS:
            disk.lose_power(lambda _, most: min(lost, most))
    return True


@pytest.mark.clause("ATT-3", "P3")
@pytest.mark.parametrize("lost", [0, 1, 2, 99])
def test_files_that_are_staged_are_put_in_their_place_wherever_the_power_went(lost: int) -> None:
    at = 0
    for at in count(1):
        disk = Disk()
        with disk.mounted():
            stage()
            is_done = after_death(disk, claim, at, lost)
            claim()
        assert disk.within(CLAIMED)["note.txt"].content == CONTENT  # type: ignore[union-attr]
        if is_done:
            break
    assert at > 10


@pytest.mark.clause("ATT-3", "P1")
@pytest.mark.parametrize("lost", [0, 1, 2, 99])
def test_staging_that_was_cut_off_is_done_again(lost: int) -> None:
    at = 0
    for at in count(1):
        disk = Disk()
        with disk.mounted():
            is_done = after_death(disk, stage, at, lost)
            stage()
            claim()
        assert disk.within(CLAIMED).keys() == {"note.txt", ".manifest.json"}
        if is_done:
            break
    assert at > 20


@pytest.mark.clause("ATT-3", "P3")
def test_files_that_a_dead_process_put_in_their_place_outlive_the_power_once_another_found_them() -> None:
    at = 0
    for at in count(1):
        disk = Disk()
        with disk.mounted():
            stage()
            is_done = after_death(disk, claim, at, EVERYTHING_STAYS)
            claim()
            disk.lose_power(lambda *_: 0)
        assert disk.within(CLAIMED).keys() == {"note.txt", ".manifest.json"}, f"the process died at call {at}"
        if is_done:
            break
    assert at > 10


def test_what_nobody_synced_is_gone_with_the_power() -> None:
    disk = Disk()
    with disk.mounted(), patch.object(disk, "fsync", lambda _: None):
        stage()
        disk.lose_power(lambda _, most: most // 2)
        with pytest.raises(ToolRefused):
            claim()
