"""The page of `metier view` in a real Chromium: read, filtered, walked by keys, compared; nothing in it ever runs."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from metier.harness.evaluate.folder import load, missing, writing
from metier.harness.view import Library, Site, export, serving
from page import Seen, chromium, opened
from view_runs import HOSTILE, a_board, a_long_run, a_plan, a_run, an_episode, row_for
from waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGE = Path(__file__).parents[2] / "harness" / "view" / "page"
ROW = ".list .line"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs")
    a_run(path / "before", a_plan("small"))
    a_run(path / "after", a_plan("large"), shift=1)
    return path


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    with serving(Site(Library([place]), live=True), 0) as address:
        yield address


@pytest.fixture
def seen(browser: Browser, url: str) -> Iterator[Seen]:
    """A page on which nothing went wrong, of which nothing ran and which asked nobody else."""
    with opened(browser) as found:
        yield found
        assert found.wrong == []
        assert found.page.title() != "owned"
        assert {address for address in found.asked if not address.startswith((url, "data:"))} == set()


def hash_of(seen: Seen) -> str:
    return seen.page.evaluate("location.hash")


def texts(seen: Seen, selector: str) -> list[str]:
    return seen.page.locator(selector).all_inner_texts()


def test_from_the_runs_to_an_episode_by_keys_alone(seen: Seen, url: str) -> None:
    page = seen.page
    page.goto(url)
    page.get_by_role("heading", name="2 runs").wait_for()
    page.locator(".figure", has_text="69.6%").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="before").wait_for()
    page.locator(ROW).first.wait_for()
    page.get_by_text(re.compile("^24 episodes")).wait_for()
    assert hash_of(seen) == "#/run/before"
    page.keyboard.press("/")
    page.keyboard.type("cad level 2")
    page.keyboard.press("Escape")
    page.locator(ROW).nth(3).wait_for()
    assert "4 of 24 episodes" in page.get_by_role("status").inner_text()
    for key in "jj":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="cad/BracketFromSpec-v0").wait_for()
    assert page.locator(".pager").inner_text().startswith("2 of 4")
    first = hash_of(seen)
    page.keyboard.press("n")
    page.get_by_text("3 of 4").wait_for()
    page.keyboard.press("p")
    page.get_by_text("2 of 4").wait_for()
    assert hash_of(seen) == first
    for key in "jj":
        page.keyboard.press(key)
    page.locator("#turn-2.at").wait_for()
    page.keyboard.press("u")
    page.locator(ROW).nth(3).wait_for()
    assert page.locator(f"{ROW}.at").get_attribute("aria-rowindex") == "3"
    page.keyboard.press("?")
    assert "next episode of the list" in page.get_by_role("dialog").inner_text()
    where = hash_of(seen)
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert hash_of(seen) == where, "the key was the dialog's"


def test_filters_and_order_are_in_the_address(seen: Seen, url: str) -> None:
    page = seen.page
    page.goto(url + "#/run/before?passed=no&domain=cad&sort=-reward")
    page.locator(ROW).first.wait_for()
    assert page.get_by_label("passed").input_value() == "no"
    assert {text.split("\n")[0] for text in texts(seen, f"{ROW} .c-env")} == {"cad/BracketFromSpec-v0"}
    page.get_by_label("domain").select_option("")
    page.wait_for_function("!location.hash.includes('domain')")
    page.get_by_role("button", name="environment", exact=True).click()
    page.wait_for_function("location.hash.includes('sort=env')")
    names = texts(seen, f"{ROW} .c-env")
    assert names == sorted(names) and len(names) > 4
    page.get_by_label("passed").select_option("invalid")
    page.get_by_text("SandboxLost: the engine went away").wait_for()
    page.get_by_role("link", name="all of them").click()
    page.get_by_text(re.compile("^24 episodes")).wait_for()


def episode_id(place: Path, run: str, number: int) -> str:
    results = load(place / run)
    key = list(results.plan.trials())[number].key
    return f"{key}-0"


def test_an_episode_shows_all_that_happened(seen: Seen, url: str, place: Path) -> None:
    page = seen.page
    page.goto(f"{url}#/episode/before/{episode_id(place, 'before', 2)}?turn=3")
    page.locator("#turn-3.at").wait_for()
    verdict = page.get_by_role("region", name="Verdict")
    assert "hidden tests pass" in verdict.inner_text() and "gate" in verdict.inner_text()
    page.get_by_role("button", name="Show all 230 lines").click()
    told = page.locator(".timeline").inner_text()
    for words in ("Brief", "I look around", "forgiven: a call was written as text", "exit code 1", "bytes cut here"):
        assert words in told, words
    assert HOSTILE in told
    assert "cut from what the agent saw" in told and "not run" in told and "stopped: length" in told
    assert "a picture that is not shown: no PNG and no JPEG" in told
    page.get_by_text("Reasoning, 8").click()
    page.get_by_text("The report speaks of dates.").wait_for()
    assert page.locator(".ledger").first.inner_text().count(" s") >= 5
    assert page.locator(".film img").count() == 4
    pictures = page.locator("article .picture img")
    assert pictures.count() == 4
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        until(lambda one=picture: one.evaluate("one => one.naturalWidth") > 0, 10)
    pictures.nth(1).click()
    page.get_by_role("dialog").get_by_text("picture 2 of the episode").wait_for()
    page.keyboard.press("j")
    page.get_by_role("dialog").get_by_text("picture 3 of the episode").wait_for()
    page.keyboard.press("b")
    assert page.locator(".gallery img").count() == 2
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert hash_of(seen).endswith("turn=3"), "the key was the dialog's"
    for key in "ij":  # the second is pressed before anything could be drawn
        page.keyboard.press(key)
    page.get_by_role("dialog").get_by_text("picture 2 of the episode").wait_for()
    assert hash_of(seen).endswith("turn=3"), "the key was the dialog's"


def test_two_episodes_side_by_side(seen: Seen, url: str) -> None:
    page = seen.page
    page.goto(url + "#/run/before")
    page.locator(ROW).first.wait_for()
    for key in "jxjx":
        page.keyboard.press(key)
    page.get_by_role("complementary", name="Marked to compare").get_by_role("link").wait_for()
    page.keyboard.press("c")
    page.get_by_role("heading", name="Two episodes").wait_for()
    assert page.locator(".two.row").count() == 7
    assert page.get_by_role("region", name="Verdict").count() == 2
    before = hash_of(seen)
    page.keyboard.press("s")
    page.wait_for_function("before => location.hash !== before", arg=before)
    page.get_by_role("heading", name="Two episodes").wait_for()


def test_two_runs_by_instance(seen: Seen, url: str) -> None:
    page = seen.page
    page.goto(url)
    page.get_by_label("Compare before").check()
    page.get_by_label("Compare after").check()
    page.get_by_role("link", name="Compare (c)").click()
    page.get_by_role("table", name="Instances").wait_for()
    assert page.locator(ROW).count() == 12
    worse = page.get_by_role("button", name=re.compile("^worse"))
    number = int(worse.inner_text().split()[1])
    worse.click()
    page.wait_for_function("location.hash.includes('way=worse')")
    assert number > 0 and page.locator(ROW).count() == number
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Two episodes").wait_for()


def test_dark_and_light_are_the_systems_or_ones_own(browser: Browser, url: str) -> None:
    with opened(browser, color_scheme="dark") as seen:
        page = seen.page
        page.goto(url)
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        page.get_by_role("button", name="Dark or light").click()
        page.wait_for_function(f"{ground} !== '{dark}'")
        page.reload()
        page.get_by_role("heading", name="2 runs").wait_for()
        assert page.evaluate(ground) != dark, "it is remembered"
        assert seen.wrong == []


CONTRAST = """() => {
    const shine = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((value) => {
            const part = value / 255;
            return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\\)$|transparent/.test(colour) && colour.startsWith("rgb(")) return colour;
        }
        return getComputedStyle(document.body).backgroundColor;
    };
    const low = [];
    for (const one of document.querySelectorAll("main *")) {
        const own = [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
        const style = getComputedStyle(one);
        if (!own || one.closest("svg") || style.visibility === "hidden" || !one.getClientRects().length) continue;
        if (one.closest(".none, :disabled, .unrun")) continue;
        const [a, b] = [shine(style.color), shine(ground(one))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${one.className}: ${one.textContent.slice(0, 40)}`);
    }
    return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1360, 400])
def test_it_can_be_read(browser: Browser, url: str, place: Path, scheme: Any, width: int) -> None:
    """Contrast of 4.5 to 1 everywhere, no page wider than its window, and a name on whatever can be pressed."""
    views = ["", "#/run/before", f"#/episode/before/{episode_id(place, 'before', 2)}", "#/compare/before/after"]
    with opened(browser, color_scheme=scheme, viewport={"width": width, "height": 800}) as seen:
        for view in views:
            seen.page.goto(url + view)
            seen.page.locator("main table, main .grid, main .turn").first.wait_for()
            seen.page.get_by_text("counting").first.wait_for(state="detached")
            assert seen.page.evaluate(CONTRAST) == [], view
            wide = seen.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, view
            nameless = seen.page.evaluate(
                "() => [...document.querySelectorAll('button, a, input, select')]"
                ".filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length))"
                ".map((one) => one.outerHTML)"
            )
            assert nameless == [], view
        assert seen.wrong == []


def test_a_thousand_episodes_are_there_at_once(browser: Browser, tmp_path: Path) -> None:
    """Of them only those in sight are in the document; the last is a key away."""
    a_long_run(tmp_path / "long", 200)
    with serving(Site(Library([tmp_path]), live=True), 0) as url, opened(browser) as seen:
        page = seen.page
        page.goto(url + "#/run/long")
        page.get_by_text("1,000 episodes").wait_for()
        assert page.locator(ROW).count() < 80
        page.keyboard.press("G")
        page.locator(f"{ROW}[aria-rowindex='1001'].at").wait_for()
        assert page.locator(ROW).count() < 80
        page.get_by_label("search").fill("seed 199")
        page.get_by_text("5 of 1,000 episodes").wait_for()
        assert seen.wrong == []


def test_a_run_that_is_being_written_grows_on_the_page(browser: Browser, tmp_path: Path) -> None:
    made = a_plan()
    a_run(tmp_path / "run", made, leave=2)
    with serving(Site(Library([tmp_path]), live=True), 0) as url, opened(browser) as seen:
        seen.page.goto(url + "#/run/run")
        seen.page.get_by_text("22 episodes, 2 more were not run yet").wait_for()
        with writing(tmp_path / "run") as writer:
            results = writer.begin(made)
            for trial in missing(results):
                writer.keep(row_for(trial, an_episode(trial)), an_episode(trial))
        seen.page.get_by_text(re.compile("^24 episodes$")).wait_for()
        assert seen.wrong == []


@pytest.mark.parametrize("way", ["disk", "web server"])
def test_an_export_is_the_same_page(browser: Browser, place: Path, tmp_path: Path, way: str) -> None:
    site = tmp_path / "a site"
    export(Site(Library([place]), live=False), site)
    handler = partial(Silent, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, opened(browser) as seen:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        start = f"http://127.0.0.1:{server.server_port}/" if way == "web server" else (site / "index.html").as_uri()
        page = seen.page
        page.goto(f"{start}#/episode/before/{episode_id(place, 'before', 2)}")
        page.get_by_role("region", name="Verdict").wait_for()
        picture = page.locator(".timeline .picture img").first
        until(lambda: picture.evaluate("one => one.naturalWidth") > 0, 10)
        page.keyboard.press("u")
        page.locator(ROW).first.wait_for()
        page.goto(f"{start}#/compare/before/after")
        page.get_by_role("table", name="Instances").wait_for()
        page.goto(f"{start}#/run/nothing")
        page.get_by_text("There is no run nothing here.").wait_for()
        server.shutdown()
        assert seen.wrong == [] and page.title() != "owned"


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_leaderboard_leads_to_its_runs(browser: Browser, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "leaderboard.json"
    file.write_text(json.dumps(a_board(place / "before", place / "after")))
    site = Site(Library([place]), live=False, leaderboard=file, start="leaderboard")
    with serving(site, 0) as url, opened(browser) as seen:
        page = seen.page
        page.goto(url)
        board = page.get_by_role("region", name="terminal-v0, held-out")
        board.get_by_text("replays did not end as the submission says").wait_for()
        for key in ("j", "Enter"):
            page.keyboard.press(key)
        board.get_by_text(HOSTILE).wait_for()
        assert "row=before" in hash_of(seen)
        board.get_by_role("link", name="Its episodes").click()
        page.get_by_text(re.compile("^24 episodes")).wait_for()
        page.get_by_role("link", name="Leaderboard").click()
        board.wait_for()
        file.write_text('{"kind": "another"}')
        page.reload()
        page.get_by_role("alert").get_by_text("this is no leaderboard that this page knows").wait_for()
        assert seen.wrong == [] and page.title() != "owned"


def test_a_damaged_episode_says_so_on_its_page(browser: Browser, tmp_path: Path) -> None:
    path = a_run(tmp_path / "run", a_plan(), leave=20)
    file = path / "episodes" / f"{episode_id(tmp_path, 'run', 0)}.json.gz"
    file.write_bytes(b"no episode")
    with serving(Site(Library([tmp_path]), live=True), 0) as url, opened(browser) as seen:
        seen.page.goto(f"{url}#/episode/run/{episode_id(tmp_path, 'run', 0)}")
        seen.page.get_by_role("alert").get_by_text("is not the file that its row in results.jsonl names").wait_for()
        seen.page.goto(f"{url}#/episode/run/{episode_id(tmp_path, 'run', 1)}")
        seen.page.get_by_role("region", name="Verdict").wait_for()


def test_the_command_serves_until_it_is_interrupted(browser: Browser, place: Path) -> None:
    command = [sys.executable, "-m", "metier.cli", "view", str(place), "--json", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        told = json.loads(process.stdout.readline())
        assert told["runs"] == ["after", "before"]
        with opened(browser) as seen:
            seen.page.goto(told["url"])
            seen.page.get_by_role("heading", name="2 runs").wait_for()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
            seen.page.get_by_text("nobody answers any more").first.wait_for()
        said = process.stderr.read()
        assert "no longer served" in said and "Traceback" not in said


def test_the_bundle_is_what_its_sources_build(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm here: apt-get install npm")
    page = shutil.copytree(PAGE, tmp_path / "page", ignore=shutil.ignore_patterns("node_modules"))
    for command in (["ci", "--no-audit", "--no-fund"], ["run", "check"], ["run", "build"]):
        done = subprocess.run([npm, *command], cwd=page, capture_output=True, text=True, timeout=300, check=False)
        if command[0] == "ci" and done.returncode:
            pytest.skip(f"npm can install nothing here: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stdout + done.stderr
    built = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    shipped = {path.name: path.read_bytes() for path in (PAGE.parent / "static").iterdir()}
    assert built == shipped, "npm ci && npm run build in harness/view/page, and commit what changed"
