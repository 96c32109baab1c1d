"""The kernels' house rules, each helper beside a naive twin, and randomness that is what it says."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.registry import CPUDispatcher

import dnfh_env
from dnfh_env import _bits, _random
from dnfh_env.cards import CARD_NAMES, DECK, SUIT_MASKS, card_id, cards_in, mask_of, names_in
from dnfh_env.engine import GAME, apply_all, start_games
from dnfh_env.game import Game
from dnfh_env.rules import RULES, Rules, compile_rules
from dnfh_env.view import VIEW, Present

ROOT = Path(__file__).resolve().parent.parent

MASKS = [0, 1, 2**63, 2**64 - 1, DECK, *SUIT_MASKS]
MASKS += [random.Random(number).getrandbits(64) for number in range(60)]
MASKS += [random.Random(number).getrandbits(64) & random.Random(-number - 1).getrandbits(64) for number in range(60)]


def bits_of(mask: int) -> list[int]:
    return [index for index, digit in enumerate(reversed(bin(mask)[2:])) if digit == "1"]


# --- sets as masks ----------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("mask", MASKS)
def test_counting_and_finding_bits(mask: int) -> None:
    word, bits = np.uint64(mask), bits_of(mask)
    assert _count(word) == len(bits)
    assert _lowest(word) == (bits[0] if bits else 64)
    assert [int(_bits.nth_set(word, n)) for n in range(len(bits))] == bits
    assert _bits.indices(mask) == _bits.indices(word) == bits


@njit
def _count(mask: Any) -> Any:
    return _bits.popcount(mask)


@njit
def _lowest(mask: Any) -> Any:
    return _bits.lowest(mask)


@njit
def _bit(index: Any) -> Any:
    return _bits.bit(index)


@pytest.mark.small
def test_bit() -> None:
    assert [int(_bit(index)) for index in range(64)] == [1 << index for index in range(64)]
    assert int(_bit(np.uint8(63))) == 1 << 63


@pytest.mark.small
def test_unpack_agrees_with_bits_one_by_one() -> None:
    words = np.array(MASKS[:60], np.uint64).reshape(12, 5)
    expected = np.array([[[mask >> k & 1 for k in range(64)] for mask in map(int, row)] for row in words], np.uint8)
    assert (_bits.unpack(words) == expected.reshape(12, 320)).all()
    assert (_bits.unpack(words[::2, ::2]) == expected[::2, ::2].reshape(6, 192)).all()
    assert (_bits.unpack(words[0]) == expected[0].reshape(320)).all()


@pytest.mark.small
@pytest.mark.parametrize("past_caches", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 8), (12, 5), (0, 15), (66, 15)])
def test_spread_agrees_with_unpack(shape: tuple[int, int], past_caches: bool) -> None:
    words = np.resize(np.array(MASKS, np.uint64), shape)
    whole = _bits.zeros_in_lines(shape[0] + 2, 8 * shape[1])
    assert whole.ctypes.data % 64 == 0 and not whole.any() and whole.flags.c_contiguous
    whole[:] = 7
    _bits.spread(words, whole[1:-1], past_caches)
    assert (whole[1:-1].view(np.uint8) == _bits.unpack(words)).all()
    assert (whole[0] == 7).all() and (whole[-1] == 7).all()


@pytest.mark.small
def test_plain_arrays_are_passed_on_and_others_copied() -> None:
    array = np.arange(6, dtype=np.uint64)
    assert _bits.plain(array) is array
    read_only = array.copy()
    read_only.flags.writeable = False
    unaligned = np.zeros(49, np.uint8)[1:].view(np.uint64)
    for other in (array[::2], read_only, unaligned, array.reshape(2, 3).T):
        plain = _bits.plain(other)
        assert plain.flags.carray and (plain == other).all()
    assert _bits.plain([1, 2], np.int64).dtype == np.int64


@pytest.mark.small
def test_cards_and_masks() -> None:
    for mask in MASKS:
        deck = mask & DECK
        assert cards_in(deck) == bits_of(deck) and mask_of(cards_in(deck)) == deck
        assert names_in(deck) == [CARD_NAMES[card] for card in bits_of(deck)]
    assert [card_id(name) for name in CARD_NAMES] == list(range(52))
    assert [len(bits_of(mask)) for mask in SUIT_MASKS] == [13] * 4 and sum(SUIT_MASKS) == DECK
    for wrong in ("", "Q", "sq", "1S", "QSS", None, 3, []):
        with pytest.raises(ValueError, match=r"unknown card .*: write a rank"):
            card_id(wrong)  # type: ignore[arg-type]


# --- randomness -------------------------------------------------------------------------------------------------

FULL = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    """SplitMix64 in whole numbers."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & FULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & FULL
    return x ^ (x >> 31)


def numbers(seed: int, game: int, deal: int, purpose: int) -> Any:
    state = mix((mix(mix((seed + GOLDEN) & FULL) ^ game) + (deal << 32) + purpose) & FULL)
    while True:
        state = (state + GOLDEN) & FULL
        yield mix(state)


def shuffled(items: list[Any], source: Any) -> list[Any]:
    """From the front on, each place gets one of what is left."""
    items = list(items)
    for k in range(len(items)):
        j = k + ((next(source) >> 32) * (len(items) - k) >> 32)
        items[k], items[j] = items[j], items[k]
    return items


@pytest.mark.small
def test_mix_is_splitmix64() -> None:
    """The published first outputs for the seed 1234567."""
    outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for k, output in enumerate(outputs, start=1):
        assert mix((1234567 + k * GOLDEN) & FULL) == output == int(_mix(np.uint64((1234567 + k * GOLDEN) & FULL)))


@njit
def _mix(x: Any) -> Any:
    return _random.mix(x)


@pytest.mark.small
@pytest.mark.parametrize(("seed", "game"), [(0, 0), (5, 0), (5, 1), (FULL, FULL), (2**63, 2**32)])
def test_r02_deals_as_shuffled_in_whole_numbers(seed: int, game: int) -> None:
    """Card k of the shuffled deck goes to seat (dealer + 1 + k) % 4."""
    at = Game(Rules(max_deals=3), seed, game)
    rng = random.Random(seed)
    for deal in range(3):
        deck = shuffled(list(range(52)), numbers(seed, game, deal, purpose=2))
        hands: list[set[int]] = [set() for _ in range(4)]
        for k, card in enumerate(deck):
            hands[(at.dealer + 1 + k) % 4].add(card)
        assert [set(cards_in(int(mask))) for mask in at.record["hand"][0]] == hands
        while not at.is_over and at.deal == deal:
            at.push(rng.choice(at.legal_actions()))
        if at.is_over:
            break


@pytest.mark.small
def test_r05_the_kitty_as_shuffled_in_whole_numbers() -> None:
    for seed in range(4):
        game = Game(Rules(calls=("kitty",)), seed=seed, game=7)
        rng = random.Random(seed)
        picks: dict[int, list[int]] = {seat: [] for seat in range(4)}
        game.push("kitty")
        while game.phase == "pick":
            seat = game.seat
            assert seat is not None
            picks[seat].append(rng.choice(game.legal_actions()))
            game.push(picks[seat][-1])
        pile = [card for k in range(1, 5) for card in sorted(picks[(game.dealer + k) % 4])]
        for k, card in enumerate(shuffled(pile, numbers(seed, 7, 0, purpose=3))):
            assert card in cards_in(int(game.record["kitty"][0][(game.dealer + 1 + k) % 4]))


def fresh_games(count: int, rules: Rules, seed: int) -> np.ndarray[Any, Any]:
    games = np.zeros(count, GAME)
    start_games(games, compile_rules(rules), np.full(count, seed, np.uint64), np.arange(count, dtype=np.uint64))
    return games


def chi_square(observed: Any, expected: Any) -> float:
    return float(((np.asarray(observed) - expected) ** 2 / expected).sum())


def test_deals_look_uniform() -> None:
    count = 20_000
    games = fresh_games(count, Rules(), seed=11)
    hands = _bits.unpack(games["hand"].reshape(count, 4, 1))[..., :52].astype(np.int64)
    assert (hands.sum(axis=1) == 1).all() and (hands.sum(axis=2) == 13).all()
    by_seat = hands.sum(axis=0)  # 52 cards of 4 seats, 3 free each, less one per seat
    assert chi_square(by_seat, count / 4) < 156 + 5 * np.sqrt(2 * 156)
    together = np.einsum("gsa,gsb->ab", hands, hands)[np.triu_indices(52, 1)]
    expected = count * 12 / 51
    spread = float(((together - expected) ** 2 / (expected * (1 - 12 / 51))).mean())
    assert abs(spread - 1) < 0.15  # 1326 pairs of cards lie in one hand as often as chance has it
    assert chi_square(np.bincount(games["dealer"], minlength=4), count / 4) < 3 + 5 * np.sqrt(6)


def test_r05_own_cards_come_back_in_84_108_27_1_of_220_ways() -> None:
    count = 40_000
    rules = compile_rules(Rules(calls=("kitty",)))
    games = fresh_games(count, Rules(calls=("kitty",)), seed=12)
    apply_all(games, rules, np.full(count, 62))
    for _ in range(12):
        hand = games["hand"][np.arange(count), games["seat"]]
        apply_all(games, rules, np.array([int(mask).bit_length() - 1 for mask in hand]))
    for seat in range(4):
        back = [int(mask).bit_count() for mask in games["given"][:, seat, 0] & games["kitty"][:, seat]]
        observed = np.bincount(back, minlength=4)
        assert chi_square(observed, count * np.array([84, 108, 27, 1]) / 220) < 3 + 5 * np.sqrt(6)


@pytest.mark.small
def test_a_deal_is_a_function_of_seed_game_and_number() -> None:
    """Whatever has happened before: another call, other plays, another score."""

    def hands_of(rng_seed: int, calls: tuple[str, ...]) -> list[Any]:
        rng, game, found = random.Random(rng_seed), Game(Rules(calls=calls), seed=8, game=3), []
        while not game.is_over and game.deal < 4:
            if len(found) == game.deal:
                found.append((game.dealer, game.hands))
            game.push(rng.choice(game.legal_actions()))
        return found

    one, two = hands_of(1, ("300",)), hands_of(2, ("kitty", "hold"))
    assert one == two and len(one) == 4
    assert len({str(deal) for deal in one}) == 4
    assert Game(seed=8, game=3).hands == one[0][1] != Game(seed=8, game=4).hands != Game(seed=9, game=3).hands


@pytest.mark.small
def test_global_seeds_reach_nothing() -> None:
    found = set()
    for seed in range(3):
        np.random.seed(seed)
        random.seed(seed)
        game = Game(seed=1)
        game.push("kitty")
        while game.phase == "pick":
            game.push(game.legal_actions()[0])
        found.add(game.record.tobytes())
    assert len(found) == 1


# --- house rules ------------------------------------------------------------------------------------------------


def modules() -> list[Any]:
    names = [name for _, name, _ in pkgutil.iter_modules(dnfh_env.__path__) if name != "sb3"]
    return [importlib.import_module(f"dnfh_env.{name}") for name in names]


def kernels() -> dict[str, CPUDispatcher]:
    """Every compiled function of the package, by module and name."""
    return {
        f"{module.__name__}.{name}": found
        for module in modules()
        for name, found in vars(module).items()
        if isinstance(found, CPUDispatcher) and found.py_func.__module__ == module.__name__
    }


def is_cached(kernel: CPUDispatcher) -> bool:
    return type(kernel._cache).__name__ != "NullCache"


def test_few_kernels_with_at_most_six_arguments() -> None:
    cached = {name: kernel for name, kernel in kernels().items() if is_cached(kernel)}
    assert 8 <= len(cached) <= 24, sorted(cached)
    for name, kernel in cached.items():
        assert len(inspect.signature(kernel.py_func).parameters) <= 6, name


def test_no_kernel_runs_in_parallel_or_with_loose_arithmetic() -> None:
    """Threads are Python's, see `dnfh_env.batch`: numba's own die when two enter, or in a forked child."""
    for name, kernel in kernels().items():
        assert not {"parallel", "fastmath"} & set(kernel.targetoptions), name


@pytest.mark.small
@pytest.mark.parametrize("dtype", [GAME, VIEW])
def test_records_have_no_padding(dtype: np.dtype[Any]) -> None:
    """Copies leave padding undefined, and the bytes of a record are a save."""
    assert sum(dtype[name].itemsize for name in dtype.names or ()) == dtype.itemsize
    assert dtype.isalignedstruct and dtype.type is np.record
    assert RULES.isalignedstruct and RULES.type is np.record


@pytest.mark.small
def test_present_is_a_view_but_for_the_order_of_play() -> None:
    assert Present._fields == tuple(name for name in VIEW.names or () if name not in ("plays", "leaders", "spare"))


EVERY_ROUTE = """
import json, pickle, random
import numpy as np
from agents.arena import evaluate
from dnfh_env import Batch, Game, Rules, make_agent, win_chances
from dnfh_env.agent import ask
from dnfh_env.observation import COMPACT, FULL, pack, pack_state
from dnfh_env.objective import POINTS, WIN, standings_of
from dnfh_env.rules import compile_rules
from dnfh_env.view import VIEW, views_of

def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array

def unaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return raw[1:].view(array.dtype)

for rules in (Rules(), Rules.standard_hearts(), pickle.loads(pickle.dumps(Rules.omnibus()))):
    game = Game(rules, seed=np.int64(3), game=np.uint64(1))
    for _ in range(30):
        game.push(np.int32(game.legal_actions()[0]))
        game.view(), game.observe(observation="full"), game.views([0, 1, 2, 3]), game.to_notation()
    same = Game.from_json(game.to_json())
    Game.from_deal(Game(rules).record["hand"][0], dealer=1, rules=rules)
    evaluate("random", rules=rules, deals=1, games=1)
    for batch in (Batch(1, rules), Batch(6, rules, seed=2, reward="win"), pickle.loads(pickle.dumps(Batch(3, rules)))):
        agent = make_agent("random", rules)
        for _ in range(70):
            batch.step(ask(agent, batch.views(), batch.keys()))
        batch.play("random", np.int32(50))
        rows = np.arange(len(batch))
        for some in (rows, rows[::2], rows[:0], rows.astype(np.int32), read_only(rows), rows[::-1]):
            views = batch.views(some)
            actions = ask(agent, views, batch.keys(some))
            batch.step_rows(some, np.repeat(actions, 2)[::2])
        batch.step(list(map(int, ask(agent, batch.views(), batch.keys()))))
        batch.step(ask(agent, batch.views(), batch.keys()).astype(np.uint8))
        batch.packed("full"), batch.observe(), batch.states(), batch.action_masks()
        for obs in (None, "packed", "bytes"):
            for observation in ("compact", "full"):
                for threads in (1, 2, 9):
                    shown = Batch(7, rules, obs=obs, observation=observation, threads=threads)
                    shown.step(ask(agent, shown.views(), shown.keys()))
                    for kind in ("random", "greedy-v1", "heuristic", agent):
                        shown.play(kind, np.uint8(3))
                    shown.look(), shown.reset(5), pickle.loads(pickle.dumps(shown)).look()
        games, seats = batch.games, batch.seats
        keys, views = batch.keys(), batch.views()
        for shape in (lambda a: a, lambda a: a[::2], read_only, unaligned, lambda a: a[::-1], lambda a: a[:1]):
            for layout in (COMPACT, FULL):
                pack(shape(views), np.int32(300), layout)
            ask(agent, shape(views), shape(keys))
            views_of(shape(games), compile_rules(rules), shape(seats))
            pack_state(shape(games), compile_rules(rules), shape(seats).astype(np.int32))
            for objective in (WIN, POINTS, np.int64(WIN)):
                standings_of(shape(games), compile_rules(rules), objective)

batch = Batch(2, reward="equity")
for batch in (batch, pickle.loads(pickle.dumps(batch))):
    batch.step(batch.action_masks().argmax(axis=1))
for scores in ([0] * 4, np.zeros((3, 4), np.int8), read_only(np.zeros((2, 3, 8), np.int64))[:, :, ::2]):
    win_chances(scores, np.uint8(1)), win_chances(scores, np.ones(np.shape(scores)[:-1], np.int32))
"""

COUNT_SIGNATURES = """
import sys; sys.path.insert(0, "tests")
import test_kernels
cached = {name: kernel for name, kernel in test_kernels.kernels().items() if test_kernels.is_cached(kernel)}
print(json.dumps({name: [str(signature) for signature in kernel.signatures] for name, kernel in cached.items()}))
"""


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_cached_kernel_is_compiled_once() -> None:
    found = json.loads(run_python(EVERY_ROUTE + COUNT_SIGNATURES))
    adapters = ("dnfh_env.seat_env.", "dnfh_env.dnfh_v0.")
    core = {name: signatures for name, signatures in found.items() if not name.startswith(adapters)}
    assert {name: len(signatures) for name, signatures in core.items()} == dict.fromkeys(core, 1)


TRAJECTORY = """
import hashlib
import numpy as np
from numba import config
from dnfh_env import Batch, Rules
assert bool(config.DISABLE_JIT) == EXPECTED
seen = hashlib.sha256()
for number, rules in enumerate((Rules(), Rules.omnibus(target=20))):
    batch = Batch(2, rules, seed=number)
    for _ in range(150):
        batch.play("random", 1)
        for array in (batch.games, batch.legal(), batch.views(), batch.packed(), batch.packed("full"), batch.states()):
            seen.update(np.ascontiguousarray(array).tobytes())
        seen.update(batch.step(np.array([int(mask).bit_length() - 1 for mask in batch.legal()])).rewards.tobytes())
print(seen.hexdigest())
"""


@pytest.mark.slow
def test_compiled_and_plain_python_agree() -> None:
    found = [
        run_python(TRAJECTORY.replace("EXPECTED", str(disabled)), NUMBA_DISABLE_JIT=str(int(disabled)))
        for disabled in (False, True)
    ]
    assert found[0] == found[1] and len(found[0].strip()) == 64
