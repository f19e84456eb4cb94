//===- CheckObserver.h - Equations that write what is looked at --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKOBSERVER_H
#define TEGULA_FRONTEND_CHECK_CHECKOBSERVER_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

using checked::Observation;

/// A value to be looked at, and how messages name it.
struct Seen {
  std::string text;
  const Expr *value = nullptr;  // null: a text of the program
  const Expr *isRead = nullptr; // where it is true there is such a value; null: everywhere
};

/// Where the calls of kernels begin that lead to what is being checked, outermost first.
std::vector<uint32_t> callsAround(const CheckContext &ctx);

/// Makes observations of one statement, and the equations that write them.
class Observer {
public:
  Observer(CheckContext &ctx, Span span, llvm::StringRef word);
  /// `own`: the indices of the statement; `happened`: see Observation.
  bool observe(Observation::Kind kind, llvm::ArrayRef<Seen> seen, const Expr *happened,
               llvm::ArrayRef<const Var *> own, const Expr *guard, std::string message = {});
  /// Notes each step of the loops, and each point of the block, in which the statement is reached.
  bool observeReach();
  /// Notes the points of an equation.
  bool observePoints(llvm::ArrayRef<const Var *> own, const Expr *guard);
  void append() { ctx.sink->push_back(out); }

private:
  bool observeAlong(Observation observation, llvm::ArrayRef<Seen> seen, const Expr *happened,
                    llvm::ArrayRef<const Var *> own, const Expr *guard, std::vector<unsigned> axes);
  std::vector<unsigned> axesOf(llvm::ArrayRef<Seen> seen, const Expr *happened,
                               llvm::ArrayRef<const Var *> own, const Expr *guard);
  std::optional<IndexExpr> limitOf(const Var &var, bool isHigh);
  const Tensor *write(const Expr *value, llvm::ArrayRef<const Var *> own,
                      llvm::ArrayRef<IndexExpr> subscripts, const Expr *guard,
                      std::vector<IndexExpr> dims);

  CheckContext &ctx;
  Span span;
  llvm::StringRef word; // that messages name; empty: none are given
  Stmt *out;
};

/// Looks at what an equation defines where the options say so: floats of the program's own
/// equations. `own`: the indices of the equation.
void watch(CheckContext &ctx, Span span, llvm::StringRef text, const Expr *value,
           llvm::ArrayRef<const Var *> own = {}, const Expr *guard = nullptr);
/// Where a program is stepped through: notes when the statement is reached.
void markReached(CheckContext &ctx, const ast::Stmt &stmt);
/// The same for the points of an equation, which an equation of its own statement has.
void markPoints(CheckContext &ctx, Span span, llvm::ArrayRef<const Var *> own, const Expr *guard);
/// Looks at all elements of what a kernel of the library gives.
void watchResult(CheckContext &ctx, Span span, const Tensor &result);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKOBSERVER_H
