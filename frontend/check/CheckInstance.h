//===- CheckInstance.h - Signatures: types, constants, dims, outputs *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKINSTANCE_H
#define TEGULA_FRONTEND_CHECK_CHECKINSTANCE_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// What a parameter gets: a tensor, a number, or several.
struct Given {
  bool isGiven = false;
  TensorInfo *tensor = nullptr;
  Value value;
  std::vector<Value> tuple;
  bool isTuple = false;
  Span span;
};

enum class ParamKind { Tensor, Scalar, Constant, Tuple };

ParamKind kindOf(const ast::Param &param);
std::optional<DType> resolveType(CheckContext &ctx, const ast::Ident &type);
bool isGeneric(llvm::StringRef name);
bool bindDims(CheckContext &ctx, const ast::Param &param, llvm::ArrayRef<IndexExpr> dims,
              unsigned input);
/// The dims of a declaration, evaluated; nothing where that was reported.
std::optional<std::vector<IndexExpr>> evalDims(CheckContext &ctx, const ast::Param &param);
bool bindConstant(CheckContext &ctx, const ast::Param &param, const Given &given);
Given evalGiven(CheckContext &ctx, const ast::Expr &e);
bool defineWhereSizes(CheckContext &ctx);
bool declareOutputs(CheckContext &ctx, Frame &frame, llvm::SmallVectorImpl<TensorInfo *> &outputs);
void finishKernel(CheckContext &ctx, Frame &frame, llvm::ArrayRef<TensorInfo *> outputs);
void addSize(CheckContext &ctx, llvm::StringRef name, unsigned input, unsigned dim);
TensorInfo *newTensor(CheckContext &ctx, Tensor::Kind kind, llvm::StringRef name, DType type,
                      std::vector<IndexExpr> dims, Span span);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKINSTANCE_H
