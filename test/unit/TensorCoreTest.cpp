//===- TensorCoreTest.cpp - Places of elements in shared memory ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every element of every tile that the strategy uses has a place of its own in the tile, and what a warp
// loads at a time lies in different banks. The builder folds constants, so the code that is tested is the
// code that is emitted.
//
//===----------------------------------------------------------------------===//

#include "codegen/TensorCore.h"
#include "llvm/IR/Constants.h"
#include <gtest/gtest.h>
#include <set>

using namespace llvm;
using namespace tegula;

namespace {

class TensorCorePlaces : public ::testing::Test {
protected:
  LLVMContext context;
  IRBuilder<> builder{context};
  TensorCore core{builder, Multiplicand::TF32};

  unsigned offset(const SharedTile &tile, unsigned line, unsigned position) {
    return cast<ConstantInt>(core.offset(tile, builder.getInt32(line), builder.getInt32(position)))
        ->getZExtValue();
  }

  void forEachTile(function_ref<void(const SharedTile &)> body) {
    for (bool alongSum : {false, true})
      for (unsigned bytes : {2, 4})
        for (unsigned extent : {16, 32, 64, 128, 256}) {
          SCOPED_TRACE(testing::Message() << alongSum << " " << bytes << " " << extent);
          body(SharedTile{alongSum, bytes, extent});
        }
  }
};

TEST_F(TensorCorePlaces, AreDistinctAndInsideTheTile) {
  forEachTile([&](const SharedTile &tile) {
    std::set<unsigned> places;
    for (unsigned line = 0; line < tile.lines(); ++line)
      for (unsigned position = 0; position < tile.lineLength(); ++position) {
        unsigned place = offset(tile, line, position);
        EXPECT_EQ(place % tile.elementBytes, 0u);
        EXPECT_LE(place + tile.elementBytes, tile.bytes());
        EXPECT_TRUE(places.insert(place).second) << line << " " << position;
      }
  });
}

// A copy of 16 bytes goes to one place.
TEST_F(TensorCorePlaces, KeepChunksTogether) {
  forEachTile([&](const SharedTile &tile) {
    unsigned chunk = 16 / tile.elementBytes;
    for (unsigned line = 0; line < tile.lines(); ++line)
      for (unsigned position = 0; position < tile.lineLength(); ++position)
        EXPECT_EQ(offset(tile, line, position),
                  offset(tile, line, position / chunk * chunk) + position % chunk * tile.elementBytes);
  });
}

// Eight lines of a matrix of ldmatrix, or the words that the lanes of a warp load: 128 bytes in all banks.
TEST_F(TensorCorePlaces, HaveNoBankConflicts) {
  forEachTile([&](const SharedTile &tile) {
    if (tile.pitch() < 128)
      return; // lines too short to be exchanged so far
    bool byWords = !tile.alongSum && tile.elementBytes == 4;
    unsigned lines = byWords ? 4 : 8, words = byWords ? 8 : 4;
    for (unsigned first = 0; first < tile.lines(); first += lines)
      for (unsigned start = 0; start < tile.pitch() / 4; start += words) {
        std::set<unsigned> banks;
        for (unsigned line = 0; line < lines; ++line)
          for (unsigned word = 0; word < words; ++word)
            banks.insert(offset(tile, first + line, (start + word) * 4 / tile.elementBytes) / 4 % 32);
        EXPECT_EQ(banks.size(), 32u) << first << " " << start;
      }
  });
}

} // namespace
