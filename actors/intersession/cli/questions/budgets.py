"""What is left of budgets, for `intersession usage --left`."""

import msgspec

from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen
from intersession_actors.owners.chains.spending import SpendingLedger, left_of
from intersession_actors.rules.config.config import load_config
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.facts import ConfigLoaded
from intersession_events.facts.reasons import counted
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.views.positions import Positions


def of_budgets(log: PortableLog) -> Answer:
    """Return what is left of the budgets of the last configuration that the log has, as of now."""
    recorded = (one.event for one in backwards(log, Span(), "log"))
    loaded = next((event for event in recorded if isinstance(event, ConfigLoaded)), None)
    config = load_config(msgspec.json.decode("{}" if loaded is None else loaded.config), literal=True).config
    ledger = SpendingLedger(log, Positions(log).position_at, config.session.person)
    rows = [left_of(*one) for one in ledger.left(config.budgets, SystemClock().now_ms())]
    columns = ["per", "of", "setting", "used", "allowed", "left"]

    def show(screen: Screen) -> None:
        if rows:
            screen.table(columns, [tuple(str(row[name]) for name in columns) for row in rows])
        screen.dim(counted(len(rows), "limit") + " with any use")

    return Answer({"count": len(rows), "budgets": rows}, show)
