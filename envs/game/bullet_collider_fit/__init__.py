"""game/BulletColliderFit: fit few primitive colliders to a mesh."""
