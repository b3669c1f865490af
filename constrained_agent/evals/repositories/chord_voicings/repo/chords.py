"""Chords as lists of MIDI note numbers (60 is middle C)."""

OCTAVE = 12

QUALITIES = {
	"": (0, 4, 7),
	"m": (0, 3, 7),
	"7": (0, 4, 7, 10),
	"maj7": (0, 4, 7, 11),
	"9": (0, 4, 7, 10, 14),
	"add9": (0, 4, 7, 14),
}


def chord(root, quality=""):
	"""The notes of a chord in root position, lowest first."""
	if quality not in QUALITIES:
		known = ", ".join(repr(name) for name in QUALITIES)
		raise ValueError(f"unknown chord quality {quality!r}; known are {known}")
	return [root + step for step in QUALITIES[quality]]


def invert(notes, times=1):
	"""Lift the lowest note by octaves until it lies above all others, and do so again as often as asked."""
	voicing = sorted(notes)
	for _ in range(times):
		lifted = voicing.pop(0)
		if voicing:
			lifted += OCTAVE
		voicing.append(lifted)
	return voicing


def drop(notes, voice):
	"""Put one voice, counted from the top, an octave lower (a drop-2 voicing for 2)."""
	voicing = sorted(notes)
	if not 1 <= voice <= len(voicing):
		raise ValueError(f"there is no voice {voice} among {len(voicing)} notes")
	lowered = voicing.pop(-voice)
	if voicing:
		lowered -= OCTAVE
	return sorted([lowered, *voicing])


def transpose(notes, semitones):
	"""All notes up, or down for negative numbers; none may leave the range of MIDI."""
	moved = [note + semitones for note in notes]
	if moved and not (min(moved) >= 0 and max(moved) <= 127):
		raise ValueError(f"{semitones:+d} semitones lead out of the range 0 to 127")
	return moved
