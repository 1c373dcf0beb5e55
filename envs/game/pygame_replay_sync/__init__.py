"""game/PygameReplaySync: make a lockstep match come out the same on every peer."""
