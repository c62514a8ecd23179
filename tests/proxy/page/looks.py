"""JavaScript that judges what a page looks like and how it can be used: contrast, width, names for screen readers."""

from __future__ import annotations

__all__ = ["LOW_CONTRAST", "NAMELESS", "TOO_WIDE", "VIEWS", "choose", "click_text"]

VIEWS = (
    "#/",
    "#/exchange/req-receipt",
    "#/exchange/req-stream",
    "#/compare/req-receipt/req-stream",
    "#/playground",
    "#/providers",
    "#/configuration",
)
"""The addresses of all views of a page that the fake server fills."""

LOW_CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const paint = (colors) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const channel = (value) => value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const listBacks = (found) => {
    const all = [];
    for (let at = found; at; at = at.parentElement) all.unshift(getComputedStyle(at).backgroundColor);
    return all;
  };
  const ratio = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  const hasText = (found) => [...found.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const isSeen = (found) => found.checkVisibility({opacityProperty: true, visibilityProperty: true})
    && !found.closest('.unseen, [aria-hidden], noscript, option');
  return [...document.querySelectorAll('body *')].filter((found) => hasText(found) && isSeen(found)).map((found) => {
    const behind = listBacks(found);
    const value = ratio(light(paint([...behind, getComputedStyle(found).color])), light(paint(behind)));
    return [value, found.className, found.textContent.slice(0, 40)];
  }).filter(([value]) => value < 4.5);
})()"""
"""The texts whose contrast with all that is painted behind them is below WCAG's 4.5 to 1."""

TOO_WIDE = """document.documentElement.scrollWidth > innerWidth
  || [...document.querySelectorAll('main, main > *, dialog[open], .pane > header')]
    .some((one) => one.scrollWidth > one.clientWidth + 1)
  || [...document.querySelectorAll('.list tbody td')].some((cell) => cell.checkVisibility()
    && cell.getBoundingClientRect().right > innerWidth)"""

NAMELESS = """[...document.querySelectorAll('button, a, input, select, textarea, dialog, [role=tree], [tabindex="0"]')]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute('aria-label') || one.innerText?.trim() || one.labels?.length))
  .map((one) => one.outerHTML.slice(0, 120))"""
"""What people can use, and a screen reader has no name for."""


def choose(label: str, value: str) -> str:
    """JavaScript: choose a value of the select with this name."""
    return f"""(() => {{
      const found = document.querySelector(`select[aria-label="{label}"]`);
      found.value = '{value}';
      found.dispatchEvent(new Event('change'));
    }})()"""


def click_text(selector: str, text: str) -> str:
    """JavaScript: click on each of the elements that has exactly this text."""
    return f"document.querySelectorAll('{selector}').forEach((one) => one.innerText === '{text}' && one.click())"
