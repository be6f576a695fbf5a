"""The word that lets a browser in stands on no command line, where everybody on the machine could read it."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import IO

from support.doors.command_line import DemoLog
from support.soaking import until

SCRIPT = """\
#!{python}
import json, os, sys, urllib.parse
path = urllib.parse.unquote(urllib.parse.urlparse(sys.argv[1]).path)
said = {{"argv": sys.argv[1:], "path": path, "mode": os.stat(path).st_mode, "text": open(path, encoding="utf-8").read()}}
with open({out!r} + ".new", "w", encoding="utf-8") as file:
    json.dump(said, file)
os.rename({out!r} + ".new", {out!r})
"""


def test_a_browser_is_handed_the_word_in_a_file_of_its_owner(demo_log: DemoLog, tmp_path: Path) -> None:
    browser, out = tmp_path / "browser", tmp_path / "said.json"
    browser.write_text(SCRIPT.format(python=sys.executable, out=str(out)), encoding="utf-8")
    browser.chmod(0o700)
    command = [sys.executable, "-m", "intersession", "debug", str(demo_log.path), "--json"]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            output: IO[str] | None = process.stdout
            assert output is not None
            url = json.loads(output.readline())["url"]
            until(out.exists)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
    said = json.loads(out.read_text(encoding="utf-8"))
    word = url.partition("#token=")[2]

    assert len(word) >= 32
    assert word not in str(said["argv"])
    assert f"url={url}" in said["text"]
    assert stat.S_IMODE(said["mode"]) == 0o600
    assert not Path(said["path"]).exists()
