"""transformers' generate for `engine.py`, in this process or in one of its own.

`python _transformers.py FOLDER` generates once for each line that it reads, and writes a JSON object: the number of
`tokens`, and the seconds `cpu` and `wall`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from _work import PROMPT, TOKENS, make_prompt

__all__ = ["load_generate", "start_process"]


def load_generate(folder: Path) -> Callable[[int], int]:
    """Load the model; return a function that runs some streams and counts the tokens. Raises ImportError."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def generate(streams: int) -> int:
        ids = torch.tensor([make_prompt(number) for number in range(streams)])
        made = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=TOKENS,
            min_new_tokens=TOKENS,
            eos_token_id=None,
            pad_token_id=0,
        )
        return int(made.shape[1] - PROMPT) * streams

    return generate


@contextmanager
def start_process(folder: Path) -> Iterator[Callable[[], Any]]:
    """Start a process without large pages; yield a function that runs one stream there and returns its report."""
    environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    command = [sys.executable, __file__, str(folder)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) as process:
        assert process.stdin is not None and process.stdout is not None
        requests, replies = process.stdin, process.stdout

        def ask() -> Any:
            requests.write("\n")
            requests.flush()
            return json.loads(replies.readline())

        try:
            yield ask
        finally:
            requests.close()


def main() -> None:
    generate = load_generate(Path(sys.argv[1]))
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        tokens = generate(1)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        print(json.dumps({"tokens": tokens, **spent}), flush=True)


if __name__ == "__main__":
    main()
