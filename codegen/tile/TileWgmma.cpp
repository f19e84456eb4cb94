//===- TileWgmma.cpp - Products of warpgroups -------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of 16 bits that are k_major lie as wgmma's swizzle of 128 bytes wants them, and a thread's
// sums come in the order of `#tile.mma`: only the product itself is another.
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileWgmma.h"

#include "codegen/async/Async.h"

using namespace llvm;
using namespace tegula;

Wgmma::Accumulators tegula::startProduct(IRBuilder<> &builder, tile::MmaOp op, Value *thread,
                                         Value *a, Value *b, ArrayRef<Value *> sums) {
  constexpr unsigned log2Rows = 6, log2Threads = 7;
  static_assert(Wgmma::rows == 1 << log2Rows && Wgmma::threads == 1 << log2Threads);
  auto layoutOf = [](mlir::Value tile) {
    auto type = cast<tile::SharedType>(tile.getType());
    return WgmmaSharedLayout{/*kMajor=*/true, /*terms=*/1, unsigned(type.getShape()[0])};
  };
  auto address = [&](Value *tile) { return builder.CreatePtrToInt(tile, builder.getInt32Ty()); };
  WgmmaSharedLayout rows = layoutOf(op.getA()), columns = layoutOf(op.getB());
  Value *aAddress = address(a), *bAddress = address(b);
  Value *firstRow = builder.CreateShl(builder.CreateLShr(thread, log2Threads), log2Rows);
  bool isBF16 = cast<tile::SharedType>(op.getB().getType()).getElementType().isBF16();
  Wgmma core(builder, isBF16);
  Wgmma::Accumulators result(sums.begin(), sums.end());
  for (unsigned step = 0; step < WgmmaSharedLayout::lineBytes / Wgmma::stepBytes; ++step)
    result = core.multiply(
        result, columns.extent, core.descriptor(rows, aAddress, firstRow, /*term=*/0, step),
        rows.kMajor, core.descriptor(columns, bAddress, builder.getInt32(0), /*term=*/0, step),
        columns.kMajor);
  async::commitProducts(builder);
  return result;
}
