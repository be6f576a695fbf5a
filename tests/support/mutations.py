"""Bytes that somebody damaged: good ones with flips, cuts, repeats and what is known to be nasty, the same for a seed."""

import random
from collections.abc import Iterator, Sequence

NASTY: tuple[bytes, ...] = (
    b"",
    b"\x00",
    b"\xff",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xef\xbb\xbf",
    b'"\\ud800"',
    b"\\u0000",
    b"\\",
    b'"',
    b"[" * 3000,
    b'{"a":' * 3000,
    b"]",
    b"}",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e400",
    b"-0.0",
    b"9" * 25,
    b"9" * 5000,
    b"9007199254740993",
    b"-1",
    b"1.5",
    b'"x"',
    b"\n",
    b"\r\n",
    b"\xe2\x80\xa8",
    b"/*",
    b"//",
    b"'",
    b",",
    b":",
    b"${HOME}",
    b"__proto__",
    b"agent:main:main",
    b"../",
)
"""Where decoders are known to fail: no Unicode, no end, too deep, too large, another kind."""


def mutations(seeds: Sequence[bytes], number: int, seed: int = 0) -> Iterator[bytes]:
    """Yield so many damaged copies."""
    chance = random.Random(seed)  # noqa: S311 - tests want the same again
    for _ in range(number):
        data = bytearray(chance.choice(seeds))
        for _ in range(1 + int(chance.random() * 4)):
            _damage(data, chance, seeds)
        yield bytes(data)


def _damage(data: bytearray, chance: random.Random, seeds: Sequence[bytes]) -> None:
    at = int(chance.random() * (len(data) + 1))
    end = min(len(data), at + int(chance.random() * 16))
    match int(chance.random() * 8):
        case 0 if data:
            data[min(at, len(data) - 1)] ^= 1 << int(chance.random() * 8)
        case 1:
            del data[at:end]
        case 2:
            data[at:at] = data[at:end]
        case 3:
            del data[at:]
        case 4:
            other = chance.choice(seeds)
            data[at:end] = other[int(chance.random() * (len(other) + 1)) :]
        case 5:
            data[at:end] = chance.randbytes(int(chance.random() * 5))
        case _:
            data[at:end] = chance.choice(NASTY)
