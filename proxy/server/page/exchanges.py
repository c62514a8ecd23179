"""Renders exchanges for the page: a summary for the list, and everything that is known of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from dragoman.adapters.call import JsonObject
from dragoman.adapters.changes import Change
from dragoman.proxy.telemetry.content_mask import ContentMask, find_header_secrets
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.recording import CallRecording, Recording
from dragoman.proxy.telemetry.token_counts import read_token_counts

from .messages import list_headers, render_message
from .sources import Side, find_source

__all__ = ["create_content_mask", "describe_buffer", "render_exchange", "summarize"]

_MOST_LOSSES = 5  # in a line of the list


def describe_buffer(inspector: Inspector) -> JsonObject:
    """How full the buffer is."""
    kept = inspector.count
    return {"bytes": inspector.size, "limit": inspector.limit, "exchanges": kept, "dropped": inspector.dropped}


def create_content_mask(record: ExchangeRecord, mask: Mask) -> ContentMask:
    """The mask for an exchange, which knows the credentials that its messages carried."""
    recording = record.unfold_recording()
    return ContentMask(mask, () if recording is None else _find_secrets(recording))


def summarize(record: ExchangeRecord, mask: ContentMask) -> JsonObject:
    """The exchange as one line of the list."""
    receipt = record.receipt
    weights = Counter(change.weight for change in receipt.changes) if receipt is not None else Counter()
    has_ended = record.has_ended
    counts = record.tokens if has_ended else read_token_counts(record.usage)
    summary: JsonObject = {
        "seq": record.number,
        "id": record.request_id,
        "ref": record.reference,
        "began": round(record.began, 3),
        "dialect": record.dialect,
        "protocol": record.protocol,
        "path": record.raw_path,
        "client": record.client,
        "key": record.key,
        "model": record.model,
        "target": record.target,
        "status": record.status,
        "outcome": record.outcome if has_ended else "running",
        "fault": record.fault_code,
        "message": record.fault_message,
        "stream": record.stream,
        "attempts": record.attempts,
        "first_token_ms": record.first_token_ms,
        "duration_ms": record.duration_ms if has_ended else record.elapsed_ms(),
        "tokens_in": counts.input,
        "tokens_out": counts.output,
        "changes": {"form": weights["form"], "loss": weights["loss"]},
        "losses": [change.public() for change in islice(_list_losses(record), _MOST_LOSSES)],
        "replayed_from": record.replayed_from,
    }
    return {name: mask.mask_values(value) for name, value in summary.items()}


def _list_losses(record: ExchangeRecord) -> Iterator[Change]:
    """The changes that a short line of the log shows."""
    changes = () if record.receipt is None else record.receipt.changes
    return (change for change in changes if change.weight == "loss" or change.action == "emulated")


def render_exchange(record: ExchangeRecord, mask: ContentMask) -> JsonObject:
    """Everything that is kept of the exchange. `client` has its messages, so its address is `address`."""
    summary, recording = summarize(record, mask), record.unfold_recording()
    summary["address"] = summary["client"]
    receipt = record.receipt
    if recording is None:
        changes = [] if receipt is None else receipt.changes
        listed = [_render_change(one, None, 1) for one in changes]
        return summary | {"changes": mask.mask_values(listed), "client": None, "tries": []}
    began, keeps = record.started, recording.keeps_bodies
    calls = [
        {
            "target": mask.mask_text(call.target),
            "try": call.attempt,
            "call": call.number,
            "outcome": _find_outcome(call, has_ended=record.has_ended),
            "fault": mask.mask_values(call.fault),
            "began_ms": _to_ms(call.began - began),
            "duration_ms": None if call.ended is None else _to_ms(call.ended - call.began),
            "request": render_message(call.request, mask, began, keeps_bodies=keeps),
            "reply": render_message(call.reply, mask, began, keeps_bodies=keeps),
        }
        for call in recording.calls
    ]
    client = {
        "request": render_message(recording.request, mask, began, keeps_bodies=keeps),
        "reply": render_message(recording.reply, mask, began, keeps_bodies=keeps),
    }
    listed = [*_list_changes(record, recording)]
    return summary | {"changes": mask.mask_values(listed), "client": client, "tries": calls}


def _find_outcome(call: CallRecording, *, has_ended: bool) -> str:
    """How a call ended; `has_ended` says whether its exchange has. One that waited for its reply then was cancelled."""
    if call.fault is not None:
        return "fault"
    if call.ended is None:
        return "cancelled" if has_ended else "running"
    return "cancelled" if call.is_cancelled else "ok"


def _list_changes(record: ExchangeRecord, recording: Recording) -> Iterator[JsonObject]:
    for number, one in enumerate(recording.tries, 1):
        for place, change in enumerate(one.changes):
            side: Side = "request" if place < one.request_changes else "reply"
            source = find_source(change, side, one.plan, record.dialect, record.protocol)
            yield _render_change(change, side, number, source)


def _render_change(change: Change, side: Side | None, number: int, source: str | None = None) -> JsonObject:
    return {
        "side": side,
        "action": change.action,
        "weight": change.weight,
        "reason": change.reason,
        "before": [*change.before] or None,
        "after": [*change.after] or None,
        "policy": change.policy,
        "source": source,
        "try": number,
    }


def _find_secrets(recording: Recording) -> set[str]:
    """The credentials in all messages of an exchange."""
    messages = [recording.request, recording.reply]
    messages += [message for call in recording.calls for message in (call.request, call.reply)]
    found = {secret for message in messages for secret in find_header_secrets(list_headers(message))}
    return found | {secret.decode("utf-8", "replace") for call in recording.calls for secret in call.secrets}


def _to_ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
