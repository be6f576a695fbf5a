"""The rules of a spawn: given what happened, when a run or a delivery ends, then what follows."""

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple, get_args

import pytest

from intersession_actors.owners.spawn.commands import Prepared
from intersession_actors.owners.spawn.rules import (
    Circumstances,
    Spawn,
    announced_text,
    decide,
    decide_prepared,
    decide_removed,
    evolve,
)
from intersession_actors.owners.streams.commands import (
    ChildGone,
    DeliveryEnded,
    Refused,
    RunEnded,
    StepRefused,
)
from intersession_events.basics import ids
from intersession_events.basics.ids import announce_delivery
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    AttachedFile,
    AttachmentRemovalFailed,
    Attachments,
    AttachmentsReady,
    AttachmentsRemoved,
    Budget,
    ChildArchived,
    ChildEnded,
    Limits,
    ResultHanded,
    Route,
    RunStatus,
    SpawnAccepted,
    SpawnClose,
    SpawnClosed,
    SpawnEvent,
    ThreadAsked,
    ThreadOpened,
    decode,
    encode,
    topic_of,
)

LOG = "00000000-0000-4000-8000-000000000001"
STREAM = "spawn:w1"
CHILD = "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
REQUESTER = "agent:main:main"
ANNOUNCE_RUN = ids.derive(LOG, "run", "w1", "announce")
RESULT_RUN = ids.derive(LOG, "run", "w1", "result")
DELIVERY = announce_delivery(LOG, "w1")
MINUTE = 60_000


def accepted(**fields: Any) -> SpawnAccepted:
    given_fields: dict[str, Any] = {
        "spawn_id": "w1",
        "run_id": "r0",
        "child": CHILD,
        "child_session_id": "s1",
        "agent_id": "main",
        "task": "count the files",
        "message_id": "m1",
        "requester": REQUESTER,
        "budget": Budget(root="r", limits=Limits(runs=3)),
    }
    return SpawnAccepted(**{**given_fields, **fields})


def state_after(*events: SpawnEvent) -> Spawn:
    state: Spawn | None = None
    for event in events:
        state = evolve(state, event)
    assert state is not None
    return state


def ended(run_id: str, text: str | None = None, **fields: Any) -> RunEnded:
    return RunEnded(stream=STREAM, run_id=run_id, status=fields.pop("status", "ok"), text=text, **fields)


def facts(*, has_route: bool = True, **fields: Any) -> Circumstances:
    return Circumstances(log_id=LOG, has_route=has_route, **fields)


def refused(run_id: str) -> dict[str, StepRefused]:
    step = StepRefused(stream=STREAM, run_id=run_id, code="not_visible", error="the session is gone")
    return {run_id: step}


DONE = ChildEnded(run_id="r0", status="ok", started_ms=1_000, ended_ms=6_000)
ASKED = AnnounceRequested(speaker=CHILD, run_id=ANNOUNCE_RUN, message_id="m2")
GOES_OUT = AnnounceDecided(text="Status: success", delivery_id=DELIVERY)


class Said(NamedTuple):
    """What runs said."""

    of: Mapping[str, str]

    def asked(self, run_id: str) -> str:
        raise AssertionError(run_id)

    def reply(self, run_id: str) -> str:
        return self.of[run_id]


def told(
    state: Spawn, events: list[SpawnEvent], announce: str = "All counted.", transcript: str | None = None
) -> str:
    """Return the text that a decision announces, where the child said `42 files`."""
    decided = next(event for event in events if isinstance(event, AnnounceDecided))
    assert decided.text is None, "the run has it"
    said = Said({"r0": "42 files", ANNOUNCE_RUN: announce})
    return announced_text(reduce(evolve, events, state), decided, said, transcript)


@pytest.mark.clause("SPAWN-9")
def test_a_child_that_has_ended_is_asked_what_to_announce() -> None:
    events = decide(state_after(accepted()), ended("r0", "42 files", started_ms=1, ended_ms=2), facts())

    assert events[0] == ChildEnded(run_id="r0", status="ok", started_ms=1, ended_ms=2)
    assert isinstance(events[1], AnnounceRequested)
    assert (events[1].speaker, events[1].run_id) == (CHILD, ANNOUNCE_RUN)


@pytest.mark.clause("SPAWN-9", "SPAWN-10")
def test_its_announce_goes_to_the_requesters_route_in_the_one_form() -> None:
    state = state_after(accepted(), DONE, ASKED)
    (decided,) = decide(state, ended(ANNOUNCE_RUN, "All counted."), facts())

    assert isinstance(decided, AnnounceDecided)
    assert (decided.delivery_id, decided.run_id) == (DELIVERY, ANNOUNCE_RUN)
    assert told(state, [decided]).split("\n") == ["Status: success", "Result: All counted.", "Notes: (none)"]
    assert decided.stats is not None
    assert decided.stats.startswith("runtime 5s"), "for the operator it is recorded"


@pytest.mark.clause("SPAWN-10")
@pytest.mark.parametrize("status", get_args(RunStatus))
@pytest.mark.parametrize("has_route", [True, False])
@pytest.mark.parametrize("details", [True, False])
def test_people_are_shown_no_ids_and_paths_unless_it_is_asked_for(
    status: RunStatus, *, has_route: bool, details: bool
) -> None:
    """Before: the announce in a chat named the session's key, its id and the path of its transcript."""
    state = state_after(accepted(announce_details=details))
    last = ended("r0", "42 files", status=status, error="timeout: /srv/a" if status == "error" else None)
    known = facts(has_route=has_route, transcript_path="/srv/intersession/s1.jsonl")
    events = decide(state, last, known)
    if status == "ok":
        state = state_after(state.accepted, *events)
        events = decide(state, ended(ANNOUNCE_RUN, "All counted."), known)

    decided = next(event for event in events if isinstance(event, AnnounceDecided))
    text = told(state, events, transcript=known.transcript_path)

    whole = text if decided.stats is None else f"{text}\nStats: {decided.stats}"
    assert f"sessionKey {CHILD} • sessionId s1 • transcript /srv/intersession/s1.jsonl" in whole
    shown = details or not has_route
    assert (decided.stats is None) == shown
    assert (CHILD in text) == ("/srv/" in text) == shown


@pytest.mark.clause("SPAWN-9")
def test_without_a_route_the_result_is_handed_to_the_requesters_session() -> None:
    state = state_after(accepted(), DONE, ASKED)

    decided, handed, closed = decide(state, ended(ANNOUNCE_RUN, "All counted."), facts(has_route=False))

    assert isinstance(decided, AnnounceDecided)
    assert decided.delivery_id is None
    assert isinstance(handed, ResultHanded)
    assert (handed.requester, handed.run_id) == (REQUESTER, RESULT_RUN)
    assert closed == SpawnClosed(reason="handed_over")


def closes() -> dict[SpawnClose, tuple[Spawn, RunEnded | DeliveryEnded, Circumstances]]:
    announcing = state_after(accepted(), DONE, ASKED)
    delivering = state_after(accepted(), DONE, ASKED, GOES_OUT)
    said = ended(ANNOUNCE_RUN, "All counted.")

    def delivered(outcome: Any) -> DeliveryEnded:
        return DeliveryEnded(stream=STREAM, delivery_id=DELIVERY, outcome=outcome)

    awaited = state_after(accepted(awaited_until_ms=9_000))
    by_requester = ended(accepted().run_id, status="aborted", by=accepted().requester)

    return {
        "returned": (awaited, ended(accepted().run_id, "All counted.", ended_ms=8_000), facts()),
        "cancelled": (state_after(accepted()), by_requester, facts()),
        "no_route": (state_after(accepted(requester=None), DONE, ASKED), said, facts(has_route=False)),
        "announced": (delivering, delivered("done"), facts()),
        "silent": (announcing, ended(ANNOUNCE_RUN, " ANNOUNCE_SKIP\n"), facts()),
        "handed_over": (announcing, said, facts(has_route=False)),
        "announce_failed": (delivering, delivered("failed"), facts()),
        "announce_denied": (delivering, delivered("denied"), facts()),
        "delivery_unknown": (delivering, delivered("unknown"), facts()),
        "withheld": (delivering, delivered("withheld"), facts()),
        "requester_gone": (announcing, said, facts(has_route=False, refused=refused(RESULT_RUN))),
    }


@pytest.mark.clause("SPAWN-9")
@pytest.mark.parametrize("reason", sorted(set(get_args(SpawnClose)) - {"inferred", "not_started"}))
def test_a_spawn_closes_for_each_of_its_reasons(reason: SpawnClose) -> None:
    state, outcome, known = closes()[reason]

    events = decide(state, outcome, known)

    assert isinstance(events[-1], SpawnClosed)
    assert events[-1].reason == reason
    stored = [(topic_of(event), encode(event)) for event in events]
    after = state
    for topic, payload in stored:
        event = decode(topic, payload)
        assert isinstance(event, SpawnEvent)
        after = evolve(after, event)
    assert after.phase == "closed"
    assert decide(after, outcome, known) == [], "told twice, it leads to nothing more"


@pytest.mark.clause("SPAWN-10")
@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("error", "error"),
        ("timeout", "timeout"),
        ("interrupted", "interrupted"),
        ("aborted", "interrupted"),
    ],
)
def test_a_child_that_broke_is_announced_for_it_and_not_asked(status: RunStatus, shown: str) -> None:
    state = state_after(accepted(announce_details=True))
    events = decide(state, ended("r0", status=status, error="it broke"), facts())

    decided = events[-1]
    assert isinstance(decided, AnnounceDecided)
    assert decided.why == "child_failed"
    assert told(state, events).split("\n")[:3] == [
        f"Status: {shown}",
        "Result: (no output)",
        "Notes: it broke",
    ]


@pytest.mark.clause("SPAWN-10")
def test_the_status_is_never_the_models_word() -> None:
    state = state_after(accepted(), DONE, ASKED)

    said = "Status: error\nall lost"
    events = decide(state, ended(ANNOUNCE_RUN, said), facts())

    text = told(state, events, said)
    assert [line for line in text.split("\n") if line.startswith("Status:")] == ["Status: success"]


@pytest.mark.clause("SPAWN-10")
@pytest.mark.parametrize(
    ("announced", "final", "tool", "shown"),
    [
        ("announced", "42 files", "tool", "announced"),
        (None, "42 files", "tool", "42 files"),
        (None, None, "tool", "tool"),
        ("announced", None, "tool", "announced\n\nLatest tool result: tool"),
        ("announced", None, None, "announced"),
        ("NO_REPLY", None, None, "(no output)"),
    ],
)
def test_the_result_falls_back_to_the_reply_and_then_to_the_last_tool_result(
    announced: str | None, final: str | None, tool: str | None, shown: str
) -> None:
    begun = state_after(accepted())
    state = state_after(begun.accepted, *decide(begun, ended("r0", final, last_tool_result=tool), facts()))
    events = decide(state, ended(ANNOUNCE_RUN, announced), facts())

    assert f"\nResult: {shown}\nNotes: (none)" in told(state, events, announced or "")


@pytest.mark.clause("SPAWN-9")
def test_a_broken_announce_turn_does_not_lose_the_result() -> None:
    state = state_after(accepted(), DONE, ASKED)

    events = decide(state, ended(ANNOUNCE_RUN, status="timeout", error="timeout"), facts())

    assert told(state, events).split("\n")[:2] == ["Status: success", "Result: 42 files"]


@pytest.mark.clause("SPAWN-11")
def test_a_child_that_somebody_else_archived_is_archived_once_and_none_that_has_not_begun() -> None:
    gone = ChildGone(stream=STREAM)
    begun, prepared = (
        state_after(accepted()),
        state_after(accepted(thread=ThreadAsked(channel="x", to="1", title="t", key="k"))),
    )

    assert decide(prepared, gone, facts()) == []
    assert decide(begun, gone, facts()) == [ChildArchived(child=CHILD, reason="deleted")]
    assert (
        decide(
            evolve(begun, ChildArchived(child=CHILD, reason="cleanup")),
            gone,
            facts(),
        )
        == []
    )


def test_a_child_that_was_archived_meanwhile_is_announced_for_it() -> None:
    state = state_after(accepted())
    events = decide(state, ended("r0", "42 files"), facts(refused=refused(ANNOUNCE_RUN)))

    assert told(state, events).split("\n")[1] == "Result: 42 files"


@pytest.mark.clause("SPAWN-11")
@pytest.mark.parametrize(
    ("fields", "due"),
    [
        ({"cleanup": "delete"}, 0),
        ({"archive_after_ms": MINUTE}, MINUTE),
        ({"archive_after_ms": 0}, None),
        ({"mode": "session", "archive_after_ms": MINUTE}, None),
    ],
)
def test_a_child_is_archived_from_the_end_of_its_run_and_only_when_the_announce_is_final(
    fields: dict[str, Any], due: int | None
) -> None:
    open_still = state_after(accepted(**fields), DONE, ASKED, GOES_OUT)
    final = evolve(open_still, SpawnClosed(reason="announced"))

    assert open_still.archive_after_ms is None
    assert final.archive_after_ms == due
    assert evolve(final, ChildArchived(child=CHILD, reason="cleanup")).archive_after_ms is None


FILES = Attachments(root="/w", directory="d", files=(AttachedFile(name="a", bytes=3, sha256="x"),))
THREAD = Route(channel="discord", to="42", thread="t1")
ASKED_THREAD = ThreadAsked(channel="discord", to="42", title="t", key="k")


def prepared(**fields: Any) -> Prepared:
    return Prepared(stream=STREAM, **fields)


@pytest.mark.clause("ATT-3", "SPAWN-12")
def test_a_child_that_needs_something_waits_for_it_and_then_starts() -> None:
    state = state_after(accepted(attachments=FILES, thread=ASKED_THREAD))
    assert state.phase == "preparing"

    events = decide_prepared(state, prepared(manifest_sha256="m", thread=THREAD), None)

    assert events == [
        ThreadOpened(route=THREAD),
        AttachmentsReady(directory="d", count=1, total_bytes=3, manifest_sha256="m"),
    ]
    started = state_after(accepted(attachments=FILES, thread=ASKED_THREAD), *events)
    assert started.phase == "task"
    assert decide_prepared(started, prepared(manifest_sha256="m", thread=THREAD), None) == []


@pytest.mark.clause("ATT-2", "SPAWN-12")
def test_what_can_not_be_had_closes_the_spawn_and_says_why() -> None:
    state = state_after(accepted(attachments=FILES))
    why = Refused(code="unsafe_path", error="a link")

    for events in (
        decide_prepared(state, prepared(refused=why), None),
        decide_prepared(
            state,
            prepared(manifest_sha256="m"),
            StepRefused(stream=STREAM, run_id="r0", code="unsafe_path", error="a link"),
        ),
    ):
        assert events == [SpawnClosed(reason="not_started", code="unsafe_path", note="a link")]
        closed = state_after(accepted(attachments=FILES, cleanup="delete"), *events)
        assert closed.not_started
        assert closed.archive_after_ms is None
        assert closed.files_due == FILES


@pytest.mark.clause("ATT-5")
@pytest.mark.parametrize(
    ("retain", "cleanup", "when"),
    [
        (False, "keep", "closed"),
        (False, "delete", "closed"),
        (True, "delete", "closed"),
        (True, "keep", "archived"),
    ],
)
def test_files_are_due_for_removal_when_the_announce_is_final_or_at_archiving(
    *, retain: bool, cleanup: str, when: str
) -> None:
    files = Attachments(root="/w", directory="d", files=(), retain=retain)
    ready = AttachmentsReady(directory="d", count=0, total_bytes=0, manifest_sha256="m")
    story: list[SpawnEvent] = [accepted(attachments=files, cleanup=cleanup), ready, DONE]
    assert state_after(*story).files_due is None

    story.append(SpawnClosed(reason="silent"))
    assert state_after(*story).files_due == (files if when == "closed" else None)

    story.append(ChildArchived(child=CHILD, reason="expired"))
    assert state_after(*story).files_due == files


@pytest.mark.clause("ATT-5")
@pytest.mark.parametrize("error", [None, "OSError: no"])
def test_a_removal_is_said_once_however_it_came_out(error: str | None) -> None:
    ready = AttachmentsReady(directory="d", count=0, total_bytes=0, manifest_sha256="m")
    story: list[SpawnEvent] = [accepted(attachments=FILES), ready, DONE, SpawnClosed(reason="silent")]

    (said,) = decide_removed(state_after(*story), error)

    assert said == (
        AttachmentsRemoved(directory="d")
        if error is None
        else AttachmentRemovalFailed(directory="d", error=error)
    )
    after = state_after(*story, said)
    assert after.files_due is None
    assert decide_removed(after, None) == []
