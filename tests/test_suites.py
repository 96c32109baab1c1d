"""Frozen deals, tactical suites and protocols; and the script that makes the suites, against slow twins."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import make_endings as solving  # noqa: E402
import make_suites as making  # noqa: E402

from agents import suites  # noqa: E402
from agents.arena import SEED as ARENA_SEED  # noqa: E402
from agents.beliefs import Beliefs  # noqa: E402
from agents.cli.train import EVALUATION_SEED  # noqa: E402
from agents.heuristic import Heuristic, Parameters, compile_parameters  # noqa: E402
from agents.search.endgame import solve  # noqa: E402
from agents.search.equal import alike_cards, equal_cards  # noqa: E402
from agents.suites import DEALS, PROTOCOLS, SUITES, DealSet, Suite, SuiteError  # noqa: E402
from dnfh_env.agent import REGISTRY, RandomAgent, legal_rows  # noqa: E402
from dnfh_env.cards import CARD_NAMES, RANKS, cards_in, mask_of, names_in  # noqa: E402
from dnfh_env.engine import CALL, GAME, OVER, PICK, PLAY, apply_all, copied_games, keys_of, new_games  # noqa: E402
from dnfh_env.errors import AgentError, IllegalActionError  # noqa: E402
from dnfh_env.game import Game  # noqa: E402
from dnfh_env.notation import action_to_string, dealt_hands  # noqa: E402
from dnfh_env.objective import POINTS, standings_of  # noqa: E402
from dnfh_env.rules import KITTY, Rules, compile_rules  # noqa: E402
from dnfh_env.view import views_of  # noqa: E402
from positions import ANY_CALL  # noqa: E402

COMPILED = compile_rules(making.RULES)
SUITE = pytest.mark.parametrize("name", SUITES)
SAMPLED = pytest.mark.parametrize("name", making.RECIPES)
"""The suites whose values are means over worlds drawn, `heuristic` playing on."""


def document(name: str) -> dict[str, Any]:
    return json.loads((suites.FOLDER / f"{name}.json").read_text(encoding="utf-8"))


# --- deals ------------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_a_digest_is_of_dealers_and_hands() -> None:
    games = [Game(seed=5, game=i) for i in range(4)]
    raw = bytes(game.dealer for game in games)
    for game in games:
        raw += b"".join(int(hand).to_bytes(8, "little") for hand in game.record["hand"][0])
    assert suites.deals_digest(5, 4) == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize("name", DEALS)
def test_the_engine_deals_what_was_frozen(name: str) -> None:
    deals = suites.load_deals(name)
    assert deals.count == {"dev": 1000, "test": 10_000}[name]
    with pytest.raises(SuiteError, match="frozen was"):
        replace(deals, seed=deals.seed + 1).check()


def test_seeds_lie_apart() -> None:
    own = [suites.load_deals(name).seed for name in DEALS] + [document(name)["seed"] for name in SUITES]
    assert len({*own, ARENA_SEED, EVALUATION_SEED}) == len(own) + 2
    assert all(ARENA_SEED < seed < 9_000_000 for seed in own)


@pytest.mark.small
def test_other_names_are_refused() -> None:
    for load in (suites.load_deals, suites.load_suite, suites.load_protocol):
        with pytest.raises(SuiteError, match="'nonsense' is not one of"):
            load("nonsense")


def test_a_broken_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "FOLDER", tmp_path)
    with pytest.raises(SuiteError, match="cannot be read"):
        suites.load_deals("dev")
    (tmp_path / "deals.json").write_text("[1]")
    with pytest.raises(SuiteError, match="of format 'dnfh-deals-1'"):
        suites.load_deals("dev")
    deals = {"seed": 1, "count": 3, "digest": "0" * 64}
    (tmp_path / "deals.json").write_text(json.dumps({"format": "dnfh-deals-1", "sets": {"dev": deals}}))
    with pytest.raises(SuiteError, match="deals 'dev': the digest is"):
        suites.load_deals("dev")
    with pytest.raises(SuiteError):
        DealSet("dev", **deals).check()


# --- the suites as they are -------------------------------------------------------------------------------------


@SUITE
def test_a_suite_is_what_it_says(name: str) -> None:
    suite = suites.load_suite(name)
    assert len(suite) >= 200 and (suites.FOLDER / f"{name}.json").stat().st_size < 400_000
    assert len({tuple(dealt_hands(game[None])) for game in suite.games}) == len(suite)  # each of another deal
    views = view_of(suite.games)
    assert (making.RECIPES | {"ending": solving.RECIPE})[name].about(views).all()
    legal = legal_rows(suite.legal).view(np.bool_)
    assert (legal.sum(axis=1) > 1).all() and (np.isfinite(suite.values) == legal).all()
    assert (suite.best & ~legal).sum() == 0 and suite.best.any(axis=1).all()
    assert suite.best[np.arange(len(suite)), np.nanargmax(suite.values, axis=1)].all()


def leads(suite: Suite) -> NDArray[np.float64]:
    """How far the highest value is before those of actions that do not count as best."""
    others = np.isfinite(suite.values) & ~suite.best
    return np.nanmax(suite.values, axis=1) - np.where(others, suite.values, -np.inf).max(axis=1)


@SAMPLED
def test_the_best_are_clearly_best(name: str) -> None:
    suite = suites.load_suite(name)
    assert suite.header["parameters"] == vars(Parameters())
    lead = leads(suite)
    gaps = np.array([making.ASKED[phase].gap for phase in suite.games["phase"]])
    assert (lead > gaps - 0.002).all() and (lead > 4 * suite.errors - 0.01).all()
    plays = suite.games["phase"] != CALL
    worst_best = np.where(suite.best, suite.values, np.inf).min(axis=1)
    assert (np.nanmax(suite.values, axis=1) - worst_best <= making.TIE + 0.002)[plays].all()


@SUITE
def test_a_suite_is_not_solved_by_greedy(name: str) -> None:
    found = suites.run_suite(suites.load_suite(name), "greedy-v1")
    assert found.best.mean <= 0.5 and found.regret.low > 0


def test_what_is_best_in_an_ending_is_level_and_clearly_so() -> None:
    suite = suites.load_suite("ending")
    lowest_best = np.where(suite.best, suite.values, np.inf).min(axis=1)
    assert (lowest_best == np.nanmax(suite.values, axis=1)).all() and (suite.errors == 0).all()
    lead = leads(suite)
    assert np.isfinite(lead).all() and (lead > solving.GAP - 0.002).all()
    assert suites.run_suite(suite, "heuristic").best.mean <= 0.5
    assert max(entry["worlds"] for entry in document("ending")["positions"]) == suite.header["worlds"]["play"] <= 300


def test_kitty_has_calls_and_picks() -> None:
    phases = Counter(suites.load_suite("kitty").games["phase"].tolist())
    assert set(phases) == {CALL, PICK} and min(phases.values()) > 30


# --- reading ----------------------------------------------------------------------------------------------------


def resealed(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"sha256": suites.positions_digest(found["positions"])}


@pytest.fixture
def few() -> dict[str, Any]:
    """A small document that may be spoilt."""
    found = document("jack")
    return resealed(found | {"positions": found["positions"][:6]})


@pytest.mark.small
def test_a_changed_document_is_refused(few: dict[str, Any]) -> None:
    assert len(suites.parse_suite(few)) == 6
    entry = few["positions"][2]
    action = next(iter(entry["values"]))
    for change, message in (
        (few | {"rules": Rules(target=200).digest()}, "rules of suite 'jack'"),
        (few | {"positions": few["positions"][1:]}, "positions of suite 'jack'"),
        (spoilt(few, at=entry["at"].replace(" ", " x ", 4)), "position 2: "),
        (spoilt(few, values={action: 1.0}), "position 2 has values for other actions"),
        (spoilt(few, values=entry["values"] | {"kitty": 1.0}), "position 2 has values for other actions"),
    ):
        with pytest.raises(SuiteError, match=message):
            suites.parse_suite(change)


def spoilt(found: dict[str, Any], **fields: Any) -> dict[str, Any]:
    entries = list(found["positions"])
    entries[2] = entries[2] | fields
    return resealed(found | {"positions": entries})


# --- asking an agent --------------------------------------------------------------------------------------------


class Told:
    """Answers what it was told to."""

    def __init__(self, actions: NDArray[np.int64]) -> None:
        self.actions = actions

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        return self.actions


@pytest.mark.small
def test_scores_are_those_of_the_file(few: dict[str, Any]) -> None:
    suite = suites.parse_suite(few)
    best = [max(entry["values"], key=entry["values"].get) for entry in few["positions"]]
    worst = [min(entry["values"], key=entry["values"].get) for entry in few["positions"]]
    told = [Game.string_to_action(name) for name in (*best[:2], *worst[2:])]
    found = suites.run_suite(suite, Told(np.array(told)))
    lost = [max(entry["values"].values()) - min(entry["values"].values()) for entry in few["positions"][2:]]
    assert (found.contestant, found.positions, found.digest) == ("Told", 6, few["sha256"])
    assert found.best.mean == 2 / 6 and found.best.n == 6
    assert found.regret.mean == pytest.approx(sum(lost) / 6)
    assert [miss.regret for miss in found.worst] == pytest.approx(sorted(lost, reverse=True))
    dearest = found.worst[0]
    entry = few["positions"][dearest.position]
    assert (dearest.text, dearest.chosen) == (entry["at"], worst[dearest.position])
    assert set(dearest.best) == set(entry["best"])


@pytest.mark.small
def test_the_best_agent_has_no_regret(few: dict[str, Any]) -> None:
    suite = suites.parse_suite(few)
    found = suites.run_suite(suite, Told(np.nanargmax(suite.values, axis=1)), "oracle")
    assert (found.contestant, found.best.mean, found.regret.mean, found.worst) == ("oracle", 1.0, 0.0, ())


@pytest.mark.small
def test_an_illegal_answer_is_an_error(few: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="cheat: action 62"):
        suites.run_suite(suites.parse_suite(few), Told(np.full(6, KITTY)), "cheat")


def test_chance_is_fixed_by_suite_and_position() -> None:
    suite = suites.load_suite("guard")
    assert len(set(suite.keys().tolist())) == len(suite)
    assert suites.run_suite(suite, "random") == suites.run_suite(suite, RandomAgent(), "random")
    assert set(suite.keys().tolist()).isdisjoint(suites.load_suite("jack").keys().tolist())


def test_the_table_has_a_row_for_each() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(suites.table([suites.run_suite(suites.load_suite(name), "greedy-v1") for name in SUITES]))
    text = console.export_text()
    assert text.count("greedy-v1") == len(SUITES) and all(name in text for name in SUITES)


# --- protocols --------------------------------------------------------------------------------------------------


def test_a_protocol_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = suites.load_protocol("v1")
    assert protocol.digest in (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    for changes in ({"games": 999}, {"deals": "dev"}, {"opponents": ("greedy-v1",)}, {"rules": Rules(target=200)}):
        with pytest.raises(SuiteError, match="protocol 'v1'"):
            replace(protocol, **changes).check()
    monkeypatch.setitem(REGISTRY, "heuristic", REGISTRY["greedy-v1"])
    with pytest.raises(SuiteError, match="protocol 'v1'"):  # an opponent that plays otherwise under the same name
        protocol.check()
    assert all(name == protocol.name for name, protocol in PROTOCOLS.items())


@pytest.mark.parametrize("name", [*DEALS, *SUITES])
def test_the_page_has_the_digests(name: str) -> None:
    digest = suites.load_deals(name).digest if name in DEALS else suites.load_suite(name).digest
    assert digest[:16] in (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")


# --- worlds -----------------------------------------------------------------------------------------------------


def moments(count: int, calls: tuple[str, ...], seed: int) -> Iterator[NDArray[Any]]:
    """All positions of deals between random players, `GAME` arrays of length 1."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        game = new_games(making.RULES.replace(calls=calls), seed, [number])
        while game["phase"][0] != OVER:
            yield copied_games(game)
            views = views_of(game, compile_rules(making.RULES.replace(calls=calls)), game["seat"].astype(np.int64))
            apply_all(game, COMPILED, np.array([rng.choice(np.flatnonzero(legal_rows(views["legal"])[0]))]))


def view_of(game: NDArray[Any]) -> NDArray[Any]:
    return views_of(game, COMPILED, game["seat"].astype(np.int64))


def worlds_of(view: NDArray[Any], count: int, seed: int = 1) -> NDArray[Any]:
    games = np.zeros(count, GAME)
    found = making.draw_worlds(view, COMPILED, compile_parameters(Parameters()), np.array([seed], np.uint64), games)
    return games[:found]


@pytest.mark.small
@pytest.mark.parametrize("calls", [("300",), ("102",), ("kitty",), ("021", "111")], ids=str)
def test_a_world_looks_the_same_to_the_seat(calls: tuple[str, ...]) -> None:
    """Every byte of the view, given and received cards, voids and the table among them."""
    seen = 0
    for k, game in enumerate(itertools.islice(moments(1, calls, 3), 0, None, 5)):  # the call, picks, all of a trick
        view = view_of(game)
        worlds = worlds_of(view, 2, k)
        again = views_of(worlds, COMPILED, np.zeros(len(worlds), np.int64))
        assert {row.tobytes() for row in again} == {view.tobytes()}
        assert len(set(worlds["seed"].tolist())) == len(worlds)
        seen += len(worlds)
    assert seen == 26


@pytest.mark.small
@pytest.mark.parametrize("calls", [("201",), ("kitty",)], ids=str)
def test_the_cards_of_a_world_are_one_deal(calls: tuple[str, ...]) -> None:
    for k, game in enumerate(itertools.islice(moments(1, calls, 8), 1, None, 7)):
        for world in worlds_of(view_of(game), 1, k):
            hands = dealt_hands(world[None])
            assert sorted(card for hand in hands for card in cards_in(hand)) == list(range(52))
            assert [hand.bit_count() for hand in hands] == [13] * 4
            again = Game.from_notation(making.position_to_string(world[None], Rules()))
            assert again.record["hand"].tobytes() == world["hand"].tobytes()


def layouts(game: NDArray[Any]) -> dict[tuple[int, ...], float]:
    """Every layout of the hidden cards that the seat to move cannot rule out, with its weight; one after another."""
    view = view_of(game)[0]
    known = [int(view.hand | view.played[0])] + [int(view.played[s]) for s in range(1, 4)]
    if view.call != KITTY:
        known[1:] = [cards | int(view.given[s]) for s, cards in enumerate(known[1:])]
    hidden = [card for card in range(52) if not any(cards >> card & 1 for cards in known)]
    room = [13 - cards.bit_count() for cards in known[1:]]
    found = {}
    for one in itertools.combinations(hidden, room[0]):
        rest = [card for card in hidden if card not in one]
        for two in itertools.combinations(rest, room[1]):
            three = [card for card in rest if card not in two]
            hands = [known[0], *(cards | mask_of(new) for cards, new in zip(known[1:], (one, two, three), strict=True))]
            weight = histories(view, hands) if can_be(view, hands) else 0
            if weight:
                found[tuple(hands)] = float(weight)
    return found


def can_be(view: Any, hands: list[int]) -> bool:
    """Whether these hands after the pass could have been played so."""
    game = Game.from_deal(hands, dealer=0, call="hold", rules=ANY_CALL)
    try:
        for card in view.plays[: view.num_plays]:
            game.push(int(card))
    except IllegalActionError:
        return False
    return True


def histories(view: Any, hands: list[int]) -> int:
    """In how many ways a kitty may have given three of each hand, those of mine that did not come back among them."""
    if view.call != KITTY:
        return 1
    lost = int(view.given[0] & ~view.received[0])
    ways = 1
    for hand in hands[1:]:
        ways *= sum(mask_of(got) & lost == lost & hand for got in itertools.combinations(cards_in(hand), 3))
    return ways


def late(calls: tuple[str, ...], plays: int, seed: int) -> Iterator[tuple[NDArray[Any], dict[tuple[int, ...], float]]]:
    for game in moments(12, calls, seed):
        if game["phase"][0] == PLAY and game["num_plays"][0] == plays:
            yield game, layouts(game)


def off_by(game: NDArray[Any], expected: dict[tuple[int, ...], float], draws: int) -> float:
    """Pearson's statistic of the worlds against the layouts, as a deviate: near 0, and above 5 only by a fault."""
    worlds = worlds_of(view_of(game), draws)
    counts = Counter(map(tuple, (worlds["hand"] | worlds["played"]).tolist()))
    assert set(counts) <= set(expected) and counts.total() == draws
    whole = sum(expected.values())
    chi = sum((counts[key] - draws * w / whole) ** 2 / (draws * w / whole) for key, w in expected.items())
    return (chi - len(expected) + 1) / (2 * len(expected)) ** 0.5


def test_every_layout_is_as_likely() -> None:
    deviates = [off_by(game, e, 60 * len(e)) for game, e in late(("300", "120"), 42, 5) if len(e) > 3]
    assert len(deviates) > 4 and max(deviates) < 5


def test_a_kitty_weighs_its_histories() -> None:
    cases = [(game, e) for game, e in late(("kitty",), 44, 2) if len(set(e.values())) > 1]
    assert len(cases) > 1 and max(off_by(game, e, 100 * len(e)) for game, e in cases) < 5
    game, uneven = cases[0]
    assert off_by(game, dict.fromkeys(uneven, 1.0), 100 * len(uneven)) > 5  # and it would show


# --- values -----------------------------------------------------------------------------------------------------


def test_edges_are_those_of_the_agent_playing_on() -> None:
    game = next(game for game in moments(3, ("030",), 4) if game["num_plays"][0] == 6)
    worlds = worlds_of(view_of(game), 20)
    parameters = np.concatenate([compile_parameters(Parameters())] * 2)
    for action in np.flatnonzero(legal_rows(view_of(game)["legal"])[0]):
        edges, shooters = np.empty(20), np.empty(20, np.int8)
        making.play_out(worlds, COMPILED, parameters, action, edges, shooters)
        twins = copied_games(worlds)
        apply_all(twins, COMPILED, np.full(20, action))
        while twins["phase"][0] != OVER:  # they end together
            apply_all(twins, COMPILED, Heuristic().act(view_of(twins), keys_of(twins)))
        assert edges.tolist() == pytest.approx((4 / 3 * standings_of(twins, COMPILED, POINTS)[:, 0]).tolist())
        assert shooters.tolist() == twins["shooter"].tolist()


@pytest.mark.small
def test_what_is_near_the_best() -> None:
    worlds = np.array([0.0, 2.0, 0.0, 2.0])
    edges = np.array([worlds + 9, worlds + 8.95, worlds + 4, [-16.0, 24.0, -16.0, 24.0], worlds + 8])
    found = making.Outcomes(np.arange(5), edges, np.full((5, 4), -1, np.int8))
    assert found.values.tolist() == pytest.approx([10, 9.95, 5, 4, 9])
    assert found.tied.tolist() == [True, True, False, False, False]
    assert found.near(gap=2.0, z=4.0).tolist() == [True, True, False, True, True]  # noisy, and not far enough
    assert found.near(gap=0.5, z=0.1).tolist() == [True, True, False, False, False]
    assert not making.is_clear(found, making.Asked((), (), 2.0, None), 4.0)
    assert making.is_clear(found, making.Asked((), (), 2.0, 4), 4.0)
    assert making.is_clear(found, making.Asked((), (), 0.5, None), 0.1)


@pytest.mark.small
def test_what_a_shot_suite_accepts() -> None:
    shooters = np.full((2, 10), -1, np.int8)
    shooters[0, :3] = 0
    best_first = np.array([[5.0] * 10, [1.0] * 10])
    assert making.brings_home(making.Outcomes(np.arange(2), best_first, shooters))
    assert not making.brings_home(making.Outcomes(np.arange(2), best_first[::-1], shooters))
    rivals = np.where(shooters == 0, 2, -1).astype(np.int8)
    assert making.breaks(making.Outcomes(np.arange(2), best_first[::-1], rivals))
    assert not making.breaks(making.Outcomes(np.arange(2), best_first, rivals))


# --- making them ------------------------------------------------------------------------------------------------


def test_candidates_do_not_depend_on_the_batch() -> None:
    recipe = making.RECIPES["jack"]
    whole = making.candidates(recipe, 11, np.arange(12))
    parts = [making.candidates(recipe, 11, np.arange(i, i + 4)) for i in (0, 4, 8)]
    assert whole.tobytes() == np.concatenate(parts).tobytes() and len(whole) > 6
    assert len(set(whole["game"].tolist())) == len(whole)


def test_each_decision_of_a_kind_is_as_likely() -> None:
    found = making.candidates(making.RECIPES["kitty"], 12, np.arange(1300))
    counts = np.bincount(np.where(found["phase"] == CALL, 0, 1 + found["num_picks"]), minlength=13)
    assert len(found) == 1300 and counts.min() > 60 and counts.max() < 145  # 100 each


@pytest.mark.parametrize("name", ["shoot", "stop", "jack"])
def test_the_script_finds_again_what_is_on_file(name: str) -> None:
    found, recipe = document(name), making.RECIPES[name]
    for entry in found["positions"][:2]:
        number = int(entry["at"].rpartition("game=")[2])
        (candidate,) = making.candidates(recipe, found["seed"], np.array([number]))
        assert making.judged(recipe, np.array([candidate], GAME), found["seed"]) == entry


def test_a_suite_is_made_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "BATCH", 32)
    found = making.make("jack", 21, 4)
    making.save(found, tmp_path / "jack.json")
    assert [path.name for path in tmp_path.iterdir()] == ["jack.json"]
    written = json.loads((tmp_path / "jack.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(found)) and len(suites.parse_suite(written)) == 4
    solved = suites.run_suite(suites.parse_suite(written), "greedy-v1").best.mean
    assert solved <= 0.5
    monkeypatch.setattr(making, "BATCH", 20)
    assert making.make("jack", 21, 4) == found


# --- endings ----------------------------------------------------------------------------------------------------


def last_plays(calls: tuple[str, ...], seed: int, plays: range) -> Iterator[NDArray[Any]]:
    for game in moments(6, calls, seed):
        if game["phase"][0] == PLAY and game["num_plays"][0] in plays:
            yield game


def hands_of(view: NDArray[Any], layout: list[int]) -> tuple[int, ...]:
    """All four hands as they were after the pass."""
    whole = [int(view["hand"][0]), *layout]
    return tuple(hand | int(played) for hand, played in zip(whole, view["played"][0], strict=True))


@pytest.mark.parametrize("calls", [("300",), ("102", "111"), ("kitty",)], ids=str)
def test_all_layouts_of_an_ending_are_found(calls: tuple[str, ...]) -> None:
    """One after another, each with as many histories as there are, and as many as beliefs count."""
    sizes = []
    for game in last_plays(calls, 45, range(43, 50)):
        view = view_of(game)
        found = {hands_of(view, layout): solving.histories(view, layout) for layout in solving.layouts(view)}
        expected = layouts(game)
        assert found == expected and len(found) == len(list(solving.layouts(view)))
        assert sum(found.values()) == Beliefs(view, making.RULES).layouts
        sizes.append(len(found))
    assert max(sizes) > 20 and len(set(sizes)) > 5


@pytest.mark.parametrize("calls", [("210",), ("kitty",)], ids=str)
def test_a_world_of_an_ending_looks_the_same_to_the_seat(calls: tuple[str, ...]) -> None:
    for game in last_plays(calls, 46, range(44, 47)):
        view = view_of(game)
        for layout in itertools.islice(solving.layouts(view), 0, None, 7):
            world = solving.world_of(view, layout)
            assert world["hand"][0].tolist() == [int(view["hand"][0]), *layout]
            assert view_of(world).tobytes() == view.tobytes()


def test_an_ending_has_actions_that_are_not_equal() -> None:
    """Against the definition, one action after another, and at all plays of deals."""
    alike, found = alike_cards(making.RULES), Counter()
    for game in last_plays(("300", "kitty"), 47, range(30, 52)):
        view = view_of(game)[0]
        tricks, table = 13 - int(view.num_plays) // 4, view.num_plays // 4 * 4
        gone = set(view.plays[: view.num_plays].tolist()) - ({int(view.best_card)} if table < view.num_plays else set())
        legal = [card for card in range(52) if int(view.legal) >> card & 1]
        equal = equal_cards(legal[0], view.hand, np.uint64(mask_of(gone)), alike)
        about = 2 <= tricks <= 4 and bool(set(legal) - set(cards_in(int(equal))))
        assert bool(solving.endings(view_of(game))[0]) == about
        found[about, len(legal) > 1, 2 <= tricks <= 4] += 1
    assert min(found[True, True, True], found[False, True, True], found[False, True, False]) > 3


def an_exact(quarters: list[list[int]], weights: list[float]) -> solving.Exact:
    return solving.Exact(np.arange(len(quarters)), np.array(quarters), np.array(weights))


@pytest.mark.small
def test_best_is_best_in_every_world() -> None:
    found = an_exact([[8, 4, 6], [8, 4, 6], [8, 4, 0], [9, -300, -300]], [1, 1, 2])
    assert not found.best.any()
    found = an_exact([[8, 4, 6], [8, 4, 6], [8, 4, 0], [5, -300, 6]], [1, 1, 2])
    assert found.best.tolist() == [True, True, False, False]
    assert found.values.tolist() == pytest.approx([2, 2, 1, (5 - 300 + 12) / 12]) and not found.errors.any()
    assert solving.is_clear(found)
    assert not solving.is_clear(an_exact([[8, 4, 6], [8, 4, 1]], [1, 1, 2]))  # 5/6 of a point
    assert not solving.is_clear(an_exact([[8, 4, 6], [8, 4, 6]], [1, 1, 2]))


def games_of_endings(step: int) -> Iterator[tuple[dict[str, Any], NDArray[Any]]]:
    suite = suites.load_suite("ending")
    for i, entry in itertools.islice(enumerate(document("ending")["positions"]), 0, None, step):
        yield entry, suite.games[i : i + 1]


def test_an_ending_is_solved_again() -> None:
    """By the script's functions, and its value as the mean over worlds played by `solve` on their own."""
    for entry, game in games_of_endings(30):
        assert solving.judged(game) == entry
        view = view_of(game)
        total, sums = 0, Counter()
        for layout in solving.layouts(view):
            ways = solving.histories(view, layout)
            found = solve(solving.world_of(view, layout), Rules())
            values = dict(zip(map(action_to_string, found.actions.tolist()), found.values[:, 0].tolist(), strict=True))
            assert {name for name in values if values[name] == max(values.values())} >= set(entry["best"])
            sums.update({name: ways * value for name, value in values.items()})
            total += ways
        assert entry["values"] == pytest.approx({name: sums[name] / total / 3 for name in sums}, abs=6e-4)


def test_the_label_does_not_depend_on_what_is_hidden() -> None:
    """The position's own hands are one of the layouts, and any other has the same entry."""
    for entry, game in games_of_endings(40):
        view, seat = view_of(game), int(game["seat"][0])
        found = list(solving.layouts(view))
        assert [int(game["hand"][0, (seat + place) % 4]) for place in (1, 2, 3)] in found
        other = copied_games(game)
        for place, hand in enumerate(found[-1], 1):
            other["hand"][0, (seat + place) % 4] = hand
        assert view_of(other).tobytes() == view.tobytes()
        again = solving.judged(other)
        assert again is not None and again | {"at": entry["at"]} == entry


def test_an_ending_is_found_again() -> None:
    found = document("ending")
    for entry in found["positions"][:3]:
        number = int(entry["at"].rpartition("game=")[2])
        (candidate,) = making.candidates(solving.RECIPE, found["seed"], np.array([number]))
        assert solving.judged(np.array([candidate], GAME)) == entry


def test_endings_are_made_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "BATCH", 32)
    found = solving.make(22, 4)
    making.save(found, tmp_path / "ending.json")
    written = json.loads((tmp_path / "ending.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(found)) and len(suites.parse_suite(written)) == 4
    for name in solving.SOLVERS:
        assert suites.run_suite(suites.parse_suite(written), name).best.mean <= 0.5
    monkeypatch.setattr(solving, "BATCH", 20)
    assert solving.make(22, 4) == found


# --- what the suites are about ----------------------------------------------------------------------------------

SCORING = {"QS", "QC", "QD", "JD", *(rank + "H" for rank in "23456789TJQKA")}


@SAMPLED
def test_definitions_are_those_of_the_page(name: str) -> None:
    """At the positions of all suites and at what follows them, against definitions written out by name."""
    rng, found = np.random.default_rng(3), Counter()
    for other in making.RECIPES:
        for text in suites.load_suite(other).texts[:12]:
            game = Game.from_notation(text)
            while game.phase in ("call", "pick", "play") and game.deal == 0:
                about = bool(making.RECIPES[name].about(game.views([game.seat]))[0])
                assert about == ABOUT[name](Seen(game)), (game.to_notation(), name)
                found[about] += 1
                game.push(int(rng.choice(game.legal_actions())))
    assert min(found[True], found[False]) > 10


class Seen:
    """A game as its seat to move sees it, in names of cards."""

    def __init__(self, game: Game) -> None:
        view = game.view(game.seat)
        self.phase, self.call, self.plays = game.phase, game.call, int(view.num_plays)
        self.legal = {action_to_string(action) for action in game.legal_actions()}
        self.hand = set(names_in(int(view.hand)))
        self.taken = [set(names_in(int(cards))) for cards in view.taken]
        self.played = {CARD_NAMES[card] for card in view.plays[: self.plays]}
        self.trick = [CARD_NAMES[card] for card in view.plays[self.plays // 4 * 4 : self.plays]]

    def choice(self, cards: set[str]) -> bool:
        return bool(self.legal & cards) and bool(self.legal - cards)

    def shot_cards(self) -> list[int]:
        return [len(cards & SCORING) for cards in self.taken]

    def masters(self) -> int:
        unseen = set(CARD_NAMES) - self.hand - self.played
        return sum(not (above(card) & unseen) for card in self.hand)


def above(card: str) -> set[str]:
    return {other for other in CARD_NAMES if other[1] == card[1] and RANKS.index(other[0]) > RANKS.index(card[0])}


def about_guard(seen: Seen) -> bool:
    return seen.phase != "call" and "QS" not in seen.played and seen.choice({"QS", "KS", "AS"})


def about_shoot(seen: Seen) -> bool:
    mine, *others = seen.shot_cards()
    strong = mine >= 3 or (seen.plays < 16 and seen.masters() >= 5)
    return seen.phase == "play" and sum(others) == 0 and strong


def about_stop(seen: Seen) -> bool:
    mine, *others = seen.shot_cards()
    return seen.phase == "play" and max(others) > 17 / 2 and mine + sum(others) == max(others)


def about_jack(seen: Seen) -> bool:
    if seen.phase != "play":
        return False
    if "JD" in seen.trick:
        led = [card for card in seen.trick if card[1] == seen.trick[0][1]]
        return seen.choice(above(max(led, key=lambda card: RANKS.index(card[0]))))
    if "JD" in seen.hand:
        return seen.choice({"JD"})
    return "JD" not in seen.played and seen.choice({"QD", "KD", "AD"})


def about_kitty(seen: Seen) -> bool:
    return seen.phase == "call" or (seen.phase == "pick" and seen.call == "kitty")


ABOUT = {"guard": about_guard, "shoot": about_shoot, "stop": about_stop, "jack": about_jack, "kitty": about_kitty}
