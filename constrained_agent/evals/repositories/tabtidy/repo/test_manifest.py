import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def placeholders(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


class Manifest(unittest.TestCase):
    def setUp(self):
        self.manifest = json.loads(text_of("manifest.json"))

    def test_version_and_locales(self):
        self.assertEqual(self.manifest["version"], "1.9.0")
        self.assertEqual(self.manifest["locales"], ["en", "de", "nl"])

    def test_the_rest_is_as_it_was(self):
        self.assertEqual(
            list(self.manifest),
            "name version description license main files permissions commands engines default_locale locales".split(),
        )
        self.assertEqual(self.manifest["permissions"], ["tabs", "storage", "alarms"])
        self.assertEqual(self.manifest["files"], ["src", "icons", "locales"])
        self.assertEqual(self.manifest["engines"], {"browser": ">=109"})
        self.assertEqual(self.manifest["commands"]["sweep"], {"keys": "Ctrl+Shift+S", "label": "command_sweep"})

    def test_the_layout_is_kept(self):
        self.assertEqual(text_of("manifest.json").rstrip("\n"), json.dumps(self.manifest, indent=2))

    def test_every_locale_is_whole(self):
        english = json.loads(text_of("locales/en.json"))
        self.assertEqual(sorted(path.stem for path in ROOT.glob("locales/*")), sorted(self.manifest["locales"]))
        for locale in self.manifest["locales"]:
            with self.subTest(locale):
                texts = json.loads(text_of(f"locales/{locale}.json"))
                self.assertEqual(list(texts), list(english))
                for key, text in texts.items():
                    self.assertTrue(text.strip(), key)
                    self.assertEqual(placeholders(text), placeholders(english[key]), key)
                    if locale != "en" and key != "name":
                        self.assertNotEqual(text, english[key], key)

    def test_shortcuts_have_labels(self):
        english = json.loads(text_of("locales/en.json"))
        for command in self.manifest["commands"].values():
            self.assertIn(command["label"], english)


if __name__ == "__main__":
    unittest.main()
