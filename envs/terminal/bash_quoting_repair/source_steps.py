"""Steps that work on SOURCE alone: deleting, renaming, tidying up, counting."""

from __future__ import annotations

from .step import Step

DROP = Step(
    name="drop",
    call="drop_listed",
    duty="deletes the files that `SOURCE/@LIST@` names: one path relative to SOURCE on each line, taken literally; "
    "empty lines and files that are not there are skipped",
    right="""\
    local name
    while IFS= read -r name || [[ -n $name ]]; do
        if [[ -n $name ]]; then rm -f -- "$@SRC@/$name"; fi
    done < "$@SRC@/@LIST@"
""",
    other="""\
    local -a names=()
    local name
    mapfile -t names < "$@SRC@/@LIST@"
    for name in "${names[@]}"; do
        [[ -z $name ]] || rm -f -- "$@SRC@/$name"
    done
""",
    near="""\
    local IFS=$'\\n' name
    for name in $(cat "$@SRC@/@LIST@"); do
        rm -f -- "$@SRC@"/$name
    done
""",
    faulty=(
        """\
    for name in $(cat $@SRC@/@LIST@); do
        rm -f $@SRC@/$name
    done
""",
        """\
    while read name; do
        [ -z "$name" ] || rm -f $@SRC@/$name
    done < $@SRC@/@LIST@
""",
        """\
    (cd "$@SRC@" && xargs rm -f < "@LIST@")
""",
    ),
)

PURGE = Step(
    name="purge",
    call="purge_@FOLDER@",
    duty="deletes the files directly in `SOURCE/@FOLDER@`, hidden ones too, but not those whose name is a line of "
    "`SOURCE/@KEEP@`, taken literally",
    right="""\
    local file line kept
    [[ -d $@SRC@/@FOLDER@ ]] || return 0
    while IFS= read -r -d '' file; do
        kept=
        while IFS= read -r line || [[ -n $line ]]; do
            if [[ ${file##*/} == "$line" ]]; then kept=yes; fi
        done < "$@SRC@/@KEEP@"
        if [[ -z $kept ]]; then rm -f -- "$file"; fi
    done < <(find "$@SRC@/@FOLDER@" -maxdepth 1 -type f -print0)
""",
    other="""\
    local -A kept=()
    local line file
    while IFS= read -r line || [[ -n $line ]]; do
        kept["x$line"]=1
    done < "$@SRC@/@KEEP@"
    for file in "$@SRC@/@FOLDER@"/* "$@SRC@/@FOLDER@"/.[!.]* "$@SRC@/@FOLDER@"/..?*; do
        line=x${file##*/}
        if [[ -f $file && -z ${kept["$line"]+set} ]]; then rm -f -- "$file"; fi
    done
""",
    near="""\
    local file line kept
    for file in "$@SRC@/@FOLDER@"/*; do
        kept=
        while IFS= read -r line; do
            if [[ ${file##*/} == $line ]]; then kept=yes; fi
        done < "$@SRC@/@KEEP@"
        if [[ -f $file && -z $kept ]]; then rm -f -- "$file"; fi
    done
""",
    faulty=(
        """\
    for file in $(find $@SRC@/@FOLDER@ -maxdepth 1 -type f); do
        grep -q "^$(basename $file)$" $@SRC@/@KEEP@ || rm -f $file
    done
""",
        """\
    ls -A $@SRC@/@FOLDER@ | while read name; do
        if [ -f $@SRC@/@FOLDER@/$name ] && ! grep -qx "$name" $@SRC@/@KEEP@; then
            rm -f $@SRC@/@FOLDER@/$name
        fi
    done
""",
        """\
    local file line kept
    for file in "$@SRC@"/@FOLDER@/* "$@SRC@"/@FOLDER@/.[a-z]*; do
        kept=
        while read -r line; do
            [[ $(basename "$file") == $line ]] && kept=yes
        done < "$@SRC@/@KEEP@"
        if [[ -f "$file" && -z "$kept" ]]; then rm -f "$file"; fi
    done
""",
    ),
)

SPOOL = Step(
    name="spool",
    call="empty_@SPOOL@",
    duty="deletes every file directly in `SOURCE/@SPOOL@`, hidden ones too, and leaves the folders in it alone; "
    "where there is no `SOURCE/@SPOOL@` it does nothing",
    right="""\
    [[ -d $@SRC@/@SPOOL@ ]] || return 0
    find "$@SRC@/@SPOOL@" -maxdepth 1 -type f -delete
""",
    other="""\
    local file
    for file in "$@SRC@/@SPOOL@"/* "$@SRC@/@SPOOL@"/.[!.]* "$@SRC@/@SPOOL@"/..?*; do
        if [[ -f $file ]]; then rm -f -- "$file"; fi
    done
""",
    near="""\
    [[ -d $@SRC@/@SPOOL@ ]] || return 0
    local file
    for file in "$@SRC@/@SPOOL@"/*; do
        if [[ -f $file ]]; then rm -f -- "$file"; fi
    done
""",
    faulty=(
        """\
    find $@SRC@/@SPOOL@ -maxdepth 1 -type f | xargs rm -f
""",
        """\
    local back=$PWD
    cd $@SRC@/@SPOOL@ || true
    for file in * .[a-z]*; do
        [ ! -f $file ] || rm -f $file
    done
    cd $back
""",
        """\
    local file
    find "$@SRC@/@SPOOL@" -maxdepth 1 -type f | while read -r file; do
        rm -f "$file"
    done
""",
    ),
)

RENAME = Step(
    name="rename",
    call="rename_@OLD@",
    duty="renames every file anywhere below SOURCE whose name ends in `.@OLD@` so that it ends in `.@NEW@` instead; "
    "where the new name is taken the file stays as it is",
    right="""\
    local file new
    while IFS= read -r -d '' file; do
        new=${file%.@OLD@}.@NEW@
        if [[ ! -e $new ]]; then mv -- "$file" "$new"; fi
    done < <(find "$@SRC@" -type f -name '*.@OLD@' -print0)
""",
    other="""\
    find "$@SRC@" -type f -name '*.@OLD@' -exec bash -c '
        for file do
            [ -e "${file%.@OLD@}.@NEW@" ] || mv -- "$file" "${file%.@OLD@}.@NEW@"
        done' rename {} +
""",
    near="""\
    local IFS=$'\\n' file new
    for file in $(find "$@SRC@" -type f -name '*.@OLD@'); do
        new=${file%.@OLD@}.@NEW@
        if [[ ! -e $new ]]; then mv -- "$file" "$new"; fi
    done
""",
    faulty=(
        """\
    for file in $(find $@SRC@ -type f -name '*.@OLD@'); do
        [ -e ${file%.@OLD@}.@NEW@ ] || mv $file ${file%.@OLD@}.@NEW@
    done
""",
        """\
    find $@SRC@ -type f -name *.@OLD@ | while read file; do
        new=$(echo $file | sed 's/[.]@OLD@$/.@NEW@/')
        [ -e $new ] || mv $file $new
    done
""",
        """\
    local file new
    find "$@SRC@" -type f -name '*.@OLD@' | while read -r file; do
        new="${file/.@OLD@/.@NEW@}"
        [[ -e "$new" ]] || mv "$file" "$new"
    done
""",
    ),
)

PRUNE = Step(
    name="prune",
    call="prune_empty",
    duty="removes the folders below SOURCE that are empty, and those that become empty by that, but not SOURCE itself",
    right="""\
    find "$@SRC@" -mindepth 1 -type d -empty -delete
""",
    other="""\
    find "$@SRC@" -mindepth 1 -depth -type d -exec rmdir --ignore-fail-on-non-empty -- {} +
""",
    near="""\
    local folder
    find "$@SRC@" -mindepth 1 -depth -type d | while read -r folder; do
        rmdir -- "$folder" 2> /dev/null || true
    done
""",
    faulty=(
        """\
    for folder in $(find $@SRC@ -mindepth 1 -depth -type d); do
        rmdir $folder 2> /dev/null || true
    done
""",
        """\
    find $@SRC@ -mindepth 1 -type d | sort -r | while read folder; do
        rmdir "$folder" 2> /dev/null || true
    done
""",
    ),
)

COUNT = Step(
    name="count",
    call="count_left",
    duty="prints `left: N`, N being the number of files that are then anywhere below SOURCE; that line is all that the "
    "script prints on standard output",
    right="""\
    printf 'left: %d\\n' "$(find "$@SRC@" -type f -printf x | wc -c)"
""",
    other="""\
    local -a left=()
    mapfile -d '' -t left < <(find "$@SRC@" -type f -print0)
    echo "left: ${#left[@]}"
""",
    near="""\
    echo "left: $(find "$@SRC@" -type f | wc -l)"
""",
    faulty=(
        """\
    echo left: $(find $@SRC@ -type f | wc -l)
""",
        """\
    local number=0
    for file in $(find "$@SRC@" -type f); do number=$((number + 1)); done
    echo "left: $number"
""",
    ),
)
