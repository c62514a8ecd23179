"""jinja2's immutable sandbox with bounds: a template comes with a model folder and is not trusted.

jinja2's own sandbox refuses unsafe attributes and ranges above 100 000. It bounds neither time, nor output, nor the
size of a value: there, this template writes 2^60 characters (`tests/local_engine/test_sandbox.py` has more).

    {% set n = namespace(a="x") %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a }}

Here each pass of a loop, each call and each text that is written spends a part of a budget. To that end the parsed
template is rewritten: a loop's body begins with a charge (for its constant text, too), and `~` and literals of lists
become calls. No value may weigh more than may be written; operators that can enlarge a value are checked before they
run. Attributes that begin with an underscore, methods and filters that are not on the lists below, and anything that
would alter an argument are refused.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["Bounds", "Budget", "Environment", "OverBudget", "spending"]

_FILTERS = """
abs bool capitalize count d default dictsort e escape first float groupby indent int items join last length list lower
map max min reject rejectattr replace reverse round safe select selectattr sort string sum title tojson trim unique
upper wordcount
"""
_METHODS = """
capitalize casefold count endswith find get index isalnum isalpha isdecimal isdigit islower isnumeric isspace isupper
items join keys lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip split
splitlines startswith strip swapcase title upper values
"""
FILTERS, METHODS = frozenset(_FILTERS.split()), frozenset(_METHODS.split())
WIDEST = 64
"""The largest number that a call may be given besides data, as in tojson(indent=4)."""
LONGEST_RANGE = 10_000


class OverBudget(SecurityError):
    """A template ran longer, or wrote more, than templates may."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`seconds` of processor time, `steps` (passes of loops, and calls), `chars` written or held in one value."""

    seconds: float = 2.0
    steps: int = 200_000
    chars: int = 8_000_000


@dataclass(slots=True)
class Budget:
    """What one run of a template has spent. Belongs to the thread that created it."""

    bounds: Bounds
    steps: int = 0
    chars: int = 0
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.thread_time() + self.bounds.seconds

    def step(self, chars: int = 0) -> None:
        self.steps += 1
        self.chars += chars
        if self.steps > self.bounds.steps:
            raise OverBudget(f"it takes more than {self.bounds.steps} steps")
        if self.chars > self.bounds.chars:
            raise OverBudget(f"it writes more than {self.bounds.chars} characters")
        if self.steps % 64 == 0 and time.thread_time() > self.end:
            raise OverBudget(f"it takes more than {self.bounds.seconds} seconds")

    def weight(self, value: Any) -> int:
        """The characters and entries of a value with all that it holds, counted as often as it would be written."""
        total, open_ = 0, [value]
        while open_:
            part = open_.pop()
            if isinstance(part, (str, bytes)):
                total += len(part)
            elif isinstance(part, dict):
                total += 16 + 16 * len(part)
                open_ += [*part, *part.values()]
            elif isinstance(part, (list, tuple)):
                total += 16 + len(part)
                open_ += part
            else:
                total += 1
            self.fits(total)
        return total

    def fits(self, size: int) -> None:
        if size > self.bounds.chars:
            raise OverBudget(f"a value in it has more than {self.bounds.chars} characters or entries")


spending: contextvars.ContextVar[Budget] = contextvars.ContextVar("spending")


class Environment(ImmutableSandboxedEnvironment):
    """Its templates run while `spending` holds a budget."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            autoescape=False,
            finalize=_charge_output,
            extensions=[loopcontrols, Generation],
        )
        self.globals = {name: self.globals[name] for name in ("dict", "namespace", "joiner", "cycler")}
        self.globals["range"] = _range
        self.filters = {name: _bound_filter(name, self.filters[name]) for name in FILTERS if name in self.filters}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = Parser(self, source, name, filename).parse()
        _charge_loops(tree)
        _rewrite(tree)
        return tree

    def charge(self, chars: int) -> str:
        spending.get().step(chars)
        return ""

    def concatenate(self, *parts: object) -> str:
        budget = spending.get()
        budget.fits(sum(map(budget.weight, parts)))
        return "".join(map(str, parts))

    def measure_literal(self, value: Any) -> Any:
        budget = spending.get()
        budget.step(budget.weight(value))
        return value

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = spending.get()
        budget.step()
        method = getattr(__obj, "__self__", None)
        name = getattr(__obj, "__name__", "")
        if isinstance(method, (str, list, tuple, dict, int, float)):
            _check_method(method, name, args)
        found = super().call(__context, __obj, *args, **kwargs)
        budget.weight(found)
        return found

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = spending.get()
        budget.step()
        if (operator == "%" and isinstance(left, str)) or operator == "**":
            raise SecurityError(f"the operator {operator} is not available here")
        if operator == "*":
            times = [value for value in (left, right) if isinstance(value, int)]
            budget.fits(max(budget.weight(left), budget.weight(right)) * max([1, *times]))
            if len(times) == 2 and max(map(abs, times)) > 1 << 62:
                raise OverBudget("a number in it is too large")
        elif operator == "+":
            budget.fits(budget.weight(left) + budget.weight(right))
        return super().call_binop(context, operator, left, right)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        raise SecurityError(f"the attribute {attribute!r} of {type(obj).__name__} is not available here")

    def wrap_str_format(self, value: Any) -> None:
        if getattr(value, "__name__", "") in ("format", "format_map") and isinstance(value.__self__, str):
            raise SecurityError(f"the method str.{value.__name__} is not available here")


class Generation(Extension):
    """`{% generation %}`, which marks the model's own words for training; rendered as its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _charge_loops(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        loop.body.insert(0, nodes.ExprStmt(_charge_node(loop.body), lineno=loop.lineno))
        if loop.test is not None:
            loop.test = nodes.Or(_charge_node([]), loop.test, lineno=loop.lineno)
    macros: list[nodes.Macro | nodes.CallBlock] = [*tree.find_all(nodes.Macro), *tree.find_all(nodes.CallBlock)]
    for macro in macros:
        macro.body.insert(0, nodes.ExprStmt(_charge_node(macro.body), lineno=macro.lineno))


def _charge_node(body: list[nodes.Node]) -> nodes.Expr:
    return _call_environment(
        "charge", [nodes.Const(sum(len(text.data) for node in body for text in _template_texts(node)))]
    )


def _template_texts(node: nodes.Node) -> list[nodes.TemplateData]:
    inner = list(node.find_all(nodes.TemplateData))
    return [*inner, node] if isinstance(node, nodes.TemplateData) else inner


def _call_environment(method: str, given: list[nodes.Expr]) -> nodes.Expr:
    """Call a method of Environment, which no name of the template can hide."""
    return nodes.Call(nodes.EnvironmentAttribute(method), given, [], None, None)


def _rewrite(node: Any) -> Any:
    """Turn `a ~ b` into a call of `concatenate`, a list, tuple or dict that is read into one of `measure_literal`."""
    for name, value in list(node.iter_fields()):
        if isinstance(value, nodes.Node):
            setattr(node, name, _rewrite(value))
        elif isinstance(value, list):
            setattr(node, name, [_rewrite(v) if isinstance(v, nodes.Node) else v for v in value])
    if isinstance(node, nodes.Concat):
        return _call_environment("concatenate", node.nodes).set_lineno(node.lineno)
    literal = isinstance(node, (nodes.List, nodes.Dict)) or (isinstance(node, nodes.Tuple) and node.ctx == "load")
    return _call_environment("measure_literal", [node]).set_lineno(node.lineno) if literal else node


def _charge_output(value: Any) -> Any:
    """Charge the value that an expression is about to write."""
    budget = spending.get()
    budget.step(budget.weight(value))
    return value


def _range(*args: int) -> range:
    found = range(*args)
    if len(found) > LONGEST_RANGE:
        raise OverBudget(f"a range in it has more than {LONGEST_RANGE} numbers")
    return found


def _check_method(owner: Any, name: str, args: tuple[Any, ...]) -> None:
    if name not in METHODS:
        raise SecurityError(f"the method {type(owner).__name__}.{name} is not available here")
    if isinstance(owner, str):
        _check_growth(name, owner, args)


def _check_growth(name: str, text: str, args: tuple[Any, ...]) -> None:
    """Refuse a method whose result would be too large, before it runs."""
    budget = spending.get()
    if name == "replace" and len(args) > 1 and all(isinstance(arg, str) for arg in args[:2]):
        budget.fits(len(text) + text.count(args[0]) * len(args[1]))
    elif name == "join" and args and isinstance(args[0], (list, tuple)):
        budget.fits(budget.weight(args[0]) + len(text) * len(args[0]))


def _bound_filter(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter so that it is charged and its result measured. Keeps jinja2's marks on the function."""

    @wraps(run)
    def run_bounded(*args: Any, **kwargs: Any) -> Any:
        budget = spending.get()
        budget.step()
        numbers = [v for v in (*args[1:], *kwargs.values()) if isinstance(v, int) and not isinstance(v, bool)]
        if name in ("indent", "tojson") and any(abs(number) > WIDEST for number in numbers):
            raise OverBudget(f"{name} is given a number above {WIDEST}")
        given = [arg for arg in args if isinstance(arg, (str, list, tuple, dict))]
        budget.fits(sum(map(budget.weight, given)))
        if name in ("replace", "join", "indent") and given:
            _check_filter_growth(name, given)
        found = run(*args, **kwargs)
        budget.weight(found)
        return found

    return run_bounded


def _check_filter_growth(name: str, given: list[Any]) -> None:
    if name == "replace":
        _check_growth("replace", str(given[0]), tuple(given[1:]))
    elif name == "join":
        _check_growth("join", str(given[1]) if len(given) > 1 else "", (given[0],))
    elif name == "indent":
        spending.get().fits(len(given[0]) + str(given[0]).count("\n") * WIDEST)
