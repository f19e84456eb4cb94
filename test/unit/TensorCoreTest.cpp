//===- TensorCoreTest.cpp - Places of elements in shared memory ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every element of every tile that the strategy uses has a place of its own in the tile, and what a
// warp loads at a time lies in different banks. The builder folds constants, so the code that is
// tested is the code that is emitted.
//
//===----------------------------------------------------------------------===//

#include "codegen/nvgpu/Fragments.h"
#include "codegen/nvgpu/Mma.h"
#include "codegen/nvgpu/Wgmma.h"
#include "strategies/contraction/plan/TileMemory.h"
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
  Mma core{builder, MmaType::TF32};

  unsigned offset(const MmaSharedLayout &tile, unsigned line, unsigned position) {
    return cast<ConstantInt>(core.offset(tile, builder.getInt32(line), builder.getInt32(position)))
        ->getZExtValue();
  }

  void forEachTile(function_ref<void(const MmaSharedLayout &)> body) {
    for (bool kMajor : {false, true})
      for (unsigned bytes : {2, 4})
        for (unsigned extent : {16, 32, 64, 128, 192, 256}) {
          SCOPED_TRACE(testing::Message() << kMajor << " " << bytes << " " << extent);
          body(MmaSharedLayout{kMajor, bytes, extent});
        }
    for (unsigned extent : {16, 32, 64, 128, 192, 256}) {
      SCOPED_TRACE(testing::Message() << "bytes " << extent);
      body(MmaSharedLayout{true, 1, extent});
    }
  }
};

TEST_F(TensorCorePlaces, AreDistinctAndInsideTheTile) {
  forEachTile([&](const MmaSharedLayout &tile) {
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
  forEachTile([&](const MmaSharedLayout &tile) {
    unsigned chunk = 16 / tile.elementBytes;
    for (unsigned line = 0; line < tile.lines(); ++line)
      for (unsigned position = 0; position < tile.lineLength(); ++position)
        EXPECT_EQ(offset(tile, line, position), offset(tile, line, position / chunk * chunk) +
                                                    position % chunk * tile.elementBytes);
  });
}

// Eight lines of a matrix of ldmatrix, or the words that the lanes of a warp load: 128 bytes in all
// banks.
TEST_F(TensorCorePlaces, HaveNoBankConflicts) {
  forEachTile([&](const MmaSharedLayout &tile) {
    if (tile.pitch() < 128)
      return; // lines too short to be exchanged so far
    bool byWords = !tile.kMajor && tile.elementBytes == 4;
    unsigned lines = byWords ? 4 : 8, words = byWords ? 8 : 4;
    for (unsigned first = 0; first < tile.lines(); first += lines)
      for (unsigned start = 0; start < tile.pitch() / 4; start += words) {
        std::set<unsigned> banks;
        for (unsigned line = 0; line < lines; ++line)
          for (unsigned word = 0; word < words; ++word)
            banks.insert(offset(tile, first + line, (start + word) * 4 / tile.elementBytes) / 4 %
                         32);
        EXPECT_EQ(banks.size(), 32u) << first << " " << start;
      }
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

// Each element of a tile is in one register of one thread, pairs of them beside each other in a
// row; for every number of warps that a tile of such an extent may have, not only those that the
// schedule's table has now.
TEST(Fragments, HoldEveryElementOnce) {
  LLVMContext context;
  IRBuilder<> b(context);
  auto number = [](Value *value) { return cast<ConstantInt>(value)->getZExtValue(); };
  auto check = [&](const TensorTile &tile,
                   function_ref<TileCoord(Value * thread, Value * lane, unsigned sum)> locationOf) {
    SCOPED_TRACE(testing::Message() << tile.rows << " x " << tile.columns << ", " << tile.warpRows
                                    << " x " << tile.warpColumns << " warps, " << tile.warpgroups);
    std::vector<unsigned> holders(tile.rows * tile.columns);
    for (unsigned thread = 0; thread < tile.threads(); ++thread)
      for (unsigned sum = 0; sum < accumulatorsPerThread(tile); sum += 2) {
        TileCoord first = locationOf(b.getInt32(thread), b.getInt32(thread % 32), sum),
                  second = locationOf(b.getInt32(thread), b.getInt32(thread % 32), sum + 1);
        ASSERT_EQ(number(first.row), number(second.row));
        ASSERT_EQ(number(first.column) + 1, number(second.column));
        ASSERT_EQ(number(first.column) % 2, 0u); // stored together
        ASSERT_LT(number(first.row), tile.rows);
        ASSERT_LT(number(second.column), tile.columns);
        ++holders[number(first.row) * tile.columns + number(first.column)];
        ++holders[number(second.row) * tile.columns + number(second.column)];
      }
    EXPECT_TRUE(all_of(holders, [](unsigned count) { return count == 1; }));
  };
  for (int64_t rows : {16, 32, 64, 128})
    for (int64_t columns : {16, 32, 64, 128, 256})
      for (int64_t down : {1, 2, 4})
        for (int64_t across : {1, 2, 4}) {
          if (rows % (16 * down) || columns % (16 * across))
            continue;
          TensorTile tile{rows, columns, down, across, 1};
          check(tile, [&](Value *thread, Value *lane, unsigned sum) {
            return mmaAccumulatorAt(b, tile, warpCorner(b, tile, thread), lane, sum);
          });
        }
  for (int64_t rows : {64, 128})
    for (int64_t columns : {64, 128, 256}) {
      TensorTile tile{rows, columns, 2, 4, 1, /*warpgroups=*/true};
      check(tile, [&](Value *thread, Value *lane, unsigned sum) {
        return wgmmaAccumulatorAt(b, tile, thread, lane, b.getInt32(sum));
      });
    }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

// Each vector of a row is one thread's of one block, in a place of that block's memory that is no
// other's.
TEST(Rows, DealEveryVectorOnce) {
  LLVMContext context;
  IRBuilder<> b(context);
  auto number = [](Value *value) { return cast<ConstantInt>(value)->getSExtValue(); };
  for (int64_t threads : {32, 256, 1024})
    for (unsigned cluster : {1, 2, 4, 8}) {
      RowDistribution deal{threads, cluster};
      std::set<int64_t> vectors;
      for (unsigned rank = 0; rank < cluster; ++rank) {
        std::set<int64_t> places;
        for (int64_t round = 0; round < 3; ++round)
          for (int64_t thread = 0; thread < threads; ++thread) {
            Value *all = rowThread(b, deal, b.getInt64(rank), b.getInt64(thread));
            EXPECT_TRUE(vectors.insert(number(rowVector(b, deal, b.getInt64(round), all))).second);
            EXPECT_TRUE(
                places.insert(number(rowSlotOffset(b, deal, b.getInt64(round), b.getInt64(thread))))
                    .second);
          }
        EXPECT_EQ(*places.rbegin(), 3 * threads - 1); // without gaps
      }
      EXPECT_EQ(vectors.size(), size_t(3 * deal.each()));
      EXPECT_EQ(*vectors.rbegin(), 3 * deal.each() - 1);
    }
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

class WarpgroupPlaces : public ::testing::Test {
protected:
  LLVMContext context;
  IRBuilder<> builder{context};
  Wgmma group{builder, /*isBF16=*/false};

  unsigned place(const WgmmaSharedLayout &tile, unsigned line, unsigned unit, unsigned plane) {
    return cast<ConstantInt>(
               group.swizzledOffset(tile, builder.getInt32(line), builder.getInt32(unit), plane))
        ->getZExtValue();
  }

  void forEachTile(function_ref<void(const WgmmaSharedLayout &)> body) {
    for (unsigned extent : {64, 128, 256})
      for (WgmmaSharedLayout tile :
           {WgmmaSharedLayout{true, 1, extent}, WgmmaSharedLayout{true, 2, extent},
            WgmmaSharedLayout{false, 1, extent},
            WgmmaSharedLayout{true, 1, extent, /*elementBytes=*/1}}) {
        SCOPED_TRACE(testing::Message() << tile.kMajor << " " << tile.terms << " " << extent);
        body(tile);
      }
  }
  static unsigned lines(const WgmmaSharedLayout &tile) {
    return tile.kMajor ? tile.extent : tile.depth();
  }
};

TEST_F(WarpgroupPlaces, AreDistinctAndInsideTheTile) {
  forEachTile([&](const WgmmaSharedLayout &tile) {
    std::set<unsigned> places;
    for (unsigned plane = 0; plane < tile.terms; ++plane)
      for (unsigned line = 0; line < lines(tile); ++line)
        for (unsigned unit = 0; unit < tile.chunksPerLine(); ++unit) {
          unsigned byte = place(tile, line, unit, plane);
          EXPECT_EQ(byte % 16, 0u);
          EXPECT_LE(byte + 16, tile.bytes());
          EXPECT_TRUE(places.insert(byte).second) << line << " " << unit;
        }
    EXPECT_EQ(places.size() * 16, tile.bytes());
  });
}

// Where wgmma looks for a unit, from its descriptor: PTX ISA, the layouts of the swizzle of 128
// bytes.
TEST_F(WarpgroupPlaces, AreThoseOfTheDescriptor) {
  constexpr unsigned base = 0x8000;
  forEachTile([&](const WgmmaSharedLayout &tile) {
    unsigned points = 32 / tile.elementBytes, together = 16 / tile.elementBytes;
    for (unsigned plane = 0; plane < tile.terms; ++plane)
      for (unsigned first = 0; first < tile.extent; first += 64)
        for (unsigned step = 0; step < tile.depth() / points; ++step) {
          uint64_t descriptor =
              cast<ConstantInt>(group.descriptor(tile, builder.getInt32(base),
                                                 builder.getInt32(first), plane, step))
                  ->getZExtValue();
          EXPECT_EQ(descriptor >> 62, 1u);
          unsigned start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4;
          unsigned stride = (descriptor >> 32 & 0x3fff) << 4;
          for (unsigned x = 0; x < 64; x += tile.kMajor ? 1 : 8)
            for (unsigned k = 0; k < points; k += tile.kMajor ? together : 1) {
              unsigned byte = tile.kMajor
                                  ? start + x / 8 * stride + x % 8 * 128 + k * tile.elementBytes
                                  : start + x / 64 * leading + k / 8 * stride + k % 8 * 128 + x * 2;
              byte ^= (byte >> 7 & 7) << 4;
              unsigned line = tile.kMajor ? first + x : step * points + k;
              unsigned unit = tile.kMajor ? (step * points + k) / together : (first + x) / 8;
              EXPECT_EQ(byte, base + place(tile, line, unit, plane))
                  << first << " " << step << " " << x << " " << k;
            }
        }
  });
}

// A device refuses a block that asks for more shared memory than it has; the statement then runs
// without tensor cores.
TEST(TileMemoryByWarps, FitsTheDevice) {
  const TensorTile tiles[] = {{128, 256, 2, 4, 1}, {128, 192, 2, 4, 1}, {128, 128, 2, 4, 1},
                              {128, 64, 4, 2, 1},  {64, 128, 2, 4, 2},  {64, 64, 2, 2, 1},
                              {128, 16, 4, 1, 4},  {16, 128, 1, 4, 1}};
  for (unsigned capability : {80, 86, 87, 89, 90, 100, 120})
    for (MmaType type : {MmaType::BF16, MmaType::TF32, MmaType::F8, MmaType::I8})
      for (const TensorTile &tile : tiles)
        for (Staging staging : {Staging::Vectors, Staging::Values})
          for (unsigned products : {1, 2}) {
            if (products == 2 &&
                (tile.columns > 128 || TargetInfo::gpu(capability, false).sharedBytes < 128 * 1024))
              continue; // rankTiles has no such tiles; nor have devices with less room such
                        // products
            ProductOperands operands{type, {staging}, {staging}};
            SmallVector<ProductOperands> all(products, operands);
            TargetInfo machine = TargetInfo::gpu(capability, false);
            machine.usesBulkLoads = false;
            TileMemory memory(tile, all, machine);
            if (products * memory.accumulatorsBytes() > machine.sharedBytes)
              continue; // not chosen for such a device
            EXPECT_LE(memory.sharedBytes(), machine.sharedBytes)
                << capability << " " << tile.fullName() << " " << unsigned(type) << " " << products;
          }
}

TEST(TargetInfo, TextIsReadAsTheSame) {
  for (StringRef text :
       {"cpu", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_90a:no-wgmma", "sm_100", "sm_120",
        "sm_90a:no-bulk-copies:no-tma-16bit",
        "sm_90a:cluster-blocks=1:shared-bytes=65536:multiprocessors=3:min-tma-macs=0"}) {
    std::optional<TargetInfo> target = TargetInfo::parse(text);
    ASSERT_TRUE(target) << text.str();
    EXPECT_EQ(target->text(), text);
    EXPECT_EQ(TargetInfo::parse(target->text()), target);
  }
  EXPECT_EQ(TargetInfo::parse("sm_90")->text(), "sm_90a:no-wgmma");
  for (StringRef text : {"", "sm_", "sm_70", "sm_90b", "h200", "sm_90a:", "sm_90a:no-clusters",
                         "sm_90a:cluster-blocks", "sm_90a:cluster-blocks=x", "cuda"})
    EXPECT_FALSE(TargetInfo::parse(text)) << text.str();
}

TEST(TargetInfo, SwitchesReachThePlan) {
  // Operands that come by no bulk copies have the stages of cp.async.
  TensorTile tile{128, 256, 4, 1, 1, /*warpgroups=*/true};
  ProductOperands operands{MmaType::BF16, {Staging::Vectors}, {Staging::Vectors}};
  TargetInfo with = TargetInfo::gpu(90, true), without = with;
  without.usesBulkLoads = false;
  EXPECT_TRUE(TileMemory(tile, {operands}, with).usesWgmma());
  EXPECT_TRUE(TileMemory(tile, {operands}, without).usesWgmma());
  EXPECT_FALSE(TileMemory(tile, {operands}, TargetInfo::gpu(80, false)).usesWgmma());
}

} // namespace
