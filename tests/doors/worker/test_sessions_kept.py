"""What a worker keeps of the sessions whose calls it had."""

import msgspec
import pytest

from intersession import SessionSystem, Turn
from intersession.worker import sessions as module
from intersession.worker.sessions import Sessions
from intersession_actors.rules.prompt.transcript import context_hash
from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import text_of
from intersession_events.log.work_queue import Offer
from support.worker_turns import Reads, offer_of, rebuilt


def offers_of(system: SessionSystem, *texts: str) -> list[Offer]:
    """Have an agent answer, and return what was offered for each turn."""
    found: list[Offer] = []

    def note(turn: Turn) -> str:
        found.append(offer_of(system.log, turn))
        return f"heard {turn.message}"

    system.register_agent("main", note)
    for text in texts:
        system.inbound(channel="chat", chat_id="1", sender="mia", text=text, wait=20)
    return found


@pytest.mark.clause("WORK-11")
def test_of_a_session_that_is_known_only_what_is_new_is_read() -> None:
    with SessionSystem(":memory:") as system:
        first, second, third = offers_of(system, "one", "two", "three")
        reads = Reads(system.log)
        sessions = Sessions(reads)

        sessions.attempt(first)
        sessions.attempt(second)
        before = reads.read
        turn = rebuilt(sessions, third)

        assert reads.read - before == third.version - second.version
        assert [text_of(said) for said in turn.transcript] == ["one", "heard one", "two", "heard two"]


def test_a_call_that_is_older_than_what_is_known_is_read_anew() -> None:
    with SessionSystem(":memory:") as system:
        first, second = offers_of(system, "one", "two")
        sessions = Sessions(Reads(system.log))
        sessions.attempt(second)

        assert rebuilt(sessions, first).transcript == ()


@pytest.mark.clause("WORK-11")
def test_messages_that_are_not_at_hand_are_read_from_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 2_000)
    with SessionSystem(":memory:") as system:
        texts = [f"word {number} " * 20 for number in range(20)]
        *_, last = offers_of(system, *texts)

        turn = rebuilt(Sessions(Reads(system.log)), last)

        assert turn.transcript.tokens_at_hand()[0] > 0  # type: ignore[attr-defined]
        assert context_hash(turn.transcript, turn.asked, (), turn.whole_context or "") == last.context_hash
        assert text_of(turn.transcript[0]) == texts[0]


@pytest.mark.clause("WORK-11")
def test_another_context_than_the_recorded_one_is_no_turn() -> None:
    with SessionSystem(":memory:") as system:
        (offer,) = offers_of(system, "one")
        sessions = Sessions(Reads(system.log))

        for _ in range(2):
            with pytest.raises(CorruptEvent, match="another one here"):
                sessions.attempt(changed(offer, context_hash="0" * 64))
        assert rebuilt(sessions, offer).message == "one"


@pytest.mark.parametrize("other", [{"version": 1}, {"attempt": 2}, {"id": "another"}, {"version": 99}])
def test_an_offer_that_the_stream_does_not_bear_out_is_no_turn(other: dict[str, object]) -> None:
    with SessionSystem(":memory:") as system:
        (offer,) = offers_of(system, "one")

        with pytest.raises(CorruptEvent):
            Sessions(Reads(system.log)).attempt(changed(offer, **other))


def changed(offer: Offer, **fields: object) -> Offer:
    return msgspec.structs.replace(offer, **fields)
