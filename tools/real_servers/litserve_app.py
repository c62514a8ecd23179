"""A server made with LitServe: `python litserve_app.py PORT`, in a folder with `mini.gguf`.

It runs in LitServe's environment and imports nothing of dragoman. LitServe reads requests and writes replies; this file
only asks the model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from litserve import LitAPI, LitServer, OpenAISpec
from llama_cpp import Llama

__all__ = ["MiniApi"]


class MiniApi(LitAPI):
    """Yields the pieces of an answer."""

    def setup(self, device: str) -> None:
        self.model = Llama("mini.gguf", n_ctx=2048, n_threads=1, verbose=False)

    def predict(self, request: Any) -> Iterator[dict[str, str]]:
        asked = request.model_dump(mode="json", exclude_none=True)
        chunks = self.model.create_chat_completion(
            asked["messages"],
            tools=asked.get("tools"),
            temperature=asked["temperature"],
            stop=asked.get("stop"),
            max_tokens=asked.get("max_completion_tokens") or asked.get("max_tokens"),
            stream=True,
        )
        for chunk in chunks:
            if text := chunk["choices"][0]["delta"].get("content"):
                yield {"role": "assistant", "content": text}


if __name__ == "__main__":
    server = LitServer(MiniApi(spec=OpenAISpec()), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False)
