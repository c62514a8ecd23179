"""The model-folder contract. Nothing is ever downloaded, and nothing is loaded here.

A folder holds an ONNX graph and `tokenizer.json`, in one of these arrangements:

    genai_config.json + the graph that it names     onnxruntime-genai, Foundry Local, `dragoman export`
    onnx/model*.onnx + config.json                  transformers.js
    model.onnx + config.json                        optimum, sentence-transformers

Sizes are read from the graph; the JSON files give only what a graph leaves open or cannot tell: where texts end,
how long a context may be, which template conversations take. `dragoman.json` beside them overrides: `file`, `context`,
`eos_token_id`, `pooling` (mean, cls, last), `normalize`, and what the layers above read (`settings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from .graph import GraphError, read_graph
from .places import FolderError, check_external, inside, read_json, read_text
from .ports import Decoder, Encoder, Hints, read_ports

__all__ = ["ModelFolder", "Pooling", "open_folder"]

Pooling: TypeAlias = Literal["mean", "cls", "last"]

TOKENIZER_LIMIT = 200_000_000
DEFAULT_CONTEXT = 4096
MOST_CONTEXT = 1 << 24
KNOWN_OVERRIDES = {"file", "context", "eos_token_id", "pooling", "normalize", "tools", "reasoning", "template", "name"}
NAMES: dict[str, tuple[str, ...]] = {
    "cpu": ("", "_quantized", "_int8", "_q8", "_uint8", "_q4", "_bnb4", "_fp16", "_q4f16"),
    "cuda": ("_fp16", "", "_q4f16", "_q4", "_quantized", "_int8", "_q8", "_uint8", "_bnb4"),
}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder that can be served. `context` is the longest text in tokens; `eos` ends one; `template` is Jinja."""

    path: Path
    file: Path
    tokenizer: Path
    ports: Decoder | Encoder
    context: int
    eos: frozenset[int] = frozenset()
    bos: int | None = None
    template: str | None = None
    pooling: Pooling = "mean"
    normalize: bool = True
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def open_folder(path: Path, device: Literal["cpu", "cuda"] = "cpu") -> ModelFolder:
    """Judge a folder, or the folder around an `.onnx` file. Raises FolderError."""
    if not path.exists():
        raise FolderError(f"{path} does not exist; models are never downloaded, so name a folder that is there")
    folder, named = (path, None) if path.is_dir() else (_home(path), path)
    settings = read_json(folder, "dragoman.json")
    unknown = set(settings) - KNOWN_OVERRIDES
    if unknown:
        known = ", ".join(sorted(KNOWN_OVERRIDES))
        raise FolderError(f"{folder / 'dragoman.json'}: {', '.join(sorted(unknown))} is not known; known are {known}")
    genai = _section(read_json(folder, "genai_config.json"), "model")
    decoder = _section(genai, "decoder")
    file = _model_file(folder, named, settings, decoder, device)
    tokenizer = inside(folder, "tokenizer.json")
    if tokenizer.stat().st_size > TOKENIZER_LIMIT:
        raise FolderError(f"{tokenizer} has more than {TOKENIZER_LIMIT} bytes")
    try:
        graph = read_graph(file)
    except GraphError as error:
        raise FolderError(str(error)) from None
    check_external(file, graph)
    ports = read_ports(file, graph, _hints(decoder, genai, read_json(folder, "config.json")))
    return _described(folder, file, tokenizer, ports, settings, genai)


def _home(file: Path) -> Path:
    if file.suffix != ".onnx":
        raise FolderError(f"{file} is neither a folder nor an .onnx file")
    return file.parent.parent if file.parent.name == "onnx" else file.parent


def _section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = config.get(name, {})
    return found if isinstance(found, dict) else {}


def _hints(decoder: Mapping[str, Any], genai: Mapping[str, Any], config: Mapping[str, Any]) -> Hints:
    names = {**_section(decoder, "inputs"), **_section(decoder, "outputs")}
    text = _section(config, "text_config") or config
    heads, hidden = text.get("num_attention_heads"), text.get("hidden_size")
    width = hidden // heads if isinstance(hidden, int) and isinstance(heads, int) and heads > 0 else None
    return Hints(
        {key: value for key, value in names.items() if _is_pattern(value)},
        heads=_number(decoder.get("num_key_value_heads"), text.get("num_key_value_heads"), heads),
        width=_number(decoder.get("head_size"), text.get("head_dim"), width),
        hidden=_number(text.get("hidden_size")),
        vocab=_number(genai.get("vocab_size"), text.get("vocab_size")),
    )


def _number(*values: object) -> int | None:
    return next((value for value in values if isinstance(value, int)), None)


def _is_pattern(name: object) -> bool:
    return isinstance(name, str) and name.count("%") == 1 and "%d" in name


def _model_file(
    folder: Path, named: Path | None, settings: Mapping[str, Any], decoder: Mapping[str, Any], device: str
) -> Path:
    if named is not None:
        return inside(folder, str(named.relative_to(folder)))
    for given in (settings.get("file"), decoder.get("filename")):
        if isinstance(given, str):
            return inside(folder, given)
    for name in _candidates(folder, device):
        return inside(folder, name)
    others = sorted(
        str(file.relative_to(folder)) for pattern in ("*.onnx", "onnx/*.onnx") for file in folder.glob(pattern)
    )
    if len(others) == 1:
        return inside(folder, others[0])
    if others:
        hint = f'name one of {", ".join(others[:8])} in dragoman.json, as {{"file": "{others[0]}"}}'
    elif any(folder.glob("*.safetensors")):
        hint = f"it holds safetensors: `dragoman export {folder} TARGET` makes a folder that can be served"
    else:
        hint = "expected are model.onnx, onnx/model.onnx, or what genai_config.json names"
    raise FolderError(f"{folder} holds no model file; {hint}")


def _candidates(folder: Path, device: str) -> Iterator[str]:
    for stem in ("model", "onnx/model", "onnx/decoder_model_merged", "decoder_model_merged"):
        for ending in NAMES[device]:
            if (folder / f"{stem}{ending}.onnx").exists():
                yield f"{stem}{ending}.onnx"


def _described(
    folder: Path,
    file: Path,
    tokenizer: Path,
    ports: Decoder | Encoder,
    settings: Mapping[str, Any],
    genai: Mapping[str, Any],
) -> ModelFolder:
    config, generation = read_json(folder, "config.json"), read_json(folder, "generation_config.json")
    words = read_json(folder, "tokenizer_config.json")
    sources = [settings] if "eos_token_id" in settings else [genai, generation, config]
    pooling, normalize = _pooling(folder, settings)
    return ModelFolder(
        path=folder,
        file=file,
        tokenizer=tokenizer,
        ports=ports,
        context=_context(folder, settings, genai, config),
        eos=frozenset(token for source in sources for token in _ids(source.get("eos_token_id"))),
        bos=next(
            (source["bos_token_id"] for source in (genai, config) if isinstance(source.get("bos_token_id"), int)), None
        ),
        template=_template(folder, words),
        pooling=pooling,
        normalize=normalize,
        tokenizer_config=words,
        settings=settings,
    )


def _ids(value: object) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [token for token in values if isinstance(token, int) and token >= 0]


def _context(folder: Path, settings: Mapping[str, Any], genai: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    text = _section(config, "text_config") or config
    found = settings.get("context") or genai.get("context_length") or text.get("max_position_embeddings")
    found = DEFAULT_CONTEXT if found is None else found
    if not isinstance(found, int) or not 2 <= found <= MOST_CONTEXT:
        raise FolderError(
            f"{folder} gives the context length {found!r}; a whole number from 2 to {MOST_CONTEXT} is needed"
        )
    return found


def _template(folder: Path, words: Mapping[str, Any]) -> str | None:
    """chat_template.jinja, else tokenizer_config.json's (the one called default, where there are several)."""
    text = read_text(folder, "chat_template.jinja")
    if text is not None:
        return text
    found = words.get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None


def _pooling(folder: Path, settings: Mapping[str, Any]) -> tuple[Pooling, bool]:
    """How token vectors become one: dragoman.json, else what sentence-transformers wrote, else the mean."""
    modes = read_json(folder, "1_Pooling/config.json")
    flags: tuple[tuple[str, Pooling], ...] = (("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last"))
    found = settings.get("pooling", next((word for flag, word in flags if modes.get(flag)), "mean"))
    if found not in ("mean", "cls", "last"):
        raise FolderError(f'{folder / "dragoman.json"}: pooling "{found}" is not one of mean, cls, last')
    return cast(Pooling, found), bool(settings.get("normalize", True))
