"""Checks all files of a spawn together, before anything is written (ATT-1, ATT-2). Pure."""

import base64
import binascii
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.rules.config.tools import AttachmentRules
from intersession_actors.rules.errors import RefusalCode, ToolRefused
from intersession_actors.rules.gate.limits import FILE_NAME, MOUNT
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list_like, is_object
from intersession_events.facts import AttachedFile, Attachments, Block, ToolCallBlock

ROOT_NAMES: Final = (".openclaw", "attachments")
"""Where the directories of attachments are, from a workspace on."""

TOOL: Final = "sessions_spawn"
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MIME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,126}/[A-Za-z0-9][A-Za-z0-9.+_-]{0,126}", re.ASCII)
_MOUNT: Final = re.compile(rf"[A-Za-z0-9._/:-]{{1,{MOUNT.most}}}", re.ASCII)


class AttachmentArgument(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A file as a caller gives it."""

    name: str
    content: str
    encoding: Literal["utf8", "base64"] = "utf8"
    mime_type: str | None = None


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A checked file with its content; a `withheld` one has none here."""

    file: AttachedFile
    content: bytes
    withheld: bool = False


class Reference(NamedTuple):
    """Stands for a file's content in a recorded call (ATT-4)."""

    bytes: int
    sha256: str


def taken_out(arguments: JsonObject) -> tuple[JsonObject, dict[int, Reference]]:
    """Return a call's arguments with an empty content for each reference, and the references by file number.

    For a call that is made again as it was recorded, in a fork: nobody has the contents any more.
    """
    given = arguments.get("attachments")
    if not is_list_like(given):
        return arguments, {}
    found = {
        number: reference
        for number, file in enumerate(given)
        if is_object(file) and (reference := _as_reference(file.get("content"))) is not None
    }
    files = [
        {**file, "content": ""} if is_object(file) and number in found else file
        for number, file in enumerate(given)
    ]
    return {**arguments, "attachments": files} if found else arguments, found


def check_attachments(
    given: Sequence[AttachmentArgument],
    rules: AttachmentRules,
    references: Mapping[int, Reference] | None = None,
) -> tuple[CheckedFile, ...]:
    """Return the files of a call. `references` stand for the contents of some of them, by number.

    Raises:
        ToolRefused: attachments are off (`forbidden`), or one of them can't be taken; nothing was written.
    """
    if not rules.enabled:
        raise ToolRefused(
            "forbidden", "attachments: they are off, tools.sessions_spawn.attachments.enabled turns them on"
        )
    _check_count(len(given), rules)
    _check_names(given)
    known = references or {}
    files = tuple(_file(index, one, rules, known.get(index)) for index, one in enumerate(given))
    total = sum(file.file.bytes for file in files)
    if total > rules.max_total_bytes:
        raise ToolRefused(
            "total_bytes_exceeded",
            f"attachments: {total} bytes in all, give at most {rules.max_total_bytes} "
            "(tools.sessions_spawn.attachments.maxTotalBytes)",
        )
    return files


def check_mount_path(path: str | None) -> str | None:
    """Return the path a child is told its files would be mounted at (SPAWN-1).

    Raises:
        ToolRefused: it can't be one (`invalid_request`).
    """
    if path is not None and (_MOUNT.fullmatch(path) is None or ".." in path.split("/")):
        raise invalid(
            "attachAs.mountPath", "no path of letters, digits and ._-/: without .., give such a one or none"
        )
    return path


def relative_directory(directory: str) -> str:
    """Return a directory relative to its workspace."""
    return "/".join((*ROOT_NAMES, directory))


def receipt(attachments: Attachments) -> JsonObject:
    """Return the caller's receipt, which is the manifest's content (ATT-3)."""
    return {
        "count": len(attachments.files),
        "totalBytes": sum(file.bytes for file in attachments.files),
        "files": [
            {"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in attachments.files
        ],
        "relDir": relative_directory(attachments.directory),
    }


def without_contents(arguments: object) -> JsonValue:
    """Return a call's arguments with a reference to each file's content in its place (ATT-4).

    For a call that is refused too: whatever stands where a content belongs is not repeated.
    """
    if not is_object(arguments) or "attachments" not in arguments:
        return arguments
    given = arguments["attachments"]
    shown = [_without_content(file) for file in given] if is_list_like(given) else _reference(given, None)
    return arguments | {"attachments": shown}


def blocks_without_contents(content: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return a message's blocks, the contents in its calls of `sessions_spawn` replaced by references (ATT-4)."""
    return tuple(_call_without_contents(block) for block in content)


def _check_count(count: int, rules: AttachmentRules) -> None:
    if count > rules.max_files:
        raise ToolRefused(
            "file_count_exceeded",
            f"attachments: {count} files, give at most {rules.max_files} "
            "(tools.sessions_spawn.attachments.maxFiles)",
        )


def _check_names(given: Sequence[AttachmentArgument]) -> None:
    seen: dict[str, int] = {}
    for index, one in enumerate(given):
        problem = name_problem(one.name)
        if problem is not None:
            raise _refused("invalid_name", index, "name", f"{problem}, give one plain file name")
        first = seen.setdefault(one_name(one.name), index)
        if first != index:
            raise _refused(
                "duplicate_name",
                index,
                "name",
                f"the same as that of attachments[{first}], also where case does not count, give another",
            )


def _file(
    index: int, given: AttachmentArgument, rules: AttachmentRules, reference: Reference | None
) -> CheckedFile:
    if given.mime_type is not None and _MIME.fullmatch(given.mime_type) is None:
        raise _refused("invalid_request", index, "mimeType", "no type such as text/plain, give one or none")
    most = rules.max_file_bytes
    # No more is decoded than may be taken: base64 is a third longer than what it stands for.
    size = len(given.content) if given.encoding == "utf8" else len(given.content) // 4 * 3 - 2
    content = b"" if size > most else _content(index, given)
    size = max(size, len(content)) if reference is None else reference.bytes
    if size > most:
        raise _refused(
            "file_bytes_exceeded",
            index,
            "content",
            f"{size} bytes, give at most {most} (tools.sessions_spawn.attachments.maxFileBytes)",
        )
    return CheckedFile(
        file=AttachedFile(
            name=given.name,
            bytes=size,
            sha256=hashlib.sha256(content).hexdigest() if reference is None else reference.sha256,
            mime_type=given.mime_type,
        ),
        content=content,
        withheld=reference is not None,
    )


def _content(index: int, given: AttachmentArgument) -> bytes:
    content = decoded(given.content, given.encoding)
    if content is None:
        raise _refused(
            "invalid_base64",
            index,
            "content",
            "not strict base64 (RFC 4648, padded, nothing else in it), encode it again",
        )
    return content


def decoded(content: str, encoding: str) -> bytes | None:
    """Return the bytes of a content; None where it is no strict base64."""
    if encoding != "base64":
        return content.encode("utf-8", "surrogatepass")
    try:
        data = base64.b64decode(content.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return None
    # The decoder lets bits pass that stand for nothing; there is one way to write these bytes.
    return data if base64.b64encode(data).decode() == content else None


def _refused(code: RefusalCode, index: int, field: str, what: str) -> ToolRefused:
    return ToolRefused(code, f"attachments[{index}].{field}: {what}")


def _without_content(file: object) -> JsonValue:
    if not is_object(file):
        return _reference(file, None)
    names = ("name", "encoding", "mimeType")
    known = {name: file[name][: FILE_NAME.most] for name in names if isinstance(file.get(name), str)}
    return known | {"content": _reference(file.get("content"), file.get("encoding"))}


def _reference(content: object, encoding: object) -> JsonObject:
    there = _as_reference(content)
    if there is not None:  # a call that is made again as it was recorded is recorded as it was
        return {"omitted": True, "bytes": there.bytes, "sha256": there.sha256}
    data = decoded(content, str(encoding)) if isinstance(content, str) else None
    if data is None:
        data = _json(content)
    return {"omitted": True, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _as_reference(content: object) -> Reference | None:
    if not is_object(content) or content.keys() != {"omitted", "bytes", "sha256"}:
        return None
    match content["omitted"], content["bytes"], content["sha256"]:
        case True, int() as size, str() as sha256 if 0 <= size < 2**53 and _SHA256.fullmatch(sha256):
            return Reference(size, sha256)
        case _:
            return None


def _json(value: object) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return ascii(value).encode()


def _call_without_contents(block: Block) -> Block:
    if not isinstance(block, ToolCallBlock) or block.name != TOOL:
        return block
    try:
        arguments = msgspec.json.decode(block.arguments)
    except (ValueError, RecursionError):
        # What can't be read can't be told from content.
        return msgspec.structs.replace(block, arguments=_source(_reference(block.arguments, None)))
    shown = without_contents(arguments)
    return block if shown is arguments else msgspec.structs.replace(block, arguments=_source(shown))


def _source(value: object) -> str:
    return msgspec.json.encode(value).decode()


MANIFEST: Final = ".manifest.json"
"""The file that lists the others; the last one to be written."""

_RESERVED: Final = frozenset({MANIFEST, "manifest.json"})

_FORBIDDEN: Final = frozenset('/\\:<>"|?*')

# Windows takes these for devices, whatever follows a dot, and reads the superscript digits as digits.
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|clock\$|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)


def name_problem(name: str) -> str | None:
    """Return what is wrong with a file's name, or None."""
    if not name.strip():
        return "it is blank"
    if len(name.encode("utf-8", "surrogatepass")) > FILE_NAME.most:
        return f"it is longer than {FILE_NAME.most} bytes"
    if not name.isprintable():
        return "it has characters that can't be seen (controls, formatting, unassigned)"
    if _FORBIDDEN & set(name):
        return "it has one of " + " ".join(sorted(_FORBIDDEN))
    if name in {".", ".."} or name[-1] in ". " or name[0] == " ":
        return "it begins or ends with a space, or ends with a dot"
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")):
        return "it is the name of a device on Windows"
    if one_name(name) in _RESERVED:
        return f"{MANIFEST} and manifest.json are reserved"
    return None


def one_name(name: str) -> str:
    """Return the common form of names that some file system takes for one: case and composition folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
