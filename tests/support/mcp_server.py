"""An MCP server on standard input and output, in the standard library alone: `python mcp_server.py FILE` writes what it is asked there.

Tools: `add` (numbers), `fail` (says it went wrong), `die` (ends the process), `hang` (never answers), `picture` (no text).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS = [
    {"name": name, "description": f"Tool {name}.", "inputSchema": SCHEMA}
    for name in ("add", "fail", "die", "hang", "picture", "bad name")
]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None gives no answer."""
    if method == "initialize":
        info = {"name": "little", "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    arguments = params.get("arguments") or {}
    match params.get("name"):
        case "add":
            return text(str(arguments["a"] + arguments["b"]))
        case "fail":
            return text("it went wrong", isError=True)
        case "die":
            os._exit(1)
        case "picture":
            return {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
        case _:
            return None


def tell(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **said}) + "\n")
    sys.stdout.flush()


def main() -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as asked:
        print(json.dumps({"pid": os.getpid()}), file=asked, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            print(line.strip(), file=asked, flush=True)
            if "id" not in request:
                continue
            known = request["method"] in {"initialize", "tools/list", "tools/call"}
            if not known:
                error = {"code": -32601, "message": "Method not found"}
                tell({"id": request["id"], "error": error})
                continue
            result = answer(request["method"], request.get("params") or {})
            if result is not None:
                tell({"id": request["id"], "result": result})


if __name__ == "__main__":
    main()
