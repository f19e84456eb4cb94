#!/usr/bin/env python3
"""Whether the grammars that `tegula grammar` prints accept what the parser accepts.

Programs of the repository, wrong ones among them; texts made up from the grammar; and programs with a token
too many, too few or another one. Exit code 77 where Lark is not installed; llguidance and xgrammar are left
out where they are not.
"""
import argparse
import glob
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import types

try:
    import lark
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)
import gbnf

# What the grammar does not decide: how deep a text may nest and how long it may be, that a file has a kernel...
LIMITS = {"E0105", "E0106", "E0107", "E0115"}
# ... and what is found in a text that the grammar has accepted: numbers that are too large, groups of groups.
LATER = {"E0108", "E0109", "E0310"}

TOKENS = re.compile(r"#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|[A-Za-z_][A-Za-z_0-9]*|[0-9]+\.(?!\.)[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+"
                    r"|0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+(?:[eE][+-]?[0-9]+)?|<<|>>|->|\.\.\.|\+=|//|\*\*|<=|>=|==|!=|[^\s]")
MORE = ["for", "in", "if", "and", "or", "not", "return", "kernel", "fn", "parallel", "state", "tiles",
        "precision", "schedule", "reverse", "deterministic", "distinct", "invariant", "inout", "where", "max", "min", "print", "assert",
        "(", ")", "[", "]", "{", "}", ",", ":", ";", "->", "...", "=", "+=", "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "~", "<<", ">>", "0x1f", "<", "==", "!=", "x", "7", "1.5",
        ".5", "'s'", "&&", "?", "."]


def parser_codes(tegula, texts):
    """For each text the codes of the parser's errors."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{i}.tgl") for i in range(len(texts))]
        for path, text in zip(paths, texts):
            with open(path, "w", newline="") as file:
                file.write(text)
        done = subprocess.run([tegula, "fmt", "--check", *paths], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr[-2000:]
    result = [set() for _ in texts]
    for index, code in re.findall(r"^\S*/(\d+)\.tgl:\d+:\d+: error\[(E\d+)\]", done.stderr, re.M):
        result[int(index)].add(code)
    return result


class Lark:
    name = "lark"

    def __init__(self, text):
        # As the grammar's head says, without a tree made of what was recognised.
        self.parser = lark.Lark(text, parser="earley", lexer="basic", start="file", ambiguity="forest")

    def accepts(self, text):
        try:
            self.parser.parse(text)
            return True
        except lark.exceptions.LarkError:
            return False


class Llguidance:
    name = "llguidance"

    def __init__(self, text):
        import llguidance
        self.tokens = llguidance.LLTokenizer("byte")
        self.grammar = llguidance.LLMatcher.grammar_from_lark(text)
        self.matcher = llguidance.LLMatcher
        error = self.matcher.validate_grammar(self.grammar, self.tokens)
        assert not error, error

    def accepts(self, text):
        matcher = self.matcher(self.tokens, self.grammar, log_level=0)
        data = list(text.encode())
        return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()


class Xgrammar:
    """XGrammar on the GBNF, with bytes as tokens."""

    name = "xgrammar"

    def __init__(self, text):
        if importlib.util.find_spec("transformers") is None:
            # It names classes of it on import, for tokenizers and models that are not used here.
            absent = sys.modules["transformers"] = types.ModuleType("transformers")
            for name in ("PreTrainedTokenizerBase", "PreTrainedTokenizerFast", "LogitsProcessor"):
                setattr(absent, name, object)
        import xgrammar
        tokens = xgrammar.TokenizerInfo([bytes([value]) for value in range(256)] + ["</s>"],
                                        vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
        self.grammar = xgrammar.GrammarCompiler(tokens).compile_grammar(xgrammar.Grammar.from_ebnf(text))
        self.matcher = xgrammar.GrammarMatcher

    def accepts(self, text):
        matcher = self.matcher(self.grammar, terminate_without_stop_token=True)
        return matcher.accept_string(text) and matcher.is_terminated()


class Gbnf(gbnf.Grammar):
    name = "gbnf"


def mutants(programs, count, choose):
    """Programs with a token or two changed, a blank between any two tokens."""
    lists = [TOKENS.findall(text) for text in programs]
    lists = [[token for token in tokens if not token.startswith("#")] for tokens in lists]
    for _ in range(count):
        tokens = list(choose.choice(lists))
        for _ in range(choose.choice([1, 1, 1, 2])):
            at = choose.randrange(len(tokens))
            other = choose.choice([choose.choice(MORE), choose.choice(tokens)])
            kind = choose.randrange(5)
            if kind == 0:
                del tokens[at]
            elif kind == 1:
                tokens[at] = other
            elif kind == 2:
                tokens.insert(at, other)
            elif kind == 3:
                to = choose.randrange(len(tokens))
                tokens[at], tokens[to] = tokens[to], tokens[at]
            else:
                end = min(len(tokens), at + choose.randint(1, 6))
                tokens[end:end] = tokens[at:end]
        yield "".join(token + choose.choice("    \n") for token in tokens)


def joined(programs, count, choose):
    """Programs with a blank left out, every other time one between words."""
    for number in range(count):
        text = re.sub("#.*", "", choose.choice(programs))
        at = choose.choice([found.start() for found in re.finditer(r"\b\s\b" if number % 2 else r"\s", text)])
        yield text[:at] + text[at + 1:]


class Check:
    def __init__(self, tegula):
        self.tegula, self.failures = tegula, 0

    def run(self, what, texts, readers, must=None):
        """The grammars decide as the parser does; and `must`, where it is given."""
        codes = parser_codes(self.tegula, texts)
        accepted = 0
        for text, found in zip(texts, codes):
            if found & LIMITS:
                continue
            right = found <= LATER
            accepted += right
            verdicts = {reader.name: reader.accepts(text) for reader in readers}
            wrong = [name for name, verdict in verdicts.items() if verdict != right]
            if must is not None and right != must:
                wrong.append(f"must {'pass' if must else 'fail'}")
            if wrong:
                self.failures += 1
                if self.failures <= 5:
                    print(f"{what}: the parser {'accepts' if right else f'refuses {sorted(found)}'}: "
                          f"{', '.join(wrong)}:\n{text}\n")
        print(f"{what}: {len(texts)} texts, {accepted} accepted")
        # Tests of both kinds, or they show nothing.
        if must is None and not 0 < accepted < len(texts):
            print(f"{what}: all texts are of one kind")
            self.failures += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tegula", required=True)
    parser.add_argument("--samples", type=int, default=80)
    parser.add_argument("--mutants", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

    def printed(notation):
        return subprocess.run([options.tegula, "grammar", f"--format={notation}"], check=True,
                              capture_output=True, text=True).stdout

    def files(*patterns):
        paths = [path for pattern in patterns for path in sorted(glob.glob(os.path.join(root, pattern)))]
        assert paths, patterns
        return [open(path, newline="").read() for path in paths]

    exact = [Lark(printed("lark"))]
    own = Gbnf(printed("gbnf"))
    readers = exact + [own]
    for reader, notation in ((Llguidance, "llguidance"), (Xgrammar, "gbnf")):
        try:
            readers.append(reader(printed(notation)))
        except ImportError as error:
            print(f"without {reader.name}: {error}")

    choose, check = random.Random(options.seed), Check(options.tegula)
    programs = files("dsl/std/*.tgl", "dsl/kernels/*/*.tgl", "test/e2e/*/*.tgl")
    short = [text for text in programs if len(text) < 700]
    check.run("short programs", short, readers, must=True)
    # Lark's Earley parser takes a second for a page.
    check.run("long programs", [text for text in programs if len(text) >= 700], readers[1:], must=True)
    check.run("wrong programs", files("test/rejected/*.tgl", "test/rejected/Inputs/foreign/*.tgl"), readers)
    check.run("sampled", [own.sample(choose) for _ in range(options.samples)], readers, must=True)
    check.run("changed", list(mutants(short, options.mutants, choose)), readers)
    # Between characters GBNF and llguidance are not exact (docs/grammar.md).
    check.run("joined", list(joined(short, options.mutants // 3, choose)), exact)
    return 1 if check.failures else 0


if __name__ == "__main__":
    # Recognition nests as deep as the text.
    sys.setrecursionlimit(1 << 20)
    threading.stack_size(1 << 29)
    result = []
    worker = threading.Thread(target=lambda: result.append(main()))
    worker.start()
    worker.join()
    sys.exit(result[0] if result else 1)
