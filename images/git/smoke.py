"""A word is taken out of a repository's whole history, and nothing else changes."""

import os
import subprocess
from pathlib import Path

root = Path("/workspace/repo")
root.mkdir()
os.environ.update(
    HOME="/workspace",
    GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@example.org", GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@example.org",
)  # fmt: skip


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True).stdout


git("init", "-q", "-b", "main")
for number, text in enumerate(("key = hunter2\n", "key = hunter2\nport = 80\n", "port = 80\n")):
    root.joinpath("app.ini").write_text(text)
    git("add", "app.ini")
    git("commit", "-q", "-m", f"change {number}")
git("tag", "-a", "v1", "-m", "hunter2 is out", "HEAD~1")
rules = Path("/workspace/rules.txt")
rules.write_text("hunter2==>REDACTED\n")
git("filter-repo", "--force", "--quiet", "--replace-text", str(rules), "--replace-message", str(rules))

objects = git("cat-file", "--batch-all-objects", "--batch")
assert b"hunter2" not in objects, "the word is still in some object"
assert git("rev-list", "--count", "--all").strip() == b"3", "commits were lost"
assert git("show", "v1~1:app.ini") == b"key = REDACTED\n", "the old file is not what it must be"
assert git("fsck", "--full", "--strict").strip() == b""
print("git-filter-repo rewrote three commits and a tag")
