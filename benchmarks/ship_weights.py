"""Put the policy of a training run into the package as the agent ``learned``: ``make weights RUN=runs/long/best``.

Only what is needed to play is kept: the weights from observation to logits, with rules, settings and figures.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from agents.learned.checkpoint import load, save
from agents.learned.policy import WEIGHTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a checkpoint")
    found = load(parser.parse_args().run)
    names = {f"{layer}.{kind}" for layer in found.actor for kind in ("weight", "bias")}
    actor = {name: tensor for name, tensor in found.parts["policy"].items() if name in names}
    history = found.training["history"][-1:]
    for path in WEIGHTS.glob("*"):
        path.unlink()
    save(WEIGHTS, dataclasses.replace(found, parts={"policy": actor}, training={**found.training, "history": history}))
    print(f"{WEIGHTS}: {sum(path.stat().st_size for path in WEIGHTS.iterdir()):,} bytes")


if __name__ == "__main__":
    main()
