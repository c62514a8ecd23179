"""Charts as inline SVG: a dot for each value on a logarithmic axis, with the range of its rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Dot", "draw_dots", "find_ticks"]

WIDTH, LEFT, RIGHT, ROW = 720, 210, 70, 24


@dataclass(frozen=True, slots=True)
class Dot:
    """A value, the least and the most of its rounds, and the goals for it. Dots with the same label share a row; the
    smaller one has its number on the left."""

    label: str
    value: float
    least: float
    most: float
    must: float | None = None
    aim: float | None = None
    is_left: bool = False

    @property
    def marks(self) -> list[float]:
        return [mark for mark in (self.must, self.aim) if mark is not None]


def draw_dots(dots: Sequence[Dot], unit: str) -> str:
    """Draw one row for each label. Values must be positive."""
    labels = list(dict.fromkeys(dot.label for dot in dots))
    ends = [value for dot in dots for value in (dot.least, dot.most, *dot.marks)]
    ticks = find_ticks(min(ends), max(ends))
    height = ROW * (len(labels) + 2)
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(unit)}">']
    bottom = ROW * len(labels) + 6
    for tick in ticks:
        x = _place(tick, ticks)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="4" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 14}">{tick:,g}</text>')
    parts.append(f'<text class="unit" x="{WIDTH - RIGHT}" y="{bottom + 30}">{escape(unit)}</text>')
    for row, label in enumerate(labels):
        y = ROW * row + ROW // 2 + 4
        parts.append(f'<text class="label" x="{LEFT - 10}" y="{y + 4}">{escape(label)}</text>')
        parts += (part for dot in dots if dot.label == label for part in _draw_dot(dot, y, ticks))
    return "\n".join([*parts, "</svg>"])


def _draw_dot(dot: Dot, y: int, ticks: Sequence[float]) -> Iterator[str]:
    least, most, x = (_place(value, ticks) for value in (dot.least, dot.most, dot.value))
    yield f'<line class="range" x1="{least}" x2="{most}" y1="{y}" y2="{y}"/>'
    for name, mark in (("must", dot.must), ("aim", dot.aim)):
        if mark is not None:
            at = _place(mark, ticks)
            title = f"<title>{name}: {mark:g}</title>"
            yield f'<line class="{name}" x1="{at}" x2="{at}" y1="{y - 8}" y2="{y + 8}">{title}</line>'
    yield f'<circle cx="{x}" cy="{y}" r="4.5"><title>{escape(dot.label)}: {dot.value:,.3g}</title></circle>'
    side, at = ("left", least - 8) if dot.is_left else ("right", most + 8)
    yield f'<text class="{side}" x="{at:.1f}" y="{y + 4}">{_shorten(dot.value)}</text>'


def _shorten(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def find_ticks(least: float, most: float) -> list[float]:
    """The ticks 1, 2 and 5 of each power of ten, from the last one below the least value to the first one above the
    most."""
    powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    first = max(at for at, tick in enumerate(ticks) if tick <= least)
    last = min(at for at, tick in enumerate(ticks) if tick >= most)
    return ticks[first : max(last, first + 1) + 1]


def _place(value: float, ticks: Sequence[float]) -> float:
    share = math.log(value / ticks[0]) / math.log(ticks[-1] / ticks[0])
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)
