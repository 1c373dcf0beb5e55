"""The policy `inside`: an agent's own program, which runs in the sandbox and reaches its model through us alone.

    the agent's program ──HTTP──▶ 127.0.0.1 inside ──tunnel──▶ endpoint ──▶ the model's endpoint, with the host's key
                                                                  │
                                                                  └─▶ the episode's conversation

It is the sibling of `agent`, whose program runs on the host and whose calls are steps. Here nobody sees the calls: what
is recorded is what the program said to its model and what that answered, and the episode is marked not replayable.

| module | what it knows |
|---|---|
| `settings` | what may be set: the command, its folder, the model, limits |
| `program` | the folder as it is brought in, and the words that the program is told |
| `http` | HTTP of a connection from inside, which may send anything |
| `chat` | a request for a chat completion: what of it is passed on, and what is answered |
| `upstream` | the model's endpoint, by the means of the policy `openai` |
| `transcript` | the conversation that many requests tell again and again |
| `endpoint` | what of all that is answered, and within which budgets |
| `policy` | the stay: from the first byte brought in to the agent's certain end |

Whose fault it is: what the program does, sends or leaves undone is graded. A model's endpoint that fails at one request
and answers another is the program's affair; one that answers nobody any more is a PolicyError.
"""

from .policy import InsidePolicy, inside_policy
from .settings import InsideSettings

__all__ = ["InsidePolicy", "InsideSettings", "inside_policy"]
