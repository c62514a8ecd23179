"""jinja2's immutable sandbox with limits. Templates come with model folders, which are not trusted.

jinja2's own sandbox refuses unsafe attributes and ranges above 100 000. It limits neither time, nor output, nor the
size of a value: in it, this template writes 2^60 characters (`tests/local_engine/test_sandbox.py` has more).

    {% set n = namespace(a="x") %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a }}

In this module each pass of a loop, each call and each written text is charged to a budget. To do so, the module
rewrites the parsed template: the body of a loop begins with a charge (including its constant text), and `~` and
literals of lists become calls. A value may have at most as many characters and entries as a template may write.
Operators that can enlarge a value are checked before they run. Refused are attributes that begin with an underscore,
methods and filters that are not listed below, and everything that would alter an argument.
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
"""The largest number that a filter accepts as an option, as in tojson(indent=4)."""
LONGEST_RANGE = 10_000


class OverBudget(SecurityError):
    """A template exceeded a limit: it ran too long or wrote too much."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits: `seconds` of processor time, `steps` (passes of loops and calls), `chars` written or in one value."""

    seconds: float = 2.0
    steps: int = 200_000
    chars: int = 8_000_000


@dataclass(slots=True)
class Budget:
    """What one run of a template has used so far. Belongs to the thread that created it."""

    bounds: Bounds
    steps: int = 0
    chars: int = 0
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.thread_time() + self.bounds.seconds

    def charge(self, chars: int = 0) -> None:
        """Count one step and some written characters. Raises OverBudget."""
        self.steps += 1
        self.chars += chars
        if self.steps > self.bounds.steps:
            raise OverBudget(f"it takes more than {self.bounds.steps} steps")
        if self.chars > self.bounds.chars:
            raise OverBudget(f"it writes more than {self.bounds.chars} characters")
        if self.steps % 64 == 0 and time.thread_time() > self.end:
            raise OverBudget(f"it takes more than {self.bounds.seconds} seconds")

    def measure(self, value: Any) -> int:
        """Count the characters and entries of a value and its contents, repeated ones each time. Raises OverBudget."""
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
            self.check_size(total)
        return total

    def check_size(self, size: int) -> None:
        """Raises OverBudget if a value of that size is too large."""
        if size > self.bounds.chars:
            raise OverBudget(f"a value in it has more than {self.bounds.chars} characters or entries")


spending: contextvars.ContextVar[Budget] = contextvars.ContextVar("spending")


class Environment(ImmutableSandboxedEnvironment):
    """A sandbox whose templates are charged to the budget in `spending`."""

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
        spending.get().charge(chars)
        return ""

    def concatenate(self, *parts: object) -> str:
        budget = spending.get()
        budget.check_size(sum(map(budget.measure, parts)))
        return "".join(map(str, parts))

    def measure_literal(self, value: Any) -> Any:
        budget = spending.get()
        budget.charge(budget.measure(value))
        return value

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = spending.get()
        budget.charge()
        method = getattr(__obj, "__self__", None)
        name = getattr(__obj, "__name__", "")
        if isinstance(method, (str, list, tuple, dict, int, float)):
            _check_method(method, name, args)
        found = super().call(__context, __obj, *args, **kwargs)
        budget.measure(found)
        return found

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = spending.get()
        budget.charge()
        if (operator == "%" and isinstance(left, str)) or operator == "**":
            raise SecurityError(f"the operator {operator} is not available here")
        if operator == "*":
            times = [value for value in (left, right) if isinstance(value, int)]
            budget.check_size(max(budget.measure(left), budget.measure(right)) * max([1, *times]))
            if len(times) == 2 and max(map(abs, times)) > 1 << 62:
                raise OverBudget("a number in it is too large")
        elif operator == "+":
            budget.check_size(budget.measure(left) + budget.measure(right))
        return super().call_binop(context, operator, left, right)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        raise SecurityError(f"the attribute {attribute!r} of {type(obj).__name__} is not available here")

    def wrap_str_format(self, value: Any) -> None:
        if getattr(value, "__name__", "") in ("format", "format_map") and isinstance(value.__self__, str):
            raise SecurityError(f"the method str.{value.__name__} is not available here")


class Generation(Extension):
    """The tag `{% generation %}`, which marks the text of the model for training. Rendering returns its body."""

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
    """Make a call of a method of Environment. No name in the template can hide it."""
    return nodes.Call(nodes.EnvironmentAttribute(method), given, [], None, None)


def _rewrite(node: Any) -> Any:
    """Call `concatenate` for `a ~ b`, and `measure_literal` for a list, a dict, or a tuple that is not assigned to."""
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
    budget.charge(budget.measure(value))
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
        budget.check_size(len(text) + text.count(args[0]) * len(args[1]))
    elif name == "join" and args and isinstance(args[0], (list, tuple)):
        budget.check_size(budget.measure(args[0]) + len(text) * len(args[0]))


def _bound_filter(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter: charge each call and measure its result. jinja2's marks on the function are kept."""

    @wraps(run)
    def run_bounded(*args: Any, **kwargs: Any) -> Any:
        budget = spending.get()
        budget.charge()
        numbers = [v for v in (*args[1:], *kwargs.values()) if isinstance(v, int) and not isinstance(v, bool)]
        if name in ("indent", "tojson") and any(abs(number) > WIDEST for number in numbers):
            raise OverBudget(f"{name} is given a number above {WIDEST}")
        given = [arg for arg in args if isinstance(arg, (str, list, tuple, dict))]
        budget.check_size(sum(map(budget.measure, given)))
        if name in ("replace", "join", "indent") and given:
            _check_filter_growth(name, given)
        found = run(*args, **kwargs)
        budget.measure(found)
        return found

    return run_bounded


def _check_filter_growth(name: str, given: list[Any]) -> None:
    if name == "replace":
        _check_growth("replace", str(given[0]), tuple(given[1:]))
    elif name == "join":
        _check_growth("join", str(given[1]) if len(given) > 1 else "", (given[0],))
    elif name == "indent":
        spending.get().check_size(len(given[0]) + str(given[0]).count("\n") * WIDEST)
