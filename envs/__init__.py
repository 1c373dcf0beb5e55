"""What the work is: the contracts (`core`), shared parts (`parts`), the registry, and the families by domain."""
