"""Train dragoman-mini on a CPU and write its model folder.

    python -m tools.mini.train TARGET [--steps N | --seconds S]

Needs torch (`uv pip install torch`) and the extras `local` and `export`. `--steps` with the same seed gives the same
model on the same machine and versions; `--seconds` fits the schedule to a time instead. TARGET/weights.safetensors
holds the float32 weights, also during training, and `--resume` starts from them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.local_engine.mini import FOLDER

from .corpus import Corpus, load_corpus
from .plan import Plan
from .vocabulary import END_ID, SIZE, learn_tokenizer, tokenizer_config

if TYPE_CHECKING:
    from dragoman.local_engine.export.spec import ModelSpec

__all__ = ["main", "mini_spec", "train"]

WEIGHTS = "weights.safetensors"
LENGTH = 2048


def train(target: Path, plan: Plan, corpus: Corpus | None = None, *, resume: bool = False) -> Path:
    """Write the model folder `target` and return its model file. Raises ExportError if it holds a model already.

    `corpus` may be a part of the corpus; the tokenizer always learns from the whole.
    """
    from dragoman.local_engine.export.decoder_graph import ExportOptions
    from dragoman.local_engine.export.exporter import write_model
    from dragoman.local_engine.export.spec import ExportError
    from dragoman.local_engine.export.weights import write_safetensors

    from .learning import learn

    if (target / "model.onnx").exists():
        raise ExportError(f"{target / 'model.onnx'} exists; name an empty folder")
    target.mkdir(parents=True, exist_ok=True)
    tokenizer = learn_tokenizer(load_corpus())
    spec = mini_spec()
    begin = target if resume else None
    weights = learn(
        corpus or load_corpus(), tokenizer, spec, plan, lambda some: write_safetensors(some, target / WEIGHTS), begin
    )
    write_safetensors(weights, target / WEIGHTS)
    tokenizer.save(str(target / "tokenizer.json"), pretty=False)
    (target / "tokenizer_config.json").write_text(tokenizer_config(), "utf-8")
    for name in ("chat_template.jinja", "generation_config.json"):
        shutil.copyfile(FOLDER / name, target / name)
    return write_model(spec, weights, target, ExportOptions("int8", "gqa", LENGTH), lambda part: None)


def mini_spec() -> ModelSpec:
    """The architecture, with 0.98 million parameters. The first token of the vocabulary ends a turn."""
    from dragoman.local_engine.export.spec import ModelSpec

    return ModelSpec(
        architecture="llama",
        hidden=128,
        layers=4,
        heads=4,
        kv_heads=2,
        head_dim=32,
        intermediate=384,
        vocab=SIZE,
        max_positions=LENGTH,
        tied=True,
        eos=(END_ID,),
    )


def main() -> None:
    usual = Plan()
    parser = argparse.ArgumentParser(prog="python -m tools.mini.train", description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--steps", type=int, default=usual.steps)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--rate", type=float, default=usual.rate)
    parser.add_argument("--threads", type=int, default=usual.threads)
    parser.add_argument("--resume", action="store_true", help="begin with TARGET/weights.safetensors")
    given = parser.parse_args()
    missing = [name for name in ("torch", "onnx", "tokenizers") if find_spec(name) is None]
    if missing:
        sys.exit(f"training needs {', '.join(missing)}: uv pip install torch '.[local,export]'")
    plan = Plan(given.steps, given.seconds, given.seed, given.rate, given.threads)
    print(train(given.target, plan, resume=given.resume))


if __name__ == "__main__":
    main()
