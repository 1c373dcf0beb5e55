"""Games: physics, assets and behaviour."""
