"""Measure agents on duplicate deals: ``python evaluate.py --help``. The same as ``dnfh evaluate`` where installed."""

import sys

from agents.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
