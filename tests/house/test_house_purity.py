"""Clock, chance, ids and threads come in from outside; no handler waits; and facts are frozen (rules 2 and 5)."""

import ast
import inspect
import re
import typing
from collections.abc import Iterator

import pytest

from intersession_events.facts import (
    TOPICS,
    Fact,
    access,
    delivery,
    exchange,
    log,
    run,
    schedule,
    session,
    spawn,
)
from support.paths import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts[1:]): path
    for folder in ("actors", "events", "projections")
    for path in sorted((ROOT / folder).rglob("*.py"))
}

AMBIENT_CALLS = {
    "datetime.now",
    "datetime.today",
    "datetime.utcnow",
    "date.today",
    "os.urandom",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid4",
}
# Where the machine's clock, chance and ids come in. Threads are held by a contract in pyproject.toml.
SEAMS = {"intersession_events.basics.machine"}
DOORS = "intersession."  # a command line may look at the clock on the wall


def _uses(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func) if ast.unparse(func) in AMBIENT_CALLS:
                yield ast.unparse(func)
            case _:
                pass


CALLED = re.compile(rf"\b(?:{'|'.join(call.rpartition('.')[2] for call in AMBIENT_CALLS)})\(")


def uses_of(source: str) -> set[str]:
    if CALLED.search(source) is None:
        return set()  # most modules need not be parsed
    return set(_uses(ast.parse(source)))


def test_only_the_seams_ask_the_machine_for_time_chance_and_ids() -> None:
    found = {name: uses_of(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

    leaks = {
        name: uses
        for name, uses in found.items()
        if uses and name not in SEAMS and not name.startswith(DOORS)
    }

    assert not leaks, "hand the clock or the ids in"


def test_no_seam_is_listed_that_is_none() -> None:
    stale = [name for name in SEAMS if name not in MODULES or not uses_of(MODULES[name].read_text("utf-8"))]

    assert not stale


@pytest.mark.parametrize(
    "source",
    [
        "import uuid\nnew = uuid.uuid4()",
        "from uuid import uuid4\nnew = uuid4()",
        "from datetime import datetime, UTC\nnow = datetime.now(UTC)",
        "import os\nsalt = os.urandom(16)",
    ],
)
def test_a_planted_use_of_the_machine_is_seen(source: str) -> None:
    assert uses_of(source)


# --- what an event or a command has is known by its type

TOLD = re.compile(r"(.*\.)?(event|command|message)")


def guesses_in(source: str) -> list[int]:
    """Return the lines that ask whether an event, a command or a message has a field of some name."""
    if "getattr(" not in source:
        return []  # most modules need not be parsed
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"getattr", "hasattr"}
        and TOLD.fullmatch(ast.unparse(node.args[0]))
        and isinstance(node.args[1], ast.Constant)
    ]


def test_nobody_guesses_what_an_event_or_a_command_has() -> None:
    """`run_named` and `delivery_named` ask it of all events at once; they stand with the facts."""
    guesses = {
        name: lines
        for name, path in MODULES.items()
        if not name.startswith("intersession_events.facts")
        and (lines := guesses_in(path.read_text(encoding="utf-8")))
    }

    assert guesses == {}


def test_a_planted_guess_is_seen() -> None:
    planted = 'ended = getattr(one.event, "run_id", None)\nleft = [getattr(message, name) for name in NAMES]'

    assert guesses_in(planted) == [1]


# --- no handler waits (L4)

WAITING = {
    "acquire",
    "append_now",
    "ask",
    "ask_session",
    "await_run",
    "join",
    "query",
    "result",
    "run_until_complete",
    "sleep",
    "transact",
    "wait",
    "wait_for",
}
WAITS_NOT = {
    "closing.join",  # whoever stops all of Pykka's actors waits until the system is closed
    "spent.ask",  # counts a run that is asked for
}
HANDLERS = [
    name
    for name, path in MODULES.items()
    if any(
        base in path.read_text(encoding="utf-8")
        for base in ("(Handler)", "(Handler, ", "(Leader[", "(ProcessManager[", "(Shell[")
    )
]


def waits_in(source: str) -> set[str]:
    """Return the calls that could wait: by name, and `.get()`, which is no look-up if it has no key."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        name = node.func.attr
        joined_text = name == "join" and isinstance(owner, ast.Constant)
        if (name in WAITING and not joined_text) or (name == "get" and not node.args):
            found.add(ast.unparse(node.func))
    return found - WAITS_NOT


def test_the_actors_are_among_those_looked_at() -> None:
    assert {
        "intersession_actors.owners.exchange.coordinator",
        "intersession_actors.owners.delivery.outbox",
        "intersession_actors.owners.flows.process_manager",
        "intersession_actors.owners.session.actor",
        "intersession_actors.owners.spawn.spawner",
        "intersession_actors.owners.streams.shell",
    } <= set(HANDLERS)


@pytest.mark.clause("L4")
@pytest.mark.parametrize("name", HANDLERS)
def test_no_handler_waits(name: str) -> None:
    assert not waits_in(MODULES[name].read_text(encoding="utf-8"))


@pytest.mark.clause("L4")
@pytest.mark.parametrize(
    "source",
    ["ref.ask(message)", "future.get()", "future.get(timeout=5)", "log.append_now([])", "time.sleep(1)"],
)
def test_a_planted_wait_is_seen(source: str) -> None:
    assert waits_in(source)


def test_a_look_up_is_no_wait() -> None:
    assert not waits_in("flows.get(stream)\n', '.join(names)")


# --- facts

UNIONS = [
    session.SessionEvent,
    run.RunEvent,
    exchange.ExchangeEvent,
    spawn.SpawnEvent,
    delivery.DeliveryEvent,
    schedule.ScheduleEvent,
    access.AccessEvent,
    log.SystemEvent,
]


def shapes() -> list[type[Fact]]:
    """Return every shape that is stored: the events, and what they are made of."""
    return sorted(
        (shape for shape in _below(Fact) if shape.__module__.startswith("intersession_events.")),
        key=lambda shape: shape.__name__,
    )


def _below(shape: type[Fact]) -> Iterator[type[Fact]]:
    for each in shape.__subclasses__():
        yield each
        yield from _below(each)


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.__name__)
def test_a_fact_is_frozen_and_given_by_name(shape: type[Fact]) -> None:
    assert shape.__struct_config__.frozen
    assert {each.kind for each in inspect.signature(shape).parameters.values()} <= {
        inspect.Parameter.KEYWORD_ONLY
    }


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.__name__)
def test_no_field_of_a_fact_holds_a_float(shape: type[Fact]) -> None:
    held = {name: set(_inside(hint)) for name, hint in typing.get_type_hints(shape).items()}

    assert [name for name, kinds in held.items() if float in kinds] == []


def _inside(hint: object) -> Iterator[object]:
    yield hint
    for argument in typing.get_args(hint):
        yield from _inside(argument)


def test_every_event_of_the_vocabulary_has_a_topic_and_every_topic_an_event() -> None:
    events = {event for union in UNIONS for event in typing.get_args(union)}

    assert set(TOPICS.values()) == events
    assert len(TOPICS) == len(set(TOPICS.values()))


POOLS = re.compile(
    r"\bThreadPoolExecutor\b|\bProcessPoolExecutor\b|await asyncio\.to_thread\(|run_in_executor\(None"
)
# Commands alone, which end with their main thread; and the pool that stands in for asyncio's.
POOLED = {
    "intersession.cli.host.beside",
    "intersession.cli.time_travel.fork",
    "intersession.fleet.fleet",
    "intersession_actors.running.host.own_threads",
}


@pytest.mark.clause("L11")
def test_no_pool_of_the_standard_library_serves_a_system() -> None:
    """They take no more work once the main thread has returned."""
    found = {
        name
        for name, path in MODULES.items()
        for line in path.read_text(encoding="utf-8").splitlines()
        if POOLS.search(line) and "not_on_a_loop(" not in line
    }

    assert found == POOLED, "take `off_loop` of intersession_actors.running.host"
