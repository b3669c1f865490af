"""The pages and their index."""

import html

from site_builder import txt


def paths(titles):
    """Where each page is written, by title order."""
    return [f"notes/{name}/index.html" for name in txt.distinct(titles)]


def index(titles):
    """The list of links on the front page."""
    names = txt.distinct(titles)
    links = [f'<li><a href="/notes/{name}/">{html.escape(title)}</a>' for name, title in zip(names, titles)]
    return "\n".join(["<ul>", *links, "</ul>"])
