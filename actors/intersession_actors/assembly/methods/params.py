"""The parameters of each method. Unknown fields are refused.

The names are the original's. Some of its fields only mean something to parts that are not here; they are accepted and have no
effect: `lane`, `groupId`, `groupChannel`, `groupSpace`, `includeGlobal`, `includeUnknown`, `deleteTranscript`,
`emitLifecycleHooks`.
"""

from typing import Annotated, Literal

import msgspec

from intersession_actors.outside.agents.script import ScriptLine
from intersession_actors.outside.attachments.message_files import AttachmentParams
from intersession_actors.rules.config.messages import QueueMode
from intersession_actors.rules.gate import limits
from intersession_events.basics.plain_json import JsonValue
from intersession_events.facts import EditKind, HoldBefore, Release, ready

Busy = Literal["queue", "reject", "interrupt"]
"""What happens to a message for a session that is busy (GATE-4)."""

MAX_WAIT_MS = limits.WAIT.most * 1000
"""A day: the longest wait that a call can ask for."""

Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_MS)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
Some = msgspec.Meta(min_length=1)
IdempotencyKey = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.IDENTITY.most)]


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base of all parameters."""


@ready
class NoParams(Params, frozen=True, kw_only=True):
    """`agents.list`, `models.list`."""


@ready
class HealthParams(Params, frozen=True, kw_only=True):
    """`health`. `probe` has no effect: what is shown is always looked up."""

    probe: bool = False


@ready
class StatusParams(HealthParams, frozen=True, kw_only=True):
    """`status`. `at` is a place: the state there, in place of the present one."""

    at: int | float | limits.PlaceText | None = None


@ready
class AgentParams(Params, frozen=True, kw_only=True):
    """`agent`: run an agent on a message. `timeout` in seconds, 0 for no limit.

    With `deliver` the text goes to `replyChannel` and `replyTo`, else `channel` and `to`, else the session's route; where
    there is none the call is refused, unless `bestEffortDeliver`.
    """

    message: limits.MessageText
    idempotency_key: IdempotencyKey
    session_key: limits.KeyText | None = None
    session_id: limits.KeyText | None = None
    agent_id: limits.AgentId | None = None
    thinking: limits.Name | None = None
    deliver: bool = False
    best_effort_deliver: bool = False
    channel: limits.Identity | None = None
    to: limits.Identity | None = None
    account_id: limits.Identity | None = None
    thread_id: limits.Identity | None = None
    reply_channel: limits.Identity | None = None
    reply_to: limits.Identity | None = None
    reply_account_id: limits.Identity | None = None
    timeout: Annotated[int, msgspec.Meta(ge=0, le=limits.RUN_TIME.most)] | None = None
    extra_system_prompt: limits.MessageText | None = None
    label: limits.GatewayLabel | None = None
    busy: Busy = "queue"
    attachments: tuple[AttachmentParams, ...] = ()
    lane: limits.Identity | None = None
    group_id: limits.Identity | None = None
    group_channel: limits.Identity | None = None
    group_space: limits.Identity | None = None


@ready
class ChatSendParams(Params, frozen=True, kw_only=True):
    """`chat.send`."""

    session_key: limits.KeyText
    message: limits.MessageText
    idempotency_key: IdempotencyKey
    thinking: limits.Name | None = None
    deliver: bool = False
    timeout_ms: Annotated[int, msgspec.Meta(ge=0, le=limits.RUN_TIME.most * 1000)] | None = None
    busy: Busy = "queue"
    attachments: tuple[AttachmentParams, ...] = ()


@ready
class WaitParams(Params, frozen=True, kw_only=True):
    """`agent.wait`."""

    run_id: limits.RunText
    timeout_ms: Milliseconds = 30_000


@ready
class ChatAbortParams(Params, frozen=True, kw_only=True):
    """`chat.abort`: a run, or all that runs or waits in the session."""

    session_key: limits.KeyText
    run_id: limits.RunText | None = None


@ready
class RetryParams(Params, frozen=True, kw_only=True):
    """`runs.retry`: a run that failed."""

    run_id: limits.RunText


@ready
class HeldParams(Params, frozen=True, kw_only=True):
    """`exchanges.held`."""

    limit: Limit = 200


@ready
class HoldParams(Params, frozen=True, kw_only=True):
    """`exchanges.hold`: a run of an exchange, or a session whose exchanges are all held."""

    run_id: limits.RunText | None = None
    session_key: limits.KeyText | None = None
    before: HoldBefore = "next"


@ready
class ReleaseParams(Params, frozen=True, kw_only=True):
    """`exchanges.release`: what is held of a run's exchange, or of a session's exchanges. A `text` goes on in its place."""

    run_id: limits.RunText | None = None
    session_key: limits.KeyText | None = None
    action: Release = "go_on"
    text: limits.MessageText | None = None
    hold_id: limits.Identity | None = None
    for_good: bool = False


@ready
class ReleaseCallParams(Params, frozen=True, kw_only=True):
    """`calls.release`: a held call by its id, or the beginning of it. `arguments` go with `edit`, `text` with `refuse`."""

    hold_id: limits.Identity
    action: Literal["go_on", "edit", "refuse"] = "go_on"
    arguments: dict[str, JsonValue] | None = None
    text: limits.MessageText | None = None


@ready
class EditParams(Params, frozen=True, kw_only=True):
    """An edit of a fork: its `kind`, the `key` that it concerns and the new `value` (FORK-4)."""

    kind: EditKind
    key: limits.Identity = ""
    value: limits.MessageText = ""
    place: limits.PlaceText = ""


@ready
class ScriptParams(Params, frozen=True, kw_only=True):
    """An agent that answers from a script: replies, or lines of `{session?, step?, turn?, reply}`; each is used once."""

    script: Annotated[
        tuple[limits.MessageText | ScriptLine, ...], msgspec.Meta(min_length=1, max_length=limits.SCRIPT.most)
    ]


@ready
class ForkParams(Params, frozen=True, kw_only=True):
    """`forks.make`: a run, the place of the cut (the head), the edits, and the agents.

    An agent is `recorded`, one of the host's by its id, a model (`provider/model`), or a script. `carryOn: false` only makes it;
    else the answer waits `timeoutMs` for how it comes out, and the fork goes on after that.
    """

    run: limits.PlaceText
    at: limits.PlaceText | int | None = None
    edits: Annotated[tuple[EditParams, ...], msgspec.Meta(max_length=limits.EDITS.most)] = ()
    agents: Annotated[
        dict[limits.Identity, limits.Identity | ScriptParams], msgspec.Meta(max_length=limits.EDITS.most)
    ] = msgspec.field(default_factory=dict[str, str | ScriptParams])
    on_divergence: Literal["stop", "live"] = "stop"
    loose: bool = False
    carry_on: bool = True
    timeout_ms: Milliseconds = 30_000


@ready
class ForksParams(Params, frozen=True, kw_only=True):
    """`forks.list`: all, or those of a run."""

    run: limits.PlaceText | None = None


@ready
class RemoveForkParams(Params, frozen=True, kw_only=True):
    """`forks.remove`: a fork by its id, or the beginning of it."""

    fork: limits.Identity


class PartParams(Params, frozen=True, kw_only=True):
    """What `bundles.make` and `exports.make` take a part of the log by, up to the place `at`."""

    run: Annotated[
        limits.PlaceText | None, msgspec.Meta(description="An exchange, a spawn or a run, by any name of it.")
    ] = None
    session: Annotated[
        limits.KeyText | None, msgspec.Meta(description="A session: its stream, its flows and deliveries.")
    ] = None
    since: Annotated[
        int | float | limits.PlaceText | None, msgspec.Meta(description="What happened behind this place.")
    ] = None
    until: Annotated[
        int | float | limits.PlaceText | None, msgspec.Meta(description="Up to this place. Default: head.")
    ] = None
    at: Annotated[
        int | float | limits.PlaceText | None, msgspec.Meta(description="The last place. Default: head.")
    ] = None


@ready
class ExportParams(PartParams, frozen=True, kw_only=True):
    """`exports.make`: the form, and one of `run`, `session` and `since` with `until`; without one, all of the log."""

    to: Annotated[
        Literal["otlp", "cloudevents", "openai", "responses", "anthropic", "parquet"],
        msgspec.Meta(
            description=(
                "Spans for OpenTelemetry, an event a line, a session as the body of a model server's request, or tables."
            )
        ),
    ]
    raw: Annotated[bool, msgspec.Meta(description="Do not hide secrets.")] = False


@ready
class BundleParams(PartParams, frozen=True, kw_only=True):
    """`bundles.make`: what is bundled; or `verb` and `arguments`: a question, whose answer is bundled.

    One of `run`, `session`, `person`, `since` with `until`, `all` and `verb` says what.
    """

    person: Annotated[
        limits.Name | None,
        msgspec.Meta(
            description="All that this person asked for: their id or name on the channel, or as shown (telegram:ada)."
        ),
    ] = None
    all: Annotated[bool, msgspec.Meta(description="The whole log.")] = False
    redact: Annotated[
        Literal["secrets", "words", "people"] | None,
        msgspec.Meta(description="Withhold secrets, all words, or who people are."),
    ] = None
    verb: Annotated[
        limits.Identity | None, msgspec.Meta(description="A question, whose answer is bundled.")
    ] = None
    arguments: dict[str, JsonValue] = msgspec.field(default_factory=dict[str, JsonValue])


@ready
class ChatHistoryParams(Params, frozen=True, kw_only=True):
    """`chat.history`: uncut."""

    session_key: limits.KeyText
    limit: Limit | None = None


@ready
class ChatInjectParams(Params, frozen=True, kw_only=True):
    """`chat.inject`: an assistant message that no run made."""

    session_key: limits.KeyText
    message: Annotated[limits.MessageText, Some]
    label: Annotated[str, msgspec.Meta(max_length=100)] | None = None


@ready
class SessionsListParams(Params, frozen=True, kw_only=True):
    """`sessions.list`."""

    limit: Limit | None = None
    active_minutes: Limit | None = None
    label: limits.GatewayLabel | None = None
    agent_id: limits.AgentId | None = None
    search: limits.SearchText | None = None
    spawned_by: limits.KeyText | None = None
    include_derived_titles: bool = False
    include_last_message: bool = False
    include_global: bool = False
    include_unknown: bool = False


@ready
class PreviewParams(Params, frozen=True, kw_only=True):
    """`sessions.preview`: the last messages of at most 64 sessions, each cut at `maxChars` characters."""

    keys: Annotated[
        tuple[Annotated[limits.KeyText, Some], ...], msgspec.Meta(max_length=limits.PREVIEWS.most)
    ]
    limit: Limit = 12
    max_chars: Annotated[int, msgspec.Meta(ge=20, le=2**53 - 1)] = 240


@ready
class ResolveParams(Params, frozen=True, kw_only=True):
    """`sessions.resolve`: exactly one of the first three."""

    key: limits.KeyText | None = None
    session_id: limits.KeyText | None = None
    label: limits.GatewayLabel | None = None
    agent_id: limits.AgentId | None = None
    spawned_by: limits.KeyText | None = None
    include_global: bool = False
    include_unknown: bool = False


@ready
class PatchParams(Params, frozen=True, kw_only=True):
    """`sessions.patch`: null clears. Other fields can't be patched, lineage above all (GATE-2)."""

    key: limits.KeyText
    send_policy: Literal["allow", "deny"] | None = None
    label: limits.GatewayLabel | None = None
    model: Annotated[limits.Name, Some] | None = None
    thinking_level: Annotated[limits.Name, Some] | None = None
    verbose_level: Annotated[limits.Name, Some] | None = None
    reasoning_level: Literal["off", "on", "stream"] | None = None
    elevated_level: Literal["off", "on", "ask", "full"] | None = None
    response_usage: Literal["off", "on", "tokens", "full"] | None = None
    group_activation: Literal["mention", "always"] | None = None
    display_name: Annotated[limits.Name, Some] | None = None
    queue_mode: QueueMode | None = None


@ready
class EraseParams(Params, frozen=True, kw_only=True):
    """`sessions.erase`. Without `messageIds` it is all that was said; `reason` is recorded.

    `unsent` says what becomes of texts that are still to be delivered: they keep the session from being erased, or they are
    given up. With `dryRun` all is counted, and nothing erased.
    """

    key: limits.KeyText
    message_ids: Annotated[tuple[Annotated[limits.Identity, Some], ...], msgspec.Meta(max_length=1000)] = ()
    reason: limits.MessageText = ""
    unsent: Literal["refuse", "giveUp"] = "refuse"
    dry_run: bool = False


@ready
class ForgetParams(Params, frozen=True, kw_only=True):
    """`people.forget`: by the person's address, `channel:id`. The rest is as for `sessions.erase`.

    With `mentions` what others said is erased, too, where it names the person; else the answer names the places.
    """

    person: Annotated[limits.Name, Some]
    reason: limits.MessageText = ""
    mentions: bool = False
    unsent: Literal["refuse", "giveUp"] = "refuse"
    dry_run: bool = False


@ready
class RetentionParams(Params, frozen=True, kw_only=True):
    """`retention.apply`. With `dryRun` all is counted, and nothing erased."""

    dry_run: bool = False


@ready
class DeleteParams(Params, frozen=True, kw_only=True):
    """`sessions.delete`."""

    key: limits.KeyText
    delete_transcript: bool = True
    emit_lifecycle_hooks: bool = True


@ready
class ResetParams(Params, frozen=True, kw_only=True):
    """`sessions.reset`."""

    key: limits.KeyText
    reason: Literal["new", "reset"] = "reset"


@ready
class CompactParams(Params, frozen=True, kw_only=True):
    """`sessions.compact`: `instructions` say what matters in the summary."""

    key: limits.KeyText
    instructions: Annotated[limits.MessageText, Some] | None = None
    idempotency_key: IdempotencyKey | None = None


@ready
class SendParams(Params, frozen=True, kw_only=True):
    """`send`: a text to a channel, in the name of a session."""

    channel: Annotated[limits.Identity, Some]
    to: Annotated[limits.Identity, Some]
    message: limits.MessageText
    idempotency_key: IdempotencyKey
    session_key: limits.KeyText | None = None
    account_id: limits.Identity | None = None
    thread_id: limits.Identity | None = None


@ready
class DeliveryRetryParams(Params, frozen=True, kw_only=True):
    """`deliveries.retry`: a text that is to be delivered after all, or all that failed: to a channel, a chat, of a session, as named."""

    delivery_id: Annotated[limits.Identity, Some] | None = None
    failed: bool = False
    channel: Annotated[limits.Identity, Some] | None = None
    to: Annotated[limits.Identity, Some] | None = None
    session_key: Annotated[limits.KeyText, Some] | None = None


@ready
class CronListParams(Params, frozen=True, kw_only=True):
    """`cron.list`. Without `includeDisabled` jobs that are paused, or disabled in the configuration, are left out."""

    include_disabled: bool = True


@ready
class CronRunParams(Params, frozen=True, kw_only=True):
    """`cron.run`: now (`force`), or only if it is `due`. `id` is an older name of `jobId`."""

    job_id: Annotated[limits.Identity, Some] | None = None
    id: Annotated[limits.Identity, Some] | None = None
    mode: Literal["due", "force"] = "force"


@ready
class CronPatchParams(Params, frozen=True, kw_only=True):
    """The change of a job: whether it runs. The rest is the configuration's."""

    enabled: bool


@ready
class CronUpdateParams(Params, frozen=True, kw_only=True):
    """`cron.update`: pause a job, or let it go on. `id` as in `cron.run`."""

    patch: CronPatchParams
    job_id: Annotated[limits.Identity, Some] | None = None
    id: Annotated[limits.Identity, Some] | None = None


@ready
class CronRunsParams(Params, frozen=True, kw_only=True):
    """`cron.runs`: what came of a job's times, the newest first. `id` as in `cron.run`."""

    job_id: Annotated[limits.Identity, Some] | None = None
    id: Annotated[limits.Identity, Some] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50


@ready
class IdentityParams(Params, frozen=True, kw_only=True):
    """`agent.identity.get`: of an agent, or of the agent of a session; else of the default one."""

    agent_id: limits.AgentId | None = None
    session_key: limits.KeyText | None = None


@ready
class ImportParams(Params, frozen=True, kw_only=True):
    """`import.openclaw`: the whole path of a state directory, and what becomes of sessions whose keys the log has."""

    directory: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.PATH.most)]
    on_taken: Literal["beside", "refuse"] = "beside"


@ready
class FrameworkParams(Params, frozen=True, kw_only=True):
    """`import.framework`: a framework, the whole path or the URL of its database, the agent whose its sessions become."""

    framework: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.NAME.most)] = msgspec.field(
        name="from"
    )
    source: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.PATH.most)]
    agent: limits.AgentId | None = None
    on_taken: Literal["beside", "refuse"] = "beside"


@ready
class NoteParams(Params, frozen=True, kw_only=True):
    """`notes.pin`: a run, the place of the note (the head), and what it says."""

    run: limits.PlaceText
    text: limits.MessageText
    at: limits.PlaceText | int | None = None
