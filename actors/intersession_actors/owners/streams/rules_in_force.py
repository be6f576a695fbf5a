"""What the settings in force say of a session: asked by its actor and by the managers of flows, live and in a replay. Pure."""

from collections.abc import Callable
from typing import final

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.session import SendAction
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.sending import Speak, Speech, Verdict, judge_send
from intersession_actors.rules.policy.windows import ModelWindow, Reckoned, reckon
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ChatType, ExchangeAccepted, Route, SessionOpened


@final
class RulesInForce:
    """The rules under which actors decide. There is no other kind of them: a replay asks these, with the settings of then.

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
        """Say whether a session's words may go out, and by which rule (POL-1, POL-2)."""
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
        """Say whether a task may go to a sub-agent: a new session, which has no channel and no setting of its own (POL-3)."""
        return self.judge_send(key=key, channel=None, chat_type=None, override=None)

    def announce_route(self, accepted: ExchangeAccepted) -> Route | None:
        """Return where an exchange's announce goes; a host with a `webchat` channel hears what has no route (ANN-2)."""
        if accepted.route is not None or not self._has_channel("webchat"):
            return accepted.route
        return Route(channel="webchat", to=accepted.target)

    def requester(self, opened: SessionOpened | None) -> Requester:
        """Return a session as a caller, by how it was opened; None is the operator."""
        if opened is None:
            return Requester(key=None, agent_id=self._config().default_agent)
        key = SessionKey.recorded(opened.key)
        return Requester(
            key=key, agent_id=key.agent_id, sandboxed=opened.sandboxed, spawn_depth=opened.spawn_depth
        )

    def tools_of(self, opened: SessionOpened) -> tuple[str, ...]:
        """Return the tools that a session has, by how it was opened."""
        return self._offered(self._config(), self.requester(opened))

    def reckoned(self, agent_id: str, asked_for: str | None, said: ModelWindow | None) -> Reckoned:
        """Return what the model takes that an agent runs on, where a run or its session asks for one, or for none (CTX-1)."""
        return reckon(self._config(), agent_id, asked_for, said)

    def failure_text(self) -> str:
        """Return what a person is told whose message found no answer."""
        return self._config().runs.failure_text
