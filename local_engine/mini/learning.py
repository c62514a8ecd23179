"""The training itself, in torch: batches of conversations, two optimisers, one falling rate.

Matrices go by Muon, the embedding and the norms by AdamW. The loss is on what the model says, no other token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer
from torch.nn import functional

from dragoman.local_engine.export.spec import ModelSpec
from dragoman.local_engine.export.weights import SafetensorsFolder, Tensor

from .corpus import Corpus
from .dialogue import Dialogues
from .net import Net
from .plan import Plan
from .vocabulary import encode

__all__ = ["learn"]

POOL = 256
TOKENS_PER_BATCH = 2000
KEEP_EVERY = 60.0

Keep = Callable[[dict[str, Tensor]], None]


def learn(
    corpus: Corpus, tokenizer: Tokenizer, spec: ModelSpec, plan: Plan, keep: Keep, begin: Path | None
) -> dict[str, Tensor]:
    """The trained weights, float32, by the names that the export reads. `keep` gets them once a minute on the way.

    `begin` is a folder of safetensors to start from, instead of random weights.
    """
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    net = Net(spec)
    if begin is not None:
        stored = SafetensorsFolder(begin)
        net.load_state_dict({name.removeprefix("model."): torch.tensor(value) for name, value in stored.items()})
    _optimise(net, _batches(corpus, tokenizer, plan.seed), plan, keep)
    return _weights(net)


def _weights(net: Net) -> dict[str, Tensor]:
    return {f"model.{name}": value.detach().numpy() for name, value in net.state_dict().items()}


def _batches(corpus: Corpus, tokenizer: Tokenizer, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Without end: ids (batch, length), and the same with -100 wherever the model is not to learn the token."""
    source = Dialogues(corpus, seed)
    order = torch.Generator().manual_seed(seed)
    while True:
        pool = sorted((encode(tokenizer, source.draw()) for _ in range(POOL)), key=lambda pair: len(pair[0]))
        ready = list(_grouped(pool))
        for at in torch.randperm(len(ready), generator=order).tolist():
            yield _padded(ready[at])


def _grouped(pool: list[tuple[list[int], list[bool]]]) -> Iterator[list[tuple[list[int], list[bool]]]]:
    group: list[tuple[list[int], list[bool]]] = []
    for pair in pool:
        if group and (len(group) + 1) * len(pair[0]) > TOKENS_PER_BATCH:
            yield group
            group = []
        group.append(pair)
    yield group


def _padded(group: list[tuple[list[int], list[bool]]]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(ids) for ids, _ in group)
    ids = torch.zeros(len(group), longest, dtype=torch.long)
    labels = torch.full((len(group), longest), -100)
    for row, (tokens, said) in enumerate(group):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)] = torch.where(torch.tensor(said), ids[row, : len(tokens)], -100)
    return ids, labels


def _optimise(net: Net, source: Iterator[tuple[torch.Tensor, torch.Tensor]], plan: Plan, keep: Keep) -> None:
    optimisers = (
        torch.optim.Muon(net.matrices(), lr=plan.rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(net.others(), lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.0),
    )
    began = kept = time.monotonic()
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[loss]}"), TimeRemainingColumn())
    with Progress(*columns[:2], MofNCompleteColumn(), *columns[2:]) as progress:
        task = progress.add_task("training", total=None if plan.seconds else plan.steps, loss="")
        step, mean = 0, 0.0
        while (done := _done(step, time.monotonic() - began, plan)) < 1:
            loss = _step(
                net, optimisers, next(source), plan.rate * min(1.0, (step + 1) / 50, 1.05 * (1 - done) + 0.005)
            )
            step += 1
            mean = loss if step == 1 else mean + 0.05 * (loss - mean)
            progress.update(task, advance=1, loss=f"loss {mean:.4f}")
            if step % 50 == 0:
                progress.console.print(f"step {step}, {time.monotonic() - began:.0f} s, loss {mean:.4f}")
            if time.monotonic() - kept > KEEP_EVERY:
                keep(_weights(net))
                kept = time.monotonic()


def _done(step: int, passed: float, plan: Plan) -> float:
    return passed / plan.seconds if plan.seconds else step / plan.steps


def _step(
    net: Net, optimisers: tuple[torch.optim.Optimizer, ...], batch: tuple[torch.Tensor, torch.Tensor], rate: float
) -> float:
    ids, labels = batch
    states = net(ids[:, :-1])
    wanted = labels[:, 1:] != -100
    loss = functional.cross_entropy(net.logits(states[wanted]), labels[:, 1:][wanted])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        optimiser.zero_grad()
    return float(loss.detach())
