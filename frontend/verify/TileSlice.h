//===- TileSlice.h - Statements with tile loops on their own ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_VERIFY_TILESLICE_H
#define TEGULA_FRONTEND_VERIFY_TILESLICE_H

#include "frontend/check/Checked.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "llvm/ADT/SetVector.h"

namespace tegula {

/// A part of a kernel that can be emitted alone: what it reads are inputs, what it writes outputs.
struct TileSlice {
  std::vector<checked::Stmt *> body;
  llvm::SetVector<const checked::Tensor *> reads, writes;
  llvm::SetVector<const checked::ScalarParam *> scalars;
  std::vector<const checked::Stmt *> loops; // its tile loops
  double tolerance = 0;                     // relative, from the coarsest rounding in it
};

/// The statements of a program that hold tile loops (those of the library left out), each with the
/// lets and states before it.
std::vector<TileSlice> findTileSlices(const checked::Program &program,
                                      const SourceManager &sources);

/// Makes the program that of a slice, and puts everything back. Sizes are all derived, of no
/// meaning.
class TileDisguise {
public:
  TileDisguise(checked::Program &program, const TileSlice &slice);
  ~TileDisguise();
  TileDisguise(const TileDisguise &) = delete;

private:
  void setKind(const checked::Tensor *tensor, checked::Tensor::Kind kind);

  checked::Program &program;
  std::vector<checked::Stmt *> body;
  std::vector<const checked::Tensor *> inputs, outputs;
  std::vector<const checked::ScalarParam *> scalars;
  std::vector<checked::Guard> guards;
  std::vector<checked::Size> sizes;
  std::vector<checked::ScheduleSetting> schedule;
  std::optional<std::string> precision;
  std::vector<std::pair<checked::Tensor *, checked::Tensor::Kind>> kinds;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_VERIFY_TILESLICE_H
