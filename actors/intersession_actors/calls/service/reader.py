"""Reads for every door: the log, its views, the configuration in force, and the form in which a requester sees keys."""

from collections.abc import Callable, Sequence
from pathlib import Path

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.disclosure.advice import advised
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import storable
from intersession_actors.rules.policy.access import Reach, Requester, Sight, reach_of, sight_of
from intersession_actors.running.runtime.clock import Clock
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import display
from intersession_events.facts import AccessEvent, SessionOpened
from intersession_events.log.log import Log
from intersession_projections.copies.transcripts.files import file_name
from intersession_projections.questions.places.grammar import UnknownPlace, parse_place
from intersession_projections.questions.places.located import Located, Places
from intersession_projections.questions.places.runs_named import Sees
from intersession_projections.questions.smells.smell import SmellRule
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.full_text.index import FullText
from intersession_projections.views.positions import Positions
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.history import History
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.session_filter import VisibleSessions

Record = Callable[[str | None, AccessEvent], None]
"""Keeps a receipt of what a requester (None: the operator) asked for; never waits (VIS-4)."""


class Reader:
    """The reading half of the system, for every door. It writes nothing but access receipts.

    `transcripts` is the directory of the mirrored transcripts, where there is one (LIST-5). `smells` are rules of the host's
    own for what is seldom meant (SMELL-1).
    """

    def __init__(
        self,
        log: Log,
        *,
        config: Callable[[], Config],
        clock: Clock,
        record: Record | None = None,
        transcripts: Path | None = None,
        smells: Sequence[SmellRule] = (),
    ) -> None:
        self._config = config
        self._record = record
        self.log = log
        self.clock = clock
        self.transcripts = transcripts
        self.smells = tuple(smells)
        self.sessions = Sessions(log)
        self.runs = Runs(log)
        self.flows = Flows(log)
        self.history = History(log)
        self.full_text = FullText(log, redact_raw)
        self.positions = Positions(log)

    def on(self, log: Log) -> "Reader":
        """Return the same reader with another face of its log."""
        reader = Reader(
            log,
            config=self._config,
            clock=self.clock,
            record=self._record,
            transcripts=self.transcripts,
            smells=self.smells,
        )
        reader.full_text = self.full_text  # where it is in memory, it lives as long as this
        return reader

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._config()

    def record(self, requester: str | None, fact: AccessEvent) -> None:
        """Record a receipt; does nothing if receipts can't be recorded (a read-only log)."""
        if self._record is not None:
            self._record(requester, fact)

    def parse(self, key: str) -> SessionKey:
        """Parse a canonical key of the log."""
        return SessionKey.recorded(key, main_key=self.config.session.main_key)

    def main_key(self, agent_id: str) -> SessionKey:
        """Return an agent's main session; with the global scope the one of the default agent (KEY-4)."""
        session = self.config.session
        owner = self.config.default_agent if session.scope == "global" else agent_id
        return SessionKey.main(owner, session.main_key)

    def requester(
        self,
        key: str | None,
        agent_id: str | None = None,
        *,
        as_of: int | None = None,
        opened: SessionOpened | None = None,
        within: tuple[str, ...] | None = None,
    ) -> Requester:
        """Return the caller's row: a session, now or as of a position; None for the operator.

        `agent_id` is the agent that works in the session, where that is not the key's own (the global scope). A caller that
        knows how the session was `opened` saves a look into the list of sessions, which a fork would have to be folded for. `within` is what
        the credential names that acts as the session.
        """
        if key is None:
            return Requester(key=None, agent_id=agent_id or self.config.default_agent)
        parsed = self.parse(key)
        if opened is not None:
            return Requester(
                key=parsed,
                agent_id=agent_id or parsed.agent_id,
                sandboxed=opened.sandboxed,
                spawn_depth=opened.spawn_depth,
                within=within,
            )
        row = self.sessions.get(key, as_of)
        sandboxed = (
            row.sandboxed if row is not None else self.config.sandboxed(parsed.agent_id, main=parsed.is_main)
        )
        return Requester(
            key=parsed,
            agent_id=agent_id or parsed.agent_id,
            sandboxed=sandboxed,
            spawn_depth=row.spawn_depth if row is not None else 0,
            within=within,
        )

    def reach(self, requester: Requester) -> Reach:
        """Return a requester's reach, by the settings in force."""
        return reach_of(self.sight(requester))

    def sight(self, requester: Requester) -> Sight:
        """Return the inputs that decide what a requester may see and reach, by the settings in force."""
        return sight_of(self.config, requester)

    def seen(self, requester: Requester) -> VisibleSessions | None:
        """Return the sessions visible to a requester (VIS-2); None for all of them."""
        reach = self.reach(requester)
        if reach.everything:
            return None
        return VisibleSessions(reach.sees_agent, reach.key, tree=reach.tree, within=reach.within)

    def is_stranger(self, requester: Requester, key: str) -> bool:
        """Whether a requester is neither the operator nor the session itself: secrets are hidden from it (HIST-4)."""
        return requester.key is not None and str(requester.key) != key

    def sees(self, requester: Requester) -> Sees | None:
        """Return a function that tells of a canonical key whether a requester sees it (VIS-2); None for all of them."""
        reach = self.reach(requester)
        return None if reach.everything else lambda key: bool(self._seen(reach, (key,)))

    def seen_among(self, requester: Requester, keys: Sequence[str]) -> set[str]:
        """Return those of some sessions that a requester sees, in one query."""
        return self._seen(self.reach(requester), keys)

    def _seen(self, reach: Reach, keys: Sequence[str]) -> set[str]:
        above = self.sessions.ancestors_of_each(keys) if reach.tree else [list[str]() for _ in keys]
        return {
            key
            for key, ancestors in zip(keys, above, strict=True)
            if reach.sees(key=key, agent_id=self.parse(key).agent_id, in_tree=reach.key in ancestors)
        }

    def place(
        self,
        at: float | str,
        *,
        field: str = "asOf",
        requester: Requester | None = None,
        is_end: bool = False,
    ) -> Located:
        """Return the position of a place, in any of its forms (PLACE-1, LIST-8); a fraction is floored (LIST-1).

        `field` is what an error names. Events and runs are found among those of the sessions that `requester` sees, who is the
        operator if not given. Where it `is_end` of a part of the log, a time that has not come yet is the head.

        Raises:
            ToolRefused: it is no place, beyond the end of the log, in the future, or of nothing that is there (`invalid_request`).
        """
        sees = None if requester is None else self.sees(requester)
        try:
            return Places(self.log, now_ms=self.clock.now_ms(), sees=sees).find(
                parse_place(at, field=field), field=field, is_end=is_end
            )
        except UnknownPlace as error:
            # A caller that acts as a session has its tools, and no commands.
            said = str(error) if requester is None else advised(str(error), {})
            raise ToolRefused("invalid_request", said) from None

    def show(self, key: SessionKey, requester: Requester) -> str:
        """Return a key in the form a requester sees and can type back (KEY-2, KEY-3, CFG-2)."""
        config = self.config
        older = config.session.dialect != "channel"
        if older and key.kind == "group" and key.agent_id == requester.agent_id:
            return key.rest
        return display(key, requester_agent=requester.agent_id, scope=config.session.scope)

    def channel_of(self, row: SessionRow, key: SessionKey | None = None) -> str:
        """Return the channel that a row shows (LIST-6); `key` is the row's, if it is parsed already."""
        key = key or self.parse(row.key)
        if key.kind == "group":
            return row.channel or key.channel or "unknown"
        if key.kind in {"cron", "hook", "node"}:
            return "internal"
        return row.last_channel or key.channel or "unknown"

    def transcript_path(self, session_id: str) -> str | None:
        """Return the path of a session's mirrored transcript, if transcripts are mirrored."""
        if self.transcripts is None:
            return None
        return storable(str(self.transcripts / file_name(session_id)))
