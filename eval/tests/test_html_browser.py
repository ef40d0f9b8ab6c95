"""The HTML report in a real browser; skipped where there is no Chromium or no selenium."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from eval.tests.test_html import HOSTILE, hostile_tiny
from mempursuit_eval.cli import app

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver on PATH"
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,900",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("browser")
    (out / "tiny.json").write_text(json.dumps(hostile_tiny()), encoding="utf-8")
    for command in (
        ["run", "--data", out / "tiny.json", "--frameworks", "rag", "--k", "1,2", "--out", out],
        ["report", out, "--html"],
    ):
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, folder):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get("about:blank")
    browser.get((folder / "report.html").as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.find_elements("css selector", ".row"))
    yield browser
    assert browser.get_log("browser") == [], "nothing on the console"


def texts(page, selector: str) -> list[str]:
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )


def choose(page, name: str, value: str) -> None:
    page.find_element("css selector", f"#{name} option[value='{value}']").click()


def test_it_opens_with_the_paired_table(page, folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    cells = [texts(page, f"#table tbody tr:nth-child({n}) td") for n in (1, 2)]
    for k, row in zip((1, 2), cells, strict=True):
        pair = next(
            p for p in metrics["paired"]
            if (p["k"], p["arm"], p["metric"]) == (k, "paper", "complete_coverage")
        )  # fmt: skip
        assert row[0] == str(k)
        assert row[6] == f"{pair['gained']} / {pair['lost']}"
        shown = f"{100 * pair['delta']:+.1f}".replace("-", "−")
        assert row[2] == (shown if pair["delta"] else "0.0")


@pytest.mark.parametrize("metric", ["complete_coverage", "session_recall", "turn_recall"])
@pytest.mark.parametrize(("arm", "k"), [("paper", 2), ("auto", 1)])
def test_outcomes_counted_by_the_page_are_those_of_the_run(page, folder, arm, k, metric):
    metrics = json.loads((folder / "metrics.json").read_text())
    for name, value in (("arm", arm), ("k", str(k)), ("metric", metric)):
        choose(page, name, value)
    pair = next(p for p in metrics["paired"] if (p["k"], p["arm"], p["metric"]) == (k, arm, metric))
    counts = {c.rsplit(" ", 1)[0]: int(c.rsplit(" ", 1)[1]) for c in texts(page, ".chip")}
    assert counts["+ gained"] == pair["gained"]
    assert counts["− lost"] == pair["lost"]
    assert counts["all"] == 5
    assert counts["? not known"] == 5 - pair["n"]
    assert sum(counts.values()) == 2 * counts["all"]


def test_search_and_filters_narrow_the_list(page):
    assert len(texts(page, ".row")) == 5
    page.find_element("id", "search").send_keys("GARDEN grows")
    assert [t for t in texts(page, ".row") if "What grows in Ben's garden?" in t]
    assert texts(page, "#count") == ["1 question"]
    page.find_element("id", "search").send_keys(" nowhere")
    assert texts(page, ".row") == []
    assert texts(page, "#detail") == [""]
    page.find_element("id", "search").clear()
    page.find_element("id", "search").send_keys(" ")
    choose(page, "category", "multi-hop")
    assert len(texts(page, ".row")) == 2
    assert "category=multi-hop" in page.current_url


def test_questions_are_switched_by_click_and_by_key(page):
    from selenium.webdriver.common.keys import Keys

    rows = page.find_elements("css selector", ".row")
    rows[2].click()
    assert texts(page, ".question") == ["When did Ada move?"]
    page.find_element("id", "list").send_keys(Keys.ARROW_UP)
    assert texts(page, ".question") == ["What grows in Ben's garden?"]
    assert texts(page, "[aria-selected=true] div:first-child")[0].endswith("Ben's garden?")
    active = page.find_element("id", "list").get_attribute("aria-activedescendant")
    assert page.find_element("id", active).get_attribute("aria-selected") == "true"


def test_both_contexts_are_marked(page, folder):
    choose(page, "k", "2")
    page.find_elements("css selector", ".row")[1].click()
    lines = (folder / "selections.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    ids = {
        r["arm"]: r["ids"] for r in map(json.loads, lines)
        if r["question"] == "tiny/q1" and r["k"] == 2
    }  # fmt: skip
    for column, arm, other in ((1, "order", "paper"), (2, "paper", "order")):
        badges = texts(page, f".two section:nth-child({column}) .badge:first-child")
        changed = "+ came in" if arm == "paper" else "− went out"
        assert badges == ["= kept" if i in ids[other] else changed for i in ids[arm]]
    gold = texts(page, ".memory.gold .star")
    assert gold
    assert all(text.startswith("★ gold evidence D") for text in gold)
    assert "pick 1" in texts(page, ".two section:nth-child(2) .badges")[0]
    assert len(page.find_elements("css selector", ".trace svg")) == 1


def test_texts_stay_texts(page):
    page.find_elements("css selector", ".row")[0].click()
    assert texts(page, ".question")[0].endswith(HOSTILE)
    assert page.find_elements("css selector", "img") == []


def test_a_link_brings_the_same_view_back(page):
    from selenium.webdriver.support.ui import WebDriverWait

    choose(page, "arm", "auto")
    choose(page, "k", "2")
    page.find_elements("css selector", ".row")[3].click()
    address, question = page.current_url, texts(page, ".question")
    page.get("about:blank")
    page.get(address)
    WebDriverWait(page, 20).until(lambda b: b.find_elements("css selector", ".row"))
    assert texts(page, ".question") == question
    assert page.find_element("id", "arm").get_property("value") == "auto"
    assert page.find_element("id", "k").get_property("value") == "2"


def opened(browser, out, samples, selectors):
    """Run and report `samples`, open the page and return what it says instead of a report."""
    from selenium.webdriver.support.ui import WebDriverWait

    out.mkdir()
    (out / "tiny.json").write_text(json.dumps(samples), encoding="utf-8")
    for command in (
        ["run", "--data", out / "tiny.json", "--frameworks", "rag", "--k", "2", "--out", out,
         "--selectors", selectors],
        ["report", out, "--html"],
    ):  # fmt: skip
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.exit_code == 0, done.output
    browser.get((out / "report.html").as_uri())
    WebDriverWait(browser, 20).until(
        lambda b: b.find_elements("css selector", ".row, #notice:not([hidden])")
    )
    return texts(browser, "#notice")[0]


def test_a_run_without_gold_still_shows_its_contexts(browser, tmp_path):
    samples = hostile_tiny()
    for question in samples[0]["qa"]:
        question["evidence"] = []
    assert opened(browser, tmp_path / "bare", samples, "order,paper") == ""
    assert browser.get_log("browser") == []
    assert len(texts(browser, ".row")) == 5
    assert "? not known 5" in texts(browser, ".chip")
    assert texts(browser, "#table td:last-child") == ["no gold evidence"]
    assert len(texts(browser, ".two section:nth-child(2) .memory")) == 2


def test_a_run_of_one_arm_says_what_is_missing(browser, tmp_path):
    said = opened(browser, tmp_path / "alone", hostile_tiny(), "order")
    assert "run it with --selectors paper" in said
    browser.get_log("browser")  # the reason is on the console too
