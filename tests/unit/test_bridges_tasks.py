"""Task folders of others: what is read, what is told, and what is refused with which reason."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.bridges import Reason, TaskRefused, read_harbor, read_terminal_bench
from metier.envs.bridges import folder as folders
from metier.envs.bridges.folder_task import where
from metier.envs.bridges.foreign import Reads
from metier.envs.bridges.harbor_task import without_canary

FOREIGN = Path(__file__).parents[1] / "fixtures" / "foreign"
HELLO, SUM = FOREIGN / "harbor" / "hello-file", FOREIGN / "harbor" / "sum-column"
WORDS = FOREIGN / "terminal-bench" / "word-count"


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HELLO, tmp_path / "hello-file"))


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WORDS, tmp_path / "word-count"))


def test_a_harbor_task_is_read_as_it_is() -> None:
    task = read_harbor(HELLO)
    assert (task.name, task.summary, task.tags, task.authors) == (
        "acme/hello-file",
        "Write a greeting into a file",
        ("files",),
        ("A. Author",),
    )
    assert task.instruction.startswith("Write the greeting"), "the canary is shown to nobody"
    assert (task.agent_s, task.memory_mb, task.cpus, dict(task.env)) == (60.0, 512, 1.0, {"GREETING": "hello"})
    assert set(task.context) == {"Dockerfile", "README.md"}
    assert task.testing.reads is Reads.REWARD_FILE and task.testing.kept is None and task.testing.timeout_s == 30.0
    assert task.solution is not None and task.solution.files["solve.sh"].executable
    told = " ".join(task.notes)
    assert "internet" in told and "root" in told and "shared verifier" in told


def test_old_keys_and_a_verifier_of_its_own_are_read() -> None:
    task = read_harbor(SUM)
    assert task.memory_mb == 512, "memory = '512M'"
    assert task.testing.kept == ("/logs/artifacts", "/sums/total.txt")
    assert task.testing.dockerfile is not None and task.testing.as_root
    assert not any(note.startswith(("network", "user")) for note in task.notes)


def test_a_terminal_bench_task_is_read_as_it_is() -> None:
    task = read_terminal_bench(WORDS)
    assert (task.name, task.agent_s, task.testing.timeout_s) == ("word-count", 60.0, 60.0)
    assert task.testing.reads is Reads.PYTEST_SUMMARY and task.testing.env == {"TEST_DIR": "/tests"}
    assert set(task.testing.files) == {"run-tests.sh", "test_outputs.py"}
    assert set(task.context) == {"text.txt"}, "neither tests nor solution can be copied into the image"
    assert task.tags == ("text", "counting")
    assert any(note.startswith("run_tests_in_same_shell") for note in task.notes)


def test_a_typed_solution_becomes_a_script(words: Path) -> None:
    (words / "solution.sh").unlink()
    (words / "solution.yaml").write_text("- command: echo 4 > /app/count.txt\n  min_timeout_sec: 1\n- command: ls\n")
    solution = read_terminal_bench(words).solution
    assert solution is not None and solution.files["solution.sh"].data == b"echo 4 > /app/count.txt\nls\n"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[environment]", "[environment]\ngpus = 1", Reason.ACCELERATOR),
        ("[environment]", '[environment]\nos = "Windows"', Reason.PLATFORM),
        ("[environment]", '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.org"]', Reason.NETWORK),
        ("[agent]", '[[steps]]\nname = "first"\n\n[agent]', Reason.STEPS),
        ("[agent]", "[agent", Reason.DAMAGED),
        ("timeout_sec = 60.0", "timeout_sec = -1", Reason.DAMAGED),
        ("timeout_sec = 60.0", "timeout_sec = inf", Reason.DAMAGED),
        ("memory_mb = 512", 'memory = "much"', Reason.DAMAGED),
        ('name = "acme/hello-file"', 'name = "hello"', Reason.DAMAGED),
        ("[task]", 'artifacts = ["/app/../etc"]\n[task]', None),
        ("[task]", 'artifacts = [{source = "/x", service = "db"}]\n[task]', Reason.SERVICES),
    ],
)
def test_what_would_make_it_meaningless_is_refused_with_its_reason(
    hello: Path, old: str, new: str, reason: Reason | None
) -> None:
    text = (hello / "task.toml").read_text()
    assert old in text
    (hello / "task.toml").write_text(text.replace(old, new, 1))
    if reason is None:
        read_harbor(hello)  # what a shared verifier is not handed matters to nobody
        return
    with pytest.raises(TaskRefused) as refused:
        read_harbor(hello)
    assert refused.value.reason is reason
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.reason, str(again)) == (reason, str(refused.value))


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile"])
def test_a_missing_file_is_named(hello: Path, name: str) -> None:
    (hello / name).unlink()
    with pytest.raises(TaskRefused, match=name) as refused:
        read_harbor(hello)
    assert refused.value.reason is Reason.DAMAGED


@pytest.mark.parametrize("name", ["task.toml", "instruction.md"])
def test_what_is_no_text_is_refused(hello: Path, name: str) -> None:
    (hello / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskRefused, match="no UTF-8"):
        read_harbor(hello)


def test_compositions_are_refused(hello: Path, words: Path) -> None:
    (hello / "environment" / "docker-compose.yaml").write_text("services: {}\n")
    with pytest.raises(TaskRefused) as refused:
        read_harbor(hello)
    assert refused.value.reason is Reason.SERVICES
    compose = words / "docker-compose.yaml"
    compose.write_text(compose.read_text() + "  database:\n    image: postgres:16\n")
    with pytest.raises(TaskRefused, match="database"):
        read_terminal_bench(words)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("parser_name: swebench\ninstruction: x\n", Reason.PARSER),
        ("parser_name: mine\ninstruction: x\n", Reason.DAMAGED),
        ("instruction: ''\n", Reason.DAMAGED),
        ("[unclosed", Reason.DAMAGED),
        ("", Reason.DAMAGED),
        ("instruction: !!python/object:os.system x\n", Reason.DAMAGED),
    ],
)
def test_a_wrong_task_yaml_is_refused(words: Path, text: str, reason: Reason) -> None:
    (words / "task.yaml").write_text(text)
    with pytest.raises(TaskRefused) as refused:
        read_terminal_bench(words)
    assert refused.value.reason is reason


def test_links_stay_inside_the_task(hello: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    inside, outside = hello / "environment" / "copy", hello / "environment" / "out"
    inside.symlink_to("README.md")
    assert read_harbor(hello).context["copy"].data == (hello / "environment" / "README.md").read_bytes()
    for target in ("../../secret", "/etc/hostname", "nowhere", "..", "out"):
        outside.symlink_to(target)
        with pytest.raises(TaskRefused) as refused:
            read_harbor(hello)
        assert refused.value.reason is Reason.UNSAFE_PATH, target
        outside.unlink()


def test_pipes_and_names_that_are_no_text_are_refused(hello: Path) -> None:
    pipe = hello / "tests" / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TaskRefused, match="neither a file nor a folder"):
        read_harbor(hello)
    pipe.unlink()
    Path(os.fsdecode(os.fsencode(str(hello / "tests")) + b"/\xff")).touch()
    with pytest.raises(TaskRefused) as refused:
        read_harbor(hello)
    assert refused.value.reason is Reason.UNSAFE_PATH


def test_too_much_is_refused_before_it_is_read(hello: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (hello / "environment" / "sparse").open("wb") as file:
        file.truncate(folders.MAX_FILE_BYTES + 1)
    with pytest.raises(TaskRefused, match="sparse") as refused:
        read_harbor(hello)
    assert refused.value.reason is Reason.TOO_LARGE
    (hello / "environment" / "sparse").unlink()
    monkeypatch.setattr(folders, "MAX_FILES", 3)
    with pytest.raises(TaskRefused, match="at most 3 files"):
        read_harbor(hello)


def test_what_the_host_holds_is_not_handed_on(hello: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "of the host")
    text = (hello / "task.toml").read_text()
    text = text.replace('GREETING = "hello"', 'GREETING = "${API_KEY}"\nB = "${API_KEY:-none} x"')
    (hello / "task.toml").write_text(text)
    task = read_harbor(hello)
    assert dict(task.env) == {"GREETING": "", "B": "none x"}
    assert any("API_KEY of the host is not handed on" in note for note in task.notes)


@given(st.text())
def test_only_leading_canary_lines_go(text: str) -> None:
    kept = without_canary(f"# a canary of mine\n\n{text}")
    assert text.endswith(kept)
    if not any("canary" in line.lower() for line in text.split("\n")):
        assert kept == text.lstrip("\n")


_PART = st.text("abcxyz0_-", min_size=1, max_size=6)


@given(st.lists(_PART, min_size=1, max_size=4))
def test_a_place_is_always_absolute_and_keeps_its_end(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    for trees in ([], [f"/{parts[0]}"], ["/workspace"]):
        real = where(path, trees)
        assert real.startswith("/") and real.endswith("/".join(parts[1:]))
