"""The help of all commands: each stands under one heading, in the order in which somebody comes to need them."""

from collections import Counter

from intersession.cli.app import COMMANDS, GROUPS
from support.doors.command_line import ran


def test_each_command_stands_under_one_heading_of_the_help() -> None:
    assert Counter(name for names in GROUPS.values() for name in names) == Counter(COMMANDS.keys())
    told = ran("--help").out
    places = [told.index(heading) for heading in GROUPS]
    assert places == sorted(places)
    assert [len(names) for names in GROUPS.values() if len(names) > 12] == []
