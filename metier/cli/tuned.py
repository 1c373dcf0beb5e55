"""The environment that training on a few cores needs, which must stand before the process starts.

- OpenMP threads that wait without spinning: engine, learner and sandboxes share the cores.
- jemalloc with huge pages and a bounded decay, where Debian's libjemalloc2 is installed: an update then takes 0.14 M
  page faults instead of 0.82 M; without a bound on decay the resident set grows without end.
- the libraries' own chatter off, so that the job's progress can be read.
"""

from __future__ import annotations

import ctypes.util
import os
import signal
import sys
from collections.abc import Mapping

_MARK = "METIER_TUNED"
_KEPT_BACK = (signal.SIGINT, signal.SIGTERM)
_SETTINGS = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "MALLOC_CONF": "dirty_decay_ms:10000,thp:always,narenas:2",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONWARNINGS": "ignore",
}


def tuned(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with what is missing of the settings; what a person set stays."""
    wanted = {**_SETTINGS, **environment, _MARK: "1"}
    jemalloc = ctypes.util.find_library("jemalloc")
    if jemalloc is not None and "LD_PRELOAD" not in environment:
        wanted["LD_PRELOAD"] = jemalloc
    return wanted


def restart_tuned() -> None:
    """Replace this process by itself in the tuned environment, once.

    A signal that comes meanwhile waits until whoever restarted calls this again, ready to answer it.
    """
    if _MARK in os.environ:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _KEPT_BACK)
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, _KEPT_BACK)
    os.execve(sys.executable, [sys.executable, "-m", "metier.cli", *sys.argv[1:]], tuned(os.environ))
