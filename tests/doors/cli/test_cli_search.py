"""`intersession search` finds where words were said."""

from pathlib import Path

import pytest

from intersession import SessionSystem, ToolRefused, echo
from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.host import Views
from intersession_events.basics.ids import session_stream
from intersession_events.facts import SessionOpened
from intersession_events.stores.opened import open_log
from intersession_events.stores.tailing.view import place_of
from intersession_projections.views.inline_views import inline_views
from support.doors.command_line import DemoLog, ran
from support.log_drafts import anywhere, draft, said
from support.running import WAIT

KEY = "agent:main:main"


@pytest.mark.clause("FIND-1")
def test_it_finds_words_in_pages_and_narrows_them(demo_log: DemoLog) -> None:
    def hits(*tokens: str | int) -> list[dict[str, object]]:
        shown = ran("search", *tokens, "--store", demo_log.path, "--json")
        assert shown.exit_code == 0, shown.err
        found: list[dict[str, object]] = shown.json["hits"]
        return found

    every = hits("FERRY")
    assert len(every) > 3
    assert {"message_recorded", "run_queued"} <= {hit["kind"] for hit in every}
    paged: list[dict[str, object]] = []
    cursor: list[str] = []
    while True:
        page = ran("search", "ferry", "--limit", 2, *cursor, "--store", demo_log.path, "--json").json
        paged += page["hits"]
        if page["cursor"] is None:
            break
        cursor = ["--cursor", page["cursor"]]
    assert paged == every
    messages = hits("ferry", "--kind", "run_completed", "--in", "research")
    assert messages == [
        hit for hit in every if (hit["kind"], hit["sessionKey"]) == ("run_completed", "agent:research:main")
    ]
    assert messages
    middle = every[len(every) // 2]["position"]
    assert hits("ferry", "--until", str(middle)) == every[len(every) // 2 :]
    assert hits("ferry", "--since", str(middle)) == every[: len(every) // 2]


@pytest.mark.clause("FIND-1")
def test_people_read_where_it_was_said(demo_log: DemoLog) -> None:
    shown = ran("search", "ferry", "--kind", "run_completed", "--limit", 1, "--store", demo_log.path)
    assert shown.out.startswith("#")
    assert "run_completed  run " in shown.out
    assert "\n1 hit\nmore: --cursor " in shown.out
    assert ran("search", "nobodysaidthis", "--store", demo_log.path).out == "no hits\n"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["***"], 1, "WORDS: there is no word in it"),
        (["x", "--kind", "nothing"], 1, "kind: no event is called 'nothing'"),
        (["x", "--in", "nobody"], 1, "in: no session is called 'nobody'"),
        (["x", "--cursor", "-3"], 1, "cursor: it is no cursor"),
        (["x", "--limit", "0"], 2, "limit"),
    ],
)
def test_what_can_not_be_searched_for_is_said(
    demo_log: DemoLog, given: list[str], code: int, said: str
) -> None:
    shown = ran("search", *given, "--store", demo_log.path)
    assert (shown.exit_code, shown.out) == (code, "")
    assert said in shown.err


@pytest.mark.clause("FIND-1", "VIS-6")
def test_it_works_beside_a_host_that_keeps_the_words_and_shows_nobody_what_is_beyond_reach(
    tmp_path: Path,
) -> None:
    path, config = tmp_path / "log.db", Config(views=Views(keep=("search",)))
    with SessionSystem(path, agents={"main": echo(), "ops": echo()}, config=config) as system:
        for agent in ("main", "ops"):
            system.inbound(
                channel="telegram", chat_id="1", text=f"hi {agent}", sender="ann", agent_id=agent, wait=WAIT
            )
        found = ran("search", "hi", "--kind", "run_queued", "--store", path, "--json").json["hits"]
        assert {hit["sessionKey"] for hit in found} == {"agent:main:main", "agent:ops:main"}
        assert all(system.service.runs.get(str(hit["runId"])) for hit in found)

        limited = Caller.by_credential("desk", ("agent:ops:*",))
        seen = system.gateway.perform("debug.search", {"words": "hi"}, caller=limited)
        assert {(hit["sessionKey"], hit["kind"]) for hit in seen["hits"]} == {
            ("agent:ops:main", "run_queued"),
            ("agent:ops:main", "run_completed"),
        }
        hidden = system.gateway.perform("debug.search", {"words": "main"}, caller=limited)
        nothing = system.gateway.perform("debug.search", {"words": "nobodysaidthis"}, caller=limited)
        assert hidden == nothing
        with pytest.raises(ToolRefused, match="not visible"):
            system.gateway.perform("debug.search", {"words": "hi", "in": "agent:main:main"}, caller=limited)
    assert Path(place_of(str(path), "search")).exists()


@pytest.mark.ci
@pytest.mark.clause("FIND-1")
def test_a_log_that_no_host_has_opened_is_looked_through_and_nothing_is_built(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_log(str(path), inline=inline_views()) as log:
        opened = SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="operator")
        log.append_now([anywhere(session_stream(KEY), draft(opened, "opened"))])
        for page in range(5):
            numbers = range(page * 500, page * 500 + 500)
            texts = {f"m{number}": f"n{number} the ferry" if number % 7 else "nothing" for number in numbers}
            log.append_now([anywhere(session_stream(KEY), *(said(*one) for one in texts.items()))])

    def pages(*tokens: str | int) -> list[dict[str, object]]:
        first = ran("search", *tokens, "--limit", 2, "--store", path, "--json").json
        then = ran("search", *tokens, "--cursor", first["cursor"] or 1, "--store", path, "--json").json
        return [{"hits": page["hits"], "cursor": page["cursor"]} for page in (first, then)]

    asked: list[tuple[str | int, ...]] = [
        ("ferry",),
        ("ferry", "n7*"),
        ("ferr",),
        ("user",),
        ("ferry", "--in", "main", "--until", 900, "--since", 300),
        ("ferry", "--kind", "session_opened"),
    ]
    looked_through = [pages(*tokens) for tokens in asked]
    assert "all events were looked through" in ran("search", "ferry", "--store", path).out
    assert not Path(place_of(str(path), "search")).exists()

    assert ran("rebuild", "search", "--store", path).exit_code == 0
    assert [pages(*tokens) for tokens in asked] == looked_through
    assert "looked through" not in ran("search", "ferry", "--store", path).out
    assert [len(page["hits"]) for page in looked_through[0]] == [2, 50]  # type: ignore[arg-type]
