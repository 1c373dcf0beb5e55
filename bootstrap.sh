#!/usr/bin/env bash
# Sets this machine up for `make test` and `make demo`: apt packages, virtual environment, Docker engine.
# Run it as often as you like: what is there already is left alone. As root it does all by itself; as anybody else it
# says what root has to install. Choices by environment: METIER_VENV (default .venv; never another checkout's), METIER_HOME
# (caches and logs), METIER_APT_EXTRA (more apt packages).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly venv=${METIER_VENV:-.venv}
readonly cache=${METIER_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/metier}
readonly lock=requirements/ci.lock
read -ra extra <<<"${METIER_APT_EXTRA:-}"
readonly packages=(bubblewrap ca-certificates containerd docker.io iptables libjemalloc2 mmdebstrap redis-tools runc util-linux "${extra[@]}")
readonly engine_wait_s=60

say() { printf '[setup %s/5] %s\n' "$1" "$2"; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}
is_root() { [ "$(id -u)" = 0 ]; }

find_python() {
    local candidate
    for candidate in python3.11 /usr/bin/python3.11 python3; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

check_machine() {
    [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "needs Linux on x86_64 (the CPU build of vLLM), this is $(uname -sm)"
    local name=unknown free_mb
    # shellcheck disable=SC1091
    [ -r /etc/os-release ] && name=$(. /etc/os-release && printf '%s' "$PRETTY_NAME")
    free_mb=$(df -Pm . | awk 'NR == 2 { print $4 }')
    say 1 "$name, $(nproc) cores, $((free_mb / 1024)) GiB free"
    [ "$free_mb" -gt 15000 ] || say 1 "warning: packages, images and model take about 15 GiB"
}

install_packages() {
    local missing=() package
    if ! command -v apt-get >/dev/null; then
        say 2 "no apt here: make sure of ${packages[*]} yourself"
        return
    fi
    for package in "${packages[@]}"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    command -v dockerd >/dev/null && mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -vxE 'docker.io|containerd|runc|')
    find_python >/dev/null || missing+=(python3.11 python3.11-venv)
    if [ ${#missing[@]} = 0 ]; then
        say 2 "apt packages are there"
    elif is_root; then
        say 2 "installing ${missing[*]}"
        mkdir -p "$cache"
        { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
            >"$cache/apt.log" 2>&1 </dev/null || { tail -n 20 "$cache/apt.log" >&2; fail "apt-get failed, see $cache/apt.log"; }
    else
        say 2 "missing, and only root can install them: apt-get install ${missing[*]}"
    fi
}

# Without dependencies, since the lock is complete, and without compiling, since Python does that for what it imports.
pip_install() {
    mkdir -p "$cache"
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off --no-compile --no-deps "$@" </dev/null 2>&1 |
        tee "$cache/pip.log" |
        awk -v all="$(grep -c == "$lock")" '
            /^(Collecting|Processing|Requirement already)/ && ++seen % 25 == 0 { print "[setup 3/5] " seen " of " all; fflush() }
            /^Installing collected/ { print "[setup 3/5] unpacking"; fflush() }' ||
        { grep -v ^WARNING "$cache/pip.log" | tail -n 20 >&2; fail "pip failed, see $cache/pip.log"; }
}

make_environment() {
    local python want have=
    python=$(find_python) || fail "needs Python 3.11 with venv: apt-get install python3.11 python3.11-venv"
    want=$(sha256sum "$lock" | cut -d' ' -f1)
    [ -r "$venv/metier.lock" ] && have=$(cat "$venv/metier.lock")
    if [ "$have" = "$want" ]; then
        say 3 "$venv has what $lock names"
        return
    fi
    say 3 "installing the packages of $lock into $venv, a few minutes, log in $cache/pip.log"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    pip_install -r "$lock"
    if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
        say 3 "this torch needs its CUDA libraries: installing them too"
        "$venv/bin/python" -m pip install -qq "$(grep '^torch==' "$lock")" </dev/null
        "$venv/bin/python" -c 'import torch' || fail "torch does not start, see above"
    fi
    printf '%s\n' "$want" >"$venv/metier.lock"
}

# An environment from elsewhere that has another checkout's metier in it would have it replaced behind that one's back.
refuse_anothers_environment() {
    local other
    case "$(realpath -m "$venv")/" in "$(pwd -P)"/*) return ;; esac
    other=$("$venv/bin/python" -I -c 'import metier.images as m, os; print(os.path.realpath(m.__file__ + "/../.."))' 2>/dev/null) ||
        return 0
    [ "$other" = "$(pwd -P)" ] ||
        fail "$venv has the metier of $other, which stays as it is: set METIER_VENV to an environment of this checkout"
}

install_metier() {
    if "$venv/bin/python" -c 'import sys, metier.images as m; sys.exit(not m.__file__.startswith(sys.argv[1] + "/"))' "$PWD" \
        2>/dev/null; then
        say 4 "metier is importable from here"
        return
    fi
    say 4 "installing metier, editable"
    pip_install --no-build-isolation -e .
}

engine_answers() { "$venv/bin/python" -c 'import sys, metier.images as m; sys.exit(not m.engine_answers())'; }

# A killed daemon leaves its number behind; where another process has that number now, the next daemon refuses to start.
drop_stale_pid() {
    local file=$1 program=$2 pid
    [ -f "$file" ] || return 0
    pid=$(cat "$file")
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$program" ] || rm -f "$file"
}

start_engine() {
    if engine_answers; then
        say 5 "a Docker engine answers"
        return
    fi
    if [ -n "${DOCKER_HOST:-}" ] || ! is_root || ! command -v dockerd >/dev/null; then
        say 5 "no Docker engine answers and none can be started here: sandboxes will use bubblewrap"
        return
    fi
    local log=$cache/dockerd.log waited
    say 5 "starting the Docker engine, log in $log"
    mkdir -p "$cache"
    if [ -d /run/systemd/system ]; then
        systemctl start docker >"$log" 2>&1 </dev/null || true
    else
        drop_stale_pid /var/run/docker.pid dockerd
        drop_stale_pid /var/run/docker/containerd/containerd.pid containerd
        setsid dockerd >"$log" 2>&1 </dev/null &
    fi
    for ((waited = 0; waited < engine_wait_s; waited++)); do
        if engine_answers; then
            say 5 "the Docker engine answers after $waited s"
            return
        fi
        sleep 1
    done
    tail -n 5 "$log"
    say 5 "the Docker engine did not start within $engine_wait_s s (its last words above): sandboxes will use bubblewrap"
}

check_machine
refuse_anothers_environment
install_packages
make_environment
install_metier
start_engine
