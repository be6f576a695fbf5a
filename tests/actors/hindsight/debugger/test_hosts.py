"""Who works on a log, as the writer, a reader and a limited caller are answered (HOSTS-1)."""

import os
import socket
from typing import Any

import psycopg
import pytest
from psycopg import sql

from intersession import SessionSystem, echo, open_log
from intersession_actors.calls.service.callers import Caller
from intersession_events.basics.machine import VERSION
from intersession_events.log.work_queue import CallId, Offer, Worker
from intersession_events.stores.hosts.host import Host
from intersession_events.stores.postgres.address import address_of
from support.as_caller import called_by
from support.running import QUIET, merged

SESSION = "agent:research:main"
CONFIG = merged(QUIET, {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}})


def offer(run_id: str, name: str = "research") -> Offer:
    return Offer(
        kind="agent", id=run_id, attempt=1, name=name, stream=f"session:{SESSION}", version=1, secret="s"
    )


def busy(system: SessionSystem) -> None:
    """Have two workers, one of three calls taken and one answered; a standby and a door; and a run that nobody has an agent for."""
    work = system.log.work.to_take
    for name, seats in (("one", 1), ("two", 4)):
        work.announce(
            Worker(name=name, host="gpu", version="9", agents={"research": "{}"}, channels={}, seats=seats)
        )
    system.log.work.offer([offer("r1")])
    (taken,) = work.take("one", 1, 0)
    system.log.work.offer([offer("r2")])
    (answered,) = work.take("two", 1, 0)
    work.answer("two", answered.call, b"{}")
    system.log.work.offer([offer("r3")])
    hosts = system.log.hosts  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] - of a stored log
    hosts.announce(Host(name="spare", kind="standby", machine="b", pid=7, version="9"))
    hosts.announce(Host(name="web", kind="door", machine="c", pid=8, version=VERSION, position=1, behind=7))
    system.gateway.call("chat.send", {"sessionKey": "agent:ops:main", "message": "hi", "idempotencyKey": "k"})
    assert (taken.call, answered.call) == (CallId("agent", "r1", 1), CallId("agent", "r2", 1))


@pytest.mark.clause("HOSTS-1")
def test_every_process_that_reads_the_log_sees_who_works_on_it(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": echo()}, config=CONFIG) as system:
        busy(system)
        own: Any = system.debug.hosts()
        with open_log(log_url) as reader:
            beside: Any = reader.debug.hosts()
        first: Any = system.debug.hosts(limit=1)
        status = system.status()["hosts"]

    assert own["writer"] == {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": VERSION,
        "epoch": 1,
        "gateway": None,
    }
    assert beside == own
    assert [(one["name"], one["taken"], one["seats"]) for one in own["workers"]] == [
        ("one", 1, 1),
        ("two", 0, 4),
    ]
    assert [(one["name"], one["lag"]) for one in own["standbys"] + own["doors"]] == [
        ("spare", None),
        ("web", 7),
    ]
    assert own["calls"] == [
        {
            "kind": "agent",
            "name": name,
            "workers": workers,
            "waiting": waiting,
            "underWay": waiting,
            "silent": 0,
            "answered": waiting,
            "parked": parked,
        }
        for name, workers, waiting, parked in (("ops", [], 0, 1), ("research", ["one", "two"], 1, 0))
    ]
    assert [(call["id"], call["state"], call["worker"], call["sessionKey"]) for call in own["underWay"]] == [
        ("r1", "underWay", "one", SESSION),
        ("r2", "answered", "two", SESSION),
        ("r3", "waiting", None, SESSION),
    ]
    assert (first["underWay"], first["count"]) == (own["underWay"][:1], 3)
    assert status == own


@pytest.mark.clause("HOSTS-1", "VIS-6")
def test_a_limited_caller_is_told_of_no_host_and_no_call(log_url: str) -> None:
    config = merged(CONFIG, {"gateway": {"auth": {"token": "the-token-of-this-test"}}})
    with SessionSystem(log_url, agents={"main": echo()}, config=config) as system:
        busy(system)
        limited = Caller.by_credential("reader", ("agent:main:*",))
        refused = called_by(limited, system, "debug.hosts", {})
        status = called_by(limited, system, "status", {})

    assert refused["code"] == "forbidden"
    assert "hosts" not in status
    assert not [word for word in ("gpu", "spare", "r1", SESSION) if word in str(status)]


def test_a_log_that_no_process_writes_has_no_writer(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": echo()}):
        pass
    with open_log(log_url) as reader:
        found = reader.debug.hosts()

    assert (found["writer"], found["workers"], found["calls"], found["count"]) == (None, [], [], 0)


@pytest.mark.postgres
def test_a_log_that_only_an_older_version_has_written_says_what_can_not_be_read(postgres_url: str) -> None:
    with SessionSystem(postgres_url, agents={"main": echo()}):
        pass
    database, schema = postgres_url.partition("&schema=")[0], address_of(postgres_url).schema
    with psycopg.connect(database, autocommit=True) as owner:
        for table in ("log_hosts", "agent_calls", "workers", "worker_roles"):
            owner.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(schema, table)))
    with open_log(postgres_url) as reader:
        found = reader.debug.hosts()

    assert "log_hosts" in str(found["unread"])
    assert (found["writer"], found["workers"], found["count"]) == (None, [], 0)
