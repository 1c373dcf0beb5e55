# pyright: basic, reportUndefinedVariable=false, reportOptionalMemberAccess=false
"""Runs inside a verifier sandbox as root, never imported here: plays the trials with one peer after the other.

`grading.py` sends this text as a probe, behind `conductor.py`. Each peer runs as uid 1000 on a copy of the package that
is root's. It gets its commands one at a time, the next one after its answer to the last, and waiting is done on this
side; before the next peer begins everything the last one could leave is gone: processes, files, queues and shared
memory. So no peer can learn what it will be told, nor what another one saw.
"""

import json
import os
import re
import resource
import select
import subprocess
import sys
import tempfile
import time

AGENT = 1000
PLACES = ("/workspace", "/tmp", "/dev/shm", "/dev/mqueue")
MOST_SAID = 6 << 20
MOST_ERRORS = 1 << 20
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


class Unplayable(Exception):
    """A peer does not go on, or left what cannot be removed; the text says how."""


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
    raise Unplayable("what a peer started does not end")


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
        raise Unplayable("a peer left " + ", ".join(found[:3])[:200])


def copied():
    """A folder of root's with what was handed in."""
    done = as_agent(COLLECT)
    top = tempfile.mkdtemp(dir="/tmp")
    os.chmod(top, 0o755)
    os.umask(0o022)
    for path, text in json.loads(done.stdout).items():
        whole = os.path.join(top, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(text.encode("latin-1"))
    return top


def limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_ERRORS, MOST_ERRORS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Process:
    """One peer; a context manager that ends it."""

    def __init__(self, hash_seed, top):
        here = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
        here.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", PYGAME_HIDE_SUPPORT_PROMPT="1", HOME="/tmp")
        told = json.dumps({**payload["told"], "top": top})  # noqa: F821
        self.until = time.monotonic() + payload["seconds"]  # noqa: F821
        self.errors = tempfile.TemporaryFile(dir="/tmp")  # noqa: SIM115  # closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-c", payload["peer"], told],  # noqa: F821
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, bufsize=0, env=here, cwd="/tmp",
            start_new_session=True, preexec_fn=limits, user=AGENT, group=AGENT, extra_groups=[],
        )  # fmt: skip
        os.set_blocking(self.process.stdin.fileno(), False)
        self.said, self.all_said = b"", 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            file.close()

    def ask(self, command):
        """The answer to one command."""
        self.send(json.dumps(command).encode() + b"\n")
        try:
            return read(self.line())  # noqa: F821
        except ValueError as error:
            raise Unplayable("an answer cannot be read: " + str(error)[:100]) from None

    def send(self, data):
        while data:
            self.wait([], [self.process.stdin])
            try:
                data = data[os.write(self.process.stdin.fileno(), data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise Unplayable("it ended: " + self.complaints()) from None

    def line(self):
        while b"\n" not in self.said:
            self.wait([self.process.stdout], [])
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            self.said += more
            self.all_said += len(more)
            if not more:
                raise Unplayable("it ended: " + self.complaints())
            if self.all_said > MOST_SAID:
                raise Unplayable("it does not stop talking")
        line, _, self.said = self.said.partition(b"\n")
        return line

    def wait(self, readable, writable):
        """Until one of these pipes is ready."""
        left = self.until - time.monotonic()
        if left <= 0 or not any(select.select(readable, writable, [], left)):
            raise Unplayable("it did not end in time")

    def complaints(self):
        self.errors.seek(max(self.errors.seek(0, os.SEEK_END) - 2000, 0))
        return re.sub(r"\s+", " ", self.errors.read().decode("ascii", "backslashreplace"))[-300:]


def main():
    end_agents()
    top = copied()
    runs = {}
    for number in payload["order"]:  # noqa: F821
        clear()
        told = payload["peers"][number]  # noqa: F821
        with Process(told["hash_seed"], top) as process:
            runs[number] = conduct(told["scripts"], process.ask, time.sleep)  # noqa: F821
    return [runs[number] for number in sorted(runs)]


try:
    _found = main()
except (Unplayable, OSError, subprocess.SubprocessError, ValueError, RecursionError, MemoryError) as error:
    _found = {"raises": str(error)[:400]}
_answer(_found)  # noqa: F821
