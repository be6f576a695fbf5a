"""Forks of a conversation at its places: closed, carried on to the end, with edits as events, and recorded agents the same again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from intersession import ConfigError, MemoryChannel, SessionSystem, ToolRefused, Turn, echo
from intersession_actors.hindsight.forking.listing import forks_of
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.facts import ForkEdit, ForkEdited, ToolCallBlock, TurnEnded, message_in
from intersession_events.log.log import Log
from intersession_events.stores.folding.fold import Fold
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.read_views import ViewsBeside
from intersession_projections.views.run_outcomes.replies import told_in
from support.forks_played import (
    CONFIG,
    DESK,
    WAIT,
    Conversation,
    Played,
    answers,
    asks,
    conversation,
    play,
    said,
)
from support.running import merged


def told(played: Played, exchange: str) -> list[tuple[str, str | None]]:
    """What was said in an exchange of a fork; that a text was withheld stands for that it arrived."""
    with open_log(played.made.path, read_only=True) as log:
        events = said(log, exchange)
    return [(topic, "announced" if text == "withheld" else text) for topic, text in events]


def check_same(talk: Conversation, at: int) -> None:
    played = play(talk, talk.exchange, at, agents={"*": "recorded"})
    assert played.carried.state == "ended", (at, played.carried)
    assert played.carried.divergence is None
    assert told(played, talk.exchange) == list(said(talk.log, talk.exchange)), at


def exchange_positions(talk: Conversation) -> list[int]:
    first = talk.log.stream(f"exchange:{talk.exchange}")[0].position
    return list(range(first, talk.log.head() + 1))


@pytest.mark.clause("FORK-4", "FORK-7")
def test_a_fork_with_recorded_agents_is_the_same_again_from_the_middle_of_each_kind_of_step(
    talk: Conversation,
) -> None:
    positions = exchange_positions(talk)
    for at in (positions[0], positions[4], positions[7], positions[len(positions) // 2]):
        check_same(talk, at)


@pytest.mark.nightly
@pytest.mark.clause("FORK-4", "FORK-7")
def test_a_fork_with_recorded_agents_is_the_same_again_from_every_position(talk: Conversation) -> None:
    for at in exchange_positions(talk):
        check_same(talk, at)


@pytest.mark.clause("FORK-4")
def test_another_answer_stands_in_the_place_of_the_one_that_was_given(talk: Conversation) -> None:
    edit = ForkEdit(kind="reply", value="it was cancelled")
    played = play(talk, talk.exchange, "turn:2", edit, agents={"main": "asks", "desk": "answers"})
    assert played.carried.state == "ended"
    with open_log(played.made.path, read_only=True) as log:
        replies = {
            one.event.turn: one.event.text
            for one in told_in(log, log.stream(f"exchange:{talk.exchange}"))
            if isinstance(one.event, TurnEnded) and one.event.turn
        }
        (edited,) = [one.event for one in log.stream("log") if isinstance(one.event, ForkEdited)]
    assert replies == {1: "are you sure?", 2: "it was cancelled", 3: "are you sure?", 4: "quite sure"}
    assert (edited.edit.kind, edited.edit.value, edited.by) == ("reply", "it was cancelled", "operator")
    assert edited.edit.place.endswith("@turn:2")


@pytest.mark.clause("FORK-4")
def test_a_skip_ends_the_loop_there_and_a_drop_leaves_the_answer_out(talk: Conversation) -> None:
    agents = {"main": "asks", "desk": "answers"}
    skipped = play(talk, talk.exchange, "turn:2", ForkEdit(kind="skip"), agents=agents)
    assert (skipped.carried.outcome.end, skipped.carried.outcome.turns) == ("reply_skip", 2)
    dropped = play(talk, talk.exchange, "turn:3", ForkEdit(kind="drop"), agents=agents)
    assert (dropped.carried.outcome.end, dropped.carried.outcome.turns) == ("no_text", 3)


@pytest.mark.clause("FORK-4")
def test_another_message_begins_another_exchange_and_who_sent_it_hears_its_reply(talk: Conversation) -> None:
    edit = ForkEdit(kind="message", value="is it cancelled?")
    played = play(
        talk,
        talk.exchange,
        "start",
        edit,
        agents={"*": "recorded", "desk": lambda turn: f"no: {turn.message}"},
    )
    assert played.made.run != talk.exchange
    with open_log(played.made.path, read_only=True) as log:
        accepted, *_ = log.stream(f"exchange:{played.made.run}")
        assert getattr(accepted.event, "message", None) == "is it cancelled?"
        assert not log.stream(f"exchange:{talk.exchange}")
    divergence = played.carried.divergence
    assert divergence is not None
    assert (divergence.kind, "no: is it cancelled?" in (divergence.now or "")) == ("tool", True)


@pytest.mark.clause("FORK-4")
def test_a_setting_holds_though_the_exchange_had_fixed_its_own(talk: Conversation) -> None:
    edit = ForkEdit(kind="set", key="session.agentToAgent.maxPingPongTurns", value="2")
    played = play(talk, talk.exchange, "turn:1", edit, agents={"main": "asks", "desk": "answers"})
    assert (played.carried.outcome.end, played.carried.outcome.turns) == ("turn_limit", 2)


@pytest.mark.clause("FORK-4")
def test_a_further_message_is_heard_by_who_speaks_next(talk: Conversation) -> None:
    heard: list[str] = []

    def listens(turn: Turn) -> object:
        heard.append(turn.prompt())
        return answers(turn)

    edit = ForkEdit(kind="inject", key="agent:desk:main", value="the timetable has changed")
    play(talk, talk.exchange, "turn:1", edit, agents={"main": "asks", "desk": listens})
    assert "the timetable has changed" in heard[0]


@pytest.mark.clause("FORK-4")
@pytest.mark.parametrize(
    ("at", "edits", "says"),
    [
        ("start", [ForkEdit(kind="reply", value="x")], "RUN@turn:N"),
        ("turn:2", [ForkEdit(kind="message", value="x")], "RUN@start"),
        ("turn:2", [ForkEdit(kind="reply", value="x"), ForkEdit(kind="skip")], "both replace"),
        ("turn:2", [ForkEdit(kind="reply", value=" ")], "--skip"),
        ("turn:9", [], "it has turn:1 to turn:4"),
        ("1", [], "before the run"),
        ("turn:1", [ForkEdit(kind="inject", key="agent:desk:nobody", value="x")], "agent:desk:main"),
        ("turn:1", [ForkEdit(kind="set", key="", value="2")], "NAME=VALUE"),
    ],
)
def test_what_is_not_possible_is_refused_with_what_is(
    talk: Conversation, at: str, edits: list[ForkEdit], says: str
) -> None:
    with pytest.raises(ToolRefused, match=says):
        play(talk, talk.exchange, at, *edits)


@pytest.mark.clause("FORK-4")
def test_a_fork_waits_for_the_agents_that_it_is_not_given_and_says_which(talk: Conversation) -> None:
    played = play(talk, talk.exchange, "turn:2", agents={"desk": "answers"})
    assert (played.carried.state, played.carried.missing) == ("waits", ("main",))


def asks_again(turn: Turn) -> str:
    """Send another message than the one that was sent then."""
    if turn.step != "message":
        return turn.skip_word
    return str(turn.tools.call("sessions_send", {"sessionKey": DESK, "message": "are you there?"}))


HOLD = ForkEdit(kind="set", key="session.agentToAgent.hold", value="every-turn")


@pytest.mark.clause("FORK-4", "LIVE-1")
def test_a_fork_that_is_held_ends_there_and_goes_on_when_it_is_released(talk: Conversation) -> None:
    agents = {"main": "main", "desk": "desk"}
    with talk.system.fork(talk.exchange, at="turn:1", edits=[HOLD], agents=agents) as fork:
        turns = []
        while (carried := fork.carried_on()).state == "held":
            (held,) = carried.held
            turns.append((held.step, held.turn))
            fork.release(held.run)
        assert (carried.state, carried.outcome.turns) == ("ended", 4)
        assert turns == [("reply", 1), ("reply", 2), ("reply", 3), ("announce", 4)]


@pytest.mark.clause("FORK-4", "LIVE-1")
def test_who_waits_for_what_is_held_or_parked_stands_still_as_well(
    talk: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    held = talk.system.fork(talk.run, at="start", edits=[HOLD], agents={"main": "main", "desk": "desk"})
    with held:
        assert held.carried_on().state == "held"
        held.close(grace=0)
    parked = talk.system.fork(talk.run, at="start", agents={"main": "main"})
    with parked:
        carried = parked.carried_on()
        assert (carried.state, carried.missing) == ("waits", ("desk",))
        parked.close(grace=0)
    # Here a turn is queued behind the run that waits for what is parked, for as long as a send waits.
    behind = talk.system.fork(talk.exchange, at="reply", agents={"main": asks_again})
    with behind:
        carried = behind.carried_on(WAIT)
        assert (carried.state, carried.missing) == ("waits", ("desk",))
        behind.close(grace=0)
    assert "was cut off" not in caplog.text, "by the cut of the fork: nothing went wrong"


@pytest.mark.ci
@pytest.mark.clause("FORK-4")
def test_a_model_answers_in_a_fork_and_one_that_is_down_fails_its_run(talk: Conversation) -> None:
    provider = {"baseUrl": "http://127.0.0.1:9/v1", "models": [{"id": "m"}]}
    with SessionSystem(
        talk.log.path + ".other.db",
        agents={"main": echo()},
        config=merged(CONFIG, {"models": {"providers": {"down": provider}}}),
    ) as host:
        run = host.inbound(channel="x", chat_id="1", text="hi", sender="ann", wait=WAIT)["runId"]
        with host.fork(run, at="start", agents={"main": "down/m"}) as fork:
            carried = fork.carried_on(3 * WAIT)
        assert (carried.state, carried.outcome.end) == ("ended", "backend")
        for spec, says in (
            ("nobody/m", "models.providers.nobody"),
            ("down/", "no agent of the host"),
            ("m", "no agent of the host"),
        ):
            with pytest.raises((ConfigError, ToolRefused), match=says):
                host.fork(run, at="start", agents={"main": spec})


@pytest.mark.clause("FORK-7")
@pytest.mark.parametrize(
    ("way", "says"),
    [("nowhere", "stop, live or script:FILE"), ("script:/nowhere.txt", "can't be read"), ("", "stop, live")],
)
def test_a_way_to_go_on_that_is_none_is_refused_and_leaves_no_fork(
    talk: Conversation, way: str, says: str
) -> None:
    before = {one.id for one in forks_of(talk.log.path).forks}
    with pytest.raises(ToolRefused, match=says):
        talk.system.fork(talk.exchange, at="turn:1", agents={"*": "recorded"}, on_divergence=way)
    assert {one.id for one in forks_of(talk.log.path).forks} == before


@pytest.mark.clause("FORK-7")
def test_where_a_recording_ends_the_live_agent_or_a_script_can_go_on(
    talk: Conversation, tmp_path: Path
) -> None:
    edit = ForkEdit(kind="reply", value="it was cancelled")
    script = tmp_path / "on.txt"
    script.write_text("REPLY_SKIP\n")
    for way, turns in (("live", 4), (f"script:{script}", 3)):
        given = {"edits": [edit], "agents": {"*": "recorded"}, "on_divergence": way}
        with talk.system.fork(talk.exchange, at="turn:2", **given) as fork:  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - each of its own type
            carried = fork.carried_on(WAIT)
        assert (carried.state, carried.outcome.turns) == ("ended", turns)
        assert carried.divergence is not None


@pytest.mark.clause("FORK-4")
@pytest.mark.parametrize(
    ("at", "edit", "says"),
    [
        ("turn:2", ForkEdit(kind="reply", value="half \ud800"), "--reply: its value is not valid Unicode"),
        ("turn:2", ForkEdit(kind="reply", value="x" * (1024 * 1024 + 1)), "--reply: its value is too long"),
        ("start", ForkEdit(kind="message", value="\udfff"), "--message: its value is not valid Unicode"),
        (
            "turn:1",
            ForkEdit(kind="set", key="session.\ud800", value="1"),
            "--set: its key is not valid Unicode",
        ),
        ("turn:1", ForkEdit(kind="inject", key="k" * 600, value="x"), "--inject: its key is too long"),
        ("turn:1", ForkEdit(kind="inject", key=DESK, value="\ud800"), "--inject: its value is not valid"),
        ("turn:1", ForkEdit(kind="agent", key="ghost", value="recorded"), "there is no such agent here"),
        ("turn:1", ForkEdit(kind="set", key="session.nothing", value="1"), "session.nothing"),
        (
            "turn:1",
            ForkEdit(kind="set", key="session.agentToAgent.maxPingPongTurns", value="many"),
            "maxPingPong",
        ),
        (
            "turn:1",
            ForkEdit(kind="set", key="models.providers.p.apiKey", value="sk-1"),
            "it is a secret, and what is set is recorded",
        ),
        ("turn:2", ForkEdit(kind="reply", value="x", place="turn:1"), "edits are made where the fork is cut"),
        ("turn:1", ForkEdit(kind="frobnicate", value="x"), "there is no kind"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        ("turn:1", ForkEdit(kind="reply", value=7), "its value is no text"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    ],
    ids=lambda value: str(value)[:50].encode("ascii", "replace").decode(),
)
def test_an_edit_that_is_none_is_refused_in_a_line_and_leaves_no_fork(
    talk: Conversation, at: str, edit: ForkEdit, says: str
) -> None:
    before = {one.id for one in forks_of(talk.log.path).forks}
    with pytest.raises((ToolRefused, ConfigError), match=says) as refused:
        talk.system.fork(talk.exchange, at=at, edits=[edit])
    assert "\n" not in str(refused.value)
    assert {one.id for one in forks_of(talk.log.path).forks} == before


@pytest.mark.clause("FORK-4")
def test_an_edit_that_replaces_is_for_the_run_that_is_forked(tmp_path: Path) -> None:
    with SessionSystem(tmp_path / "log.db", agents={"main": echo()}) as host:
        asked = [("x", chat, "hi") for chat in ("1", "2")]
        one, other = (
            host.inbound(channel=channel, chat_id=chat, text=text, sender="ann", wait=WAIT)["runId"]
            for channel, chat, text in asked
        )
        for at in (f"{other}@reply", f"{other}@end", f"{other}@reply-1"):
            with pytest.raises(ToolRefused, match="is no place of"):
                host.fork(one, at=at, edits=[ForkEdit(kind="reply", value="x")])


@pytest.mark.clause("FORK-7")
def test_the_first_turn_that_is_given_something_else_is_where_a_what_if_stops(talk: Conversation) -> None:
    edit = ForkEdit(kind="reply", value="it was cancelled")
    played = play(talk, talk.exchange, "turn:2", edit, agents={"*": "recorded"})
    divergence = played.carried.divergence
    assert played.carried.state == "diverged"
    assert divergence is not None
    assert (divergence.kind, divergence.turn, divergence.session_key) == ("context", 3, "agent:main:main")
    assert (divergence.recorded, divergence.now) == ("are you sure?", "it was cancelled")
    loose = play(talk, talk.exchange, "turn:2", edit, agents={"*": "recorded"}, loose=True)
    assert (loose.carried.state, loose.carried.outcome.turns) == ("ended", 4)


@pytest.mark.clause("FORK-10", "FORK-5")
def test_a_running_system_forks_a_run_and_goes_on_itself(talk: Conversation, tmp_path: Path) -> None:
    script = tmp_path / "desk.jsonl"
    script.write_text(
        '{"step": "reply", "reply": "rather sure"}\n{"step": "announce", "reply": "ANNOUNCE_SKIP"}\n'
        '{"step": "reply", "reply": "REPLY_SKIP"}\n'
    )
    channel = MemoryChannel()
    fork = talk.system.fork(
        talk.exchange,
        at="turn:1",
        agents={"desk": f"script:{script}", "main": "main"},
        edits=[ForkEdit(kind="set", key="session.agentToAgent.announce", value='"always"')],
    )
    with fork:
        carried = fork.carried_on(20)
        assert (carried.state, carried.outcome.end, carried.outcome.announced) == (
            "ended",
            "reply_skip",
            None,
        )
        assert fork.log.log_id != talk.log.log_id
        assert channel.delivered == ()
    assert talk.system.status()["fork"] is None
    with pytest.raises(ToolRefused, match="no agent of the host has that name"):
        talk.system.fork(talk.exchange, at="turn:1", agents={"main": "nobody"})


@pytest.mark.clause("FORK-4", "LOOP-5")
def test_the_time_between_the_cut_and_the_fork_counts_for_no_limit(tmp_path: Path) -> None:
    """The bad run of last night, forked in the morning: its chain is no hours older for that."""
    talk = conversation(tmp_path, clock=LastNight())
    talk.system.close(grace=0)
    with SessionSystem(
        tmp_path / "source.db", agents={"main": asks, "desk": answers}, config=CONFIG
    ) as morning:
        fork = morning.fork(talk.exchange, at="turn:2", agents={"*": "recorded"})
    with fork:
        carried = fork.carried_on(WAIT)
        assert (carried.state, carried.outcome.end, carried.outcome.turns) == ("ended", "turn_limit", 4)
        with fork.fork(talk.exchange, at="turn:3", agents={"*": "recorded"}) as second:
            assert second.carried_on(WAIT).outcome.end == "turn_limit"


@pytest.mark.clause("FORK-5")
def test_a_fork_publishes_no_checkpoints(tmp_path: Path) -> None:
    """Who trusts what the host publishes would hear of a copy. A checkpoint of it is taken when it stops."""
    published = tmp_path / "published"
    published.touch()
    config = merged(CONFIG, {"checkpoints": {"publish": {"file": str(published)}}})
    with SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=config) as host:
        run = host.inbound(channel="x", chat_id="1", text="hi", sender="ann", wait=WAIT)["runId"]
        with host.fork(run, at="start", agents={"*": "recorded"}) as fork:
            fork.carried_on(WAIT)
            log_id = fork.log.log_id
            assert fork.checkpoint()["at"] > 0
        own = host.log.log_id
    assert own in published.read_text()
    assert log_id not in published.read_text()


class LastNight(SystemClock):
    """A clock that is eight hours behind."""

    def now_ms(self) -> int:
        return super().now_ms() - 8 * 3600 * 1000


@pytest.mark.clause("FORK-7")
def test_a_recorded_agent_whose_call_was_made_has_no_list_of_sessions_folded(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked neither who calls, nor for the ids that the run has given: a fork of a large log would wait for it.

    A call that is made in the fork asks it, for its target.
    """
    folded: list[str] = []
    bring = ViewsBeside._bring

    def noted(self: ViewsBeside, folds: Sequence[Fold], head: int) -> None:
        folded.extend(fold.name for fold in folds if fold.position < head)
        bring(self, folds, head)

    monkeypatch.setattr(ViewsBeside, "_bring", noted)
    with talk.system.fork(talk.exchange, at="reply", agents={"*": "recorded"}) as fork:
        carried = fork.carried_on(WAIT)
        calls = [call for call in calls_in(fork.log, talk.run) if call == "sessions_send"]
    assert (carried.state, carried.divergence) == ("ended", None)
    assert calls == ["sessions_send"]
    assert "session_list" not in folded


def calls_in(log: Log, run: str) -> list[str]:
    """Return the tools that a run of main was recorded to call."""
    events = (item.event for item in log.stream("session:agent:main:main"))
    messages = [message for event in events if (message := message_in(event)) is not None]
    blocks = [block for message in messages if message.run_id == run for block in message.content]
    return [block.name for block in blocks if isinstance(block, ToolCallBlock)]
