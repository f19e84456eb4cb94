//===- NarrowTemporaries.cpp - Temporaries of the type that they are read as ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_NARROWTEMPORARIESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// The float type that every read of the value is rounded to at once; null: there is none.
static FloatType roundedType(ReadOp read) {
  FloatType type;
  for (Operation *user : read->getUsers()) {
    auto convert = dyn_cast<ConvertOp>(user);
    auto own = convert ? dyn_cast<FloatType>(convert.getTarget()) : FloatType();
    if (!own || (type && own != type))
      return nullptr;
    type = own;
  }
  return type;
}

/// The narrower type that a temporary of f32 can have without a change of any result: f64 is
/// computed with in f64, narrower types in f32.
static FloatType narrowType(TempOp temp) {
  auto element = dyn_cast<FloatType>(temp.getType().getElementType());
  FloatType type;
  for (Operation *user : temp->getUsers()) {
    if (auto write = dyn_cast<WriteOp>(user); write && !write.getCombine())
      continue;
    auto read = dyn_cast<ReadOp>(user);
    FloatType own = read && !read.getFill() ? roundedType(read) : FloatType();
    if (!own || (type && own != type))
      return nullptr;
    type = own;
  }
  return element && element.isF32() && type && type.getWidth() < element.getWidth() ? type
                                                                                    : nullptr;
}

namespace {
struct NarrowTemporariesPass
    : Counted<tegula::impl::NarrowTemporariesPassBase<NarrowTemporariesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    getOperation().walk([&](TempOp temp) {
      if (FloatType type = isPrivate(temp) ? nullptr : narrowType(temp)) {
        narrow(temp, type);
        count("temporaries narrowed");
      }
    });
  }

private:
  /// Writes round to the element's type, reads give its compute type: what rounds after a read is
  /// done already.
  static void narrow(TempOp temp, FloatType type) {
    SmallVector<ConvertOp> rounded;
    for (Operation *user : temp->getUsers())
      if (auto read = dyn_cast<ReadOp>(user))
        for (Operation *convert : read->getUsers())
          rounded.push_back(cast<ConvertOp>(convert));
    temp.getTensor().setType(TglTensorType::get(temp.getContext(), temp.getType().getDims(), type));
    for (ConvertOp convert : rounded) {
      convert.getResult().replaceAllUsesWith(convert.getValue());
      convert.erase();
    }
  }
};
} // namespace
