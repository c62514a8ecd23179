"""When an attempt writes to the client, and when it ends: every state, every input, one table.

Theory of operation. An attempt asks one target and writes what comes back to the client. Its state says what the client
has got so far, because that decides what a fault becomes: before the first byte another target can still be asked and
the client can still get a true HTTP status; after it, only an error event at the end of the stream is left.

    open        the client has got nothing
    streaming   the client has got a part of a stream
    saving      the answer is complete and has to be saved before the client gets any of it
    closing     the answer is complete and has to be saved before the client gets the rest of it
    complete    the client has got a complete answer
    failed      the attempt ended with a fault

    outputs     a part of a stream that has bytes for the client
    end         the answer is complete
    kept_end    the answer is complete, and has to be saved first
    saved       the caller has saved it
    lost        the provider has lost the response that the request continues; nothing was written yet
    fault       the provider failed, the caller gave up (a deadline, a shutdown), or the answer could not be saved

An input that comes after the end changes nothing. The diagram in docs/pipeline.md is generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

__all__ = ["TRANSITIONS", "Action", "Input", "State"]

State: TypeAlias = Literal["open", "streaming", "saving", "closing", "complete", "failed"]
Input: TypeAlias = Literal["outputs", "end", "kept_end", "saved", "lost", "fault"]
Action: TypeAlias = Literal["write", "hold", "release", "repeat_call", "report", "write_fault", "ignore"]

_INPUTS: tuple[Input, ...] = ("outputs", "end", "kept_end", "saved", "lost", "fault")

TRANSITIONS: Mapping[tuple[State, Input], tuple[State, Action]] = {
    ("open", "outputs"): ("streaming", "write"),
    ("open", "end"): ("complete", "write"),
    ("open", "kept_end"): ("saving", "hold"),
    ("open", "lost"): ("open", "repeat_call"),
    ("open", "fault"): ("failed", "report"),
    ("streaming", "outputs"): ("streaming", "write"),
    ("streaming", "end"): ("complete", "write"),
    ("streaming", "kept_end"): ("closing", "hold"),
    ("streaming", "fault"): ("failed", "write_fault"),
    ("saving", "saved"): ("complete", "release"),
    ("saving", "fault"): ("failed", "report"),
    ("closing", "saved"): ("complete", "release"),
    ("closing", "fault"): ("failed", "write_fault"),
    **{("complete", given): ("complete", "ignore") for given in _INPUTS},
    **{("failed", given): ("failed", "ignore") for given in _INPUTS},
}
"""(state, input) -> (next state, action). A pair that is missing is a defect of the pipeline, and raises KeyError."""
