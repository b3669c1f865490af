"""The program behind `apart`: on stdin `[command, root, environment]` as JSON, on stdout the verdict as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path


def main() -> None:
    from constrained_agent.tools.commands.classify import classify

    command, root, environment = json.load(sys.stdin)
    verdict = classify(command, None if root is None else Path(root), environment)
    print(json.dumps(asdict(verdict)))  # noqa: T201 (this is the answer)
