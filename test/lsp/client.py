"""An editor without a screen: pygls' client, which checks what the server says against the protocol's types, and waits."""
import asyncio
import contextlib
import pathlib

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Editor:
    """A client whose requests wait for their answers."""

    def __init__(self, command, settings=None):
        self.command, self.settings = command, settings

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("tests", "1")
        self.told = {}  # by URI, the versions and diagnostics that were published
        self.versions = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params):
            self.told.setdefault(params.uri, []).append(params)

        self.wait(self.client.start_io(self.command, "lsp", "--stdio"))
        self.capabilities = self.wait(self.client.initialize_async(lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(), initialization_options=self.settings))).capabilities
        self.client.initialized(lsp.InitializedParams())
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(Exception) if kind else contextlib.nullcontext():
            self.wait(self.client.shutdown_async(None))
            self.client.exit(None)
            server = self.client._server
            self.wait(server.wait())
            self.code = server.returncode
            self.wait(self.client.stop())
        self.loop.close()

    def wait(self, answer, seconds=600):
        return self.loop.run_until_complete(asyncio.wait_for(answer, seconds))

    def open(self, text, uri="file:///tmp/one.tgl"):
        self.versions[uri] = 1
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(
            lsp.TextDocumentItem(uri=uri, language_id="tegula", version=1, text=text)))
        return Text(self, uri, text)

    async def _published(self, uri, version):
        while not any(one.version == version for one in self.told.get(uri, ())):
            await asyncio.sleep(0.005)
        return [one for one in self.told[uri] if one.version == version][-1].diagnostics


class Text:
    """A text that is open; places are given by `|` behind a piece of it, or by offset."""

    def __init__(self, editor, uri, text):
        self.editor, self.uri, self.text = editor, uri, text

    @property
    def document(self):
        return lsp.TextDocumentIdentifier(self.uri)

    def position(self, offset):
        before = self.text[:offset]
        line = before.rfind("\n") + 1
        return lsp.Position(before.count("\n"), len(before[line:].encode("utf-16-le")) // 2)

    def offset(self, position):
        lines = self.text.split("\n")
        start = sum(len(line) + 1 for line in lines[:position.line])
        units = lines[position.line].encode("utf-16-le")[:2 * position.character]
        return start + len(units.decode("utf-16-le"))

    def find(self, marked):
        """The position of `|` in a piece of the text."""
        at = self.text.index(marked.replace("|", ""))
        return self.position(at + marked.index("|"))

    def inside(self, where):
        return self.text[self.offset(where.start):self.offset(where.end)]

    def change(self, text):
        self.text = text
        self._changed([lsp.TextDocumentContentChangeWholeDocument(text=text)])

    def edit(self, begin, end, new):
        """Offsets of characters."""
        change = lsp.TextDocumentContentChangePartial(
            range=lsp.Range(self.position(begin), self.position(end)), text=new)
        self.text = self.text[:begin] + new + self.text[end:]
        self._changed([change])

    def _changed(self, changes):
        version = self.editor.versions[self.uri] = self.editor.versions[self.uri] + 1
        self.editor.client.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(version=version, uri=self.uri), changes))

    def diagnostics(self):
        return self.editor.wait(self.editor._published(self.uri, self.editor.versions[self.uri]))

    def apply(self, edits):
        result = self.text
        for edit in sorted(edits, key=lambda one: self.offset(one.range.start), reverse=True):
            result = result[:self.offset(edit.range.start)] + edit.new_text + result[self.offset(edit.range.end):]
        return result

    def ask(self, method, params, **more):
        return self.editor.wait(getattr(self.editor.client, f"text_document_{method}_async")(params(
            text_document=self.document, **more)))

    def hover(self, marked):
        found = self.ask("hover", lsp.HoverParams, position=self.find(marked))
        return found and found.contents.value

    def labels(self, marked):
        found = self.ask("completion", lsp.CompletionParams, position=self.find(marked))
        return [item.label for item in sorted(found.items, key=lambda one: one.sort_text)]
