"""What docs/howto/deploy.md says is what works: its unit, its image's command, its configurations."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import httpx
import json5
import pytest

from intersession_actors.rules.config.config import load_config
from support.doors.gateway_live import WAIT
from support.doors.served_gateway import ForkedGateway
from support.pages.prose import blocks
from support.paths import DOCS

PAGE = (DOCS / "howto" / "deploy.md").read_text(encoding="utf-8")


SYSTEMD, NGINX, OPENSSL = (
    shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    for name in ("systemd-analyze", "nginx", "openssl")
)
(UNIT,) = blocks(PAGE, "ini")
(IMAGE,) = blocks(PAGE, "dockerfile")
CONFIG, BEHIND_PROXY = blocks(PAGE, "json5")


def started_by_unit() -> list[str]:
    found = re.search(r"^ExecStart=(.+)$", UNIT, re.MULTILINE)
    assert found is not None
    return shlex.split(found[1])


@pytest.mark.ci
def test_what_the_unit_starts_serves_and_stops(tmp_path: Path) -> None:
    config, log = tmp_path / "openclaw.json", tmp_path / "sessions.db"
    config.write_text(CONFIG, encoding="utf-8")
    here = {
        "/etc/intersession/openclaw.json": str(config),
        "sqlite:////var/lib/intersession/sessions.db": f"sqlite:///{log}",
    }
    program, command, *arguments = started_by_unit()
    assert (Path(program).name, command, set(here) - set(arguments)) == ("intersession", "serve", set())

    token = "the-token-of-the-file-env"
    served = ForkedGateway(*(here.get(word, word) for word in arguments), INTERSESSION_GATEWAY_TOKEN=token)
    alive = httpx.get(f"{served.address}/healthz", timeout=WAIT, trust_env=False)
    listed = served.invoke(token, "sessions_list", {})
    served.signal()
    code, _ = served.end()

    assert (alive.json(), listed.status_code, code, log.exists()) == ({"ok": True}, 200, 0, True)


def test_the_image_starts_what_the_unit_starts_but_for_the_place_of_the_log() -> None:
    found = re.search(r"^CMD (\[.+\])$", IMAGE, re.MULTILINE)
    assert found is not None
    program, *arguments = started_by_unit()
    inside = [word.replace("/var/lib/intersession", "/data") for word in arguments]

    assert json5.loads(found[1]) == [Path(program).name, *inside]


@pytest.mark.parametrize("text", [CONFIG, BEHIND_PROXY])
def test_the_configurations_of_the_page_are_accepted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text(text, encoding="utf-8")

    assert load_config(path).notices == ()


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    unit = tmp_path / "intersession.service"
    program = started_by_unit()[0]
    unit.write_text(UNIT.replace(program, "/bin/true"), encoding="utf-8")
    verified = subprocess.run(
        [str(SYSTEMD), "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (verified.stderr, verified.returncode) == ("", 0)


@pytest.mark.skipif(NGINX is None or OPENSSL is None, reason="nginx or openssl is not installed")
def test_the_proxys_configuration_is_one_that_nginx_takes(tmp_path: Path) -> None:
    (server,) = blocks(PAGE, "nginx")
    made = [str(OPENSSL), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=agents.example"]
    subprocess.run(
        [*made, "-keyout", "k.pem", "-out", "c.pem"], cwd=tmp_path, capture_output=True, check=True
    )
    server = server.replace("/etc/ssl/agents.example.pem", f"{tmp_path}/c.pem")
    server = server.replace("/etc/ssl/agents.example.key", f"{tmp_path}/k.pem")
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {server} }}", encoding="utf-8")
    tested = subprocess.run(
        [str(NGINX), "-t", "-c", str(whole), "-e", "stderr"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert tested.returncode == 0, tested.stderr
