"""dragoman: an interpreter between LLM clients and LLM providers.

As a library it is one sans-IO pipeline, in the manner of h11: it reads what a client sent, writes what each provider
gets, reads what comes back, and writes what the client gets. It opens no connection, reads no clock but the one it is
given, and keeps no global state: the caller moves the bytes.

    routes = dragoman.RouteTable(dragoman.dialects, {})
    plan = dragoman.plan_target("vllm", dragoman.dialects["openai"], ["chat"], dragoman.Target("qwen3"))

    pipeline = dragoman.Pipeline(route, dragoman.Call("POST", path, {}, query, headers))
    pipeline.receive(body)                    # raises Fault: answer with pipeline.render_fault(fault)
    attempt = pipeline.prepare(plan)          # raises Fault if the target cannot serve the request
    for planned in attempt.calls:             # make planned.call, then feed what comes back
        attempt.start_reply(planned.number, status, headers)
        attempt.feed(planned.number, data)    # each returns an Output: its data are bytes for the client
        attempt.close(planned.number)
    attempt.outcome                           # open, complete, or failed with a fault

`examples/asgi_gateway.py` is a complete gateway, `examples/judge_stream.py` judges a recorded stream. docs/pipeline.md
explains the states.

The five members (`adapters`, `proxy`, `local_engine`, `schemas`, `contract`) are links to the top-level folders of the
repository, so that every module is installed as `dragoman.<folder>`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.call import Call, Policy, Reply, Target
    from .adapters.changes import Change, Receipt
    from .adapters.dialect import Dialect
    from .adapters.faults import Fault
    from .adapters.pipeline import (
        Attempt,
        Outcome,
        Output,
        Pipeline,
        PlannedCall,
        Recall,
        TargetPlan,
        plan_target,
        render_fault,
    )
    from .adapters.registry import dialects
    from .adapters.responses.stored import StoredResponse
    from .adapters.routes import Route, RouteTable

__all__ = [
    "Attempt",
    "Call",
    "Change",
    "Dialect",
    "Fault",
    "Outcome",
    "Output",
    "Pipeline",
    "PlannedCall",
    "Policy",
    "Recall",
    "Receipt",
    "Reply",
    "Route",
    "RouteTable",
    "StoredResponse",
    "Target",
    "TargetPlan",
    "__version__",
    "dialects",
    "plan_target",
    "render_fault",
]

__version__ = "0.1.0"

_MODULES = {
    "adapters.call": ("Call", "Policy", "Reply", "Target"),
    "adapters.changes": ("Change", "Receipt"),
    "adapters.dialect": ("Dialect",),
    "adapters.faults": ("Fault",),
    "adapters.pipeline": (
        "Attempt",
        "Outcome",
        "Output",
        "Pipeline",
        "PlannedCall",
        "Recall",
        "TargetPlan",
        "plan_target",
        "render_fault",
    ),
    "adapters.registry": ("dialects",),
    "adapters.responses.stored": ("StoredResponse",),
    "adapters.routes": ("Route", "RouteTable"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import dragoman` and the command line stay light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
