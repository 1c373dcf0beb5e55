"""What build steps need of this machine to reach package archives: certificates, pip's index, proxies, apt sources.

Nothing here is part of an image or of its digest: it is handed to the steps while they run.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

from metier.envs.core import ConfigError

BUILD_CA = "/run/metier-build/ca.pem"
"""Where steps find the host's certificates while an image is built."""
_PIP_SWITCHES = {
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_DEFAULT_TIMEOUT": "120",
    "PIP_PROGRESS_BAR": "off",
    "DEBIAN_FRONTEND": "noninteractive",
}
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
_CA_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_SUITES = {"bookworm", "bookworm-updates", "bookworm-security"}
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>\S.*?)\s*$")
_KEYS = ("Types", "Suites", "Components")


def ca_bundle() -> bytes:
    """The host's certificates; empty where it has none."""
    named = [os.environ[name] for name in _CA_VARIABLES if os.environ.get(name)]
    paths = (Path(path) for path in [*named, *_CA_FILES])
    return next((path.read_bytes() for path in paths if path.is_file()), b"")


@functools.cache
def step_variables() -> dict[str, str]:
    """Variables for RUN steps only: pip's switches, the host's index and proxies, the path of the certificates."""
    variables = {**_PIP_SWITCHES, **_pip_index()}
    variables.update({name: os.environ[name] for name in _PROXIES if os.environ.get(name)})
    if ca_bundle():
        variables.update(dict.fromkeys(("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), BUILD_CA))
    return variables


def _pip_index() -> dict[str, str]:
    """The index that the host's pip is set to, where it can be reached from inside a build."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    found: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        option = key.rsplit(".", 1)[-1]
        if option in ("index-url", "extra-index-url", "trusted-host"):
            words = [word for word in value.strip("'\"").split() if not word.startswith("file:")]
            if words:
                found["PIP_" + option.upper().replace("-", "_")] = " ".join(words)
    return found


def debian_sources() -> str:
    """Apt sources (deb822) of the Debian 12 archive, from `$METIER_APT_SOURCES` or this machine's own.

    Raises:
        ConfigError: this machine names none.
    """
    if named := os.environ.get("METIER_APT_SOURCES"):
        if not Path(named).is_file():
            raise ConfigError(f"METIER_APT_SOURCES names {named}, which is no file")
        return Path(named).read_text()
    apt = Path("/etc/apt")
    stanzas = [stanza for path in sorted(apt.glob("sources.list.d/*.sources")) for stanza in _stanzas(path)]
    for path in [apt / "sources.list", *sorted(apt.glob("sources.list.d/*.list"))]:
        stanzas += _one_line_entries(path)
    if not stanzas:
        raise ConfigError(
            "the base image is made from Debian 12 packages, and this machine's apt sources name no Debian 12 archive; "
            "set METIER_APT_SOURCES to a file with its sources (deb822)"
        )
    return "\n".join(stanzas)


def _stanzas(path: Path) -> list[str]:
    """The stanzas of a deb822 file that are Debian's own suites, their comments left out."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found: list[str] = []
    for block in "\n".join(lines).split("\n\n"):
        fields = dict(line.split(":", 1) for line in block.splitlines() if ":" in line and not line.startswith(" "))
        if fields.get("Enabled", "yes").strip() != "no" and _is_debian(*(fields.get(key, "") for key in _KEYS)):
            found.append(block.strip() + "\n")
    return found


def _one_line_entries(path: Path) -> list[str]:
    """The `deb [options] uri suite component…` lines that are Debian's own suites, as deb822."""
    found: list[str] = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        matched = _ONE_LINE.match(line.split("#", 1)[0])
        if matched is None or not _is_debian("deb", matched["suite"], matched["components"]):
            continue
        key = re.search(r"signed-by=(\S+)", matched["options"] or "")
        fields = {
            "Types": "deb",
            "URIs": matched["uri"],
            "Suites": matched["suite"],
            "Components": matched["components"],
        }
        fields |= {"Signed-By": key[1]} if key else {}
        found.append("".join(f"{name}: {value}\n" for name, value in fields.items()))
    return found


def _is_debian(types: str, suites: str, components: str) -> bool:
    """Whether an entry is Debian 12's own archive of binaries: others use its suites, but not its components."""
    suite_set = set(suites.split())
    return "deb" in types.split() and bool(suite_set) and suite_set <= _SUITES and "main" in components.split()
