//===- RuntimeChecks.h - Checks of accesses while a kernel runs ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares subscripts with sizes, and leaves the first access that fails in the record that the
// runtime reads.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_RUNTIMECHECKS_H
#define TEGULA_CODEGEN_COMMON_RUNTIMECHECKS_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"
#include <optional>

namespace tegula {

/// A data-dependent (or, in checked mode, any) access that can fail while running.
struct ErrorSite {
  std::string text; // what the access is called in the report: `table[ids[i]]`
  mlir::Location loc;
  /// Set where the report is of an element of this tensor: its offset is the record's value, and
  /// `text` says what is wrong with it.
  std::string tensor = {};
  tgl::TglTensorType type = {};
  bool isDefect = false;   ///< an access that was proved
  bool isUnsigned = false; ///< the subscript, a number of u64
};

class ScalarEmitter;

class RuntimeChecks {
public:
  RuntimeChecks(ScalarEmitter &e, std::vector<ErrorSite> &sites);

  /// Where errors of running go: {i32 taken, i32 site, i64 value}; null: none can happen.
  llvm::Value *record = nullptr;
  mlir::Operation *access = nullptr; ///< the read or write that is being emitted

  /// True where every subscript is inside its dim. A scalar or a vector of i1.
  llvm::Value *emitBoundsCheck(llvm::ArrayRef<tgl::ValueExpr> subscripts, tgl::TglTensorType type);
  /// Where an access reports: `guard`, and the axes that it left have points.
  llvm::Value *reportMask(mlir::Operation *op, llvm::Value *guard);
  /// Reports the first bad lane of an access: takes the record if nobody has, then leaves the site
  /// and the offending subscript.
  void report(llvm::Value *bad, ErrorSite site, llvm::ArrayRef<tgl::ValueExpr> subscripts,
              tgl::TglTensorType type);
  /// Emits `body`. Its checks that are reached whenever it is report together behind it: with a
  /// branch for each, what they let be loaded would wait for one another. `most` of them do at a
  /// time: what is reported stays in registers.
  void reportTogether(llvm::function_ref<void()> body, size_t most = 16);
  /// Reports the element of a tensor where `bad` (i1) holds: `what` says what is wrong with it.
  void reportElement(llvm::Value *bad, mlir::Operation *op, mlir::Value tensor, llvm::Value *offset,
                     llvm::StringRef what);
  /// With `evenProved`: reports as a defect where `mask` holds and a subscript is outside.
  void verifyProved(tgl::TglTensorType type, llvm::ArrayRef<tgl::ValueExpr> subscripts,
                    llvm::Value *mask);
  /// Says whether the axis counts the points of others too: its values go beyond its own range, and
  /// only the place in memory of what it subscripts is right.
  void setCountsOthers(mlir::Value axis, bool counts) {
    if (counts)
      countsOthers.insert(axis);
    else
      countsOthers.erase(axis);
  }

private:
  /// A check whose report comes later: a scalar, or of the lanes of a vector.
  struct Waiting {
    llvm::Value *bad;
    unsigned site;
    llvm::Value *offender;
  };
  /// The waiting checks of a body.
  struct Together {
    unsigned conditions; ///< around the body: checks under more of them report at once
    size_t most;         ///< checks that wait at a time
    llvm::SmallVector<Waiting> checks;
  };

  ScalarEmitter &e;
  llvm::IRBuilder<> &b;
  std::vector<ErrorSite> &sites;
  llvm::DenseSet<mlir::Value> countsOthers; ///< axes of setCountsOthers
  std::optional<Together> together;

  /// Whether nothing has to be compared, since the loops around keep the subscript inside.
  bool staysWithin(const tgl::ValueExpr &subscript, const IndexExpr &dim) const;
  /// The first of the subscripts that is outside of its dim.
  llvm::Value *emitOffender(llvm::ArrayRef<tgl::ValueExpr> subscripts, tgl::TglTensorType type);
  /// The value in the first lane that is bad; a scalar as it is.
  llvm::Value *ofFirstLane(llvm::Value *bad, llvm::Value *value);
  /// Emits the report of the checks that wait.
  void reportWaiting();
  /// Fills the error record, if nobody has.
  void leave(llvm::Value *site, llvm::Value *value);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_RUNTIMECHECKS_H
