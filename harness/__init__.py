"""How an agent meets the work: sandboxes, tools, the Gymnasium env, episodes, policies, certification."""
