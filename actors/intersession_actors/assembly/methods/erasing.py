"""The methods that remove words from the log for good: `sessions.erase` (ERASE-1), `people.forget` and `retention.apply` (FORGET)."""

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from functools import partial
from typing import Final

from intersession_actors.assembly.forgetting.in_log import Order
from intersession_actors.assembly.forgetting.retention import Retention
from intersession_actors.assembly.methods.params import EraseParams, ForgetParams, RetentionParams
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.asking import ask_flow
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.delivery.commands import GiveUpDelivery
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import not_visible
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.ids import delivery_stream
from intersession_events.basics.keys.references import KeyReference
from intersession_events.basics.plain_json import JsonMapping
from intersession_projections.copies.whose_words import Person
from intersession_projections.copies.words_to_erase import Erasable
from intersession_projections.questions.known_names import KnownNames, near

_DELIVERY: Final = "delivery:"
_ENDS_S: Final = 2.0
_LOOK_S: Final = 0.05


class GatewayErase:
    """Erases the texts of a session, or of a person, and all copies of them."""

    def __init__(self, service: Service, targets: Targets, retention: Retention) -> None:
        self._service = service
        self._targets = targets
        self._eraser = retention.eraser
        self._retention = retention

    def erase(self, call: Call, params: JsonMapping) -> Result:
        """Erase the texts of a session, or of some of its messages. This can't be undone.

        Raises:
            ToolRefused: something is still under way in the session, or where a copy is (`busy`), or an id is of no message of it (`invalid_request`).
        """
        given = read_arguments(EraseParams, params)
        key = self._key(call, given.key)
        erasable = Erasable(self._service.log)
        if given.unsent == "giveUp" and not given.dry_run:
            deliveries = self._service.flows.deliveries_of_session(key)
            self._give_up((one.delivery_id for one in deliveries if one.is_open), by=call.caller.name)
            self._wait_for_end(lambda: erasable.open_work(key))
        under_way = erasable.open_work(key)
        if under_way and not given.dry_run:
            raise ToolRefused(
                "busy", f"key: {under_way[0]} is still under way in {key}, {_what_to_do(under_way[0])}"
            )
        find = partial(Erasable.of_session, key=key, messages=given.message_ids)
        try:
            found = find(erasable)
        except LookupError as missing:
            raise ToolRefused(
                "invalid_request", f"messageIds: {missing} is no message of {key}, give ids of its own"
            ) from None
        waiting = [*under_way, *dict.fromkeys(erasable.waiting)]
        if waiting and not given.dry_run:
            raise ToolRefused(
                "busy",
                f"key: {waiting[0]} has copies of it and is still under way, {_what_to_do(waiting[0])}",
            )
        order = Order(call.caller.name, given.reason)
        done = self._eraser.erase(find, erasable, found, order, dry_run=given.dry_run)
        return {"ok": True, "key": key, "dryRun": given.dry_run, "waiting": waiting, **done}

    def forget(self, call: Call, params: JsonMapping) -> Result:
        """Erase what a person said and was told, and all that came of it. This can't be undone.

        Raises:
            ToolRefused: nobody has this address (`invalid_request`), or something of it is still under way (`busy`).
        """
        given = read_arguments(ForgetParams, params)
        service = self._service
        called, addresses = self._addresses(given.person)
        person = Person(service.log, addresses, called)
        if not person.is_known:
            raise invalid("person", self._unknown(given.person))
        find = partial(Erasable.of_person, person=person, mentions=given.mentions)
        erasable = Erasable(service.log)
        found = find(erasable)
        if erasable.waiting and given.unsent == "giveUp" and not given.dry_run:
            unsent = [one for one in erasable.waiting if one.startswith(_DELIVERY)]
            self._give_up((one.removeprefix(_DELIVERY) for one in unsent), by=call.caller.name)
            self._wait_for_end(lambda: Erasable(service.log).under_way().intersection(erasable.waiting))
            erasable = Erasable(service.log)
            found = find(erasable)
        waiting = [*dict.fromkeys(erasable.waiting)]
        if waiting and not given.dry_run:
            raise ToolRefused(
                "busy",
                f"person: {waiting[0]} has words of theirs and is still under way, {_what_to_do(waiting[0])}",
            )
        erasable.named += self._jobs(person)
        order = Order(call.caller.name, given.reason, "person")
        done = self._eraser.erase(find, erasable, found, order, dry_run=given.dry_run)
        return {
            "ok": True,
            "person": given.person,
            "addresses": sorted(addresses),
            "sessions": [*person.sessions],
            "dryRun": given.dry_run,
            "waiting": waiting,
            **done,
        }

    def apply_retention(self, call: Call, params: JsonMapping) -> Result:
        """Erase what is older than the settings allow, now.

        Raises:
            ToolRefused: no rule is set (`invalid_request`), or it takes long (`unavailable`).
        """
        given = read_arguments(RetentionParams, params)
        return self._retention.apply(by=call.caller.name, dry_run=given.dry_run)

    def _addresses(self, typed: str) -> tuple[str | None, set[str]]:
        """Return the addresses of a person, with those that `session.identityLinks` joins, and the name by which it does."""
        links = self._service.config.session.identity_links
        if whole := {peer for peer in links.get(typed, ()) if ":" in peer}:
            return typed, whole
        channel, _, sender = typed.partition(":")
        if not channel or not sender:
            raise invalid(
                "person",
                f"{typed!r} is no address of a person, and no name of session.identityLinks: give one such as telegram:ada",
            )
        for name, peers in links.items():
            if typed in peers or sender in peers:
                return name, {typed, *(peer if ":" in peer else f"{channel}:{peer}" for peer in peers)}
        return None, {typed}

    def _unknown(self, typed: str) -> str:
        known = {name for name in KnownNames(self._service.log).people() if ":" in name and " " not in name}
        alike = near(typed, known) or tuple(get_close_matches(typed, sorted(known), n=1))
        like = f"; known are {', '.join(alike)}" if alike else ""
        return f"nobody of {typed!r} has said anything here, give channel:id as messages have it{like}"

    def _jobs(self, person: Person) -> list[str]:
        """Return in words which scheduled jobs of the configuration speak to a person, or name one."""
        named = [
            job_id
            for job_id, job in self._service.config.cron.jobs.items()
            if person.is_named_in(f"{job.name} {job.payload.message}")
            or job.session_target.removeprefix("session:") in person.sessions
            or f"{job.delivery.channel}:{job.delivery.to}" in person.addresses
        ]
        return (
            [f"scheduled jobs of the configuration, change them there: {', '.join(named)}"] if named else []
        )

    def _give_up(self, deliveries: Iterable[str], *, by: str) -> None:
        """Give up undelivered texts."""
        for delivery_id in deliveries:
            try:
                ask_flow(self._service, GiveUpDelivery(stream=delivery_stream(delivery_id), by=by))
            except ToolRefused as refused:
                if refused.code not in {
                    "busy",
                    "invalid_request",
                }:  # it is under way, or over: that is looked at next
                    raise

    def _wait_for_end(self, under_way: Callable[[], Collection[str]]) -> None:
        """Wait a moment for the flows that waited for undelivered texts to end."""
        service = self._service
        until = service.clock.monotonic() + _ENDS_S
        while under_way() and service.clock.monotonic() < until:
            service.log.wait_for(service.log.head() + 1, timeout=_LOOK_S)

    def _key(self, call: Call, text: str) -> str:
        """Return the session that is meant; an archived one can be meant as well."""
        try:
            return str(self._targets.seen(call, text, "history", field="key").key)
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
        try:
            reference = self._service.reader.config.refer(text)
        except InvalidKey:
            reference = None
        if isinstance(reference, KeyReference) and self._service.sessions.get(str(reference.key)) is not None:
            call.check(reference.key, text)
            return str(reference.key)
        raise ToolRefused("not_visible", not_visible(text))


def _what_to_do(stream: str) -> str:
    if stream.startswith(_DELIVERY):
        return "wait for its end, or give `unsent` as `giveUp` (`--give-up-unsent`)"
    return "wait for its end or abort it first"
