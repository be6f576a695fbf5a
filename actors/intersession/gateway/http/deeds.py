"""The actions of the web debugger: a few methods, called with the scope of the caller's cookie or token."""

import msgspec
from litestar import Request, Response, post
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody

from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.scopes import all_scopes, needed_scope
from intersession.gateway.door import Door
from intersession.gateway.http.debugging import DeedName
from intersession.gateway.http.shield import CREDENTIAL, DOOR
from intersession.web.answers import declared, failed, refusal_response
from intersession.web.files import API
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonObject


class Deed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action: the name of a method, with its parameters."""

    method: DeedName
    params: JsonObject = msgspec.field(default_factory=JsonObject)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The action's outcome; `result` is the method's answer."""

    ok: bool
    result: JsonObject


@post(
    f"{API}do",
    status_code=200,
    operation_id="debugDo",
    summary="Hold or release an exchange, make or delete a fork, try a text or a run again",
    responses={
        200: ResponseSpec(data_container=Done, description="It was done.", generate_examples=False),
        **declared(400, 401, 403, 408, 413, 415, 421, 429, 503),
    },
    raises=[],
)
async def do(data: JSONBody[Deed], request: Request[object, object, State]) -> Response[object]:
    """Carry out a page's action, with the caller's rights."""
    door: Door = request.scope["state"][DOOR]
    credential: Credential = request.scope["state"][CREDENTIAL]
    scope = needed_scope(data.method)
    if scope not in all_scopes(credential.scopes):
        return failed(403, "forbidden", f"missing scope: {scope}")
    try:
        result = await door.perform(credential, data.method, data.params)
    except ToolRefused as refused:
        return refusal_response(refused)
    return Response(Done(ok=True, result=result), status_code=200)
