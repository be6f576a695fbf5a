"""Cases of a test of which every day has some, and `.ci/run` all."""

from collections.abc import Iterable, Mapping
from typing import Final

import pytest

_CI: Final = [pytest.mark.ci]


def every_day(cases: Mapping[str, object] | Iterable[object], *names: object) -> list[pytest.ParameterSet]:
    """Return the cases as parameters, those that are not named with the marker `ci`.

    A case of a mapping has its key for a name, and any other is its own name; a tuple has a value for each argument.
    """
    named = dict(cases) if isinstance(cases, Mapping) else {str(case): case for case in cases}
    chosen = {str(name) for name in names}
    assert chosen <= named.keys(), f"no such case: {chosen - named.keys()}"
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), id=name, marks=[] if name in chosen else _CI
        )
        for name, case in named.items()
    ]
