"""Who may do what: access, sending, spawning, tools, models, and the limits of a chain. Pure."""

from intersession_actors.policy.access import (
    AccessSettings,
    Allowed,
    Forbidden,
    NotVisible,
    Operation,
    Reach,
    Requester,
    Target,
    access_settings,
    effective_visibility,
    judge,
    may_act_as,
    not_visible,
    reach_of,
)
from intersession_actors.policy.chain import ChainSoFar, Tripped, check_chain, check_turn, find_wait_cycle
from intersession_actors.policy.models import find_model, model_names
from intersession_actors.policy.sending import Speaker, Verdict, judge_send, parse_send_command
from intersession_actors.policy.spawning import (
    THINKING_LEVELS,
    SpawnAllowed,
    SpawnRefused,
    SpawnRequester,
    SpawnWish,
    agents_list,
    judge_spawn,
)
from intersession_actors.policy.tools import tools_for

__all__ = [
    "THINKING_LEVELS",
    "AccessSettings",
    "Allowed",
    "ChainSoFar",
    "Forbidden",
    "NotVisible",
    "Operation",
    "Reach",
    "Requester",
    "SpawnAllowed",
    "SpawnRefused",
    "SpawnRequester",
    "SpawnWish",
    "Speaker",
    "Target",
    "Tripped",
    "Verdict",
    "access_settings",
    "agents_list",
    "check_chain",
    "check_turn",
    "effective_visibility",
    "find_model",
    "find_wait_cycle",
    "judge",
    "judge_send",
    "judge_spawn",
    "may_act_as",
    "model_names",
    "not_visible",
    "parse_send_command",
    "reach_of",
    "tools_for",
]
