"""Finds functions named by participles, names that were replaced by better ones, and tests named by numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from source_tree import ROOT, Function, is_public, list_functions, read_modules

__all__ = ["find_participles", "find_retired_names", "find_test_ids", "reads_as_participle"]

BASE_FORMS = re.compile(r"bed|bleed|breed|embed|exceed|feed|hundred|need|proceed|red|seed|shed|shred|speed|succeed")
"""Words in -ed that are no participles."""
IRREGULAR = re.compile(
    r"begun|bound|broken|brought|built|chosen|dealt|done|drawn|driven|fed|felt|forgotten|found|given|gone|grown|held"
    r"|hidden|kept|known|laid|led|left|lent|lost|made|meant|met|overridden|paid|proven|said|seen|sent|shaken|shown|sold"
    r"|spent|spoken|stuck|sworn|taken|thrown|told|torn|understood|unknown|withdrawn|won|worn|wound|written"
)
"""Irregular participles. Those that equal their verb are left out: read, run, put, set, cut, split, let, hit."""
PREPOSITIONS = re.compile(r"as|at|by|for|from|in|into|of|off|on|out|over|to|under|up|with")
QUESTIONS = re.compile(r"are|can|did|does|had|has|is|may|must|needs|should|was|were|will")

ALLOWED_PARTICIPLES: Mapping[str, str] = {
    "connection_made": "asyncio.Protocol calls it",
    "data_received": "asyncio.Protocol calls it",
    "connection_lost": "asyncio.Protocol calls it",
    "buffer_updated": "asyncio.BufferedProtocol calls it",
    "eof_received": "asyncio.BufferedProtocol calls it",
    "unsafe_undefined": "jinja2's SandboxedEnvironment calls it",
    "item_added": "makes the event response.output_item.added",
    "item_done": "makes the event response.output_item.done",
    "part_added": "makes the event response.content_part.added",
    "part_done": "makes the event response.content_part.done",
    "text_done": "makes the event response.output_text.done",
    "annotation_added": "makes the event response.output_text.annotation.added",
    "chat_called": "makes the `called` side of a dialect's chat, one row of its table",
    "completions_called": "makes the `called` side of a dialect's completions, one row of its table",
    "messages_called": "makes the `called` sides of a dialect's Messages, rows of its table",
    "messages_served": "makes the `served` sides of a dialect's Messages, rows of its table",
    "embeddings_called": "makes the `called` side of a dialect's embeddings, one row of its table",
    "match_stored": "matches the address of a stored response",
}
"""Names of other specifications, and pure accessors for which no noun is better: each with its reason."""


def is_participle(word: str) -> bool:
    return bool(IRREGULAR.fullmatch(word) or (word.endswith("ed") and not BASE_FORMS.fullmatch(word)))


def reads_as_participle(name: str) -> bool:
    """Whether a function's name is a participle: `told`, `asked_by`, `models_told`; not `nested_tool`, `is_sealed`."""
    words = name.split("_")
    if QUESTIONS.fullmatch(words[0]):
        return False
    first = is_participle(words[0]) and (len(words) == 1 or PREPOSITIONS.fullmatch(words[1]))
    return bool(first) or is_participle(words[-1])


RETIRED_NAMES: Mapping[str, str] = {
    "FailingReader": "StreamReaderBase",
    "Reading": "ReplyRules",
    "Mender": "Normalizer",
    "mend": "normalize",
    "mending": "normalize",
    "Unforeseen": "UnexpectedErrorGuard",
    "_blamed": "as_upstream_fault",
    "Mishap": "UpstreamError",
    "chance_of": "retry_decision",
    "Desk": "ModelRoutes",
    "Inquiry": "ModelQuery",
    "told": "list_models",
    "Asked": "RequestContext",
    "verdict": "resolve_cancellation",
    "Turn._sealed": "_with_store_fields",
    "Turn.passed": "process_stream",
    "Turn.finished": "persist",
    "Turn.failed": "persist_failure",
    "_give_up": "drop_or_reject",
    "_says_nothing": "is_neutral",
    "_only_advises": "is_advisory",
    "Part": "ConfigModel",
}
"""Classes, functions and methods with a better name. A name without a class is retired everywhere."""
RETIRED_MODULES: Mapping[str, str] = {
    "defects": "unexpected",
    "mishaps": "errors",
    "information": "model_listing",
    "calls_in_turn": "tool_call_serializer",
    "pattern": "chunk_template",
    "parts": "batch",
    "hints": "onboarding",
    "intake": "request_body",
    "answers": "json_response",
    "inflate": "decompression",
    "clock": "deadline",
    "trust": "tls",
    "relay": "stream_pump",
    "over_http": "upstreams/http",
    "over_local": "upstreams/local",
    "over_litellm": "upstreams/litellm",
    "engines": "upstreams/factory",
}
"""Modules and folders with a better name."""
ALLOWED_RETIRED: Mapping[str, str] = {
    "adapters/translate/parts.py": "content parts of messages",
    "contract/fakes/answers.py": "the answers of fake providers",
    "proxy/config/engines.py": "the configuration of engines",
}
"""Modules whose name has another meaning than the retired one, each with its reason."""
TEST_ID = re.compile(r"^(?:async )?def (test_[a-z]\d+(?:_\w*)?)\(", re.MULTILINE)
"""The name of a test that begins with the number of a document's line instead of saying what it shows."""


def find_participles(folder: str) -> Iterator[str]:
    for module in read_modules(folder):
        for node in filter(is_public, list_functions(module.tree)):
            if reads_as_participle(node.name) and node.name not in ALLOWED_PARTICIPLES:
                yield module.place(node.lineno, node.name)


def find_retired_names(folder: str) -> Iterator[str]:
    for module in read_modules(folder):
        path = str(module.file.relative_to(ROOT))
        if path not in ALLOWED_RETIRED:
            parts = Path(path).with_suffix("").parts
            yield from (f"{path}: say {RETIRED_MODULES[part]}" for part in parts if part in RETIRED_MODULES)
        for node in ast.walk(module.tree):
            for name, line in list_names(node):
                if name in RETIRED_NAMES:
                    yield module.place(line, f"{name}: say {RETIRED_NAMES[name]}")


def list_names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The name of a class or function; for a class also its methods, as `Turn.passed`."""
    if isinstance(node, Function | ast.ClassDef):
        yield node.name, node.lineno
    if isinstance(node, ast.ClassDef):
        methods = (each for each in node.body if isinstance(each, Function))
        yield from ((f"{node.name}.{each.name}", each.lineno) for each in methods)


def find_test_ids(folder: str) -> Iterator[str]:
    for file in sorted((ROOT / folder).rglob("*.py")):
        yield from (f"{file.relative_to(ROOT)} {found}" for found in TEST_ID.findall(file.read_text("utf-8")))
