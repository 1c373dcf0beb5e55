"""game/GodotPlatformer: a character controller in GDScript that moves as its feel sheet says."""
