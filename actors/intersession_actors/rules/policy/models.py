"""Which models can be asked for, and which one a text means. Pure (SPAWN-4, GATE-2)."""

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.settings import ModelChoice
from intersession_events.basics.plain_json import JsonList, is_list, is_object


def find_model(config: Config, text: str) -> str | None:
    """Return the model that a text means, as `provider/id`; None where it means none that is configured.

    The text is `provider/id`, an alias, or an id that only one provider has. Where no models are configured at all, any
    text that is not blank names one.
    """
    known = model_names(config)
    if not known:
        return text if text.strip() else None
    if text in known:
        return text
    aliases = {
        entry.get("alias"): name
        for name, entry in config.agents.defaults.models.items()
        if entry.get("alias")
    }
    if text in aliases:
        return aliases[text]
    same_id = [name for name in known if name.partition("/")[2] == text]
    return same_id[0] if len(same_id) == 1 else None


def model_names(config: Config) -> tuple[str, ...]:
    """Return the models that can be asked for, as `provider/id`, sorted; none where any can.

    Where `agents.defaults.models` lists some, those and the configured defaults are all there are; else those that
    the providers serve.
    """
    listed = set(config.agents.defaults.models)
    served = {
        f"{provider}/{model_id}"
        for provider, settings in config.models.providers.items()
        for model_id in _ids(settings.get("models"))
    }
    known = listed or served
    if not known:
        return ()
    return tuple(sorted(known | _defaults(config)))


def _ids(models: object) -> list[str]:
    entries: JsonList = models if is_list(models) else []
    ids = [entry.get("id") if is_object(entry) else entry for entry in entries]
    return [model_id for model_id in ids if isinstance(model_id, str)]


def _defaults(config: Config) -> set[str]:
    defaults = config.agents.defaults
    chosen = [defaults.model, defaults.subagents.model]
    for agent in config.agents.list:
        chosen += [agent.model, agent.subagents.model]
    names: set[str] = set()
    for choice in chosen:
        if isinstance(choice, ModelChoice):
            names |= {*choice.fallbacks, *([choice.primary] if choice.primary else [])}
        elif choice:
            names.add(choice)
    return names
