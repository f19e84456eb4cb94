//===- Server.cpp - The language server -----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/Server.h"

#include "lsp/MessageInput.h"
#include "lsp/StdFolder.h"
#include "llvm/Support/LSP/Transport.h"
#include <map>

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

namespace {
/// The parameters of a request as they are.
struct RawParams {
  json::Value value = nullptr;
};
/// Of requests about a document: LLVM's take URIs of files alone, and editors have texts without a
/// file.
struct DocumentParams {
  std::string uri;
  lsp::Position position;
  lsp::Range range;
  std::string newName;
  bool includeDeclaration = true;
};
struct OpenParams {
  std::string uri, text;
  int64_t version = 0;
};
struct ChangeParams {
  std::string uri;
  int64_t version = 0;
  std::vector<lsp::TextDocumentContentChangeEvent> changes;
};

bool fromJSON(const json::Value &value, RawParams &result, json::Path) {
  result.value = value;
  return true;
}

bool uriFromJSON(const json::Value &value, std::string &uri, json::Path path) {
  const json::Object *all = value.getAsObject();
  const json::Object *document = all ? all->getObject("textDocument") : nullptr;
  std::optional<StringRef> text = document ? document->getString("uri") : std::nullopt;
  if (!text) {
    path.report("expected textDocument.uri");
    return false;
  }
  uri = text->str();
  return true;
}

bool fromJSON(const json::Value &value, DocumentParams &result, json::Path path) {
  if (!uriFromJSON(value, result.uri, path))
    return false;
  json::ObjectMapper map(value, path);
  if (!map || !map.mapOptional("position", result.position) ||
      !map.mapOptional("range", result.range) || !map.mapOptional("newName", result.newName))
    return false;
  if (const json::Object *context = value.getAsObject()->getObject("context"))
    result.includeDeclaration = context->getBoolean("includeDeclaration").value_or(true);
  return true;
}

bool fromJSON(const json::Value &value, OpenParams &result, json::Path path) {
  if (!uriFromJSON(value, result.uri, path))
    return false;
  const json::Object &document = *value.getAsObject()->getObject("textDocument");
  result.text = document.getString("text").value_or("").str();
  result.version = document.getInteger("version").value_or(0);
  return true;
}

bool fromJSON(const json::Value &value, ChangeParams &result, json::Path path) {
  if (!uriFromJSON(value, result.uri, path))
    return false;
  result.version =
      value.getAsObject()->getObject("textDocument")->getInteger("version").value_or(0);
  json::ObjectMapper map(value, path);
  return map && map.map("contentChanges", result.changes);
}
} // namespace

/// The path of a file, or the URI of a text that is in none.
static std::string pathOf(StringRef uri) {
  if (!uri.starts_with("file:"))
    return uri.str();
  Expected<lsp::URIForFile> file = lsp::URIForFile::fromURI(uri);
  if (file)
    return file->file().str();
  consumeError(file.takeError());
  return uri.str();
}

//===----------------------------------------------------------------------===//
// Server
//===----------------------------------------------------------------------===//

namespace {
using Reply = lsp::Callback<json::Value>;

class Server {
public:
  Server(ServerHooks hooks, std::unique_ptr<MessageInput> given, raw_ostream &output)
      : hooks(std::move(hooks)), input(*given), transport(std::move(given), output),
        handler(transport) {
    input.whenIdle([this] { return tellOne(); });
  }
  bool run();

private:
  void onInitialize(const RawParams &params, Reply reply);
  void onShutdown(const RawParams &, Reply reply);
  void onIgnored(const RawParams &) {}
  void onConfigure(const RawParams &params);
  void onOpen(const OpenParams &params);
  void onChange(const ChangeParams &params);
  void onClose(const DocumentParams &params);
  void onHover(const DocumentParams &params, Reply reply);
  void onCompletion(const DocumentParams &params, Reply reply);
  void onSignatureHelp(const DocumentParams &params, Reply reply);
  void onDefinition(const DocumentParams &params, Reply reply);
  void onReferences(const DocumentParams &params, Reply reply);
  void onHighlight(const DocumentParams &params, Reply reply);
  void onPrepareRename(const DocumentParams &params, Reply reply);
  void onRename(const DocumentParams &params, Reply reply);
  void onSymbols(const DocumentParams &params, Reply reply);
  void onFormat(const DocumentParams &params, Reply reply);
  void onHints(const DocumentParams &params, Reply reply);
  void onCodeAction(const DocumentParams &params, Reply reply);

  bool tellOne();
  void publish(StringRef uri, json::Value version, json::Array diagnostics);
  Document *find(const DocumentParams &params, Reply &reply);
  uint32_t offsetOf(Document &document, lsp::Position position) {
    return document.parsed().lines.offset(position);
  }
  json::Value locationOf(const Document &document, const Analysis &analysis, Span span);

  ServerHooks hooks;
  MessageInput &input; // the transport's
  lsp::JSONTransport transport;
  lsp::MessageHandler handler;
  lsp::OutgoingNotification<json::Value> publishDiagnostics;
  std::map<std::string, std::unique_ptr<Document>> documents;
  StdFolder library;
  bool isShutDown = false;
};
} // namespace

bool Server::run() {
  handler.method("initialize", this, &Server::onInitialize);
  handler.method("shutdown", this, &Server::onShutdown);
  handler.notification("initialized", this, &Server::onIgnored);
  handler.notification("textDocument/didSave", this, &Server::onIgnored);
  handler.notification("$/setTrace", this, &Server::onIgnored);
  handler.notification("workspace/didChangeConfiguration", this, &Server::onConfigure);
  handler.notification("textDocument/didOpen", this, &Server::onOpen);
  handler.notification("textDocument/didChange", this, &Server::onChange);
  handler.notification("textDocument/didClose", this, &Server::onClose);
  handler.method("textDocument/hover", this, &Server::onHover);
  handler.method("textDocument/completion", this, &Server::onCompletion);
  handler.method("textDocument/signatureHelp", this, &Server::onSignatureHelp);
  handler.method("textDocument/definition", this, &Server::onDefinition);
  handler.method("textDocument/references", this, &Server::onReferences);
  handler.method("textDocument/documentHighlight", this, &Server::onHighlight);
  handler.method("textDocument/prepareRename", this, &Server::onPrepareRename);
  handler.method("textDocument/rename", this, &Server::onRename);
  handler.method("textDocument/documentSymbol", this, &Server::onSymbols);
  handler.method("textDocument/formatting", this, &Server::onFormat);
  handler.method("textDocument/inlayHint", this, &Server::onHints);
  handler.method("textDocument/codeAction", this, &Server::onCodeAction);
  publishDiagnostics = handler.outgoingNotification<json::Value>("textDocument/publishDiagnostics");
  Error ended = transport.run(handler);
  if (!ended)
    return isShutDown; // it said `exit`
  consumeError(std::move(ended));
  return !input.isCutOff();
}

void Server::onInitialize(const RawParams &params, Reply reply) {
  if (const json::Object *all = params.value.getAsObject())
    if (const json::Object *options = all->getObject("initializationOptions"))
      hooks.configure(*options);
  json::Object capabilities{
      {"positionEncoding", "utf-16"},
      {"textDocumentSync",
       json::Object{{"openClose", true},
                    {"change", static_cast<int>(lsp::TextDocumentSyncKind::Incremental)},
                    {"save", false}}},
      {"hoverProvider", true},
      {"completionProvider",
       json::Object{{"resolveProvider", false}, {"triggerCharacters", json::Array{":", "[", "("}}}},
      {"signatureHelpProvider", json::Object{{"triggerCharacters", json::Array{"(", ","}}}},
      {"definitionProvider", true},
      {"referencesProvider", true},
      {"documentHighlightProvider", true},
      {"documentSymbolProvider", true},
      {"documentFormattingProvider", true},
      {"inlayHintProvider", true},
      {"renameProvider", json::Object{{"prepareProvider", true}}},
      {"codeActionProvider",
       json::Object{{"codeActionKinds", json::Array{"quickfix", "source.fixAll"}}}}};
  reply(json::Object{{"serverInfo", json::Object{{"name", "tegula"}, {"version", hooks.version}}},
                     {"capabilities", std::move(capabilities)}});
}

void Server::onShutdown(const RawParams &, Reply reply) {
  isShutDown = true;
  reply(nullptr);
}

/// `{"settings": {"tegula": {...}}}`, as VS Code sends them, or without the name.
void Server::onConfigure(const RawParams &params) {
  const json::Object *all = params.value.getAsObject();
  const json::Object *settings = all ? all->getObject("settings") : nullptr;
  if (!settings)
    return;
  if (const json::Object *own = settings->getObject("tegula"))
    settings = own;
  hooks.configure(*settings);
}

//===----------------------------------------------------------------------===//
// Texts and their diagnostics
//===----------------------------------------------------------------------===//

void Server::onOpen(const OpenParams &params) {
  std::string path = pathOf(params.uri);
  hooks.beforeText(path, params.text);
  documents[params.uri] = std::make_unique<Document>(params.uri, path, params.version, params.text);
}

void Server::onChange(const ChangeParams &params) {
  auto found = documents.find(params.uri);
  if (found == documents.end())
    return;
  std::string text = found->second->text().str();
  for (const lsp::TextDocumentContentChangeEvent &change : params.changes) {
    if (!change.range) {
      text = change.text;
      continue;
    }
    LineIndex lines(text);
    uint32_t begin = lines.offset(change.range->start), end = lines.offset(change.range->end);
    text.replace(begin, std::max(begin, end) - begin, change.text);
  }
  hooks.beforeText(found->second->path, text);
  found->second->setText(std::move(text), params.version);
}

void Server::onClose(const DocumentParams &params) {
  if (documents.erase(params.uri))
    publish(params.uri, nullptr, {});
}

void Server::publish(StringRef uri, json::Value version, json::Array diagnostics) {
  json::Object params{{"uri", uri}, {"diagnostics", std::move(diagnostics)}};
  if (version.kind() != json::Value::Null)
    params["version"] = std::move(version);
  publishDiagnostics(std::move(params));
}

/// Publishes the diagnostics of a text that has changed.
bool Server::tellOne() {
  for (auto &[uri, document] : documents)
    if (!document->isTold) {
      document->isTold = true;
      hooks.beforeText(document->path, document->text());
      publish(uri, document->version, diagnosticsOf(*document));
      return true;
    }
  return false;
}

/// The document of a request; replies where there is none.
Document *Server::find(const DocumentParams &params, Reply &reply) {
  auto found = documents.find(params.uri);
  if (found == documents.end()) {
    reply(make_error<lsp::LSPError>("the text is not open: " + params.uri,
                                    lsp::ErrorCode::InvalidParams));
    return nullptr;
  }
  hooks.beforeText(found->second->path, found->second->text());
  return found->second.get();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void Server::onHover(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  auto answer = hover(*document, offsetOf(*document, params.position), hooks.launches);
  reply(answer ? toJSON(*answer) : json::Value(nullptr));
}

void Server::onCompletion(const DocumentParams &params, Reply reply) {
  if (Document *document = find(params, reply))
    reply(toJSON(complete(*document, offsetOf(*document, params.position))));
}

void Server::onSignatureHelp(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  auto answer = signatureHelp(*document, offsetOf(*document, params.position));
  reply(answer ? toJSON(*answer) : json::Value(nullptr));
}

json::Value Server::locationOf(const Document &document, const Analysis &analysis, Span span) {
  if (span.file == analysis.file)
    return json::Object{{"uri", document.uri}, {"range", analysis.lines.range(span)}};
  std::string uri = library.uriOf(analysis.sources.name(span.file));
  if (uri.empty())
    return nullptr;
  LineIndex lines(analysis.sources.text(span.file));
  return json::Object{{"uri", uri}, {"range", lines.range(span)}};
}

void Server::onDefinition(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  std::optional<Span> found = definition(*document, offsetOf(*document, params.position));
  reply(found ? locationOf(*document, document->parsed(), *found) : json::Value(nullptr));
}

void Server::onReferences(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  json::Array result;
  for (const Occurrence &one : references(*document, offsetOf(*document, params.position)))
    if (params.includeDeclaration || one.role != Occurrence::Definition)
      result.push_back(locationOf(*document, document->parsed(), one.span));
  reply(std::move(result));
}

void Server::onHighlight(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  json::Array result;
  for (const Occurrence &one : references(*document, offsetOf(*document, params.position)))
    result.push_back(json::Object{{"range", document->parsed().lines.range(one.span)},
                                  {"kind", one.role == Occurrence::Read ? 2 : 3}});
  reply(std::move(result));
}

void Server::onPrepareRename(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  std::optional<Span> found = renamed(*document, offsetOf(*document, params.position));
  reply(found ? toJSON(document->parsed().lines.range(*found)) : json::Value(nullptr));
}

void Server::onRename(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  auto edits = rename(*document, offsetOf(*document, params.position), params.newName);
  if (!edits)
    return reply(edits.takeError());
  reply(json::Object{{"changes", json::Object{{params.uri, json::Array(*edits)}}}});
}

void Server::onSymbols(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  json::Array result;
  for (const lsp::DocumentSymbol &symbol : documentSymbols(*document))
    result.push_back(toJSON(symbol));
  reply(std::move(result));
}

void Server::onFormat(const DocumentParams &params, Reply reply) {
  if (Document *document = find(params, reply))
    reply(json::Array(format(*document)));
}

void Server::onHints(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  reply(json::Array(inlayHints(*document, offsetOf(*document, params.range.start),
                               offsetOf(*document, params.range.end))));
}

void Server::onCodeAction(const DocumentParams &params, Reply reply) {
  Document *document = find(params, reply);
  if (!document)
    return;
  reply(codeActions(*document, offsetOf(*document, params.range.start),
                    offsetOf(*document, params.range.end)));
}

bool serveEditor(ServerHooks hooks, int input, raw_ostream &output) {
  return Server(std::move(hooks), std::make_unique<MessageInput>(input), output).run();
}

} // namespace tegula
