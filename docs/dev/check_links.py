#!/usr/bin/env python3
"""Says which relative links of the repository's pages lead nowhere: to no file, or to no heading of it. Says too which
source files they name that do not exist.

    docs/dev/check_links.py

Exit code 1 where there are any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
# A file named from the root, such as `codegen/ptx/Ptx.cpp`.
FILE = re.compile(r"(?<![\w./<-])(?:bench|codegen|compiler|docs|driver|dsl|examples|frontend|ir|passes|python|runtime|scripts|strategies|support|symbolic|target|test)/[\w./-]+"
                  r"\.(?:cpp|h|td|def|py|mlir|test|tgl|md|g4)\b")
# Of a pass that a page makes. A name in capitals, `test/rejected/CODE.tgl`, stands for any.
EXAMPLES = {"passes/simplify/FoldSigns.cpp", "test/passes/fold-signs.mlir", "passes/tile/FoldSigns.cpp",
            "test/passes/tile-fold-signs.mlir"}
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
        text = FENCED.sub("", page.read_text())
        # The changelog tells of files that were, results of those of their commit.
        if page.name != "CHANGELOG.md" and page.parent.name != "results":
            broken += [f"{page.relative_to(ROOT)}: there is no {name}" for name in FILE.findall(text)
                       if not ((ROOT / name).exists() or name in EXAMPLES or pathlib.Path(name).stem.isupper())]
        for path, anchor in LINK.findall(text):
            target = page.parent / path if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {path} does not exist")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: {path} has no heading {anchor}")
    print("\n".join(broken) if broken else f"{len(pages)} pages, no broken link, no file that is not there")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
