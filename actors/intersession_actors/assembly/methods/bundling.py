"""The method `bundles.make`: a part of the log as one file for an auditor (BUNDLE-8)."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from intersession_actors.assembly.methods.debug import GatewayDebug
from intersession_actors.assembly.methods.params import BundleParams
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.hindsight.bundling import on_call
from intersession_actors.hindsight.forking import on_call as looking
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import BUNDLE
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import BundleFailed, CorruptEvent
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.proofs.signatures import PrivateKey


class GatewayBundles:
    """Bundles for the gateway's callers: the operator alone, since a bundle holds whole sessions.

    `cover` takes a checkpoint, so that all of a bundle is proven, and returns its position; `key` signs bundles.
    """

    def __init__(self, debug: GatewayDebug, *, cover: Callable[[], int], key: PrivateKey | None) -> None:
        self._debug = debug
        self._cover = cover
        self._key = key

    def make(self, call: Call, params: JsonMapping) -> Result:
        """Return a bundle, its content in base64, up to a limit."""
        given = read_arguments(BundleParams, params)
        position = self._cover()
        return dict(self._debug.ask(call, lambda view: self._made(view, given, position)))

    def _made(self, view: looking.View, given: BundleParams, position: int) -> Result:
        with tempfile.TemporaryDirectory(prefix="intersession-bundle-") as folder:
            made = made_in(Path(folder), view, given, key=self._key, head=position)
            if made.size > BUNDLE.most:
                raise ToolRefused(
                    "too_large",
                    f"the bundle has {made.size} bytes, at most {BUNDLE.most} are handed out here: ask for less, or make it "
                    "beside the log with `intersession bundle`",
                )
            return {**made.value, "content": base64.b64encode(made.path.read_bytes()).decode()}


def made_in(
    folder: Path,
    view: looking.View,
    given: BundleParams,
    *,
    key: PrivateKey | None,
    head: int | None = None,
) -> on_call.BundleMade:
    """Make a bundle in a folder, by the parameters of a method. `head` is the place where none is given.

    Raises:
        ToolRefused: as `make_bundle`; what is damaged is `unreadable`.
    """
    at = head if given.at is None and given.until is None else given.at
    try:
        return on_call.make_bundle(view, _wanted(view, given, at), folder, key=key)
    except BundleFailed as error:
        raise ToolRefused("invalid_request", str(error)) from None
    except CorruptEvent as error:
        raise ToolRefused("unreadable", f"{error}; `intersession verify` shows all that is wrong") from None


def _wanted(view: looking.View, given: BundleParams, at: looking.At | None) -> on_call.BundleWanted:
    if given.verb is None:
        fields = msgspec.structs.asdict(given)
        everything = fields.pop("all")
        del fields["verb"], fields["arguments"]
        if given.arguments:
            raise invalid("arguments", "they belong to a verb, name one")
        return on_call.BundleWanted(**{**fields, "everything": everything, "at": at})
    if given.all or any((given.run, given.session, given.person, given.since, given.until)):
        raise invalid("verb", "an answer is bundled by itself, leave what else is named out")
    return on_call.wanted_for_answer(view, given.verb, given.arguments, at=at, redact=given.redact)
