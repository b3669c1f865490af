"""Lines of a printed concert programme: “Title”, 1890–1895 — Composer."""

OPENING, CLOSING = "“", "”"
ELLIPSIS = "…"
MAX_TITLE = 60  # what fits on one line of the folded sheet, 90 mm wide


def quoted(title):
    """A title in “double” marks; marks inside it become ‘single’ ones."""
    # Orchestras send titles from their own leaflets, where they’re already “curly”.
    inner = title.replace("“", "‘").replace("”", "‘")
    return OPENING + inner + CLOSING


def shortened(title):
    """A title that fits on the sheet, cut at a word and ended with “…”."""
    if len(title) <= MAX_TITLE:
        return title
    cut = title[: MAX_TITLE - len(ELLIPSIS)]
    return cut.rsplit(" ", 1)[0].rstrip(" ,;:–—") + ELLIPSIS


def years(first, last=None):
    """“1890–1895”, or “1890” if the work was written within one year."""
    # An en dash without blanks: the em dash — with blanks — stands before the composer.
    if last is None or last == first:
        return f"{first}"
    return f"{first}–{last}"


def line(title, composer, first, last=None):
    """One work, e.g. “Songs of the Harbour”, 1890–1891 — Inga Söderström."""
    return f"{quoted(shortened(title))}, {years(first, last)} — {composer}"
