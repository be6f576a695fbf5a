"""The spawn tree: who spawned whom, and what became of it."""

import pytest

from intersession_events.facts import ChildEnded, SessionArchived, SpawnAccepted
from intersession_projections.timeline.spawn_tree import SpawnTree
from support.story import MAIN, Story

FIRST, SECOND = "agent:main:subagent:1", "agent:main:subagent:2"
BELOW = "agent:ops:subagent:3"


def spawned(story: Story, child: str, requester: str) -> None:
    story.open(child, spawned_by=requester, opened_by="spawn")
    story.put(
        f"spawn:{child}",
        SpawnAccepted(
            spawn_id=child,
            run_id=f"run {child}",
            child=child,
            child_session_id="s",
            agent_id="main",
            task="t",
            message_id="m",
            requester=requester,
        ),
    )


@pytest.mark.clause("SPAWN-6", "VIS-2")
def test_a_tree_shows_each_child_below_its_parent_with_what_became_of_it(story: Story) -> None:
    story.open()
    spawned(story, FIRST, MAIN)
    spawned(story, BELOW, FIRST)
    spawned(story, SECOND, MAIN)
    story.put(f"spawn:{FIRST}", ChildEnded(run_id="r", status="timeout"))
    story.put(
        f"session:{BELOW}", SessionArchived(session_id=f"s-{BELOW.replace(':', '-')}", reason="expired")
    )
    tree = SpawnTree(story.log)
    root = tree.of(MAIN)
    assert (root.key, root.status) == (MAIN, "idle")
    assert [(node.key, node.status) for node in root.children] == [(FIRST, "timeout"), (SECOND, "running")]
    assert [(node.key, node.status) for node in root.children[0].children] == [(BELOW, "archived")]
    assert tree.root_of(BELOW) == MAIN
    assert tree.of("agent:main:nobody").status == "unknown"


def test_sessions_that_claim_to_have_spawned_each_other_end_the_tree(story: Story) -> None:
    story.open(FIRST, spawned_by=SECOND)
    story.open(SECOND, spawned_by=FIRST)
    root = SpawnTree(story.log).of(FIRST)
    assert [(node.key, node.children) for node in root.children] == [(SECOND, ())]
