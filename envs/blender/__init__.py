"""Parts that families share, so that a family stays short and no check is written twice."""
