"""What the calls of all Azure protocols have in common: the API version in the query, and the headers that say what
shall happen to parameters that the API does not define, and which deployment is meant."""

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
    """Raise Fault unless the client's query has a version of the right form."""
    check_api_version(
        call.query.get("api-version"), f"{DEFAULT_API_VERSION} (an OpenAI client's base URL ends with /v1)"
    )


def apply_extras_header(body: JsonObject, rules: Validator, call: Call, ctx: Context) -> None:
    """Refuse, drop or keep what a client's body has beyond the API, as its header says. Raises Fault."""
    extras = [name for name in body if name not in rules.known]
    choice = read_extra_parameters(call.headers) or "error"
    if not extras or choice == "pass-through":
        return
    if choice == "error":
        named = [name[:_SHOWN] for name in extras[:_NAMED]]
        more = f" and {len(extras) - _NAMED} more" if len(extras) > _NAMED else ""
        text = (
            f"Extra parameters {named}{more} are not allowed when extra-parameters is not set or set to be 'error'. "
            f"Set extra-parameters to 'pass-through' to pass to the model.{_meant(named, rules.known)}"
        )
        raise Fault("extra_parameter", text, (extras[0],), body[extras[0]], code="unknown_parameter")
    for name in extras:
        ctx.receipt.record_drop((name,), "not a parameter of this API, and extra-parameters says drop")
        del body[name]


def _meant(extras: list[str], known: Collection[str]) -> str:
    """A question for each name that comes close to a known one."""
    found = ((name, find_nearest(name, known)) for name in extras)
    return "".join(f" Did you mean {close[0]} by {name}?" for name, close in found if close)


def choose_extras(ctx: Context) -> Extras:
    """What to do with the extra parameters of a request to this provider."""
    return "keep-all" if read_extra_parameters(ctx.call.headers) == "pass-through" else "keep"


def create_call_maker(path: str, schema: str) -> Callable[[JsonObject, Context], Call]:
    """`make_call` of a protocol at that path, whose requests have the schema of that name."""

    def make_call(body: JsonObject, ctx: Context) -> Call:
        headers = {}
        if not body.keys() <= load_validator(schema, ctx.profile).known:
            headers[EXTRA_PARAMETERS] = "pass-through"
        if ctx.target.deployment:
            headers[DEPLOYMENT] = ctx.target.deployment
        return Call("POST", path, body, {"api-version": ctx.target.api_version or DEFAULT_API_VERSION}, headers)

    return make_call
