"""The training loop in torch: batches of conversations, two optimizers, one falling learning rate.

Muon trains the matrices, AdamW the embedding and the norms. Only tokens of the model's own messages count in the loss.
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
    """Train and return the weights, float32, with the names that the export reads. `keep` gets them once a minute.

    `begin` is a folder of safetensors to start from instead of random weights.
    """
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    net = Net(spec)
    if begin is not None:
        stored = SafetensorsFolder(begin)
        net.load_state_dict({name.removeprefix("model."): torch.tensor(value) for name, value in stored.items()})
    _optimize(net, _batches(corpus, tokenizer, plan.seed), plan, keep)
    return _weights(net)


def _weights(net: Net) -> dict[str, Tensor]:
    return {f"model.{name}": value.detach().numpy() for name, value in net.state_dict().items()}


def _batches(corpus: Corpus, tokenizer: Tokenizer, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield endless batches: ids (batch, length), and labels of the same shape, -100 for tokens not to learn."""
    source = Dialogues(corpus, seed)
    order = torch.Generator().manual_seed(seed)
    while True:
        pool = sorted((encode(tokenizer, source.draw()) for _ in range(POOL)), key=lambda pair: len(pair[0]))
        ready = list(_group_by_size(pool))
        for at in torch.randperm(len(ready), generator=order).tolist():
            yield _pad(ready[at])


def _group_by_size(pool: list[tuple[list[int], list[bool]]]) -> Iterator[list[tuple[list[int], list[bool]]]]:
    group: list[tuple[list[int], list[bool]]] = []
    for pair in pool:
        if group and (len(group) + 1) * len(pair[0]) > TOKENS_PER_BATCH:
            yield group
            group = []
        group.append(pair)
    yield group


def _pad(group: list[tuple[list[int], list[bool]]]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(ids) for ids, _ in group)
    ids = torch.zeros(len(group), longest, dtype=torch.long)
    labels = torch.full((len(group), longest), -100)
    for row, (tokens, said) in enumerate(group):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)] = torch.where(torch.tensor(said), ids[row, : len(tokens)], -100)
    return ids, labels


def _optimize(net: Net, source: Iterator[tuple[torch.Tensor, torch.Tensor]], plan: Plan, keep: Keep) -> None:
    optimizers = (
        torch.optim.Muon(net.matrices(), lr=plan.rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(net.others(), lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.0),
    )
    began = kept = time.monotonic()
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[loss]}"), TimeRemainingColumn())
    with Progress(*columns[:2], MofNCompleteColumn(), *columns[2:]) as progress:
        task = progress.add_task("training", total=None if plan.seconds else plan.steps, loss="")
        step, mean = 0, 0.0
        while (done := _progress(step, time.monotonic() - began, plan)) < 1:
            loss = _train_step(
                net, optimizers, next(source), plan.rate * min(1.0, (step + 1) / 50, 1.05 * (1 - done) + 0.005)
            )
            step += 1
            mean = loss if step == 1 else mean + 0.05 * (loss - mean)
            progress.update(task, advance=1, loss=f"loss {mean:.4f}")
            if step % 50 == 0:
                progress.console.print(f"step {step}, {time.monotonic() - began:.0f} s, loss {mean:.4f}")
            if time.monotonic() - kept > KEEP_EVERY:
                keep(_weights(net))
                kept = time.monotonic()


def _progress(step: int, passed: float, plan: Plan) -> float:
    return passed / plan.seconds if plan.seconds else step / plan.steps


def _train_step(
    net: Net, optimizers: tuple[torch.optim.Optimizer, ...], batch: tuple[torch.Tensor, torch.Tensor], rate: float
) -> float:
    ids, labels = batch
    states = net(ids[:, :-1])
    wanted = labels[:, 1:] != -100
    loss = functional.cross_entropy(net.logits(states[wanted]), labels[:, 1:][wanted])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad()
    return float(loss.detach())
