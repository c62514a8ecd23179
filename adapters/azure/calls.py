"""The parts that calls of all Azure protocols share.

They are the API version in the query, the header for parameters that the API does not define, and the header that names
a deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dragoman.adapters.api_version import check_api_version
from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.edits import Edits
from dragoman.adapters.extras import EXTRA_PARAMETERS, Extras, is_from_reply, list_inner_extras, read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, format_path, lookup
from dragoman.adapters.request_properties import list_siblings, load_annotations
from dragoman.adapters.suggestions import find_nearest
from dragoman.adapters.validation import Validator

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


def apply_extras_header(body: JsonObject, rules: Validator, call: Call, ctx: Context, *, inside: bool = False) -> None:
    """Drop or keep the keys of a client's body that the API does not define, as its header says.

    `inside` says whether to look inside the body's values too; keys of answers that come back stay. Raises Fault
    `extra_parameter` if the header says `error`, or if there is none.
    """
    known = load_annotations(rules.name, rules.profile)
    extras: list[Path] = [(name,) for name in body if name not in rules.known]
    if inside:
        extras += [path for path in list_inner_extras(body, known) if not is_from_reply(body, path)]
    choice = read_extra_parameters(call.headers) or "error"
    if not extras or choice == "pass-through":
        return
    if choice == "error":
        named = [format_path(path)[:_SHOWN] for path in extras[:_NAMED]]
        more = f" and {len(extras) - _NAMED} more" if len(extras) > _NAMED else ""
        text = (
            f"Extra parameters {named}{more} are not allowed when extra-parameters is not set or set to be 'error'. "
            f"Set extra-parameters to 'pass-through' to pass to the model.{_suggest_names(extras[:_NAMED], known)}"
        )
        raise Fault("extra_parameter", text, extras[0], lookup(body, extras[0]), code="unknown_parameter")
    edits = Edits(body)
    for path in extras:
        ctx.receipt.record_drop(path, "not a parameter of this API, and extra-parameters says drop")
        edits.remove(path)


def _suggest_names(extras: Iterable[Path], known: Iterable[Path]) -> str:
    """Return a question for each name that is similar to a known one."""
    found = ((path, find_nearest(str(path[-1])[:_SHOWN], list_siblings(path, known))) for path in extras)
    return "".join(f" Did you mean {close[0]} by {format_path(path)[:_SHOWN]}?" for path, close in found if close)


def choose_extras(ctx: Context) -> Extras:
    """Decide which extra parameters a provider gets: all of them if the client's header says `pass-through`."""
    return "keep-all" if read_extra_parameters(ctx.call.headers) == "pass-through" else "keep"


def create_call_maker(path: str) -> Callable[[JsonObject, Context, bool], Call]:
    """Create the `make_call` of a protocol with that path."""

    def make_call(body: JsonObject, ctx: Context, has_extras: bool) -> Call:
        headers = {}
        if has_extras:
            headers[EXTRA_PARAMETERS] = "pass-through"
        if ctx.target.deployment:
            headers[DEPLOYMENT] = ctx.target.deployment
        return Call("POST", path, body, {"api-version": ctx.target.api_version or DEFAULT_API_VERSION}, headers)

    return make_call
