"""Faults planted into the real code, one at a time, each of which a simulation has to find.

The first ones are what was wrong in version 0.1.0 (A1 to A12 are the findings' own numbers), the others what is wrong in systems
like this one now and then.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any, Final, cast
from unittest.mock import patch

import msgspec

from intersession_actors.assembly.methods import runs
from intersession_actors.calls.service import asking, receipts
from intersession_actors.calls.service.asking import ask_session, gone_on
from intersession_actors.calls.tools import sessions_send
from intersession_actors.outside.channels import offered
from intersession_actors.outside.channels import remote as remote_channels
from intersession_actors.outside.channels import turns as channel_turns
from intersession_actors.outside.channels.channels import Outbound
from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered
from intersession_actors.outside.channels.remote import RemoteChannels
from intersession_actors.outside.channels.turns import Attempts
from intersession_actors.outside.channels.turns import CallState as InProcess
from intersession_actors.owners.chains.ledger import ChainLedger
from intersession_actors.owners.delivery import effects as delivery_effects
from intersession_actors.owners.delivery import rules as delivery_rules
from intersession_actors.owners.exchange import coordinator, holds
from intersession_actors.owners.exchange import rules as exchange_rules
from intersession_actors.owners.exchange.records import RULES
from intersession_actors.owners.flows import steps as flow_steps
from intersession_actors.owners.session import answers, deciding
from intersession_actors.owners.session import records as session_records
from intersession_actors.owners.session import rules as session_rules
from intersession_actors.owners.session.answers import decide_returned
from intersession_actors.owners.session.commands import Abort, Enqueue, RunReturned, message_for
from intersession_actors.owners.session.deciding import Decider
from intersession_actors.owners.session.state import Session
from intersession_actors.owners.spawn import rules as spawn_rules
from intersession_actors.owners.spawn import steps as spawn_steps
from intersession_actors.owners.streams import rules_in_force
from intersession_actors.owners.streams.commands import Accepted, Request
from intersession_actors.owners.streams.judgements import judgement_record
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.standing import Generations
from intersession_actors.rules.policy.access import Sight
from intersession_actors.rules.policy.chain import one_hop_on
from intersession_actors.rules.policy.sending import judge_send
from intersession_actors.rules.prompt.transcript import TranscriptFold
from intersession_actors.running.runtime.clock import Stopwatch
from intersession_events.basics.errors import WriterSuperseded
from intersession_events.facts import LateReplyDropped
from intersession_events.stores.database import Cursor
from intersession_events.stores.portable.appends import Append
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.views import SqliteViews
from intersession_events.stores.sqlite.work import FileWork
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.sessions.list import Sessions

Bug = Callable[[], AbstractContextManager[object]]


def a1_spawns_are_outside_the_guard() -> AbstractContextManager[object]:
    """A spawn goes on with no budget of its chain: it may hop for ever."""

    def unguarded(service: Any, origin: Any, target: str, field: str) -> Any:
        if field != "task":
            return gone_on(service, origin, target, field)
        gone_on(
            service, origin._replace(budget=msgspec.structs.replace(origin.budget, hops=0)), target, field
        )
        limits = service.config.session.limits
        return msgspec.structs.replace(one_hop_on(origin.budget, target, limits), hops=0)

    return patch.object(asking, "gone_on", unguarded)


def a3_an_answer_is_given_up_at_once() -> AbstractContextManager[object]:
    """The first failure of the store loses an agent's answer, and its run stays running."""

    away = Owner.store_away

    def lost(self: Any, told: Any, error: Exception) -> None:
        if not isinstance(told.command, RunReturned):
            away(self, told, error)

    return patch.object(Owner, "store_away", lost)


def a4_a_registration_cuts_off() -> AbstractContextManager[object]:
    """A call of a channel that this process makes right now is taken for one that a crash cut off."""
    known = Attempts.of

    def of(self: Any, key: str, attempt: int) -> Any:
        found = known(self, key, attempt)
        return InProcess.NEVER if found is InProcess.UNDER_WAY else found

    return patch.object(Attempts, "of", of)


def a6_turns_come_to_whoever_has_the_key() -> AbstractContextManager[object]:
    """What is meant for a conversation comes to the one that took its place."""
    decide = session_rules.decide_enqueue

    def decide_enqueue(state: Any, command: Enqueue, **given: Any) -> Any:
        return decide(state, msgspec.structs.replace(command, session_id=None), **given)

    return patch.object(session_rules, "decide_enqueue", decide_enqueue)


def a8_a_message_interrupts_before_it_is_accepted() -> AbstractContextManager[object]:
    """The runs under way are stopped first, and then it turns out that the message was accepted before."""
    queue = runs.GatewayRuns._queue

    def stops(self: Any, call: Any, order: Any) -> Any:
        if order.busy == "interrupt":
            ask_session(self._service, str(order.key), Abort(run_id=None, by=call.caller.name))
        return queue(self, call, order)

    return patch.object(runs.GatewayRuns, "_queue", stops)


def a11_a_context_is_of_another_moment() -> AbstractContextManager[object]:
    """An agent is given the transcript without what was said last."""
    made = TranscriptFold.context

    def stale(self: Any, run_id: str) -> Any:
        found = made(self, run_id)
        return msgspec.structs.replace(found, transcript=tuple(found.transcript)[:-1])

    return patch.object(TranscriptFold, "context", stale)


def a12_a_retry_is_judged_anew() -> AbstractContextManager[object]:
    """A send that was accepted is refused when it is made again and its target is gone."""
    return patch.object(sessions_send, "_accepted_before", lambda *_: None)


def a17_deadlines_are_by_the_wall_clock() -> AbstractContextManager[object]:
    """A step of the wall clock ends runs early."""

    def elapsed_ms(self: Stopwatch, *key: str, since_ms: int) -> int:
        del key
        return max(self._clock.now_ms() - since_ms, 0)

    return patch.object(Stopwatch, "elapsed_ms", elapsed_ms)


def acknowledges_before_it_stores() -> AbstractContextManager[object]:
    """A door hears `accepted` when its append is asked for."""
    ask = Owner._ask

    def early(self: Any, told: Any, *rest: Any, **given: Any) -> None:
        if isinstance(told.command, Request) and told.command.answer is not None:
            told.command.answer(Accepted(recorded=()))
        ask(self, told, *rest, **given)

    return patch.object(Owner, "_ask", early)


def texts_jump_the_line() -> AbstractContextManager[object]:
    """A text goes out as soon as it may, whatever else is to go to its place first."""
    return patch.object(channel_turns.Turns, "is_next", lambda *_: True)


def draws_delivery_keys() -> AbstractContextManager[object]:
    """Each call of a channel has a key of its own, so that none can know a text again."""
    numbers = count(1)
    init = Outbound

    def drawn(**given: Any) -> Outbound:
        return init(**(given | {"key": f"{given['key']}/{next(numbers)}"}))

    return patch.object(delivery_effects, "Outbound", drawn)


def has_no_fence() -> AbstractContextManager[object]:
    """A writer whose epoch is over goes on to write."""
    begun = identity.begun

    def whoever_writes(cursor: Cursor, _mine: int) -> tuple[int, str]:
        cursor.execute("SELECT epoch FROM log_identity")
        return begun(cursor, cursor.fetchone()[0])

    return patch.object(identity, "begun", whoever_writes)


@contextmanager
def reads_nothing_back() -> Generator[None]:
    """A commit whose answer was lost is believed to have failed."""
    with (
        patch.object(Append, "is_stored", lambda self, cursor: False),  # noqa: ARG005 - its signature
        patch.object(Append, "_recorded_before", lambda self, cursor: None),  # noqa: ARG005 - its signature
    ):
        yield


def forgets_where_a_view_is() -> AbstractContextManager[object]:
    """A view's position is written with the next commit, and not with its rows."""
    remember = SqliteViews.remember
    behind: list[tuple[Mapping[str, int], int]] = []

    def late(self: SqliteViews, cursor: Cursor, shapes: Mapping[str, int], position: int) -> None:
        if behind:
            remember(self, cursor, *behind.pop())
        behind.append((shapes, position))

    return patch.object(SqliteViews, "remember", late)


def skips_by_substring() -> AbstractContextManager[object]:
    """A reply that speaks of the skip token is taken for silence."""
    return patch.object(exchange_rules, "is_reply_skip", lambda text: "REPLY_SKIP" in text)


def carries_out_again_what_was_recorded_before() -> AbstractContextManager[object]:
    """An append that finds itself in the log has the flows act as if it were new. A simulation found this one first."""
    committed = Owner.committed

    def as_new(self: Any, recorded: Any, *, again: bool = False) -> None:
        del again
        committed(self, recorded)

    return patch.object(Owner, "committed", as_new)


def a_hold_stops_twice() -> AbstractContextManager[object]:
    """An order that has stopped an exchange, and was let go on, stops it again at its next text."""

    def stops(order: Any, step: str, served: Any) -> bool:
        del served
        return order.before in {"every-turn", "next", step}

    return patch.object(holds, "stops", stops)


def an_edit_of_an_announce_is_left_out() -> AbstractContextManager[object]:
    """An announce that was held and edited goes out as it was before."""
    announced = exchange_rules._announce_released

    def as_it_was(state: Any, held: Any, released: Any, now: Any) -> Any:
        return announced(state, held, msgspec.structs.replace(released, text=None), now)

    return patch.object(exchange_rules, "_announce_released", as_it_was)


def an_answer_stands_for_its_run() -> AbstractContextManager[object]:
    """What an agent said in its first attempt is taken for the answer of every attempt."""
    kept: dict[str, Any] = {}
    returned = decide_returned

    def first(state: Any, command: RunReturned, **given: Any) -> Any:
        result = kept.setdefault(command.run_id, command.result)
        return returned(state, msgspec.structs.replace(command, result=result), **given)

    return patch.object(session_rules, "decide_returned", first)


def the_policy_is_asked_once() -> AbstractContextManager[object]:
    """What the send policy said of a text's first attempt holds for every attempt."""
    kept: dict[str, Any] = {}
    checked = delivery_rules.decide_checked

    def once(state: Any, verdict: Any, *rest: Any, **given: Any) -> Any:
        return checked(state, kept.setdefault(state.decided.delivery_id, verdict), *rest, **given)

    return patch.object(delivery_rules, "decide_checked", once)


def what_is_denied_goes_out() -> AbstractContextManager[object]:
    """A text goes to its channel though the send policy forbids it."""
    checked = delivery_rules.decide_checked

    def lets_out(state: Any, verdict: Any) -> Any:
        return checked(state, msgspec.structs.replace(verdict, action="allow"))

    return patch.object(delivery_rules, "decide_checked", lets_out)


def an_announce_forgets_its_route() -> AbstractContextManager[object]:
    """What is to be announced goes nowhere, though there is a chat for it."""
    announced = exchange_rules._announced

    def nowhere(state: Any, decided: Any, now: Any) -> Any:
        return announced(state, decided, msgspec.structs.replace(now, has_route=False))

    return patch.object(exchange_rules, "_announced", nowhere)


def pauses_do_not_grow() -> AbstractContextManager[object]:
    """A text that fails again and again is tried each second."""
    return patch.object(delivery_rules, "retry_delay_ms", lambda _: 1_000)


def a_child_is_never_silent() -> AbstractContextManager[object]:
    """A sub-agent that answers ANNOUNCE_SKIP is announced with this word."""
    return patch.object(spawn_rules, "is_announce_skip", lambda _: False)


def a_child_that_failed_is_a_success() -> AbstractContextManager[object]:
    """What is announced of a sub-agent whose run failed or took too long says that all went well."""
    return patch.dict(spawn_rules._STATUS, {"error": "success", "timeout": "success"})


def what_a_child_left_behind_is_lost() -> AbstractContextManager[object]:
    """A sub-agent without a reply is announced without the result of its last tool."""
    return patch.object(spawn_rules, "_result", lambda text, ended: text or ended.text)


def starts_what_the_chain_cannot_pay() -> AbstractContextManager[object]:
    """A run that waits starts though the others of its chain have meanwhile used all that there is."""
    return patch.object(session_rules, "check_start", lambda *_: None)


def forgets_what_a_chain_has_used() -> AbstractContextManager[object]:
    """Who decides on a flow is told the runs of its chain, but not what they have used."""
    spent = ChainLedger.spent

    def forgets(self: Any, root: str, *, besides: str = "") -> Any:
        found = spent(self, root, besides=besides)
        return msgspec.structs.replace(found, tokens=0) if besides else found

    return patch.object(ChainLedger, "spent", forgets)


def hears_of_no_end_of_a_session() -> AbstractContextManager[object]:
    """Who decides on an exchange does not know that one of the two was reset or deleted."""
    return patch.object(Generations, "is_over", lambda *_: False)


def records_what_it_did_not_know() -> AbstractContextManager[object]:
    """The record of a decision says that less was known than it was."""

    def less(*given: Any) -> Any:
        return {name: value for name, value in RULES.knew_of(*given).items() if name != "hasRoute"}

    return patch.object(coordinator, "RULES", RULES._replace(knew_of=less))


def a_start_looks_at_no_chain() -> AbstractContextManager[object]:
    """Who decides on the start of a run is told the runs of its chain, but not what they have used."""
    spent = ChainLedger.spent

    def forgets(self: Any, root: str, *, besides: str = "") -> Any:
        found = spent(self, root, besides=besides)
        return found if besides else msgspec.structs.replace(found, tokens=0)

    return patch.object(ChainLedger, "spent", forgets)


def _knows_otherwise(gathers: str, **otherwise: Any) -> AbstractContextManager[object]:
    gathered = getattr(deciding.Decider, gathers)

    def known(self: deciding.Decider, *given: Any) -> Any:
        found = gathered(self, *given)
        changed = {name: to(value) for name, to in otherwise.items() if (value := getattr(found, name))}
        return msgspec.structs.replace(found, **changed)

    return patch.object(deciding.Decider, gathers, known)


def an_attempt_is_made_once() -> AbstractContextManager[object]:
    """Who makes good what an earlier process left behind does not know how often an attempt may be made again."""
    return _knows_otherwise("_circumstances", retries=lambda _: 0)


def nobody_is_to_hear_of_a_failure() -> AbstractContextManager[object]:
    """Who decides on the end of a run does not know what a person is told."""
    return _knows_otherwise("_circumstances", failure_text=lambda _: "")


def a_session_reads_another_clock() -> AbstractContextManager[object]:
    """A session decides by a clock that is late."""
    return _knows_otherwise("_circumstances", now_ms=lambda ms: ms - 60_000)


def a_thread_stays_for_longer() -> AbstractContextManager[object]:
    """A session takes its thread for its own for a minute longer than it is."""
    return _knows_otherwise("_circumstances", thread_left=lambda left: (left[0] + 60_000, left[1]))


def an_attempt_is_younger_than_it_is() -> AbstractContextManager[object]:
    """Who makes good what an earlier process left behind takes the attempt for half as old as it is."""
    return _knows_otherwise("_circumstances", age_ms=lambda ms: ms // 2)


def records_no_tools_that_were_left_out() -> AbstractContextManager[object]:
    """The record of a start does not say that there was no room for the session's tools."""
    nothing = {"withheld": 0}
    return _knows_otherwise(
        "_circumstances", start=lambda start: start._replace(beginning=start.beginning._replace(**nothing))
    )


def records_no_time_of_a_session() -> AbstractContextManager[object]:
    """The record of a session's decision does not say what the clock said."""

    def less(*given: Any) -> Any:
        return {name: value for name, value in session_records.knew_of(*given).items() if name != "nowMs"}

    return patch.object(deciding, "knew_of", less)


def sees_no_lineage() -> AbstractContextManager[object]:
    """Whoever judges what a session may send to is not told that it started the other one."""
    called = Sessions.called

    def alone(self: Sessions, key: str, caller: str) -> Any:
        return called(self, key, caller)._replace(in_tree=False)

    return patch.object(Sessions, "called", alone)


def does_not_count_sub_agents() -> AbstractContextManager[object]:
    """Whoever judges a spawn is told that no sub-agent is at work."""
    return patch.object(Flows, "running_children", lambda *_: 0)


def hears_of_no_setting_of_a_session() -> AbstractContextManager[object]:
    """Whoever judges what goes out is not told of the session's own setting."""
    judge = judge_send

    def deaf(asked: Any, known: Any) -> Any:
        return judge(asked, msgspec.structs.replace(known, override=None))

    return patch.object(rules_in_force, "judge_send", deaf)


def nobody_hears_an_answer() -> AbstractContextManager[object]:
    """What an agent answers a person is recorded, and goes nowhere."""
    return patch.object(answers, "auto_reply", lambda *_, **__: ())


def nobody_hears_of_a_failure() -> AbstractContextManager[object]:
    """A person whose message found no answer is not told."""
    return patch.object(session_rules, "failure_notice", lambda *_, **__: ())


def an_attempt_has_twice_its_time() -> AbstractContextManager[object]:
    """The time of an attempt is counted twice."""
    started = session_rules.started

    def twice(state: Any, queued: Any, *rest: Any) -> Any:
        return started(state, msgspec.structs.replace(queued, timeout_ms=2 * queued.timeout_ms), *rest)

    return patch.object(session_rules, "started", twice)


def a_hop_is_not_counted() -> AbstractContextManager[object]:
    """A send or a spawn of a chain is as far as the run that asks for it."""
    on = one_hop_on

    def as_far(budget: Any, *rest: Any) -> Any:
        return msgspec.structs.replace(on(budget, *rest), hops=budget.hops)

    return patch.object(asking, "one_hop_on", as_far)


def a_chain_forgets_its_way() -> AbstractContextManager[object]:
    """Of the sessions that a chain came through, only the last is known."""
    on = one_hop_on

    def forgets(budget: Any, *rest: Any) -> Any:
        found = on(budget, *rest)
        return msgspec.structs.replace(found, path=found.path[-1:])

    return patch.object(asking, "one_hop_on", forgets)


def a_message_says_other_hops() -> AbstractContextManager[object]:
    """What a flow hands on says that it came by one hop more."""
    said = message_for

    def further(run: Any, text: Any, provenance: Any, at: Any) -> Any:
        return said(run, text, msgspec.structs.replace(provenance, hops=(provenance.hops or 0) + 1), at)

    return patch.object(flow_steps, "message_for", further)


def a_child_is_opened_at_no_depth() -> AbstractContextManager[object]:
    """The session of a sub-agent does not say how many spawns are above it."""
    opening = spawn_steps.child_opening
    return patch.object(
        spawn_steps,
        "child_opening",
        lambda accepted: msgspec.structs.replace(opening(accepted), spawn_depth=0),
    )


def a_late_answer_is_lost() -> AbstractContextManager[object]:
    """Nothing is recorded of an answer whose attempt is over."""
    decide = answers.decide_answer

    def lost(*given: Any, **told: Any) -> Any:
        return [event for event in decide(*given, **told) if not isinstance(event, LateReplyDropped)]

    return patch.object(answers, "decide_answer", lost)


def an_order_is_not_heard() -> AbstractContextManager[object]:
    """An exchange does not stop though somebody has said that it is to be held."""
    return patch.object(holds, "_own", lambda _: ())


def what_is_dropped_goes_on() -> AbstractContextManager[object]:
    """A text that was held and dropped goes on."""
    on = exchange_rules.go_on

    def goes_on(state: Any, now: Any) -> Any:
        if state.released is not None and state.released.action == "drop":
            released = msgspec.structs.replace(state.released, action="go_on")
            state = msgspec.structs.replace(state, released=released)
        return on(state, now)

    return patch.object(exchange_rules, "go_on", goes_on)


def _archived_after(hours: Callable[[Any], Any]) -> AbstractContextManager[object]:
    after = vars(spawn_rules.Spawn)["archive_after_ms"].fget
    return patch.object(spawn_rules.Spawn, "archive_after_ms", property(lambda spawn: hours(after(spawn))))


def a_child_is_archived_too_early() -> AbstractContextManager[object]:
    """A sub-agent is in the list for half as long as it is to be."""
    return _archived_after(lambda ms: ms and ms // 2)


def a_child_is_never_archived() -> AbstractContextManager[object]:
    """A sub-agent stays in the list for ever."""
    return _archived_after(lambda ms: None if ms else ms)


def a_thread_is_given_up_too_early() -> AbstractContextManager[object]:
    """A thread belongs to its session for a minute less than it is to."""
    left = Session.thread_left

    def earlier(self: Any, *, age_ms: int, quiet_ms: int) -> Any:
        return left(self, age_ms=age_ms + 60_000, quiet_ms=quiet_ms + 60_000)

    return patch.object(Session, "thread_left", earlier)


def a_thread_is_kept_for_ever() -> AbstractContextManager[object]:
    """A thread belongs to its session though its time is up."""
    return patch.object(Decider, "watch_thread", lambda *_: None)


def records_another_judgement() -> AbstractContextManager[object]:
    """The record of a door says that the session was there, whether it was or not."""
    record = judgement_record

    def another(judgement: Any, said: Any) -> Any:
        if isinstance(judgement.known, Sight):
            judgement = judgement._replace(known=msgspec.structs.replace(judgement.known, exists=True))
        return record(judgement, said)

    return patch.object(receipts, "judgement_record", another)


def a_text_of_a_dead_worker_goes_out_again() -> AbstractContextManager[object]:
    """A text is offered again though its worker may have sent it, and its channel shows whatever it gets."""
    read = offered.abilities_in

    def able(said: Any) -> Any:
        return msgspec.structs.replace(read(said), idempotent=True)

    return patch.object(remote_channels, "abilities_in", able)


def a_silent_worker_has_sent_its_text() -> AbstractContextManager[object]:
    """A text whose worker says nothing for too long counts as sent."""
    over = RemoteChannels.ask

    def ask(self: Any, channel: Any, call: Any, asked: Any, done: Any, **given: Any) -> None:
        def sent(result: Any) -> None:
            done(Delivered() if isinstance(result, NotDelivered) and result.in_doubt else result)

        over(self, channel, call, asked, sent, **given)

    return patch.object(RemoteChannels, "ask", ask)


def a_call_is_given_twice() -> AbstractContextManager[object]:
    """A worker that has answered a call can take it again."""
    answer = FileWork.answer

    def answered(self: Any, worker: Any, call: Any, content: Any) -> bool:
        def offered_again(cursor: Cursor) -> None:
            cursor.execute("UPDATE agent_calls SET worker=NULL, answer=NULL WHERE id=?", (call.id,))

        if call not in once:
            once.add(call)
            self._change(offered_again)
            self._tell(offered=True)
            return False
        return answer(self, worker, call, content)

    once = set[Any]()
    return patch.object(FileWork, "answer", answered)


def a_queue_has_no_fence() -> AbstractContextManager[object]:
    """A writer that was taken over goes on to change the queue of what workers do, though it appends nothing any more."""
    changed = SqliteLog.changed

    def at_once(self: SqliteLog, work: Callable[[Cursor], Any], *, patient: bool = False) -> Any:
        try:
            return changed(self, work, patient=patient)
        except WriterSuperseded:
            with cast("Committing", self._recorder).transaction() as cursor:
                return work(cursor)

    return patch.object(SqliteLog, "changed", at_once)


def a_door_answers_unread() -> AbstractContextManager[object]:
    """A door answers before it has read what its answer reports."""
    wait_for = SqliteLog.wait_for

    def at_once(self: SqliteLog, position: int, *, timeout: float) -> bool:
        return not self.epoch or wait_for(self, position, timeout=timeout)

    return patch.object(SqliteLog, "wait_for", at_once)


BUGS: Final[dict[str, Bug]] = {
    bug.__name__: bug
    for bug in (
        a1_spawns_are_outside_the_guard,
        a3_an_answer_is_given_up_at_once,
        a4_a_registration_cuts_off,
        a6_turns_come_to_whoever_has_the_key,
        a8_a_message_interrupts_before_it_is_accepted,
        a11_a_context_is_of_another_moment,
        a12_a_retry_is_judged_anew,
        a17_deadlines_are_by_the_wall_clock,
        acknowledges_before_it_stores,
        draws_delivery_keys,
        texts_jump_the_line,
        has_no_fence,
        reads_nothing_back,
        forgets_where_a_view_is,
        skips_by_substring,
        carries_out_again_what_was_recorded_before,
        a_hold_stops_twice,
        starts_what_the_chain_cannot_pay,
        an_edit_of_an_announce_is_left_out,
        an_answer_stands_for_its_run,
        the_policy_is_asked_once,
        pauses_do_not_grow,
        what_is_denied_goes_out,
        an_announce_forgets_its_route,
        a_child_is_never_silent,
        a_child_that_failed_is_a_success,
        what_a_child_left_behind_is_lost,
        forgets_what_a_chain_has_used,
        hears_of_no_end_of_a_session,
        records_what_it_did_not_know,
        a_start_looks_at_no_chain,
        an_attempt_is_made_once,
        nobody_is_to_hear_of_a_failure,
        a_session_reads_another_clock,
        a_thread_stays_for_longer,
        an_attempt_is_younger_than_it_is,
        records_no_tools_that_were_left_out,
        records_no_time_of_a_session,
        sees_no_lineage,
        does_not_count_sub_agents,
        hears_of_no_setting_of_a_session,
        records_another_judgement,
        nobody_hears_an_answer,
        nobody_hears_of_a_failure,
        an_attempt_has_twice_its_time,
        a_hop_is_not_counted,
        a_chain_forgets_its_way,
        a_message_says_other_hops,
        a_child_is_opened_at_no_depth,
        a_late_answer_is_lost,
        an_order_is_not_heard,
        what_is_dropped_goes_on,
        a_child_is_archived_too_early,
        a_child_is_never_archived,
        a_thread_is_given_up_too_early,
        a_thread_is_kept_for_ever,
        a_text_of_a_dead_worker_goes_out_again,
        a_silent_worker_has_sent_its_text,
        a_call_is_given_twice,
        a_queue_has_no_fence,
        a_door_answers_unread,
    )
}
