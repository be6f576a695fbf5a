"""A run as a test that replays it sealed, for any test suite. Written by the command line and the web debugger."""

from typing import Final

_TEST: Final = '''"""Run {run}, decided again by today's rules; the file beside it is what was recorded."""

from pathlib import Path

from intersession import replay_file


def test_run_{name}_is_decided_as_it_was_recorded() -> None:
    differs = replay_file(Path(__file__).with_suffix(".jsonl"))["firstDifference"]

    assert differs is None, differs["text"]
'''


def name_of_test(run: str) -> str:
    """Return the file name of a test; its recording lies beside it, as `.jsonl`."""
    return f"test_run_{run.partition('-')[0]}.py"


def text_of_test(run: str) -> str:
    """Return the source of a run's test, by the run's id."""
    return _TEST.format(run=run, name=run.replace("-", "_"))
