#!/usr/bin/env python3
"""The tree-sitter grammar of editors/tree-sitter-tegula is the language, its trees are those of its test/corpus, and its queries fit.

It has an error where the parser has one: for each program of the repository, wrong ones among them, for texts made up from the
grammar, and for programs with a token changed. Exit code 77 where the Python package tree_sitter is not installed.
"""
import argparse
import ctypes
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

try:
    import tree_sitter
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)
from check_grammar import Check, Gbnf, mutants

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "editors/tree-sitter-tegula"


def load(compiler):
    """The language of src/parser.c."""
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "parser.so"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-I", FOLDER / "src", "-o", library, FOLDER / "src/parser.c"], check=True)
        function = ctypes.CDLL(str(library)).tree_sitter_tegula
    function.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return tree_sitter.Language(capsule(function(), b"tree_sitter.Language", None))


class Reader:
    name = "tree-sitter"

    def __init__(self, language):
        self.parser = tree_sitter.Parser(language)
        # Words that are never names: where none of them can stand tree-sitter takes them as names.
        grammar = (ROOT / "dsl/Tegula.g4").read_text()
        reserved = grammar.split("// Words of the language.")[1].split("// Words of the language that")[0]
        words = " ".join(f'"{word}"' for word in re.findall(r"'(\w+)'", reserved))
        self.reserved = tree_sitter.Query(language, f"((identifier) @name (#any-of? @name {words}))")

    def tree(self, text):
        return self.parser.parse(text.encode()).root_node

    def accepts(self, text):
        tree = self.tree(text)
        return not tree.has_error and not tree_sitter.QueryCursor(self.reserved).captures(tree)


def programs():
    names = subprocess.run(["git", "ls-files", "-z", "*.tgl"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [(ROOT / name).read_bytes().decode() for name in names if name]


def check_corpus(reader):
    """Files in the form of `tree-sitter test`: names, texts and trees."""
    count = 0
    for path in sorted((FOLDER / "test/corpus").glob("*.txt")):
        cases = re.split(r"^=+\n(.*)\n=+\n", path.read_text(), flags=re.M)[1:]
        for name, case in zip(cases[::2], cases[1::2]):
            text, tree = re.split(r"^---\n", case, flags=re.M)
            wanted = re.sub(r"\s+\)", ")", " ".join(tree.split()))
            found = str(reader.tree(text.strip() + "\n"))
            assert found == wanted, f"{path.name}, {name}: expected\n{wanted}\nfound\n{found}"
            count += 1
    assert count > 10, count
    return count


def check_queries(language, reader):
    """They compile; each word and sign has a colour, and some names have theirs."""
    queries = {path.name: tree_sitter.Query(language, path.read_text()) for path in (FOLDER / "queries").glob("*.scm")}
    assert {"highlights.scm", "locals.scm", "folds.scm", "indents.scm"} == queries.keys(), queries.keys()
    text = (FOLDER / "queries/highlights.scm").read_text()
    plain = [node["type"] for node in json.loads((FOLDER / "src/node-types.json").read_text()) if not node["named"]]
    assert len(plain) > 50, plain
    for one in plain:
        assert f'"{one}"' in text, f"highlights.scm has no colour for {one}"
    tree = reader.tree("kernel k(x: f32[N], c: T) -> (y: f32[N]) { y[i] = max(x[i], c) + inf; max max= gelu(state) }")
    colours = {}
    for capture, nodes in tree_sitter.QueryCursor(queries["highlights.scm"]).captures(tree).items():
        for node in nodes:
            colours.setdefault((node.start_byte, node.text.decode()), set()).add(capture)
    found = [(word, captures) for (_, word), captures in sorted(colours.items())]
    for word, capture in (("kernel", "keyword.function"), ("k", "function"), ("f32", "type.builtin"), ("c", "variable.parameter"),
                          ("T", "type"), ("max", "function.builtin"), ("max", "variable"), ("max", "keyword.operator"),
                          ("inf", "constant.builtin"), ("gelu", "function.call"), ("state", "variable"), ("+", "operator")):
        assert any(word == other and capture in captures for other, captures in found), (word, capture, found)
    assert ("max", {"keyword.operator"}) in found and ("state", {"variable"}) in found, found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tegula", required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    subprocess.run([sys.executable, ROOT / "editors/treesitter.py", "--check"], check=True)
    language = load(options.compiler)
    reader = Reader(language)
    print(f"{check_corpus(reader)} trees")
    check_queries(language, reader)

    choose, check = random.Random(options.seed), Check(options.tegula)
    texts = programs()
    check.run("programs", texts, [reader])
    own = Gbnf(subprocess.run([options.tegula, "grammar", "--format=gbnf"], check=True, capture_output=True, text=True).stdout)
    check.run("sampled", [own.sample(choose) for _ in range(options.samples)], [reader], must=True)
    check.run("changed", list(mutants([text for text in texts if len(text) < 700], options.mutants, choose)), [reader])
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.setrecursionlimit(1 << 16)
    sys.exit(main())
