"""`python -m metier.images build|ls|prune`: the same as `metier images`, for set-up scripts."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import asdict

from metier.envs.core import MetierError

from . import build, ls, prune


def main() -> int:
    """Exit code 0, or 1 with the reason on stderr; 130 where a signal ended it."""
    parser = argparse.ArgumentParser(prog="python -m metier.images", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    builds = commands.add_parser("build", help="build images (all by default), parents first")
    builds.add_argument("names", nargs="*", metavar="NAME")
    builds.add_argument("--engine", choices=("auto", "docker", "bubblewrap"), default="auto")
    lists = commands.add_parser("ls", help="size, age and digest of every image")
    lists.add_argument("--json", action="store_true")
    commands.add_parser("prune", help="remove what no recipe names any more")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.command == "build":
            build(arguments.names or None, engine=arguments.engine)
        elif arguments.command == "prune":
            prune()
        else:
            _show(as_json=arguments.json)
    except MetierError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was being built is removed", file=sys.stderr)
        return 130
    return 0


def _show(*, as_json: bool) -> None:
    listed = ls()
    if as_json:
        print(json.dumps([asdict(each) for each in listed], indent=1))
        return
    print(f"{'image':20} {'digest':12} {'docker MiB':>10} {'rootfs MiB':>10} {'age':>8}")
    for each in listed:
        age = "-" if each.age_s is None else f"{each.age_s / 3600:.1f} h"
        print(f"{each.name:20} {each.digest[:12]} {each.docker_mb or '-':>10} {each.rootfs_mb or '-':>10} {age:>8}")


if __name__ == "__main__":
    sys.exit(main())
