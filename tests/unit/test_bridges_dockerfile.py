"""Another project's Dockerfile in our dialect: nothing is ignored in silence, and what comes out our parser takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.harness.bridges.installing import installs
from metier.harness.bridges.trees import writable_trees, written_to_the_system
from metier.images.dockerfile import parse
from metier.images.foreign import Bases, NotTranslated, Present, Translated, translate

OURS = ("base", "terminal-python")


def translated(text: str, context: Sequence[str] = (), present: Present | None = None, **base: str) -> Translated:
    bases = Bases(present=lambda _: present, substitutes=base, ours=OURS)
    return translate(text, context=context, folder="context", bases=bases)


def lines(text: str, *context: str) -> list[str]:
    return translated(f"FROM debian:12\n{text}", context).lines[1:]


@pytest.mark.parametrize(
    ("base", "image"),
    [
        ("debian:12", "base"),
        ("debian:bookworm-slim", "base"),
        ("docker.io/library/debian:bookworm-20250101", "base"),
        ("ubuntu:24.04", "base"),
        ("python:3.11-slim-bookworm", "terminal-python"),
        ("python:3.11.9", "terminal-python"),
        ("ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624", "base"),
    ],
)
def test_a_base_as_good_as_ours_is_replaced_and_told(base: str, image: str) -> None:
    made = translated(f"FROM --platform=linux/amd64 {base} AS main\n")
    assert made.lines == [f"FROM metier/{image}"]
    assert base in made.notes[0]


@pytest.mark.parametrize("base", ["python:3.13-slim", "debian:trixie", "alpine", "node:22", "evil/ubuntu:24.04"])
def test_any_other_base_is_refused_with_what_to_do(base: str) -> None:
    with pytest.raises(NotTranslated, match=r"docker pull .*--base") as refused:
        translated(f"FROM {base}\n")
    assert refused.value.base == base


def test_the_engines_own_images_come_first_by_their_id() -> None:
    held = Present(id="sha256:" + "a" * 64, environment={"PATH": "/opt/bin:/bin", "A": 'b "c"'}, workdir="/srv/x")
    made = translated("FROM ubuntu:24.04\nRUN true\n", present=held)
    assert made.lines == [f"FROM {held.id}", "ENV PATH=/opt/bin:/bin", 'ENV A="b \\"c\\""', "RUN cd /srv/x && true"]


def test_a_person_may_choose() -> None:
    bases = Bases(present=lambda _: None, substitutes={"python:3.13": "terminal-python"}, ours=OURS)
    made = translate("ARG V=3.13\nFROM python:${V}\n", context=(), folder="context", bases=bases)
    assert made.lines == ["FROM metier/terminal-python"] and "as you chose" in made.notes[0]
    wrong = Bases(present=lambda _: None, substitutes={"python:3.13": "none"}, ours=OURS)
    with pytest.raises(NotTranslated, match="no image of that name"):
        translate("FROM python:3.13\n", context=(), folder="context", bases=wrong)


def test_directories_are_spelled_out() -> None:
    assert lines("WORKDIR /app\nWORKDIR sub\nRUN make \\\n  # why\n  all\nCOPY a.txt .\n", "a.txt") == [
        "RUN mkdir -p /app",
        "RUN mkdir -p /app/sub",
        "RUN cd /app/sub && make all",
        "COPY context/a.txt /app/sub/",
    ]
    assert lines("COPY . /x\nCOPY a b /y\nCOPY d/*.py /z/\n", "a", "b", "d/c.py") == [
        "COPY context/ /x",
        "COPY context/a context/b /y/",
        "COPY context/d/*.py /z/",
    ]


def test_old_and_new_spellings_of_variables() -> None:
    assert lines('ENV A some words\nENV B=1 C="x y"\nENV PATH=/o/bin:$PATH\nARG D\nARG E=f g') == [
        'ENV A="some words"',
        "ENV B=1",
        'ENV C="x y"',
        "ENV PATH=/o/bin:$PATH",
        "ARG D",
        "ARG E=f",
        "ARG g",
    ]


def test_scripts_in_the_file_become_files() -> None:
    made = translated('FROM debian:12\nRUN <<EOF\necho 1\n\necho 2\nEOF\nRUN cat > /a <<"X" && true\nb\nX\nRUN true\n')
    assert made.files == {"step-1.sh": "echo 1\n\necho 2\n", "step-2.sh": 'cat > /a <<"X" && true\nb\nX\n'}
    assert made.lines[-1] == "RUN true" and "RUN /bin/sh /opt/metier-bridge/step-1.sh" in made.lines


def test_other_shells_and_lists_of_words() -> None:
    assert lines('SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN a | b\n') == ["RUN /bin/bash -o pipefail -c 'a | b'"]
    assert lines('RUN ["echo", "a b"]\n') == ["RUN echo 'a b'"]


def test_what_an_image_here_has_not_is_told() -> None:
    made = translated(
        'FROM debian:12\nUSER app\nENTRYPOINT ["x"]\nHEALTHCHECK CMD x\nVOLUME /v\nEXPOSE 80\nLABEL a=b\nCMD x\n'
        "RUN --mount=type=cache,target=/c make\nCOPY --chown=a:b --chmod=755 f /f\nCOPY tests /tests\n",
        ("f",),
    )
    told = "\n".join(made.notes)
    for word in ("USER app", "ENTRYPOINT", "HEALTHCHECK", "VOLUME", "CMD", "--mount", "--chown", "COPY tests"):
        assert word in told
    assert made.lines[1:] == ["RUN make", "COPY context/f /f", "RUN chmod -R 755 /f"]


@pytest.mark.parametrize(
    "text",
    [
        "FROM debian:12\nFROM debian:12\n",
        "FROM debian:12\nCOPY --from=other /a /b\n",
        "FROM debian:12\nADD https://a.org/x /x\n",
        "FROM debian:12\nADD a.tar.gz /x\n",
        "FROM debian:12\nRUN --mount=type=secret,id=x true\n",
        "FROM debian:12\nONBUILD RUN true\n",
        "FROM debian:12\nCOPY ../x /x\n",
        "FROM debian:12\nRUNN true\n",
        "RUN true\n",
        "",
        "FROM debian:12\nCOPY 'a /b\n",
        "FROM debian:12\nSHELL not json\n",
    ],
)
def test_what_cannot_be_built_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(NotTranslated, match=r"Dockerfile:\d"):
        translated(text, ("a.tar.gz", "x"))


_WORD = st.text("ab/=$\"'\\ <>&|;#{}", min_size=1, max_size=12)
_INSTRUCTION = st.builds("{} {}".format, st.sampled_from(["RUN", "ENV", "WORKDIR", "COPY", "ARG", "SHELL"]), _WORD)


@given(st.lists(_INSTRUCTION, max_size=5))
def test_whatever_is_translated_our_parser_takes_or_refuses_in_words(steps: list[str]) -> None:
    import tempfile

    from metier.envs.core import ConfigError

    try:
        made = translated("\n".join(["FROM debian:12", *steps]), ("a", "b"))
    except NotTranslated:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Dockerfile"
        path.write_text("\n".join(made.lines))
        try:
            assert len(parse(path)) == len(made.lines)
        except ConfigError:
            pass


def test_writable_folders_are_found_and_the_systems_are_not() -> None:
    texts = ["Put it into /app/out, read /data/in.csv and /etc/hosts; see https://a.org/docs/x or /opt/tool/bin."]
    assert writable_trees(texts, "/") == ("/app", "/data", "/opt/tool")
    assert writable_trees(["/workspace/x /tmp/y /tests/z /logs/verifier"], "/workspace/app") == ()
    assert written_to_the_system(["echo a >> /etc/hosts", "cat /etc/passwd", "cp x /usr/bin/y"]) == [
        "/etc/hosts",
        "/usr/bin/y",
    ]


@pytest.mark.parametrize(
    ("script", "python", "debian"),
    [
        ("#!/bin/bash\npytest /tests\n", (), ()),
        ("apt-get update && apt-get install -y --no-install-recommends curl jq=1.6\n", (), ()),
        ("uv add pytest==8.4.1 'pandas>=2'\nuv run pytest\n", ("pytest==8.4.1", "pandas>=2"), ()),
        (
            "if uvx \\\n -p 3.13 \\\n --with pytest==8.4.1 \\\n --with pytest-json-ctrf==0.3.5 pytest -rA; then",
            None,
            (),
        ),
        ("pip3 install -q numpy==1.26.4\n", ("numpy==1.26.4",), ()),
        ("uvx --from rich==13 python -c 1\n", ("rich==13",), ()),
        ("sudo apt install -y sqlite3\n", (), ("sqlite3",)),
        ("curl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh\n", (), ()),
    ],
)
def test_what_tests_install_as_they_start_is_found(
    script: str, python: tuple[str, ...] | None, debian: tuple[str, ...]
) -> None:
    found = installs(script)
    wanted = ("pytest==8.4.1", "pytest-json-ctrf==0.3.5") if python is None else python
    assert not found.fetches
    if "jq" not in script:
        assert (found.python, found.debian) == (wanted, debian)


@pytest.mark.parametrize(
    "line",
    ["curl -O https://a.org/data.zip", "wget http://a.org/x", "git clone https://a.org/r", "npm install left-pad"],
)
def test_what_cannot_be_installed_beforehand_is_found(line: str) -> None:
    assert installs(f"set -e\n{line}\n").fetches == line
    assert not installs("curl -s http://localhost:8000/health\ncurl http://127.0.0.1/\n").fetches


@given(st.text(max_size=200))
def test_any_script_can_be_looked_at(script: str) -> None:
    installs(script)
    writable_trees([script], "/")
