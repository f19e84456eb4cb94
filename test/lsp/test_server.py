"""`tegula lsp`, driven by an editor's client."""
import json
import os
import re
import subprocess

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from client import ROOT, Editor

ALL = lsp.Range(lsp.Position(0, 0), lsp.Position(99999, 0))
LINEAR = """# y = gelu(x W^T + b)
kernel linear_gelu(x: T[M, K], w: T[N, K], b: T[N]) -> (y: T[M, N]) {
  h[i, j] = sum(x[i, k] * w[j, k] for k) + b[j]
  y[i, j] = gelu(h[i, j])
}
"""
CONV = """fn twice(v, factor=2) = factor*v

kernel body(x: f32[N, C, H, W], w: f32[O, C, R, S], stride: int = 1) -> (y: f32[N, O, P, Q]) where P = (H - R)//stride + 1, Q = (W - S)//stride + 1 {
  h = conv2d(x, w, stride=stride)
  y[n, o, p, q] = twice(h[n, o, p, q], factor=3)
}

kernel rows(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state m = -inf
    for j in tiles(N) { m = maximum(m, max(x[i, j] for j)) }
    y[i] = m
  }
}

kernel both(x: f32[M, N]) -> (y: f32[M]) {
  r = rows(x)
  y[i] = r[i] + 1
}
"""


def actions(text, where=ALL):
    return text.ask("code_action", lsp.CodeActionParams, range=where, context=lsp.CodeActionContext(diagnostics=[]))


def hints(text):
    return text.ask("inlay_hint", lsp.InlayHintParams, range=ALL)


def with_hints(text):
    """The text as it is shown."""
    return text.apply([lsp.TextEdit(lsp.Range(one.position, one.position), one.label) for one in hints(text)])


def rename(text, position, name):
    edit = text.ask("rename", lsp.RenameParams, position=position, new_name=name)
    return text.apply(edit.changes[text.uri])


def references(text, marked):
    found = text.ask("references", lsp.ReferenceParams, position=text.find(marked), context=lsp.ReferenceContext(include_declaration=True))
    return [(one.range.start.line, one.range.start.character) for one in found]


def kernels():
    return {path.stem: path.read_text() for path in sorted((ROOT / "dsl/kernels").glob("*/*.tgl"))}


def test_a_right_text_has_no_diagnostics(editor):
    assert editor.open(LINEAR).diagnostics() == ()


def test_diagnostics_follow_what_is_typed(editor):
    text = editor.open(LINEAR)
    at = text.text.index("+ b[j]")
    text.edit(at, at + 6, "+ c[j]")
    [one] = text.diagnostics()
    assert (one.code, text.inside(one.range), one.source) == ("E0201", "c", "tegula")
    text.edit(at, at + 6, "+ b[j]")
    assert text.diagnostics() == ()
    text.change(text.text.replace("for k)", "for k"))
    [one] = text.diagnostics()
    assert (one.code, one.severity, one.range.start.line) == ("E0103", lsp.DiagnosticSeverity.Error, 2)


def test_many_edits_at_once(editor):
    text = editor.open(LINEAR)
    for _ in range(50):
        text.edit(0, 0, "# é\n")
    assert text.diagnostics() == ()
    assert text.hover("h|[i, j] =").startswith("```tegula\nh: f32[M, N]")


def test_diagnostics_wait_for_the_last_message(tmp_path):
    """All messages lie in a file, so that one always waits: requests are answered, and no text in between is looked at."""
    uri, messages = "file:///tmp/one.tgl", []

    def send(method, number=None, **params):
        messages.append({"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {}))

    send("initialize", 1, capabilities={})
    send("textDocument/didOpen", textDocument={"uri": uri, "languageId": "tegula", "version": 1, "text": "kernel"})
    for version in range(2, 50):
        send("textDocument/didChange", textDocument={"uri": uri, "version": version}, contentChanges=[{"text": "ker" * version}])
    send("textDocument/didChange", textDocument={"uri": uri, "version": 50}, contentChanges=[{"text": LINEAR}])
    send("textDocument/hover", 2, textDocument={"uri": uri}, position={"line": 2, "character": 2})
    send("shutdown", 3)
    send("exit")
    file = tmp_path / "messages"
    texts = [json.dumps(one).encode() for one in messages]
    file.write_bytes(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in texts))
    with open(file) as given:
        done = subprocess.run([os.environ["TEGULA_COMMAND"], "lsp"], stdin=given, capture_output=True, check=True)
    assert b"h: f32[M, N]" in done.stdout and b"publishDiagnostics" not in done.stdout


def test_positions_count_utf16_units(editor):
    text = editor.open("# 😀 é\nkernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] # 😀😀\n}\n")
    assert text.diagnostics() == ()
    text.change("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 😀 }")
    [one] = text.diagnostics()
    assert text.inside(one.range) == "😀" and one.range.end.character - one.range.start.character == 2
    # An edit behind an astral character lands where it should, with each end of line.
    for newline in "\n", "\r\n":
        text.change(newline.join(["kernel k(x: f32[N]) -> (y: f32[N]) {", "  y[i] = x[i] # 😀 w", "}", ""]))
        line = text.text.split(newline)[1]
        start = lsp.Position(1, len(line[:line.index("w")].encode("utf-16-le")) // 2)
        change = lsp.TextDocumentContentChangePartial(range=lsp.Range(start, lsp.Position(1, start.character + 1)),
                                                      text=f"v{newline}  nonsense(")
        text._changed([change])
        assert {one.range.start.line for one in text.diagnostics()} <= {2, 3}
        text._changed([lsp.TextDocumentContentChangePartial(
            range=lsp.Range(lsp.Position(1, start.character), lsp.Position(2, len("  nonsense("))), text="w")])
        assert text.diagnostics() == ()


def test_a_fix_is_a_code_action(editor):
    text = editor.open("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = rellu(x[i]) }\n")
    found = actions(text)
    one = next(each for each in found if each.kind == "quickfix")
    assert one.diagnostics[0].range == text.diagnostics()[0].range
    text.change(text.apply(one.edit.changes[text.uri]))
    assert "= relu(x[i])" in text.text and text.diagnostics() == ()


def test_all_safe_fixes_at_once_are_those_of_tegula_fix(editor, tmp_path):
    wrong = "kernel k(x: float32[N]) -> (y: f32[N]) { y[i] := x[i] && x[i] }\n"
    text = editor.open(wrong)
    [one] = [each for each in actions(text) if each.kind == "source.fixAll"]
    file = tmp_path / "k.tgl"
    file.write_text(wrong)
    subprocess.run([os.environ["TEGULA_COMMAND"], "fix", file], capture_output=True, check=False)
    assert text.apply(one.edit.changes[text.uri]) == file.read_text() != wrong


def test_hover(editor):
    text = editor.open(LINEAR)
    assert text.hover("h[i|, j] =") == "```tegula\ni in 0:M\n```\n\nindex; range: dim 0 of `x`\n"
    assert "range: dim 1 of `x`" in text.hover("for k|)")
    assert "range: dim 1 of `y`" in text.hover("y[i, j|] = gelu")
    assert text.hover("M|, K], w") == "```tegula\nM\n```\n\nsize; bound by dim 0 of `x`\n"
    assert text.hover("x|[i, k]").startswith("```tegula\nx: T[M, K]\n```")
    assert "gelu(x)" in text.hover("ge|lu(h")
    assert "the sum; over nothing 0" in text.hover("su|m(x")
    head = text.hover("kernel linear|_gelu")
    assert "y = gelu(x W^T + b)" in head and "No size is refused." in head
    text = editor.open(CONV, "file:///tmp/two.tgl")
    assert text.hover("P| = (H").startswith("```tegula\nP = ")
    told = text.hover("h| = conv2d")
    assert "h: f32[N, O, H - R + 1, W - S + 1]" in told and "checked at stride=1" in told
    assert "a tile of the compiler's size" in text.hover("for j| in tiles")
    assert "state m: f32" in text.hover("state m|")
    assert "stride: int[2] = 1" in text.hover("w, stri|de=stride")


def test_what_bounds_a_launch(editor):
    case = ROOT / "dsl/kernels/softmax/softmax.tgl"
    text = editor.open(case.read_text(), case.as_uri())  # at the sizes of the reference beside it
    told = text.hover("kernel soft|max")
    assert "nothing here" not in told
    assert re.search(r"on sm_90a at M=\d+, N=\d+:\n.*launch.*\n.*moved.*\n  bound by memory on .*us", told)
    with Editor(os.environ["TEGULA_COMMAND"], {"target": "sm_90a", "machine": "h100", "sizes": "M=64, K=128, N=32"}) as other:
        text = other.open(LINEAR)
        assert re.search(r"at K=128, M=64, N=32:\n.*strategy contraction", text.hover("kernel linear|_gelu"))
        assert "strategy contraction" in text.hover("y|[i, j] = gelu") + text.hover("h|[i, j] = sum")
        other.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams({"tegula": {"target": ""}}))
        assert "launch " not in text.hover("kernel linear|_gelu")


def test_completion(editor):
    text = editor.open(CONV)
    inside = text.labels("twice(|h")
    assert inside[:2] == ["factor=", "v="]
    assert {"x", "h", "n", "N", "P", "twice", "exp", "softmax", "conv2d", "f16"} <= set(inside)
    assert not {"m", "i", "r"} & set(inside)  # of other kernels
    assert text.labels("conv2d(x, w, stri|de=stride)")[0] == "stride="
    assert "stride=" not in text.labels("conv2d(x, w, stride=st|ride)")
    assert text.labels("x: f|32[N, C") == ["f16", "f32", "f64", "f8e4m3", "f8e5m2", "float"]
    text.change("kernel k(x: f32[N]) -> (y: f32[N]) {\n  hid[i] = x[i]\n  y[i] = hid")
    assert text.labels("= hid|") == ["hid"]
    text.change("kernel k(x: f32[N]) -> (y: f32[N]) {\n  y[row] = x[row]\n  sch")
    assert text.labels("  sch|") == ["schedule"]
    text.change("kernel k(x: f32[N]) -> (y: f32[N]) {\n  y[row] = x[row]\n  schedule { ti")
    assert text.labels("{ ti|") == ["tile"]
    text.change("# in a comment: ex")
    assert text.labels("ex|") == []
    text.change("ker")
    assert text.labels("ker|") == ["kernel"]


def test_signature_help(editor):
    text = editor.open(CONV)

    def active(marked):
        found = text.ask("signature_help", lsp.SignatureHelpParams, position=text.find(marked))
        if not found:
            return None
        label = found.signatures[0].label
        begin, end = found.signatures[0].parameters[found.active_parameter].label
        return label[begin:end]

    assert active("conv2d(|x") == "input: T[..., groups*C, H, W]"
    assert active("conv2d(x, |w").startswith("weight: ")
    assert active("stride=st|ride)").startswith("stride: int[2]")
    assert active("twice(h[n, |o") == "v"
    assert active("factor=|3") == "factor=2"
    assert active("maximum(m, |max") == "b"
    assert active("|h = conv2d") is None


def test_definition(editor):
    text = editor.open(CONV)

    def target(marked):
        found = text.ask("definition", lsp.DefinitionParams, position=text.find(marked))
        if found and found.uri == text.uri:
            return found.range.start.line, found.range.start.character
        return found

    assert target("fac|tor=3") == (0, 12)
    assert target("twi|ce(h") == (0, 3)
    assert target("P|, Q]) where") == (2, text.text.split("\n")[2].index("P, Q])"))
    assert target("rows|(x)") == (7, 7)
    assert target("max|(x[i, j]") is None
    library = target("conv2|d(x")
    path = library.uri.removeprefix("file://")
    with open(path) as file:
        line = file.read().split("\n")[library.range.start.line]
    assert line[library.range.start.character:].startswith("conv2d(")
    assert not os.stat(path).st_mode & 0o222


def test_references_and_rename(editor):
    text = editor.open(CONV)
    assert references(text, "state m|") == [(9, 10), (10, 24), (10, 36), (11, 11)]
    assert len(references(text, "rows|(x: f32")) == 2
    # A reduction over the tile takes the loop's index; n is of its equation alone.
    assert len(references(text, "for j| in tiles")) == 3
    assert len(references(text, "y[n|, o")) == 2
    changed = rename(text, text.find("rows|(x)"), "best")
    assert changed == CONV.replace("rows", "best")
    changed = rename(text, text.find("stride|: int"), "step")
    assert "conv2d(x, w, stride=step)" in changed and "step: int = 1" in changed
    for position, name in (("state m|", "x"), ("state m|", "i"), ("n|, o, p, q] = t", "o"), ("rows|(x)", "both"),
                           ("state m|", "for"), ("state m|", "2m"), ("state m|", "")):
        with pytest.raises(JsonRpcException):
            rename(text, text.find(position), name)
    with pytest.raises(JsonRpcException):
        rename(text, text.find("conv2|d"), "other")


def test_any_name_of_any_kernel_can_be_renamed(editor):
    """Where the index forgets a use, or takes one for another's, the program is wrong, and the server refuses."""
    for name, source in kernels().items():
        text = editor.open(source, f"file:///tmp/{name}.tgl")
        seen = set()
        names = [found for found in re.finditer(r"(?m)#.*$|\b[A-Za-z_]\w*", source) if not found[0].startswith("#")]
        for found in names[::3]:
            where = text.position(found.start())
            if found.start() in seen or not text.ask("prepare_rename", lsp.PrepareRenameParams, position=where):
                continue
            changed = rename(text, where, "zz9" if found[0][0].islower() else "ZZ9")
            seen |= {one.start() for one in re.finditer(rf"\b{found[0]}\b", source)}
            assert len(re.findall(r"(?i)\bzz9\b", changed)) + len(re.findall(rf"\b{found[0]}\b", changed)) == len(
                re.findall(rf"\b{found[0]}\b", source))


def test_outline(editor):
    text = editor.open(CONV)
    found = text.ask("document_symbol", lsp.DocumentSymbolParams)
    assert [one.name for one in found] == ["twice", "body", "rows", "both"]
    assert {"x", "w", "stride", "y", "P", "h"} <= {one.name for one in found[1].children}
    assert text.inside(found[2].range).startswith("kernel rows") and text.inside(found[2].range).endswith("}")


def test_hints_show_ranges_and_may_be_written(editor):
    """What is shown is right: with all hints written down, every kernel means the same."""
    text = editor.open(LINEAR)
    assert "h[i in M, j in N] = sum(x[i, k] * w[j, k] for k in K)" in with_hints(text)
    text.change(text.text.replace("gelu(h[i, j])", "gelu(h[i, j"))  # half-typed: they stay
    assert "h[i in M, j in N] = sum(" in with_hints(text)
    text.change(CONV)
    assert "r: f32[M] = rows(x)" in with_hints(text)
    shown = 0
    for name, source in kernels().items():
        text = editor.open(source, f"file:///tmp/{name}.tgl")
        before = [one.code for one in text.diagnostics()]
        shown += len(hints(text))
        text.change(with_hints(text))
        assert [one.code for one in text.diagnostics()] == before, text.text
    assert shown > 100


def test_format(editor, tmp_path):
    ugly = "kernel k( x:f32[N] )->(y:f32[N]){y[i]=x[i]*2}\n# é\n"
    text = editor.open(ugly)
    options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
    edits = text.ask("formatting", lsp.DocumentFormattingParams, options=options)
    file = tmp_path / "k.tgl"
    file.write_text(ugly)
    subprocess.run([os.environ["TEGULA_COMMAND"], "fmt", file], check=True)
    assert text.apply(edits) == file.read_text() != ugly
    text.change(file.read_text())
    assert not text.ask("formatting", lsp.DocumentFormattingParams, options=options)
    text.change("kernel k( {")
    assert not text.ask("formatting", lsp.DocumentFormattingParams, options=options)


def test_texts_without_files_and_requests_that_are_wrong(editor):
    text = editor.open(LINEAR, "untitled:Untitled-1")
    assert text.diagnostics() == () and text.hover("h|[i, j] =")
    with pytest.raises(JsonRpcException):
        editor.wait(editor.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier("file:///not-open.tgl"), lsp.Position(0, 0))))
    with pytest.raises(JsonRpcException):
        editor.wait(editor.client.text_document_folding_range_async(lsp.FoldingRangeParams(text.document)))
    for far in lsp.Position(10**6, 10**6), lsp.Position(0, 10**6):
        text.ask("hover", lsp.HoverParams, position=far)
    editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(text.document))
    editor.open("", "untitled:Untitled-1")


def test_ends_with_its_client():
    command = [os.environ["TEGULA_COMMAND"], "lsp"]
    assert subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0
    assert subprocess.run(command, input=b"Content-Length: 5\r\n\r\n{]", capture_output=True, check=False).returncode == 2
    end = b'{"jsonrpc":"2.0","method":"exit"}'
    head = b"Content-Length: %d\r\n\r\n"
    assert subprocess.run(command, input=head % len(end) + end, capture_output=True, check=False).returncode == 2
    down = b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}'
    done = subprocess.run(command, input=head % len(down) + down + head % len(end) + end, capture_output=True, check=True)
    assert done.stdout.endswith(b'"result":null}') and done.stderr == b""
