//===- WholeCopies.h - Statements that copy a tensor --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A write copies a tensor where it gives every element of one the element of another at the same
// place. It may be the only write of its statement or one of several. Who removes it has to see to
// it that what reads the copy afterwards finds the same elements elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_WHOLECOPIES_H
#define TEGULA_PASSES_ANALYSIS_WHOLECOPIES_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Whether the write defines every element of its tensor, each at a point of its own, whatever the
/// data are.
bool writesWhole(tgl::WriteOp write);

struct WholeCopy {
  tgl::WriteOp write;
  tgl::ReadOp read; ///< of the same point
  mlir::Value from() { return read.getTensor(); }
  mlir::Value to() { return write.getTensor(); }
};

/// Nothing where the write is no copy of another tensor of the same type.
std::optional<WholeCopy> matchWholeCopy(tgl::WriteOp write);

/// Erases the write, and what of its statement and launch it leaves without effect.
void eraseWrite(tgl::WriteOp write);

/// Lets readers of `copy`, which stand in the same block of launches and loops, read what it was
/// copied from; the copy is gone then. False, and nothing changes, where one of both is changed
/// before the last of these reads.
bool forwardCopy(WholeCopy copy);

/// Replaces a temporary whose last elements `copy` stores into a result by that result; the copy is
/// gone then. False, and nothing changes, where something else uses the result or changes the
/// temporary later.
bool storeInPlace(WholeCopy copy);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_WHOLECOPIES_H
