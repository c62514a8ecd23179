"""The HTML report in a real browser: it loads nothing, logs no error, and shows the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.contract.case_files import load_cases
from dragoman.contract.causes import group_by_cause
from dragoman.contract.json_types import JsonObject
from dragoman.contract.reports.html import render_page
from dragoman.contract.reports.json_report import read_report
from dragoman.contract.reports.markdown import render_markdown
from dragoman.contract.servers import FakeServers
from dragoman.contract.session import ReportFiles, Session, select_cases
from dragoman.contract.target import Target
from tests.browser import Page
from tests.ports import find_free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY = "sk-very-secret"
DARK = {"name": "prefers-color-scheme", "value": "dark"}
LIGHT = {"name": "prefers-color-scheme", "value": "light"}
ROWS = "[...document.querySelectorAll('#matrix tbody tr:not(.group) code')].map((code) => code.textContent)"
OPEN = "document.getElementById('detail').open"
CONTRAST = """(() => {
  const channel = (value) => value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const light = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number).map(channel)
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const ratio = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  const back = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('button, small, code, th, p, .level')]
    .filter((found) => found.offsetParent !== null && getComputedStyle(found).opacity === '1')
    .map((found) => [ratio(light(getComputedStyle(found).color), back), found.textContent])
    .filter(([value]) => value < 4.5);
})()"""
"""The texts whose contrast is below WCAG's 4.5 to 1."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[JsonObject]:
    """The reports of a correct fake, of one with empty choices, and of a driven target: the fake provider itself."""
    folder = tmp_path_factory.mktemp("reports")
    cases = select_cases(load_cases(), ["chat/text/*", "chat/stream/*", "models/*"], "MAY")
    driven = select_cases(load_cases(), ["chat/proxy-streams/broken/*"], "MAY")
    port = find_free_port()
    with FakeServers() as start:
        good = start("openai", api_key=KEY)
        bad = start("openai", api_key=KEY, behaviour="no-choices")
        sessions = [
            Session(Target(good.base_url, "openai", "fake-model", key=KEY), cases, name="good <b>fake</b>"),
            Session(Target(bad.base_url, "openai", "fake-model", key=KEY), cases, name="bad fake"),
            Session(
                Target(f"http://127.0.0.1:{port}/v1", "openai", "fake-model", key=KEY, upstream="openai"),
                driven,
                name="driven",
                upstream_port=port,
            ),
        ]
        files = [folder / f"{session.name[:3]}.json" for session in sessions]
        for session, file in [*zip(sessions, files, strict=True)][::-1]:  # the free port first, before it is taken
            session.run(ReportFiles(json=file))
    return [read_report(file) for file in files]


@pytest.fixture(scope="module")
def url(reports: list[JsonObject], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render_page(reports), "utf-8")
    return file.as_uri()


def select_button(id_: str, target: str) -> str:
    return f"button[aria-label$=': {id_}, {target}']"


async def read_text(page: Page, selector: str) -> str:
    return str(await page.run(f"document.querySelector({selector!r}).innerText"))


async def test_page_loads_without_errors_and_requests(page: Page, url: str, reports: list[JsonObject]) -> None:
    await page.go(url)
    assert page.complaints == []
    assert set(page.requests) == {url}
    ids = {case["id"] for report in reports for case in report["cases"]}
    assert sorted(await page.run(ROWS)) == sorted(ids)
    assert (await read_text(page, "#areas thead")).strip() == "area\tgood <b>fake</b>\tbad fake\tdriven"
    assert await page.run("document.querySelectorAll('#areas .bar').length") > 6


async def test_click_on_a_cell_opens_the_wire_log(page: Page, url: str, reports: list[JsonObject]) -> None:
    await page.go(url)
    await page.click(select_button("chat/text/plain", "bad fake"))
    assert await page.run(OPEN)
    detail = await read_text(page, "#detail")
    case = next(case for case in reports[1]["cases"] if case["id"] == "chat/text/plain")
    assert case["title"] in detail
    assert case["source"] in detail
    assert case["reason"] in detail
    assert "POST http://127.0.0.1:" in detail
    assert '"choices": []' in detail
    curl = await read_text(page, "#detail .curl")
    assert curl.startswith("curl -isS -N -X POST")
    assert KEY not in await page.run("document.documentElement.outerHTML")
    assert page.complaints == []


async def test_driven_case_shows_upstream_requests_and_commands(page: Page, url: str) -> None:
    await page.go(url)
    await page.click(select_button("chat/proxy-streams/broken/cut", "driven"))
    detail = await read_text(page, "#detail")
    assert "Behaviour of the fake provider: cut; it received one request" in detail
    assert "POST /v1/chat/completions" in detail
    assert "# behind the proxy: dragoman fake openai --port" in await read_text(page, "#detail .curl")


async def test_filters_select_cases(page: Page, url: str, reports: list[JsonObject]) -> None:
    await page.go(url)
    everything = await page.run(ROWS)
    await page.run("document.getElementById('search').focus()")
    await page.send("Input.insertText", text="text/pl")
    assert await page.run(ROWS) == ["chat/text/plain"]
    await page.send("Input.insertText", text=" is nowhere")
    assert await read_text(page, "#count") == "No case matches the filter."
    await page.go(url)
    for verdict in ("pass", "warn", "skip", "inconclusive"):
        await page.run(f"document.querySelector('#verdicts .{verdict}')?.click()")
    bad = {case["id"] for report in reports for case in report["cases"] if case["verdict"] in ("fail", "error")}
    assert set(await page.run(ROWS)) == bad < set(everything)
    await page.go(url)
    await page.click("#differences")
    assert "chat/text/plain" in await page.run(ROWS)
    assert len(await page.run(ROWS)) < len(everything)
    await page.go(url)
    await page.click("#areas tbody tr:last-child button")
    assert set(await page.run(ROWS)) == {case["id"] for case in reports[0]["cases"] if case["protocol"] == "models"}


async def test_keyboard_reaches_every_function(page: Page, url: str) -> None:
    await page.go(url)
    await page.press("/")
    assert await page.run("document.activeElement.id") == "search"
    for _ in range(200):
        await page.press("Tab")
        if await page.run("document.activeElement.matches('.verdict.fail')"):
            break
    label = await page.run("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("fail: ")
    assert await page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    await page.press("Enter")
    assert await page.run(OPEN)
    await page.press("Escape")
    await page.until(f"!{OPEN}")
    assert await page.run("document.activeElement.getAttribute('aria-label')") == label


async def test_link_opens_its_cell(page: Page, url: str) -> None:
    await page.go(f"{url}#1:chat/text/plain")
    assert await page.run(OPEN)
    assert (await read_text(page, "#detail h2")).strip() == "chat/text/plain"
    await page.click("#detail .close")
    await page.until("location.hash === ''")
    assert page.complaints == []


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
async def test_colors_have_enough_contrast(page: Page, url: str, scheme: dict[str, str]) -> None:
    await page.send("Emulation.setEmulatedMedia", features=[scheme])
    await page.go(url)
    back = await page.run("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == LIGHT)
    assert await page.run(CONTRAST) == []
    await page.send("Emulation.setEmulatedMedia", features=[])


async def test_narrow_screen_does_not_scroll_the_page(page: Page, url: str) -> None:
    await page.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    await page.go(url)
    assert await page.run("document.documentElement.scrollWidth") <= 390
    await page.send("Emulation.clearDeviceMetricsOverride")


async def test_sums_come_first_with_their_legend(page: Page, url: str, reports: list[JsonObject]) -> None:
    await page.go(url)
    order = "[...document.querySelectorAll('main table, main dl')].map((found) => found.id)"
    assert await page.run(order) == ["sums", "legend", "causes", "areas", "matrix"]
    rows = "[...document.querySelectorAll('#sums tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    verdicts = ("pass", "warn", "fail", "inconclusive", "skip", "error")
    wanted = [[report["target"]["name"], *(str(report["counts"][name]) for name in verdicts)] for report in reports]
    assert await page.run(rows) == wanted
    assert "only recommendations are broken" in await read_text(page, "#legend")


async def test_warnings_are_not_counted_as_passes(page: Page, tmp_path: Path, reports: list[JsonObject]) -> None:
    case = next(case for case in reports[0]["cases"] if case["verdict"] == "pass")
    warned = [case | {"id": f"chat/text/{verdict}", "verdict": verdict} for verdict in ("pass", "warn", "warn")]
    counts = reports[0]["counts"] | {"pass": 1, "warn": 2, "fail": 0, "inconclusive": 0, "skip": 0}
    file = tmp_path / "warned.html"
    file.write_text(render_page([reports[0] | {"cases": warned, "counts": counts}]), "utf-8")
    await page.go(file.as_uri())
    assert (await read_text(page, "#areas tbody tr td")).strip() == "1/3 +2 !"


async def test_cases_with_one_cause_are_one_line(page: Page, url: str, reports: list[JsonObject]) -> None:
    await page.go(url)
    (largest, *_) = group_by_cause(reports[1]["cases"])
    assert len(largest["cases"]) > 5
    line = (
        "[...document.querySelectorAll('#causes tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert [largest["cause"], "–", f"{len(largest['cases'])} fail", "–"] in await page.run(line)
    await page.click("#causes tbody button")
    assert set(await page.run(ROWS)) <= {
        case["id"] for case in reports[1]["cases"] if case["cause"] == largest["cause"]
    }


async def test_area_that_did_not_run_is_left_out(page: Page, tmp_path: Path, reports: list[JsonObject]) -> None:
    skipped = reports[0]["cases"][0] | {"id": "chat/proxy-errors/x", "verdict": "skip", "reason": "drives a proxy"}
    file = tmp_path / "skipped.html"
    file.write_text(render_page([reports[0] | {"cases": [*reports[0]["cases"], skipped]}]), "utf-8")
    await page.go(file.as_uri())
    assert "chat/proxy-errors" not in await read_text(page, "#areas")
    assert "chat/proxy-errors/x" in await page.run(ROWS)
    assert "chat/proxy-errors" not in render_markdown(reports[0] | {"cases": [*reports[0]["cases"], skipped]})


SHOWN = """((selector) => [...document.querySelectorAll(selector)].filter((found) => {
  const box = found.getBoundingClientRect();
  return box.left >= 0 && box.right <= innerWidth && box.width > 0;
}).length)"""
"""A function that counts the elements that are not off-screen to the left or the right."""


async def test_phone_shows_every_count_and_keeps_the_first_column(page: Page, url: str) -> None:
    await page.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    await page.go(url)
    assert await page.run(f"{SHOWN}('#sums td')") == 18
    assert await page.run("document.documentElement.scrollWidth") <= 390
    await page.run("document.querySelector('#matrix').parentElement.scrollLeft = 500")
    assert await page.run(f"{SHOWN}('#matrix td.case') === document.querySelectorAll('#matrix td.case').length")
    await page.send("Emulation.clearDeviceMetricsOverride")


async def test_page_has_one_main_landmark_with_all_tables(page: Page, url: str) -> None:
    await page.go(url)
    assert await page.run("document.querySelectorAll('main').length") == 1
    assert await page.run("document.querySelectorAll('table').length") == 4
    assert await page.run("document.querySelectorAll('main table').length") == 4


async def test_page_of_one_target_has_no_comparison(page: Page, reports: list[JsonObject], tmp_path: Path) -> None:
    file = tmp_path / "one.html"
    file.write_text(render_page(reports[:1]), "utf-8")
    await page.go(file.as_uri())
    assert "one target" in await read_text(page, "#intro")
    assert await page.run("document.getElementById('differences').hidden")
    assert page.complaints == []
