#!/usr/bin/env python3
"""docs/dev/site.py builds the site strictly: every link in its HTML leads somewhere, nothing is loaded from elsewhere, and a
broken link is an error. Exit code 77 where MkDocs is missing (scripts/requirements-docs.txt).
"""
import collections
import html.parser
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

TREE = pathlib.Path(__file__).resolve().parents[2]


def site(*arguments):
    return subprocess.run([sys.executable, TREE / "docs/dev/site.py", *arguments], capture_output=True, text=True)


class Page(html.parser.HTMLParser):
    """What a page links to and loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], collections.Counter()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.anchors[told.get("id")] += 1
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])
        elif tag in ("script", "img", "iframe") and told.get("src"):
            self.loaded.append(told["src"])
        elif tag == "link" and told.get("rel") != "canonical":
            self.loaded.append(told["href"])


class Site(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name, "out")
        self.root = pathlib.Path(folder.name, "tree")

    def test_of_this_tree(self):
        done = site(f"--out={self.out}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        pages = {path: Page(path) for path in self.out.rglob("*.html") if path.name != "404.html"}
        listed = site("--list").stdout.split()
        self.assertEqual(len(pages), len(listed))
        self.assertLess({"README.md", "dsl/SPEC.md", "docs/c-api.md", "docs/environment.md", "docs/design/ir.md"}, set(listed))
        self.assertRegex((self.out / "index.html").read_text(), r'<span class="k">kernel</span><span class="w"> </span>'
                         r'<span class="nf">linear_gelu</span>')  # programs are coloured
        for path, page in pages.items():
            for link in [*page.links, *page.loaded]:
                address = urllib.parse.urlsplit(link)
                if address.scheme:
                    self.assertNotIn(link, page.loaded, path)
                    continue
                target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
                self.assertTrue(target.is_file(), f"{path}: {link}")
                if address.fragment and target in pages:
                    self.assertIn(urllib.parse.unquote(address.fragment), pages[target].anchors, f"{path}: {link}")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def make_tree(self):
        self.write("docs/dev/site.yml", "site_name: Small\ntheme: {name: mkdocs, highlightjs: false}\nuse_directory_urls: false\n"
                   "validation: {anchors: warn, unrecognized_links: warn, omitted_files: ignore}\n"
                   "nav: [README.md, {Design: [docs/design/*.md]}]\n")
        self.write("README.md", "# Small\n\n[source](src/a.h), [folder](src), [no page](docs), [other](docs/b.md#a-heading--here)\n\n"
                   "```\n[no link](nowhere.md)\n```\n")
        self.write("src/README.md", "# Sources\n")
        self.write("src/a.h", "int a;\n")
        self.write("docs/b.md", "# B\n\n## A heading, & here\n")
        self.write("docs/design/c.md", "# C\n")

    def test_of_a_small_tree(self):
        self.make_tree()
        done = site(f"--root={self.root}", f"--out={self.out}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("4 pages, 1 files", done.stdout)
        text = (self.out / "index.html").read_text()
        for part in ('href="src/a.h"', 'href="src/index.html"', 'href="docs/b.html#a-heading--here"', ", no page,", "Others"):
            self.assertIn(part, text)
        self.assertEqual((self.out / "src/a.h").read_text(), "int a;\n")

    def test_of_links_that_lead_nowhere(self):
        for text in ("[gone](docs/gone.md)", "[gone](docs/b.md#gone)", "[gone](src/gone.h)"):
            self.make_tree()
            self.write("README.md", f"# Small\n\n{text}\n")
            done = site(f"--root={self.root}", f"--out={self.out}")
            self.assertEqual(done.returncode, 1, text)
            self.assertIn("gone", done.stderr)

    def test_of_a_navigation_that_names_no_page(self):
        self.make_tree()
        (self.root / "docs/design/c.md").unlink()
        done = site(f"--root={self.root}", f"--out={self.out}")
        self.assertEqual((done.returncode, done.stderr), (1, "error: the navigation names docs/design/*.md, which is not there\n"))


if __name__ == "__main__":
    if not importlib.util.find_spec("mkdocs"):
        print("skipped: no mkdocs; ./dev setup and ./dev docs install it")
        sys.exit(77)
    unittest.main()
