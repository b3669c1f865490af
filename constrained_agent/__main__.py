"""`python -m constrained_agent` and the `constrained-agent` script."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    from constrained_agent.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
