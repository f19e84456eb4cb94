//===- CheckerFuzz.cpp - Checker and emission on any text -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever a file says, checking it ends with a program or with diagnostics that lie in it and can
// be shown, and an accepted program becomes IR that verifies. Most inputs are made by moving
// tokens, not bytes, so that they get past the parser.
//
//===----------------------------------------------------------------------===//
#include "Require.h"
#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/lower/EmitIR.h"
#include "mlir/IR/Verifier.h"
#include <random>

using namespace llvm;
using namespace tegula;

/// One for many runs: making one takes longer than checking a file. It keeps every type and
/// attribute that it has seen, so it is replaced now and then.
static mlir::MLIRContext &sharedContext() {
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned runs = 0;
  if (runs++ % 4096 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  return *context;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 8192)
    return -1; // larger ones say nothing new, and take long
  SourceManager sources;
  uint32_t id = sources.add("fuzz.tgl", std::string(reinterpret_cast<const char *>(data), size));
  Diagnostics diagnostics(sources);
  std::unique_ptr<Module> module = openModule(sources, id, diagnostics);
  if (diagnostics.hasErrors() && module->file().kernels.empty())
    return -1; // the parser has its own target
  for (const auto &kernel : module->file().kernels) {
    InstanceOptions options;
    options.kernel = kernel->name.name;
    options.remarks = true;
    unsigned errorsBefore = diagnostics.numErrors();
    std::unique_ptr<checked::Program> program = check(*module, options, diagnostics);
    if (!program) {
      require(diagnostics.hasErrors(), "a program that is rejected gets an error");
      continue;
    }
    require(diagnostics.numErrors() == errorsBefore, "a program that is accepted gets none");
    if (errorsBefore)
      continue; // of another kernel, or of one of this name: what was said once is not said again
    mlir::OwningOpRef<mlir::ModuleOp> ir = emitIR(*program, sources, sharedContext(), {});
    require(succeeded(mlir::verify(*ir)), "an accepted program becomes IR that verifies");
  }
  std::string rendered;
  raw_string_ostream os(rendered);
  diagnostics.printText(os, /*color=*/false);
  diagnostics.printJson(os);
  applyFixes(diagnostics, id);
  for (const Diagnostic &each : diagnostics.all())
    require(each.span.file != id || each.span.end <= size, "spans lie inside of the text");
  return 0;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// What programs are made of, beside the names that a text has already.
static const StringRef words[] = {"kernel k(x: f32[M, N]) -> (y: f32[M, N]) {",
                                  "fn f(a, b) = ",
                                  "parallel i in M, j in N {",
                                  "}",
                                  "for t in 0:T {",
                                  "for k in tiles(K) {",
                                  "for t in T, reverse {",
                                  "state h[i in N] = ",
                                  "state m = 0.0",
                                  "schedule { tile i=8; stages 2 }",
                                  "precision tf32",
                                  "precision conv_tf32",
                                  "deterministic",
                                  "where P = M - 1",
                                  "...",
                                  "fill=0",
                                  "sum(",
                                  "prod(",
                                  "max(",
                                  "mean(",
                                  "var(",
                                  "any(",
                                  "count(",
                                  "argmax(",
                                  "logsumexp(",
                                  " for k)",
                                  " for k in 0:i + 1)",
                                  " for k in K if k > i)",
                                  " for ..., j)",
                                  "cumsum(",
                                  "softmax(",
                                  "sort(",
                                  "argsort(",
                                  "recurrence(",
                                  ", over=j)",
                                  ", over=(i, j))",
                                  ", reverse=true",
                                  ", exclusive=true",
                                  "topk(",
                                  ", k=2)",
                                  "rand(7, i)",
                                  "randn(7, i)",
                                  "where(",
                                  "clamp(",
                                  "quantize(",
                                  "maximum(",
                                  "exp(",
                                  "abs(",
                                  "sqrt(",
                                  "relu(",
                                  "f16(",
                                  "i32(",
                                  "i8",
                                  "u4",
                                  "bool",
                                  "f64",
                                  "i64[",
                                  "bf16[",
                                  "T",
                                  "inout",
                                  "int = 1",
                                  "float = 0.5",
                                  "bool = true",
                                  "int[2] = 1",
                                  "= 0",
                                  "+=",
                                  "=",
                                  "+",
                                  "-",
                                  "*",
                                  "/",
                                  "//",
                                  "%",
                                  "**",
                                  "<",
                                  "<=",
                                  "==",
                                  "!=",
                                  " and ",
                                  " or ",
                                  "not ",
                                  "(",
                                  ")",
                                  "[",
                                  "]",
                                  "{",
                                  ",",
                                  ":",
                                  "->",
                                  "(h, d)",
                                  "(2, i)",
                                  "[i, j]",
                                  "[j, i]",
                                  "[i // 2]",
                                  "[N - 1]",
                                  "[ids[i]]",
                                  "[i + 1, j, fill=0]",
                                  "[..., j]",
                                  "0",
                                  "1",
                                  "2",
                                  "-1",
                                  "9223372036854775807",
                                  "0.5",
                                  "1e30",
                                  "inf",
                                  "nan",
                                  "true",
                                  "false",
                                  "linear(x, w)",
                                  "conv2d(x, w, stride=2)",
                                  "cat(x, y, dim=1)",
                                  "max_pool2d(x, 2)",
                                  "layer_norm(x, N, w, b)",
                                  "cross_entropy(x, t)",
                                  "gru(x, h, a, b, c, d)"};

static std::vector<StringRef> tokensOf(StringRef text) {
  std::vector<StringRef> tokens;
  while (!text.empty()) {
    auto isWord = [](char c) {
      return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    auto isSpace = [](char c) { return isspace(static_cast<unsigned char>(c)) != 0; };
    size_t length = 1;
    if (isWord(text[0]))
      length = text.take_while(isWord).size();
    else if (isSpace(text[0]))
      length = text.take_while(isSpace).size();
    tokens.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
  return tokens;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text(reinterpret_cast<const char *>(data), size);
  std::vector<StringRef> tokens = tokensOf(text);
  auto below = [&](size_t count) { return count ? random() % count : 0; };
  for (unsigned changes = 1 + below(3); changes--;) {
    size_t at = below(tokens.size() + 1), from = below(tokens.size());
    size_t length = std::min<size_t>(1 + below(below(4) ? 4 : 40), tokens.size() - from);
    std::vector<StringRef> piece(tokens.begin() + from, tokens.begin() + from + length);
    switch (below(5)) {
    case 0: // a piece goes
      tokens.erase(tokens.begin() + from, tokens.begin() + from + length);
      break;
    case 1: // or stands twice
      tokens.insert(tokens.begin() + at, piece.begin(), piece.end());
      break;
    case 2: // one token for another of the text,
      if (!tokens.empty())
        tokens[from] = tokens[below(tokens.size())];
      break;
    case 3: // or for a word
      if (!tokens.empty())
        tokens[from] = words[below(std::size(words))];
      break;
    case 4:
      tokens.insert(tokens.begin() + at, words[below(std::size(words))]);
      break;
    }
  }
  std::string result;
  for (StringRef token : tokens)
    result += token;
  result.resize(std::min(result.size(), maxSize));
  memcpy(data, result.data(), result.size());
  return result.size();
}
