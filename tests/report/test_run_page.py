"""The page of saved runs in a real browser: it opens, filters, shows items, and runs no script."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_tasks.report import compared_runs, run_page
from tests.report import made

CASES = Path(__file__).parents[1] / "cases"
TASKS = ["maia_vsv", "maia_oevqa", "maverix_av", "movierecapsqa_segment", "haven_v2vt"]
TASKS += ["haven_temporal", "cvrr_es_partial_actions"]
MARKUP = (
    "<script>document.title='hacked'</script>",
    "<img src=x onerror=\"document.title='hacked'\">",
    "</script><script>document.title='hacked'</script>",
    "{{ 7 * 7 }}{% raw %}${document.title='hacked'}",
    '"><svg/onload=document.title=`hacked`>',
    "javascript:document.title='hacked'",
)


def texts(value: Any) -> Iterator[str]:
    """Every text in a file of cases."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def hostile() -> list[str]:
    files = (CASES / "judge_injections.json", CASES / "replies" / "answers.json")
    found = (one for file in files for one in texts(json.loads(file.read_text("utf-8"))))
    return [*MARKUP, *found]


HOSTILE = hostile()
MOST = 48  # items of a task, in which all of MARKUP occur


def attack(task: Task, doc: Doc, number: int) -> str:
    return HOSTILE[number % len(HOSTILE)]


@pytest.fixture(scope="module")
def runs(
    sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("runs")
    judge = made.recorded(sample_root, out / "replay.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        return {
            name: made.saved_run(out / name, name, TASKS, reply, judge)
            for name, reply in (("one", made.right), ("two", made.any_reply))
        }


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as played:
        made_browser = played.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made_browser
        made_browser.close()


@pytest.fixture(scope="module")
def page_file(runs: dict[str, Path], sample_root: Path, cache: Path, tmp_path_factory: Any) -> Path:
    file = Path(tmp_path_factory.mktemp("page")) / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        both = compared_runs.read_sides([runs["one"], runs["two"]])
        file.write_text(run_page.html(both, file.parent / "media", file), encoding="utf-8")
    return file


FAINT = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3)
    .map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, n) => sum + one * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  for (const element of document.body.querySelectorAll(":not(script, style, option, svg *)")) {
    const own = [...element.childNodes].filter((one) => one.nodeType === 3 && one.data.trim());
    if (!own.length || !element.checkVisibility()) continue;
    const colours = [getComputedStyle(element).color, ground(element)];
    const [a, b] = colours.map(light).sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(element.outerHTML.slice(0, 200));
  }
  return faint;
}"""


class Opened:
    """A page in a browser, and all that must not happen on it."""

    def __init__(self, browser: Any, file: Path, **given: Any) -> None:
        self.troubles: list[str] = []
        self.page = browser.new_context(**given).new_page()
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("body[data-ready]")

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.troubles.append(request.url)

    def too_faint(self) -> list[str]:
        """Texts whose colour is below 4.5:1 on their ground (WCAG 2, AA)."""
        return list(self.page.evaluate(FAINT))

    def on_row(self, name: str) -> None:
        """Wait until the focus stands on the row whose item has (the end of) this name."""
        self.page.wait_for_function(
            "(name) => { const row = document.activeElement.row;"
            " return row && name.endsWith(row.getData().id); }",
            arg=name,
            timeout=20000,
        )

    def count(self) -> str:
        self.page.wait_for_selector("#table:not([aria-busy])")
        return str(self.page.inner_text("#count"))

    def open_item(self, row: int = 0) -> None:
        """Open a row's item, and wait until it is shown.

        The table draws its rows again as it comes into view, and a click on a row that is gone by
        then does nothing.
        """
        from playwright.sync_api import TimeoutError as TooLate

        for _ in range(10):
            self.page.locator(".tabulator-row").nth(row).click()
            with suppress(TooLate):
                self.page.wait_for_selector("dialog[open] .answers", timeout=3000)
                return
        raise AssertionError("no item opens")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_opens_on_any_screen(browser: Any, page_file: Path, scheme: str, width: int) -> None:
    size = {"width": width, "height": 800}
    opened = Opened(browser, page_file, color_scheme=scheme, viewport=size)
    page = opened.page
    page.evaluate(
        "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
    )
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert opened.too_faint() == []
    opened.open_item()
    box = page.locator("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert opened.too_faint() == []
    assert opened.troubles == []


def test_the_first_screen_has_a_card_for_each_benchmark(browser: Any, page_file: Path) -> None:
    size = {"width": 1280, "height": 800}
    page = Opened(browser, page_file, viewport=size).page
    titles = ["CVRR-ES", "HAVEN", "MAIA", "MAVERIX", "MovieRecapsQA"]
    assert page.title() == f"{', '.join(titles)}: one and two"
    assert page.locator(".card h2").all_inner_texts() == titles
    scales = page.locator(".card .scale")
    assert scales.count() == 2 * len(titles)
    assert page.locator(".card .number.s1").count() == len(titles)
    label = page.locator(".card", has_text="maia agg_acc").locator(".scale").first
    assert "Qwen-2.5-VL 72B 0.470" in (label.get_attribute("aria-label") or "")
    assert page.locator(".card details").first.locator("dt").count() == 4
    # Several runs: one chart of all benchmarks, whole on the first screen, above the cards.
    box = page.locator("#all > figure.wide").bounding_box()
    assert box["height"] > 200
    assert box["y"] + box["height"] < 800
    text = page.locator("#all > figure.wide").inner_text()
    assert all(title in text for title in [*titles, "one", "two", "maia agg_acc"])
    for box in (scale.bounding_box() for scale in scales.all()):
        assert 100 < box["width"] < 1280


def test_charts_are_saved_as_files(browser: Any, page_file: Path, tmp_path: Path) -> None:
    opened = Opened(browser, page_file, color_scheme="dark", accept_downloads=True)
    page = opened.page
    charts = page.locator("#compare > figure.wide")
    buttons = page.locator("#compare > .save.wide")
    assert charts.count() == buttons.count() == 5
    for kind in ("SVG", "PNG"):
        with page.expect_download() as waiting:
            buttons.first.get_by_text(kind).click()
        saved = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(saved)
        assert saved.name == f"CVRR-ES_main_numbers.{kind.lower()}"
    text = (tmp_path / "CVRR-ES_main_numbers.svg").read_text(encoding="utf-8")
    assert "var(" not in text
    assert 'fill="#14171d"' in text  # the ground of the dark setting
    with Image.open(tmp_path / "CVRR-ES_main_numbers.png") as picture:
        width = charts.first.locator("svg").evaluate("(svg) => svg.width.baseVal.value")
        assert picture.width == pytest.approx(2 * width, abs=2)
        assert len(picture.convert("RGB").getcolors(2**20) or []) > 10
    assert opened.troubles == []


def test_ids_can_be_read_on_a_phone(browser: Any, page_file: Path, tmp_path: Path) -> None:
    page = Opened(browser, page_file, viewport={"width": 390, "height": 800}).page
    cell = page.locator(".tabulator-row .tabulator-cell").first
    assert cell.bounding_box()["width"] >= 170
    assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")


def test_filters_and_an_item_by_keyboard(browser: Any, page_file: Path) -> None:
    opened = Opened(browser, page_file)
    page = opened.page
    every = opened.count().removesuffix(" items").split(" of ")
    assert every[0] == every[1]
    page.select_option("select[name=task]", "maia_vsv")
    assert opened.count().startswith("384 of")
    page.select_option("select[name=flipped]", "-1 1")
    worse = int(opened.count().split(" ")[0])
    assert 0 < worse < 384
    page.select_option("select[name=result]", "wrong 1")
    assert opened.count().startswith(f"{worse} of")
    page.fill("input[name=search]", "video2/")
    assert 0 < int(opened.count().split(" ")[0]) < worse
    page.locator(".tabulator-row").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .pool button")
    assert page.locator("dialog .pool").count() == 2
    assert page.locator("dialog .pool").first.locator("button").count() == 8
    told = page.locator("dialog .pool span")
    assert "✓ pool right, 8 of 8" in told.nth(0).inner_text()
    assert "✗ pool wrong" in told.nth(1).inner_text()
    assert page.locator("dialog img.strip").count() == 1
    first = page.inner_text("dialog h2")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        f"document.querySelector('dialog h2').textContent !== {json.dumps(first)}"
    )
    shown = page.inner_text("dialog h2")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    opened.on_row(shown)
    assert opened.troubles == []


RULES = ("label", "alone", "text", None)


@pytest.mark.usefixtures("on_sample")
def test_filters_by_the_rule_that_read_an_item(browser: Any, tmp_path: Path) -> None:
    """Beside tasks whose items name no rule; a run of an earlier version has no such filter."""
    names = ["maverix_av", "maia_oevqa"]
    run = made.saved_run(tmp_path / "run", "m", names, made.right, "none", 10)
    (samples,) = run.glob("*_samples_maverix_av.jsonl")
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    file, choice = tmp_path / "report.html", "select[name='read by']"

    def page_of(rules: dict[int, dict[str, Any]]) -> Opened:
        for number, line in enumerate(lines):
            line["failed"].pop("read_by", None)
            line["failed"] |= rules.get(number, {})
        samples.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        file.write_text(run_page.html(compared_runs.read_sides([run])), encoding="utf-8")
        return Opened(browser, file)

    opened = page_of({number: {"read_by": RULES[number % 4]} for number in range(10)})
    page = opened.page
    assert page.locator(f"{choice} option").all_inner_texts() == ["all", "alone", "label", "text"]
    for rule, count in (("label", 3), ("alone", 3), ("text", 2), ("", 20)):
        page.select_option(choice, rule)
        assert opened.count() == f"{count} of 20 items"
        shown = page.locator(".tabulator-row [tabulator-field=rule0]").all_inner_texts()
        assert not rule or {*shown} == {rule}
    page.select_option(choice, "text")
    assert opened.count() == "2 of 20 items"
    opened.open_item()
    assert "read_by" in page.locator("dialog").text_content()
    assert opened.troubles == []
    earlier = page_of({})
    assert earlier.page.locator(choice).count() == 0
    assert earlier.page.locator("[tabulator-field^=rule]").count() == 0
    assert earlier.troubles == []


@pytest.mark.usefixtures("on_sample")
def test_a_pool_that_a_model_was_not_asked_is_not_wrong(browser: Any, tmp_path: Path) -> None:
    runs = [
        made.saved_run(tmp_path / name, name, ["maia_vsv"], made.right, "none", most)
        for name, most in (("all", 16), ("none", 8), ("part", 12))
    ]
    file = tmp_path / "report.html"
    file.write_text(run_page.html(compared_runs.read_sides(runs)), encoding="utf-8")
    opened = Opened(browser, file)
    page = opened.page
    opened.open_item(row=8)  # of the second pool
    told = page.locator("dialog .pool").all_inner_texts()
    told = [" ".join(one.split()) for one in told]
    assert told[1] == "none: not in this run"
    assert "all: ✓ pool right, 8 of 8" in told[0]
    assert "part: ✗ pool incomplete, 4 of 4 in this run" in told[2]
    assert opened.troubles == []


def test_the_table_by_keyboard(browser: Any, page_file: Path) -> None:
    opened = Opened(browser, page_file)
    page = opened.page
    page.locator("input[name=search]").focus()
    inside = "document.activeElement.closest('#table') !== null"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.tabulator-tableholder')"):
            break
    assert page.evaluate("document.activeElement.matches(':focus-visible')")
    rows = page.locator(".tabulator-row [tabulator-field=id]")
    for key, place in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        opened.on_row(rows.nth(place).inner_text())
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("End")
    items = int(opened.count().split(" of ")[0].replace(",", ""))
    last = "(n) => document.activeElement.row?.getPosition() === n"
    page.wait_for_function(last, arg=items, timeout=3000)
    page.keyboard.press("Tab")  # one stop for all rows
    assert not page.evaluate(inside)
    page.locator(".tabulator-col[tabulator-field=id]").focus()
    for order in ("ascending", "descending"):
        page.keyboard.press("Enter")
        sorted_by = ".tabulator-col[tabulator-field=id]"
        assert page.locator(sorted_by).get_attribute("aria-sort") == order
    assert opened.troubles == []


def test_what_an_item_shows(browser: Any, page_file: Path) -> None:
    opened = Opened(browser, page_file)
    page = opened.page

    def show(task: str) -> str:
        page.select_option("select[name=task]", task)
        opened.count()
        opened.open_item()
        page.evaluate("document.querySelectorAll('dialog details').forEach(d => d.open = true)")
        text = str(page.inner_text("dialog"))
        page.keyboard.press("Escape")
        return text

    told = show("movierecapsqa_segment")
    assert "factuality_valid: 5" in told  # of 0 to 5: neither right nor wrong
    assert "factuality: supported" in told
    assert "known by construction" in told  # the judge's reason
    assert "The red circle stands on the left from the beginning." in told  # a fact
    assert "Perché viene colpito dalla palla rossa" in show("maia_oevqa")
    show("maverix_av")
    assert page.locator("dialog svg.wave").count() == 1
    file = page.locator("dialog video").get_attribute("src")
    assert (page_file.parent / file).is_file()
    opened.open_item()
    video = page.locator("dialog video")
    video.focus()
    page.keyboard.press("Space")
    plays = "() => document.querySelector('dialog video').currentTime > 0"
    page.wait_for_function(plays, timeout=20000)
    assert video.evaluate("(one) => one.error") is None
    assert opened.troubles == []


def test_no_answer_runs_a_script(browser: Any, on_sample: None, tmp_path: Path) -> None:
    names = {"run": MARKUP[0], "other": "<b><img src=x onerror=\"document.title='hacked'\">"}
    both = [
        made.saved_run(tmp_path / place, name, TASKS, attack, "none", MOST)
        for place, name in names.items()
    ]
    file = tmp_path / "report.html"
    file.write_text(run_page.html(compared_runs.read_sides(both)), encoding="utf-8")
    opened = Opened(browser, file)
    page = opened.page
    title = page.title()
    for number, text in enumerate(MARKUP):
        page.fill("input[name=search]", text[:30])
        assert int(opened.count().split(" ")[0]) > 0, number
        opened.open_item()
        assert text in page.inner_text("dialog .answers pre")
        page.keyboard.press("Escape")
    assert page.title() == title
    assert page.locator("img[src=x]").count() == 0
    assert "<b><img src=x" in page.inner_text(".tabulator-headers")
    assert opened.troubles == []
