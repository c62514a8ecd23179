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

from .memory import allocate
from .ports import FLOAT16, INT32, Decoder
from .providers import Provider

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

__all__ = ["Cache", "Logits", "SlotCache", "float_type", "int_type"]

Logits = NDArray[np.float32]
KEPT_BINDINGS = 64


class Cache(Protocol):
    """What the scheduler needs of a model with its keys and values, for `slots` sequences of up to `length` tokens."""

    slots: int
    length: int
    reusable: bool
    """Whether rows can be copied, and a row be continued from any point."""

    def prefill(self, row: int, start: int, ids: Sequence[int]) -> Logits:
        """Put `ids` behind the first `start` positions of a row; logits (vocab,) after the last one."""
        ...

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> Logits:
        """Put one token behind each of some rows, in ascending order; logits (rows, vocab), valid until the next."""
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


class SlotCache:
    """A Cache for graphs whose past and present share a buffer."""

    reusable = True

    def __init__(self, session: InferenceSession, ports: Decoder, provider: Provider, slots: int, length: int) -> None:
        self.slots = slots
        self.length = length
        self._session = session
        self._ports = ports
        self._device = (provider.device, provider.index)
        self._float = float_type(ports.element)
        self._filled = np.zeros(slots, np.int64)
        self._buffers = [
            (port, allocate((slots, port.heads, length, port.width), self._float, provider)) for port in ports.cache
        ]
        self._ids = np.zeros((slots, 1), int_type(ports.ids))
        self._positions = np.zeros((slots, 1), int_type(ports.extra.get("position_ids", 7)))
        self._logits = np.zeros((slots, 1, ports.vocab), float_type(ports.logits))
        self._decoders: dict[tuple[int, int], IOBinding] = {}

    def prefill(self, row: int, start: int, ids: Sequence[int]) -> Logits:
        count = len(ids)
        given = np.array([ids], self._ids.dtype)
        positions = np.arange(start, start + count, dtype=self._positions.dtype)[None]
        logits = np.empty((1, 1 if self._ports.last_only else count, self._ports.vocab), self._logits.dtype)
        binding = self._binding(row, row + 1)
        self._bind(binding.bind_input, "input_ids", given)
        self._bind_mask(binding, np.array([start + count]))
        if "position_ids" in self._ports.extra:
            self._bind(binding.bind_input, "position_ids", positions)
        self._bind(binding.bind_output, "logits", logits)
        self._session.run_with_iobinding(binding)
        self._filled[row] = start + count
        last: Logits = logits[0, -1].astype(np.float32, copy=False)
        return last

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> Logits:
        low, high = rows[0], rows[-1] + 1
        count = high - low
        places = np.array(rows) - low
        starts = np.minimum(self._filled[low:high], self.length - 1)
        self._ids[:count] = 0
        self._ids[places, 0] = tokens
        self._positions[:count, 0] = starts
        binding = self._decoders.get((low, high)) or self._decoder(low, high)
        self._bind_mask(binding, starts + 1)
        self._session.run_with_iobinding(binding)
        self._filled[list(rows)] += 1
        found = self._logits[:count, 0]
        wanted: NDArray[Any] = found if len(rows) == count else found[places]
        floats: Logits = wanted.astype(np.float32, copy=False)
        return floats

    def copy(self, source: int, target: int, length: int) -> None:
        for _, buffer in self._buffers:
            buffer.copy(source, target, length)
        self._filled[target] = length

    def drop(self, row: int) -> None:
        self._filled[row] = 0

    def _decoder(self, low: int, high: int) -> IOBinding:
        """The binding for a decode step over rows low to high; only the mask is bound anew at each step."""
        if len(self._decoders) >= KEPT_BINDINGS:
            self._decoders.clear()
        binding = self._decoders[low, high] = self._binding(low, high)
        self._bind(binding.bind_input, "input_ids", self._ids[: high - low])
        if "position_ids" in self._ports.extra:
            self._bind(binding.bind_input, "position_ids", self._positions[: high - low])
        self._bind(binding.bind_output, "logits", self._logits[: high - low])
        return binding

    def _binding(self, low: int, high: int) -> IOBinding:
        binding = self._session.io_binding()
        for port, buffer in self._buffers:
            shape = (high - low, port.heads, self.length, port.width)
            place = (*self._device, self._float, shape, buffer.address(low))
            binding.bind_input(port.past, *place)
            binding.bind_output(port.present, *place)
        return binding

    def _bind_mask(self, binding: IOBinding, ends: NDArray[np.int64]) -> None:
        """Bind the attention mask of rows that hold `ends` positions, and keep it: the binding has only its address."""
        mask = (np.arange(ends.max()) < ends[:, None]).astype(int_type(self._ports.extra["attention_mask"]))
        self._bind(binding.bind_input, "attention_mask", mask)
        self._mask = mask

    @staticmethod
    def _bind(bind: Any, name: str, array: NDArray[Any]) -> None:
        bind(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
