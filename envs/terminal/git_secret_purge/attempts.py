"""Solutions of one instance, right and wrong, as tool calls."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files

from ...core import ToolCall
from .history import History
from .secret import MARK, Leak

_SUBMIT = ToolCall(tool="submit", arguments={})
_CLEAN = """\
import base64, binascii, re, urllib.parse
secrets = {secrets!r}
mark = {mark!r}
def hides(word):
    try:
        return any(secret in base64.b64decode(word, validate=True) for secret in secrets)
    except binascii.Error:
        return False
def clean(data):
    for secret in secrets:
        data = data.replace(secret.decode().encode("utf-16-le"), mark.decode().encode("utf-16-le"))
    data = re.sub(rb"[A-Za-z0-9+/]{{16,}}={{0,2}}", lambda found: mark if hides(found[0]) else found[0], data)
    for secret in secrets:
        data = data.replace(urllib.parse.quote(secret, safe="").encode(), mark).replace(secret, mark)
    return data
"""
_NOTES = """\
sed 1d .git/filter-repo/commit-map | git notes copy --stdin
git notes prune
git reflog expire --expire=now refs/notes/commits
"""


def oracle(leak: Leak, history: History, findings: Sequence[Sequence[object]]) -> list[ToolCall]:
    """Look around, find what leaked, rewrite everything with git-filter-repo, look again, submit."""
    looks = [
        _shell("cd repo && git log --oneline --graph --all | head -80; git stash list; git notes list; git tag -n")
    ]
    if findings:
        looks.append(_shell("cat ../findings.csv"))
        looks += [_shell(f"git show {commit}:{path} | sed -n {line}p") for _, commit, path, line in findings]
    if leak.paths:
        looks.append(_shell(f"git log --all --format=%h --name-status --find-copies-harder -- {leak.paths[1]}"))
        looks.append(_shell("git log --all --format= --name-only --diff-filter=A | sort | uniq -c"))
    return [*looks, _shell(_rewrite(leak, history)), _shell(_check(leak)), _SUBMIT]


def alternatives(leak: Leak) -> dict[str, Sequence[ToolCall]]:
    """Every object written anew by a program of one's own, without git-filter-repo."""
    source = files(__package__ or "").joinpath("assets/rewriter.py").read_text(encoding="utf-8")
    program = _clean(leak) + f"doomed = {[path.encode() for path in leak.paths]!r}\n" + source
    script = f"cat > /tmp/rewrite.py <<'END_OF_PROGRAM'\n{program}END_OF_PROGRAM\ncd repo && python3 /tmp/rewrite.py"
    return {"own_rewriter": [_shell(script), _SUBMIT]}


def mutants(leak: Leak, history: History) -> dict[str, Sequence[ToolCall]]:
    """Near misses and tricks."""
    newest = f"cd repo && {_sed(leak)} && git commit -qam 'Remove secrets' && git gc -q --prune=now"
    hidden = (
        f"cd repo && {_sed(leak)} && git commit -qam 'Remove secrets' && new=$(git rev-parse HEAD) && "
        "git reset -q --soft HEAD~1 && git replace HEAD $new && git reflog expire --expire=now --all"
    )
    found = {
        "newest_files_only": newest,
        "hidden_by_replace": hidden,
        "started_anew": f"cd repo && {_sed(leak)}; {_anew(history)}",
        "old_objects_left": _rewrite(leak, history, options="--partial"),
        "file_cut_out": _rewrite(leak, history, cut=("config/app.ini", *leak.paths)),
        "history_cut_short": f"{_rewrite(leak, history)}git rev-list --all > .git/shallow && git gc -q --prune=now",
    }
    if len(leak.secrets) > 1:
        found["empty_commits_pruned"] = _rewrite(leak, history, keep_empty=False)
        found["one_secret_left"] = _rewrite(leak, history, num_secrets=len(leak.secrets) - 1)
    if history.stashes:
        found["stash_expired"] = (
            f"{_rewrite(leak, history)}git reflog expire --expire=now --all && git gc -q --prune=now"
        )
    if leak.paths:
        found["file_under_one_name"] = _rewrite(leak, history, cut=leak.paths[1:2])
    if history.notes:
        found["notes_orphaned"] = _rewrite(leak, history, notes=False)
        found["plain_text_only"] = _rewrite(leak, history, plain=True)
    return {name: [_shell(script), _SUBMIT] for name, script in found.items()}


def _rewrite(
    leak: Leak,
    history: History,
    *,
    options: str = "",
    keep_empty: bool = True,
    cut: Sequence[str] | None = None,
    notes: bool = True,
    plain: bool = False,
    num_secrets: int | None = None,
) -> str:
    """A run of git-filter-repo, with what it does not do by itself."""
    chosen = list(leak.secrets.values())[:num_secrets]
    paths = leak.paths if cut is None else cut
    words = ["git filter-repo --force --quiet", options, *(f"--path {shlex.quote(path)}" for path in paths)]
    if paths:
        words.append("--invert-paths")
    if keep_empty:
        words.append("--prune-empty never --prune-degenerate never")
    if plain:
        words.append("--replace-text /tmp/rules --replace-message /tmp/rules")
        rules = "".join(f"literal:{secret}==>{MARK}\n" for secret in chosen)
        before = f"cat > /tmp/rules <<'END_OF_RULES'\n{rules}END_OF_RULES\n"
    else:
        words.append('--blob-callback "$(cat /tmp/clean; echo "blob.data = clean(blob.data)")"')
        words.append('--message-callback "$(cat /tmp/clean; echo "return clean(message)")"')
        before = f"cat > /tmp/clean <<'END_OF_CLEAN'\n{_clean(leak, chosen)}END_OF_CLEAN\n"
    after = _NOTES if history.notes and notes else ""
    return f"cd /workspace/repo\n{before}{' '.join(filter(None, words))}\n{after}"


def _clean(leak: Leak, chosen: Sequence[str] | None = None) -> str:
    secrets = list(leak.secrets.values()) if chosen is None else chosen
    return _CLEAN.format(secrets=[secret.encode() for secret in secrets], mark=MARK.encode())


def _check(leak: Leak) -> str:
    """Look at every object that is left."""
    patterns = " ".join(f"-e {shlex.quote(secret)}" for secret in leak.secrets.values())
    return (
        f"git cat-file --batch-all-objects --batch | grep -acF {patterns}; git fsck --full --no-dangling; "
        "git log --oneline --all | wc -l; git stash list; git notes list; git for-each-ref"
    )


def _sed(leak: Leak) -> str:
    """Clean the files of the working tree, and leave it changed where nothing had to go."""
    texts = "".join(f"s\x01{secret}\x01{MARK}\x01g;" for secret in leak.secrets.values())
    return (
        f"git ls-files -z | xargs -0 sed -i {shlex.quote(texts)}; git rm -qf --ignore-unmatch -- x; echo >> README.md"
    )


def _anew(history: History) -> str:
    """A new repository with the names of the old one."""
    words = ["rm -rf .git", f"git init -q -b {history.head}", "git config user.name a", "git config user.email a@b"]
    words += ["git add -A", "git commit -qm Start"]
    words += [f"git branch {name}" for name in history.heads if name != history.head]
    for tag in history.tags:
        words.append(f"git tag {tag.name}" + (" -m x" if tag.message else ""))
    if history.stashes:
        words.append("git stash store -m x HEAD")
    if history.notes:
        words.append("git notes add -m x")
    return " && ".join(words)


def facts(findings: Sequence[tuple[str, int, str, int]], ids: Sequence[str]) -> list[Mapping[str, object]]:
    """A scanner's report: where one occurrence of each secret is."""
    return [
        {"secret": what, "commit": ids[commit][:12], "path": path, "line": line}
        for what, commit, path, line in findings
    ]


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 300})
