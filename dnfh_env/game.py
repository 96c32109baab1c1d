"""`Game`: one game to think in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dnfh_env import notation
from dnfh_env._bits import indices
from dnfh_env.agent import Agent, ask, make_agent
from dnfh_env.cards import CARD_NAMES, NUM_SEATS, cards_in
from dnfh_env.engine import GAME, NO_CALL, copied_games, keys_of, new_games
from dnfh_env.errors import DnfhError, NotationError
from dnfh_env.observation import LAYOUTS, check_observation, features
from dnfh_env.rules import CALLS, FIRST_CALL, Rules, checked_rules, compile_rules
from dnfh_env.view import views_of

PHASES = ("call", "pick", "play", "over")
RECORD_FORMAT = "dnfh-game-1"


class Game:
    """One game under ``rules``: its deals follow from ``seed`` (and ``game``, the number of the game under it).

    >>> game = Game(seed=1)
    >>> while not game.is_over:
    ...     game.push(game.legal_actions()[0])
    >>> len(game.winners) >= 1
    True

    All hands are in here: give agents `view`, not the game. Seats are 0 to 3 clockwise, actions 0 to 63.
    """

    action_to_string = staticmethod(notation.action_to_string)
    string_to_action = staticmethod(notation.string_to_action)

    def __init__(self, rules: Rules | None = None, seed: int = 0, game: int = 0) -> None:
        """Start at the first decision of the first deal. ``seed`` and ``game`` are whole numbers below 2**64."""
        rules = checked_rules(rules)
        number = notation.check_counter("game", game)
        self._begin(new_games(rules, notation.check_counter("seed", seed), np.array([number], np.uint64)), rules)

    def _begin(self, record: NDArray[Any], rules: Rules) -> None:
        self.rules = rules
        self._compiled = compile_rules(rules)
        self._record = record
        self._legal = notation.legal_of(record, self._compiled)
        self._start = record.tobytes()
        self._past: list[tuple[bytes, int]] = []  # record and legal actions before each push
        self.history: list[int] = []
        """The actions pushed so far."""

    # --- other ways to a game -----------------------------------------------------------------------------------

    @classmethod
    def from_deal(
        cls,
        hands: Sequence[Any],
        *,
        dealer: int,
        scores: Sequence[int] = (0, 0, 0, 0),
        call: str | None = None,
        rules: Rules | None = None,
        seed: int = 0,
    ) -> Game:
        """A game that begins with a given deal.

        Args:
            hands: four hands as dealt, each text like ``"AQ7.K9.T8765.A42"`` (clubs, diamonds, hearts, spades), a
                sequence of card names or ids, or a mask.
            dealer: seat of the dealer.
            scores: totals before the deal.
            call: what the dealer has called; ``None`` leaves the decision to come.
            rules: the rules, `Rules()` if not given.
            seed: fixes kitties and later deals.

        Raises `DealError` or `NotationError` for a deal that cannot be.
        """
        game = cls(rules, seed)
        notation.set_deal(game._record, game.rules, notation.parse_hands(hands), dealer, scores, call)
        game._begin(game._record, game.rules)
        return game

    @classmethod
    def from_notation(cls, text: str) -> Game:
        """The game at a position that `to_notation` wrote; raises `NotationError` that names the token at fault."""
        record, rules = notation.string_to_position(text)
        return cls._at(record, rules)

    @classmethod
    def _at(cls, record: NDArray[Any], rules: Rules) -> Game:
        game = cls.__new__(cls)
        game._begin(record, rules)
        return game

    def to_notation(self) -> str:
        """The current position in one line, see `dnfh_env.notation`."""
        return notation.position_to_string(self._record, self.rules)

    def copy(self) -> Game:
        """An independent game at the same point, history included."""
        twin = self._at(self.record, self.rules)
        twin._start = self._start
        twin._past = list(self._past)
        twin.history = list(self.history)
        return twin

    __copy__ = copy

    def to_json(self) -> str:
        """The whole game as one JSON line: where it began, the actions since, and a checksum over both."""
        body = {
            "format": RECORD_FORMAT,
            "rules": self.rules.to_dict(),
            "start": notation.position_to_string(_restored(self._start), self.rules),
            "actions": " ".join(map(notation.action_to_string, self.history)),
        }
        return _dump(body | {"sha256": _checksum(body)})

    @classmethod
    def from_json(cls, text: str) -> Game:
        """The inverse of `to_json`; raises `NotationError` if so much as a byte has been changed."""
        try:
            body = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise NotationError(f"game record: not a line of JSON: {error}") from None
        expected = ["format", "rules", "start", "actions", "sha256"]
        if not isinstance(body, dict) or list(body) != expected:
            raise NotationError(f"game record: expected the fields {', '.join(expected)}")
        if body["format"] != RECORD_FORMAT:
            raise NotationError(f"game record: format {body['format']!r} is not {RECORD_FORMAT!r}")
        checksum = body.pop("sha256")
        if checksum != _checksum(body) or _dump(body | {"sha256": checksum}) != text.strip():
            raise NotationError("game record: the checksum does not fit, so something in it has been changed")
        return cls._replay(body)

    @classmethod
    def _replay(cls, body: dict[str, Any]) -> Game:
        if not isinstance(body["start"], str) or not isinstance(body["actions"], str):
            raise NotationError("game record: start and actions are not text")
        game = cls.from_notation(body["start"])
        if game.rules.to_dict() != body["rules"]:
            raise NotationError("game record: the rules and those of the start differ")
        for number, name in enumerate(body["actions"].split()):
            try:
                game.push(name)
            except DnfhError as error:
                raise NotationError(f"game record: action {number} ({name}): {error}") from None
        return game

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With the dtypes that the kernels recognise at once; those that a pickle brings take them microseconds."""
        self.__dict__.update(state)
        self._record, self._compiled = copied_games(self._record), compile_rules(self.rules)

    # --- where the game stands ----------------------------------------------------------------------------------

    @property
    def phase(self) -> str:
        """``"call"``, ``"pick"``, ``"play"`` or ``"over"``."""
        return PHASES[self._record["phase"][0]]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return not self._legal

    @property
    def truncated(self) -> bool:
        """Whether ``max_deals`` cut the game off without a winner."""
        return self.is_over and not self.winners

    @property
    def seat(self) -> int | None:
        """The seat to move; ``None`` when over."""
        return None if self.is_over else int(self._record["seat"][0])

    @property
    def dealer(self) -> int:
        """The seat that dealt the current deal."""
        return int(self._record["dealer"][0])

    @property
    def deal(self) -> int:
        """Number of the current deal, from 0."""
        return int(self._record["deal"][0])

    @property
    def call(self) -> str | None:
        """How cards are passed in this deal; ``None`` before the call."""
        call = int(self._record["call"][0])
        return None if call == NO_CALL else CALLS[call - FIRST_CALL]

    @property
    def scores(self) -> tuple[int, ...]:
        """Totals of the four seats at the last deal's end."""
        return tuple(map(int, self._record["scores"][0]))

    @property
    def points(self) -> tuple[int, ...]:
        """Card points of the tricks taken so far in the current deal (the last one when over)."""
        return tuple(map(int, self._record["points"][0]))

    @property
    def winners(self) -> tuple[int, ...]:
        """The seats that share the win; empty before the end, and when cut off by ``max_deals``."""
        return tuple(indices(int(self._record["winners"][0])))

    @property
    def shooter(self) -> int | None:
        """Who shot the last finished deal, if anyone."""
        shooter = int(self._record["shooter"][0])
        return None if shooter < 0 else shooter

    @property
    def hands(self) -> tuple[tuple[str, ...], ...]:
        """The cards now held, by seat, in rising order of id."""
        return tuple(tuple(CARD_NAMES[card] for card in cards_in(hand)) for hand in self._record["hand"][0])

    @property
    def trick(self) -> list[tuple[int, str]]:
        """The current trick as (seat, card) in order of play."""
        g = self._record[0]
        played = int(g.num_plays)
        first = played & ~3
        return [
            ((int(g.leaders[first >> 2]) + k) % NUM_SEATS, CARD_NAMES[g.plays[first + k]])
            for k in range(played - first)
        ]

    @property
    def record(self) -> NDArray[Any]:
        """A copy of the `GAME` record, an array of length 1."""
        return _restored(self._record.tobytes())

    def view(self, seat: int | None = None) -> Any:
        """All that ``seat`` (by default the one to move) knows: a `VIEW` record with named fields."""
        return self.views([self._seat(seat)])[0]

    def views(self, seats: Iterable[int]) -> NDArray[Any]:
        """The views of several seats, a `VIEW` array for `dnfh_env.agent.Agent.act`."""
        asked = np.array([self._seat(seat) for seat in seats], np.int64)
        return views_of(_restored(self._record.tobytes() * len(asked)), self._compiled, asked)

    def observe(self, seat: int | None = None, observation: str = "compact") -> NDArray[np.float32]:
        """The features of a layout, ``float32[layout.bits]`` of 0 and 1, for ``seat`` (by default the one to move)."""
        layout = LAYOUTS[check_observation(observation)]
        seen: NDArray[np.float32] = features(self.views([self._seat(seat)]), self.rules.target, layout)[0]
        return seen

    def _seat(self, seat: int | None) -> int:
        return int(self._record["seat"][0]) if seat is None else notation.check_seat("seat", seat)

    # --- moving -------------------------------------------------------------------------------------------------

    def legal_actions(self) -> list[int]:
        """The legal actions of the seat to move, in rising order; empty when over."""
        return indices(self._legal)

    def choose(self, agent: Agent | str) -> int:
        """What an agent, given as an object or by name, decides for the seat to move; always the same here."""
        name = agent if isinstance(agent, str) else type(agent).__name__
        return int(ask(make_agent(agent, self.rules), self.views([self._seat(None)]), keys_of(self._record), name)[0])

    def push(self, action: int | str) -> None:
        """Make a decision, given as an action or as its name; raises `IllegalActionError` and changes nothing."""
        before = self._record.tobytes(), self._legal
        self._legal = notation.act(self._record, self._compiled, action)
        self._past.append(before)
        self.history.append(notation.as_int(action))

    def pop(self) -> int:
        """Take back the last decision and return it; raises `IndexError` where the history is empty."""
        if not self.history:
            raise IndexError("pop: no action has been pushed")
        record, self._legal = self._past.pop()
        self._record = _restored(record)
        return self.history.pop()

    # --- as text ------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Evaluates to a game at the same position."""
        return f"Game.from_notation({self.to_notation()!r})"

    def __str__(self) -> str:
        """The table with all hands open."""
        from dnfh_env.render.text import table

        return table(self._record, self.rules)

    def __eq__(self, other: object) -> bool:
        """Whether both stand at the same position under the same rules, deals to come included."""
        if not isinstance(other, Game):
            return NotImplemented
        return self.to_notation() == other.to_notation()

    __hash__ = None  # type: ignore[assignment]


def _restored(records: bytes) -> NDArray[Any]:
    """The `GAME` array that these bytes were; numpy takes twenty times as long to copy records."""
    return np.frombuffer(bytearray(records), GAME)


def _dump(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(_dump(body).encode()).hexdigest()
