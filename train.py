"""Train a policy: ``python train.py --help``. The same as ``dnfh train``."""

import sys

from agents.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
