"""The feed of new notes."""

from xml.sax.saxutils import escape

from site_builder.txt import slug


def entry(title, summary, base="https://example.org"):
    """One entry of the feed, as XML."""
    address = f"{base}/notes/{slug(title)}/"
    return (
        f"<entry><id>{address}</id><title>{escape(title)}</title>"
        f"<summary>{escape(summary)}</summary></entry>"
    )
