"""Texts that the original has compressed with zstd."""

import sys
from typing import Final

from intersession_events.basics.errors import ImportFailed

MOST_TEXT: Final = 256 * 1024 * 1024
"""Bytes of a decompressed text: a frame may say of itself that it is larger than any text is."""


def unpacked(content: bytes, where: str) -> bytes | None:
    """Return a text that the original had compressed; None if it is damaged.

    Raises:
        ImportFailed: nothing here can decompress it.
    """
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415
        else:
            from backports import zstd  # noqa: PLC0415 - of the extra `openclaw`
    except ImportError as error:
        how = "install intersession[openclaw]"
        raise ImportFailed(f"{where} is compressed with zstd, which this Python has not; {how}") from error
    try:
        reader = zstd.ZstdDecompressor()
        text = reader.decompress(content, max_length=MOST_TEXT)
    except zstd.ZstdError:
        return None
    return text if reader.eof else None


def numbered(text: bytes) -> list[tuple[int, bytes]]:
    """Return the lines of a text, numbered from 1, blank ones left out."""
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
