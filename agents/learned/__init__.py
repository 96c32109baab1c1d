"""Learned policies: checkpoints that hold no code, the agent that plays them, and PPO training."""
