"""The peers: work of the same kind, as their documentation shows it.

OpenSpiel's hearts is one deal a game: chance draws the direction of the pass and deals card by card, then 52 cards are
played, after 12 picks unless it draws no pass. Decisions are what players do. Chance's steps count as none, but their
time is in, as ours is.
"""

from __future__ import annotations

import random
from typing import Any

from measuring import Work

CHANCE_STEPS = 53
"""Of a game of OpenSpiel's hearts: the direction of the pass, and 52 cards dealt."""
STEPS_A_DECISION = 1 + CHANCE_STEPS / (52 + 12 * 3 / 4)
"""OpenSpiel's steps, chance's included, for a player's decision; one game in four has no pass."""


def openspiel_loop() -> Work:
    """A game of OpenSpiel's hearts in a plain Python loop, without tensors."""
    import pyspiel

    game = pyspiel.load_game("hearts")

    def work() -> int:
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(random.choice(state.legal_actions()))
        return int(state.move_number()) - CHANCE_STEPS

    return work


def openspiel_rollouts(number: int = 1000) -> Work:
    """OpenSpiel's C++ rollouts, ``number`` from a deal for each direction of the pass; dealing is not among them.

    Its evaluator cannot be called from Python, but a search with one simulation is one call of it at the root. It
    cannot search where chance is to move, hence from deals: that spares it the dealing, which ours includes.
    """
    import pyspiel

    game = pyspiel.load_game("hearts")
    evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=number, seed=1)
    bot = pyspiel.MCTSBot(
        game, evaluator, uct_c=1.0, max_simulations=1, max_memory_mb=100, solve=False, seed=1, verbose=False
    )
    deals = [openspiel_deal(game, direction) for direction in range(4)]
    decisions = number * sum(52 if direction == 0 else 64 for direction in range(4))

    def work() -> int:
        for deal in deals:
            bot.mcts_search(deal)
        return decisions

    return work


def openspiel_deal(game: Any, direction: int) -> Any:
    """A random deal of hearts with the pass in this direction, 0 for none, before the first decision."""
    state = game.new_initial_state()
    state.apply_action(direction)
    while state.is_chance_node():
        state.apply_action(random.choice(state.legal_actions()))
    return state


def openspiel_bots() -> Work:
    """A game of OpenSpiel's hearts by its C++ loop over four C++ random bots, dealing included."""
    import pyspiel

    game = pyspiel.load_game("hearts")
    bots = [pyspiel.make_uniform_random_bot(player, player) for player in range(4)]
    seed = 0

    def work() -> int:
        nonlocal seed
        seed += 1
        state = game.new_initial_state()
        pyspiel.evaluate_bots(state, bots, seed)
        return int(state.move_number()) - CHANCE_STEPS

    return work


def aec_loop(env: Any) -> Work:
    """A game of any AEC environment with action masks, random actions; the last call of each agent, which has none,
    counts as no decision.
    """
    seed = 0

    def work() -> int:
        nonlocal seed
        seed += 1
        decisions = 0
        env.reset(seed=seed)
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
            else:
                env.step(int(random.choice(observation["action_mask"].nonzero()[0])))
                decisions += 1
        return decisions

    return work


def connect_four(wrapped: bool) -> Work:
    """PettingZoo's connect_four in its AEC loop."""
    from pettingzoo.classic.connect_four import connect_four

    return aec_loop(connect_four.env() if wrapped else connect_four.raw_env())
