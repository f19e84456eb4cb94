#!/usr/bin/env python3
"""Says which relative links of the repository's pages lead nowhere: to no file, or to no heading of it.

    docs/dev/check_links.py

Exit code 1 where there are any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
IGNORED = {"build", ".venv", ".git", ".cache"}


def anchors(page):
    """The anchors that its headings have, as hosts of Markdown make them."""
    headings = re.findall(r"^#+ +(.*)$", FENCED.sub("", page.read_text()), re.M)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main():
    pages = [page for page in [*ROOT.rglob("*.md"), ROOT / "llms.txt"]
             if not IGNORED & {part.split("-")[0] for part in page.relative_to(ROOT).parts}]
    broken = []
    for page in pages:
        for path, anchor in LINK.findall(FENCED.sub("", page.read_text())):
            target = page.parent / path if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {path} does not exist")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: {path} has no heading {anchor}")
    print("\n".join(broken) if broken else f"{len(pages)} pages, no broken link")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
