"""What makes bundles, loaded when it is first asked for: a host that only runs agents needs none of it."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_actors.hindsight.bundling.answered import wanted_for_answer
    from intersession_actors.hindsight.bundling.bundle import BundleMade, make_bundle
    from intersession_actors.hindsight.bundling.wanted import BundleFields, BundleWanted

on_demand(globals())

__all__ = ["BundleFields", "BundleMade", "BundleWanted", "make_bundle", "wanted_for_answer"]
