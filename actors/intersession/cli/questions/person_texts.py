"""`intersession told`: all texts for one person, with who said each, for whom, and whether it arrived."""

from collections.abc import Sequence
from typing import Final, cast

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import moment
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.standing import delivery_in_words
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.messages import person_value
from intersession_actors.hindsight.debugger.lists.paging import Listed
from intersession_actors.hindsight.debugger.lists.person_texts import (
    PersonText,
    PersonTexts,
    PersonTextsAnswer,
    person_of,
    person_text_values,
    person_texts_found,
    whom,
)
from intersession_actors.hindsight.debugger.verbs.verbs import TOLD
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.message_words import person
from intersession_events.stores.opened import has_writer
from intersession_projections.questions.people import Chat, Person

_INDENT: Final = 4
_AT_MOST: Final = 8
_ASKED: Final = {"person": "a person", "operator": "the operator", "system": "the system"}
_HISTORY: Final = "stands in the history of the session alone: no channel was given it"
_IMPORTED: Final = "some of their words were imported, which does not say what went outside"


@asks(TOLD, person="PERSON")
def told(asked: VerbCall[PersonTextsAnswer], *, page: Page = PAGE) -> Answer:
    """List what a person was told: by whom, for whom, if it arrived.

    Newest first: every text for a chat in which only they write, for groups that they wrote in, and for their own address. PERSON is an id or a name on
    the channel, or both as they are shown (`telegram:ada`). NOT TOLD marks what did not reach its chat. Words that were put into the
    history of their session (`chat.inject`) are among them.
    """
    with asked.view() as view:
        given = read_arguments(PersonTexts, asked.given | page.given)
        at_work = has_writer(view.log)
        found = person_of(view, given.person)
        rows, cursor = person_texts_found(view, given, found, page.most)
        values = person_text_values(view, rows)
        names = names_of(view.log, [values, [row.session_key for row in rows]])
    pairs = list(zip(rows, values, strict=True))
    answer = page.answer(
        Listed(pairs, cursor),
        "texts",
        lambda pair: pair[1],
        lambda screen, shown: _show(screen, found, shown, names, at_work=at_work),
        what="text",
        hint=_IMPORTED if found.imported else "",
        if_none=_IMPORTED if found.imported else "",
    )
    return Answer({**cast("JsonObject", answer.value), **whom(found)}, answer.show)


def _show(
    screen: Screen,
    found: Person,
    pairs: Sequence[tuple[PersonText, JsonObject]],
    names: Names,
    *,
    at_work: bool,
) -> None:
    for text in (_people(found), _chats(found)):
        screen.dim(text)
    for row, value in pairs:
        missed = "" if value["reached"] is not False else "NOT TOLD  "
        screen.line(
            safe(
                f"#{row.position}  {moment(value['time'])}  " if "time" in value else f"#{row.position}  ",
                "dim",
            ),
            safe(missed, "red"),
            safe(f"{names.of(row.session_key)} → {row.chat.route.text}", "bold"),
            safe(f"  {_outcome(row, value, at_work=at_work)}", "dim"),
        )
        screen.indented(value.get("text", ""), _INDENT)
        for said in _around(value, names):
            screen.indented(safe(said, "dim"), _INDENT)


def _people(found: Person) -> str:
    who = [_person(person_value(one)) for one in found.people]
    return f"{_some(who)}" if who else "nobody of this name wrote: these are texts for the address"


def _chats(found: Person) -> str:
    return f"chats: {_some([_chat(chat) for chat in found.chats])}" if found.chats else "no chat is known"


def _chat(chat: Chat) -> str:
    kind = f" ({chat.kind})" if chat.kind in {"group", "channel"} else ""
    return (
        f"{chat.route.text}{kind}" if chat.first is None else f"{chat.route.text}{kind} since #{chat.first}"
    )


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _AT_MOST} more" if len(texts) > _AT_MOST else ""
    return f"{', '.join(texts[:_AT_MOST])}{more}"


def _outcome(row: PersonText, value: JsonObject, *, at_work: bool) -> str:
    if row.delivery is None:
        return f"put there by {value['by']}, {_HISTORY}"
    told = delivery_in_words(row.delivery, row.note, at_work=at_work)
    sent = f"; the first {value['sentChars']} characters arrived" if "sentChars" in value else ""
    early = "; before their first words in this chat" if "beforeFirstWords" in value else ""
    shown = "; shown while it was said" if "shownEarlier" in value else ""
    return f"{told}{sent}{shown}{early}"


def _around(value: JsonObject, names: Names) -> list[str]:
    """Return in words for whom a text was, what it answers, and what it all began with."""
    around = [
        f"file: {file['name']} ({file['mimeType']}, {file['size']} bytes)" for file in value.get("files", ())
    ]
    if "by" in value and value["state"] != "history":
        around.append(f"as {value['by']} asked")
    asker = None if "person" not in value else _person(value["person"])
    led = [
        (how, value[name]) for how, name in (("answers", "answers"), ("because of", "why")) if name in value
    ]
    if asker is not None and all(said["from"] != "person" for _, said in led):
        around.append(f"for {asker}")
    if len(led) > 1 and led[0][1]["from"] == "system":  # it asked for the announce, as always
        led = led[1:]
    for how, said in led:
        who = asker if said["from"] == "person" else None
        who = who or _ASKED.get(said["from"]) or names.of(said["from"])
        around.append(f"{how} #{said['position']}, {who} to {names.of(said['to'])}: {said.get('text', '')}")
    return around


def _person(value: JsonObject) -> str:
    return f"{person(value.get('id'), value.get('name'))} on {value.get('channel', 'an unknown channel')}"
