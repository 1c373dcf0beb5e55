"""What `metier view` reads and gives out: all of a run, and nothing of it runs; no folder breaks it, whatever it is."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.core import ConfigError, ToolCall
from metier.envs.suite import Seeds
from metier.harness.evaluate.compare import beside, compare
from metier.harness.evaluate.folder import ROWS, load, writing
from metier.harness.evaluate.report import make_report
from metier.harness.policy import AssistantTurn, Message, Role
from metier.harness.policy.contract import write_call
from metier.harness.tools.truncate import cut_text
from metier.harness.view import Library, Site, export, serving
from metier.harness.view.detail import cut_bytes, detail
from metier.harness.view.kept import Kept
from metier.harness.view.pictures import picture
from metier.harness.view.site import CSP, STATIC
from trials import environment, folder, plan
from view_runs import HOSTILE, LONG, SVG, a_plan, a_run, an_episode, row_for
from view_runs import picture as drawn

PAGE = Path(__file__).parents[2] / "harness" / "view" / "page"
STATIC_FOLDER = PAGE.parent / "static"
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same instances."""
    path = tmp_path_factory.mktemp("runs")
    a_run(path / "before", a_plan("small"))
    a_run(path / "after", a_plan("large"), leave=3, shift=1)
    return path


def asked(site: Site, address: str) -> Any:
    answer = site.answer(address)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def refused(site: Site, address: str) -> tuple[int, str]:
    answer = site.answer(address)
    assert answer.status != 200
    return answer.status, json.loads(answer.body)["error"]


def live(*places: Path) -> Site:
    return Site(Library(places), live=True)


# what is there


def test_every_address_answers_and_tells_the_whole_run(place: Path) -> None:
    site = live(place)
    assert [run["name"] for run in asked(site, "data/runs.json")["runs"]] == ["after", "before"]
    addresses = list(site.addresses())
    assert len(addresses) == len(set(addresses))
    assert {site.answer(address).status for address in addresses} == {200}
    table = asked(site, "data/run/after/rows.json")
    assert (len(table["rows"]), table["missing"], table["other"]) == (21, 3, 0)
    assert {len(cells) for cells in table["rows"]} == {len(table["columns"])}
    results = load(place / "after")
    first = dict(zip(table["columns"], table["rows"][0], strict=True))
    trial = next(results.plan.trials())
    assert (first["id"], first["env"], first["reward"]) == (
        f"{trial.key}-0",
        trial.env_id,
        results.rows[trial.key].reward,
    )


def test_figures_are_those_of_the_report_and_of_the_comparison(place: Path) -> None:
    site = live(place)
    first, second = load(place / "before"), load(place / "after")
    assert site.answer("data/run/before/report.json").body == make_report(first).written()
    compared = asked(site, "data/compare/before/after.json")
    assert compared["comparison"] == json.loads(compare(first, second).written())
    both = beside(first, second)
    assert sum(one.compared for one in both) == compare(first, second).overall.instances
    ways = [
        two.mean_pass - one.mean_pass for _, one, two in both if one.mean_pass is not None and two.mean_pass is not None
    ]
    overall = compare(first, second).overall
    assert (sum(way > 0 for way in ways), sum(way < 0 for way in ways)) == (overall.better, overall.worse)
    told = compared["instances"]
    assert [one["seed"] for one in told] == [one.instance.seed for one in both]
    assert all(site.answer(f"data/run/before/{one['first']['episodes'][0]}.json").status == 200 for one in told)


def test_an_episode_is_told_whole(place: Path) -> None:
    site = live(place)
    ids = [cells[0] for cells in asked(site, "data/run/before/rows.json")["rows"]]
    said = asked(site, f"data/run/before/{ids[1]}.json")
    measured = asked(site, f"data/run/before/{ids[2]}.json")
    assert measured["cut_bytes"] == said["cut_bytes"]
    assert (measured["parts"][1]["seconds"], said["parts"][1]["seconds"]) == (1.3, None)
    assert [call["ok"] for call in measured["parts"][1]["calls"]] == [True, False]
    brief, first, second, third, last = said["parts"]
    assert brief["text"]["text"].endswith(HOSTILE) and len(brief["pictures"]) == 1
    assert [call["step"] for call in first["calls"]] == [1, 2]
    assert first["reasoning"]["text"].startswith("The report") and first["notes"] == ["a call was written as text"]
    tests = first["calls"][1]["observation"]
    assert tests["remark"] == "exit code 1"
    assert tests["cut_bytes"] == said["cut_bytes"] == cut_text(LONG)[1] > 10_000
    assert first["calls"][0]["arguments"][1] == {
        "name": "timeout_s",
        "value": {"text": "10", "left_out": 0},
        "is_text": False,
    }
    assert second["calls"][0]["step"] == 3 and third["stop"] == "length"
    shown = third["calls"][0]["observation"]["pictures"]
    assert [(one["number"], one["suffix"]) for one in shown] == [(1, "png"), (2, "png"), (3, ""), (4, "jpg")]
    assert [call["step"] for call in last["calls"]] == [5, None] and said["dropped"] == 1
    assert [check["gate"] for check in said["checks"]] == [True, False, False]
    answer = site.answer(f"data/run/before/{ids[1]}/4.jpg")
    assert (answer.status, answer.media, answer.body[:3]) == (200, "image/jpeg", b"\xff\xd8\xff")
    for wrong in ("3.svg", "3.png", "4.png", "9.png", "x.png", "-1.png"):
        assert refused(site, f"data/run/before/{ids[1]}/{wrong}")[0] == 404


def test_a_turn_that_is_but_its_call_is_shown_once() -> None:
    made = a_plan()
    trial = next(made.trials())
    call = ToolCall(tool="shell", arguments={"command": "ls", "n": 1e300}, id="x")
    turns = (AssistantTurn(text=write_call(call), calls=(call,)), AssistantTurn(text=write_call(call)))
    episode = an_episode(trial).model_copy(update={"conversation": turns})
    told: Any = detail(row_for(trial, episode), episode, made.environments[0]).parts
    assert [turn.text.text for turn in told] == ["", write_call(call)]


def test_an_episode_that_broke_off_is_told_as_far_as_it_came(place: Path) -> None:
    site = live(place)
    table = asked(site, "data/run/before/rows.json")
    broken = next(cells for cells in table["rows"] if cells[table["columns"].index("passed")] is None)
    said = asked(site, f"data/run/before/{broken[0]}.json")
    assert (said["outcome"], said["reward"], said["checks"]) == ("sandbox_failure", None, [])
    assert said["failure"].startswith("SandboxLost")


IDS = st.sampled_from(["", "a", "b"])
CALLS = st.lists(st.builds(ToolCall, tool=st.sampled_from(["shell", "view"]), id=IDS), max_size=3).map(tuple)
TURNS = st.builds(AssistantTurn, text=st.text(max_size=9), calls=CALLS)
MESSAGES = st.builds(Message, role=st.sampled_from(list(Role)), text=st.text(max_size=9), call_id=IDS)


@given(st.lists(st.one_of(TURNS, MESSAGES), max_size=12))
def test_nothing_of_a_conversation_is_lost_or_told_twice(conversation: list[Any]) -> None:
    made = a_plan()
    trial = next(made.trials())
    episode = an_episode(trial).model_copy(update={"conversation": tuple(conversation)})
    parts: Any = detail(row_for(trial, episode), episode, made.environments[0]).parts
    turns = [part for part in parts if hasattr(part, "calls")]
    assert [turn.text.text for turn in turns] == [one.text for one in conversation if isinstance(one, AssistantTurn)]
    told: list[str] = []
    for part in parts:
        if hasattr(part, "calls"):
            told += [call.observation.text.text for call in part.calls if call.observation]
        else:
            told.append(part.text.text)
    assert told == [one.text for one in conversation if isinstance(one, Message)]
    steps = [call.step for turn in turns for call in turn.calls if call.step is not None]
    assert steps == list(range(1, len(steps) + 1))


@given(st.text(max_size=300).filter(lambda text: "bytes" not in text), st.integers(0, 30_000))
def test_what_was_cut_is_counted_as_the_harness_counted(text: str, more: int) -> None:
    whole = text + "xyz\n" * (more // 4)
    shown, cut = cut_text(whole)
    assert cut_bytes(shown) == cut
    assert cut_bytes(f"{shown}\n[exit code 1; {more} bytes of output were not kept]") == cut + more


@pytest.mark.parametrize(
    "text", ["[12 bytes cut here]", "a\n[12 bytes cut here]\nb", "x" * 9000 + "\n[12 bytes cut here]\n"]
)
def test_an_agent_that_prints_our_words_cut_nothing(text: str) -> None:
    assert cut_bytes(text) == 0


# hostile and broken folders


@pytest.mark.parametrize(
    "data",
    [SVG, b"", b"GIF89a", b"<html>", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff<script>", drawn(1)[:20], b"BM" + b"0" * 60],
)
def test_only_pictures_are_pictures(data: bytes) -> None:
    assert isinstance(picture(data), str)


def test_a_picture_that_would_fill_all_memory_is_none() -> None:
    bomb = bytearray(drawn(1))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    assert isinstance(picture(bytes(bomb)), str)


def test_texts_without_end_are_bounded(tmp_path: Path) -> None:
    made = plan(environment(seeds=Seeds.parse("0:1")))
    trial = next(made.trials())
    turn = AssistantTurn(text="y" * 3_000_000, calls=(ToolCall(tool="shell", arguments={"a": "z" * 900_000}),))
    episode = an_episode(trial).model_copy(update={"conversation": (Message(role=Role.USER, text="x"), turn)})
    with writing(tmp_path / "run") as writer:
        writer.begin(made)
        writer.keep(row_for(trial, episode), episode)
    answer = live(tmp_path).answer(f"data/run/run/{trial.key}-0.json")
    assert answer.status == 200 and len(answer.body) < 1_500_000
    assert json.loads(answer.body)["parts"][1]["text"]["left_out"] == 3_000_000 - 400_000


def test_numbers_that_a_browser_cannot_hold_travel_as_text(tmp_path: Path) -> None:
    seed = 2**63 - 1
    folder(tmp_path / "run", plan(environment(seeds=Seeds.parse(f"{seed}"))), {seed: [True]})
    table = asked(live(tmp_path), "data/run/run/rows.json")
    assert table["rows"][0][table["columns"].index("seed")] == str(seed)


def _cut(path: Path) -> None:
    (path / ROWS).write_bytes((path / ROWS).read_bytes()[:-200])


def _foreign(path: Path) -> None:
    (path / ROWS).write_text('{"schema_version":1,"key":7}\n{}\n')


def _linked(path: Path) -> None:
    (path / ROWS).unlink()
    (path / ROWS).symlink_to("/etc/passwd")


def _piped(path: Path) -> None:
    (path / ROWS).unlink()
    os.mkfifo(path / ROWS)


def _manifest_foreign(path: Path) -> None:
    (path / "manifest.json").write_text('{"kind": "another thing", "schema_version": 1}')


def _manifest_newer(path: Path) -> None:
    (path / "manifest.json").write_text('{"kind": "metier evaluation", "schema_version": 99}')


def _manifest_deep(path: Path) -> None:
    (path / "manifest.json").write_text('{"kind":' + "[" * 100_000)


def _manifest_linked(path: Path) -> None:
    (path / "manifest.json").unlink()
    (path / "manifest.json").symlink_to("/dev/zero")


def _endless(path: Path) -> None:
    made = json.loads((path / "manifest.json").read_text())
    made["plan"]["environments"][0]["seeds"] = f"0:{2**62}"
    (path / "manifest.json").write_text(json.dumps(made))


@pytest.mark.parametrize(
    "change",
    [_foreign, _linked, _piped, _manifest_foreign, _manifest_newer, _manifest_deep, _manifest_linked, _endless],
)
def test_a_folder_that_cannot_be_read_is_named_and_harms_no_other(tmp_path: Path, change: Change) -> None:
    for name in ("bad", "good"):
        folder(tmp_path / name, plan(), {0: [True], 1: [False]})
    change(tmp_path / "bad")
    site = live(tmp_path)
    runs = {run["name"]: run for run in asked(site, "data/runs.json")["runs"]}
    assert runs["good"]["problem"] == ""
    assert len(asked(site, "data/run/good/rows.json")["rows"]) == 2
    status, error = refused(site, "data/run/bad/rows.json")
    assert status == 409 and str(tmp_path / "bad") in error
    refused(site, "data/run/bad/report.json")
    refused(site, "data/compare/bad/good.json")
    number = export(Site(Library([tmp_path]), live=False), tmp_path / "site")
    assert number == len(list(site.addresses()))
    written = [one.read_text() for one in (tmp_path / "site" / "data").rglob("*.js")]
    assert not [text for text in written if str(tmp_path) in text]


def test_a_line_that_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    folder(tmp_path / "run", plan(), {0: [True], 1: [False]})
    _cut(tmp_path / "run")
    table = asked(live(tmp_path), "data/run/run/rows.json")
    assert (len(table["rows"]), table["missing"]) == (1, 2)


def _gone(path: Path) -> None:
    path.unlink()


def _another(path: Path) -> None:
    path.write_bytes(gzip.compress(b"{}"))


@pytest.mark.parametrize("change", [_gone, _another])
def test_an_episode_that_is_not_what_its_row_says_is_refused_by_name(tmp_path: Path, change: Change) -> None:
    path = a_run(tmp_path / "run", a_plan(), leave=22)
    file = sorted((path / "episodes").iterdir())[0]
    change(file)
    site = live(tmp_path)
    status, error = refused(site, f"data/run/run/{file.name.partition('.')[0]}.json")
    assert status == 409 and file.name in error
    assert len(asked(site, "data/run/run/rows.json")["rows"]) == 2


def test_an_episode_with_its_hash_forged_is_read_as_strictly(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run", a_plan(), leave=23)
    (file,) = (path / "episodes").iterdir()
    said = json.loads(gzip.decompress(file.read_bytes()))
    said["conversation"] = [{"role": "nobody", "text": "x", "images": [], "call_id": ""}]
    data = gzip.compress(json.dumps(said).encode())
    file.write_bytes(data)
    row = json.loads((path / ROWS).read_text())
    row["file"]["sha256"] = hashlib.sha256(data).hexdigest()
    (path / ROWS).write_text(json.dumps(row) + "\n")
    status, error = refused(live(tmp_path), f"data/run/run/{row['key']}-0.json")
    assert status == 409 and file.name in error


ADDRESSES = [
    "../harness/view/site.py",
    "data/../data/runs.json",
    "data/run/..%2f..%2fetc/rows.json",
    "data/run/../../etc/passwd",
    "data/run/before/../after/rows.json",
    "data//runs.json",
    "static/page.js",
    "data/run/none/rows.json",
    "data/run/before/0-0.json",
    "data/leaderboard.json",
    "page.js/",
    "\x00",
    "index.html\n",
    "data/run/before/" + "a" * 5000,
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_leads_out(place: Path, address: str) -> None:
    assert refused(live(place), address)[0] == 404


@given(st.text(max_size=60))
def test_any_address_is_answered(address: str) -> None:
    assert Site(Library([]), live=True).answer(address).status in (200, 404)


def test_places_are_found_named_and_refused(tmp_path: Path, place: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder"):
        Library([tmp_path / "none"])
    with pytest.raises(ConfigError, match="holds no results folder"):
        Library([tmp_path])
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/run", "a/b/run", "run"):
        folder(tmp_path / name, plan(), {0: [True]})
    (tmp_path / "loop").symlink_to(tmp_path)
    library = Library([tmp_path])
    assert [run.name for run in library.runs()] == ["run", "a.run", "a.b.run"]
    twice = Library([tmp_path / "run", tmp_path / "a" / "run", tmp_path / "run"])
    assert [run.name for run in twice.runs()] == ["run", "run-2"]
    folder(tmp_path / "a" / "new", plan(), {0: [True]})  # a run that begins while somebody looks
    assert "a.new" in [run.name for run in library.runs()]


def test_a_run_that_grows_is_told_anew(tmp_path: Path) -> None:
    made = plan()
    folder(tmp_path / "run", made, {0: [True]})
    site = live(tmp_path)
    (before,) = asked(site, "data/runs.json")["runs"]
    assert asked(site, "data/run/run/rows.json")["missing"] == 2
    assert asked(site, "data/run/run/report.json")["overall"]["missing"] == 2
    trial = list(made.trials())[1]
    with writing(tmp_path / "run") as writer:
        writer.begin(made)
        writer.keep(row_for(trial, an_episode(trial)), an_episode(trial))
    (after,) = asked(site, "data/runs.json")["runs"]
    assert before["version"] != after["version"]
    assert asked(site, "data/run/run/rows.json")["missing"] == 1
    assert asked(site, "data/run/run/report.json")["overall"]["missing"] == 1


def test_what_is_kept_is_made_once_by_many_and_dropped_in_turn() -> None:
    kept: Kept[int, int] = Kept(2)
    made: list[int] = []

    def make(value: int) -> Callable[[], int]:
        return lambda: (made.append(value), value)[1]

    threads = [threading.Thread(target=lambda: kept.get(1, "a", make(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert [kept.get(2, "a", make(2)), kept.get(1, "b", make(3)), kept.get(3, "a", make(4))] == [2, 3, 4]
    assert kept.get(1, "b", make(5)) == 3
    assert kept.get(2, "a", make(6)) == 6  # had made room


# the two ways out


def request(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    host, port = url.removeprefix("http://").strip("/").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    with connection.getresponse() as answer:
        said = answer.status, dict(answer.headers), answer.read()
    connection.close()
    return said


def test_the_server_gives_what_the_site_has_under_a_strict_policy(place: Path) -> None:
    site = live(place)
    with serving(site) as url, serving(site) as other:
        assert url != other
        for path in ("/", "/page.js", "/data/runs.json?x=1", "/data/run/before/rows.json", "/none"):
            status, headers, body = request(url, path)
            expected = site.answer(path.removeprefix("/").partition("?")[0])
            assert (status, body) == (expected.status, expected.body)
            assert headers["Content-Security-Policy"].startswith(CSP)
            assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
        assert request(url, "/", "HEAD")[2] == b""
        assert request(url, "/", "POST")[0] == 501
        assert request(url, "/data/runs.json", Host="evil.example")[0] == 403
        assert request(url, "/data/runs.json", Host=f"localhost:{url.rstrip('/').rpartition(':')[2]}")[0] == 200
        assert request(url, "http://evil.example/data/runs.json", Host="evil.example")[0] == 403
    with pytest.raises(OSError):
        request(url, "/")


def test_a_port_that_is_taken_is_told(place: Path) -> None:
    site = live(place)
    with serving(site, 0) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"port {port} cannot be had"), serving(site, port):
            pass


def test_an_export_has_everything_and_runs_nothing(place: Path, tmp_path: Path) -> None:
    site = Site(Library([place]), live=False)
    out = tmp_path / "deep" / "site"
    number = export(site, out)
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert number == len(files) == len(list(site.addresses()))
    assert b'data-source="files"' in (out / "index.html").read_bytes()
    assert str(place) not in (out / "data" / "runs.js").read_text()
    for name in files:
        if name.startswith("data/") and name.endswith(".js"):
            text = (out / name).read_text()
            called = re.fullmatch(r'metier\("([\w./-]+)",(.*)\);\n', text, re.DOTALL)
            assert called and called[1] + ".js" == name
            assert json.loads(called[2]) == json.loads(site.answer(name.removesuffix("js") + "json").body)
    with pytest.raises(ConfigError, match="holds something"):
        export(site, out)
    assert [one.name for one in out.parent.iterdir()] == ["site"]


def test_a_leaderboard_is_shown_beside_the_runs(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "leaderboard.json"
    file.write_text('{"kind": "metier leaderboard", "schema_version": 1, "groups": []}')
    site = Site(Library([place]), live=False, leaderboard=file, start="leaderboard")
    assert asked(site, "data/leaderboard.json")["groups"] == []
    assert asked(site, "data/runs.json")["leaderboard"] is True
    assert b'data-start="leaderboard"' in site.answer("").body
    file.write_text("{")
    assert refused(site, "data/leaderboard.json")[0] == 409
    file.unlink()
    assert refused(site, "data/leaderboard.json")[0] == 404


# the page itself


def test_the_page_loads_nothing_from_elsewhere_and_says_whose_it_is() -> None:
    page = (STATIC_FOLDER / "index.html").read_text()
    assert CSP in page and "<style" not in page and not re.search(r"<script(?! src=\"page.js\" defer></script>)", page)
    assert not re.search(r"(src|href)=\"(?!page\.|data:image/svg)", page)
    script, style = ((STATIC_FOLDER / name).read_text() for name in ("page.js", "page.css"))
    elsewhere = set(re.findall(r"https?://[\w.]+", script + style))
    assert elsewhere <= {"http://www.w3.org"}, elsewhere  # names of namespaces
    assert "eval(" not in script and "new Function" not in script and "@import" not in style and "url(" not in style
    assert "Preact" in (STATIC_FOLDER / "licences.txt").read_text()
    assert set(STATIC) == {path.name for path in STATIC_FOLDER.iterdir()}


def test_the_lock_file_names_no_host() -> None:
    lock = (PAGE / "package-lock.json").read_text()
    assert "resolved" not in lock and "registry" not in lock
    assert "omit-lockfile-registry-resolved=true" in (PAGE / ".npmrc").read_text()


# the command


def metier(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "metier.cli", "view", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_exports_and_refuses(place: Path, tmp_path: Path) -> None:
    done = metier(str(place), "--export", str(tmp_path / "site"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == len([one for one in (tmp_path / "site").rglob("*") if one.is_file()])
    wrong = metier(str(tmp_path / "none"))
    assert wrong.returncode == 2 and "is no folder" in wrong.stderr and "Traceback" not in wrong.stderr
