"""Who may do what: access, sending, spawning, tools, models, and the limits of a chain. Pure."""

from intersession_events.faces import on_demand

with on_demand(globals()):
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
        may_act_for,
        not_visible,
        reach_of,
    )
    from intersession_actors.policy.chain import (
        Spent,
        Tripped,
        begun,
        budget_of,
        check_hop,
        check_run,
        check_start,
        counts_use,
        find_wait_cycle,
        one_hop_on,
    )
    from intersession_actors.policy.holding import HoldOrder
    from intersession_actors.policy.looping import why_no_loop
    from intersession_actors.policy.models import find_model, model_names
    from intersession_actors.policy.questions import OPERATORS, check_asked
    from intersession_actors.policy.recorded_use import (
        MONEY,
        RUNS,
        TOKENS,
        WALL,
        spent_when_decided,
        time_of_chain,
        used_when_stopped,
    )
    from intersession_actors.policy.sending import Speaker, Verdict, judge_send, parse_send_command
    from intersession_actors.policy.spawning import (
        THINKING_LEVELS,
        SpawnAllowed,
        SpawnRefused,
        SpawnWish,
        agents_list,
        judge_spawn,
    )
    from intersession_actors.policy.tools import tools_for

__all__ = [
    "MONEY",
    "OPERATORS",
    "RUNS",
    "THINKING_LEVELS",
    "TOKENS",
    "WALL",
    "AccessSettings",
    "Allowed",
    "Forbidden",
    "HoldOrder",
    "NotVisible",
    "Operation",
    "Reach",
    "Requester",
    "SpawnAllowed",
    "SpawnRefused",
    "SpawnWish",
    "Speaker",
    "Spent",
    "Target",
    "Tripped",
    "Verdict",
    "access_settings",
    "agents_list",
    "begun",
    "budget_of",
    "check_asked",
    "check_hop",
    "check_run",
    "check_start",
    "counts_use",
    "effective_visibility",
    "find_model",
    "find_wait_cycle",
    "judge",
    "judge_send",
    "judge_spawn",
    "may_act_as",
    "may_act_for",
    "model_names",
    "not_visible",
    "one_hop_on",
    "parse_send_command",
    "reach_of",
    "spent_when_decided",
    "time_of_chain",
    "tools_for",
    "used_when_stopped",
    "why_no_loop",
]
