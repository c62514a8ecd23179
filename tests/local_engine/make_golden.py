"""Write the golden tokens: the greedy output of transformers for the weights of `tiny_models.SPECS`.

Run it from the checkout, with torch and transformers installed:

    PYTHONPATH=.:tests/local_engine python tests/local_engine/make_golden.py

It prints the smallest distance between the logits of the two most likely tokens. If it is below 1e-3, another machine
could select the other token; then use another seed.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tiny_models import NEW_TOKENS, PROMPTS, SEED, SPECS

from dragoman.local_engine.export.exporter import hf_config
from dragoman.local_engine.export.weights import RandomWeights, write_safetensors

if TYPE_CHECKING:
    from transformers import GenerationMixin


def load_reference(name: str, folder: Path) -> GenerationMixin:
    """Load a spec's model with transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(hf_config(SPECS[name])), "utf-8")
    write_safetensors(RandomWeights(SPECS[name], SEED), folder / "model.safetensors")
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def generate_greedily(model: GenerationMixin, prompt: list[int], count: int) -> tuple[list[int], float]:
    """Generate tokens, ignoring end tokens; return them and the smallest distance."""
    import torch

    made = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        do_sample=False,
        max_new_tokens=count,
        min_new_tokens=count,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    gaps = [float(step.topk(2).values.diff().abs()) for step in made.logits]
    return made.sequences[0, len(prompt) :].tolist(), min(gaps)


def main() -> None:
    for name in SPECS:
        with tempfile.TemporaryDirectory() as folder:
            model = load_reference(name, Path(folder))
            made = [generate_greedily(model, prompt, NEW_TOKENS) for prompt in PROMPTS]
        file = Path(__file__).parent / "golden" / f"{name}.json"
        file.write_text(json.dumps({"seed": SEED, "tokens": [tokens for tokens, _ in made]}) + "\n", "utf-8")
        print(f"{name}: smallest distance {min(gap for _, gap in made):.2e}")


if __name__ == "__main__":
    main()
