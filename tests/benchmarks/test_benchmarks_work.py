"""The benchmarks stay alive: each runs, at a size at which its figures mean nothing."""

import json
from pathlib import Path

import pytest

from benchmarks.run import BENCHMARKS, TINY, main, measure


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_gives_figures(name: str, tmp_path: Path) -> None:
    figures = measure(name, tmp_path, **TINY[name])

    assert figures
    assert all(figure.value >= 0 for figure in figures)


def test_what_is_printed_as_json_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--tiny", "--json", "--in", str(tmp_path)]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert {figure["benchmark"] for figure in printed["figures"]} == {"audit"}
    assert printed["machine"]["processors"] > 0


def test_a_benchmark_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["appendds"])

    assert "'appendds'" in capsys.readouterr().err
