"""Why something may not stand at a place of a located patch, and what its writer has probably meant."""

from __future__ import annotations

from constrained_agent.grammar.located.likeness import nearest
from constrained_agent.grammar.located.offer import MAX_ADDED_LINES, MAX_NEW_FILES
from constrained_agent.grammar.located.place import ADD, MOVE, NAMING, Here, Spot, numbers, shown
from constrained_agent.grammar.located.progress import Adding, Header


def hint(here: Here) -> str:
    """A likely cause of a refusal; empty if none is known or nothing was refused."""
    if here.found is None:
        return ""
    for key in (ADD, MOVE):
        if here.line.startswith(key):
            return _new_path_hint(here, key)
    may_end = here.spot is None or here.fixed
    if may_end and (key := next((key for key in NAMING if here.found.startswith(key)), "")):
        return _file_hint(here, key)
    if may_end and here.found.startswith(ADD) and here.n_new == MAX_NEW_FILES:
        return f"a located patch adds at most {MAX_NEW_FILES} files"
    if here.spot is not None:
        return _hunk_hint(here, here.spot, here.found)
    if isinstance(here.progress.place, Adding) and here.found.startswith("+"):
        return f"a new file has at most {MAX_ADDED_LINES:,} lines in a located patch"
    return ""


def _file_hint(here: Here, key: str) -> str:
    path = here.path_found(key) or ""
    if path in here.named:
        return "" if here.line.startswith(key) else f"{path} is named above, and a patch names each file once"
    if trouble := here.folder.trouble(path):
        return trouble
    return "" if here.line.startswith(key) else f"no other file {here.folder.where} can be named"


def _new_path_hint(here: Here, key: str) -> str:
    accepted = here.line[len(key) :]
    if accepted in here.progress.located.new_paths.files:
        if here.path_found(key) == accepted:
            return f"to change {accepted}, write {NAMING[0]}{accepted}"
        return f"nothing new goes below {accepted}: it is no folder, or one that other programs fill"
    if here.taken(accepted):
        return ""
    return (
        "new paths are relative to the root, with / between their parts; a part is not ., .. or .git, has at most 84 "
        'characters and none of \\ : * ? " < > | ! ; ` in it, begins with a letter, a digit or one of . _ @ + $ ( [ {, '
        "and no path differs in case alone from one that stands there"
    )


def _hunk_hint(here: Here, spot: Spot, found: str) -> str:
    line = here.line
    if line.startswith((" ", "-")):
        return _old_line_hint(spot, line[1:], found[1:])
    if found.startswith("+"):
        return f"a hunk adds at most {MAX_ADDED_LINES:,} lines in a located patch"
    if line.startswith("@@"):
        return "nothing follows @@ here: the old lines of a located hunk say where it is"
    if isinstance(here.progress.place, Header) and found.startswith("*"):
        return f"the update of {spot.path} does nothing yet: it needs a hunk or a *** Move to: line"
    if line.startswith("*") and not here.fixed:
        places = (
            f"the old lines stand at {numbers(spot.starts)} so far"
            if spot.n_old
            else "no old line stands here"
        )
        return (
            f"{places}: more of them make the place clear, or *** End of File says that the last one is meant"
        )
    if found.startswith("@") and here.fixed:
        return f"{spot.path} has no line for another hunk below this one"
    if not found:
        return 'an empty line, too, is written with its " ", "-" or "+" in front'
    if not line and any(text.strip() == found.strip() for _, text in spot.next_lines):
        return 'an old line has " " or "-" in front, and then all blanks that it has in the file'
    return ""


def _old_line_hint(spot: Spot, accepted: str, found: str) -> str:
    """Where the line stands that may not stand here, or which line it is probably meant to be."""
    at = [number for number, text in enumerate(spot.lines) if text == found]
    if not at:
        following = {text: number for number, text in reversed(spot.next_lines)}
        likely = next(iter(nearest(list(following), found)), "")
        if not likely or likely.startswith(accepted):
            return ""
        alone = ", in blanks alone" if "".join(likely.split()) == "".join(found.split()) else ""
        return f"line {following[likely]} of {spot.path} differs{alone}: {shown(likely)}"
    where = f"that is {numbers([number + 1 for number in at])} of {spot.path}"
    if all(number < spot.hunk.start for number in at):
        return f"{where}, but the hunk before ends at line {spot.hunk.start}: hunks stand in the order of the file"
    if not spot.n_old:
        return ""
    return f"{where}, which does not follow: give all lines in between, or begin another hunk with @@"
