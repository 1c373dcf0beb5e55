"""For those who implement a contract outside this repository: conformance suites, and the scripted fakes.

A suite is a list of claims about a subject; our own tests run the same ones over our own implementations.

| suite | subject | what it is about |
|---|---|---|
| `FAMILY` | `Specimen.of(id)` | generator, brief and scripted solutions, without a sandbox (then `metier certify`) |
| `SPACE` | a `ToolCallSpace` | sampling, membership, the description of the tools |
| `FILES` | `Place(backend)` | files, artefacts, snapshots: also of a fake that runs nothing |
| `EXEC`, `SESSIONS` | `Place(backend)` | commands and persistent sessions |
| `LINKS`, `ISOLATION` | `Place(backend)` | rights, links and devices; limits, resets, losses |
| `LEAVINGS` | `Place(backend)` | artefacts that the agent made hard to collect |
| `TUNNELS` | `Place(backend)` | ports that lead to the host; also of a fake |
| `TUNNELLED` | `Place(backend)` | the same, with programs at their ends that wish no good |
| `POLICY` | `PolicyCase.of(name, settings)` | turns, deadlines, cancellation, and that nothing is kept between calls |

`run_suite` needs no test framework. Nothing here is imported by anything that runs episodes.
"""

from .claims import Claim, Outcome, Suite, raises, run_suite
from .echo import REGISTRY as ECHO
from .fakes import FakeBackend, FakeSandbox, NoopPolicy, ScriptedPolicy, result
from .families import FAMILY, Specimen
from .places import SPEC, Place, SandboxSuite
from .policies import POLICY, PolicyCase
from .sandbox_exec import EXEC
from .sandbox_files import FILES, LINKS
from .sandbox_isolation import ISOLATION
from .sandbox_leavings import LEAVINGS
from .sandbox_sessions import SESSIONS
from .sandbox_tunnels import TUNNELLED, TUNNELS
from .spaces import SPACE

__all__ = [
    "ECHO",
    "EXEC",
    "FAMILY",
    "FILES",
    "ISOLATION",
    "LEAVINGS",
    "LINKS",
    "POLICY",
    "SESSIONS",
    "SPACE",
    "SPEC",
    "TUNNELLED",
    "TUNNELS",
    "Claim",
    "FakeBackend",
    "FakeSandbox",
    "NoopPolicy",
    "Outcome",
    "Place",
    "PolicyCase",
    "SandboxSuite",
    "ScriptedPolicy",
    "Specimen",
    "Suite",
    "raises",
    "result",
    "run_suite",
]
