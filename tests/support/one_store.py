"""Which tests open a log in a file, or in memory, and are not run on PostgreSQL, and why: by rooms and modules, a reason each.

A test that is left out alone is marked where it stands: `@pytest.mark.sqlite("copies the file")`. Whoever can say none of
these reasons takes the URL from `log_url`, or `logs.at(folder)`, and is run on both stores.
"""

from collections.abc import Mapping
from typing import Final

ONE_STORE: Final[Mapping[str, tuple[str, ...]]] = {
    "what is tried is above the log: it asks the log for nothing that the suites of whole systems, of doors and of views do "
    "not ask on both stores": (
        "actors/outside/agents",
        "actors/outside/channels",
        "actors/hindsight/debugger/test_debugger_doors.py",
        "actors/hindsight/debugger/test_diff_of_runs.py",
        "actors/hindsight/debugger/test_lens_of_a_long_session.py",
        "actors/hindsight/debugger/test_lens_of_a_run.py",
        "actors/hindsight/debugger/test_seek_equals_fold.py",
        "actors/owners/exchange",
        "actors/hindsight/explaining",
        "actors/rules/gate",
        "actors/assembly/methods/test_limited_answers.py",
        "actors/assembly/methods/test_notes.py",
        "actors/rules/prompt",
        "actors/calls/service/test_arguments_refused.py",
        "conformance/test_unseen_sessions_change_nothing.py",
        "actors/owners/streams",
        "projections/questions/causes",
        "projections/views/full_text",
        "projections/questions/places",
        "projections/questions/smells",
        "projections/test_row_prefilter.py",
        "projections/test_usage_view.py",
        "doors/worker",
        "system/test_halves_of_pairs.py",
        "system/test_long_sessions.py",
    ),
    "what is tried is how a door speaks: that all of them answer the same on both stores is held in conformance/": (
        "doors/cli",
        "doors/gateway",
        "doors/mcp",
        "doors/test_bot_hosts.py",
        "doors/test_canaries.py",
        "doors/test_every_door.py",
        "doors/web",
    ),
    "a fork is a log in a file, wherever the log lies that it is of; forks of a log on PostgreSQL are in "
    "conformance/, doors/web/test_web_on_both_stores.py and doors/cli/test_cli_migrate.py": (
        "actors/hindsight/bundling/test_bundle_edition_logs.py",
        "actors/hindsight/forking",
        "events/copies/bundles",
        "events/copies/forks",
        "projections/copies/forks",
    ),
    "a replay reads a log and plays it in memory; that a log reads the same on both stores is held in events/stores/": (
        "actors/hindsight/replaying",
    ),
    "counts, damages or compares what lies in the file; its like for a server is in events/stores/test_postgres_*.py": (
        "actors/assembly/checkpoints",
        "actors/owners/session",
        "events/log",
        "events/stores",
        "system/test_checkpoints.py",
        "system/test_recipe_of_the_log.py",
        "system/test_damaged_rows.py",
        "system/test_tampering.py",
        "system/test_views_beside.py",
        "conformance/test_hostile_bytes_at_doors.py",
    ),
    "kills a process between two writes to the disk, or takes its memory: a server's disk is the server's": (
        "crash/test_memory.py",
        "crash/test_power_loss.py",
        "crash/test_store_killed.py",
    ),
    "what is tried is how files of others are read and written; an import straight into PostgreSQL is in "
    "doors/cli/test_cli_on_postgres.py": (
        "events/transcripts",
        "projections/copies/openclaw_state/test_export_round_trip.py",
        "projections/copies/transcripts",
    ),
    "many small logs in one go, each for a moment: on a server they would take minutes, and stores are not what differs": (
        "conformance/test_visibility_oracle.py",
        "simulation",
        "system/test_holds.py",
    ),
    "files that releases wrote": ("golden",),
    "the figures of files; those of a server have runs of their own": ("benchmarks",),
    "what is tried is the house: its pages and its imports": ("house",),
}
