//===- Equivalence.h - Checks that passes keep results ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle for passes: a kernel is interpreted before and after, on the same small inputs. Inputs
// are small integers in whatever type, so that sums are exact in any order and results must agree
// bit for bit; where functions or divisions round, within a few units of the last place.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_EQUIVALENCE_H
#define TEGULA_PASSES_ANALYSIS_EQUIVALENCE_H

#include "ir/interpreter/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <map>
#include <string>

namespace tegula {

/// Inputs of one interpretation of a kernel.
struct KernelInputs {
  std::vector<HostTensor> tensors;
  std::vector<InterpreterScalar> scalars;
  llvm::StringMap<int64_t> sizes;
};

/// Inputs for sizes chosen from `seed` (those in `given` are fixed), such that the guards hold;
/// nothing where none were found.
std::optional<KernelInputs> randomInputs(tgl::KernelOp kernel, uint64_t seed,
                                         const std::map<std::string, int64_t> &given = {});

/// Whether all that the kernel computes is exact on small integers.
bool isExactOnIntegers(tgl::KernelOp kernel);

/// Where two results differ by more than `relative` of the largest value, as text; empty where they
/// agree. nan equals nan.
std::string difference(const InterpreterResult &before, const InterpreterResult &after,
                       double relative);

/// The kernel of a module that no other one calls.
tgl::KernelOp entryOf(mlir::ModuleOp module);

/// Makes the manager interpret the kernel after every pass and compare with `inputs` run on the
/// module as it was. `report` is called with the pass and the difference.
void checkEquivalence(mlir::PassManager &manager, mlir::ModuleOp module, const KernelInputs &inputs,
                      std::function<void(llvm::StringRef pass, llvm::StringRef difference)> report);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_EQUIVALENCE_H
