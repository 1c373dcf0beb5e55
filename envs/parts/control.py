"""A control: where a measurement did not end, is it the artefact, or would nothing have ended here?"""

from __future__ import annotations

from ..core import Sandbox, VerifierError
from .probe import run_probe

_LOADING_S = 25.0


async def require_tool(sandbox: Sandbox, module: str) -> None:
    """Load the trade's tool alone; a slow or broken machine must not be graded as the agent's fault.

    Raises:
        VerifierError: `module` does not load in the verifier sandbox in time.
        SandboxLost: the sandbox is gone.
    """
    control = await run_probe(sandbox, f"import {module}\n_answer(True)\n", None, timeout_s=_LOADING_S)
    if control.value is not True:
        raise VerifierError(f"{module} alone {control.failure}: the machine is overloaded, or the image is broken")
