import html.parser
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent
VOID = {"meta", "link", "br", "img"}


class Page(html.parser.HTMLParser):
    """Collects the links (where they stand, where they lead, text), ids and list items; checks the nesting."""

    def __init__(self, path):
        super().__init__()
        self.open, self.links, self.ids, self.items, self.problems = [], [], set(), [], []
        self.feed((ROOT / path).read_text(encoding="utf-8"))
        self.close()
        self.problems += [f"<{tag}> stays open" for tag, _ in self.open]

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a":
            nav = [name for name, name_values in self.open if name == "nav"]
            place = dict(self.open)["nav"].get("class") if nav else "text"
            self.links.append([place, values.get("href"), ""])
        if tag == "li":
            self.items.append("")
        if tag not in VOID:
            self.open.append((tag, values))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.problems.append(f"</{tag}> at line {self.getpos()[0]} closes nothing")
        else:
            self.open.pop()

    def handle_data(self, data):
        tags = [tag for tag, _ in self.open]
        if "li" in tags:
            self.items[-1] += data
        if "a" in tags:
            self.links[-1][2] += data


class Site(unittest.TestCase):
    def test_the_pages(self):
        pages = sorted(path.name for path in ROOT.glob("*.html"))
        self.assertEqual(pages, ["index.html", "prices.html", "summer.html"])

    def test_pages_are_well_nested(self):
        for path in ROOT.glob("*.html"):
            self.assertEqual(Page(path.name).problems, [], path.name)

    def test_links_lead_somewhere(self):
        for path in ROOT.glob("*.html"):
            for _, href, _ in Page(path.name).links:
                target, _, fragment = href.partition("#")
                self.assertTrue((ROOT / target).is_file(), f"{path.name}: {href}")
                if fragment:
                    self.assertIn(fragment, Page(target).ids, f"{path.name}: {href}")

    def test_the_menus(self):
        menu = [("index.html", "Today"), ("summer.html", "Timetable"), ("prices.html", "Prices")]
        links = Page("index.html").links
        for place in ("top", "bottom"):
            self.assertEqual([(href, text) for where, href, text in links if where == place], menu, place)

    def test_the_rest_is_there(self):
        page = Page("index.html")
        self.assertEqual([href for where, href, _ in page.links if where == "text"], ["prices.html#groups"])
        self.assertLessEqual({"today", "bicycles", "notices"}, page.ids)
        self.assertEqual(
            page.items[3:-3],
            ["The kiosk in Vik opens at 06:45.", "Lost things are kept until the end of the month."],
        )


if __name__ == "__main__":
    unittest.main()
