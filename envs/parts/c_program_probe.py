# pyright: basic, reportUndefinedVariable=false
"""Runs inside a verifier sandbox as root, never imported here: compiles C programs and runs them under Valgrind.

`c_program.py` sends this text as a probe. Every source text comes with the payload. A trusted program is built and run
in a folder that only root can open, and is gone before anything of the agent's starts. The agent's program is
preprocessed once, and only that text is judged and compiled, so that no macro can tell one build from another; gcc and
the program run as uid 1000. Valgrind's own words come over a descriptor that the program cannot reach.
"""

import base64
import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading
from typing import Any

AGENT = 1000
MOST_PREPROCESSED = 4 << 20
MOST_OUTPUT = 4 << 20
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C", "TMPDIR": "/tmp"}
MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)"')
ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\b")
WORD = re.compile(r"[A-Za-z_]\w*")


class Failed(Exception):
    """The program is none: the words say why."""


def limits(seconds):
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return apply


def drain(pipe, sink, most):
    """Read to the end, keep so much: a flood must neither fill the memory nor stop the program."""
    with pipe:
        while chunk := pipe.read(65536):
            if len(sink) < most:
                sink.extend(chunk[: most - len(sink)])


def run(argv, *, trusted, cwd, stdin=b"", seconds, most=MOST_OUTPUT, log=False, environment=None):
    """One process to its end: how it ended, what it wrote, and what Valgrind said."""
    ids: dict[str, Any] = {} if trusted else {"user": AGENT, "group": AGENT, "extra_groups": []}
    ours, theirs = os.pipe() if log else (-1, -1)
    argv = [word.replace("{log}", str(theirs)) for word in argv]
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**ENVIRONMENT, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs] if log else [],
            start_new_session=True,
            preexec_fn=limits(int(seconds) + 1),
            **ids,
        )
    finally:
        if log:
            os.close(theirs)
    kept = {"stdout": bytearray(), "stderr": bytearray(), "log": bytearray()}
    pipes = [(process.stdout, "stdout"), (process.stderr, "stderr")]
    if log:
        pipes.append((os.fdopen(ours, "rb"), "log"))
    readers = [threading.Thread(target=drain, args=(pipe, kept[name], most), daemon=True) for pipe, name in pipes]
    for reader in readers:
        reader.start()
    late = False
    assert process.stdin is not None  # it is a pipe
    try:
        process.stdin.write(stdin)
        process.stdin.close()
    except OSError:
        pass  # it did not want its input
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = True
    try:
        os.killpg(process.pid, 9)
    except OSError:
        pass  # nothing of it is left
    process.wait()
    for reader in readers:
        reader.join(timeout=2)
    return {
        "code": process.returncode,
        "late": late,
        "stdout": bytes(kept["stdout"]),
        "stderr": bytes(kept["stderr"]).decode("utf-8", "replace"),
        "log": bytes(kept["log"]).decode("utf-8", "replace"),
    }


def gcc(argv, *, trusted, cwd, seconds, what):
    done = run(["gcc", *argv], trusted=trusted, cwd=cwd, seconds=seconds, most=MOST_PREPROCESSED + 1)
    if done["late"]:
        raise Failed(f"{what}: gcc did not end within {seconds:g} s")
    if done["code"] != 0:
        lines = [line for line in done["stderr"].splitlines() if "error" in line or "undefined" in line]
        raise Failed(f"{what}: {' | '.join(lines[:3])[:400] or done['stderr'][-400:]}")
    return done["stdout"]


def judge(text, name, rules):
    """Refuse what could bend a measurement, in what the agent wrote itself; system headers are not looked at."""
    own, lines = True, []
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            path = marker.group(1)
            own = not path.startswith(("/usr/include/", "/usr/lib/gcc/", "<"))
            if own and (path.startswith("/") or ".." in path.split("/")):
                raise Failed(f"{name} includes {path}, which is no file of the program")
        elif own:
            lines.append(line)
    mine = "\n".join(lines)
    for pragma in re.findall(r"^\s*#\s*pragma\s+(.*)$", mine, re.MULTILINE):
        if not pragma.split() or " ".join(pragma.split()[:2]) not in rules["pragmas"]:
            raise Failed(f"{name} has #pragma {pragma[:60]}, which is not allowed")
    bare = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', mine)
    for word in WORD.findall(bare):
        if word in ("asm", "__asm", "__asm__") or word.startswith(tuple(rules["prefixes"])):
            raise Failed(f"{name} uses {word}, which is not allowed")
    for match in ATTRIBUTE.finditer(bare):
        for word in WORD.findall(balanced(bare, match.end())):
            if word.strip("_") not in rules["attributes"]:
                raise Failed(f"{name} uses the attribute {word}, which is not allowed")


def balanced(text, start):
    """What stands in the parentheses that begin after `start`."""
    depth = 0
    for at in range(start, min(len(text), start + 4000)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0 and text[at] == ")":
            return text[start:at]
    raise Failed("an attribute does not end")


def symbols(objects, cwd, rules):
    """What the objects need from outside is allowed, and nothing of the C library's is defined anew."""
    told = run(["nm", "--format=posix", *objects], trusted=False, cwd=cwd, seconds=20)["stdout"].decode(
        "utf-8", "replace"
    )
    defined, needed = set(), set()
    for line in told.splitlines():
        parts = line.split()
        if len(parts) >= 2 and len(parts[1]) == 1:
            (needed if parts[1] in "Uvw" else defined).add(parts[0])
            if parts[1] == "i":
                raise Failed(f"{parts[0]} is chosen at load time, which is not allowed")
    taken = sorted(name for name in defined if name in rules["functions"] or name.startswith("__"))
    if taken:
        raise Failed(f"it defines {', '.join(taken[:5])}, which belongs to the C library")
    outside = sorted(needed - defined - set(rules["functions"]) - set(rules["ours"]))
    if outside:
        raise Failed(f"it calls {', '.join(outside[:5])}, which is not among the allowed functions")


def lay(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)


def build_trusted(folder, program, flags):
    lay(folder, program["files"])
    units = [name for name in program["files"] if name.endswith(".c")]
    gcc([*flags, "-I.", *units, "-o", "program"], trusted=True, cwd=folder, seconds=60, what="our own program")
    return {"plain": os.path.join(folder, "program")}


def build_agents(folder, program, flags):
    """Each source preprocessed and judged, that text compiled for each kind of build, and linked."""
    rules, seconds = program["rules"], program["build_s"]
    source, text, out = (os.path.join(folder, name) for name in ("source", "text", "out"))
    for path in (source, text, out):
        os.mkdir(path)
    os.chmod(out, 0o777)
    lay(source, program["files"])
    objects = {kind: [] for kind in program["kinds"]}
    own = {kind: [] for kind in program["kinds"]}
    for number, name in enumerate(name for name in program["files"] if name.endswith(".c")):
        made = gcc(
            [*flags, "-I.", "-fno-working-directory", "-E", name], trusted=False, cwd=source, seconds=seconds, what=name
        )
        if len(made) > MOST_PREPROCESSED:
            raise Failed(f"{name} is too large once its macros are expanded")
        judged = name not in program["pristine"]
        if judged:
            judge(made.decode("utf-8", "replace"), name, rules)
        unit = os.path.join(text, f"{number}.i")
        with open(unit, "wb") as file:
            file.write(made)
        for kind, extra in program["kinds"].items():
            target = os.path.join(out, f"{kind}{number}.o")
            argv = [*flags, *extra, "-fpreprocessed", "-c", unit, "-o", target]
            gcc(argv, trusted=False, cwd=source, seconds=seconds, what=name)
            objects[kind].append(target)
            if judged:
                own[kind].append(target)
    symbols(own["plain"], out, rules)
    for kind, extra in program["kinds"].items():
        argv = [*flags, *extra, *objects[kind], "-o", os.path.join(out, kind)]
        gcc(argv, trusted=False, cwd=source, seconds=seconds, what="linking")
    return {kind: os.path.join(out, kind) for kind in program["kinds"]}


def executed(programs, one, trusted, folder):
    argv = [*one["under"], programs[one.get("kind", "plain")]]
    done = run(
        argv,
        trusted=trusted,
        cwd=folder,
        stdin=base64.b64decode(one["stdin"]),
        seconds=one["seconds"],
        log="--log-fd={log}" in one["under"],
        environment=one.get("environment"),
    )
    return {**done, "stdout": base64.b64encode(done["stdout"]).decode(), "stderr": done["stderr"][-2000:]}


def measured(program, base):
    """The outcome of every run of a program, in order; or why it could not be built."""
    trusted = program["rules"] is None
    folder = os.path.join(base, "trusted" if trusted else "agents")
    os.mkdir(folder)
    os.chmod(folder, 0o700 if trusted else 0o755)
    try:
        made = (build_trusted if trusted else build_agents)(folder, program, program["flags"])
        runs, spent = [], 0
        for one in program["runs"]:
            if spent >= program["give_up"]:
                runs.append(None)
                continue
            runs.append(executed(made, one, trusted, folder))
            spent += runs[-1]["late"]
        return {"failure": "", "runs": runs}
    except Failed as error:
        return {"failure": str(error), "runs": []}
    finally:
        if trusted:
            shutil.rmtree(folder)


def end_agents():
    """Nothing that an earlier run left behind is there when this one begins."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == AGENT:
                os.kill(int(name), 9)
        except OSError:
            continue  # gone by itself


def main():
    end_agents()
    base = tempfile.mkdtemp(dir="/tmp")
    os.chmod(base, 0o755)
    return [measured(program, base) for program in payload["programs"]]  # noqa: F821


_answer(main())  # noqa: F821
