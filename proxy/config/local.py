"""Checks of providers that run a model folder on this machine.

The readers of model folders are imported only if there is such a provider.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.local_engine import embedded

from .document import Document

if TYPE_CHECKING:
    from dragoman.local_engine.model_folder.folder import ModelFolder

__all__ = ["check_local", "resolve_model_folders"]

_DECODER_PROTOCOLS, _ENCODER_PROTOCOLS = ("chat", "completions"), ("embeddings",)


def resolve_model_folders(document: Document, folder: Path) -> None:
    """Make the paths of model folders absolute."""
    for name in document.mapping("providers"):
        path = ("providers", name, "model_dir")
        text, node = document.text(*path), document.find(path)
        if not text or node is None:
            continue
        try:
            node.value = str((folder / Path(text).expanduser()).absolute())
        except RuntimeError:
            message = "the home folder at the beginning of this path is unknown"
            document.add_problem(path, "unknown-home", message, hint="write the whole path")


def check_local(document: Document, name: str) -> None:
    """Add the problems of an `engine: local` provider: missing packages, a bad model folder, wrong protocols."""
    from dragoman.local_engine.model_folder.signature import DecoderSignature

    missing = embedded.missing_libraries()
    if missing:
        message = f"the engine local needs packages that are not installed: {', '.join(missing)}"
        document.add_problem(("providers", name, "engine"), "missing-extra", message, hint=f"run: {embedded.INSTALL}")
    folder = _open_folder(document, name)
    if folder is not None:
        _check_protocols(
            document, name, _DECODER_PROTOCOLS if isinstance(folder.signature, DecoderSignature) else _ENCODER_PROTOCOLS
        )


def _open_folder(document: Document, name: str) -> ModelFolder | None:
    """The opened model folder, or None if a problem was added."""
    from dragoman.local_engine.model_folder.files import FolderError
    from dragoman.local_engine.model_folder.folder import open_folder

    path = ("providers", name, "model_dir")
    node, given = document.find(path), document.text(*path)
    if node is not None and given is None:
        return None  # the value itself has a problem already
    try:
        return open_folder(embedded.embedded_folder() if given is None else Path(given), _read_device(document, name))
    except (FolderError, OSError) as error:
        message, at = str(error), path if node is not None else ("providers", name, "engine")
        if node is not None and node.raw is not None:
            message = message.replace(str(given), node.source_text)
        document.add_problem(at, "bad-model", message, expected="a folder with an ONNX model and its tokenizer.json")
        return None


def _check_protocols(document: Document, name: str, served: tuple[str, ...]) -> None:
    path = ("providers", name, "protocols")
    node = document.find(path)
    hint = f"write protocols: [{', '.join(served)}]"
    if node is None and served != _DECODER_PROTOCOLS:
        document.add_problem(path[:-1], "wrong-model", "this model only embeds texts", hint=hint, at_key=True)
    for i, item in enumerate(node.value if node is not None and isinstance(node.value, list) else ()):
        if isinstance(item.value, str) and item.value not in served:
            message = f"the engine does not serve {item.source_text} with this model"
            message += "; the proxy serves responses over chat" if item.value == "responses" else ""
            document.add_problem((*path, i), "wrong-model", message, expected=f"one of: {', '.join(served)}", hint=hint)


def _read_device(document: Document, name: str) -> Literal["cpu", "cuda"]:
    return "cuda" if document.text("providers", name, "device") == "cuda" else "cpu"
