"""Every error of ours goes to another process and into a copy with its message and its fields: pools of processes pickle them."""

import copy
import importlib
import inspect
import pickle
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from house.test_house_public import PACKAGES, modules
from intersession import StoreLocked
from intersession_actors.outside.agents.recorded import Divergence
from intersession_actors.rules.errors import ConfigProblem

GIVEN: dict[str, object] = {
    "problems": [ConfigProblem("a.b", "what")],
    "known": ("a", "b"),
    "code": "limit",
    "divergence": Divergence(
        session_key="agent:a:main", run_id="r", step="reply", turn=1, attempt=1, kind="missing"
    ),
}
"""What a parameter of this name gets; others get a value of their type."""


def errors() -> Iterator[type[BaseException]]:
    """Yield every error class that a module of ours makes."""
    for name in modules():
        module = importlib.import_module(name)
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, BaseException) and one.__module__ == name:
                yield one


def made(kind: type[BaseException]) -> BaseException:
    """Make an error of what its `__init__` takes."""
    init: Any = next(vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base))
    if not inspect.isfunction(init):
        return kind("what is wrong")
    hints = get_type_hints(init)
    given: dict[str, object] = {}
    positional: list[object] = []
    for name, parameter in list(inspect.signature(init).parameters.items())[1:]:
        value = GIVEN.get(
            name, {str: f"{name} é", int: 7, float: 7.5, bool: False}.get(hints[name], f"{name}")
        )
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            given[name] = value
        else:
            positional.append(value)
    return kind(*positional, **given)


EVERY = sorted({*errors()}, key=lambda kind: (kind.__module__, kind.__name__))


def test_there_are_errors_of_every_package() -> None:
    packages = {kind.__module__.partition(".")[0] for kind in EVERY}
    assert packages == {package.__name__ for package in PACKAGES}


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", ["pickled", "copied", "deeply"])
def test_an_error_keeps_its_message_and_its_fields_on_every_way(kind: type[BaseException], way: str) -> None:
    error = made(kind)
    error.add_note("a note")

    again: BaseException
    if way == "pickled":
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    else:
        again = copy.copy(error) if way == "copied" else copy.deepcopy(error)

    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


def test_an_error_can_be_raised_again_and_caught_where_it_came_from_another_process() -> None:
    again = pickle.loads(pickle.dumps(StoreLocked("/a/log.db", "pid 7")))  # noqa: S301 - our own
    with pytest.raises(StoreLocked, match=r"/a/log\.db has a writer already \(pid 7\)") as raised:
        raise again
    assert (raised.value.path, raised.value.holder) == ("/a/log.db", "pid 7")
