"""The runs whose agents had a text in their input, which is rebuilt like in `lens`. For the verb `origin`."""

import heapq
from collections.abc import Iterable, Iterator

from intersession_actors.hindsight.debugger.origin import SeenAnswer
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.owners.session.folding import past_context
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.basics.ids import session_stream
from intersession_events.facts import Message, RunStarted, ToolCallBlock, text_of
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.questions.origins.origins import Origin


def runs_given(view: View, found: Origin, span: Span) -> Iterator[SeenAnswer]:
    """Yield the runs whose agents had the text in their input, newest first: each input is rebuilt like in `lens`."""
    if found.first is None or found.words is None:
        return
    since: dict[str, int] = {}
    for hop in (found.first, *found.hops):
        since[hop.session_key] = min(hop.position, since.get(hop.session_key, hop.position))
    begun = heapq.merge(
        *(
            backwards(view.log, span._replace(after=position), session_stream(key))
            for key, position in since.items()
        ),
        key=lambda recorded: -recorded.position,
    )
    wanted, known = _folded(found.words), set[str]()
    for recorded in begun:
        event = recorded.event
        if not isinstance(event, RunStarted) or event.run_id in known:
            continue
        known.add(event.run_id)
        key = recorded.stream.partition(":")[2]
        within = _within(view, key, past_context(view.log, key, event.run_id, recorded.version - 1), wanted)
        if within:
            yield {
                "position": recorded.position,
                "timeMs": recorded.time,
                "sessionKey": key,
                "runId": event.run_id,
                "attempt": event.attempt,
                "within": within,
            }


def _within(view: View, key: str, context: RunContext | None, wanted: str) -> list[str]:
    """Return the parts of an agent's input that contain the words, as the caller reads them."""
    if context is None:
        return []
    parts: dict[str, Iterable[str]] = {
        "transcript": map(_said, context.transcript),
        "message": (_said(context.message),),
        "partial": map(_said, context.partial),
        "systemContext": (context.system_context,),
    }
    return [
        name
        for name, texts in parts.items()
        if any(wanted in _folded(view.shown(text, key) or "") for text in texts)
    ]


def _said(message: Message) -> str:
    called = () if isinstance(message.content, str) else message.content
    given = (block.arguments for block in called if isinstance(block, ToolCallBlock))
    return "\n".join((text_of(message), *given))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
