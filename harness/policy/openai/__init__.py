"""The policy that acts through an endpoint of OpenAI-compatible chat completions: vLLM's server, or any vendor's.

| module | what it knows |
|---|---|
| `settings` | what may be set, and which of it changes what is said |
| `credentials` | the API key: read where it is used, and kept out of everything that is recorded |
| `messages` | a conversation as the request's messages |
| `endpoint`, `stream` | one request, answered whole or in pieces |
| `faults` | what a failed request means: try again, give up, or a turn after all |
| `answer` | a completion as a turn, with what was forgiven |
| `asking` | attempts, pauses between them, the rate limit |
| `policy` | `act` |

The endpoint answers for everything around a completion's message: a failure there is infrastructure, tried again and in
the end a PolicyError. The model answers for what is in it: rubbish, a refusal or silence is a turn, and is graded.
"""

from .policy import OpenAIPolicy, openai_policy
from .settings import OpenAISettings, Prices

__all__ = ["OpenAIPolicy", "OpenAISettings", "Prices", "openai_policy"]
