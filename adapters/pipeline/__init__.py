"""The pipeline: one exchange between a client and its providers, without any input or output. See pipeline.py."""

from __future__ import annotations

from .answer_writer import STREAM_HEADERS
from .attempt import Attempt
from .conversation import INSTEAD, PREVIOUS, Recall
from .guard import DefectReporter
from .outcome import NOTHING, Outcome, Output, PlannedCall
from .pipeline import Pipeline, render_fault
from .plan import ProtocolPlan, TargetPlan, find_bridge, plan_target
from .reply_reader import SSE
from .single_call import SingleCall, SingleReply, begin_call, has_plain_head

__all__ = [
    "INSTEAD",
    "NOTHING",
    "PREVIOUS",
    "SSE",
    "STREAM_HEADERS",
    "Attempt",
    "DefectReporter",
    "Outcome",
    "Output",
    "Pipeline",
    "PlannedCall",
    "ProtocolPlan",
    "Recall",
    "SingleCall",
    "SingleReply",
    "TargetPlan",
    "begin_call",
    "find_bridge",
    "has_plain_head",
    "plan_target",
    "render_fault",
]
