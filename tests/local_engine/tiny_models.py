"""Tiny models with random weights, the same on every machine, and the prompts of the golden tokens."""

from __future__ import annotations

from pathlib import Path

from dragoman.local_engine.export.decoder_graph import ExportOptions, Layout
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.export.spec import ModelSpec, RopeScaling

END = 256
SEED = 12
NEW_TOKENS = 32
LENGTH = 192
LLAMA3 = RopeScaling("llama3", 8.0, 1.0, 4.0, 32)

SPECS: dict[str, ModelSpec] = {
    "llama": ModelSpec("llama", 64, 2, 4, 2, 16, 96, 272, LENGTH, rope_scaling=LLAMA3, eos=(END,)),
    "qwen2": ModelSpec("qwen2", 64, 2, 4, 2, 16, 96, 272, LENGTH, attention_bias=True, tied=True, eos=(END,)),
    "qwen3": ModelSpec("qwen3", 64, 2, 4, 1, 32, 96, 272, LENGTH, rope_theta=1e6, qk_norm=True, eos=(END,)),
    "mistral": ModelSpec("mistral", 64, 2, 4, 2, 32, 96, 272, LENGTH, rope_theta=3e5, eos=(END,)),
    "granite": ModelSpec(
        *("granite", 64, 2, 4, 2, 16, 96, 272, LENGTH),
        embedding_scale=0.5,
        residual_scale=0.8,
        attention_scale=0.2,
        logit_divisor=2.0,
        eos=(END,),
    ),
}
PROMPTS: list[list[int]] = [
    list(text.encode())
    for text in (
        "a",
        "Hi",
        "The dragoman stands between two courts and speaks for both.",
        "Grüß Gott, 你好, ¿qué tal?",
        "0123456789" * 10,
    )
]


def export_tiny_model(
    target: Path, name: str, precision: Precision = "fp32", layout: Layout = "gqa", *, all_logits: bool = False
) -> Path:
    """Export one of SPECS into a folder; return the folder."""
    options = ExportOptions(precision, layout, LENGTH, all_logits=all_logits)
    export_random_model(SPECS[name], target, options, SEED)
    return target
