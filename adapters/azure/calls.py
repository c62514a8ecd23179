"""The parts that calls of all Azure protocols share.

They are the API version in the query, the header for parameters that the API does not define, and the header that names
a deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from dragoman.adapters.api_version import check_api_version
from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.extras import EXTRA_PARAMETERS, read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.fit import Extras
from dragoman.adapters.suggestions import find_nearest
from dragoman.adapters.validation import Validator, load_validator

__all__ = [
    "DEFAULT_API_VERSION",
    "DEPLOYMENT",
    "apply_extras_header",
    "check_version",
    "choose_extras",
    "create_call_maker",
]

DEFAULT_API_VERSION = "2024-05-01-preview"
DEPLOYMENT = "azureml-model-deployment"

_NAMED = 10  # extra parameters in a message
_SHOWN = 100  # characters of each


def check_version(call: Call) -> None:
    """Check the `api-version` in the query of a client's call. Raises Fault if it is missing or has another form."""
    check_api_version(
        call.query.get("api-version"), f"{DEFAULT_API_VERSION} (an OpenAI client's base URL ends with /v1)"
    )


def apply_extras_header(body: JsonObject, rules: Validator, call: Call, ctx: Context) -> None:
    """Drop or keep the keys of a client's body that the API does not define, as its header says.

    Raises Fault `extra_parameter` if the header says `error`, or if there is none.
    """
    extras = [name for name in body if name not in rules.known]
    choice = read_extra_parameters(call.headers) or "error"
    if not extras or choice == "pass-through":
        return
    if choice == "error":
        named = [name[:_SHOWN] for name in extras[:_NAMED]]
        more = f" and {len(extras) - _NAMED} more" if len(extras) > _NAMED else ""
        text = (
            f"Extra parameters {named}{more} are not allowed when extra-parameters is not set or set to be 'error'. "
            f"Set extra-parameters to 'pass-through' to pass to the model.{_suggest_names(named, rules.known)}"
        )
        raise Fault("extra_parameter", text, (extras[0],), body[extras[0]], code="unknown_parameter")
    for name in extras:
        ctx.receipt.record_drop((name,), "not a parameter of this API, and extra-parameters says drop")
        del body[name]


def _suggest_names(extras: list[str], known: Collection[str]) -> str:
    """Return a question for each name that is similar to a known one."""
    found = ((name, find_nearest(name, known)) for name in extras)
    return "".join(f" Did you mean {close[0]} by {name}?" for name, close in found if close)


def choose_extras(ctx: Context) -> Extras:
    """Decide which extra parameters a provider gets: all of them if the client's header says `pass-through`."""
    return "keep-all" if read_extra_parameters(ctx.call.headers) == "pass-through" else "keep"


def create_call_maker(path: str, schema: str) -> Callable[[JsonObject, Context], Call]:
    """Create the `make_call` of a protocol: its path, and the name of the schema of its requests."""

    def make_call(body: JsonObject, ctx: Context) -> Call:
        headers = {}
        if not body.keys() <= load_validator(schema, ctx.profile).known:
            headers[EXTRA_PARAMETERS] = "pass-through"
        if ctx.target.deployment:
            headers[DEPLOYMENT] = ctx.target.deployment
        return Call("POST", path, body, {"api-version": ctx.target.api_version or DEFAULT_API_VERSION}, headers)

    return make_call
