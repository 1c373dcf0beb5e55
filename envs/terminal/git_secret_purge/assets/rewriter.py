"""Rewrites a repository object by object; runs in the agent's sandbox behind a `clean` function and the list
`doomed`.
"""

import hashlib
import os
import re
import subprocess
import zlib


def git(*words, data=b""):
    return subprocess.run(["git", *words], input=data, check=True, capture_output=True).stdout


reader = subprocess.Popen(["git", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
done = {}


def read(oid):
    reader.stdin.write(oid.encode() + b"\n")
    reader.stdin.flush()
    _, kind, size = reader.stdout.readline().split()
    data = reader.stdout.read(int(size))
    reader.stdout.read(1)
    return kind.decode(), data


def write(kind, data):
    raw = b"%s %d\0" % (kind.encode(), len(data)) + data
    oid = hashlib.sha1(raw).hexdigest()
    path = f".git/objects/{oid[:2]}/{oid[2:]}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        with open(path, "wb") as file:
            file.write(zlib.compress(raw))
    return oid


def tree(oid, folder, notes=False):
    """The new id of a tree; None where nothing is left in it."""
    key = (oid, folder)
    if key not in done:
        _, data = read(oid)
        lines, at = [], 0
        while at < len(data):
            end = data.index(b"\0", at)
            mode, name = data[at:end].split(b" ", 1)
            old = data[end + 1 : end + 21].hex()
            at = end + 21
            path = folder + name
            if path in doomed:  # noqa: F821
                continue
            new = tree(old, path + b"/", notes) if mode == b"40000" else blob(old)
            if notes and name.decode() in done:
                name = done[name.decode()].encode()
            if new is not None:
                lines.append((name + b"/" * (mode == b"40000"), mode + b" " + name + b"\0" + bytes.fromhex(new)))
        body = b"".join(line for _, line in sorted(lines))
        done[key] = write("tree", body) if body or not folder else None
    return done[key]


def blob(oid):
    if oid not in done:
        done[oid] = write("blob", clean(read(oid)[1]))  # noqa: F821
    return done[oid]


def commit(oid, notes=False):
    head, _, message = read(oid)[1].partition(b"\n\n")
    lines = []
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == b"tree":
            value = tree(value.decode(), b"", notes).encode()
        elif name == b"parent":
            value = done[value.decode()].encode()
        lines.append(name + b" " + value)
    cited = re.sub(rb"[0-9a-f]{40}", lambda found: done.get(found[0].decode(), found[0].decode()).encode(), message)
    return write("commit", b"\n".join(lines) + b"\n\n" + clean(cited))  # noqa: F821


listed = git("for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
refs = dict(line.split(" ", 1) for line in listed)
log = ".git/logs/refs/stash"
stashes = []
if os.path.exists(log):
    with open(log, encoding="latin-1") as file:
        stashes = [line.split(" ", 2) for line in file]
tips = [oid for name, oid in refs.items() if not name.startswith("refs/notes/")] + [line[1] for line in stashes]
for oid in git("rev-list", "--topo-order", "--reverse", *tips).decode().split():
    done[oid] = commit(oid)
for name, oid in refs.items():
    kind, data = read(oid)
    if name.startswith("refs/notes/"):
        new = commit(oid, notes=True)
    elif kind == "tag":
        old = data[7:47].decode()
        new = write("tag", clean(data.replace(old.encode(), done[old].encode(), 1)))  # noqa: F821
    else:
        new = done[oid]
    git("update-ref", name, new)
for path in ("logs/HEAD", "logs/refs/heads", "logs/refs/notes", "ORIG_HEAD"):
    subprocess.run(["rm", "-rf", f".git/{path}"], check=True)
if stashes:
    last, lines = "0" * 40, []
    for _, oid, rest in stashes:
        lines.append(f"{last} {done[oid]} {rest}")
        last = done[oid]
    with open(log, "w", encoding="latin-1") as file:
        file.writelines(lines)
git("reset", "-q", "--hard")
git("reflog", "expire", "--expire=now", "HEAD")
reader.stdin.close()
reader.wait()
git("gc", "-q", "--prune=now")
