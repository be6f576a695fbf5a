"""What search and usage look at lies in the database, for a log on PostgreSQL: made once, for everybody who reads it."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn, Usage
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.log.log import Log
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.tailing.places import kept, kept_inside
from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.full_text.found import Wanted
from intersession_projections.views.full_text.index import FullText
from intersession_projections.views.full_text.tokens import terms_asked
from intersession_projections.views.full_text.view import events_of, private_of, shown_of
from intersession_projections.views.tailed_views import tailed_views, take_in
from intersession_projections.views.usage import By, used
from support.doors.command_line import ran
from support.running import WAIT
from support.soaking import until
from support.story import MAIN, Story

pytestmark = pytest.mark.postgres

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
TEXTS = ("The ferry leaves at noon", f"the key is {SECRET}", "日本へ行く ferries", "ferry, once more")


def costly(turn: Turn) -> Reply:
    return Reply(f"heard: {turn.message}", model="large", usage=Usage(input=10, output=7, cost_micros=7))


def talked(store: str, *, keep: tuple[str, ...] = ()) -> None:
    config = {"views": {"keep": list(keep), "afterSeconds": 0}}
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(store, agents={"main": costly}, channels=channels, config=config) as system:
        for number, text in enumerate(TEXTS):
            system.inbound(
                channel="telegram", chat_id="1", text=text, sender="ann", message_id=str(number), wait=WAIT
            )
        until(lambda: not system.service.flows.open_deliveries() and not system.service.runs.open_runs())
        if keep:
            until(lambda: kept_inside(system.log) >= set(keep))


def positions(log: Log, text: str) -> list[int]:
    with FullText(log, redact_raw).up_to_date() as found:
        agents, sessions = found.names("agent").values(), found.names("session").values()
        groups = [*shown_of(agents, sessions), *private_of(agents, ()), *events_of(agents, ())]
        return list(found.positions(Wanted(terms_asked(text), groups)))


@pytest.mark.clause("FIND-1")
def test_search_and_usage_find_in_the_database_what_they_find_in_files(
    postgres_url: str, tmp_path: Path
) -> None:
    talked(postgres_url)
    moved = ran("migrate", postgres_url, tmp_path / "twin.db", "--json")
    assert moved.exit_code == 0, moved.err
    with (
        open_log(postgres_url, read_only=True) as log,
        open_log(str(tmp_path / "twin.db"), read_only=True) as twin,
    ):
        for text in ("ferry", "ferr*", "FERRY noon", SECRET, "日本", "nothing", "heard ferry", "a\0b"):
            assert positions(log, text) == positions(twin, text), text
        assert kept_inside(log) >= {"search"}
        for of in (log, twin):
            take_in(of, redact_raw)
        usage = tailed_views(redact_raw)[1]
        with closing(kept(usage, log)) as one, closing(kept(usage, twin)) as other:
            bys: tuple[By, ...] = ("day", "agent", "session", "model")
            for by in bys:
                assert sorted(used(one.query, [by])) == sorted(used(other.query, [by])) != []
    assert not Path(f"{located(postgres_url).place}.views").exists()


@pytest.mark.clause("J1", "ERASE-1")
def test_a_host_keeps_them_and_verify_and_rebuild_know_them(postgres_url: str) -> None:
    talked(postgres_url, keep=("search", "usage"))
    views = tailed_views(redact_raw)
    with open_log(postgres_url, read_only=True) as log:
        take_in(log, redact_raw)
        assert views_proven(log, views)[0] == []
    assert ran("verify", "--store", postgres_url).exit_code == 0

    with psycopg.connect(address_of(postgres_url).conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {address_of(postgres_url).schema}".encode())
        connection.execute("UPDATE usage SET input = 1; DELETE FROM said_words WHERE notification_id > 5")
    told = ran("verify", "--store", postgres_url, "--json")
    assert {one["view"] for one in told.json["findings"]} == {"search", "usage"}
    assert ran("rebuild", "usage", "--store", postgres_url).exit_code == 0
    with open_log(postgres_url, read_only=True) as log:
        assert positions(log, "ferry") != []  # who finds it changed makes it anew
        assert views_proven(log, views)[0] == []

    erased = ran("erase", "agent:main:main", "--yes", "--store", postgres_url)
    assert erased.exit_code == 0, erased.err
    with psycopg.connect(address_of(postgres_url).conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {address_of(postgres_url).schema}".encode())
        assert (
            connection.execute("SELECT 1 FROM said_words WHERE grams::text LIKE '%ferry%'").fetchall() == []
        )
    with open_log(postgres_url, read_only=True) as log:
        assert views_proven(log, views)[0] == []


def test_of_more_words_than_an_index_holds_the_first_ones_are_found(postgres_url: str) -> None:
    """A `tsvector` holds a million bytes: an event with more was set aside, and the view said to be another than its events."""
    story = Story(postgres_url)
    story.open()
    story.say(MAIN, " ".join(f"word{number:06}" for number in range(60_000)))
    positions_of_it = [story.log.head()]
    assert positions(story.log, "word000000 word020000") == positions_of_it
    assert positions(story.log, "word059999") == []
    assert views_proven(story.log, tailed_views(redact_raw)[:1])[0] == []
    assert list(story.log.set_aside()) == []
    story.close()


def test_two_that_keep_the_same_view_take_each_event_once(postgres_url: str) -> None:
    talked(postgres_url)
    with open_log(postgres_url, read_only=True) as log, open_log(postgres_url, read_only=True) as other:
        for view in tailed_views(redact_raw):
            ones = [Tail(each, kept(view, each)) for each in (log, other)]
            for tail in (*ones, *ones):
                assert tail.catch_up() == log.head()
            ones[0].view.begin_anew()  # as somebody may do while another one keeps it
            for tail in (ones[1], ones[0], ones[1]):
                tail.catch_up()
            assert views_proven(log, [view])[0] == []
