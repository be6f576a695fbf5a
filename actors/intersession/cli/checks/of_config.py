"""What a configuration says that comes to nothing: settings without effect, agents without a model, endpoints that are down."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from intersession_actors.agents import keyless
from intersession_actors.config import Config
from intersession_actors.failures import Finding, note, warning, wrong

_PROBE_S = 5.0
_REFUSED = (401, 403)


def setting_findings(config: Config, notices: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what the start of a process would say of a configuration, and agents that nobody can answer for."""
    for notice in notices:
        yield note("setting", notice, "change it in the configuration, or leave it")
    providers = config.models.providers
    for agent_id in config.agent_ids if config.agents.list or providers else ():
        model = config.model_of(agent_id)
        if model is not None and model.partition("/")[0] not in providers:
            yield warning(
                "agent_without_model",
                f"agent {agent_id!r} has the model {model}, whose provider is not configured",
                f"configure models.providers.{model.partition('/')[0]}, or give the agent another model",
            )
    for name, provider in providers.items():
        without = keyless(name, provider)
        if without is not None:
            yield warning("provider_without_key", f"{without.path} {without.what}", f"give {without.path}")


def endpoint_findings(config: Config) -> Iterator[Finding]:
    """Yield the endpoints of configured models that don't answer. Asks each over the network, once."""
    for name, provider in config.models.providers.items():
        url = provider.get("baseUrl")
        if isinstance(url, str):
            yield from _asked(name, url, provider.get("apiKey"))


def _asked(name: str, url: str, key: object) -> Iterator[Finding]:
    path, where = (
        f"models.providers.{name}",
        f"{urlsplit(url).scheme}://{urlsplit(url).netloc.rpartition('@')[2]}",
    )
    if urlsplit(url).scheme not in {"http", "https"}:
        yield wrong(
            "endpoint_bad",
            f"{path}.baseUrl is no http or https address",
            "give the address of an OpenAI-compatible endpoint",
        )
        return
    request = urllib.request.Request(f"{url.rstrip('/')}/models")  # noqa: S310 - checked above
    if isinstance(key, str) and key:
        request.add_header("authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=_PROBE_S):  # noqa: S310 - checked above
            return
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            yield wrong(
                "endpoint_refuses",
                f"{path} at {where} refuses the key (HTTP {error.code})",
                f"look at {path}.apiKey",
            )
    except (OSError, ValueError) as error:
        yield wrong(
            "endpoint_down",
            f"{path} at {where} does not answer: {error}",
            "start the endpoint, or look at the address and the network between",
        )
