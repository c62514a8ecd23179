"""The planner of chat requests: what the engine has to generate, and how to parse the generated text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, format_path
from dragoman.local_engine.generation import GenerationRequest, TokenMask
from dragoman.local_engine.guidance.grammar_masks import GrammarCompiler
from dragoman.local_engine.guidance.grammars import (
    FunctionTool,
    write_call_grammar,
    write_json_rule,
    write_reasoning_grammar,
    write_tool_rules,
)
from dragoman.local_engine.guidance.references import has_endless_reference
from dragoman.local_engine.prompts.chat_template import ChatTemplate
from dragoman.local_engine.prompts.template_input import convert_messages, convert_tools, read_template_variables
from dragoman.local_engine.text.reasoning_parser import ReasoningMarkers
from dragoman.local_engine.text.tool_call_formats import ToolCallFormat

from .request_parameters import (
    check_best_of,
    check_request,
    read_max_tokens,
    read_sampling,
    read_stop_sequences,
    wants_usage,
)

__all__ = ["ChatFormat", "ChatPlan", "ChatPlanner"]

SUPPORTED_FIELDS = frozenset(
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
MaskFactory = Callable[[], TokenMask]


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The text format of a model: its chat template, tool call format and reasoning markers."""

    template: ChatTemplate
    tool_format: ToolCallFormat | None
    reasoning: ReasoningMarkers | None


@dataclass(frozen=True, slots=True)
class ChatPlan:
    """The plan of a chat request.

    `reasoning_opened`: the prompt ends with the opening marker. `tool_names`: the tools whose calls are parsed.
    `hidden`: special tokens to remove from the text, if the engine leaves special tokens in it.
    """

    generation: GenerationRequest
    reasoning: ReasoningMarkers | None
    reasoning_opened: bool
    tool_format: ToolCallFormat | None
    tool_names: frozenset[str]
    legacy: bool
    logprobs: bool
    usage: bool
    include_stop: bool
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The tools that a request allows. `required`: a call must follow, of any or of a named tool."""

    tools: list[JsonObject]
    functions: list[FunctionTool]
    required: bool
    path: Path
    legacy: bool

    @property
    def names(self) -> frozenset[str]:
        return frozenset(function.name for function in self.functions)


class ChatPlanner:
    """Plans chat requests. `encode` tokenizes a prompt, `special` are the texts of special tokens. All calls block."""

    def __init__(
        self,
        chat_format: ChatFormat,
        compiler: GrammarCompiler,
        encode: Callable[[str], Sequence[int]],
        special: Iterable[str],
    ) -> None:
        self._format = chat_format
        self._compiler = compiler
        self._encode = encode
        self._special = frozenset(special)

    def plan(self, request: JsonObject) -> ChatPlan:
        """Plan a request. Raises Fault with the path of the invalid field."""
        check_request(request, "hub/chat.request", SUPPORTED_FIELDS)
        check_best_of(request)
        chat_format = self._format
        selection = select_tools(request)
        if selection.functions and chat_format.tool_format is None:
            message = "the model's chat template shows no tool call format; `tools` in dragoman.json can set one"
            raise Fault("unsupported_parameter", message, selection.path[:1])
        template = chat_format.template
        messages = convert_messages(request, template.source, chat_format.tool_format)
        tools = convert_tools(selection.tools, selection.names) or None
        prompt = template.render(messages, tools, **read_template_variables(request))
        reasoning = chat_format.reasoning
        reasoning = None if reasoning and reasoning.is_closed_by(prompt) else reasoning
        opened = bool(reasoning and reasoning.is_opened_by(prompt))
        tool_format = chat_format.tool_format if selection.functions else None
        mask = self._build_mask(request, selection, tool_format, reasoning, opened)
        markers = {
            *(tool_format.markers if tool_format else ()),
            *((reasoning.open, reasoning.close) if reasoning else ()),
        }
        skip_special = request.get("skip_special_tokens") is not False
        keep_special = not skip_special or bool(markers & self._special)
        return ChatPlan(
            generation=self._build_generation(request, prompt, mask, keep_special),
            reasoning=reasoning,
            reasoning_opened=opened,
            tool_format=tool_format,
            tool_names=selection.names,
            legacy=selection.legacy,
            logprobs=bool(request.get("logprobs")),
            usage=wants_usage(request),
            include_stop=bool(request.get("include_stop_str_in_output")),
            hidden=tuple(sorted(self._special - markers)) if keep_special and skip_special else (),
        )

    def _build_generation(
        self, request: JsonObject, prompt: str, mask: MaskFactory | None, keep_special: bool
    ) -> GenerationRequest:
        tokens = tuple(self._encode(prompt))
        if not tokens:
            raise Fault("invalid_request", "the chat template renders an empty prompt", ("messages",))
        top_logprobs = (request.get("top_logprobs") or 0) if request.get("logprobs") else None
        return GenerationRequest(
            prompt=tokens,
            sampling=read_sampling(request, top_logprobs),
            max_tokens=read_max_tokens(request, "max_completion_tokens", "max_tokens"),
            stop=read_stop_sequences(request),
            stop_ids=frozenset(request.get("stop_token_ids") or ()),
            ignore_eos=bool(request.get("ignore_eos")),
            n=request.get("n") or 1,
            mask=mask,
            skip_special=not keep_special,
        )

    def _build_mask(
        self,
        request: JsonObject,
        selection: ToolSelection,
        tool_format: ToolCallFormat | None,
        reasoning: ReasoningMarkers | None,
        opened: bool,
    ) -> MaskFactory | None:
        json_rule, path = read_response_format(request)
        compiler = self._compiler
        write_marker = compiler.write_marker
        if tool_format is None:
            if json_rule is None:
                return None
            rules = f"body: {json_rule}"
            return compiler.compile(write_reasoning_grammar(rules, reasoning, write_marker, opened=opened), path)
        parallel = request.get("parallel_tool_calls") is not False and not selection.legacy
        if not selection.required and json_rule is None:
            if not tool_format.open:
                return None
            grammar = write_call_grammar(tool_format, selection.functions, write_marker, parallel=parallel)
            skipped = reasoning if opened else None
            return compiler.compile_with_trigger(grammar, tool_format.open, skipped, selection.path, once=not parallel)
        otherwise = None if selection.required else json_rule
        rules = write_tool_rules(tool_format, selection.functions, write_marker, parallel=parallel, otherwise=otherwise)
        grammar = write_reasoning_grammar(rules, reasoning, write_marker, opened=opened)
        return compiler.compile(grammar, path or selection.path)


def read_response_format(request: JsonObject) -> tuple[str | None, Path]:
    """Read the response format as a grammar rule, with the path of its schema. Raises Fault."""
    response_format = request.get("response_format") or {}
    if response_format.get("type") == "json_object":
        return write_json_rule({"type": "object"}, strict=False), ("response_format",)
    if response_format.get("type") == "json_schema":
        given, path = response_format["json_schema"], ("response_format", "json_schema", "schema")
        _check_references(given["schema"], path, "invalid_json_schema")
        return write_json_rule(given["schema"], strict=bool(given.get("strict"))), path
    return None, ()


def select_tools(request: JsonObject) -> ToolSelection:
    """Select the tools that may be called, and whether a call is required. Raises Fault."""
    legacy = not request.get("tools") and bool(request.get("functions"))
    if legacy:
        tools = [{"type": "function", "function": function} for function in request["functions"]]
        choice, path = request.get("function_call"), ("functions",)
        choice = {"type": "function", "function": choice} if isinstance(choice, dict) else choice
    else:
        tools, choice, path = request.get("tools") or [], request.get("tool_choice"), ("tools",)
    for index, tool in enumerate(tools):
        if tool["type"] != "function":
            raise Fault(
                "unsupported_parameter", "custom tools are not supported", ("tools", index, "type"), tool["type"]
            )
    functions = [_read_function(tool["function"]) for tool in tools]
    for function in functions:
        _check_references(function.parameters, path, "invalid_function_parameters")
    if choice == "none":
        functions = []
    required = choice == "required"
    if isinstance(choice, dict):
        functions, required = _restrict_tools(functions, choice, "function_call" if legacy else "tool_choice")
    return ToolSelection(tools, functions, required, path, legacy)


def _check_references(schema: JsonObject, path: Path, code: str) -> None:
    if has_endless_reference(schema):
        message = f"{format_path(path)} is not accepted: a reference of the schema leads back to itself"
        raise Fault("invalid_request", message, path, code=code)


def _read_function(given: JsonObject) -> FunctionTool:
    return FunctionTool(given["name"], given.get("parameters") or {}, bool(given.get("strict")))


def _restrict_tools(functions: list[FunctionTool], choice: JsonObject, key: str) -> tuple[list[FunctionTool], bool]:
    """Restrict tools to those that the choice names; return them, and whether a call is required."""
    kind = choice["type"]
    if kind == "custom":
        raise Fault("unsupported_parameter", "custom tools are not supported", (key, "type"), kind)
    if kind == "allowed_tools":
        allowed = choice["allowed_tools"]
        names = [tool.get("function", {}).get("name") for tool in allowed["tools"]]
        required = allowed["mode"] == "required"
    else:
        names, required = [choice["function"]["name"]], True
    known = {function.name for function in functions}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise Fault("invalid_request", f"{key} names {unknown!r}, which is not one of the tools", (key,), unknown)
    return [function for function in functions if function.name in names], required
