"""shellcheck finds an unquoted variable, and bash shows what the fault does and that quoting mends it."""

import json
import subprocess
from pathlib import Path

script = Path("/workspace/count.sh")
broken = '#!/usr/bin/env bash\nfor name in $1; do printf "%s\\n" "$name"; done\nrm -f $1\n'


def warnings() -> set[int]:
    done = subprocess.run(["shellcheck", "--format=json", str(script)], capture_output=True, text=True)
    return {remark["code"] for remark in json.loads(done.stdout)}


def lines(argument: str) -> int:
    done = subprocess.run(["bash", str(script), argument], capture_output=True, text=True, check=True)
    return len(done.stdout.splitlines())


script.write_text(broken)
assert 2086 in warnings(), "shellcheck misses an unquoted variable"
assert lines("two words") == 2
script.write_text(broken.replace("$1;", '"$1";').replace("-f $1", '-f -- "$1"'))
assert not warnings() & {2086}, "shellcheck still complains"
assert lines("two words") == 1
print("shellcheck and bash agree")
