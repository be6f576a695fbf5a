"""A file of a message: a picture that a browser shows, or a file that it saves (FILE-8)."""

from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from litestar import Response

from intersession.web.files import SAFE
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.outside.attachments.message_files import TEXT, kind_of
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import KeyText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import FileBlock, files_in, ready

_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What browsers draw, and run nothing of; an SVG can hold scripts, and is saved."""

_PAGE: Final = 256


@ready
class Attachment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query for a file of a message."""

    session: Annotated[KeyText, msgspec.Meta(description="The session whose message names it.")]
    file: Annotated[
        str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="Its SHA-256, as the message has it.")
    ]


def attachment(view: View, given: Attachment) -> JsonObject:
    """Return a file of a message: `{name, body}`. A limited caller gets a text without secrets, as its transcript is.

    Raises:
        ToolRefused: the session is unknown or not within reach (`not_visible`), no message of it names the file, or its
            content is gone (`invalid_request`), or is not as it was written (`unreadable`).
    """
    key = view.session(given.session, field="session")
    found = next((file for file in _newest_first(view, key) if file.sha256 == given.file), None)
    if found is None:
        raise invalid(
            "file", f"no message of {key} names {given.file[:16]}…, give a sha256 as messages have it"
        )
    try:
        body = view.log.files.read(found.sha256)
    except CorruptEvent as error:
        raise ToolRefused("unreadable", f"file: {found.name} is not as it was written: {error}") from None
    if body is None:
        raise invalid("file", f"the content of {found.name} is not there any more")
    if view.is_operator:
        return {"name": found.name, "body": body}
    if kind_of(body) == TEXT:
        body = redact_text(body.decode())[0].encode()
    return {"name": redact_text(found.name)[0], "body": body}


def attachment_response(found: JsonObject) -> Response[object]:
    """Return a file as a response: a picture by the type that its bytes show, all else to be saved and never shown.

    Nothing of it stays in the browser's cache, since an erasure could not reach it there.
    """
    kind = kind_of(found["body"])
    how, media = ("inline", kind) if kind in _PICTURES else ("attachment", "application/octet-stream")
    headers = {
        **dict(SAFE),
        "cache-control": "private, no-store",
        "content-disposition": f"{how}; filename*=UTF-8''{quote(found['name'], safe='')}",
    }
    return Response(found["body"], media_type=media, headers=headers)


def _newest_first(view: View, key: str) -> Iterator[FileBlock]:
    """Yield the files that messages of a session name, of earlier generations too: pages show those as well."""
    to: int | None = None
    while page := view.log.stream(session_stream(key), to=to, backwards=True, limit=_PAGE):
        for recorded in page:
            yield from files_in(recorded.event)
        to = page[-1].version - 1
        if not to:
            return
