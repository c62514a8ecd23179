"""Keys and values in slots: one buffer per layer, bound by address, as both past and present of the graph.

A buffer is (slots, heads, length, width). A sequence owns a slot, a row of every buffer. Prefill binds one row, so that
the graph writes straight into it; a decode step binds the rows from the lowest to the highest that is asked for. Rows
in between take part as dummies: they write one position behind what they hold, which nothing reads before it is written
again. So nothing moves when a sequence comes or goes.

A row's results do not depend, to the last bit, on the rows beside it, nor on how its prompt was cut, as long as no
piece is a single token: GroupQueryAttention computes single tokens in another way. `next_piece` sees to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .memory import Buffer, allocate
from .on_device.scores import Chooser, DeviceScores
from .ports import FLOAT16, INT32, Decoder
from .providers import Provider, cpu
from .scores import HostScores, Scores
from .session import FATAL_ONLY

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding, RunOptions

__all__ = ["Cache", "SlotCache", "Stop", "float_type", "home", "int_type"]

KEPT_BINDINGS = 64


class Stop:
    """Ends a run from another thread. Each run has its own, so one that comes too late does nothing."""

    def __init__(self) -> None:
        from onnxruntime import RunOptions

        self.options: RunOptions = RunOptions()
        self.options.log_severity_level = FATAL_ONLY

    def set(self) -> None:
        self.options.terminate = True

    @property
    def is_set(self) -> bool:
        return bool(self.options.terminate)


class Cache(Protocol):
    """What the scheduler needs of a model with its keys and values, for `slots` sequences of up to `length` tokens."""

    slots: int
    length: int
    reusable: bool
    """Whether rows can be copied, and a row be continued from any point."""

    def prefill(self, row: int, start: int, ids: Sequence[int], stop: Stop | None = None) -> Scores:
        """Put `ids` behind the first `start` positions of a row; one row of logits, after the last one.

        What was there before holds also after an exception, which comes where `stop` is set on the way.
        """
        ...

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> Scores:
        """Put one token behind each of some rows, in ascending order; their logits."""
        ...

    def copy(self, source: int, target: int, length: int) -> None:
        """Make the first `length` positions of a row those of another."""
        ...

    def drop(self, row: int) -> None:
        """Forget what a row holds."""
        ...


def float_type(element: int) -> type[np.floating[Any]]:
    return np.float16 if element == FLOAT16 else np.float32


def int_type(element: int) -> type[np.signedinteger[Any]]:
    return np.int32 if element == INT32 else np.int64


def home(ports: Decoder, provider: Provider) -> Provider:
    """Where slots of keys and values belong: where GroupQueryAttention runs, which CUDA has for float16 alone.

    https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/contrib_ops/cuda/bert/group_query_attention.cc
    """
    return provider if ports.element == FLOAT16 else cpu()


class SlotCache:
    """A Cache for graphs whose past and present share a buffer.

    onnxruntime copies an input that is bound on the host to the device when it is bound, not when it is used. So ids,
    positions and mask are bound for each step; the buffers stay bound.
    """

    reusable = True

    def __init__(
        self,
        session: InferenceSession,
        ports: Decoder,
        provider: Provider,
        slots: int,
        length: int,
        *,
        choose_there: bool = False,
    ) -> None:
        """`choose_there` leaves logits where the model computes them, and chooses tokens there."""
        self.slots = slots
        self.length = length
        self._session = session
        self._ports = ports
        self._provider = provider
        self._filled = np.zeros(slots, np.int64)
        self._home = home(ports, provider)
        self._float = float_type(ports.element)
        self._buffers = [
            (port, allocate((slots, port.heads, length, port.width), self._float, self._home)) for port in ports.cache
        ]
        self._logit = float_type(ports.logits)
        self._chooser = Chooser(provider, self._logit, slots, ports.vocab) if choose_there else None
        self._logits = self._room(slots)
        self._prompt_logits = (1, self._room(1))
        self._bindings: dict[tuple[int, int], IOBinding] = {}

    def prefill(self, row: int, start: int, ids: Sequence[int], stop: Stop | None = None) -> Scores:
        count = len(ids)
        inputs = self._inputs(np.array([ids]), np.array([start]), np.array([start + count]))
        positions = 1 if self._ports.last_only else count
        if positions > self._prompt_logits[0]:
            self._prompt_logits = (positions, self._room(positions))
        logits = self._prompt_logits[1]
        self._run(row, row + 1, inputs, logits, (1, positions, self._ports.vocab), stop)
        self._filled[row] = start + count
        return self._scores(logits, positions - 1, 1, [0])

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> Scores:
        low, high = rows[0], rows[-1] + 1
        count = high - low
        places = [row - low for row in rows]
        which = slice(None) if len(places) == count else places  # a slice is far quicker than a list of all
        filled = self._filled[low:high]
        starts = np.minimum(filled, self.length - 1)
        ids = np.zeros((count, 1), np.int64)
        ids[which, 0] = tokens
        self._run(low, high, self._inputs(ids, starts, starts + 1), self._logits, (count, 1, self._ports.vocab))
        filled[which] += 1
        return self._scores(self._logits, 0, count, places)

    def copy(self, source: int, target: int, length: int) -> None:
        for _, buffer in self._buffers:
            buffer.copy(source, target, length)
        self._filled[target] = length

    def drop(self, row: int) -> None:
        self._filled[row] = 0

    def _inputs(
        self, ids: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """What a step takes beside the cache, for rows that hold `ends` positions after it."""
        extra = self._ports.extra
        found: dict[str, NDArray[Any]] = {
            "input_ids": ids.astype(int_type(self._ports.ids), copy=False),
            "attention_mask": (np.arange(ends.max()) < ends[:, None]).astype(int_type(extra["attention_mask"])),
        }
        if "position_ids" in extra:
            positions = starts[:, None] + np.arange(ids.shape[1])
            found["position_ids"] = positions.astype(int_type(extra["position_ids"]))
        return found

    def _run(
        self,
        low: int,
        high: int,
        inputs: dict[str, NDArray[Any]],
        logits: Buffer,
        shape: tuple[int, int, int],
        stop: Stop | None = None,
    ) -> None:
        binding = self._bindings.get((low, high)) or self._binding(low, high)
        for name, array in inputs.items():
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        where = ("cpu", 0) if self._chooser is None else (self._provider.device, self._provider.index)
        binding.bind_output("logits", *where, self._logit, shape, logits.address(0))
        self._session.run_with_iobinding(binding, None if stop is None else stop.options)

    def _binding(self, low: int, high: int) -> IOBinding:
        """The binding for rows low to high; all but the buffers is bound anew at each step."""
        if len(self._bindings) >= KEPT_BINDINGS:
            self._bindings.clear()
        binding = self._bindings[low, high] = self._session.io_binding()
        for port, buffer in self._buffers:
            shape = (high - low, port.heads, self.length, port.width)
            place = (self._home.device, self._home.index, self._float, shape, buffer.address(low))
            binding.bind_input(port.past, *place)
            binding.bind_output(port.present, *place)
        return binding

    def _room(self, rows: int) -> Buffer:
        return allocate((rows, self._ports.vocab), self._logit, cpu() if self._chooser is None else self._provider)

    def _scores(self, logits: Buffer, first: int, count: int, places: Sequence[int]) -> Scores:
        if self._chooser is not None:
            return DeviceScores(self._chooser, logits, first, count, places)
        rows = logits.rows(first, first + count)
        return HostScores((rows if len(places) == count else rows[places]).astype(np.float32, copy=False))
