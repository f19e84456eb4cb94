//===- CheckKernel.cpp - One kernel, from its signature to its last statement -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckKernel.h"
#include "frontend/check/CheckEntry.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

static bool hasUncountableBytes(const checked::Tensor &tensor) {
  IndexExpr bytes(8); // of the largest element
  for (const IndexExpr &dim : tensor.dims)
    bytes = bytes * dim;
  return bytes.isOverflow();
}

std::unique_ptr<Program> tegula::checkKernel(CheckContext &ctx) {
  ctx.errorsBefore = ctx.diagnostics->numErrors();
  const ast::Kernel *kernel = ctx.module.entry(ctx.options.kernel);
  if (!kernel) {
    if (!ctx.options.kernel.empty()) {
      std::vector<llvm::StringRef> own;
      for (const auto &candidate : ctx.module.file().kernels)
        own.push_back(candidate->name.name);
      std::string message = "no kernel '" + ctx.options.kernel + "' in this file";
      llvm::StringRef near = nearestName(ctx.options.kernel, own);
      auto builder =
          ctx.diagnostics->report(Code::UnknownKernel, {ctx.module.file().id, 0, 0}, message);
      if (!near.empty())
        builder.note("did you mean '" + near.str() + "'?");
    } else if (!ctx.diagnostics->hasErrors()) {
      ctx.diagnostics->report(Code::EmptyFile, {ctx.module.file().id, 0, 0},
                              "expected a kernel, the file has none");
    }
    return nullptr;
  }
  Frame entry;
  entry.kernel = kernel;
  entry.isLibrary = ctx.module.isLibrary(*kernel);
  entry.body = &ctx.program->body;
  ctx.frame = &entry;
  ctx.scope = &entry.scope;
  ctx.sink = &ctx.program->body;
  ctx.program->name = kernel->name.name;
  ctx.program->span = kernel->span;
  requireDistinctNames(ctx);

  llvm::SmallVector<TensorInfo *> outputs;
  if (bindEntry(ctx, entry) && declareOutputs(ctx, entry, outputs)) {
    loseNames(ctx, entry);
    checkBody(ctx, kernel->body);
    finishKernel(ctx, entry, outputs);
    if (!ctx.hasErrors())
      requireNoInvariantSums(ctx);
    suggestDims(ctx);
    for (checked::Size &size : ctx.program->sizes)
      size.isUnnamed = ctx.sizeNames.autoDefinitions.contains(size.name);
  }
  ctx.program->precision = entry.precision;
  if (!ctx.program->precision && !ctx.options.precision.empty())
    ctx.program->precision = ctx.options.precision;
  // Code has no places for what is beyond any memory unless it is empty.
  for (const Tensor &tensor : ctx.program->tensors)
    if (!ctx.hasErrors() && !tensor.constantValue && hasUncountableBytes(tensor))
      ctx.report(Code::SizeOverflow, tensor.span,
                 "'" + tensor.name +
                     "' has more bytes than 64 bits count wherever it has an element");
  if (ctx.hasErrors())
    return nullptr;
  return std::move(ctx.program);
}
