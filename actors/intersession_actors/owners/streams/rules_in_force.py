"""The settings in force for a session: read by its actor and by flows' managers, live and in a replay. Pure."""

from collections.abc import Callable
from typing import final

from msgspec.structs import replace

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.session import SendAction
from intersession_actors.rules.config.tools import Compaction
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.sending import Speak, Speech, Verdict, judge_send
from intersession_actors.rules.policy.windows import ModelWindow, Reckoned, reckon
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ChatType, ExchangeAccepted, Route, SessionOpened


@final
class RulesInForce:
    """The rules under which actors decide. A replay uses the same, with the settings of the time.

    `offered` says which tools a caller has, `has_channel` whether a channel is here, `transcript_path` where the transcript of a
    session id is mirrored, if it is (LIST-5).
    """

    def __init__(
        self,
        config: Callable[[], Config],
        *,
        offered: Callable[[Config, Requester], tuple[str, ...]],
        has_channel: Callable[[str], bool],
        transcript_path: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._config = config
        self._offered = offered
        self._has_channel = has_channel
        self.transcript_path = transcript_path

    def judge_send(
        self, *, key: str, channel: str | None, chat_type: ChatType | None, override: SendAction | None
    ) -> Verdict:
        """Return whether a session's texts may go out, and by which rule (POL-1, POL-2)."""
        policy = self._config().session.send_policy
        asked = Speak(key=key)
        known = Speech(
            channel=channel,
            chat_type=chat_type,
            override=override,
            default=policy.default,
            rules=policy.rules,
        )
        return judge_send(asked, known)

    def judge_child(self, key: str) -> Verdict:
        """Return whether a task may go to a sub-agent: a new session, without a channel or settings of its own (POL-3)."""
        return self.judge_send(key=key, channel=None, chat_type=None, override=None)

    def announce_route(self, accepted: ExchangeAccepted) -> Route | None:
        """Return an exchange's announce route; a host's `webchat` channel gets announces without one (ANN-2)."""
        if accepted.route is not None or not self._has_channel("webchat"):
            return accepted.route
        return Route(channel="webchat", to=accepted.target)

    def requester(self, opened: SessionOpened | None) -> Requester:
        """Return a session as a caller, from its opening; None is the operator."""
        if opened is None:
            return Requester(key=None, agent_id=self._config().default_agent)
        key = SessionKey.recorded(opened.key)
        return Requester(
            key=key, agent_id=key.agent_id, sandboxed=opened.sandboxed, spawn_depth=opened.spawn_depth
        )

    def tools_of(
        self, opened: SessionOpened, sender: str | None = None, model: str | None = None
    ) -> tuple[str, ...]:
        """Return a session's tools, from its opening, in a run that a person's message led to, on a model (TOOLS)."""
        requester = replace(self.requester(opened), sender=sender, model=model)
        return self._offered(self._config(), requester)

    def reckoned(self, agent_id: str, asked_for: str | None, said: ModelWindow | None) -> Reckoned:
        """Return the window of an agent's model, or of the model that a run or its session asks for (CTX-1)."""
        return reckon(self._config(), agent_id, asked_for, said)

    def compaction(self, agent_id: str) -> Compaction:
        """Return how older turns of an agent's sessions are summarised (CTX-5)."""
        return self._config().compaction_of(agent_id)

    def limit_text(self) -> str:
        """Return the text for a person whose budget is used up."""
        return self._config().runs.limit_text

    def failure_text(self) -> str:
        """Return the text for a person whose message got no answer."""
        return self._config().runs.failure_text
