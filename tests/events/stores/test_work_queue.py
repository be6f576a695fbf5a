"""The queue of calls that workers make: one worker a call, an answer counts once, what is over or lost comes to nothing."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import StoreUnavailable, WorkRefused, WriterSuperseded
from intersession_events.log.work_queue import Answer, CallId, Offer, Taker, Worker
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.opened import open_log
from intersession_events.stores.url import is_postgres
from support.any_log import Logs, changed_behind
from support.encrypted import master_key, source, where
from support.work_queue import Queue, offer, queue, record, worker


@pytest.mark.clause("WORK-1")
def test_call_is_taken_once_answered_and_gone_once_it_is_on_record(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a"), offer("b"), offer("c", agent="other")])

        first, second = q.workers.take("w1", 5, 0)

        assert (first, second) == (offer("a"), offer("b"))
        assert [*q.workers.take("w1", 5, 0)] == []
        assert [(one.worker, one.is_alive, one.is_answered) for one in q.writer.standing()] == [
            ("w1", True, False),
            ("w1", True, False),
            (None, False, False),
        ]
        assert [one.taken for one in q.writer.workers()] == [2]
        assert q.workers.answer("w1", second.call, b'"two"')
        q.later(0.001)
        assert q.workers.answer("w1", first.call, b'"one"')
        assert [(one.call, one.content) for one in q.writer.answers()] == [
            (second.call, b'"two"'),
            (first.call, b'"one"'),
        ]
        q.writer.drop([first.call, second.call])
        assert q.writer.answers() == []
        assert [one.id for one in q.writer.standing()] == ["run-c"]


@pytest.mark.clause("WORK-1")
def test_attempt_that_is_in_the_queue_is_adopted_by_the_next_writer(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a"), offer("b")])
        q.workers.take("w1", 1, 0)
        q.again()

        q.writer.offer([offer("a"), offer("b")])

        assert [(one.id, one.worker) for one in q.writer.standing()] == [("run-a", "w1"), ("run-b", None)]
        assert q.workers.renew("w1", [offer("a").call]) == []
        assert q.workers.answer("w1", offer("a").call, b"1")
        q.again()
        assert [one.content for one in q.writer.answers()] == [b"1"]


@pytest.mark.clause("WORK-1")
def test_same_answer_again_counts_once_and_another_one_does_not(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a")])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))

        assert q.workers.answer("w1", call, b"yes")
        assert q.workers.answer("w1", call, b"yes")
        assert not q.workers.answer("w1", call, b"no")
        assert not q.workers.answer("w2", call, b"no")
        assert [one.content for one in q.writer.answers()] == [b"yes"]


@pytest.mark.clause("WORK-18", "CRYPT-1")
def test_what_waits_in_the_queue_of_an_encrypted_log_is_encrypted(log_url: str, tmp_path: Path) -> None:
    with queue(log_url, Encryption(source(master_key(tmp_path)))) as q:
        words = b'{"text":"zanzibar"}'
        text = msgspec.structs.replace(offer("t", agent="chat"), kind="channel", content=words)
        unfinished = msgspec.structs.replace(text, id="u", stream="")
        q.workers.announce(worker(chat="{}"))
        q.writer.offer([offer("a"), text, unfinished])

        assert [*q.workers.take("w1", 5, 0)] == [offer("a"), text, unfinished]
        for call in (offer("a").call, text.call, unfinished.call):
            assert q.workers.answer("w1", call, b'"zanzibar is an island"')
            assert q.workers.answer("w1", call, b'"zanzibar is an island"')  # told again
            assert not q.workers.answer("w1", call, b'"zanzibar is none"')

        assert where(log_url, tmp_path, b"zanzibar") == []
        assert {one.content for one in q.writer.answers()} == {b'"zanzibar is an island"'}
        q.again()
        assert {one.content for one in q.writer.answers()} == {b'"zanzibar is an island"'}
        assert q.log.destroy_keys(["session:a"]) == 1  # nothing else is encrypted with it
        left = [one.content for one in q.writer.answers() if b"zanzibar" in one.content]
        assert len(left) == 1  # that of the delivery: the key of unfinished answers went, too


@pytest.mark.clause("WORK-1")
def test_worker_that_sleeps_past_its_time_has_lost_its_call(log_url: str) -> None:
    with queue(log_url) as q:
        record(q.log, "session:a")
        q.writer.alive_s = 60
        q.workers.announce(worker())
        q.writer.offer([offer("a")])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))
        q.later(40)
        assert q.workers.renew("w1", [call]) == []
        q.later(40)
        assert q.writer.lapsed() == []

        q.later(21)

        assert q.writer.lapsed() == [call]
        assert q.workers.renew("w1", [call]) == [call]
        with pytest.raises(WorkRefused, match="run-a, attempt 1: it is over, or lost"):
            q.workers.events("w1", call, 0)
        assert not q.workers.answer("w1", call, b"late")
        # What came too late is told once its writer has said that the attempt is over: until then it goes on.
        assert q.writer.answers() == []
        assert q.writer.lapsed() == [call]
        q.writer.withdraw([call])
        assert q.writer.lapsed() == []
        assert [(one.content, one.is_late) for one in q.writer.answers()] == [(b"late", True)]


@pytest.mark.clause("WORK-4")
def test_worker_that_could_not_reach_a_writer_has_its_time_anew_but_one_that_left(log_url: str) -> None:
    with queue(log_url) as q:
        for number, name in enumerate("ab"):
            record(q.log, f"session:{name}")
            q.workers.announce(worker(f"w{number}"))
            q.writer.offer([offer(name)])
        (one,) = (call.call for call in q.workers.take("w0", 1, 0))
        (other,) = (call.call for call in q.workers.take("w1", 1, 0))
        q.workers.leave("w1")
        q.later(100)
        assert q.writer.lapsed() == [one, other]

        assert q.writer.workers() == []
        q.writer.extend([one, other])

        assert [each.name for each in q.writer.workers()] == ["w0"]
        assert q.writer.lapsed() == [other]
        assert q.workers.renew("w0", [one]) == []


@pytest.mark.clause("WORK-1")
def test_worker_is_told_of_what_is_over_and_what_nobody_took_goes(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a"), offer("b")])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))

        q.writer.withdraw([call, offer("b").call, CallId("channel", "unheard of", 1)])

        assert [(one.id, one.is_over) for one in q.writer.standing()] == [("run-a", True)]
        assert q.workers.renew("w1", [call]) == [call]
        assert not q.workers.answer("w1", call, b"late")
        assert [(one.content, one.is_late) for one in q.writer.answers()] == [(b"late", True)]


def test_call_that_is_over_is_forgotten_if_its_worker_says_no_more(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a")])
        q.workers.take("w1", 1, 0)
        q.writer.withdraw([offer("a").call])
        q.later(3601)
        q.writer.withdraw([])

        assert q.writer.standing() == []


@pytest.mark.clause("WORK-1")
def test_calls_of_a_worker_that_leaves_are_lapsed_at_once(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a"), offer("b")])
        a, b = (one.call for one in q.workers.take("w1", 2, 0))
        q.workers.answer("w1", a, b"1")

        q.workers.leave("w1")

        assert q.writer.workers() == []
        assert q.writer.lapsed() == [b]
        assert [one.call for one in q.writer.answers()] == [a]
        with pytest.raises(WorkRefused, match="announce it, and then take"):
            q.workers.take("w1", 1, 0)


@pytest.mark.clause("WORK-2")
def test_worker_takes_what_it_has_and_nothing_while_it_drains(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker("w1", "research", telegram="{}"))
        channel = Worker(name="w2", host="h", version="1", agents={}, channels={"main": "{}"}, seats=1)
        q.workers.announce(channel)
        q.workers.announce(worker("w3", "main", draining=True))
        q.writer.offer([offer("a"), offer("b", agent="research")])

        assert [one.id for one in q.workers.take("w1", 9, 0)] == ["run-b"]
        assert [*q.workers.take("w2", 9, 0)] == []
        assert [*q.workers.take("w3", 9, 0)] == []
        assert [(one.name, one.is_draining) for one in q.writer.workers()] == [
            ("w1", False),
            ("w2", False),
            ("w3", True),
        ]
        q.later(16)
        assert q.writer.workers() == []


@pytest.mark.clause("WORK-2")
def test_events_are_those_of_the_stream_up_to_the_call(log_url: str) -> None:
    with queue(log_url) as q:
        record(q.log, "session:a", 5)
        q.workers.announce(worker())
        q.writer.offer([offer("a", version=4)])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))

        assert q.workers.events("w1", call, 0) == q.log.stream("session:a", to=4)
        assert q.workers.events("w1", call, 2) == q.log.stream("session:a", after=2, to=4)
        with pytest.raises(WorkRefused):
            q.workers.events("w2", call, 0)


@pytest.mark.clause("WORK-2")
def test_long_stream_is_read_in_parts(log_url: str) -> None:
    with queue(log_url) as q:
        record(q.log, "session:a", 1_003)
        q.workers.announce(worker())
        q.writer.offer([offer("a", version=1_002)])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))

        first = q.workers.events("w1", call, 0)
        rest = q.workers.events("w1", call, first[-1].version)

        assert (len(first), len(rest)) == (1_000, 2)
        assert [*first, *rest] == [*q.log.stream("session:a", to=1_002)]


@pytest.mark.clause("WORK-2")
def test_what_is_offered_is_taken_at_once_for_workers_that_wait(log_url: str) -> None:
    with queue(log_url) as q:
        for name in ("w1", "w2"):
            q.workers.announce(worker(name))
        offers = [offer("a"), offer("b"), offer("c")]

        given = q.writer.offer(offers, [Taker("w1", 1), Taker("unheard of", 1), Taker("w2", 5)])

        assert [[*calls] for calls in given] == [[offers[0]], [], offers[1:]]
        assert [one.worker for one in q.writer.standing()] == ["w1", "w2", "w2"]


@pytest.mark.clause("WORK-14")
@pytest.mark.sqlite("workers answer a server without the writer")
def test_writer_hears_of_an_answer_at_once_if_it_came_in_time(log_url: str) -> None:
    with queue(log_url) as q:
        heard: list[Answer] = []
        q.writer.on_answer = heard.append
        q.workers.announce(worker())
        a, b = offer("a"), offer("b")
        q.writer.offer([a, b], [Taker("w1", 2)])
        q.writer.wait(0)

        assert not q.workers.answer("w2", a.call, b"another's")
        assert q.workers.answer("w1", a.call, b"yes")
        assert q.workers.answer("w1", a.call, b"yes")
        q.writer.withdraw([b.call])
        assert not q.workers.answer("w1", b.call, b"late")

        assert [(one.call, one.content) for one in heard] == [(a.call, b"yes")]
        q.again()
        assert [one.content for one in q.writer.answers()] == [b"yes", b"late"]


def test_workers_that_wait_are_given_what_is_offered(log_url: str) -> None:
    with queue(log_url) as q:
        taken: list[str] = []

        def take(name: str) -> None:
            taken.extend(one.id for one in q.workers.take(name, 1, 30))

        waiting = [threading.Thread(target=take, args=(name,)) for name in ("w1", "w2", "w3")]
        for number, one in enumerate(waiting):
            q.workers.announce(worker(f"w{number + 1}"))
            one.start()
        q.writer.offer([offer("a")])
        q.writer.offer([offer("b"), offer("c")])
        for one in waiting:
            one.join(30)

        assert sorted(taken) == ["run-a", "run-b", "run-c"]


def test_worker_that_waits_goes_on_as_the_log_is_closed(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        ended: list[Sequence[Offer] | StoreUnavailable] = []

        def take() -> None:
            try:
                ended.append(q.workers.take("w1", 1, 600))
            except StoreUnavailable as closed:
                ended.append(closed)

        waiting = threading.Thread(target=take)
        waiting.start()
        q.log.close()
        waiting.join(30)

        assert len(ended) == 1


def test_writer_hears_of_answers_and_of_workers_that_come_change_and_go(log_url: str) -> None:
    with queue(log_url) as q:
        q.writer.wait(0)
        q.workers.announce(worker())
        assert q.writer.wait(30)
        q.workers.announce(worker(draining=True))
        assert q.writer.wait(30)
        q.writer.offer([offer("a")])
        q.workers.announce(worker())
        q.workers.take("w1", 1, 0)
        q.writer.wait(30)
        q.workers.answer("w1", offer("a").call, b"1")
        assert q.writer.wait(30)
        q.workers.leave("w1")
        assert q.writer.wait(30)


def test_what_says_too_much_is_refused_and_what_nobody_reads_is_not_there(log_url: str) -> None:
    with queue(log_url) as q:
        for wrong, said in (
            (worker("x" * 257), "no name"),
            (worker("\n"), "no name"),
            (worker(seats=0), "0 seats"),
            (worker("w", *map(str, range(1001))), "1001 agents"),
            (
                Worker(name="w", host="h", version="1", agents={"a": "x" * (65_537)}, channels={}, seats=1),
                "about 'a'",
            ),
        ):
            with pytest.raises(WorkRefused, match=said):
                q.workers.announce(wrong)
        with pytest.raises(WorkRefused, match="bytes"):
            q.workers.answer("w1", offer("a").call, bytes(2**27 + 1))
        assert not q.workers.answer("w1", offer("a").call, b"")


@pytest.mark.clause("WORK-2")
def test_worker_beside_a_thousand_others_is_refused(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker("w0"))
        rest = "host, version, agents, channels, seats, is_draining, since, alive_until"
        rest += ", role, of_agents, of_channels" if is_postgres(log_url) else ""
        changed_behind(
            log_url,
            "WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 999) "  # noqa: S608 - our own names
            f"INSERT INTO workers (name, {rest}) SELECT at || '-', {rest} FROM n, workers",
        )

        with pytest.raises(WorkRefused, match="more seats"):
            q.workers.announce(worker("w1"))
        q.workers.announce(worker("w0", draining=True))
        q.workers.leave("w0")
        q.workers.announce(worker("w1"))


def test_reader_looks_at_the_queue_and_changes_nothing(log_url: str) -> None:
    with queue(log_url) as q:
        with open_log(log_url, read_only=True) as reader:
            assert (reader.work.standing(), reader.work.workers()) == ([], [])
        q.workers.announce(worker())
        q.writer.offer([offer("a")])
        with open_log(log_url, read_only=True, clock=lambda: q.now) as reader:
            assert [one.id for one in reader.work.standing()] == ["run-a"]
            assert [one.name for one in reader.work.workers()] == ["w1"]
            with pytest.raises(StoreUnavailable, match="reading only"):
                reader.work.offer([offer("b")])


@pytest.mark.clause("WORK-1")
def test_writer_that_another_one_has_taken_over_from_changes_nothing(log_url: str) -> None:
    with queue(log_url) as q:
        q.workers.announce(worker())
        q.writer.offer([offer("a"), offer("b")])
        (call,) = (one.call for one in q.workers.take("w1", 1, 0))
        q.workers.answer("w1", call, b"1")
        before = q.writer.standing()
        changed_behind(log_url, "UPDATE log_identity SET epoch=epoch+1")

        with pytest.raises(WriterSuperseded, match="epoch 2, this writer's was 1"):
            q.writer.offer([offer("c")])
        for change in (q.writer.withdraw, q.writer.drop):
            with pytest.raises(WriterSuperseded):
                change([offer("a").call, offer("b").call])
        assert q.writer.standing() == before
        assert [one.content for one in q.writer.answers()] == [b"1"]


class _Call(NamedTuple):
    """How an attempt should stand. `until` is when it is lost, and `late` whether its answer came too late."""

    worker: str | None = None
    until: int = 0
    answer: bytes | None = None
    late: bool = False
    over: bool = False


class _Model:
    """What the queue promises, in plain values."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: dict[str, _Call] = {}

    def offer(self, name: str) -> None:
        self.calls.setdefault(name, _Call())

    def take(self, by: str, most: int) -> list[str]:
        free = [name for name, call in self.calls.items() if call.worker is None][:most]
        for name in free:
            self.calls[name] = _Call(by, self.now + 60)
        return free

    def has(self, by: str, name: str) -> bool:
        call = self.calls.get(name, _Call())
        return call.worker == by and call.until > self.now and not call.over

    def renew(self, by: str, names: Sequence[str]) -> list[str]:
        mine = [name for name in names if self.has(by, name)]
        for name in mine:
            self.calls[name] = self.calls[name]._replace(until=self.now + 60)
        return [name for name in names if name not in mine]

    def answer(self, by: str, name: str, content: bytes) -> bool:
        call = self.calls.get(name, _Call())
        if call.worker == by and call.answer is None:
            call = self.calls[name] = call._replace(answer=content, late=not self.has(by, name))
        return call.worker == by and call.answer == content and not call.late

    def withdraw(self, name: str) -> None:
        call = self.calls.get(name)
        if call is not None and call.worker is None:
            del self.calls[name]
        elif call is not None:
            self.calls[name] = call._replace(over=True)

    def leave(self, by: str) -> None:
        for name, call in self.calls.items():
            if call.worker == by and call.answer is None:
                self.calls[name] = call._replace(until=0)

    def lapsed(self) -> list[str]:
        return [
            name
            for name, call in self.calls.items()
            if call.worker is not None
            and call.until <= self.now
            and not call.over
            and (call.answer is None or call.late)
        ]

    def answers(self) -> set[tuple[str, bytes, bool]]:
        return {
            (name, call.answer, call.over)
            for name, call in self.calls.items()
            if call.answer is not None and (not call.late or call.over)
        }


_NAMES = st.sampled_from(["a", "b", "c"])
_WORKERS = st.sampled_from(["w1", "w2"])
_STEPS = st.one_of(
    st.tuples(st.just("offer"), _NAMES),
    st.tuples(st.just("take"), _WORKERS, st.integers(1, 2)),
    st.tuples(st.just("renew"), _WORKERS, st.lists(_NAMES, unique=True, min_size=1)),
    st.tuples(st.just("answer"), _WORKERS, _NAMES, st.sampled_from([b"1", b"2"])),
    st.tuples(st.just("withdraw"), _NAMES),
    st.tuples(st.just("drop"), _NAMES),
    st.tuples(st.just("leave"), _WORKERS),
    st.tuples(st.just("later"), st.sampled_from([24, 61])),
)


@pytest.fixture(scope="module")
def shared(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """A queue for many examples."""
    with queue(logs.passing(tmp_path_factory.mktemp("log"))) as opened:
        opened.writer.alive_s = 60
        yield opened


@pytest.mark.clause("WORK-1")
@pytest.mark.timeout(1_200)  # 2,000 examples on a server, at night
@given(steps=st.lists(_STEPS, max_size=30))
def test_each_call_has_one_worker_and_one_answer_whatever_is_done(
    shared: Queue, steps: list[tuple[Any, ...]]
) -> None:
    q, model = shared, _Model()
    q.writer.drop([one.call for one in q.writer.standing()])
    for step in steps:
        for name in ("w1", "w2"):
            q.workers.announce(worker(name))
        q.now += 1
        _step(q, model, *step)

        assert [one.id for one in q.writer.lapsed()] == [f"run-{name}" for name in model.lapsed()]
        assert {(one.id, one.content, one.is_late) for one in q.writer.answers()} == {
            (f"run-{name}", content, late) for name, content, late in model.answers()
        }
        assert [(one.id, one.worker) for one in q.writer.standing()] == [
            (f"run-{name}", call.worker) for name, call in model.calls.items()
        ]


def _step(q: Queue, model: _Model, kind: str, *rest: object) -> None:
    match kind, rest:
        case "offer", (str(name),):
            model.offer(name)
            q.writer.offer([offer(name)])
        case "take", (str(by), int(most)):
            assert [one.id for one in q.workers.take(by, most, 0)] == [
                f"run-{name}" for name in model.take(by, most)
            ]
        case "renew", (str(by), list(names)):
            lost = q.workers.renew(by, [offer(str(name)).call for name in names])
            assert [call.id for call in lost] == [
                f"run-{name}" for name in model.renew(by, list(map(str, names)))
            ]
        case "answer", (str(by), str(name), bytes(content)):
            assert q.workers.answer(by, offer(name).call, content) == model.answer(by, name, content)
        case "withdraw", (str(name),):
            model.withdraw(name)
            q.writer.withdraw([offer(name).call])
        case "drop", (str(name),):
            model.calls.pop(name, None)
            q.writer.drop([offer(name).call])
        case "leave", (str(by),):
            model.leave(by)
            q.workers.leave(by)
        case "later", (int(seconds),):
            model.now += seconds
            q.later(seconds)
        case _:
            raise AssertionError(kind)
