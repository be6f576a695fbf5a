"""The pictures of the pages: what commands print in a terminal, drawn from their real output.

python tests/support/pages/pictures.py --write    makes docs/pictures/*.svg anew
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Generator
from html import unescape
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from support.doors.command_line import ran

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "pictures"
WIDTH: Final = 96

_STORE: Final = "demo.db"

# Without the fonts that rich would have the reader fetch from elsewhere.
_SVG: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{unique_id}">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

_THEME: Final = TerminalTheme(
    (27, 31, 38),
    (214, 219, 227),
    [(27, 31, 38), (229, 114, 114), (126, 193, 134), (222, 184, 99), (117, 167, 230), (197, 146, 219),
     (98, 190, 196), (214, 219, 227)],
)  # fmt: skip


def printed(*arguments: str) -> str:
    """Return what a command prints in a terminal of this width, with its colours."""
    done = ran(*arguments)
    if done.exit_code:
        raise RuntimeError(f"intersession {' '.join(arguments)} failed: {done.err}")
    return done.out


@contextlib.contextmanager
def terminal(folder: Path) -> Generator[None]:
    """Have commands of this process print as in a terminal, in a folder."""
    before, here = dict(os.environ), Path.cwd()
    os.environ.update(FORCE_COLOR="1", TERM="xterm-256color", COLUMNS=str(WIDTH))
    os.environ.pop("NO_COLOR", None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def outputs(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Play the demo in a folder, and return for each picture the command and the lines that it shows of what was printed."""
    with terminal(folder):
        played = printed("demo", "--store", _STORE).splitlines()
        listed = ran("runs", "--kind", "exchange", "--json", "--store", _STORE).json
        exchange = listed["runs"][0]["id"][:8]
        found = {"demo": ("intersession demo", played[: _chapter(played, 2)])}
        for name in ("replay", "show"):
            lines = printed(name, exchange, "--store", _STORE).splitlines()
            found[name] = (f"intersession {name} {exchange}", lines)
    return found


def _chapter(lines: list[str], number: int) -> int:
    return next(at for at, line in enumerate(lines) if f"{number}. " in Text.from_ansi(line).plain[:4]) - 1


def picture(name: str, command: str, lines: list[str]) -> str:
    """Return the SVG of a terminal in which a command printed lines."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi("\n".join(lines)))
        console.print()  # room below the last line
    svg = console.export_svg(title="", theme=_THEME, code_format=_SVG, unique_id=f"picture-{name}")
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def words(svg: str) -> list[str]:
    """Return the lines of a picture, with a mark for what differs each time: ids, places, times, files."""
    lines: dict[float, str] = {}
    for at, text in re.findall(r'<text [^>]*?y="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        lines[float(at)] = lines.get(float(at), "") + unescape(text).replace("\xa0", " ")
    return [plain(line) for _, line in sorted(lines.items()) if line.strip()]


def plain(line: str) -> str:
    """Return a line with a mark for what differs each time."""
    line = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{0,12})*", "ID", line)
    line = re.sub(r"\s+", " ", re.sub(r"[-\d:.]*\d[-\d:.]*", "N", line)).strip()
    return re.sub(r"\bN (?:ms|s|min N s)\b", "N", line)  # what took 900 ms takes 1.1 s on a busy machine


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (command, lines) in outputs(Path(folder)).items():
            (PICTURES / f"{name}.svg").write_text(picture(name, command, lines), encoding="utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv:
        main()
    else:
        sys.stdout.write(__doc__ or "")
