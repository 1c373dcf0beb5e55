"""How a model learns from its episodes: engines, token trajectories, losses, SFT and GRPO, checkpoints, logs."""
