"""Steps that bring something to TARGET: moved files, a feed, a manifest of what is there."""

from __future__ import annotations

from .step import Step

COLLECT = Step(
    name="collect",
    call="collect_@SUB@",
    duty="moves every file anywhere below SOURCE whose name ends in `.@EXT@` to the same relative path below "
    "`TARGET/@SUB@`, and replaces a file that is there already",
    right="""\
    local file rel
    while IFS= read -r -d '' file; do
        rel=${file#"$@SRC@"/}
        mkdir -p -- "$@DST@/@SUB@"
        if [[ $rel == */* ]]; then mkdir -p -- "$@DST@/@SUB@/${rel%/*}"; fi
        mv -f -- "$file" "$@DST@/@SUB@/$rel"
    done < <(find "$@SRC@" -type f -name '*.@EXT@' -print0)
""",
    other="""\
    mkdir -p -- "$@DST@/@SUB@"
    find "$@SRC@" -type f -name '*.@EXT@' -exec bash -c '
        from=$1 to=$2; shift 2
        for file do
            new=$to/${file#"$from"/}
            mkdir -p -- "${new%/*}" && mv -f -- "$file" "$new"
        done' collect "$@SRC@" "$@DST@/@SUB@" {} +
""",
    near="""\
    local IFS=$'\\n' file rel
    for file in $(find "$@SRC@" -type f -name '*.@EXT@'); do
        rel=${file#"$@SRC@"/}
        mkdir -p -- "$@DST@/@SUB@/$(dirname -- "$rel")"
        mv -f -- "$file" "$@DST@/@SUB@/$rel"
    done
""",
    faulty=(
        """\
    for file in $(find $@SRC@ -type f -name '*.@EXT@'); do
        rel=${file#$@SRC@/}
        mkdir -p $@DST@/@SUB@/$(dirname $rel)
        mv -f $file $@DST@/@SUB@/$rel
    done
""",
        """\
    find $@SRC@ -type f -name *.@EXT@ | while read file; do
        rel=$(echo $file | cut -c$((${#@SRC@} + 2))-)
        mkdir -p $@DST@/@SUB@/$(dirname $rel)
        mv -f $file $@DST@/@SUB@/$rel
    done
""",
        """\
    local file rel
    find "$@SRC@" -type f -name '*.@EXT@' | while read -r file; do
        rel="${file#$@SRC@/}"
        mkdir -p "$@DST@/@SUB@/$(dirname "$rel")"
        mv -f "$file" "$@DST@/@SUB@/$rel"
    done
""",
        """\
    local file rel
    while read -r -d '' file; do
        rel=${file#"$@SRC@"/}
        mkdir -p -- "$@DST@/@SUB@/$(dirname -- "$rel")"
        mv -f -- "$file" "$@DST@/@SUB@/$rel"
    done < <(find "$@SRC@" -type f -name '*.@EXT@' -print0)
""",
    ),
)

FEED = Step(
    name="feed",
    call="refresh_feed",
    duty="runs `@TOOL@ SOURCE` (from the PATH; it prints lines), sorts the lines bytewise without repeats, and puts "
    "them into `TARGET/@FEED@`. When `@TOOL@` fails, the `@FEED@` of last time stays untouched, nothing after this "
    "step is done, and the script ends with the status of `@TOOL@`",
    right="""\
    @TOOL@ "$@SRC@" | LC_ALL=C sort -u > "$work/feed"
    mv -f -- "$work/feed" "$@DST@/@FEED@"
""",
    other="""\
    local status=0
    @TOOL@ "$@SRC@" > "$work/raw" || status=$?
    if ((status)); then exit "$status"; fi
    LC_ALL=C sort -u -o "$work/feed" -- "$work/raw"
    cat < "$work/feed" > "$@DST@/@FEED@"
""",
    near="""\
    @TOOL@ "$@SRC@" | LC_ALL=C sort -u > "$@DST@/@FEED@"
""",
    faulty=(
        """\
    @TOOL@ $@SRC@ | sort -u > $@DST@/@FEED@
""",
        """\
    local lines=$(@TOOL@ $@SRC@)
    echo "$lines" | LC_ALL=C sort -u > $work/feed
    mv -f $work/feed $@DST@/@FEED@
""",
        """\
    if ! @TOOL@ "$@SRC@" > "$work/raw"; then
        echo "@TOOL@ failed" >&2
        exit $?
    fi
    LC_ALL=C sort -u "$work/raw" > "$@DST@/@FEED@"
""",
    ),
)

MANIFEST = Step(
    name="manifest",
    call="write_manifest",
    duty="writes `TARGET/@MANIFEST@`: for each file below `TARGET/@SUB@` its size in bytes, a space, its path relative "
    "to `TARGET/@SUB@` and a NUL byte, ordered bytewise by path (an empty file where there are none)",
    right="""\
    local file
    mkdir -p -- "$@DST@/@SUB@"
    while IFS= read -r -d '' file; do
        printf '%s %s\\0' "$(stat -c %s -- "$@DST@/@SUB@/$file")" "$file"
    done < <(find "$@DST@/@SUB@" -type f -printf '%P\\0' | LC_ALL=C sort -z) > "$@DST@/@MANIFEST@"
""",
    other="""\
    local -a files=()
    local file
    mkdir -p -- "$@DST@/@SUB@"
    mapfile -d '' -t files < <(cd -- "$@DST@/@SUB@" && find . -type f -printf '%P\\0' | LC_ALL=C sort -z)
    for file in "${files[@]}"; do
        printf '%d %s\\0' "$(wc -c < "$@DST@/@SUB@/$file")" "$file"
    done > "$@DST@/@MANIFEST@"
""",
    near="""\
    local file
    mkdir -p -- "$@DST@/@SUB@"
    (cd "$@DST@/@SUB@" && find . -type f -printf '%P\\n') | LC_ALL=C sort | while IFS= read -r file; do
        printf '%s %s\\0' "$(stat -c %s -- "$@DST@/@SUB@/$file")" "$file"
    done > "$@DST@/@MANIFEST@"
""",
    faulty=(
        """\
    mkdir -p $@DST@/@SUB@
    for file in $(cd $@DST@/@SUB@ && find * -type f | LC_ALL=C sort); do
        printf '%s %s\\0' $(stat -c %s $@DST@/@SUB@/$file) $file
    done > $@DST@/@MANIFEST@
""",
        """\
    mkdir -p "$@DST@/@SUB@"
    find "$@DST@/@SUB@" -type f | LC_ALL=C sort | while read -r file; do
        echo -n "$(wc -c < "$file") ${file#$@DST@/@SUB@/}" | cat - <(printf '\\0')
    done > "$@DST@/@MANIFEST@"
""",
    ),
)
