import pathlib
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "accesspoint.sh"


def printed(*arguments):
    done = subprocess.run(["sh", str(SCRIPT), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


class AccessPoint(unittest.TestCase):
    def test_radio(self):
        lines = ["# radio of Hut 7", "interface=wlan0", "ssid=Hut 7", "hw_mode=a", "channel=36", "max_num_sta=32"]
        self.assertEqual(printed("radio", "Hut 7", "36"), (0, [*lines, "ap_isolate=0"]))
        self.assertIn("hw_mode=g", printed("radio", "Hut 7", "6")[1])

    def test_lease(self):
        lines = ["interface=wlan0", "dhcp-range=10.20.0.50,10.20.0.150,12h", "dhcp-option=option:router,10.20.0.1"]
        self.assertEqual(printed("lease", "Hut", "1"), (0, ["# lease of Hut", *lines]))

    def test_guests(self):
        lines = ["# guests of Hut 7", "interface=wlan1", "ssid=Hut 7 guests", "hw_mode=g", "channel=6", "max_num_sta=8"]
        self.assertEqual(printed("guests", "Hut 7", "6"), (0, [*lines, "ap_isolate=1"]))

    def test_wrong_calls(self):
        self.assertEqual(printed("radio")[0], 2)
        self.assertEqual(printed("roof", "Hut", "1"), (2, []))

    def test_the_script_stays_indented_with_tabs(self):
        for number, line in enumerate(SCRIPT.read_text(encoding="utf-8").splitlines(), start=1):
            self.assertFalse(line.startswith(" "), f"line {number} begins with a space")


if __name__ == "__main__":
    unittest.main()
