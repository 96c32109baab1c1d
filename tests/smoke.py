"""Play as a newcomer would, in both forms: run by hand, by ``make warm``, and against the built wheel."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np

from dnfh_env import dnfh_v0

GAMES = 2
MAX_STEPS = 20_000


def play_aec(seed: int) -> dict[str, float]:
    """One table of random legal play through the AEC loop: what each agent earned in all."""
    rng = np.random.default_rng(seed)
    env = dnfh_v0.env()
    env.reset(seed=seed)
    earned = dict.fromkeys(env.possible_agents, 0.0)
    steps = 0
    for agent in env.agent_iter(max_iter=MAX_STEPS):
        observation, reward, terminated, truncated, _ = env.last()
        earned[agent] += float(reward)
        legal = np.flatnonzero(observation["action_mask"])
        env.step(None if terminated or truncated else int(rng.choice(legal)))
        steps += 1
    assert not env.agents, f"still playing after {steps} steps"
    assert steps > 52, f"a game of {steps} steps is too short to have had a deal in it"
    assert abs(sum(earned.values())) < 1e-6, f"rewards do not sum to zero: {earned}"
    return earned


def play_seat(seed: int) -> float:
    """One episode of the Gymnasium seat with random legal play: its return."""
    rng = np.random.default_rng(seed)
    env = gymnasium.make("dnfh_env/Seat-v0")
    env.reset(seed=seed)
    total = 0.0
    for _ in range(MAX_STEPS):
        legal = np.flatnonzero(env.unwrapped.action_masks())
        _, reward, terminated, truncated, _ = env.step(int(rng.choice(legal)))
        total += float(reward)
        if terminated or truncated:
            return total
    raise AssertionError(f"still playing after {MAX_STEPS} steps")


def main() -> int:
    """Play a few games of each form."""
    for seed in range(1, GAMES + 1):
        play_aec(seed)
        play_seat(seed)
    print(f"smoke: {GAMES} AEC games and {GAMES} Seat episodes played to the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
