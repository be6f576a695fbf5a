"""What an explanation says: the rule, what it looked at, and what would have changed the verdict (WHY-2)."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from intersession_events.basics.plain_json import JsonValue
from intersession_events.log.recorded import Recorded

About = Literal["loop", "announce", "exchange", "spawn", "run", "delivery", "refusal", "session"]
"""What was decided upon."""

Unit = Literal["time", "duration"]
"""What a number in milliseconds is: a time since 1970, or how long something lasted."""

SetBy = Literal["default", "configuration", "session", "exchange", "call", "agent", "channel", "log"]
"""Who a value is from: nobody (`default`), the configuration, a setting of the session, the values that the exchange was
accepted with, whoever called, what an agent answered, what a channel answered, or what the log counts."""


class Input(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A value that a rule looked at. `position` is where it was set, as far as the log shows that.

    `unit` is there for times and durations, in milliseconds; a number without it is a count, or has its unit in its name.
    """

    name: str
    value: JsonValue
    set_by: SetBy
    position: int | None = None
    unit: Unit | None = None


class Instead(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What would have changed a verdict.

    `change` says it in words. Where the rule itself was asked again with that change, `verdict` is what it said: the code of
    another end, or the name of the event that would have come. `setting` and `value` are set where a setting is the change.
    """

    change: str
    verdict: str | None = None
    setting: str | None = None
    value: JsonValue = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why something ended, was refused or reached nobody.

    `position` is that of the event that says so, `code` the reason in it, `rule` the clause of the protocol. `text` says it
    in words. `as_decided`: the rule of today, asked again with what the log has, says the same; None where it can't be
    asked, because the log does not have all that it looks at.
    """

    position: int
    about: About
    code: str
    rule: str
    text: str
    inputs: tuple[Input, ...] = ()
    instead: tuple[Instead, ...] = ()
    as_decided: bool | None = None


class Rule(NamedTuple):
    """A rule in words: its clause, what it says, and what else could have come."""

    clause: str
    says: str
    instead: str

    def others(self, named: str | None) -> tuple[Instead, ...]:
        """Return what else could have come, where the rule itself is not asked again; `named` stands for `ID` in a command."""
        change = self.instead if named is None else self.instead.replace(" ID`", f" {named}`")
        return (Instead(change=change),) if change else ()

    def explains(
        self,
        recorded: Recorded,
        about: About,
        code: str,
        said: str,
        inputs: Iterable[Input] = (),
        *,
        instead: tuple[Instead, ...] = (),
        as_decided: bool | None = None,
        named: str | None = None,
    ) -> Explanation:
        """Return the explanation of an event by this rule; `instead` is what is known better than what else could have come.

        `named` is the id that a command in the rule's words is to be given.
        """
        return Explanation(
            position=recorded.position,
            about=about,
            code=code,
            rule=self.clause,
            text=f"{said}: {self.says}.",
            inputs=tuple(inputs),
            instead=instead or self.others(named),
            as_decided=as_decided,
        )
