"""Files that come with a message or an answer: their form, the limits on them, and what they are by their bytes (FILE-2)."""

import hashlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final, NamedTuple, cast

import msgspec

from intersession_actors.outside.attachments.checks import decoded, name_problem
from intersession_actors.rules.config.host import Files
from intersession_actors.rules.errors import RefusalCode, ToolRefused
from intersession_actors.rules.gate.limits import IDENTITY
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.machine import read_at_most
from intersession_events.basics.plain_json import is_list_like
from intersession_events.facts import FileBlock, ready

TEXT: Final = "text/plain"
_UNKNOWN: Final = "application/octet-stream"
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS: Final = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_NO_TEXT: Final = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")
_ENDINGS: Final = {"image/jpeg": "jpg", "text/plain": "txt", "audio/mpeg": "mp3", _UNKNOWN: "bin"}


@ready
class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file for a message or an answer (FILE-1): its content as `data`, or the file at `path`.

    `name` is the name for readers, by default that of `path`; `mime_type` is what its sender says that it is.
    """

    data: bytes | None = None
    path: Path | None = None
    name: str | None = None
    mime_type: str | None = None


class MessageFile(NamedTuple):
    """A checked file: the block for its message, and its content."""

    block: FileBlock
    content: bytes


class AttachmentParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A file of a method's message, as in the original: `content` is base64, also behind `data:TYPE;base64,`."""

    content: str
    file_name: str | None = None
    mime_type: Annotated[str, msgspec.Meta(max_length=IDENTITY.most)] | None = None
    type: Annotated[str, msgspec.Meta(max_length=IDENTITY.most)] | None = None


def check_files(given: object, rules: Files) -> tuple[MessageFile, ...]:
    """Return the files that a host gives with a message or an answer.

    Raises:
        ToolRefused: one can't be taken, or they are too many or too large.
    """
    if given is None:
        return ()
    if not is_list_like(given) or isinstance(given, str | bytes):
        raise invalid("files", f"{type(given).__name__}, give a list of File")
    files = cast("Sequence[object]", given)
    _check_count(len(files), rules, "files")
    return _within((_content_of(index, file, rules) for index, file in enumerate(files)), rules, "files")


def check_method_files(given: Sequence[AttachmentParams], rules: Files) -> tuple[MessageFile, ...]:
    """Return the files of a method's message.

    Raises:
        ToolRefused: one can't be taken, or they are too many or too large.
    """
    _check_count(len(given), rules, "attachments")
    return _within(
        (_decoded(index, one, rules) for index, one in enumerate(given)),
        rules,
        "attachments",
    )


class _Content(NamedTuple):
    content: bytes
    name: str | None
    claimed: str | None


def _check_count(count: int, rules: Files, field: str) -> None:
    if count and not rules.enabled:
        raise ToolRefused("forbidden", f"{field}: files are off, files.enabled turns them on")
    if count > rules.max_files:
        raise ToolRefused(
            "file_count_exceeded", f"{field}: {count} files, give at most {rules.max_files} (files.maxFiles)"
        )


def _within(contents: Iterable[_Content], rules: Files, field: str) -> tuple[MessageFile, ...]:
    files: list[MessageFile] = []
    total = 0
    for index, one in enumerate(contents):
        total += len(one.content)
        if total > rules.max_total_bytes:
            raise ToolRefused(
                "total_bytes_exceeded",
                f"{field}: {total} bytes in all up to {field}[{index}], give at most {rules.max_total_bytes} "
                "(files.maxTotalBytes)",
            )
        files.append(_checked(index, one, rules, field))
    return tuple(files)


def _checked(index: int, one: _Content, rules: Files, field: str) -> MessageFile:
    if not one.content:
        raise _refused("invalid_request", field, index, "it is empty, leave it out")
    kind = kind_of(one.content)
    if not any(fnmatchcase(kind, pattern.lower()) for pattern in rules.types):
        raise _refused(
            "not_supported",
            field,
            index,
            f"it is {kind}, and taken are {', '.join(rules.types)} (files.types)",
        )
    name = one.name or f"file-{index + 1}.{_ENDINGS.get(kind, kind.partition('/')[2])}"
    problem = name_problem(name)
    if problem is not None:
        raise _refused("invalid_name", field, index, f"its name: {problem}, give one plain file name")
    claimed = None if one.claimed is None else one.claimed.partition(";")[0].strip().lower()
    if claimed is not None and (len(claimed) > IDENTITY.most or not claimed.isprintable()):
        raise _refused(
            "invalid_request", field, index, "its type is invalid, give one such as image/png, or none"
        )
    block = FileBlock(
        sha256=hashlib.sha256(one.content).hexdigest(),
        size=len(one.content),
        name=name,
        mime_type=kind,
        claimed=claimed if claimed and claimed != kind else None,
    )
    return MessageFile(block, one.content)


def _content_of(index: int, given: object, rules: Files) -> _Content:
    if not isinstance(given, File):
        raise _refused("invalid_request", "files", index, f"{type(given).__name__}, give a File")
    data, path = cast("object", given.data), given.path
    for field, value in (("name", given.name), ("mime_type", given.mime_type)):
        if value is not None and not isinstance(cast("object", value), str):
            raise _refused("invalid_request", "files", index, f"its {field} is no text, give one or none")
    if (data is None) == (path is None):
        raise _refused("invalid_request", "files", index, "give one of data and path")
    if path is None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _refused("invalid_request", "files", index, f"data is {type(data).__name__}, give bytes")
        whole = bytes(cast("bytes | bytearray | memoryview", data))
        _check_size(len(whole), rules, "files", index)
        return _Content(whole, given.name, given.mime_type)
    try:
        size = Path(path).stat().st_size
        _check_size(size, rules, "files", index)
        content = read_at_most(Path(path), rules.max_file_bytes)
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise _refused("invalid_request", "files", index, f"{path} can't be read ({why})") from None
    return _Content(content, given.name or Path(path).name, given.mime_type)


def _decoded(index: int, given: AttachmentParams, rules: Files) -> _Content:
    claimed, text = given.mime_type, given.content
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise _refused(
                "invalid_base64", "attachments", index, "content: a data URL without ;base64, encode it so"
            )
        claimed = claimed or head.removeprefix("data:").removesuffix(";base64")
    # No more is decoded than may be taken: base64 is a third longer than what it stands for.
    _check_size(len(text) // 4 * 3 - 2, rules, "attachments", index)
    content = decoded(text, "base64")
    if content is None:
        raise _refused(
            "invalid_base64",
            "attachments",
            index,
            "content: not strict base64 (RFC 4648, padded, nothing else in it), encode it again",
        )
    _check_size(len(content), rules, "attachments", index)
    return _Content(content, given.file_name, claimed)


def _check_size(size: int, rules: Files, field: str, index: int) -> None:
    if size > rules.max_file_bytes:
        raise _refused(
            "file_bytes_exceeded",
            field,
            index,
            f"{size} bytes, give at most {rules.max_file_bytes} (files.maxFileBytes)",
        )


def _refused(code: RefusalCode, field: str, index: int, what: str) -> ToolRefused:
    return ToolRefused(code, f"{field}[{index}]: {what}")


def kind_of(content: bytes) -> str:
    """Return the MIME type that the bytes of a file show: any text is `text/plain`."""
    for beginning, kind in _BEGINNINGS:
        if content.startswith(beginning):
            return kind
    if content[:4] == b"RIFF":
        return _RIFF.get(content[8:12], _UNKNOWN)
    if content[4:8] == b"ftyp":
        return _BRANDS.get(content[8:12], "video/mp4")
    if not _NO_TEXT.isdisjoint(content):
        return _UNKNOWN
    try:
        content.decode()
    except UnicodeDecodeError:
        return _UNKNOWN
    return TEXT
