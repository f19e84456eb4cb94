//===- Signatures.h - What can be called, as an editor shows it -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_SIGNATURES_H
#define TEGULA_LSP_SIGNATURES_H

#include "frontend/parse/Module.h"
#include "lsp/NameIndex.h"

namespace tegula {

struct BuiltinFunction {
  llvm::StringRef name, signature, documentation;
};
/// The functions of dsl/Builtins.def, in its order.
llvm::ArrayRef<BuiltinFunction> builtinFunctions();

struct CallSignature {
  struct Parameter {
    std::string name;     // empty: `...`
    unsigned begin, end;  // bytes of the label
    bool isNamed = false; // may be given by name
  };
  std::string label, documentation;
  std::vector<Parameter> parameters;
};

/// What a call of the name in `caller` (which may be null) means; nothing where it is unknown.
std::optional<CallSignature> signatureOf(const Module &module, llvm::StringRef name,
                                         const ast::Kernel *caller);
CallSignature signatureOf(const Module &module, const ast::Kernel &kernel);
CallSignature signatureOf(const Module &module, const ast::Fn &fn);

/// The text of a span on one line.
std::string onOneLine(llvm::StringRef text);

} // namespace tegula

#endif // TEGULA_LSP_SIGNATURES_H
