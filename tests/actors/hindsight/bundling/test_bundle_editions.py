"""What redacted editions of a bundle withhold, row by row, and what stays proven."""

import json
from functools import cache
from hashlib import sha256
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.hindsight.bundling.editions import Edition
from intersession_actors.hindsight.bundling.pseudonyms import Pseudonyms
from intersession_events import facts
from intersession_events.copies.bundles.edition import Edited
from intersession_events.facts import TOPICS, Event, encode, unsaid
from intersession_events.log.envelope import FIRST, seal
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import Envelope, opened
from intersession_events.log.sql import Row

LOG_ID = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwx1234567890"
CANARY = "Canary"


def row_of(event: Event, *, stream: str = "session:agent:main:main", version: int = 1) -> Row:
    """Return an event as it is stored."""
    draft = Draft(event=event, id=f"0f000000-0000-5000-8000-{version:012d}", time=1_000_000_000_000)
    state, _ = seal(
        draft,
        event.topic,
        encode(event),
        log_id=LOG_ID,
        stream=stream,
        version=version,
        epoch=1,
        prev=FIRST,
        salt=b"s" * 16,
    )
    return version, stream, version, event.topic, state


def envelope_of(edited: Edited | Row) -> Envelope:
    """Return the envelope of a row."""
    row = edited.row if isinstance(edited, Edited) else edited
    return opened(row[4], where="a row")


def said(text: str, **fields: Any) -> facts.MessageRecorded:
    """Return a person's message."""
    origin = facts.Provenance(kind="external_user", source_channel="telegram", **fields)
    message = facts.Message(id="m", role="user", content=text, timestamp=1, provenance=origin)
    return facts.MessageRecorded(session_id="s", message=message)


@pytest.mark.clause("BUNDLE-20")
def test_secrets_are_masked_in_the_rows_that_have_one_and_no_other_row_changes() -> None:
    edition = Edition("secrets")
    plain, secret = row_of(said("good morning")), row_of(said(f"my key is {SECRET}"))

    assert edition.edited(plain) == Edited(plain)
    edited = edition.edited(secret)

    now, before = envelope_of(edited), envelope_of(secret)
    assert edited.withheld == "secrets"
    assert (now.salt, now.digest, now.hash) == ("", before.digest, before.hash)
    assert SECRET.encode() not in edited.row[4]
    assert b"my key is" in bytes(now.data)


@pytest.mark.clause("BUNDLE-20")
def test_a_secret_in_a_label_is_masked_too() -> None:
    row = row_of(facts.SessionPatched(values={"label": f"token {SECRET}"}))

    edited = Edition("secrets").edited(row)

    assert edited.withheld == "secrets"
    assert SECRET.encode() not in edited.row[4]


@pytest.mark.clause("BUNDLE-21")
def test_without_words_a_row_is_what_an_erasure_leaves() -> None:
    row = row_of(said("my number is 555", sender="ann", sender_name="Ann"))

    edited = Edition("words").edited(row)

    left = envelope_of(edited)
    assert edited.withheld == "words"
    assert bytes(left.data) == encode(unsaid(said("my number is 555", sender="ann", sender_name="Ann")))
    assert (left.salt, left.digest, left.hash) == ("", envelope_of(row).digest, envelope_of(row).hash)
    opening = row_of(
        facts.SessionOpened(key="agent:main:main", session_id="s", agent_id="main", opened_by="person")
    )
    assert Edition("words").edited(opening) == Edited(opening)


@pytest.mark.clause("BUNDLE-21")
def test_names_of_a_childs_files_are_words_too() -> None:
    files = facts.Attachments(
        root="/w", directory="d", files=(facts.AttachedFile(name=f"{CANARY}.txt", bytes=9, sha256="f" * 64),)
    )
    accepted = facts.SpawnAccepted(
        run_id="r", message_id="m", caller="c", requester="agent:main:main", requester_session_id="s",
        requester_channel=None, route=None, spawn_id="x", child="agent:main:subagent:x", child_session_id="s",
        agent_id="main", attachments=files,
    )  # fmt: skip

    edited = Edition("words").edited(row_of(accepted, stream="spawn:x"))

    assert (
        edited.withheld == "secrets"
    )  # more is withheld than an erasure would, so its issuer alone says what is left
    assert CANARY.encode() not in edited.row[4]
    assert b"f" * 64 not in edited.row[4]


@pytest.mark.clause("BUNDLE-22")
def test_of_a_row_with_pseudonyms_only_the_hash_is_as_it_was() -> None:
    rows = [row_of(said("hi", sender="ann", sender_name="Ann Smith"), version=1)]
    edition = Edition("people")
    for row in rows:
        edition.note(row)

    edited = edition.edited(rows[0])

    now, before = envelope_of(edited), envelope_of(rows[0])
    assert edited.withheld == "person"
    # A name could be guessed by an id or a digest that is made of it.
    assert (now.hash, now.digest, now.salt, now.decision) == (before.hash, "", "", "")
    assert now.id != before.id
    assert json.loads(bytes(now.data))["message"]["provenance"]["sender"] == "person-1"


def names_in(values: list[tuple[str, str | None]]) -> list[str]:
    rows = [
        row_of(said("x", sender=sender, sender_name=name), version=n)
        for n, (sender, name) in enumerate(values, 1)
    ]
    edition = Edition("people")
    for row in rows:
        edition.note(row)
    found = [json.loads(bytes(envelope_of(edition.edited(row)).data)) for row in rows]
    return [one["message"]["provenance"]["sender"] for one in found]


@pytest.mark.clause("BUNDLE-22")
@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "4915", "Ann", "x:y"]), st.none() | st.just("A Name")))
)
def test_one_person_has_one_pseudonym_and_two_have_two(values: list[tuple[str, str | None]]) -> None:
    found = names_in(values)

    by_person: dict[str, set[str]] = {}
    for (sender, _), pseudonym in zip(values, found, strict=True):
        by_person.setdefault(sender.casefold(), set()).add(pseudonym)
    assert all(len(pseudonyms) == 1 for pseudonyms in by_person.values())
    assert len(set(found)) == len(by_person)
    assert sorted(set(found)) == sorted(f"person-{n}" for n in range(1, len(by_person) + 1))


@pytest.mark.clause("BUNDLE-22")
def test_a_person_is_the_same_by_their_id_and_their_number_in_a_direct_chat() -> None:
    key = "agent:main:telegram:direct:4915551234"
    stream = f"session:{key}"
    route = facts.Route(channel="telegram", to="4915551234")
    message = said("hi", sender="ann").message
    opening = facts.SessionOpened(
        key=key, session_id="s", agent_id="main", opened_by="person", chat_type="direct", channel="telegram"
    )
    queued = facts.RunQueued(run_id="r", session_id="s", step="message", message=message, route=route)
    names = Pseudonyms()
    for event in (opening, queued):
        names.note(stream, event)

    assert names.stream(stream) == "session:agent:main:telegram:direct:person-1"
    renamed = names.event(queued)

    assert isinstance(renamed, facts.RunQueued)
    assert renamed.route == facts.Route(channel="telegram", to="person-1")
    shown = {
        "verb": "told",
        "person": "telegram:4915551234",
        "who": "Ann Smith (ann)",
        "words": "what she said",
    }
    assert names.value(shown) == {
        "verb": "told",
        "person": "telegram:person-1",
        "who": "person-1",
        "words": "[withheld]",
    }


@pytest.mark.clause("BUNDLE-22")
def test_two_sessions_of_one_person_stay_two() -> None:
    names = Pseudonyms()
    for peer in ("ann", "42"):
        stream = f"session:agent:main:telegram:direct:{peer}"
        route = facts.Route(channel="telegram", to="42")
        opening = facts.SessionOpened(
            key=stream.removeprefix("session:"),
            session_id="s",
            agent_id="main",
            opened_by="person",
            chat_type="direct",
        )
        queued = facts.RunQueued(
            run_id="r", session_id="s", step="message", message=said("x", sender="ann").message, route=route
        )
        names.note(stream, opening)
        names.note(stream, queued)

    assert (
        names.stream("session:agent:main:telegram:direct:ann")
        == "session:agent:main:telegram:direct:person-1"
    )
    assert names.stream("agent:main:telegram:direct:42") == "agent:main:telegram:direct:person-1-2"
    assert (
        names.stream("access:agent:main:telegram:direct:42") == "access:agent:main:telegram:direct:person-1-2"
    )


@cache
def canaries_of(hint: object, field: str = "") -> Any:
    """Return a value of a type in which each text that could name somebody is a canary."""
    origin, args = get_origin(hint), get_args(hint)
    if field == "then":
        return None  # each part that can follow is a kind of event as well
    if origin is Literal:
        return args[0]
    if hint is str:
        return f"{CANARY} {field}"
    if hint is int or hint is bool:
        return hint is bool or 1
    if hint is type(None):
        return None
    if origin is tuple:
        parts = args[:1] if args[-1] is Ellipsis else args
        return tuple(canaries_of(part, field) for part in parts)
    if origin is dict:
        return {"label": f"{CANARY} {field}"}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint)
        return hint(
            **{one.name: canaries_of(hints[one.name], one.name) for one in msgspec.structs.fields(hint)}
        )
    structs = [part for part in args if part not in {str, type(None)}]
    return canaries_of((structs or args)[0], field)


@pytest.mark.clause("BUNDLE-22")
@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_no_text_of_any_kind_of_event_is_in_the_edition_without_people(topic: str) -> None:
    event = canaries_of(TOPICS[topic])
    row = row_of(event, stream=f"session:agent:main:{CANARY}:x")
    assert CANARY.encode() in row[4] or CANARY in row[1]
    edition = Edition("people")
    edition.note(row)

    edited = edition.edited(row)

    assert CANARY.encode() not in edited.row[4]
    assert CANARY not in edited.row[1]
    assert facts.decode(topic, bytes(envelope_of(edited).data)).topic == topic


@pytest.mark.clause("BUNDLE-21")
@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_no_words_of_any_kind_of_event_are_in_the_edition_without_words(topic: str) -> None:
    event = canaries_of(TOPICS[topic])
    words = {text for text in facts.words(event) if CANARY in text} | {f"{CANARY} sender_name"}

    left = bytes(envelope_of(Edition("words").edited(row_of(event))).data).decode()

    assert [text for text in words if f'{text}"' in left] == []


@pytest.mark.clause("BUNDLE-20")
def test_an_event_of_a_later_version_is_withheld_for_nobody_knows_what_it_says() -> None:
    position, stream, version, _, state = row_of(said(CANARY))

    for redacted in get_args(facts.WithheldKind):
        edited = Edition(redacted).edited((position, stream, version, "message_recorded.9", state))

        assert CANARY.encode() not in edited.row[4]
        assert envelope_of(edited).digest == sha256(b"s" * 16 + encode(said(CANARY))).hexdigest()
