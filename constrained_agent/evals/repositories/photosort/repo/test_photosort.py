import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "photosort.sh"


class PhotoSort(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = pathlib.Path(folder.name)

    def sort(self, card, album, names):
        (self.base / card).mkdir(exist_ok=True)
        for name in names:
            (self.base / card / name).write_text(f"picture {name}", encoding="utf-8")
        return subprocess.run(
            ["sh", str(SCRIPT), card, album], cwd=self.base, capture_output=True, text=True, check=False
        )

    def tree(self, album):
        root = self.base / album
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def test_plain_names(self):
        done = self.sort("card", "album", ["2023-07-14.jpg", "2024-01-02-b.jpg", "notes.txt"])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "2 copied, 0 skipped, 1 ignored\n", ""))
        self.assertEqual(self.tree("album"), ["2023/07/2023-07-14.jpg", "2024/01/2024-01-02-b.jpg"])

    def test_names_with_spaces_and_stars(self):
        names = ["2023-07-14 Lake at dawn.jpg", "2023-07-15 two  blanks.jpg", "2023-08-01 five * hotel.jpg", "a b.txt"]
        done = self.sort("card", "album", names)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "3 copied, 0 skipped, 1 ignored\n", ""))
        self.assertEqual(self.tree("album"), [f"2023/{name[5:7]}/{name}" for name in names[:3]])
        copy = self.base / "album/2023/07/2023-07-15 two  blanks.jpg"
        self.assertEqual(copy.read_text(encoding="utf-8"), "picture 2023-07-15 two  blanks.jpg")

    def test_folders_with_spaces(self):
        done = self.sort("my card", "our album", ["2023-07-14 x.jpg"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(path.name for path in self.base.iterdir()), ["my card", "our album"])
        self.assertEqual(self.tree("our album"), ["2023/07/2023-07-14 x.jpg"])

    def test_nothing_is_overwritten(self):
        self.sort("card", "album", ["2023-07-14 x.jpg"])
        kept = self.base / "album/2023/07/2023-07-14 x.jpg"
        kept.write_text("edited", encoding="utf-8")
        done = self.sort("card", "album", ["2023-07-14 x.jpg", "2023-07-14 y.jpg"])
        self.assertEqual((done.returncode, done.stdout), (0, "1 copied, 1 skipped, 0 ignored\n"))
        self.assertEqual(kept.read_text(encoding="utf-8"), "edited")

    def test_an_empty_card(self):
        done = self.sort("card", "album", [])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 copied, 0 skipped", done.stdout)

    def test_wrong_calls(self):
        done = subprocess.run(["sh", str(SCRIPT), "x"], cwd=self.base, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        done = subprocess.run(["sh", str(SCRIPT), "x", "y"], cwd=self.base, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
