"""The page for a person whose browser was refused: why, what this is, how to get in, where to read on."""

import base64
import hashlib
import re
from html import escape
from typing import Final

DOCUMENTATION: Final = "https://intersession.example/docs/"

_UNWANTED: Final = re.compile(r"\bq\s*=\s*0(\.0*)?\s*(;|\Z)")
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;color:#1c1c1c;"
    "background:#fff}code,pre{font:14px/1.5 ui-monospace,monospace;background:#f2f2f2;border-radius:4px}"
    "code{padding:.1em .3em}pre{padding:.8em 1em;overflow-x:auto}pre code{padding:0}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}code,pre{background:#262626}"
    "a{color:#8ab4f8}}"
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS: Final = (
    ("content-type", "text/html; charset=utf-8"),
    # The page's one style by its hash, and nothing else: no script, no picture, no frame around it.
    (
        "content-security-policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("vary", "accept"),
)


def page(address: str, *, refused: str) -> bytes:
    """Return the page of the gateway at an address, with the reason of a refusal."""
    at = escape(address)
    said = f"<p><strong>Not answered: {escape(refused)}</strong></p>\n"
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Intersession gateway</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Intersession gateway</h1>
{said}<p>This address is for programs. The gateway gives them the session tools of the AI agents that run here: lists,
histories, messages between sessions, sub-agents. For people there is <a href="{at}/debug/">the debugger</a>.</p>
<h2>How to get in</h2>
<p>A program sends the gateway's token with each request. The operator has it: it is <code>gateway.auth.token</code> in
the configuration, or the variable <code>INTERSESSION_GATEWAY_TOKEN</code>.</p>
<pre><code>curl {at}/tools/invoke -H "Authorization: Bearer $INTERSESSION_GATEWAY_TOKEN" \\
  -H "Content-Type: application/json" -d '{{"tool": "sessions_list"}}'</code></pre>
<p>On the gateway's own machine these commands show what goes on: <code>intersession sessions</code>,
<code>intersession runs</code>, <code>intersession replay</code>, <code>intersession doctor</code>.</p>
<h2>Where to read on</h2>
<ul>
<li><a href="{DOCUMENTATION}">The documentation</a></li>
<li><a href="{at}/openapi.json">The routes of this gateway</a> (OpenAPI, for programs)</li>
<li><a href="{at}/healthz">Whether it lives</a></li>
</ul>
</body>
</html>
""".encode()


def wants_page(method: str, accept: str | None) -> bool:
    """Whether a request comes from a browser for a page: programs don't ask for `text/html` by name."""
    if method not in {"GET", "HEAD"} or accept is None:
        return False
    kinds = (each.partition(";") for each in accept.lower().split(","))
    return any(kind.strip() == "text/html" and not _UNWANTED.search(rest) for kind, _, rest in kinds)
