"""The one small process that starts every bubblewrap of a client, and is the init of a pid namespace of its own.

When the client ends, however it ends, the control socket closes: the launcher kills what it started, removes its
control groups and goes; being the namespace's init, nothing can outlive it. Its mounts are in a namespace of its own,
so they go too. It is single-threaded (a bubblewrap dies with the thread that started it) and imports nothing but the
standard library, for it is run by its path: `python -I launcher.py FD`.

Requests are JSON datagrams over a socket, with descriptors attached: `start` (see `command.request`) with the steward's
channel and, optionally, a filter; `kill`. Answers: `started`, and once for each sandbox `gone`, when all of it is away.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import selectors
import signal
import socket
import sys
import time
from typing import Any

CHANNEL_FD, INFO_FD, MAP_FD, FILTER_FD = 0, 3, 4, 5
STAGES = ("/mnt", "/media", "/srv", "/opt")
INFO_S = 15.0
POLL_S = 0.1
LAST_WORDS = 4096
SWAP_FILES = ("memory.memsw.limit_in_bytes", "memory.swap.max")
GONE_S = 3.0
MESSAGE_BYTES = 1 << 18
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MNT_DETACH = 2, 4, 4096, 2


class Child:
    """One bubblewrap: its own pid, its sandbox's init, and what must be removed after it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.id = str(request["id"])
        self.request = request
        self.pid = 0
        self.init = 0
        self.stderr = -1
        self.said = b""
        self.mounts: list[str] = []
        self.groups: list[str] = []

    def kill(self) -> None:
        """Kill the sandbox's init, and with it all inside; bubblewrap itself then ends."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.init or self.pid, signal.SIGKILL)

    def listen(self) -> None:
        """Keep the last words of bubblewrap and of the steward."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.stderr, 65536):
                self.said = (self.said + data)[-LAST_WORDS:]


class Launcher:
    """All of a launcher's state."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.children: dict[int, Child] = {}
        self.stage = ""
        self.staged: set[str] = set()
        self.folders: set[str] = set()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.selector = selectors.DefaultSelector()
        self.serving = True

    def run(self) -> None:
        """Serve until the client hangs up; then leave nothing."""
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.selector.register(self.link, selectors.EVENT_READ, self.receive)
        self.selector.register(reader, selectors.EVENT_READ, lambda: (os.read(reader, 4096), self.reap()))
        while self.serving:
            self.turn()
        for child in self.children.values():
            child.kill()
        deadline = time.monotonic() + GONE_S
        while self.children and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.005)
        for folder in self.folders:
            remove_tree(folder, deadline)

    def turn(self) -> None:
        """Serve all that is ready, less what one of them put an end to: a sandbox and its last words come at once."""
        for key, _ in self.selector.select():
            if self.selector.get_map().get(key.fileobj) is key:
                key.data()

    def receive(self) -> None:
        """One request; those of a client that is gone are not served."""
        if self.deserted():
            self.serving = False
            return
        try:
            message, fds, _, _ = socket.recv_fds(self.link, MESSAGE_BYTES, 4)
        except ConnectionError:
            message, fds = b"", []
        if not message:
            self.serving = False
            return
        request = json.loads(message)
        try:
            if request["op"] == "start":
                self.start(Child(request), fds)
            else:
                for child in self.children.values():
                    if child.id == request["id"]:
                        child.kill()
        finally:
            for fd in fds:
                os.close(fd)

    def deserted(self) -> bool:
        """Whether the client has hung up, whatever it asked before."""
        watch = select.poll()
        watch.register(self.link, select.POLLRDHUP)
        return bool(watch.poll(0))

    def tell(self, **fields: Any) -> None:
        """Answer; a client that is gone is noticed by the next read."""
        with contextlib.suppress(OSError):
            self.link.send(json.dumps(fields).encode())

    # starting

    def start(self, child: Child, fds: list[int]) -> None:
        """Bring one sandbox up as far as bubblewrap's own work; what fails is undone and told as `gone`."""
        try:
            self.lay_out(child)
            self.fork(child, fds)
        except (OSError, ValueError) as error:
            if child.pid in self.children:
                child.kill()
                child.said += f"\n{error}".encode()
                return  # its end is told by reap
            self.undo(child)
            self.tell(event="gone", id=child.id, said=str(error), oom="")
            return
        self.tell(event="started", id=child.id)

    def lay_out(self, child: Child) -> None:
        """Mounts and control groups that must be there first."""
        request = child.request
        for name, source in request["stage"].items():
            self.bind_once(name, source)
        for name, options in request["tmpfs"].items():
            target = f"{self.stage}/{name}"
            os.mkdir(target)
            child.mounts.append(target)
            self.mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)
        for path, settings in request["groups"]:
            self.folders.add(os.path.dirname(path))
            os.makedirs(path)
            child.groups.append(path)
            for file, value in settings.items():
                if file in SWAP_FILES and not os.path.exists(f"{path}/{file}"):
                    continue  # this kernel does not count swap apart
                with open(f"{path}/{file}", "w") as setting:
                    setting.write(value)

    def bind_once(self, name: str, source: str) -> None:
        """Show `source` under the stage, where every uid can reach it."""
        if not self.stage:
            free = (place for place in STAGES if os.path.isdir(place) and not source.startswith(place + "/"))
            self.stage = next(free, "")
            if not self.stage:
                raise ValueError(f"none of {', '.join(STAGES)} can be mounted over")
            self.mount("tmpfs", self.stage, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=0755")
        if name not in self.staged:
            os.mkdir(f"{self.stage}/{name}")
            self.mount(source, f"{self.stage}/{name}", None, _MS_BIND, None)
            self.staged.add(name)

    def mount(self, source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
        words = [word.encode() if word is not None else None for word in (source, target, kind, options)]
        if self.libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"mounting {source}: {os.strerror(number)}", target)

    def fork(self, child: Child, fds: list[int]) -> None:
        """Start bubblewrap, read its sandbox's pid, and map the uids. Raises OSError, ValueError."""
        info, info_end = os.pipe2(os.O_CLOEXEC)
        map_end, mapped = os.pipe2(os.O_CLOEXEC)
        child.stderr, stderr_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(child.stderr, False)
        try:
            child.pid = os.fork()
            if child.pid == 0:
                self.become(child.request, fds, {2: stderr_end, INFO_FD: info_end, MAP_FD: map_end})
            self.children[child.pid] = child
            self.selector.register(child.stderr, selectors.EVENT_READ, child.listen)
            for fd in (info_end, map_end, stderr_end):
                os.close(fd)
            child.init = self.read_pid(info)
            base, count = child.request["uid_base"], child.request["uid_count"]
            if base is not None:
                for kind in ("uid_map", "gid_map"):
                    with open(f"/proc/{child.init}/{kind}", "w") as file:
                        file.write(f"0 {base} {count}")
                os.write(mapped, b"1")
        finally:
            os.close(info)
            os.close(mapped)

    def read_pid(self, info: int) -> int:
        """The pid in what bubblewrap writes once its sandbox exists. Raises ValueError if it does not come."""
        text = b""
        deadline = time.monotonic() + INFO_S
        while b"}" not in text:
            if time.monotonic() > deadline or self.deserted():
                raise ValueError("bubblewrap did not bring its sandbox up in time, or nobody waits for it any more")
            if select.select([info], [], [], POLL_S)[0]:
                data = os.read(info, 4096)
                if not data:
                    raise ValueError("bubblewrap ended before its sandbox was up")
                text += data
        return int(json.loads(text)["child-pid"])

    def become(self, request: dict[str, Any], fds: list[int], ends: dict[int, int]) -> None:
        """In the fork: take the place, the limits and the descriptors, and be bubblewrap. Never returns."""
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            for path, _ in request["groups"]:
                with open(f"{path}/cgroup.procs", "w") as procs:
                    procs.write("0")
            wanted = {**ends, 0: fds[0], 1: fds[0], **({FILTER_FD: fds[1]} if len(fds) > 1 else {})}
            high = {there: os.dup(here) for there, here in wanted.items()}
            spare = {there: os.dup2(here, 64 + there) for there, here in high.items()}
            for there, here in spare.items():
                os.dup2(here, there)
            os.closerange(max(wanted) + 1, 4096)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_NOFILE, (request["nofile"], request["nofile"]))
            if request["nproc"] is not None:
                resource.setrlimit(resource.RLIMIT_NPROC, (request["nproc"], request["nproc"]))
            if request["uid_base"] is not None:
                base = request["uid_base"]
                os.setgroups([])
                os.setresgid(base, base, base)
                os.setresuid(base, base, base)
            argv = [word.replace("{stage}", self.stage) for word in request["argv"]]
            os.execvpe(argv[0], argv, {"PATH": "/usr/local/bin:/usr/bin:/bin"})
        except BaseException as error:
            os.write(2, f"bubblewrap did not start: {error}\n".encode())
        os._exit(127)

    # ending

    def reap(self) -> None:
        """Clear away after every bubblewrap that ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is None:
                continue
            if child.init:
                # its monitor may have been killed alone; the sandbox goes with it
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.init, signal.SIGKILL)
            child.listen()
            oom = counters(child.groups)
            self.selector.unregister(child.stderr)
            os.close(child.stderr)
            self.undo(child)
            said = child.said.decode("utf-8", "replace").strip()
            self.tell(event="gone", id=child.id, status=status, said=said, oom=oom)

    def undo(self, child: Child) -> None:
        """Remove mounts and control groups of a sandbox without processes."""
        for target in child.mounts:
            self.libc.umount2(target.encode(), _MNT_DETACH)
            with contextlib.suppress(OSError):
                os.rmdir(target)
        for path in child.groups:
            remove_group(path)


def counters(groups: list[str]) -> str:
    """What the memory control group counted, as text."""
    for path in groups:
        for file in ("memory.oom_control", "memory.events"):
            with contextlib.suppress(OSError), open(f"{path}/{file}") as counter:
                return counter.read()
    return ""


def remove_group(path: str) -> None:
    """A control group stays busy for a moment after its last process."""
    for _ in range(100):
        try:
            os.rmdir(path)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002)


def remove_tree(folder: str, deadline: float) -> None:
    """Remove a control group and those in it; a sandbox cut off while it came up may still be dying in them."""
    while os.path.isdir(folder):
        for path, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError), open(f"{path}/cgroup.procs") as procs:
                for pid in {int(word) for word in procs} - {0}:  # 0: not of this namespace
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.rmdir(path)
        if time.monotonic() > deadline:
            return
        time.sleep(0.002)


def main(fd: int) -> None:
    """Serve the client at the other end of `fd`."""
    Launcher(socket.socket(fileno=fd)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
