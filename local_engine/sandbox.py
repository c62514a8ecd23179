"""jinja2's immutable sandbox, with bounds: a template comes with a model folder and is not trusted.

Every turn of a loop, every call and every text that is written costs a part of a budget, so that neither endless loops
nor strings that double themselves get far. To that end the parsed template is rewritten: a loop's body begins with a
charge (for the constant text in it, too), and `~` and literals of lists become calls. No value weighs more than may be
written; operators that can blow one up are judged before they run. Attributes that begin with an underscore, methods
and filters that are not on the lists below, and anything that would alter an argument are refused.
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
"""The largest number that a call may be given beside data, as in tojson(indent=4)."""
LONGEST_RANGE = 10_000


class OverBudget(SecurityError):
    """A template ran longer, or wrote more, than templates may."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`seconds` of processor time, `steps` (turns of loops and calls), `chars` written or held in one value."""

    seconds: float = 2.0
    steps: int = 200_000
    chars: int = 8_000_000


@dataclass(slots=True)
class Budget:
    """What one run of a template has left. Belongs to the thread that made it."""

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
    """Templates of this environment run while `spending` holds a budget."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            autoescape=False,
            finalize=_written,
            extensions=[loopcontrols, Generation],
        )
        self.globals = {name: self.globals[name] for name in ("dict", "namespace", "joiner", "cycler")}
        self.globals["range"] = _range
        self.filters = {name: _judged(name, self.filters[name]) for name in FILTERS if name in self.filters}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = Parser(self, source, name, filename).parse()
        _charge_loops(tree)
        _rewritten(tree)
        return tree

    def charge(self, chars: int) -> str:
        spending.get().step(chars)
        return ""

    def glued(self, *parts: object) -> str:
        budget = spending.get()
        budget.fits(sum(map(budget.weight, parts)))
        return "".join(map(str, parts))

    def built(self, value: Any) -> Any:
        budget = spending.get()
        budget.step(budget.weight(value))
        return value

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = spending.get()
        budget.step()
        method = getattr(__obj, "__self__", None)
        name = getattr(__obj, "__name__", "")
        if isinstance(method, (str, list, tuple, dict, int, float)):
            _judge_method(method, name, args)
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
    """`{% generation %}`, which marks the model's own words for training; here its body alone matters."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _charge_loops(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        loop.body.insert(0, nodes.ExprStmt(_charge(loop.body), lineno=loop.lineno))
        if loop.test is not None:
            loop.test = nodes.Or(_charge([]), loop.test, lineno=loop.lineno)
    macros: list[nodes.Macro | nodes.CallBlock] = [*tree.find_all(nodes.Macro), *tree.find_all(nodes.CallBlock)]
    for macro in macros:
        macro.body.insert(0, nodes.ExprStmt(_charge(macro.body), lineno=macro.lineno))


def _charge(body: list[nodes.Node]) -> nodes.Expr:
    return _own("charge", [nodes.Const(sum(len(text.data) for node in body for text in _texts(node)))])


def _texts(node: nodes.Node) -> list[nodes.TemplateData]:
    inner = list(node.find_all(nodes.TemplateData))
    return [*inner, node] if isinstance(node, nodes.TemplateData) else inner


def _own(method: str, given: list[nodes.Expr]) -> nodes.Expr:
    """A call of a method of Environment, which no name of the template can hide."""
    return nodes.Call(nodes.EnvironmentAttribute(method), given, [], None, None)


def _rewritten(node: Any) -> Any:
    """The tree with each `a ~ b` as a call of `glued`, each list, tuple or dict that is read as one of `built`."""
    for name, value in list(node.iter_fields()):
        if isinstance(value, nodes.Node):
            setattr(node, name, _rewritten(value))
        elif isinstance(value, list):
            setattr(node, name, [_rewritten(v) if isinstance(v, nodes.Node) else v for v in value])
    if isinstance(node, nodes.Concat):
        return _own("glued", node.nodes).set_lineno(node.lineno)
    literal = isinstance(node, (nodes.List, nodes.Dict)) or (isinstance(node, nodes.Tuple) and node.ctx == "load")
    return _own("built", [node]).set_lineno(node.lineno) if literal else node


def _written(value: Any) -> Any:
    """What an expression is about to write."""
    budget = spending.get()
    budget.step(budget.weight(value))
    return value


def _range(*args: int) -> range:
    found = range(*args)
    if len(found) > LONGEST_RANGE:
        raise OverBudget(f"a range in it has more than {LONGEST_RANGE} numbers")
    return found


def _judge_method(owner: Any, name: str, args: tuple[Any, ...]) -> None:
    if name not in METHODS:
        raise SecurityError(f"the method {type(owner).__name__}.{name} is not available here")
    if isinstance(owner, str):
        _judge_growth(name, owner, args)


def _judge_growth(name: str, text: str, args: tuple[Any, ...]) -> None:
    """Refuse what would write more than may be held, before it is written."""
    budget = spending.get()
    if name == "replace" and len(args) > 1 and all(isinstance(arg, str) for arg in args[:2]):
        budget.fits(len(text) + text.count(args[0]) * len(args[1]))
    elif name == "join" and args and isinstance(args[0], (list, tuple)):
        budget.fits(budget.weight(args[0]) + len(text) * len(args[0]))


def _judged(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is charged, and whose result is measured. Keeps jinja2's marks on the function."""

    @wraps(run)
    def judged(*args: Any, **kwargs: Any) -> Any:
        budget = spending.get()
        budget.step()
        numbers = [v for v in (*args[1:], *kwargs.values()) if isinstance(v, int) and not isinstance(v, bool)]
        if name in ("indent", "tojson") and any(abs(number) > WIDEST for number in numbers):
            raise OverBudget(f"{name} is given a number above {WIDEST}")
        given = [arg for arg in args if isinstance(arg, (str, list, tuple, dict))]
        budget.fits(sum(map(budget.weight, given)))
        if name in ("replace", "join", "indent") and given:
            _judge_filter(name, given)
        found = run(*args, **kwargs)
        budget.weight(found)
        return found

    return judged


def _judge_filter(name: str, given: list[Any]) -> None:
    if name == "replace":
        _judge_growth("replace", str(given[0]), tuple(given[1:]))
    elif name == "join":
        _judge_growth("join", str(given[1]) if len(given) > 1 else "", (given[0],))
    elif name == "indent":
        spending.get().fits(len(given[0]) + str(given[0]).count("\n") * WIDEST)
