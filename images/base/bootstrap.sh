#!/bin/sh
# The base of every image: Debian 12, minimal, with the user the agents are. Its bytes are its recipe: change anything
# here and every image is built anew.
#   bootstrap.sh SOURCES OUT     SOURCES: apt sources of the Debian archive (deb822), OUT: the tar to write
set -eu
sources=$1
out=$2
export SOURCE_DATE_EPOCH=1735689600

# /metier is where a sandbox mounts its steward: a read-only root cannot grow a mount point later.
exec mmdebstrap \
    --variant=minbase \
    --include=ca-certificates,procps,python3 \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --aptopt='APT::Install-Recommends "false"' \
    --customize-hook='chroot "$1" useradd --uid 1000 --user-group --no-create-home --home-dir /workspace --shell /bin/bash agent' \
    --customize-hook='install -d -o 1000 -g 1000 -m 0755 "$1/workspace"' \
    --customize-hook='install -d -m 0755 "$1/metier"' \
    --customize-hook='printf "%s\n" \
        "APT::Keep-Downloaded-Packages \"false\";" "Acquire::Languages \"none\";" \
        "Dir::Cache::pkgcache \"\";" "Dir::Cache::srcpkgcache \"\";" > "$1/etc/apt/apt.conf.d/90small-layers"' \
    --customize-hook='rm -rf "$1"/var/log/apt "$1"/var/log/*.log "$1"/var/cache/apt/*.bin' \
    bookworm "$out" "$sources"
