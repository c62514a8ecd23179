"""The command `export`: model folders for the local engine."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from .options import exit_with_error

__all__ = ["export"]

Precision: TypeAlias = Literal["fp32", "fp16", "int8", "int4", "int8-fp16", "int4-fp16"]
Layout: TypeAlias = Literal["gqa", "concat"]


def export(
    source: Annotated[Path, typer.Argument(help="A folder with config.json, tokenizer.json and *.safetensors.")],
    target: Annotated[Path, typer.Argument(help="The folder to write; it must not contain a model.")],
    precision: Annotated[
        Precision,
        typer.Option(help="fp32; int8, int4: weights in blocks of 32; for CUDA fp16, int8-fp16, int4-fp16."),
    ] = "int8",
    layout: Annotated[
        Layout, typer.Option(help="gqa, which the engine can batch; concat, standard operators for other runtimes.")
    ] = "gqa",
    length: Annotated[int, typer.Option(min=2, help="The longest context to export, in tokens.")] = 32768,
    all_logits: Annotated[
        bool, typer.Option("--all-logits", help="Export logits for every position, which onnxruntime-genai needs.")
    ] = False,
) -> None:
    """Export a model to a folder that the local engine serves. It may be a Llama, Mistral, Qwen2, Qwen3 or Granite."""
    if importlib.util.find_spec("onnx") is None:
        exit_with_error("onnx is not installed; run in the checkout: uv pip install '.[export]'")
    from rich.console import Console
    from rich.progress import Progress

    from dragoman.local_engine.export.decoder_graph import ExportOptions
    from dragoman.local_engine.export.exporter import export_folder
    from dragoman.local_engine.export.spec import ExportError, read_spec

    options = ExportOptions(precision, layout, length, all_logits)
    try:
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("exporting", total=read_spec(source).layers + 2)
            file = export_folder(
                source, target, options, lambda part: progress.update(task, advance=1, description=part)
            )
    except (ExportError, OSError) as error:
        exit_with_error(str(error))
    size = sum(path.stat().st_size for path in target.iterdir())
    print(f"wrote {file}: {precision}, {layout}, {size / 1e6:.1f} MB with its tokenizer")
