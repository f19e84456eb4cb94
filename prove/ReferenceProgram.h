//===- ReferenceProgram.h - What a function of PyTorch was taken apart into -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trace's answer is read once, and evaluated many times: at each point, over each chain.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_REFERENCEPROGRAM_H
#define TEGULA_PROVE_REFERENCEPROGRAM_H

#include "ir/DTypes.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tegula::prove {

/// One tensor of a reference, computed from tensors before it.
struct Instruction {
  std::string op, fn, name; // `name`: of an input
  DType dtype = DType::F32;
  bool isFloat = false, isDescending = false;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<unsigned> in;
  /// Of a gather: places in the concatenation of its operands, from 1 on; 0 is the fill.
  const std::vector<int32_t> *places = nullptr;
  double fill = 0;
  /// Of a constant: one value for all elements, or one for each.
  std::vector<double> values;
  std::vector<int64_t> integers;
  int64_t n = 1, take = 0, correction = 0; // of rows
  size_t batch = 0, m = 0, k = 0;          // of a product, whose columns are n

  int64_t count() const;
};

struct ReferenceProgram {
  std::vector<Instruction> instructions;
  std::vector<std::vector<int32_t>> tables;
  std::vector<unsigned> outputs;
  /// By value: the instruction that takes it last, which is none for outputs.
  std::vector<unsigned> lastUses;
  /// By value: whether it is a gather that products alone take, so that it need not be copied. Its
  /// operands are kept as long as it is.
  std::vector<bool> isView;
  /// By value: whether it is a condition that bounds leave one way alone.
  std::vector<bool> isDecided;

  /// Nothing, with a message, where the answer has another form.
  static std::unique_ptr<ReferenceProgram> read(const llvm::json::Object &answer,
                                                std::string &message);

private:
  void findUses();
  void findDecided();
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_REFERENCEPROGRAM_H
