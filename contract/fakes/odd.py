"""Error forms that were seen in the field, each as it came: `odd_errors` in the dialects' data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.contract.dialects import DIALECTS, dialect
from dragoman.contract.values import filled

from .answers import Ask, Json
from .errors import json_reply, phrase
from .wire import Reply

__all__ = ["ODD", "Odd"]


@dataclass(frozen=True, slots=True)
class Odd:
    """One error form as it was seen: `param` is the parameter that the error blames, where it blames one."""

    dialect: str
    about: str
    template: Json
    param: str = ""

    def make(self, param: str) -> Reply:
        status = self.template["status"]
        values = {"param": param, "phrase": phrase(status)}
        headers = dict(self.template.get("headers", {}))
        if "text" in self.template:
            return Reply(status, headers, (str(filled(self.template["text"], values)).encode(),))
        return json_reply(status, filled(self.template["body"], values), headers)

    def __call__(self, ask: Ask) -> Reply:
        return self.make(str(ask.args.get("param", "")))


ODD: Mapping[str, Odd] = {
    name: Odd(owner, template["about"], template, template.get("param", ""))
    for owner in DIALECTS
    for name, template in dialect(owner).odd_errors.items()
}
