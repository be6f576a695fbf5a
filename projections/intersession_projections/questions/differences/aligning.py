"""Which part of one run is which part of another: by structure, and where that leaves a choice by what is the same. Pure."""

from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

from intersession_projections.questions.differences.parts import Part

Pair = tuple[Part | None, Part | None]


def aligned(a: Sequence[Part], b: Sequence[Part]) -> Iterator[Pair]:
    """Yield parts that belong together, in order; one that nothing belongs to comes with None.

    First those that are told apart by the same, then, between them, those of the same name.
    """
    for old, new, is_same in _stretches(
        a, b, [(part.name, part.likeness) for part in a], [(part.name, part.likeness) for part in b]
    ):
        if is_same:
            yield from zip(old, new, strict=True)
            continue
        for one, other, is_named in _stretches(
            old, new, [part.name for part in old], [part.name for part in new]
        ):
            if is_named:
                yield from zip(one, other, strict=True)
            else:
                yield from ((part, None) for part in one)
                yield from ((None, part) for part in other)


def _stretches(
    a: Sequence[Part], b: Sequence[Part], old: Sequence[Hashable], new: Sequence[Hashable]
) -> Iterator[tuple[Sequence[Part], Sequence[Part], bool]]:
    """Yield stretches of two lists, and whether they are the same by what they are told apart by."""
    swapped = repr(new) < repr(old)  # which of two equally good ways is found must not hang on the order
    first, second = (new, old) if swapped else (old, new)
    for tag, i, j, k, m in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        of_a, of_b = (slice(k, m), slice(i, j)) if swapped else (slice(i, j), slice(k, m))
        yield a[of_a], b[of_b], tag == "equal"
