"""Which models can be asked for (SPAWN-4, GATE-2), and how much of what is said each takes: its window (CTX-1). Pure."""

from typing import Final, NamedTuple

import msgspec

from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.settings import ModelChoice
from intersession_actors.rules.config.tools import Compaction
from intersession_events.basics.plain_json import JsonList, JsonObject, JsonValue, is_list, is_object
from intersession_events.facts import ready

WINDOWS: Final = {
    "claude-": 200_000,
    "command-r": 128_000,
    "deepseek": 64_000,
    "gemini-": 1_048_576,
    "gemma": 8_192,
    "gpt-3.5": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-5": 272_000,
    "gpt-oss": 131_072,
    "grok-": 131_072,
    "llama-2": 4_096,
    "llama-3": 8_192,
    "llama-3.1": 131_072,
    "llama-3.2": 131_072,
    "llama-3.3": 131_072,
    "llama2": 4_096,
    "llama3": 8_192,
    "llama3.1": 131_072,
    "llama3.2": 131_072,
    "llama3.3": 131_072,
    "mistral-large": 128_000,
    "mistral-small": 32_768,
    "mixtral": 32_768,
    "o1": 128_000,
    "o3": 200_000,
    "o4": 200_000,
    "qwen": 32_768,
}
"""Tokens that models take, by how their names begin; the longest beginning that fits counts.

From what their makers say of them on their pages of models. Where models of one beginning differ, it is the smallest; of `gpt-5`
it is what it takes as input.
"""

TAKE_IMAGES: Final = ("claude-", "gemini-", "gpt-4-turbo", "gpt-4.1", "gpt-4o", "gpt-5", "grok-4", "o3", "o4")
"""How the names of models begin of which their makers say that all take pictures."""

UNKNOWN_MODEL: Final = 32_768
"""The window of a model that nobody says more of than its name."""

NO_MODEL: Final = 128_000
"""The window of an agent of which nobody says on which model it is: what models of large providers take at least."""

LEAST_ROOM: Final = 128
_MOST_FOR_ANSWER: Final = 8_192
_WORDS_OF_A_SUMMARY: Final = 60, 1_500
_OF_A_TOOL: Final = 750
"""The tokens of a session tool's description, on average at most."""
_LEAST_WITH_TOOLS: Final = 1_024
"""An agent that has less room for what is said than this beside its tools has none: else they would be all that it is shown."""


def find_model(config: Config, text: str) -> str | None:
    """Return the model that a text names, as `provider/id`; None for one that is not configured.

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
    """Return the models that may be requested, as `provider/id`, sorted; empty if any may.

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


@ready
class ModelWindow(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's own data on its model: name, window, the tokens for its instructions and its answer, whether it takes images.

    None is not said.
    """

    model: str | None = None
    tokens: int | None = None
    instructions: int = 0
    answer: int | None = None
    images: bool | None = None


class Reckoned(NamedTuple):
    """A model's window, and the part of it for tools and messages; None: unknown, in old recordings.

    `compaction`: the agent can be asked to summarise what does not fit (CTX-5).
    """

    context_tokens: int | None
    room: int | None
    compaction: bool = False


def reckon(config: Config, agent_id: str, asked_for: str | None, said: ModelWindow | None) -> Reckoned:
    """Return the window of an agent's model.

    What the agent says of it counts first, then `contextWindow` of the model in the configuration, then the table. `contextTokens`
    of the agent, or of all, is a bound on each. `asked_for` is the model that the run or its session asks for.
    """
    said = said or ModelWindow()
    name = said.model
    window, answer = said.tokens, said.answer
    if name is None and window is None:
        wanted = None if asked_for is None else find_model(config, asked_for) or asked_for
        name = wanted or config.model_of(agent_id)
    bound = config.context_tokens_of(agent_id)
    on_a_model = not (name is None and window is None and bound is None)
    if name is not None:
        served = _served(config, name)
        window = window or _count(served.get("contextWindow")) or _count(served.get("contextTokens"))
        answer = answer or _count(served.get("maxTokens"))
    window = window or _by_name(name)
    window = window if bound is None else min(window, bound)
    for_answer = min(answer or min(window // 4, _MOST_FOR_ANSWER), window // 2)
    room = max(window - for_answer - said.instructions, LEAST_ROOM)
    return Reckoned(window, room, _summarises(config, agent_id, on_a_model=on_a_model))


def _summarises(config: Config, agent_id: str, *, on_a_model: bool) -> bool:
    """Whether older turns of an agent's sessions are summarised: code of which nobody says that a model answers is not asked to."""
    compaction = config.compaction_of(agent_id)
    return compaction.mode != "off" and (on_a_model or compaction.agent is not None)


def room_before_compaction(compaction: Compaction, words: int) -> int:
    """Return how many tokens may be said before older turns are summarised, of those that there is room for (CTX-5)."""
    reserve = max(compaction.reserve_tokens, compaction.reserve_tokens_floor)
    return max(words - min(reserve, words // 4), LEAST_ROOM)


def kept_by_compaction(compaction: Compaction, compacts_at: int) -> int:
    """Return how many tokens of the newest turns a compaction leaves alone (CTX-5).

    A quarter of what there is room for, at most: a quarter is for the summary, and half for what comes.
    """
    return min(compaction.keep_recent_tokens, compacts_at // 4)


def words_of_summary(compacts_at: int | None) -> int:
    """Return how many words a summary may have: a quarter of what there is room for, at two tokens a word."""
    least, most = _WORDS_OF_A_SUMMARY
    return most if compacts_at is None else min(max(compacts_at // 8, least), most)


def takes_images(config: Config, agent_id: str, asked_for: str | None, said: ModelWindow | None) -> bool:
    """Return whether an agent's model is given pictures (FILE-4).

    What the agent says of it counts first, then `input` of the model in the configuration, then a table by the model's name.
    """
    said = said or ModelWindow()
    if said.images is not None:
        return said.images
    wanted = None if asked_for is None else find_model(config, asked_for) or asked_for
    name = said.model or wanted or config.model_of(agent_id)
    if name is None:
        return False
    kinds: JsonValue = _served(config, name).get("input")
    if is_list(kinds):
        return "image" in kinds
    return name.rpartition("/")[2].lower().startswith(TAKE_IMAGES)


def tokens_of_tools(tools: int) -> int:
    """Return the tokens of a number of tools' descriptions."""
    return tools * _OF_A_TOOL


def room_for_words(room: int, tools: int, most: int | None) -> int:
    """Return the tokens for messages, beside the tools; `most` was learnt from refusals (CTX-3)."""
    return max((room if most is None else min(room, most)) - tokens_of_tools(tools), LEAST_ROOM)


def has_room_for_tools(room: int, tools: int, most: int | None) -> bool:
    """Whether there is room for an agent's tools beside its messages."""
    return room_for_words(room, tools, most) >= _LEAST_WITH_TOOLS


def _by_name(name: str | None) -> int:
    if name is None:
        return NO_MODEL
    plain = name.rpartition("/")[2].lower()
    found = [begin for begin in WINDOWS if plain.startswith(begin)]
    return WINDOWS[max(found, key=len)] if found else UNKNOWN_MODEL


def _served(config: Config, name: str) -> JsonObject:
    """Return the configuration's entry of a model, by `provider/id` or by an id alone."""
    provider, _, model_id = name.partition("/")
    for provider_id, settings in config.models.providers.items():
        entries: JsonValue = settings.get("models")
        models: JsonList = entries if is_list(entries) else []
        for entry in models:
            if is_object(entry) and (
                (provider_id == provider and entry.get("id") == model_id) or entry.get("id") == name
            ):
                return entry
    return {}


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
