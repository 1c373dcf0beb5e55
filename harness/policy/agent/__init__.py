"""The policy `agent`: an existing command-line agent, which runs on the host and joins through an MCP server.

    runner ──act()──▶ policy ◀──MCP tool call── the agent's process
           ◀─turn───         ──observation────▶

Each MCP call is one turn with one call, and so one step of the environment: its episodes are recorded and replay as any
other's. Unlike other policies it acts by something outside that remembers: its session lives as long as the asyncio
task that acts, and ends with it.

| module | what it knows |
|---|---|
| `settings` | what may be set: the command, and what its placeholders mean |
| `door` | the MCP server of one episode, on a loopback port |
| `process`, `leash` | the agent's process, from its start to its certain end |
| `bridge` | the same server over standard input and output, for agents that know no other way |
| `policy` | `act` |
"""

from .policy import AgentPolicy, agent_policy
from .settings import AgentSettings

__all__ = ["AgentPolicy", "AgentSettings", "agent_policy"]
