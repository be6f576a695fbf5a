"""Session keys: reading, writing, and what a caller means by what it typed."""

import string
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey, valid_agent_id, valid_main_key
from intersession_events.basics.keys.references import (
    IdReference,
    KeyReference,
    LookupMiss,
    Reference,
    Scope,
    display,
    parse_agent_id,
    refer,
)
from support import hostile

UUID = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"


def meant(
    text: str,
    *,
    requester: str | None = "main",
    default: str = "main",
    main_key: str = "main",
    scope: Scope = "per-sender",
) -> Reference:
    return refer(text, requester_agent=requester, default_agent=default, main_key=main_key, scope=scope)


def key_meant(text: str, **where: Any) -> str:
    reference = meant(text, **where)
    assert isinstance(reference, KeyReference)
    return str(reference.key)


# --- every hostile row


@pytest.mark.clause("KEY-6", "KEY-4", "KEY-8", "X5")
@pytest.mark.parametrize("row", hostile.rows("K"), ids=hostile.row_id)
def test_a_hostile_key_is_answered_as_expected(row: dict[str, Any]) -> None:
    verdict, _, canonical = row["expect"].partition(":")
    text = hostile.given(row)
    match verdict:
        case "canonical":
            assert key_meant(text) == canonical
        case "invalid_key":
            with pytest.raises(InvalidKey):
                meant(text)
        case _:
            # Well formed, so that whether it exists and may be seen is another's question.
            assert verdict == "not_visible"
            meant(text)


@pytest.mark.clause("KEY-6")
def test_only_the_length_of_a_huge_text_is_looked_at() -> None:
    class Unread(str):
        __slots__ = ()

        def strip(self, *_: Any) -> str:
            raise AssertionError

        def __iter__(self) -> Iterator[str]:
            raise AssertionError

    with pytest.raises(InvalidKey, match="100000 characters"):
        meant(Unread("a" * 100_000))
    with pytest.raises(InvalidKey, match="513 characters"):
        SessionKey.parse(Unread("agent:main:whatsapp:group:" + "a" * 487))


@pytest.mark.clause("KEY-6")
@pytest.mark.parametrize("text", ["whatsapp:group:a b", "agent:m\u0430in:main", "cron:"])
def test_a_refusal_quotes_what_was_typed_and_nothing_else(text: str) -> None:
    with pytest.raises(InvalidKey) as refusal:
        meant(text, requester="ops", default="home")
    assert f"'{text}'" in str(refusal.value)
    assert "ops" not in str(refusal.value)


@pytest.mark.clause("KEY-6")
def test_a_refusal_does_not_quote_what_could_act_on_a_terminal() -> None:
    with pytest.raises(InvalidKey) as refusal:
        meant("agent:main:\x1b[2J\u202e")
    assert str(refusal.value).isprintable()


@pytest.mark.clause("KEY-6")
def test_a_short_form_that_is_too_long_in_full_is_no_key() -> None:
    with pytest.raises(InvalidKey, match="512"):
        meant("whatsapp:group:" + "a" * 490)


FORMS = ("main", "notes", "cron:daily", "cron:daily:run:", "hook:gmail:", "node-kitchen", "direct:alice", f"subagent:{UUID}",
         "telegram:group:", "telegram:bot-2:direct:4", "discord:channel:123", "discord:channel:123:thread:")  # fmt: skip
NEARLY_KEYS = st.tuples(
    st.sampled_from(["", "agent:main:", "Agent:Ops:", " agent:a-1:", "agent:"]),
    st.sampled_from(FORMS),
    st.just("") | st.text("aZ1:- tophicread\u0430", max_size=12) | st.text(max_size=4),
).map("".join)


@given(st.text(max_size=600) | NEARLY_KEYS)
@pytest.mark.clause("KEY-8", "X3")
def test_reading_is_total(text: str) -> None:
    try:
        reference = meant(text)
    except InvalidKey:
        return
    if isinstance(reference, KeyReference):
        assert SessionKey.parse(str(reference.key)) == reference.key


# --- the forms of KEY-1


@pytest.mark.clause("KEY-1", "KEY-7")
@pytest.mark.parametrize(
    ("rest", "family", "kind"),
    [
        ("main", "main", "main"),
        ("whatsapp:group:120363@g.us", "group", "group"),
        ("discord:channel:123", "channel", "group"),
        ("telegram:direct:42", "direct", "other"),
        ("telegram:bot-2:direct:42", "direct", "other"),
        ("direct:alice", "direct", "other"),
        ("cron:daily", "cron", "cron"),
        (f"cron:daily:run:{UUID}", "cron", "cron"),
        (f"hook:{UUID}", "hook", "hook"),
        ("hook:gmail:18c0ffee", "hook", "hook"),
        ("node-kitchen", "node", "node"),
        (f"subagent:{UUID}", "subagent", "other"),
        (f"acp:{UUID}", "acp", "other"),
        ("notes_2-b", "named", "other"),
        ("main:thread:99", "main", "other"),
        ("telegram:group:-100:topic:7", "group", "group"),
    ],
)
def test_each_form_is_read_and_written_back(rest: str, family: str, kind: str) -> None:
    key = SessionKey.parse(f"agent:ops:{rest}")

    assert (str(key), key.agent_id, key.rest) == (f"agent:ops:{rest}", "ops", rest)
    assert (key.family, key.kind) == (family, kind)


@pytest.mark.clause("KEY-1", "KEY-6")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "agent",
        "agent:",
        "agent:main",
        "agent::",
        "agent:-main:main",
        "agent:" + "a" * 65 + ":main",
        "agent:main:notes!",
        "agent:main:" + "n" * 65,
        "agent:main:global",
        "agent:main:unknown",
        "agent:main:cron",
        "agent:main:cron:",
        "agent:main:cron:a b",
        "agent:main:cron:a:run:",
        "agent:main:cron:a:runs:b",
        "agent:main:cron:a:thread:1",
        "agent:main:hook:",
        "agent:main:node-",
        "agent:main:node:x",
        "agent:main:subagent:x",
        f"agent:main:subagent:{UUID}:thread:1",
        f"agent:main:subagent:urn:uuid:{UUID}",
        f"agent:main:subagent:{UUID.replace('-', '')}",
        "agent:main:whatsapp:group:",
        "agent:main:whatsapp:group::thread:1",
        "agent:main:whatsapp:group:a:thread:",
        "agent:main:whatsapp:group:a::b",
        "agent:main:whatsapp:group:a b",
        "agent:main:whatsapp:group:a\u200bb",
        "agent:main:whatsapp:group:a\x00b",
        "agent:main:whatsapp:group:\ud800",
        "agent:main:whatsapp:group:\u202ea",
        "agent:main:whatsapp:group:a:agent:b",
        "agent:main:whatsapp:group:a:AGENT:b",
        "agent:main:whatsapp:group:subagent",
        "agent:main:global:group:a",
        "agent:main:WhatsApp\u212a:group:a",
        "agent:main:one:two",
        "agent:main:direct",
        "agent:main:a:b:c:direct:d",
        "agent:main:notes:thread:1",
        f"\u2028agent:main:subagent:{UUID}",
        "\x0bagent:main:main",
        "\xa0agent:main:main",
    ],
)
def test_what_fits_no_form_is_no_key(text: str) -> None:
    with pytest.raises(InvalidKey):
        SessionKey.parse(text)


UNSEEN = {
    "composed of two": "cafe\u0301",
    "composed wrongly": "\u212b",
    "unassigned": "a\u0378",
    "unassigned, far out": "a\U000e0fff",
    "private": "a\ue000",
    "a selector of a variant": "a\ufe0f",
    "a filler": "a\u3164",
    "another filler": "a\u1160",
    "a blank of Braille": "a\u2800",
    "a joiner of marks": "a\u034f",
    "no character at all": "a\uffff",
}


@pytest.mark.clause("KEY-6")
@pytest.mark.parametrize("unseen", UNSEEN.values(), ids=UNSEEN.keys())
def test_an_id_that_nobody_sees_or_tells_apart_is_in_no_key_that_is_typed(unseen: str) -> None:
    """B14: NFC and NFD were two sessions."""
    for text in (
        f"agent:main:whatsapp:group:{unseen}",
        f"agent:main:direct:{unseen}",
        f"agent:main:discord:channel:1:thread:{unseen}",
    ):
        with pytest.raises(InvalidKey, match="composed form"):
            SessionKey.parse(text)
        with pytest.raises(InvalidKey):
            refer(text, requester_agent="main", default_agent="main", main_key="main", scope="per-sender")
    with pytest.raises(InvalidKey):
        SessionKey.group("main", "whatsapp", unseen)


@pytest.mark.clause("KEY-6", "KEY-8")
@pytest.mark.parametrize("unseen", UNSEEN.values(), ids=UNSEEN.keys())
def test_a_log_that_has_such_a_key_is_read_all_the_same(unseen: str) -> None:
    text = f"agent:main:whatsapp:group:{unseen}:thread:{unseen}"
    key = SessionKey.recorded(text)

    assert str(key) == text
    assert (key.peer, key.thread) == (unseen, unseen)


@pytest.mark.clause("KEY-6")
@pytest.mark.parametrize(
    "letters",
    ["caf\xe9", "\u05d0\u05d1", "\u4e2d\u6587", "\u0e01\u0e34", "\u0939\u093f", "\U0001f600", "\uac00"],
)
def test_an_id_in_any_script_is_taken(letters: str) -> None:
    assert SessionKey.parse(f"agent:main:whatsapp:group:{letters}").peer == letters


@pytest.mark.clause("KEY-1")
def test_the_last_thread_is_the_suffix_and_ids_may_contain_colons() -> None:
    key = SessionKey.parse("agent:main:matrix:group:!a:hs.org:thread:x:thread:$b:hs.org")

    assert (key.channel, key.peer, key.thread) == ("matrix", "!a:hs.org:thread:x", "$b:hs.org")


@pytest.mark.clause("KEY-1")
def test_a_topic_has_a_number() -> None:
    topic = SessionKey.parse("agent:main:telegram:group:-100:Topic:7")
    other = SessionKey.parse("agent:main:telegram:group:-100:topic:seven")

    assert (topic.peer, topic.suffix, topic.thread) == ("-100", "topic", "7")
    assert str(topic) == "agent:main:telegram:group:-100:topic:7"
    assert (other.peer, other.thread) == ("-100:topic:seven", None)


@pytest.mark.clause("KEY-1")
def test_a_direct_chat_has_its_account_and_peer() -> None:
    key = SessionKey.parse("agent:main:Telegram:Bot:DIRECT:Alice:B:thread:Q")

    assert str(key) == "agent:main:telegram:bot:direct:Alice:B:thread:Q"
    assert (key.channel, key.account, key.peer, key.thread) == ("telegram", "bot", "Alice:B", "Q")
    assert key.chat_type == "direct"


@pytest.mark.clause("KEY-6")
def test_case_is_folded_in_structural_parts_only() -> None:
    text = " \t\r\nAGENT:Ops:WhatsApp:GROUP:AbC@G.us:THREAD:XyZ\n"

    assert str(SessionKey.parse(text)) == "agent:ops:whatsapp:group:AbC@G.us:thread:XyZ"
    assert str(SessionKey.parse(f"agent:ops:SUBAGENT:{UUID.upper()}")) == f"agent:ops:subagent:{UUID}"
    assert str(SessionKey.parse("agent:ops:Cron:Daily")) == "agent:ops:cron:daily"


@pytest.mark.clause("KEY-1")
@pytest.mark.parametrize(
    "text", ["agent:a:whatsapp:group:Ä", "agent:a:irc:channel:#日本", "agent:a:x:direct:+49"]
)
def test_an_id_may_have_letters_of_any_script(text: str) -> None:
    assert str(SessionKey.parse(text)) == text


@pytest.mark.clause("KEY-7")
def test_a_key_knows_what_it_is() -> None:
    main = SessionKey.main("ops")
    child = SessionKey.subagent("ops", UUID)

    assert (main.is_main, main.is_subagent, main.chat_type) == (True, False, None)
    assert (child.is_main, child.is_subagent) == (False, True)
    assert SessionKey.channel_room("ops", "discord", "1").chat_type == "channel"
    assert SessionKey.group("ops", "discord", "1").chat_type == "group"
    assert not SessionKey.parse("agent:ops:main:thread:1").is_main


# --- the main key


@pytest.mark.clause("KEY-2")
def test_main_and_the_main_key_are_one_session() -> None:
    by_word = SessionKey.parse("agent:ops:main", main_key="work")
    by_key = SessionKey.parse("agent:ops:Work", main_key="work")

    assert by_word == by_key == SessionKey.main("ops", "work")
    assert (str(by_key), by_key.is_main) == ("agent:ops:work", True)
    assert str(SessionKey.parse("agent:ops:main:thread:1", main_key="work")) == "agent:ops:work:thread:1"


@pytest.mark.clause("KEY-2")
def test_main_is_the_requesters_own_agents_main() -> None:
    assert key_meant("main", requester="ops", default="home") == "agent:ops:main"
    assert key_meant(" MAIN ", requester=None, default="home") == "agent:home:main"
    assert key_meant("main", requester="ops", main_key="work") == "agent:ops:work"
    assert key_meant("agent:ops:main", requester="home") == "agent:ops:main"


@pytest.mark.clause("KEY-2", "KEY-3")
def test_a_main_session_is_shown_as_main_to_its_own_agent_only() -> None:
    main = SessionKey.main("ops", "work")

    assert display(main, requester_agent="ops") == "main"
    assert display(main, requester_agent="home") == "agent:ops:work"
    assert display(main, requester_agent=None, default_agent="ops") == "main"
    assert display(SessionKey.parse("agent:ops:work"), requester_agent="ops", main_key="work") == "main"


@pytest.mark.clause("KEY-4")
def test_in_the_global_scope_every_main_is_the_one_session() -> None:
    for text in ("main", "agent:ops:main", "agent:home:Main", "agent:ops:work"):
        key = key_meant(text, requester="ops", default="home", main_key="work", scope="global")
        assert key == "agent:home:work"
    shown = display(SessionKey.main("home", "work"), requester_agent="ops", scope="global")
    assert shown == "main"
    assert key_meant("agent:ops:notes", default="home", scope="global") == "agent:ops:notes"


@pytest.mark.clause("KEY-4")
@pytest.mark.parametrize("scope", ["per-sender", "global"])
@pytest.mark.parametrize("text", ["global", " Unknown\n", "UNKNOWN", "gLobal"])
def test_a_reserved_word_can_be_looked_up_and_never_found(text: str, scope: Scope) -> None:
    assert isinstance(meant(text, scope=scope), LookupMiss)


@pytest.mark.clause("KEY-1")
@pytest.mark.parametrize(("text", "fits"), [("main", True), ("work", True), ("cron", False), ("Work", False)])
def test_a_main_key_is_a_word_that_means_nothing_else(text: str, fits: bool) -> None:
    assert valid_main_key(text) is fits


# --- short forms and ids


@pytest.mark.clause("KEY-3")
@pytest.mark.parametrize(
    "text",
    [
        "cron:daily",
        f"cron:daily:run:{UUID}",
        f"hook:{UUID}",
        "node-kitchen",
        "whatsapp:group:AbC",
        "discord:channel:1:thread:2",
    ],
)
def test_a_short_form_belongs_to_the_requesters_agent(text: str) -> None:
    assert key_meant(text, requester="ops", default="home") == f"agent:ops:{text}"
    assert key_meant(text, requester=None, default="home") == f"agent:home:{text}"


@pytest.mark.clause("KEY-3")
@pytest.mark.parametrize(
    "text", [f"subagent:{UUID}", "direct:alice", "telegram:direct:1", "acp:x", "cron:", ":"]
)
def test_other_parts_of_keys_are_no_keys(text: str) -> None:
    with pytest.raises(InvalidKey):
        meant(text)


@pytest.mark.clause("KEY-3")
def test_own_cron_hook_and_node_keys_are_shown_short_and_the_rest_whole() -> None:
    short = [SessionKey.cron("ops", "daily"), SessionKey.hook("ops", "x"), SessionKey.node("ops", "n")]
    whole = [SessionKey.group("ops", "whatsapp", "1"), SessionKey.named("ops", "notes")]

    assert [display(key, requester_agent="ops") for key in short] == ["cron:daily", "hook:x", "node-n"]
    assert [display(key, requester_agent="home") for key in short] == [str(key) for key in short]
    assert [display(key, requester_agent=None) for key in short] == [str(key) for key in short]
    assert [display(key, requester_agent="ops") for key in whole] == [str(key) for key in whole]


@pytest.mark.clause("KEY-5", "KEY-6")
@pytest.mark.parametrize(
    "text", [UUID, UUID.upper(), "old.session-1", "a" * 128, "subagent", "notes", "node-"]
)
def test_what_may_be_a_session_id_is_looked_up_as_typed(text: str) -> None:
    assert meant(f" {text}\n") == IdReference(text)


@pytest.mark.clause("KEY-6")
@pytest.mark.parametrize("text", ["__proto__", "-", "_" * 64])
def test_a_bare_word_that_is_no_id_is_a_look_up_that_misses(text: str) -> None:
    assert meant(text) == LookupMiss(text)


@pytest.mark.clause("KEY-6")
@pytest.mark.parametrize("text", ["_" * 65, "a" * 129, f"{{{UUID}}}", "a b", "é", ".x", "a/b", "", "\x00"])
def test_anything_else_is_no_key(text: str) -> None:
    with pytest.raises(InvalidKey):
        meant(text)


# --- constructors

slugs = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)
peers = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=30) | st.sampled_from(
    ["group:a", "a:thread:b", "a:topic:7", "agent", "x:agent:y", "thread:a", "a ", " a", "a:", ":a", ""]
)
makers: st.SearchStrategy[tuple[Callable[..., SessionKey], tuple[Any, ...], tuple[str, ...]]] = st.one_of(
    st.tuples(
        st.sampled_from([SessionKey.group, SessionKey.channel_room]),
        st.tuples(slugs, slugs, peers, st.none() | peers),
        st.just(("agent_id", "channel", "peer", "thread")),
    ),
    st.tuples(
        st.just(SessionKey.direct),
        st.tuples(slugs, st.none() | slugs, st.none() | slugs, peers, st.none() | peers),
        st.just(("agent_id", "channel", "account", "peer", "thread")),
    ),
)


@given(makers)
@pytest.mark.clause("KEY-8", "X3")
def test_what_is_made_of_parts_reads_back_as_those_parts(
    made: tuple[Callable[..., SessionKey], tuple[Any, ...], tuple[str, ...]],
) -> None:
    make, parts, names = made
    try:
        key = make(*parts)
    except InvalidKey:
        return
    assert SessionKey.parse(str(key)) == key
    assert tuple(getattr(key, name) for name in names) == parts


@given(st.text(string.printable, max_size=40), st.sampled_from(["named", "hook", "node", "subagent", "cron"]))
@pytest.mark.clause("KEY-8")
def test_a_part_is_never_read_as_another(text: str, family: str) -> None:
    try:
        key: SessionKey = getattr(SessionKey, family)("ops", text)
    except InvalidKey:
        return
    assert (key.family, SessionKey.parse(str(key))) == (family, key)
    assert key.rest.endswith(text.lower())


@pytest.mark.clause("KEY-8")
@pytest.mark.parametrize(
    "make",
    [
        lambda: SessionKey.named("ops", "main"),
        lambda: SessionKey.named("ops", "node-x"),
        lambda: SessionKey.named("ops", "notes "),
        lambda: SessionKey.cron("ops", "a:run:b"),
        lambda: SessionKey.direct("ops", None, "bot", "alice"),
        lambda: SessionKey.direct("ops", "telegram", "group", "alice"),
        lambda: SessionKey.group("ops", "telegram", "a:topic:7"),
        lambda: SessionKey.group("ops", "telegram", "a", "b:thread:c"),
        lambda: SessionKey.group("ops", "", "a"),
        lambda: SessionKey.main("ops", "group"),
        lambda: SessionKey.main("Ops:x"),
        lambda: SessionKey.subagent("ops", "one"),
    ],
)
def test_parts_that_would_be_read_otherwise_are_refused(make: Callable[[], SessionKey]) -> None:
    with pytest.raises(InvalidKey):
        make()


@pytest.mark.clause("KEY-8")
def test_constructors_write_the_canonical_form() -> None:
    assert str(SessionKey.cron("Ops", "Daily", "R1")) == "agent:ops:cron:daily:run:r1"
    assert str(SessionKey.acp("ops", UUID)) == f"agent:ops:acp:{UUID}"
    assert str(SessionKey.direct("ops", None, None, "Alice")) == "agent:ops:direct:Alice"
    assert str(SessionKey.group("ops", "Telegram", "AbC", "T1")) == "agent:ops:telegram:group:AbC:thread:T1"


@given(
    st.sampled_from(
        ["agent:ops:main", "agent:ops:cron:x", "agent:ops:node-x", "agent:ops:a:group:B", "agent:b:hook:c"]
    )
)
@pytest.mark.clause("KEY-2", "KEY-3")
def test_what_is_shown_can_be_typed_back(text: str) -> None:
    key = SessionKey.parse(text)
    assert meant(display(key, requester_agent="ops"), requester="ops") == KeyReference(key)


# --- agents


@pytest.mark.clause("KEY-1")
def test_an_agent_id_is_a_slug() -> None:
    assert SessionKey.parse("AGENT:Ops:x:group:Y").agent_id == "ops"
    assert parse_agent_id(" Ops\n") == "ops"
    assert valid_agent_id("a" * 64)
    for text in ("", "A", "a b", "Worker\u212a", "a" * 65, "-a", "a\n"):
        assert not valid_agent_id(text)
    for text in ("", "a b", "Worker\u212a", "a:b", "a" * 1000):
        with pytest.raises(InvalidKey):
            parse_agent_id(text)
