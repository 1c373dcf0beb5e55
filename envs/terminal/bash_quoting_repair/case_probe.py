"""Run a script on trees and tell what it left; runs in the verifier's sandbox, as the agent.

Standard library only and no import of ours: its source is sent into the sandbox. Bytes travel as Latin-1 text. A
script gets a process group of its own, which dies with it; after a run that does not end the rest is not tried.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any

RUN_S = 60.0
"""By the clock: long, since a busy machine is not the script's fault."""
CPU_S = 5
"""Of one process."""
LARGEST_FILE = 4 << 20
MOST_ENTRIES = 3000
SHOWN_BYTES = 4096
_TOOL = """\
#!/bin/sh
cat -- "$0.lines"
if [ -e "$0.wait" ]; then : > "$0.started"; sleep 60; fi
exit {status}
"""


def run_all(script: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each case came to; `failure` where there is nothing to see."""
    found: list[dict[str, Any]] = []
    endless = False
    for case in cases:
        if endless:
            found.append({"failure": "not tried, since an earlier run did not end"})
            continue
        root = os.fsencode(tempfile.mkdtemp(dir="/tmp"))
        try:
            found.append(run_case(script, case, root))
        except OSError as error:
            found.append({"failure": f"the run could not be observed: {error.strerror}"})
        finally:
            shutil.rmtree(root, ignore_errors=True)
        endless = found[-1].get("failure", "").startswith("did not end")
    return found


def run_case(script: str, case: dict[str, Any], root: bytes) -> dict[str, Any]:
    """Build, run, look."""
    home, tools, temporary = (os.path.join(root, name) for name in (b"home", b"bin", raw(case["temporary"])))
    source, target = (os.path.join(home, raw(case[name])) for name in ("source_name", "target_name"))
    for folder in (home, tools, temporary, source):
        os.makedirs(folder)
    fill(home, case["home"])
    fill(source, case["source"])
    fill(target, case["target"])
    if case["locked"]:
        os.makedirs(os.path.join(target, raw(case["lock"])))
    tool = os.path.join(tools, raw(case["tool"]))
    fill(tools, {case["tool"]: _TOOL.format(status=case["tool_status"]), case["tool"] + ".lines": case["tool_lines"]})
    os.chmod(tool, 0o755)
    if case["signal"]:
        fill(tools, {case["tool"] + ".wait": ""})
    arguments = [raw(case["source_name"]), raw(case["target_name"])]
    if not case["relative"]:
        arguments = [os.path.join(home, name) for name in arguments]
    environment = {
        b"PATH": tools + b":/usr/local/bin:/usr/bin:/bin",
        b"HOME": home,
        b"TMPDIR": temporary,
        b"LANG": b"C.UTF-8",
    }
    with open(os.path.join(root, b"stdout"), "wb+") as out:
        process = subprocess.Popen(
            [b"bash", script.encode(), *arguments],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_plain_process,
        )
        try:
            status = _watched(process, tool + b".started" if case["signal"] else b"", case["signal"])
        finally:
            _kill_group(process.pid)
            process.wait()
        out.seek(0)
        printed = out.read(SHOWN_BYTES)
    if status is None or status in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
        return {"failure": f"did not end within {RUN_S:g} s, {CPU_S} s of them busy"}
    seen = {"source": look(source), "target": look(target), "temporary": look(temporary)}
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    return {
        **seen,
        "home": look(home),
        "status": 128 - status if status < 0 else status,
        "printed": printed.decode("latin-1"),
    }


def raw(text: str) -> bytes:
    """The bytes that a text stands for."""
    return text.encode("latin-1")


def fill(top: bytes, files: dict[str, str]) -> None:
    """Write files below `top`."""
    os.makedirs(top, exist_ok=True)
    for name, content in files.items():
        path = os.path.join(top, raw(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(raw(content))


def look(top: bytes) -> dict[str, Any]:
    """Files with their content, and folders, below `top`; what is neither is named as such."""
    files: dict[str, str] = {}
    folders: list[str] = []
    waiting = [b""]
    while waiting and len(files) + len(folders) < MOST_ENTRIES:
        below = waiting.pop()
        try:
            entries = sorted(os.scandir(os.path.join(top, below)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(below, entry.name)
            name = path.decode("latin-1")
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                waiting.append(path)
            elif entry.is_file(follow_symlinks=False):
                try:
                    with open(os.path.join(top, path), "rb") as file:
                        files[name] = file.read(SHOWN_BYTES).decode("latin-1")
                except OSError:
                    files[name] = "(not readable)"
            else:
                files[name] = "(no regular file)"
    return {"files": files, "folders": folders}


def _plain_process() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    os.umask(0o022)


def _watched(process: Any, started: bytes, number: int) -> int | None:
    """The status, or None where it did not end; a signal is sent to the group once the tool has started."""
    if number:
        until = time.monotonic() + RUN_S
        while not os.path.exists(started) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass  # it ended without the tool
    try:
        return int(process.wait(RUN_S))
    except subprocess.TimeoutExpired:
        return None


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left
