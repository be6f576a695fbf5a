"""What docs/howto/cluster.md says is what works: its units, its manifests, its configuration, its commands (HOSTS-5)."""

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from intersession.cli.app import app
from intersession_actors.rules.config.config import load_config
from support.pages.prose import blocks
from support.paths import DOCS

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="has the schemas of Kubernetes")
yaml = pytest.importorskip("yaml", reason="comes with the schemas")

KUBERNETES = "1.37"
PAGE = (DOCS / "howto" / "cluster.md").read_text(encoding="utf-8")
VARIABLES = ("ADDRESS", "INTERSESSION_GATEWAY_TOKEN", "DOOR_TOKEN", "WORKER_TOKEN")
SYSTEMD = shutil.which("systemd-analyze")


(MANIFESTS,) = ([*yaml.safe_load_all(text)] for text in blocks(PAGE, "yaml"))
UNITS = blocks(PAGE, "ini")
STARTED = [
    shlex.split(line) for unit in UNITS for line in re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
]
NAMED = {(each["kind"], each["metadata"]["name"]): each for each in MANIFESTS}


def pods() -> list[Any]:  # as their YAML has them
    return [each["spec"]["template"] for each in MANIFESTS if each["kind"] == "Deployment"]


def containers() -> list[Any]:  # as above
    return [container for pod in pods() for container in pod["spec"]["containers"]]


@pytest.mark.clause("HOSTS-5")
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_a_manifest_is_one_that_kubernetes_takes(manifest: dict[str, Any]) -> None:
    assert kubernetes_validate.validate(manifest, KUBERNETES, strict=True) == KUBERNETES


def test_what_manifests_name_is_there() -> None:
    labels = [pod["metadata"]["labels"] for pod in pods()]
    for each in MANIFESTS:
        selector = each["spec"].get("selector") if "spec" in each else None
        wanted = selector.get("matchLabels", selector) if selector else {}
        assert any(wanted.items() <= found.items() for found in labels), each["metadata"]
        for volume in (
            each["spec"]["template"]["spec"].get("volumes", ()) if each["kind"] == "Deployment" else ()
        ):
            assert ("ConfigMap", volume["configMap"]["name"]) in NAMED
    scaled = NAMED["HorizontalPodAutoscaler", "intersession-worker"]["spec"]["scaleTargetRef"]
    ports = {port["name"] for container in containers() for port in container.get("ports", ())}

    assert (scaled["kind"], scaled["name"]) in NAMED
    assert NAMED["Service", "intersession"]["spec"]["ports"][0]["targetPort"] in ports


@pytest.mark.parametrize(
    "words",
    [*(words[1:] for words in STARTED), *(container["command"][1:] for container in containers())],
    ids=" ".join,
)
def test_a_command_of_the_page_has_only_options_that_there_are(words: list[str]) -> None:
    command, *_ = app.parse_args(words, exit_on_error=False, print_error=False)

    assert command.__name__ == words[0]


def test_each_machine_and_each_pod_has_one_configuration_that_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(VARIABLES):
        monkeypatch.setenv(name, "10.0.0.5" if name == "ADDRESS" else f"a-token-that-nobody-guesses-{number}")
    (config,) = blocks(PAGE, "json5")
    inside = NAMED["ConfigMap", "intersession"]["data"]["openclaw.json"]
    for text in (config, inside):
        path = tmp_path / "openclaw.json"
        path.write_text(text, encoding="utf-8")
        loaded = load_config(path)
        assert loaded.notices == ()
        assert loaded.config.gateway.advertise == "http://10.0.0.5:18789"
        assert {name for name in VARIABLES if f"${{{name}}}" in text} == {*VARIABLES}


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
def test_each_unit_of_the_page_is_one_that_systemd_takes(tmp_path: Path) -> None:
    whole, *others = UNITS
    for lines in others:
        changed = dict(re.findall(r"^(\w+)=(.*)$", lines, re.MULTILINE))
        unit = whole
        for name, value in changed.items():
            unit, found = re.subn(rf"^{name}=.*$", f"{name}={value}", unit, flags=re.MULTILINE)
            assert found == 1, name
        path = tmp_path / "intersession.service"
        path.write_text(unit.replace("/srv/intersession/bin/intersession", "/bin/true"), encoding="utf-8")
        verified = subprocess.run(
            [str(SYSTEMD), "verify", str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (verified.stderr, verified.returncode) == ("", 0)


FIVE: Final = 5
"""The script takes so many ports, one after another."""


def free_ports() -> int:
    """Return a port with free ones behind it."""
    for first in range(20_000, 32_000, FIVE):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + FIVE):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise AssertionError("no five ports are free")


@pytest.mark.postgres
@pytest.mark.timeout(600)
@pytest.mark.clause("HOSTS-5", "HOSTS-1")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    ("signal", "parts"),
    [
        ("KILL", "host-a"),
        pytest.param("KILL", "", marks=pytest.mark.nightly, id="each part killed"),
        pytest.param(
            "TERM",
            "worker-1 worker-2 worker-3 door-a door-b host-b host-a",
            marks=pytest.mark.nightly,
            id="each part upgraded",
        ),
    ],
)
def test_the_script_kills_parts_and_each_message_is_answered_once(
    postgres_url: str, tmp_path: Path, signal: str, parts: str
) -> None:
    (script,) = (text for text in blocks(PAGE, "sh") if text.startswith("#!/bin/sh"))
    place = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "POSTGRES": postgres_url}
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path,
        env=os.environ | place | {"PORT": str(free_ports()), "SIGNAL": signal, "PARTS": parts},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^(\d+) messages, \1 answers, \1 of them once in the log$", done.stdout, re.MULTILINE
    ), done.stdout
    assert f"== {signal} host-a" in done.stdout
