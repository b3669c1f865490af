"""`generate --edit` for real: the embedded model writes a patch of files here, and it lands."""

import json
import os
import subprocess
import sys
from pathlib import Path

from constrained_agent.patch import UpdateFile, parse

FILES = {
    "README": "Areas and volumes.\n",
    "area.py": """\
def area(width, height):
    if width < 0:
        raise ValueError(width)
    return width + height


def volume(width, height, depth):
    if width < 0:
        raise ValueError(width)
    return area(width, height) * depth
""",
}


def cli(*arguments, cwd, **more):
    return subprocess.run(
        [sys.executable, "-m", "constrained_agent", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "XDG_STATE_HOME": str(cwd.parent / "state"),
        },
        **more,
    )


def test_a_patch_of_a_real_file_lands(tmp_path):
    """The small model may change the wrong line; but what it changes is a line of the file, and it can be applied."""
    repo = tmp_path / "repo"
    repo.mkdir()
    for name, text in FILES.items():
        (repo / name).write_text(text)
    flags = ["--model", "smollm2-135m", "--temperature", "0", "--max-tokens", "64", "--json"]
    prompt = "In area.py, area must multiply width and height."
    done = cli("generate", *flags, "--prompt", prompt, "--edit", "README", "--edit", "area.py", cwd=repo)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["complete"]
    assert result["tokens"] <= 64
    sections = parse(result["text"], lenient=False).patch.sections
    updated = {section.path for section in sections if isinstance(section, UpdateFile)}
    assert updated
    assert updated <= {"area.py", "README"}
    applied = cli("patch", "--json", cwd=repo, input=result["text"])
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert {path.name: path.read_text() for path in repo.iterdir()} != FILES
