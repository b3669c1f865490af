"""Reads the Makefile as far as it uses make's language, so that no make is needed."""

import pathlib
import re
import unittest

TEXT = (pathlib.Path(__file__).resolve().parent / "Makefile").read_text(encoding="utf-8")
RULE = re.compile(r"([^:=#\t]+):(?!=)([^=]*)")


def joined_lines():
    return re.sub(r"\\\n", " ", TEXT).splitlines()


def rules():
    """Target -> (prerequisites, commands). Raises ValueError where make would stop."""
    found, current = {}, None
    for number, line in enumerate(joined_lines(), 1):
        match = RULE.fullmatch(line)
        if line.startswith("\t"):
            if current is None:
                raise ValueError(f"line {number}: commands commence before first target")
            found[current][1].append(line[1:].strip())
        elif match and not line.startswith(" "):
            current = match[1].strip()
            if current in found and current != ".PHONY":  # of which make adds up all that there are
                raise ValueError(f"line {number}: a second rule for {current}")
            before = found[current][0] if current in found else []
            found[current] = ([*before, *match[2].split()], [])
        elif line.strip() and not re.match(r"#|\w+ :=", line):
            raise ValueError(f"line {number}: missing separator: {line!r}")
    return found


class Makefile(unittest.TestCase):
    def test_sheets(self):
        found = rules()
        self.assertEqual(found["$(OUT)/%.ps"][0], ["songs/%.abc", "style.fmt"])
        self.assertEqual(found["$(OUT)/%.ps"][1][1], "engrave -F style.fmt -o $@ $<")
        self.assertEqual(found["$(OUT)/%.pdf"], (["$(OUT)/%.ps"], ["@mkdir -p $(OUT)", "topdf $< $@"]))
        self.assertEqual(found["$(OUT)/book.pdf"][0], ["cover.pdf", "$(SHEETS)"])

    def test_sounds(self):
        prerequisites, commands = rules()["$(OUT)/%.mid"]
        self.assertEqual(prerequisites, ["songs/%.abc", "tempo.cfg"])
        self.assertEqual(commands, ["@mkdir -p $(OUT)", "sound -c tempo.cfg -o $@ $<"])

    def test_phony(self):
        found = rules()
        self.assertEqual(sorted(found[".PHONY"][0]), ["all", "book", "check", "clean", "sounds", "upload"])
        self.assertEqual(found["upload"], (["book"], ["send --to choir $(OUT)/book.pdf"]))
        self.assertEqual(found["all"][0], ["book", "sounds"])

    def test_the_rest(self):
        found = rules()
        self.assertEqual(found["clean"], ([], ["rm -rf $(OUT)"]))
        self.assertEqual(len(found["check"][1]), 1)
        self.assertTrue(found["check"][1][0].endswith("done"))
        self.assertIn("SONGS := aurora barcarole candle drift", joined_lines())


if __name__ == "__main__":
    unittest.main()
