"""Embeddings: texts to vectors with an encoder, in batches of similar length, pooled as the model folder says."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.adapters.faults import Fault
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.model_folder.folder import ModelFolder, open_folder
from dragoman.local_engine.model_folder.signature import EncoderSignature
from dragoman.local_engine.runtime.providers import Device, ExecutionProvider, select_provider

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

__all__ = ["Embedder", "batch_by_length"]

BATCH_TOKENS = 4096
"""Tokens per run, including padding."""
Vectors = NDArray[np.float32]


def batch_by_length(lengths: Sequence[int], max_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Group the indices of texts by length, into batches of at most `max_tokens` tokens with padding, or one text."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[index] > max_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class Embedder:
    """A loaded encoder. The methods block and are thread-safe."""

    def __init__(
        self,
        folder: ModelFolder,
        tokenizer: Tokenizer,
        session: InferenceSession,
        signature: EncoderSignature,
        provider: ExecutionProvider,
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.provider = provider
        self.width = signature.width
        self.failed: str | None = None
        self._session = session
        self._signature = signature
        self._run_started: dict[int, float] = {}

    @property
    def step_seconds(self) -> float:
        """The time since the start of the oldest current run."""
        return max((time.monotonic() - started for started in [*self._run_started.values()]), default=0.0)

    @classmethod
    def load(cls, path: Path, device: Device = "auto", *, index: int = 0, threads: int = 0) -> Embedder:
        """Load a model folder. Raises FolderError and ProviderError."""
        from dragoman.local_engine.runtime.session import open_session
        from dragoman.local_engine.text.detokenizer import load_tokenizer

        provider = select_provider(device, index)
        folder = open_folder(path, provider.device)
        signature = folder.signature
        if not isinstance(signature, EncoderSignature):
            raise FolderError(f"{folder.file} is a decoder; embeddings need an encoder, with last_hidden_state")
        session, provider = open_session(folder.file, provider, threads=threads, fallback=device == "auto")
        return cls(folder, load_tokenizer(folder.tokenizer), session, signature, provider)

    def tokenize(self, text: str) -> list[int]:
        """Tokenize a text, with the special tokens that the tokenizer adds."""
        found: list[int] = self.tokenizer.encode(text).ids
        return found

    def embed(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """Return one vector per text of tokens, (texts, width). Raises Fault for an empty or too long text."""
        for index, text in enumerate(texts):
            if not 0 < len(text) <= self.folder.context:
                code = "context_length_exceeded" if text else None
                message = f"text {index} has {len(text)} tokens; supported are 1 to {self.folder.context}"
                raise Fault("invalid_request", message, ("input", index), code=code)
        vectors = np.zeros((len(texts), self.width), np.float32)
        for batch in batch_by_length([len(text) for text in texts]):
            vectors[batch] = self._run([texts[index] for index in batch])
        if self.folder.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
        return vectors

    def _run(self, texts: Sequence[Sequence[int]]) -> Vectors:
        longest = max(len(text) for text in texts)
        ids = np.zeros((len(texts), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(longest), ids.shape).copy(),
        }
        feeds: dict[str, Any] = {name: inputs[name] for name in self._signature.inputs}
        self._run_started[threading.get_ident()] = time.monotonic()
        try:
            found = np.asarray(self._session.run([self._signature.output], feeds)[0], np.float32)
        except Exception as error:
            if self.provider.device == "cuda":
                self.failed = f"CUDA failed: {error}"  # a CUDA error is permanent for the process
            raise Fault("internal", f"the encoder failed: {error}") from error
        finally:
            del self._run_started[threading.get_ident()]
        return found if self._signature.pooled else self._pool(found, mask)

    def _pool(self, hidden: Vectors, mask: NDArray[np.int64]) -> Vectors:
        if self.folder.pooling == "cls":
            first: Vectors = hidden[:, 0]
            return first
        if self.folder.pooling == "last":
            last: Vectors = hidden[np.arange(len(hidden)), mask.sum(-1) - 1]
            return last
        kept = mask[..., None].astype(np.float32)
        mean: Vectors = (hidden * kept).sum(1) / kept.sum(1)
        return mean
