"""ToolSelection on a device gives what choosing on the host gives. The graph runs on the CPU here; CUDA takes the same."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_rig import GREEDY, Rigs
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.local_engine.runtime import memory
from dragoman.local_engine import sampling
from dragoman.local_engine.runtime.memory import CudaBuffer, HostBuffer
from dragoman.local_engine.sampling.device_graph import TYPES, write
from dragoman.local_engine.sampling.device_logits import DeviceSampler, DeviceLogits
from dragoman.local_engine.runtime.providers import ProviderError, cpu_provider
from dragoman.local_engine.generation import SamplingParams
from dragoman.local_engine.sampling.sampler import SampledToken, Sampler, choose

Floats = np.ndarray[Any, np.dtype[Any]]
ROWS = 6
CHOOSERS: dict[tuple[str, int], DeviceSampler] = {}

SAMPLINGS = st.builds(
    SamplingParams,
    temperature=st.one_of(st.just(0.0), st.floats(0.05, 3)),
    top_p=st.one_of(st.just(1.0), st.floats(0.01, 0.999)),
    top_k=st.one_of(st.just(0), st.integers(1, 400)),
    min_p=st.one_of(st.just(0.0), st.floats(0, 0.9)),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.7]),
    logit_bias=st.sampled_from([{}, {}, {2: 5.0}]),
    logprobs=st.sampled_from([None, 0, 5, 300]),
    seed=st.integers(0, 2**31),
)


def chooser(element: str, vocab: int) -> DeviceSampler:
    if (element, vocab) not in CHOOSERS:
        CHOOSERS[element, vocab] = DeviceSampler(cpu_provider(), np.dtype(element).type, ROWS, vocab)
    return CHOOSERS[element, vocab]


def on_a_device(logits: Floats, samplings: list[SamplingParams], places: list[int]) -> list[SampledToken | None]:
    """The first row of the buffer belongs to nobody."""
    buffer = HostBuffer((len(logits) + 1, logits.shape[1]), logits.dtype.type)
    buffer.read_rows(1, len(logits) + 1)[:] = logits
    scores = DeviceLogits(chooser(logits.dtype.name, logits.shape[1]), buffer, 1, len(logits), places)
    return scores.choose([Sampler(one, (1, 2)) for one in samplings], [None] * len(samplings))


def on_the_host(logits: Floats, samplings: list[SamplingParams], places: list[int]) -> list[SampledToken | None]:
    chosen = logits[places].astype(np.float32)
    return choose(chosen, [Sampler(one, (1, 2)) for one in samplings], [None] * len(samplings))


@pytest.mark.parametrize("element", TYPES)
def test_the_package_has_what_the_script_writes(element: str, tmp_path: Path) -> None:
    write(tmp_path / "graph.onnx", element)
    kept = Path(on_device.__path__[0]) / f"{element}.onnx"
    assert kept.read_bytes() == (tmp_path / "graph.onnx").read_bytes(), "run it again, its docstring says how"


@settings(deadline=None)
@given(
    st.sampled_from(sorted(TYPES)),
    st.sampled_from([3, 256, 272, 512, 5000]),
    st.floats(0.1, 8),
    st.lists(SAMPLINGS, min_size=1, max_size=ROWS),
    st.integers(0, 2**31),
)
def test_the_same_tokens(element: str, vocab: int, spread: float, samplings: list[SamplingParams], seed: int) -> None:
    source = np.random.default_rng(seed)
    logits = (source.standard_normal((ROWS, vocab)) * spread).astype(element)
    places = sorted(source.choice(ROWS, len(samplings), replace=False).tolist())
    there, here = (where(logits, samplings, places) for where in (on_a_device, on_the_host))
    for one, other in zip(there, here, strict=True):
        assert one is not None and other is not None and one.token == other.token
        if one.logprob is None or other.logprob is None:
            assert one.logprob is other.logprob
            continue
        assert one.logprob.logprob == pytest.approx(other.logprob.logprob, abs=1e-5)
        assert [token for token, _ in one.logprob.top] == [token for token, _ in other.logprob.top]
        assert [value for _, value in one.logprob.top] == pytest.approx(
            [value for _, value in other.logprob.top], abs=1e-5
        )


@pytest.mark.parametrize("strange", [np.nan, np.inf])
@pytest.mark.parametrize("sampling", [GREEDY, SamplingParams(seed=1), SamplingParams(seed=1, top_k=3)])
def test_no_token_where_the_model_broke(strange: float, sampling: SamplingParams) -> None:
    logits = np.zeros((2, 272), np.float32)
    logits[0, 100] = strange
    there, here = (where(logits, [sampling] * 2, [0, 1]) for where in (on_a_device, on_the_host))
    assert there == here and there[0] is None and there[1] is not None
    assert on_a_device(np.full((1, 272), -np.inf, np.float32), [sampling], [0]) == [None]


def test_a_mask_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = HostBuffer((2, 272), np.float32)
    buffer.read_rows(0, 2)[:, 9] = 5
    mask = np.zeros(272, np.bool_)
    mask[17] = True
    scores = DeviceLogits(chooser("float32", 272), buffer, 0, 2, [0, 1])
    found = scores.choose([Sampler(GREEDY, ()), Sampler(GREEDY, ())], [mask, None])
    assert [chosen.token for chosen in found if chosen] == [17, 9]


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_requests_that_come_and_go(rigs: Rigs, name: str) -> None:
    source = random.Random(5)
    samplings = [GREEDY, SamplingParams(), SamplingParams(0.7, top_p=0.9), SamplingParams(1.5, top_k=20), SamplingParams(frequency_penalty=1)]
    asked = [
        ([source.randrange(256) for _ in range(source.randint(1, 60))], source.randint(1, 30), source.choice(samplings))
        for _ in range(40)
    ]
    rigs_of_both = [rigs(name, slots=5, sample_on_device=there) for there in (True, False)]
    for rig in rigs_of_both:
        for ticket, (prompt, count, sampling) in enumerate(asked):
            seeded = SamplingParams(**{**{f: getattr(sampling, f) for f in sampling.__slots__}, "seed": ticket})
            rig.add(ticket, rig.request(prompt, count, sampling=seeded))
            rig.step()
        rig.drain()
    there, here = rigs_of_both
    assert [there.tokens(ticket) for ticket in range(40)] == [here.tokens(ticket) for ticket in range(40)]


class Runtime:
    """CUDA's runtime, played with host memory."""

    def __init__(self) -> None:
        self.device = -1
        self.kept: dict[int, Any] = {}
        self.status = 0

    def cudaSetDevice(self, index: int) -> int:
        self.device = index
        return self.status

    def cudaMalloc(self, place: Any, size: Any) -> int:
        block = ctypes.create_string_buffer(b"\xff" * size.value, size.value)
        place._obj.value = ctypes.addressof(block)
        self.kept[ctypes.addressof(block)] = block
        return 0

    def cudaFree(self, place: Any) -> int:
        del self.kept[place.value]
        return 0

    def cudaMemset(self, place: Any, value: int, size: Any) -> int:
        ctypes.memset(place, value, size.value)
        return 0

    def cudaMemcpy(self, target: Any, source: Any, size: Any, kind: int) -> int:
        ctypes.memmove(target, source, size.value)
        return 0 if kind == 2 else 21

    def cudaMemcpy2D(self, to: Any, pitch: Any, of: Any, pitch_of: Any, wide: Any, high: Any, kind: int) -> int:
        for line in range(high.value):
            ctypes.memmove(to.value + line * pitch.value, of.value + line * pitch_of.value, wide.value)
        return 0 if kind == 3 else 21

    def cudaMemGetInfo(self, free: Any, total: Any) -> int:
        free._obj.value, total._obj.value = 1000, 2000
        return 0

    def cudaDeviceSynchronize(self) -> int:
        return 0

    def cudaGetErrorString(self, status: int) -> bytes:
        return b"out of memory"


def test_device_memory_is_laid_out_like_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    monkeypatch.setattr(memory, "_runtime", lambda: runtime)
    shape = (3, 2, 5, 4)
    there, here = CudaBuffer(shape, np.float16, 1), HostBuffer(shape, np.float16)
    assert runtime.device == 1 and not there.read_rows(0, 3).any()
    values = np.arange(40, dtype=np.float16).reshape(shape[1:])
    ctypes.memmove(there.address(1), values.ctypes.data, values.nbytes)
    here.read_rows(1, 2)[0] = values
    for buffer in (there, here):
        buffer.copy(1, 2, 3)
    assert there.read_rows(0, 3).tobytes() == here.read_rows(0, 3).tobytes()
    assert memory.available(memory.ExecutionProvider("cuda", "CUDAExecutionProvider", 1)) == 800
    del there, buffer
    assert not runtime.kept
    runtime.status = 2
    with pytest.raises(ProviderError, match=r"cudaMalloc failed on CUDA device 1: out of memory \(2\)"):
        CudaBuffer(shape, np.float16, 1)
