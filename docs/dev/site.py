#!/usr/bin/env python3
"""Builds the documentation site with MkDocs, from the pages where they are.

    docs/dev/site.py [--out=build/docs] [--list] [--root=TREE]

The pages of the navigation (docs/dev/site.yml), what they link to, and so on, are laid into a folder as they lie in the
tree, so that links between them hold; a source file that a page links to becomes a file of the site. A page of docs that no
entry names stands below "Others". A link that leads nowhere and a heading that is not there are errors.
--list prints the pages and builds nothing.
"""
import argparse
import importlib.util
import logging
import pathlib
import re
import shutil
import sys
import tempfile

FENCED = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
PROGRAM = re.compile(r"\A```\n((?:[ \t]*#.*\n)*(?:kernel|fn) )")  # a block that begins with a definition
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def matches(root, pattern):
    found = sorted(root.glob(pattern))
    if not found:
        raise SystemExit(f"error: the navigation names {pattern}, which is not there")
    return [str(page.relative_to(root)) for page in found]


def with_files(root, nav):
    """The navigation with each pattern in the place of the files that it matches."""
    if isinstance(nav, dict):
        return {title: with_files(root, entry) for title, entry in nav.items()}
    if isinstance(nav, str):
        return matches(root, nav)[0]
    return [one for entry in nav
            for one in (matches(root, entry) if isinstance(entry, str) else [with_files(root, entry)])]


def pages_of(nav):
    """The names of the navigation's pages."""
    if isinstance(nav, str):
        yield nav
    for entry in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from pages_of(entry)


def links_of(page):
    """What it links to in this tree, outside of code: pages, other files, and folders."""
    for _, target, _ in LINK.findall(FENCED.sub("", page.read_text())):
        yield target, (page.parent / target).resolve()


def reached(root, pages):
    """These pages and all files that one comes to from them, with the README.md of a folder for the folder."""
    found, open_ = {}, list(pages)
    while open_:
        file = open_.pop()
        if file in found:
            continue
        found[file] = True
        if file.suffix != ".md":
            continue
        for _, target in links_of(file):
            if target.is_dir() and (target / "README.md").is_file():
                target /= "README.md"
            if target.is_file() and target.is_relative_to(root):
                open_.append(target)
    return sorted(found)


def colour_programs(root):
    """Gives Pygments the lexer of the Python package, which need not be installed."""
    place = root / "python/tegula/pygments_lexer.py"
    if not place.is_file():
        return
    from pygments import lexers
    spec = importlib.util.spec_from_file_location("pygments_lexer", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    one = module.TegulaLexer
    lexers.LEXERS[one.__name__] = (place.stem, one.name, tuple(one.aliases), tuple(one.filenames), ())
    lexers._lexer_cache[one.name] = one


def lay(root, files, folder):
    """Copies them. A link to a folder leads to its README.md, or is text where it has none."""
    for file in files:
        place = folder / file.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, place)
            continue

        def follow(link, page=file):
            target = (page.parent / link[2]).resolve()
            if not target.is_dir():
                return link[0]
            return f"[{link[1]}]({link[2].rstrip('/')}/README.md)" if (target / "README.md").is_file() else link[1]

        parts = re.split(r"(^```.*?^```)", file.read_text(), flags=re.M | re.S)
        parts[::2] = [LINK.sub(follow, part) for part in parts[::2]]
        parts[1::2] = [PROGRAM.sub(r"```tegula\n\1", part) for part in parts[1::2]]
        place.write_text("".join(parts))


def colours():
    """Style sheet of coloured code, on light and dark ground."""
    from pygments.formatters import HtmlFormatter
    light = HtmlFormatter(style="default").get_style_defs(".codehilite")
    dark = HtmlFormatter(style="monokai").get_style_defs("[data-bs-theme=dark] .codehilite")
    return f"{light}\n{dark}\n"


def slug(text, _separator):
    """The anchor of a heading, as hosts of Markdown make it (docs/dev/check_links.py)."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def build(root, settings, out, files, nav):
    from mkdocs import exceptions
    from mkdocs.commands import build as command
    from mkdocs.config import load_config
    with tempfile.TemporaryDirectory() as folder:
        colour_programs(root)
        lay(root, files, pathlib.Path(folder))
        pathlib.Path(folder, "code.css").write_text(colours())
        with settings.open("rb") as text:
            config = load_config(text, docs_dir=folder, site_dir=str(out), strict=True, nav=nav, extra_css=["code.css"])
        config.mdx_configs["toc"] = {"slugify": slug, "permalink": True}
        try:
            command.build(config)
        except exceptions.MkDocsException as error:
            raise SystemExit(f"error: {error}") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    try:
        import mkdocs  # noqa: F401
        import yaml
    except ModuleNotFoundError as error:
        raise SystemExit(f"error: {sys.executable} has no {error.name}: `./dev docs` installs what the site needs") from None
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    root, out = args.root.resolve(), (args.out or args.root / "build/docs").resolve()
    settings = root / "docs/dev/site.yml"
    nav = with_files(root, yaml.safe_load(settings.read_text())["nav"])
    pages = {str(page.relative_to(root)) for folder in ("docs", "docs/design") for page in (root / folder).glob("*.md")}
    if others := sorted(pages - set(pages_of(nav))):
        nav.append({"Others": others})
    files = reached(root, [root / name for name in pages_of(nav)])
    pages = [file for file in files if file.suffix == ".md"]
    if args.list:
        print("\n".join(str(page.relative_to(root)) for page in pages))
        return 0
    build(root, settings, out, files, nav)
    print(f"{out}/index.html: {len(pages)} pages, {len(files) - len(pages)} files that they link to")
    return 0


if __name__ == "__main__":
    sys.exit(main())
