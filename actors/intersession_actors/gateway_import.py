"""The gateway's method that imports: for the operator alone, and over a connection only from the gateway's own machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from intersession_actors.errors import ToolRefused
from intersession_actors.gateway_caller import GatewayCaller
from intersession_actors.gateway_params import ImportParams
from intersession_actors.imports import Imports
from intersession_actors.tools.arguments import invalid, read_arguments
from intersession_events.errors import ImportFailed


class GatewayImport:
    """Reads a directory of this machine into the log."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports

    def openclaw(self, caller: GatewayCaller, params: Mapping[str, Any]) -> dict[str, Any]:
        """Import an OpenClaw state directory and return the report."""
        if not caller.is_operator or caller.credential is not None:
            raise ToolRefused(
                "forbidden", "import.openclaw is the operator's, whom no limited credential stands for"
            )
        given = read_arguments(ImportParams, params)
        directory = Path(given.directory)
        if not directory.is_absolute():
            raise invalid("directory", "not a whole path, and here is somewhere else; begin it with /")
        try:
            report = self._imports.openclaw(directory, on_taken=given.on_taken)
        except ImportFailed as failed:
            raise ToolRefused("import_failed", f"{failed}") from None
        value: dict[str, Any] = msgspec.to_builtins(report)
        return value
