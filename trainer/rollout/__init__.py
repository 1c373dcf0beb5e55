"""Generation: the `Engine` contract and its implementations, and the policy that acts through one."""
