//===- Writer.h - Checked values as text -----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Equations of checked values as the text that means them. Tensors get names that no other has,
// and within an equation so do indices. Ranges that the checker infers are left out, as are
// conversions that it makes by itself. The text is not yet in the canonical form (Printer.h).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_WRITER_H
#define TEGULA_GRAD_WRITER_H

#include "grad/Builder.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace tegula::grad {

class Writer {
public:
  /// `ellipsis`: the size for which `...` is written, or empty.
  Writer(const Builder &builder, std::map<checked::DType, std::string> typeNames,
         std::string ellipsis, Refusal &refusal);

  /// A name that no tensor, size or scalar has yet.
  std::string unique(llvm::StringRef name);
  void reserve(llvm::StringRef name) { taken.insert(name); }
  /// What is written for a size that has no name of its own: `stride[0]`.
  void spell(llvm::StringRef symbol, std::string text) { symbolTexts[symbol] = std::move(text); }
  void name(const Tensor *tensor);
  /// Names a tensor that the head declares as a result. All others that are defined are
  /// temporaries, also what the program that was differentiated gives.
  void nameOutput(const Tensor *tensor) {
    name(tensor);
    outputs.insert(tensor);
  }
  llvm::StringRef nameOf(const Tensor *tensor) { return names.find(tensor)->second; }
  std::string typeName(checked::DType type) const;
  /// `f32[M, N]`.
  std::string declaration(const Tensor &tensor, llvm::StringRef type);
  std::string size(const IndexExpr &expr);
  /// Gives the equations' targets names.
  void nameTargets(llvm::ArrayRef<Equation> equations);
  /// Statements, each on lines of its own.
  std::string statements(llvm::ArrayRef<Equation> equations);
  /// False, with the reason, once something could not be written.
  bool isFine() const { return !failed; }
  /// Whether that was because an index of `...` is used as a number.
  bool isEllipsisWrong() const { return ellipsisWrong; }

private:
  struct Text {
    std::string text;
    int strength; // of the operator that is applied last
  };
  void fail(Span span, llvm::StringRef reason);

  std::string statement(const Equation &equation);
  std::string loop(const Loop &loop);

  // Indices.
  std::string axis(unsigned id);
  bool isEllipsisVar(const Var &var) const;
  std::string range(const IndexExpr &lo, const IndexExpr &hi);
  bool isInferred(const Var &var, llvm::ArrayRef<const Expr *> from) const;
  Text index(const IndexExpr &expr);
  Text atom(const IndexExpr::Atom &atom);
  std::optional<Text> remainder(const IndexExpr &expr);

  // Values.
  std::string topk(const Equation &equation, const std::string &target);
  Text value(const Expr *expr);
  Text unary(const Expr *expr);
  Text binary(const Expr *expr);
  Text read(const Expr *expr);
  Text reduction(const Expr *expr);
  Text scan(const Expr *expr);
  Text constant(const Expr *expr);
  std::string inner(const Expr *expr, int strength);
  std::string subscript(const IndexExpr &expr,
                        const std::vector<std::pair<unsigned, IndexExpr>> &groups, unsigned dim,
                        llvm::ArrayRef<std::pair<IndexExpr, IndexExpr>> exact,
                        llvm::function_ref<std::string(unsigned)> bare);
  bool isKnown(const Expr *condition) const;

  const Builder &b;
  std::map<checked::DType, std::string> typeNames;
  std::string ellipsis;
  Refusal &refusal;
  bool failed = false, ellipsisWrong = false;
  llvm::StringSet<> taken;
  llvm::StringMap<std::string> symbolTexts;
  llvm::DenseMap<const Tensor *, std::string> names;
  llvm::DenseSet<const Tensor *> declared, outputs;
  llvm::DenseMap<unsigned, std::string> steps; // loop variables
  // Of the statement that is being written.
  llvm::DenseMap<unsigned, std::string> axes;
  llvm::StringSet<> axisNames;
  llvm::SmallVector<const Expr *> known; // conditions that hold where a part stands
};

} // namespace tegula::grad

#endif // TEGULA_GRAD_WRITER_H
