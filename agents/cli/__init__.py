"""The command line: ``dnfh train``, ``dnfh evaluate`` and ``dnfh check-agent``.

Each command is a function of a dataclass whose field docstrings are its help. It is imported when it is called for, so
that ``dnfh evaluate`` needs no torch.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dnfh_env.errors import DnfhError, RulesError
from dnfh_env.rules import Rules


class Command(NamedTuple):
    """Where a command is, and what it does."""

    module: str
    arguments: str
    """The dataclass of its arguments."""
    function: str
    """Takes them; returns the exit status, or None for success."""
    summary: str
    extra: str = "evaluate"
    """What brings the libraries that it needs."""


COMMANDS = {
    "train": Command("agents.cli.train", "TrainArgs", "train", "train a policy", "train"),
    "evaluate": Command("agents.cli.evaluate", "EvaluateArgs", "evaluate", "measure agents on duplicate deals"),
    "check-agent": Command("agents.cli.check_agent", "CheckAgentArgs", "check_agent", "test an agent of your own"),
}
NEEDED = ("tyro", "rich", "matplotlib")
"""What every command uses; ``train`` asks for more."""

PRESETS: dict[str, Callable[[], Rules]] = {
    "default": Rules,
    "standard_hearts": Rules.standard_hearts,
    "omnibus": Rules.omnibus,
}

SUCCESS, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status.

    Args:
        argv: the command and its arguments, those of the process if not given.
    """
    name, *arguments = [*(sys.argv[1:] if argv is None else argv)] or ["--help"]
    if name in ("-h", "--help"):
        print(_usage())
        return SUCCESS
    if name not in COMMANDS:
        return _fail(f"unknown command {name!r}, there are {', '.join(COMMANDS)}", USAGE)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # so that "module:attr" finds an agent in the folder one is in
    try:
        return _run(name, arguments)
    except (DnfhError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(name: str, arguments: list[str]) -> int:
    command = COMMANDS[name]
    try:
        for library in NEEDED:
            importlib.import_module(library)
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in ("agents", "dnfh_env"):
            raise
        return _fail(f"dnfh {name} needs {error.name}, which is not installed: pip install 'dnfh[{command.extra}]'")
    import tyro

    # a command with presets says what the one on the command line makes of the defaults
    preset = {"default": module.defaults(arguments)} if hasattr(module, "defaults") else {}
    parsed = tyro.cli(
        getattr(module, command.arguments), prog=f"dnfh {name}", args=arguments, description=module.__doc__, **preset
    )
    status = getattr(module, command.function)(parsed)
    return SUCCESS if status is None else int(status)


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: dnfh COMMAND [ARGUMENTS], dnfh COMMAND --help", "", *lines])


def _fail(message: str, status: int = FAILURE) -> int:
    print(f"error: {message}", file=sys.stderr)
    return status


def load_rules(text: str) -> Rules:
    """Rules from the name of a preset in `PRESETS`, or from a JSON file with fields of `Rules`.

    Raises ``OSError`` if there is no such file, `RulesError` if it holds something else.
    """
    if text in PRESETS:
        return PRESETS[text]()
    try:
        with open(text, encoding="utf-8") as file:
            return Rules.from_dict(json.load(file))
    except FileNotFoundError:
        raise RulesError(f"rules: {text!r} is neither a file nor one of {', '.join(PRESETS)}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RulesError(f"rules: {text} is not JSON: {error}") from error
