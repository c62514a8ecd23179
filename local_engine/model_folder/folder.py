"""Model folders: which files a folder must contain, and what they say. Nothing is downloaded or loaded here.

A folder contains an ONNX graph and `tokenizer.json`, in one of these layouts:

    genai_config.json + the graph that it names     onnxruntime-genai, Foundry Local, `dragoman export`
    onnx/model*.onnx + config.json                  transformers.js
    model.onnx + config.json                        optimum, sentence-transformers

Sizes come from the graph. The JSON files supply what the graph does not: sizes it leaves open, end tokens, the context
length, the chat template. `dragoman.json` in the same folder overrides `file`, `context`, `eos_token_id`, `pooling`
(mean, cls, last), `normalize` and `sampling`; its other keys are read by the modules that use them (`settings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from .files import FolderError, check_external_data, read_json, read_text, resolve_file
from .onnx_outline import GraphError, read_outline
from .sampling_defaults import read_sampling_defaults
from .signature import DecoderSignature, EncoderSignature, SignatureHints, read_signature

__all__ = ["ModelFolder", "Pooling", "open_folder"]

Pooling: TypeAlias = Literal["mean", "cls", "last"]

TOKENIZER_LIMIT = 200_000_000
DEFAULT_CONTEXT = 4096
MAX_CONTEXT = 1 << 24
KNOWN_OVERRIDES = frozenset(
    ["file", "context", "eos_token_id", "pooling", "normalize", "sampling", "tools", "reasoning", "template", "name"]
)
MODEL_FILE_SUFFIXES: dict[str, tuple[str, ...]] = {
    "cpu": ("", "_quantized", "_int8", "_q8", "_uint8", "_q4", "_bnb4", "_fp16", "_q4f16"),
    "cuda": ("_fp16", "", "_q4f16", "_q4", "_quantized", "_int8", "_q8", "_uint8", "_bnb4"),
}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder that can be served.

    `context` is the context length in tokens, `eos` the end tokens, `template` the Jinja source of the chat template,
    `sampling` what a request that leaves these parameters open is sampled with.
    """

    path: Path
    file: Path
    tokenizer: Path
    signature: DecoderSignature | EncoderSignature
    context: int
    eos: frozenset[int] = frozenset()
    bos: int | None = None
    template: str | None = None
    pooling: Pooling = "mean"
    normalize: bool = True
    sampling: Mapping[str, Any] = field(default_factory=dict)
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def open_folder(path: Path, device: Literal["cpu", "cuda"] = "cpu") -> ModelFolder:
    """Check a model folder, or the folder of an `.onnx` file. Raises FolderError."""
    if not path.exists():
        raise FolderError(f"{path} does not exist; models are never downloaded, so name an existing folder")
    folder, named = (path, None) if path.is_dir() else (_folder_of_file(path), path)
    settings = read_json(folder, "dragoman.json")
    unknown = set(settings) - KNOWN_OVERRIDES
    if unknown:
        known = ", ".join(sorted(KNOWN_OVERRIDES))
        raise FolderError(f"{folder / 'dragoman.json'}: unknown key {', '.join(sorted(unknown))}; the keys are {known}")
    genai = _read_section(read_json(folder, "genai_config.json"), "model")
    decoder = _read_section(genai, "decoder")
    file = _find_model_file(folder, named, settings, decoder, device)
    tokenizer = resolve_file(folder, "tokenizer.json")
    if tokenizer.stat().st_size > TOKENIZER_LIMIT:
        raise FolderError(f"{tokenizer} is larger than {TOKENIZER_LIMIT} bytes")
    try:
        graph = read_outline(file)
    except GraphError as error:
        raise FolderError(str(error)) from None
    check_external_data(file, graph)
    signature = read_signature(file, graph, _read_hints(decoder, genai, read_json(folder, "config.json")))
    return _build_folder(folder, file, tokenizer, signature, settings, genai)


def _folder_of_file(file: Path) -> Path:
    if file.suffix != ".onnx":
        raise FolderError(f"{file} is neither a folder nor an .onnx file")
    return file.parent.parent if file.parent.name == "onnx" else file.parent


def _read_section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = config.get(name, {})
    return found if isinstance(found, dict) else {}


def _read_hints(decoder: Mapping[str, Any], genai: Mapping[str, Any], config: Mapping[str, Any]) -> SignatureHints:
    names = {**_read_section(decoder, "inputs"), **_read_section(decoder, "outputs")}
    text = _read_section(config, "text_config") or config
    heads, hidden = text.get("num_attention_heads"), text.get("hidden_size")
    width = hidden // heads if isinstance(hidden, int) and isinstance(heads, int) and heads > 0 else None
    return SignatureHints(
        {key: value for key, value in names.items() if _is_pattern(value)},
        heads=_first_integer(decoder.get("num_key_value_heads"), text.get("num_key_value_heads"), heads),
        width=_first_integer(decoder.get("head_size"), text.get("head_dim"), width),
        hidden=_first_integer(text.get("hidden_size")),
        vocab=_first_integer(genai.get("vocab_size"), text.get("vocab_size")),
    )


def _first_integer(*values: object) -> int | None:
    return next((value for value in values if isinstance(value, int)), None)


def _is_pattern(name: object) -> bool:
    return isinstance(name, str) and name.count("%") == 1 and "%d" in name


def _find_model_file(
    folder: Path, named: Path | None, settings: Mapping[str, Any], decoder: Mapping[str, Any], device: str
) -> Path:
    if named is not None:
        return resolve_file(folder, str(named.relative_to(folder)))
    for given in (settings.get("file"), decoder.get("filename")):
        if isinstance(given, str):
            return resolve_file(folder, given)
    for name in _list_candidates(folder, device):
        return resolve_file(folder, name)
    others = sorted(
        str(file.relative_to(folder)) for pattern in ("*.onnx", "onnx/*.onnx") for file in folder.glob(pattern)
    )
    if len(others) == 1:
        return resolve_file(folder, others[0])
    if others:
        hint = f'name one of {", ".join(others[:8])} in dragoman.json, as {{"file": "{others[0]}"}}'
    elif any(folder.glob("*.safetensors")):
        hint = (
            f"it contains safetensors: `dragoman export {folder} TARGET` converts them to a folder that can be served"
        )
    else:
        hint = "expected model.onnx, onnx/model.onnx, or the file that genai_config.json names"
    raise FolderError(f"{folder} contains no model file; {hint}")


def _list_candidates(folder: Path, device: str) -> Iterator[str]:
    for stem in ("model", "onnx/model", "onnx/decoder_model_merged", "decoder_model_merged"):
        for suffix in MODEL_FILE_SUFFIXES[device]:
            if (folder / f"{stem}{suffix}.onnx").exists():
                yield f"{stem}{suffix}.onnx"


def _build_folder(
    folder: Path,
    file: Path,
    tokenizer: Path,
    signature: DecoderSignature | EncoderSignature,
    settings: Mapping[str, Any],
    genai: Mapping[str, Any],
) -> ModelFolder:
    config, generation = read_json(folder, "config.json"), read_json(folder, "generation_config.json")
    tokenizer_config = read_json(folder, "tokenizer_config.json")
    sources = [settings] if "eos_token_id" in settings else [genai, generation, config]
    pooling, normalize = _read_pooling(folder, settings)
    return ModelFolder(
        path=folder,
        file=file,
        tokenizer=tokenizer,
        signature=signature,
        context=_read_context(folder, settings, genai, config),
        eos=frozenset(token for source in sources for token in _read_token_ids(source.get("eos_token_id"))),
        bos=next(
            (source["bos_token_id"] for source in (genai, config) if isinstance(source.get("bos_token_id"), int)), None
        ),
        template=_read_template(folder, tokenizer_config),
        pooling=pooling,
        normalize=normalize,
        sampling=read_sampling_defaults(folder, settings),
        tokenizer_config=tokenizer_config,
        settings=settings,
    )


def _read_token_ids(value: object) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [token for token in values if isinstance(token, int) and token >= 0]


def _read_context(
    folder: Path, settings: Mapping[str, Any], genai: Mapping[str, Any], config: Mapping[str, Any]
) -> int:
    text = _read_section(config, "text_config") or config
    found = settings.get("context") or genai.get("context_length") or text.get("max_position_embeddings")
    found = DEFAULT_CONTEXT if found is None else found
    if not isinstance(found, int) or not 2 <= found <= MAX_CONTEXT:
        raise FolderError(f"{folder} gives the context length {found!r}; it must be an integer from 2 to {MAX_CONTEXT}")
    return found


def _read_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str | None:
    """Read chat_template.jinja, else the template in tokenizer_config.json (of several, the one named default)."""
    text = read_text(folder, "chat_template.jinja")
    if text is not None:
        return text
    found = tokenizer_config.get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None


def _read_pooling(folder: Path, settings: Mapping[str, Any]) -> tuple[Pooling, bool]:
    """Read the pooling mode: from dragoman.json, else from sentence-transformers' 1_Pooling, else the mean."""
    modes = read_json(folder, "1_Pooling/config.json")
    flags: tuple[tuple[str, Pooling], ...] = (("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last"))
    found = settings.get("pooling", next((word for flag, word in flags if modes.get(flag)), "mean"))
    if found not in ("mean", "cls", "last"):
        raise FolderError(f'{folder / "dragoman.json"}: pooling "{found}" is not one of mean, cls, last')
    return cast(Pooling, found), bool(settings.get("normalize", True))
