//===- IndexProgram.h - Integer expressions made ready to run -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An IndexExpr as code for a small stack machine over numbered slots: for guards at launch and for
// trying many sizes. Arithmetic is 64-bit and checked; of a conditional only the branch that is
// taken is evaluated.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_INDEXPROGRAM_H
#define TEGULA_SYMBOLIC_INDEXPROGRAM_H

#include "symbolic/IndexExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace tegula {

class IndexProgram {
public:
  /// Nothing where `slotOf` knows a variable's slot not, or the expression overflowed.
  static std::optional<IndexProgram>
  compile(const IndexExpr &expr,
          llvm::function_ref<std::optional<unsigned>(const IndexVar &)> slotOf);

  /// Nothing on division by zero, and on overflow unless integers wrap, as in code.
  std::optional<int64_t> run(llvm::ArrayRef<int64_t> slots, bool wraps = false) const;

private:
  enum class Op : uint8_t {
    Constant,
    Load,
    Add,
    Multiply,
    Scale,
    Power,
    FloorDiv,
    Min,
    Max,
    JumpUnlessEQ,
    JumpUnlessNE,
    JumpUnlessLT,
    JumpUnlessLE,
    Jump,
    Float
  };
  struct Instruction {
    Op op;
    int64_t operand;
  };
  bool emit(const IndexExpr &expr,
            llvm::function_ref<std::optional<unsigned>(const IndexVar &)> slotOf);
  bool emitAtom(const IndexExpr::Atom &atom,
                llvm::function_ref<std::optional<unsigned>(const IndexVar &)> slotOf);

  llvm::SmallVector<Instruction, 8> code;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_INDEXPROGRAM_H
