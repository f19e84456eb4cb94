//===- TileCheck.h - Results do not depend on tile sizes ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of a tile loop is that of tiles of one element; larger tiles must give the same but
// for rounding. No proof: each statement with a tile loop is emitted on its own and interpreted at
// small sizes on random data, in tiles of 1, 2, 3 and the whole range.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_VERIFY_TILECHECK_H
#define TEGULA_FRONTEND_VERIFY_TILECHECK_H

#include "frontend/check/Checked.h"
#include "frontend/diagnostics/Diagnostics.h"

namespace tegula {

struct TileCheckResult {
  unsigned statements = 0;   // with tile loops, outside of the library
  unsigned compared = 0;     // of those, interpreted at some sizes
  std::vector<Span> untried; // the first tile loops of the others
};

/// Reports TileDependent at each tile loop whose size changes a result. For a program without other
/// errors. The program is the same afterwards; it is changed in between.
TileCheckResult checkTiles(checked::Program &program, Diagnostics &diagnostics);

} // namespace tegula

#endif // TEGULA_FRONTEND_VERIFY_TILECHECK_H
