"""The anthropic dialect: Anthropic's Messages API, of which the hub form of Messages is a copy."""

from __future__ import annotations

from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.dialect import Dialect, prefix
from dragoman.adapters.messages.called import messages_called
from dragoman.adapters.messages.headers import VERSION
from dragoman.adapters.messages.served import messages_served
from dragoman.adapters.messages.versions import VERSIONS
from dragoman.adapters.rate_headers import ANTHROPIC_RATE_HEADERS

from .models import INFORMATION
from .providers import BASE_ADDRESS, ENVIRONMENT, MODEL_LIST, VENDORS

__all__ = ["DIALECT"]

_PATH = "/v1/messages"
_LEFT = tuple(
    f"anthropic-ratelimit-{unit}-{what}"
    for unit in ("requests", "tokens", "input-tokens", "output-tokens")
    for what in ("limit", "remaining", "reset")
)
"""What the provider's limits leave; what dragoman's own limits leave the client replaces it."""

DIALECT = Dialect(
    name="anthropic",
    auth={"x-api-key": {"x-api-key": "{}"}, "bearer": {"Authorization": "Bearer {}"}},
    served=messages_served("anthropic"),
    called=messages_called(ReplyRules("anthropic"), lambda _: _PATH),
    default_protocols=("messages",),
    paths={
        "messages": prefix("anthropic", _PATH),
        "count_tokens": prefix("anthropic", f"{_PATH}/count_tokens"),
    },
    information=INFORMATION,
    forwarded=_LEFT,
    rate_headers=ANTHROPIC_RATE_HEADERS,
    headers={VERSION: VERSIONS[0]},
    request_id_header="request-id",
    base_address=BASE_ADDRESS,
    settings=frozenset({"api_version"}),
    environment=ENVIRONMENT,
    vendors=VENDORS,
    model_list=MODEL_LIST,
)
