"""What a limited caller can find a run by: nothing that only the sessions of others know."""

from typing import Any

import pytest

from intersession import SessionSystem, Turn, echo
from intersession.gateway.about_gateway import CONFIG as CONFIG_GET
from intersession_actors.assembly.methods.methods import METHODS as CALLED
from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy.questions import METHODS, check_asked, check_called
from support.as_caller import called_by
from support.running import QUIET, SEES_ALL, WAIT, merged

MAIN = "agent:main:main"
READER = Caller.by_credential("reader", ("agent:main:*",))


def fails(_: Turn) -> str:
    raise RuntimeError("no idea")


@pytest.mark.clause("FIND-2", "VIS-6")
def test_why_a_run_of_another_session_failed_finds_no_exchange_for_who_does_not_see_it(
    log_url: str,
) -> None:
    with SessionSystem(
        log_url, agents={"main": echo(), "ops": fails}, config=merged(SEES_ALL, QUIET)
    ) as system:
        system.inbound(channel="telegram", chat_id="ada", text="hi", sender="ada", deliver=False, wait=WAIT)
        asked: dict[str, Any] = {"agentId": "ops", "message": "go", "timeoutSeconds": WAIT}
        system.tools(MAIN).call("sessions_send", asked)

        def found(caller: Caller, **given: Any) -> int:
            count: int = called_by(caller, system, "debug.runs", given)["count"]
            return count

        ended = {end: found(READER, kind=["exchange"], end=[end]) for end in ("error", "backend")}
        whole = {end: found(Caller(), kind=["exchange"], end=[end]) for end in ("error", "backend")}

    assert whole == {"error": 1, "backend": 1}
    assert ended == {"error": 1, "backend": 0}


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize(
    ("question", "given", "said"),
    [
        ("runs", ["words"], "words: only the operator asks so, leave it out"),
        ("state", ["fork"], "fork: only the operator asks so, leave it out"),
        ("settings", [], "settings: only the operator asks that, it tells of all sessions"),
        ("a-new-one", [], "a-new-one: only the operator asks that, it tells of all sessions"),
    ],
)
def test_what_is_not_in_the_table_is_the_operators(question: str, given: list[str], said: str) -> None:
    check_asked(question, given, is_operator=True)
    with pytest.raises(ToolRefused) as refused:
        check_asked(question, given, is_operator=False)

    assert (refused.value.code, refused.value.error) == ("forbidden", said)


@pytest.mark.clause("GATE-2", "VIS-6")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_the_operators_is_refused_to_others_in_its_words(name: str) -> None:
    method, field = (
        (name, {}) if name in CALLED or name == CONFIG_GET else (name.rpartition(".")[0], {"at": 1})
    )
    check_called(method, field, is_operator=True)
    check_called("health", field, is_operator=False)
    with pytest.raises(ToolRefused) as refused:
        check_called(method, field, is_operator=False)

    assert method in CALLED or method == CONFIG_GET
    assert (refused.value.code, refused.value.error) == ("forbidden", METHODS[name])
