"""Texts as they are while one types: the server answers everything, and is there afterwards."""
import random

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from client import ROOT

PIECES = ["(", ")", "[", "]", "{", "}", ",", ":", "=", "+", "for ", " in ", "if ", "...", "kernel ", "fn ", "schedule {", "state ",
          "parallel ", "\n", "\r", "#", "é😀", "0", "1e", "->", "x", "sum(", "softmax(x, over=", "tiles(", "where ", '"', "@", ";",
          "+=", "max= ", "precision ", "max(", "inout ", "T[", "int[2]"]
ALL = lsp.Range(lsp.Position(0, 0), lsp.Position(99999, 0))


def sources():
    return [path.read_text() for path in sorted((ROOT / "dsl/kernels").glob("*/*.tgl"))]


def ask_everything(text, at):
    where = text.position(at)
    for method, params in (("hover", lsp.HoverParams), ("completion", lsp.CompletionParams),
                           ("signature_help", lsp.SignatureHelpParams), ("definition", lsp.DefinitionParams)):
        text.ask(method, params, position=where)
    try:
        text.ask("rename", lsp.RenameParams, position=where, new_name="zz9")
    except JsonRpcException:
        pass  # it may refuse
    text.ask("inlay_hint", lsp.InlayHintParams, range=ALL)
    text.ask("document_symbol", lsp.DocumentSymbolParams)
    text.ask("formatting", lsp.DocumentFormattingParams, options=lsp.FormattingOptions(tab_size=2, insert_spaces=True))
    text.ask("code_action", lsp.CodeActionParams, range=ALL, context=lsp.CodeActionContext(diagnostics=[]))


def test_prefixes(editor):
    rng = random.Random(1)
    text = editor.open("")
    for source in sources():
        end = rng.randrange(len(source))
        text.change(source[:end])
        text.diagnostics()
        ask_everything(text, end)


def test_random_edits(editor):
    rng = random.Random(2)
    text = editor.open("")
    for source in sources():
        text.change(source)
        for _ in range(3):
            begin = rng.randrange(len(text.text) + 1)
            end = min(len(text.text), begin + rng.choice([0, 0, 1, 5, 30]))
            text.edit(begin, end, rng.choice(PIECES))
        text.diagnostics()
        ask_everything(text, rng.randrange(len(text.text) + 1))


def test_edits_add_up_to_the_text(editor):
    """What is told of a text that was edited piece by piece is told of the whole text."""
    rng = random.Random(3)
    text = editor.open("")
    whole = editor.open("", "file:///tmp/whole.tgl")
    source = next(one for one in sources() if "softmax" in one)
    text.change("# 😀 é\r\n" + source)
    for _ in range(25):
        begin = rng.randrange(len(text.text) + 1)
        while text.text[begin - 1:begin + 1] == "\r\n":
            begin += 1
        text.edit(begin, begin, rng.choice([piece for piece in PIECES if piece != "\r"]))
        whole.change(text.text)
        assert text.diagnostics() == whole.diagnostics()
