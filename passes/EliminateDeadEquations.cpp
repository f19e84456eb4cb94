//===- EliminateDeadEquations.cpp - Temporaries that nobody reads --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Nest.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ELIMINATEDEADEQUATIONSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Whether anything but writes (and sorts, which write what they read) uses the temporary. Of two
/// temporaries that are sorted together one may be read.
static bool isRead(TempOp temp, DenseSet<Operation *> &seen) {
  if (!seen.insert(temp).second)
    return false;
  for (Operation *user : temp->getUsers()) {
    if (isa<WriteOp>(user))
      continue;
    auto sort = dyn_cast<SortOp>(user);
    if (!sort)
      return true;
    for (Value other : {sort.getValues(), sort.getPositions()}) {
      auto otherTemp = other.getDefiningOp<TempOp>();
      if (!otherTemp || isRead(otherTemp, seen))
        return true;
    }
  }
  return false;
}

namespace {
struct EliminateDeadEquationsPass
    : Counted<tegula::impl::EliminateDeadEquationsPassBase<EliminateDeadEquationsPass>> {
  void runOnOperation() override {
    bool changed = true;
    while (changed) {
      changed = false;
      SmallVector<TempOp> temps;
      getOperation().walk([&](TempOp temp) { temps.push_back(temp); });
      // Pairs of sorted temporaries die together: decide about all before erasing any.
      SmallVector<TempOp> dead;
      for (TempOp temp : temps)
        if (DenseSet<Operation *> seen; !isRead(temp, seen))
          dead.push_back(temp);
      DenseSet<Operation *> users;
      for (TempOp temp : dead)
        users.insert_range(temp->getUsers());
      for (Operation *user : users) {
        count("writes removed", isa<WriteOp>(user));
        user->erase();
      }
      for (TempOp temp : dead)
        temp.erase();
      count("temporaries removed", dead.size());
      changed = !dead.empty();
      eraseUnusedOps(getOperation().getBody().front());
    }
  }
};
} // namespace
