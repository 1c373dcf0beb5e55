"""The policy: an agent's stay in a sandbox, from what is brought in to its certain end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import time
from collections.abc import Mapping, Sequence
from typing import Any

from metier.envs.core import ConfigError, Deadline, ExecResult, Limit, ToolSpec

from ...sandbox.tunnel import tunnel
from ..contract import AssistantTurn, Departure, Message, Role, Stay
from ..openai.credentials import api_key
from .endpoint import Endpoint
from .program import BRIEF_FILE, FOLDER, TASK, bring, check
from .settings import InsideSettings

NO_KEY = "metier-none-is-needed"
"""What the agent has for an API key: clients insist on one."""
SETTLE_S = 300.0
"""How long a model may still answer an agent that has ended: what was asked is paid, and recorded."""
OUTPUT_KIB = 16
_TOLD_CHARACTERS = 2000
_LOOK_S = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class InsidePolicy:
    """Lets an agent's own program act in the sandbox; see `metier.harness.policy.inside`."""

    settings: InsideSettings

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        """Raises ConfigError: there is no turn of an agent that acts by itself."""
        raise ConfigError(
            "the policy inside acts in the sandbox by itself, and takes no single turns: "
            "play whole episodes with it (metier eval, run_episode)"
        )

    async def stay(self, stay: Stay) -> Departure:
        """See `Inside.stay`."""
        if missing := sorted({spec.name for spec in stay.tools} - set(self.settings.without)):
            raise ConfigError(
                f"this environment has tools of its own ({', '.join(missing)}), which no program inside the sandbox "
                f"can call; if the agent can do without, set without={missing}"
            )
        bound = stay.deadline
        if self.settings.time_s is not None:
            bound = bound.within(self.settings.time_s, "time_s", "the policy inside")
        endpoint = Endpoint(self.settings, stay, bound)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(endpoint.close)
            try:
                port = await stack.enter_async_context(tunnel(stay.sandbox, self.settings.port, endpoint.serve))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise ConfigError(
                    f"port {self.settings.port} is taken in this environment; set another, or 0"
                ) from None
            await bring(stay.sandbox, self.settings.folder, stay.brief)
            command, environ = self._told(stay.brief, f"http://127.0.0.1:{port}/v1")
            await check(stay.sandbox, command[0])
            began = time.monotonic()
            ended = await self._run(stay, endpoint, bound, command, environ, began)
            if endpoint.limit is Limit.TIME and endpoint.busy:
                await endpoint.doubt()
            acted_s = max(0.0, time.monotonic() - began - endpoint.waited_s)
        if endpoint.failure is not None:
            raise endpoint.failure
        stay.say(Message(role=Role.USER, text=_remark(ended, endpoint)))
        return Departure(endpoint.limit, endpoint.waited_s, acted_s)

    def _told(self, brief: str, url: str) -> tuple[list[str], dict[str, str]]:
        """The command and its environment."""
        model = self.settings.upstream.model
        known = {
            "brief": TASK.format(brief=brief),
            "brief_file": BRIEF_FILE,
            "url": url,
            "model": model,
            "folder": FOLDER,
        }
        environ = {
            **self.settings.env,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_BASE": url,
            "OPENAI_API_KEY": NO_KEY,
            "OPENAI_MODEL": model,
            "METIER_BRIEF_FILE": BRIEF_FILE,
        }
        return [word.format_map(known) for word in self.settings.command], environ

    async def _run(
        self,
        stay: Stay,
        endpoint: Endpoint,
        bound: Deadline,
        command: Sequence[str],
        environ: Mapping[str, str],
        began: float,
    ) -> ExecResult | None:
        """Until the agent ends, or a limit does; None where it was ended. Raises SandboxLost."""
        # the steward ends it with all that it started, at its time and when it is given up
        timeout_s = max(_LOOK_S, bound.left_s())
        running = asyncio.create_task(
            stay.sandbox.exec(command, timeout_s=timeout_s, env=environ, output_kib=OUTPUT_KIB)
        )
        over = asyncio.create_task(endpoint.over.wait())
        watching = asyncio.create_task(_watch(stay, endpoint, began))
        tasks: set[asyncio.Task[Any]] = {running, over, watching}
        try:
            await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                return None
            ended = running.result()
            if ended.timed_out:
                endpoint.reached(Limit.TIME, str(bound.error("the agent's stay")))
            else:
                await endpoint.settle(min(SETTLE_S, bound.left_s()))
            return ended
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(stay: Stay, endpoint: Endpoint, began: float) -> None:
    """Ends the stay when the agent's own time is over, that for its model left out."""
    while True:
        acted_s = time.monotonic() - began - endpoint.waited_s
        if acted_s >= stay.agent_s:
            endpoint.reached(Limit.TIME, f"agent_s: {stay.agent_s:g} s of its own time are used up")
            return
        await asyncio.sleep(max(_LOOK_S, stay.agent_s - acted_s))


def _remark(ended: ExecResult | None, endpoint: Endpoint) -> str:
    """How the agent's stay ended, for who reads the conversation."""
    if ended is None or ended.timed_out:
        how = f"was ended: {endpoint.why}"
    elif ended.signal is not None:
        how = f"was killed by signal {ended.signal}{', for memory' if ended.oom_killed else ''}"
    else:
        how = f"ended with exit code {ended.exit_code}"
    if ended is not None and endpoint.limit is not None and not ended.timed_out:
        how += f", after a limit: {endpoint.why}"
    said = b"" if ended is None else ended.stdout + (b"\n" if ended.stdout and ended.stderr else b"") + ended.stderr
    words = said.decode("utf-8", "replace").strip()[-_TOLD_CHARACTERS:]
    return f"[the agent {how}; the end of what it printed:]\n{words}" if words else f"[the agent {how}]"


def inside_policy(**settings: Any) -> InsidePolicy:
    """The registered policy `inside`.

    Raises:
        ConfigError: A setting is wrong, or the environment has no API key.
    """
    policy = InsidePolicy(InsideSettings.of(**settings))
    api_key(policy.settings.upstream)
    return policy
