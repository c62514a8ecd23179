"""Names of variables for the secrets that are written in a LiteLLM configuration."""

from __future__ import annotations

from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import Document

from .values import find_reference
from .vendors import name_key_variable, parse_vendor

__all__ = ["SecretVariables"]


class SecretVariables:
    """Equal secrets share a variable. None gets the name of a variable that the file reads anyway: it holds another
    secret, which would then be sent to the wrong provider."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._secrets: dict[str, str | None] = dict.fromkeys(_list_variables(document))

    def name(self, path: Path, wanted: str) -> str:
        """The variable for the secret at a path: the wanted name, with a number if it is taken."""
        node = self._document.find(path)
        secret = "" if node is None or node.value is None else str(node.value)
        if not secret or find_reference(secret) is not None:
            return wanted
        number, variable = 1, wanted
        while self._secrets.setdefault(variable, secret) != secret:
            number += 1
            variable = f"{wanted}_{number}"
        return variable


def _list_variables(document: Document) -> set[str]:
    """The variables that the file reads: by os.environ/NAME, or because a deployment has no key."""
    references = (find_reference(text) for _, _, text in document.list_texts())
    return {name for name in references if name is not None} | _list_key_variables(document)


def _list_key_variables(document: Document) -> set[str]:
    found = set()
    for position, _ in enumerate(document.items("model_list")):
        path: Path = ("model_list", position, "litellm_params")
        requested = parse_vendor(document.text(*path, "model") or "")
        vendor = document.text(*path, "custom_llm_provider") or (requested[0] if requested else "")
        if vendor and document.find((*path, "api_key")) is None:
            found.add(name_key_variable(vendor))
    return found
