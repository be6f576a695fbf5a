"""The methods about the system itself: agents, models, health, status, `send` to a channel."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from intersession_actors.assembly.methods.params import (
    DeliveryRetryParams,
    FrameworkParams,
    HealthParams,
    IdentityParams,
    ImportParams,
    NoParams,
    SendParams,
    StatusParams,
)
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.asking import ask_flow, gone_on, keeping_refusals, origin_of, run_id_of
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.deliveries import deliver, delivery_of
from intersession_actors.calls.service.imports import Imports
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.forking import on_call
from intersession_actors.owners.chains.spending import left_of
from intersession_actors.owners.delivery.commands import RetryDelivery
from intersession_actors.owners.delivery.rules import GIVEN_UP
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.windows import model_names, reckon
from intersession_actors.running.failures.failure import described
from intersession_actors.running.failures.findings import (
    clock_findings,
    copy_findings,
    full_findings,
    process_findings,
)
from intersession_actors.running.failures.host_findings import host_findings
from intersession_events.basics.errors import ImportFailed, LogError
from intersession_events.basics.ids import delivery_stream
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import ERASED, Budget, Route
from intersession_projections.views.sessions.session_filter import SessionFilter

if TYPE_CHECKING:
    from intersession_events.transcripts.openclaw.report import ImportReport

MOST_RETRIED: Final = 1_000
"""The most deliveries retried in one call."""
_RECENT: Final = 10
"""How many sessions `status` names."""


class GatewayAbout:
    """The system's state, and texts to a channel.

    `describe` gives what only the system knows of itself, `standing` what of that can be said without reading the log.
    """

    def __init__(
        self,
        service: Service,
        targets: Targets,
        *,
        describe: Callable[[], Result],
        standing: Callable[[], Result],
        checkpoint: Callable[[], Result],
        imports: Imports,
    ) -> None:
        self._service = service
        self._targets = targets
        self._describe = describe
        self._standing = standing
        self._checkpoint = checkpoint
        self._imports = imports

    def agents_list(self, call: Call, params: JsonMapping) -> Result:
        """Return the configured agents that the caller may use, the default one first."""
        read_arguments(NoParams, params)
        config = self._service.config
        default = self._targets.default_agent(call)
        names = {agent.id: agent.name for agent in config.agents.list}
        ids = sorted(self._targets.agents(call), key=lambda agent_id: (agent_id != default, agent_id))
        return {
            "defaultId": default,
            "mainKey": config.session.main_key,
            "scope": config.session.scope,
            "agents": [
                {"id": agent_id} | ({"name": names[agent_id]} if names.get(agent_id) else {})
                for agent_id in ids
            ],
        }

    def identity(self, call: Call, params: JsonMapping) -> Result:
        """Return who an agent is."""
        given = read_arguments(IdentityParams, params)
        key = self._targets.opened(call, given.session_key, given.agent_id)
        name = next(
            (agent.name for agent in self._service.config.agents.list if agent.id == key.agent_id), None
        )
        return {"agentId": key.agent_id} | ({"name": name} if name else {})

    def models_list(self, call: Call, params: JsonMapping) -> Result:
        """Return the configured models."""
        del call
        read_arguments(NoParams, params)
        models: list[Result] = []
        for name in model_names(self._service.config):
            provider, _, model_id = name.partition("/")
            models.append({"id": model_id or provider, "name": model_id or provider, "provider": provider})
        return {"models": models}

    def budgets(self, call: Call, params: JsonMapping) -> Result:
        """Return what is used and left of each limit of a budget, for all names that have used any of it (LIMIT-1)."""
        del call
        read_arguments(NoParams, params)
        service = self._service
        now, configured = service.clock.now_ms(), service.config.budgets
        if configured:
            service.wait_for_listeners()
        used = service.spending.left(configured, now) if configured else []
        return {"ts": now, "budgets": [left_of(named, one) for named, one in used]}

    def checkpoint(self, call: Call, params: JsonMapping) -> Result:
        """Take a checkpoint of the log as it is now (CHECK-1). It tells the size of the whole log, so only the operator may."""
        del call
        read_arguments(NoParams, params)
        return self._checkpoint()

    def health(self, call: Call, params: JsonMapping) -> Result:
        """Return whether all is well, and what is not; the fields of channels, heartbeats and sessions are the original's.

        Sessions are counted, and the last ones named: the list is `sessions.list`. Of a log that can't be read nothing is counted: what would
        be is null. A limited credential hears of its sessions alone: of their agents, runs and troubles, and not how far
        the log is.
        """
        read_arguments(HealthParams, params)
        service, config = self._service, self._service.config
        degraded = self._degraded(call)
        default = self._targets.default_agent(call)
        numbers: dict[str, int] | None = None
        position, open_runs = None, None
        agents, recent = self._targets.agents(call), dict[str | None, list[Result]]()
        standing = self._standing()
        try:
            numbers, position, open_runs = self._numbers(call), service.log.head(), self._open_runs(call)
            recent = {agent_id: self._recent(call, agent_id) for agent_id in (None, *agents)}
            standing["setAside"] = [msgspec.to_builtins(item) for item in service.log.set_aside()]
        except LogError as error:
            service.store_failed(error)
            if standing["store"]["available"]:
                standing["store"] = {**standing["store"], "available": False, "error": described(error)}
        if not call.caller.is_operator:  # why may name places of this machine, and what is others'
            standing = {"store": {"available": standing["store"]["available"]}}
        findings = list(process_findings(standing))
        return {
            "ok": not degraded and not any(finding.level == "error" for finding in findings),
            "ts": service.clock.now_ms(),
            "durationMs": 0,
            "logId": service.log.log_id,
            **({"position": position} if call.caller.is_operator else {}),
            "openRuns": open_runs,
            "findings": msgspec.to_builtins(findings),
            "degraded": len(degraded),
            "defaultAgentId": default,
            "heartbeatSeconds": 0,
            "channels": {},
            "channelOrder": [],
            "channelLabels": {},
            "agents": [
                {
                    "agentId": agent_id,
                    "isDefault": agent_id == default,
                    "heartbeat": {"enabled": False, "every": "disabled", "everyMs": None},
                    "sessions": self._counted(
                        None if numbers is None else numbers.get(agent_id, 0), recent.get(agent_id, [])
                    ),
                }
                for agent_id in agents
            ],
            "sessions": self._counted(
                None if numbers is None else sum(numbers.values()), recent.get(None, [])
            )
            | {
                "defaults": {
                    "model": config.model_of(default),
                    "contextTokens": reckon(config, default, None, None).context_tokens,
                }
            },
        }

    def _open_runs(self, call: Call) -> int:
        """Return how many runs wait or are under way that a caller reaches."""
        runs = self._service.runs.open_runs()
        if call.caller.is_operator:
            return len(runs)
        return sum(self._reaches(call, run.session_key) for run in runs)

    def _counted(self, number: int | None, recent: list[Result]) -> Result:
        return {"path": f"log {self._service.log.log_id}", "count": number, "recent": recent}

    def _numbers(self, call: Call) -> dict[str, int]:
        """Return how many sessions of each agent a caller reaches."""
        order = self._service.sessions.order()
        if call.caller.is_operator:
            return order.numbers()
        parse = self._service.reader.parse
        keys = (parse(place.key) for place in order.places())
        return Counter(key.agent_id for key in keys if call.caller.reaches(key))

    def _degraded(self, call: Call) -> list[str]:
        """Return the streams that were given up: of sessions, as far as a caller reaches them; managers of flows are all's."""
        degraded = self._service.supervisor.degraded
        if call.caller.is_operator:
            return list(degraded)
        return [name for name in degraded if name.startswith("agent:") and self._reaches(call, name)]

    def _reaches(self, call: Call, key: str) -> bool:
        return call.caller.reaches(self._service.reader.parse(key))

    def status(self, call: Call, params: JsonMapping) -> Result:
        """Return the full state of the system; a limited credential gets only that of `health`.

        At a place it is what stood there: how many sessions there were, what was open, what was held. That is the operator's.

        Raises:
            ToolRefused: the place is invalid (`invalid_request`).
        """
        given = read_arguments(StatusParams, params)
        if given.at is not None:
            return dict(on_call.status_at(self._service.reader, given.at))
        answer = self.health(call, {"probe": given.probe})
        if not call.caller.is_operator:
            return answer
        described = self._describe()
        if answer["position"] is not None:
            service, recent = self._service, [one["key"] for one in answer["sessions"]["recent"]]
            filled = {row.key: row.filled for row in service.sessions.many(recent)}
            full = full_findings((key, filled.get(key)) for key in recent)
            clock = clock_findings(service.log, service.clock.now_ms())
            hosts = host_findings(described["hosts"]) if "hosts" in described else ()
            copies = copy_findings(described.get("copy"))
            answer["findings"] += msgspec.to_builtins([*clock, *full, *hosts, *copies])
        return answer | described

    def _recent(self, call: Call, agent_id: str | None) -> list[Result]:
        """Return the sessions within reach, of one agent or of all, that were updated last, newest first, each with its age in ms."""
        now, order = (
            self._service.clock.now_ms(),
            self._service.sessions.order(wanted=SessionFilter(agent_id=agent_id)),
        )
        places = (place for place in order.places() if self._reaches(call, place.key))
        return [
            {
                "key": place.key,
                "agentId": self._service.reader.parse(place.key).agent_id,
                "updatedAt": -place.falling,
                "age": max(0, now + place.falling),
            }
            for place in islice(places, _RECENT)
        ]

    def send(self, call: Call, params: JsonMapping) -> Result:
        """Put a text to a channel into the outbox, in the name of a session; its send policy decides (POL-3)."""
        given = read_arguments(SendParams, params)
        service = self._service
        if not given.message.strip():
            raise invalid("message", "blank, write what should be sent")
        key = self._targets.opened(call, given.session_key)
        route = self._targets.route(
            call,
            key,
            Route(channel=given.channel, to=given.to, account=given.account_id, thread=given.thread_id),
            field="to",
        )
        run_id = run_id_of(service, call, method="send", idempotency_key=given.idempotency_key)
        row = service.sessions.get(str(key))
        verdict = service.world.rules.judge_send(
            key=str(key),
            channel=given.channel,
            chat_type=row.chat_type if row is not None else key.chat_type,
            override=row.send_policy if row is not None else None,
        )
        if not verdict.allowed:
            raise ToolRefused("policy_denied", f"sessionKey: {verdict.rule}", judged=verdict.judged)
        origin = origin_of(service, call.caller, run_id)
        # A call that is made again has to say the same, so what it begins has no time of its own.
        budget = Budget(root=run_id, path=(str(key),))
        if not origin.begins:
            with keeping_refusals(service, call.caller, origin, "send", str(key), runs=False):
                budget = gone_on(service, origin, str(key), "message")
        append = delivery_of(
            service,
            key=key,
            route=route,
            text=given.message,
            run_id=run_id,
            budget=budget,
            purpose="send",
            by=call.caller.name,
        )
        delivery_id = append.stream.partition(":")[2]
        if (
            service.flows.delivery(delivery_id) is None
        ):  # one that was accepted once is answered alike for ever
            self._check_channel(given.channel)
        deliver(service, append)
        return {"status": "accepted", "messageId": delivery_id, "channel": given.channel}

    def retry_delivery(self, call: Call, params: JsonMapping) -> Result:
        """Retry a delivery that failed or is in doubt; its session's send policy decides again (ANN-3)."""
        given = read_arguments(DeliveryRetryParams, params)
        service, delivery_id = self._service, given.delivery_id
        if given.failed:
            if delivery_id is not None:
                raise invalid("failed", "stands beside deliveryId, give one of them")
            return self._retry_failed(call, given)
        if delivery_id is None:
            raise invalid("deliveryId", "missing, give it, or failed: true for all texts that failed")
        for field, value in (
            ("channel", given.channel),
            ("to", given.to),
            ("sessionKey", given.session_key),
        ):
            if value is not None:
                raise invalid(field, "stands beside deliveryId, leave it out")
        row = service.flows.delivery(delivery_id)
        if row is None or not self._reaches(call, row.session_key):
            raise invalid("deliveryId", "there is no such delivery, `intersession deliveries` shows them")
        stream = delivery_stream(delivery_id)
        ask_flow(service, RetryDelivery(stream=stream, by=call.caller.name))
        return {"ok": True, "deliveryId": delivery_id, "sessionKey": row.session_key, "channel": row.channel}

    def _retry_failed(self, call: Call, given: DeliveryRetryParams) -> Result:
        """Retry failed deliveries, the oldest first, except those that were given up.

        One call retries a limited number; `more` says whether some are left.
        """
        service = self._service
        retried: list[str] = []
        of = (
            None
            if given.session_key is None
            else str(self._targets.seen(call, given.session_key, "send").key)
        )
        for row in service.flows.failed_deliveries(given.channel):
            if of not in {None, row.session_key}:
                continue
            note = service.flows.note_of(row) if self._reaches(call, row.session_key) else None
            if (
                note is None
                or given.to not in {None, note.route.to}
                or note.text == ERASED
                or (note.error or "").startswith(GIVEN_UP)
            ):
                continue
            if len(retried) == MOST_RETRIED:
                return {"ok": True, "retried": retried, "more": True}
            with suppress(ToolRefused):  # somebody else was quicker
                ask_flow(service, RetryDelivery(stream=row.stream, by=call.caller.name))
                retried.append(row.delivery_id)
        return {"ok": True, "retried": retried, "more": False}

    def _check_channel(self, name: str) -> None:
        """Refuse an unregistered channel. A configured one may be registered later: its texts wait (ANN-3)."""
        known = sorted({*self._service.world.channels.registered, *self._service.config.channels})
        if name not in known:
            there_are = f"use one of {', '.join(known)}" if known else "register one first"
            raise invalid("channel", f"nobody delivers for {name[:128]!r} here, {there_are}")

    def import_openclaw(self, call: Call, params: JsonMapping) -> Result:
        """Import an OpenClaw state directory and return the report.

        Raises:
            ToolRefused: a limited credential asks (`forbidden`), the directory has no whole path (`invalid_request`), another
                import is under way (`busy`), or it failed (`import_failed`).
        """
        _check_importer(call, "import.openclaw")
        given = read_arguments(ImportParams, params)
        directory = Path(given.directory)
        if not directory.is_absolute():
            raise invalid("directory", _NOT_WHOLE)
        return _reported(partial(self._imports.openclaw, directory, on_taken=given.on_taken))

    def import_framework(self, call: Call, params: JsonMapping) -> Result:
        """Import the database of another framework and return the report.

        Raises:
            ToolRefused: as above; `source` is neither a whole path nor a URL (`invalid_request`).
        """
        _check_importer(call, "import.framework")
        given = read_arguments(FrameworkParams, params)
        if "://" not in given.source and not Path(given.source).is_absolute():
            raise invalid("source", _NOT_WHOLE)
        return _reported(
            partial(
                self._imports.framework,
                given.framework,
                given.source,
                agent=given.agent,
                on_taken=given.on_taken,
            )
        )


_NOT_WHOLE: Final = "not a whole path, and here is somewhere else; begin it with /"


def _check_importer(call: Call, method: str) -> None:
    if not call.caller.is_operator or call.caller.credential is not None:
        raise ToolRefused("forbidden", f"{method} is the operator's, whom no limited credential stands for")


def _reported(importer: "Callable[[], ImportReport]") -> Result:
    try:
        report = importer()
    except ImportFailed as failed:
        raise ToolRefused("import_failed", f"{failed}") from None
    value: Result = msgspec.to_builtins(report)
    return value
