"""Morse code: letters are set apart by a blank, words by a slash between blanks."""

CODES = {
    "A": ".-", "B": "-...", "C": "-.-.", "D": "-..", "E": ".", "F": "..-.", "G": "--.",
    "H": "....", "I": "..", "J": ".---", "K": "-.-", "L": ".-..", "M": "--", "N": "-.",
    "O": "---", "P": ".--.", "Q": "--.-", "R": ".-.", "S": "...", "T": "-", "U": "..-",
    "V": "...-", "W": ".--", "X": "-..-", "Y": "-.--", "Z": "--..",
    "0": "-----", "1": ".----", "2": "..---", "3": "...--", "4": "....-",
    "5": ".....", "6": "-....", "7": "--...", "8": "---..", "9": "----.",
}
CHARACTERS = {code: character for character, code in CODES.items()}


def decode(signals):
    """The text of a line of Morse code, in capitals; what is no known code becomes a question mark."""
    words = signals.strip().split("/")
    return " ".join("".join(CHARACTERS.get(code, "?") for code in word.split()) for word in words)


def encode(text):
    """A text as Morse code; characters without a code are left out, and words of nothing else too."""
    words = []
    for word in text.upper().split():
        codes = [CODES[character] for character in word if character in CODES]
        if codes:
            words.append(" ".join(codes))
    return "/".join(words)