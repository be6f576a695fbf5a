"""What each scope of a credential lets it ask for, method by method (X5)."""

import pytest

from intersession.gateway.admission.scopes import granted, needed_scope

METHODS = {
    "sessions.list": "operator.read",
    "chat.history": "operator.read",
    "status": "operator.read",
    "sessions_list": "operator.read",
    "chat.send": "operator.write",
    "agent": "operator.write",
    "chat.abort": "operator.write",
    "sessions_send": "operator.write",
    "calls.held": "operator.approvals",
    "calls.release": "operator.approvals",
    "exchanges.held": "operator.approvals",
    "exchanges.hold": "operator.approvals",
    "exchanges.release": "operator.approvals",
    "forks.make": "operator.fork",
    "worker.act": "worker",
    "copies.rows": "copy",
    "sessions.patch": "operator.admin",
    "sessions.reset": "operator.admin",
    "sessions.delete": "operator.admin",
    "chat.inject": "operator.admin",
    "a method that there is not": "operator.admin",
}


@pytest.mark.clause("X5")
@pytest.mark.parametrize("method", METHODS)
def test_a_method_asks_for_the_scope_of_its_kind(method: str) -> None:
    assert needed_scope(method) == METHODS[method]


@pytest.mark.clause("X5")
def test_writing_includes_reading_administering_includes_all_and_others_stand_alone() -> None:
    assert granted(None, ["operator.read"]) == {"operator.read"}
    assert granted(None, ["operator.write"]) == {"operator.read", "operator.write"}
    assert granted(None, ["operator.approvals"]) == {"operator.approvals"}
    assert granted(None, ["operator.fork"]) == {"operator.fork"}
    assert granted(None, ["worker"]) == {"worker"}
    assert granted(None, ["copy"]) == {"copy"}
    assert granted(None, ["operator.admin"]) == {
        "operator.read",
        "operator.write",
        "operator.approvals",
        "operator.fork",
        "operator.admin",
        "worker",
    }
