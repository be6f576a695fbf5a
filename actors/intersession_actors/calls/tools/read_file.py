"""`read_file`: a text file of a message of the caller's own session, by pages of lines (FILE-5)."""

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.arguments import bounded, read_arguments
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.attachments.message_files import TEXT
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import Identity
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import session_stream
from intersession_events.facts import FileBlock, files_in, generation_of, ready

DEFAULT_LIMIT: Final = 200
MAX_LIMIT: Final = 2000
MAX_CHARACTERS: Final = 50_000
_PAGE: Final = 256
_FEWEST_DIGITS: Final = 8


@ready
class ReadFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments."""

    file: Annotated[
        Identity, msgspec.Meta(description="The file's name, of several the newest, or its sha256.")
    ]
    offset: Annotated[
        float | None, msgspec.Meta(description="The first line to read, counted from 1; 1 if not given.")
    ] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many lines, 1 to 2000; 200 if not given.")
    ] = None


def read_text_file(service: Service, call: Call, arguments: Result) -> Result:
    """Return lines of a text file.

    Raises:
        ToolRefused: there is no such file in the session, it is no text, or its content is gone.
    """
    given = read_arguments(ReadFile, arguments)
    key = call.requester.key
    if key is None:
        raise ToolRefused("not_supported", "only a session has files, call it as one")
    call.summary = AccessSummary(keys=(str(key),))
    found = _found(service, str(key), given.file)
    if found is None:
        raise invalid(
            "file", f"no message of this session has a file {given.file!r}, give a name as messages have it"
        )
    if found.mime_type != TEXT:
        raise ToolRefused(
            "not_supported", f"file: {found.name} is {found.mime_type}, and only text can be read"
        )
    content = service.log.files.read(found.sha256)
    if content is None:
        raise ToolRefused("unreadable", f"file: the content of {found.name} is not there any more")
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    first = bounded(given.offset, "offset", 1, max(len(lines), 1), default=1)
    limit = bounded(given.limit, "limit", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
    text, taken = _page(lines[first.value - 1 :], limit.value)
    answer: Result = {
        "file": {"name": found.name, "sha256": found.sha256, "size": found.size, "mimeType": found.mime_type},
        "text": text,
        "offset": first.value,
        "lines": taken,
        "totalLines": len(lines),
    }
    if first.value - 1 + taken < len(lines):
        answer["nextOffset"] = first.value + taken
    return answer | first.told | limit.told


def _page(lines: list[str], limit: int) -> tuple[str, int]:
    """Return the first lines, as one text, and how many they are. Of a line that is too long by itself only its beginning."""
    text, taken = "", 0
    for line in lines[:limit]:
        if taken and len(text) + len(line) > MAX_CHARACTERS:
            break
        cut = len(line) - MAX_CHARACTERS
        text += line if cut <= 0 else f"{line[:MAX_CHARACTERS]}\n… [{cut} characters of this line cut]\n"
        taken += 1
    return text, taken


def _found(service: Service, key: str, wanted: str) -> FileBlock | None:
    """Return the newest file of the session's present transcript that has a name, or a SHA-256 that begins so."""
    digits = wanted.lower() if len(wanted) >= _FEWEST_DIGITS else None
    for file in _newest_first(service, key):
        if file.name == wanted or (digits is not None and file.sha256.startswith(digits)):
            return file
    return None


def _newest_first(service: Service, key: str) -> Iterator[FileBlock]:
    row = service.sessions.get(key)
    to: int | None = None
    while page := service.log.stream(session_stream(key), to=to, backwards=True, limit=_PAGE):
        for recorded in page:
            if row is None or generation_of(recorded.event) in {None, row.session_id}:
                yield from files_in(recorded.event)
            elif generation_of(recorded.event) is not None:
                return
        to = page[-1].version - 1
        if not to:
            return
