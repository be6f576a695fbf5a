"""How large the source is beside the last release, and what a user gets for what it has grown by.

python tests/support/pages/size.py            prints the table; fails where something is larger than its budget
python tests/support/pages/size.py --write    lowers the budgets to what there is; nothing raises them but a person

`tests/data/size.toml` has, for each package, its size in the last release, and by how much it may have grown for each item of
the changelog's unreleased section, which begins with those words.
"""

import ast
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[3]
BUDGETS: Final = ROOT / "tests" / "data" / "size.toml"
PACKAGES: Final = {
    "events": ROOT / "events" / "intersession_events",
    "projections": ROOT / "projections" / "intersession_projections",
    "actors": ROOT / "actors" / "intersession_actors",
    "doors": ROOT / "actors" / "intersession",
}
SPARE: Final = 0.01
"""So much more than its budget a package may have, and so much less before the budget has to be lowered."""


_HEAD: Final = """\
# Lines, modules and public names of each package: in the last release, and by how much each may have grown since, for an
# item of the changelog that begins with those words (tests/support/pages/size.py).
"""


class Size(NamedTuple):
    """Lines of Python, modules, and the names that these define for others."""

    lines: int
    modules: int
    names: int


def _sum(sizes: Iterable[Size]) -> Size:
    return Size(*map(sum, zip(*sizes, strict=True)))


class Budget(NamedTuple):
    """The size in the last release, and what it has grown by for each item of the changelog."""

    release: Size
    growth: Mapping[str, Size]

    @property
    def now(self) -> Size:
        """What there may be now."""
        return _sum([self.release, *self.growth.values()])


def size_of(package: Path) -> Size:
    """Count a package."""
    texts = [module.read_text(encoding="utf-8") for module in package.rglob("*.py")]
    lines = sum(text.count("\n") for text in texts)
    return Size(lines, len(texts), sum(len({*_names(ast.parse(text))}) for text in texts))


def _names(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found = [name]
            case ast.Assign(targets=targets):
                found = [
                    one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)
                ]
            case ast.AnnAssign(target=ast.Name(id=name)):
                found = [name]
            case _:
                found = []
        yield from (name for name in found if not name.startswith("_"))


def read_budgets(text: str) -> dict[str, Budget]:
    """Return the budget of each package."""
    return {
        name: Budget(
            Size(*given["release"]), {item: Size(*more) for item, more in given.get("growth", {}).items()}
        )
        for name, given in tomllib.loads(text).items()
    }


def written(budgets: Mapping[str, Budget]) -> str:
    """Return the file of budgets."""
    parts = [_HEAD]
    for name, budget in budgets.items():
        parts.append(f"[{name}]\nrelease = {[*budget.release]}\n\n[{name}.growth]")
        parts += [
            f"{json.dumps(item, ensure_ascii=False)} = {[*more]}" for item, more in budget.growth.items()
        ]
        parts.append("")
    return "\n".join(parts)


def unreleased(changelog: str) -> list[str]:
    """Return the items of the section that is not released yet, each in one line."""
    section = changelog.partition("## [Unreleased]")[2].partition("\n## [")[0]
    return [" ".join(item.partition("\n\n")[0].split()) for item in section.split("\n- ")[1:]]


def problems(sizes: Mapping[str, Size], budgets: Mapping[str, Budget], items: Sequence[str]) -> Iterator[str]:
    """Say what is too large, for nothing, or given more room than it takes."""
    for name, size in sizes.items():
        budget = budgets[name]
        for item in budget.growth:
            if not any(one.startswith(item) for one in items):
                yield f"{name} has grown for {item!r}, and no item of the changelog's unreleased section begins so"
        for what, there, may_be in zip(Size._fields, size, budget.now, strict=True):
            if there > may_be * (1 + SPARE):
                yield (
                    f"{name} has {there:,} {what}, {there - may_be:,} more than its budget: make it smaller, or say in "
                    "tests/data/size.toml for which item of the changelog it has grown"
                )
            elif there < may_be * (1 - SPARE):
                yield (
                    f"{name} has {there:,} {what}, {may_be - there:,} less than its budget: lower that with "
                    "python tests/support/pages/size.py --write"
                )


def lowered(sizes: Mapping[str, Size], budgets: Mapping[str, Budget]) -> dict[str, Budget]:
    """Return the budgets without what is not needed any more: it is taken from what has grown most."""
    found: dict[str, Budget] = {}
    for name, budget in budgets.items():
        spare = Size(*(max(may_be - there, 0) for may_be, there in zip(budget.now, sizes[name], strict=True)))
        growth = dict(budget.growth)
        if growth:
            most = max(growth, key=lambda item: growth[item].lines)
            growth[most] = Size(*(a - b for a, b in zip(growth[most], spare, strict=True)))
        found[name] = Budget(budget.release, growth)
    return found


def table(sizes: Mapping[str, Size], budgets: Mapping[str, Budget]) -> str:
    """Return the sizes beside those of the last release."""
    columns = f"{'lines':>10}{'modules':>9}{'names':>9}"
    lines = [f"{'':12}{'last release':>28}{'now':>28}", f"{'':12}{columns}{columns}"]
    rows = [(name, budgets[name].release, size) for name, size in sizes.items()]
    rows.append(("all", _sum(release for _, release, _ in rows), _sum(size for *_, size in rows)))
    lines += [
        f"{name:12}" + "".join(f"{one.lines:>10,}{one.modules:>9,}{one.names:>9,}" for one in pair)
        for name, *pair in rows
    ]
    return "\n".join(lines)


def main() -> int:
    """Print the table, or lower the budgets."""
    sizes = {name: size_of(package) for name, package in PACKAGES.items()}
    budgets = read_budgets(BUDGETS.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        budgets = lowered(sizes, budgets)
        BUDGETS.write_text(written(budgets), encoding="utf-8")
    items = unreleased((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    found = [*problems(sizes, budgets, items)]
    sys.stdout.write("\n".join([table(sizes, budgets), *found, ""]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
