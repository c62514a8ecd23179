"""A chat request turned into what the engine runs, and into what reads its text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

from . import asking
from .conversation import messages_for, tools_for, variables
from .grammars import Function, call_after_marker, json_of, with_reasoning, with_tools
from .guidance import Guides
from .reasoning import Marks
from .requests import Generation, TokenMask
from .template import ChatTemplate
from .toolforms import Form

__all__ = ["Family", "Plan", "Planner"]

HONOURED = frozenset(
    [
        "messages",
        "max_completion_tokens",
        "top_logprobs",
        "response_format",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "reasoning_effort",
        "chat_template_kwargs",
        "thinking",
    ]
)
MaskMaker = Callable[[], TokenMask]


@dataclass(frozen=True, slots=True)
class Family:
    """How a folder's model talks: its template, its form of tool calls, its markers of reasoning."""

    template: ChatTemplate
    form: Form | None
    marks: Marks | None


@dataclass(frozen=True, slots=True)
class Plan:
    """`opened`: the prompt ends inside the reasoning. `names`: the tools whose calls are looked for.

    `hidden` are special tokens that the text must not show, where the engine leaves special tokens in it.
    """

    generation: Generation
    marks: Marks | None
    opened: bool
    form: Form | None
    names: frozenset[str]
    legacy: bool
    logprobs: bool
    usage: bool
    include_stop: bool
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choosing:
    """What a request says of its tools. `forced` is required or named."""

    tools: list[JsonObject]
    functions: list[Function]
    forced: bool
    path: Path
    legacy: bool

    @property
    def names(self) -> frozenset[str]:
        return frozenset(function.name for function in self.functions)


class Planner:
    """`encode` makes tokens of a rendered prompt, `special` are the texts of special tokens. All of it blocks."""

    def __init__(
        self, family: Family, guides: Guides, encode: Callable[[str], Sequence[int]], special: Iterable[str]
    ) -> None:
        self._family = family
        self._guides = guides
        self._encode = encode
        self._special = frozenset(special)

    def plan(self, request: JsonObject) -> Plan:
        """Raises Fault, with the path of what is wrong."""
        asking.check(request, "hub/chat.request", HONOURED)
        asking.check_best_of(request)
        family = self._family
        choosing = choose_tools(request)
        if choosing.functions and family.form is None:
            message = "the model's chat template shows no form of tool calls; dragoman.json can name one, as tools"
            raise Fault("unsupported_parameter", message, choosing.path[:1])
        template = family.template
        messages = messages_for(request, template.source, family.form)
        tools = tools_for(choosing.tools, choosing.names) or None
        prompt = template.render(messages, tools, **variables(request))
        marks = family.marks if family.marks and not family.marks.closed_by(prompt) else None
        opened = bool(marks and marks.opened_by(prompt))
        form = family.form if choosing.functions else None
        mask = self._mask(request, choosing, form, marks, opened)
        markers = {*(form.markers if form else ()), *((marks.open, marks.close) if marks else ())}
        hiding = request.get("skip_special_tokens") is not False
        shown = not hiding or bool(markers & self._special)
        return Plan(
            generation=self._generation(request, prompt, mask, shown),
            marks=marks,
            opened=opened,
            form=form,
            names=choosing.names,
            legacy=choosing.legacy,
            logprobs=bool(request.get("logprobs")),
            usage=asking.wants_usage(request),
            include_stop=bool(request.get("include_stop_str_in_output")),
            hidden=tuple(sorted(self._special - markers)) if shown and hiding else (),
        )

    def _generation(self, request: JsonObject, prompt: str, mask: MaskMaker | None, shown: bool) -> Generation:
        tokens = tuple(self._encode(prompt))
        if not tokens:
            raise Fault("invalid_request", "the chat template makes an empty prompt of this", ("messages",))
        most, _ = asking.max_tokens(request, "max_completion_tokens", "max_tokens")
        return Generation(
            prompt=tokens,
            sampling=asking.sampling(request, (request.get("top_logprobs") or 0) if request.get("logprobs") else None),
            max_tokens=most,
            stop=asking.stops(request),
            stop_ids=frozenset(request.get("stop_token_ids") or ()),
            ignore_eos=bool(request.get("ignore_eos")),
            n=request.get("n") or 1,
            mask=mask,
            skip_special=not shown,
        )

    def _mask(
        self, request: JsonObject, choosing: Choosing, form: Form | None, marks: Marks | None, opened: bool
    ) -> MaskMaker | None:
        wanted, path = wanted_json(request)
        mark = self._guides.mark
        if form is None:
            if wanted is None:
                return None
            return self._guides.guide(with_reasoning(f"body: {wanted}", marks, mark, opened=opened), path)
        parallel = request.get("parallel_tool_calls") is not False and not choosing.legacy
        if not choosing.forced and wanted is None:
            if not form.open:
                return None
            grammar = call_after_marker(form, choosing.functions, mark, parallel=parallel)
            thinking = marks if opened else None
            return self._guides.lazy(grammar, form.open, thinking, choosing.path, once=not parallel)
        otherwise = None if choosing.forced else wanted
        rules = with_tools(form, choosing.functions, mark, parallel=parallel, otherwise=otherwise)
        return self._guides.guide(with_reasoning(rules, marks, mark, opened=opened), path or choosing.path)


def wanted_json(request: JsonObject) -> tuple[str | None, Path]:
    """The rule of a response format, and the path of its schema."""
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_object":
        return json_of({"type": "object"}, strict=False), ("response_format",)
    if wanted.get("type") == "json_schema":
        given = wanted["json_schema"]
        rule = json_of(given["schema"], strict=bool(given.get("strict")))
        return rule, ("response_format", "json_schema", "schema")
    return None, ()


def choose_tools(request: JsonObject) -> Choosing:
    """Which tools may be called, and whether one must. Raises Fault."""
    legacy = not request.get("tools") and bool(request.get("functions"))
    if legacy:
        tools = [{"type": "function", "function": function} for function in request["functions"]]
        choice, path = request.get("function_call"), ("functions",)
        choice = {"type": "function", "function": choice} if isinstance(choice, dict) else choice
    else:
        tools, choice, path = request.get("tools") or [], request.get("tool_choice"), ("tools",)
    for place, tool in enumerate(tools):
        if tool["type"] != "function":
            raise Fault("unsupported_parameter", "custom tools are not served", ("tools", place, "type"), tool["type"])
    functions = [_function(tool["function"]) for tool in tools]
    if choice == "none":
        functions = []
    forced = choice == "required"
    if isinstance(choice, dict):
        functions, forced = _named(functions, choice, "function_call" if legacy else "tool_choice")
    return Choosing(tools, functions, forced, path, legacy)


def _function(given: JsonObject) -> Function:
    return Function(given["name"], given.get("parameters") or {}, bool(given.get("strict")))


def _named(functions: list[Function], choice: JsonObject, key: str) -> tuple[list[Function], bool]:
    kind = choice["type"]
    if kind == "custom":
        raise Fault("unsupported_parameter", "custom tools are not served", (key, "type"), kind)
    if kind == "allowed_tools":
        allowed = choice["allowed_tools"]
        names = [tool.get("function", {}).get("name") for tool in allowed["tools"]]
        forced = allowed["mode"] == "required"
    else:
        names, forced = [choice["function"]["name"]], True
    known = {function.name for function in functions}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise Fault("invalid_request", f"{key} names {unknown!r}, which is not among the tools", (key,), unknown)
    return [function for function in functions if function.name in names], forced
