# pyright: basic, reportUndefinedVariable=false
"""Runs inside a verifier sandbox as root, never imported here: starts the peers one after the other.

`grading.py` sends this text as a probe. Each peer runs as uid 1000 on a copy of the package that is root's, and before
the next one begins everything the last one could leave is gone: processes, files, queues and shared memory. So no peer
can learn what another one saw.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time

AGENT = 1000
PLACES = ("/workspace", "/tmp", "/dev/shm", "/dev/mqueue")
MOST_OUTPUT = 6 << 20
ENDING_S = 5.0
COLLECT = """
import json, os
found = {}
for folder, _, names in os.walk("/workspace"):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                found[os.path.relpath(path, "/workspace")] = file.read().decode("latin-1")
print(json.dumps(found))
"""
WIPE = """
import ctypes, os, shutil, sys
for place in sys.argv[1:]:
    if os.path.isdir(place) and os.stat(place).st_uid == os.getuid():
        os.chmod(place, 0o755)
    for folder, folders, _ in os.walk(place):
        for name in folders:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and os.lstat(path).st_uid == os.getuid():
                os.chmod(path, 0o700)
    for name in os.listdir(place) if os.path.isdir(place) else ():
        path = os.path.join(place, name)
        if os.lstat(path).st_uid == os.getuid():
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
    if os.path.isdir(place) and os.stat(place).st_uid == os.getuid():
        # bits, times and attributes of the place itself could tell something too
        for name in os.listxattr(place):
            os.removexattr(place, name)
        os.utime(place, (0, 0))
libc = ctypes.CDLL(None)
for kind in ("shm", "msg", "sem"):
    try:
        with open("/proc/sysvipc/" + kind) as file:
            rows = file.readlines()[1:]
    except OSError:
        continue
    for row in rows:
        number = int(row.split()[1])
        if kind == "sem":
            libc.semctl(number, 0, 0, 0)
        else:
            getattr(libc, kind + "ctl")(number, 0, None)
"""


class Left(Exception):
    """What a peer left could not be removed."""


def as_agent(source, *arguments):
    """A program of ours with the agent's rights, since root may not touch the agent's files here."""
    return subprocess.run(
        [sys.executable, "-I", "-c", source, *arguments],
        capture_output=True, cwd="/", user=AGENT, group=AGENT, extra_groups=[], timeout=60,
    )  # fmt: skip


def end_agents():
    """End all of uid 1000's processes at once, and wait until they are gone."""
    until = time.monotonic() + ENDING_S
    while time.monotonic() < until:
        os.setresuid(AGENT, AGENT, 0)
        try:
            os.kill(-1, 9)
        except ProcessLookupError:
            return
        finally:
            os.setresuid(0, 0, 0)
        time.sleep(0.01)
    raise Left("what a peer started does not end")


def left():
    """What is anywhere that a peer may write, but root's."""
    found = []
    for place in PLACES:
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if os.lstat(os.path.join(place, name)).st_uid != 0:
                found.append(os.path.join(place, name))
    for kind in ("shm", "msg", "sem"):
        try:
            with open("/proc/sysvipc/" + kind) as file:
                found += [kind + " " + row.split()[1] for row in file.readlines()[1:]]
        except OSError:
            continue
    return found


def clear():
    """Nothing of an earlier run is there when this one begins."""
    end_agents()
    as_agent(WIPE, *PLACES)
    if found := left():
        raise Left("a peer left " + ", ".join(found[:3])[:200])


def copied():
    """A folder of root's with what was handed in."""
    done = as_agent(COLLECT)
    top = tempfile.mkdtemp(dir="/tmp")
    os.chmod(top, 0o755)
    os.umask(0o022)
    for path, text in _json.loads(done.stdout).items():  # noqa: F821
        whole = os.path.join(top, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(text.encode("latin-1"))
    return top


def limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def one(condition, top):
    """What one peer saw, or why there is nothing."""
    here = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": str(condition["hash_seed"]), "PYTHONDONTWRITEBYTECODE": "1"}
    here.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", PYGAME_HIDE_SUPPORT_PROMPT="1", HOME="/tmp")
    told = _json.dumps({**payload["told"], "conditions": condition, "top": top}).encode()  # noqa: F821
    with tempfile.TemporaryFile(dir="/tmp") as out, tempfile.TemporaryFile(dir="/tmp") as err:
        process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-c", payload["peer"]],  # noqa: F821
            stdin=subprocess.PIPE, stdout=out, stderr=err, env=here, cwd="/tmp", start_new_session=True,
            preexec_fn=limits, user=AGENT, group=AGENT, extra_groups=[],
        )  # fmt: skip
        try:
            process.communicate(told, timeout=payload["seconds"])  # noqa: F821
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return {"raises": "a peer did not end in time"}
        out.seek(0)
        err.seek(0)
        said, complained = out.read(MOST_OUTPUT), err.read(MOST_OUTPUT)
    try:
        found = _json.loads(said.decode("utf-8", "replace").splitlines()[-1])  # noqa: F821
        _json.dumps(found)  # noqa: F821
    except (ValueError, IndexError, RecursionError):
        tail = re.sub(r"\s+", " ", complained.decode("utf-8", "replace"))[-300:]
        return {"raises": "a peer left nothing: " + tail}
    return found


def main():
    end_agents()
    top = copied()
    runs = {}
    for number in payload["order"]:  # noqa: F821
        clear()
        runs[number] = one(payload["conditions"][number], top)  # noqa: F821
        if not isinstance(runs[number], list):
            return runs[number]
    return [runs[number] for number in sorted(runs)]


try:
    _found = main()
except (Left, OSError, subprocess.SubprocessError, ValueError) as error:
    _found = {"raises": str(error)[:300]}
_answer(_found)  # noqa: F821
