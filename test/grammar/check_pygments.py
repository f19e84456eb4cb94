#!/usr/bin/env python3
"""The lexer for Pygments (python/tegula/pygments_lexer.py) has the words of dsl/Tegula.g4 and the types of the language, and
understands every program of the tree.
"""
import importlib.util
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]


def load():
    """Without the package, whose module may not be built."""
    spec = importlib.util.spec_from_file_location("pygments_lexer", TREE / "python/tegula/pygments_lexer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    if not importlib.util.find_spec("pygments"):
        print("skipped: no pygments; ./dev setup installs it")
        return 77
    from pygments.token import Error, Keyword, Name, Number, Operator, Punctuation
    lexing = load()
    lexer = lexing.TegulaLexer(stripnl=False, ensurenl=False)
    grammar = (TREE / "dsl/Tegula.g4").read_text()
    told = set(re.findall(r"^[A-Z]+ : '([a-z]+)' ;$", grammar, re.M))
    ours = {*lexing.KEYWORDS, *lexing.WORD_OPERATORS, *lexing.BUILTINS}
    assert told == ours, told ^ ours
    symbols = re.findall(r"^[A-Z]+ : '([^a-z']+)' ;$", grammar, re.M)
    for symbol in symbols:
        [(kind, text)] = list(lexer.get_tokens(symbol))
        assert text == symbol and (kind in Operator or kind in Punctuation), (symbol, kind, text)
    assert len(symbols) > 25, symbols
    types = set(re.findall(r'\{"(\w+)", \d+, (?:true|false)', (TREE / "ir/DTypes.cpp").read_text()))
    assert len(types) > 15 and types | {"int", "float"} == set(lexing.TYPES), types ^ set(lexing.TYPES)

    names = subprocess.run(["git", "ls-files", "-z", "dsl/*.tgl", "test/e2e/*.tgl", "bench/*.tgl", "examples/*.tgl"], cwd=TREE,
                           check=True, capture_output=True, text=True).stdout.split("\0")
    programs = [TREE / name for name in names if name]
    assert len(programs) > 200, len(programs)
    kernels = 0
    for program in programs:
        text = program.read_text()
        tokens = list(lexer.get_tokens(text))
        assert "".join(part for _, part in tokens) == text.replace("\r\n", "\n"), program
        wrong = [part for kind, part in tokens if kind in Error]
        assert not wrong, f"{program}: {wrong[:3]}"
        kernels += sum(kind is Name.Function for kind, _ in tokens)
    assert kernels >= len(programs) / 2, kernels

    line = [(kind, text) for kind, text in lexer.get_tokens("kernel k(x: f32[2*N]) { y = max(1.5e-3, 0xff) ? }") if text.strip()]
    for wanted in ((Keyword, "kernel"), (Name.Function, "k"), (Keyword.Type, "f32"), (Name.Builtin, "max"), (Number.Float, "1.5e-3"),
                   (Number.Hex, "0xff"), (Number.Integer, "2"), (Error, "?")):
        assert wanted in line, (wanted, line)
    print(f"{len(programs)} programs, {kernels} kernels and functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
