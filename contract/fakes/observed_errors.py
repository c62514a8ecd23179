"""Errors that real services send, each exactly as observed: `observed_errors` in the data of the dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.json_types import JsonObject
from dragoman.contract.placeholders import fill_placeholders

from .answers import ModelRequest
from .errors import build_json_reply, reason_phrase
from .wire import Reply

__all__ = ["OBSERVED_ERRORS", "ObservedError"]


@dataclass(frozen=True, slots=True)
class ObservedError:
    """One observed error. `template` has its status and headers, and a JSON `body` or a `text`. `param` is the
    parameter that the error names, empty if it names none."""

    dialect: str
    description: str
    template: JsonObject
    param: str = ""

    def build_reply(self, param: str) -> Reply:
        status = self.template["status"]
        values = {"param": param, "phrase": reason_phrase(status)}
        headers = dict(self.template.get("headers", {}))
        if "text" in self.template:
            return Reply(status, headers, (str(fill_placeholders(self.template["text"], values)).encode(),))
        return build_json_reply(status, fill_placeholders(self.template["body"], values), headers)

    def __call__(self, request: ModelRequest) -> Reply:
        return self.build_reply(str(request.args.get("param", "")))


OBSERVED_ERRORS: Mapping[str, ObservedError] = {
    name: ObservedError(dialect, template["description"], template, template.get("param", ""))
    for dialect in DIALECTS
    for name, template in load_dialect(dialect).observed_errors.items()
}
