"""`sessions_search`: finds what a caller can read, and is no way to learn of anything else."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intersession_actors.calls.tools.sessions_search import groups_of, search_sessions
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import TextBlock, ToolCallBlock
from intersession_projections.views.full_text.found import Wanted
from intersession_projections.views.full_text.tokens import terms_asked
from support.story import MAIN, Story

AGENTS = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}
ALL = {"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}}
GROUP = "agent:main:telegram:group:-100"
CHILD = "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
OPS = "agent:ops:main"
SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def story(passing_url: str) -> Iterator[Story]:
    told = Story(passing_url)
    told.open(MAIN)
    told.open(GROUP)
    told.open(OPS)
    told.open(CHILD, spawned_by=MAIN)
    yield told
    told.close()


def search(
    story: Story, requester: str | None, query: str, config: dict[str, Any] | None = None, **arguments: Any
) -> dict[str, Any]:
    reader = story.reader({**AGENTS, **(config or {})})
    given = {"query": query, **arguments}
    answer, summary = search_sessions(reader, reader.requester(requester), given)
    assert len(summary.keys) == len({hit["sessionKey"] for hit in answer["hits"]})
    return answer


def found(story: Story, requester: str | None, query: str, **arguments: Any) -> list[tuple[str, str]]:
    hits = search(story, requester, query, **arguments)["hits"]
    return [(hit["sessionKey"], hit["snippet"]) for hit in hits]


@pytest.mark.clause("FIND-1", "VIS-2")
def test_each_finds_what_it_can_read_newest_first(story: Story) -> None:
    for key in (MAIN, GROUP, OPS, CHILD):
        story.say(key, f"lake in {key.split(':')[-1]}")

    def keys(requester: str | None, **more: Any) -> list[str]:
        return [key for key, _ in found(story, requester, "LAKE", **more)]

    assert keys(None) == [CHILD, OPS, GROUP, "main"]
    assert keys(MAIN) == [CHILD, "main"]
    assert keys(MAIN, config={"tools": {"sessions": {"visibility": "agent"}}}) == [CHILD, GROUP, "main"]
    assert keys(MAIN, config={"tools": {"sessions": {"visibility": "self"}}}) == ["main"]
    assert keys(MAIN, config=ALL) == [CHILD, OPS, GROUP, "main"]
    assert keys(CHILD) == [CHILD]
    assert keys(MAIN, sessionKey=CHILD) == [CHILD]


@pytest.mark.clause("FIND-1")
def test_a_hit_says_where_it_is_read_on(story: Story) -> None:
    story.run(MAIN, "r1", "is the lake open", "the ferry crosses the lake")

    answer, question = search(story, MAIN, "lake")["hits"]

    assert (answer["role"], answer["messageId"], answer["runId"]) == ("assistant", "r1-out", "r1")
    assert (question["role"], question["messageId"], question["runId"]) == ("user", "r1-in", "r1")
    assert {answer["sessionId"], question["sessionId"]} == {"s-agent-main-main"}
    assert question["snippet"] == "is the lake open"


@pytest.mark.clause("FIND-1")
def test_what_a_search_was_given_and_gave_is_not_found(story: Story) -> None:
    call = ToolCallBlock(id="c", name="sessions_search", arguments='{"query":"lake"}')
    story.say(MAIN, (TextBlock(text="let me look"), call), role="assistant")
    story.say(MAIN, "a lake", role="toolResult", tool_call_id="c", tool_name="sessions_search")

    assert found(story, MAIN, "lake") == []
    assert len(found(story, MAIN, "look")) == 1


@pytest.mark.clause("FIND-1")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"query": "***"}, "query"),
        ({"query": ""}, "query"),
        ({"query": 5}, "query"),
        ({"query": "x" * 513}, "query"),
        ({"query": "x", "limit": "1"}, "limit"),
        ({"query": "x", "cursor": "0"}, "cursor"),
        ({"query": "x", "cursor": "٣"}, "cursor"),
        ({"query": "x", "since": "noon"}, "since"),
        ({"query": "x", "until": 10_000}, "until"),
        ({"query": "x", "words": "y"}, "words"),
        ({}, "query"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(story: Story, arguments: dict[str, Any], field: str) -> None:
    reader = story.reader()
    with pytest.raises(ToolRefused) as caught:
        search_sessions(reader, reader.requester(MAIN), arguments)
    assert (caught.value.code, caught.value.error.split(":")[0]) == ("invalid_request", field)


WORDS = st.sampled_from(["lake", "ferry", "bridge"])
SAID = st.lists(
    st.tuples(
        st.sampled_from([MAIN, GROUP, OPS, CHILD]), st.sampled_from(["lake", "ferry", f"key {SECRET}"])
    ),
    max_size=8,
)


@pytest.mark.sqlite("two logs for each example")
@pytest.mark.clause("FIND-1", "VIS-2", "HIST-5", "X2")
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SAID, st.booleans(), st.integers(1, 3))
def test_hidden_hits_redacted_secrets_and_no_hits_look_the_same(
    said: Sequence[tuple[str, str]], tree: bool, limit: int
) -> None:
    """Not only the answer: nothing of what is hidden comes under the search, so neither time nor cursor tells of it."""
    story, visible = Story(), Story()
    level = {"tools": {"sessions": {"visibility": "tree" if tree else "self"}}}
    seen = {MAIN, CHILD} if tree else {MAIN}
    for told in (story, visible):
        for key in (MAIN, GROUP, OPS):
            told.open(key)
        told.open(CHILD, spawned_by=MAIN)
        for key, text in said:
            hidden = told is visible and (key not in seen or (key != MAIN and SECRET in text))
            told.say(key, "something else" if hidden else text)

    for query in ("lake", SECRET, "ghp_0123456789*", "bridge"):
        pages: list[dict[str, Any]] = []
        for told in (story, visible):
            cursor: str | None = None
            given: list[Any] = []
            while True:
                answer = search(told, MAIN, query, level, limit=limit, cursor=cursor)
                given.append(answer)
                cursor = answer["cursor"]
                if cursor is None:
                    break
            pages.append({"pages": given})
            reader = told.reader({**AGENTS, **level})
            with reader.full_text.up_to_date() as index:
                groups = groups_of(reader, reader.requester(MAIN), index, None)
                candidates = list(index.positions(Wanted(terms_asked(query), groups)))
            assert candidates == [hit["position"] for page in given for hit in page["hits"]]
        assert pages[0] == pages[1]
    story.close()
    visible.close()
