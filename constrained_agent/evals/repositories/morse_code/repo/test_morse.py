import unittest

from morse import decode, encode


class Encode(unittest.TestCase):
    def test_one_word(self):
        self.assertEqual(encode("sos"), "... --- ...")
        self.assertEqual(encode(""), "")

    def test_words(self):
        self.assertEqual(encode("go on 2"), "--. --- / --- -. / ..---")

    def test_characters_without_a_code(self):
        self.assertEqual(encode("it's - ok!"), ".. - ... / --- -.-")
        self.assertEqual(encode("?!"), "")


class Decode(unittest.TestCase):
    def test_words(self):
        self.assertEqual(decode("--. --- / --- -. / ..---"), "GO ON 2")
        self.assertEqual(decode("--. ........"), "G?")

    def test_there_and_back(self):
        for text in ("E", "THE QUICK BROWN FOX", "A 1 B 2"):
            self.assertEqual(decode(encode(text)), text)


if __name__ == "__main__":
    unittest.main()
