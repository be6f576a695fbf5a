"""Listens to what doors judge, whoever judges it."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

from intersession_actors.calls.service import resolve, waits
from intersession_actors.calls.tools import sessions_send, toolbox
from intersession_actors.owners.streams import rules_in_force
from intersession_actors.rules.errors import Known, Question
from intersession_actors.rules.policy import spawning
from intersession_actors.rules.policy.judgements import denial_of

Heard = Callable[[Question, Known], None]

JUDGES: Final[tuple[tuple[ModuleType, str], ...]] = (
    (resolve, "judge_access"),
    (rules_in_force, "judge_send"),
    (spawning, "judge_start"),
    (toolbox, "judge_tool"),
    (waits, "judge_wait"),
)


@contextmanager
def judging(heard: Heard) -> Generator[None]:
    """Have each judgement at a door told of, before it is made."""
    with ExitStack() as judges:
        for module, name in JUDGES:
            judges.enter_context(patch.object(module, name, _telling(getattr(module, name), heard)))
        said = denial_of

        def of_another(judgement: Any) -> Any:
            heard(*judgement)
            return said(judgement)

        judges.enter_context(patch.object(sessions_send, "denial_of", of_another))
        yield


def _telling(judge: Callable[..., Any], heard: Heard) -> Callable[..., Any]:
    def told(asked: Question, known: Known) -> Any:
        heard(asked, known)
        return judge(asked, known)

    return told
