//===- RadixSort.cpp - Radix sort of rows ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/sort/lower/RadixSort.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// In a block
//===----------------------------------------------------------------------===//

/// Sorts the elements of the current row in shared memory.
static void sortInBlock(RadixCode &code, unsigned each, int64_t elements, const SortPlan &plan,
                        function_ref<RadixCode::Element(Value *number)> load) {
  IRBuilder<> &b = code.b;
  DeviceEmitter &e = code.e;
  int64_t tile = int64_t(code.threads) * each;
  Value *space = code.dynamicShared();
  auto take = [&](int64_t bytes) {
    Value *begin = space;
    space = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), space, bytes);
    return begin;
  };
  Value *counts = take(int64_t(code.threads) / RadixCode::warp * RadixCode::digitValues * 4);
  Value *numbers = plan.keepsPositions ? take(tile * 4) : nullptr;
  RadixCode::Memory memory{take(tile * (plan.bits() / 8)), numbers};
  Value *before = code.sharedCounts(RadixCode::digitValues, "before");
  Value *length = code.i32(elements);
  /// In rounds of neighbouring threads.
  auto forEach = [&](int64_t count, function_ref<void(Value * place)> body) {
    for (unsigned index = 0; index < each && int64_t(index) * code.threads < count; ++index) {
      Value *place = b.CreateAdd(code.thread, code.i32(index * code.threads));
      if (int64_t(index + 1) * code.threads <= count)
        body(place);
      else
        e.emitIf(b.CreateICmpULT(place, code.i32(count)), [&] { body(place); });
    }
  };
  forEach(elements, [&](Value *place) { code.store(memory, place, load(place)); });
  code.barrier();
  SmallVector<Digit> digits = sortDigits(plan.bits());
  unsigned bits = digits.front().bits;
  e.keepNextLoopRolled = true;
  e.emitLoop(
      b.getInt64(0), b.getInt64(digits.size()), b.getInt64(1), {},
      [&](Value *number, ArrayRef<Value *>) {
        Value *shift = b.CreateZExtOrTrunc(b.CreateMul(number, b.getInt64(bits)), code.rawType);
        SmallVector<RadixCode::Element> own;
        RadixCode::Values own32, exist;
        for (unsigned index = 0; index < each; ++index) {
          Value *place = code.rankedPlace(index, each);
          // What does not exist comes last, and stays there.
          bool isFull = elements == tile;
          Value *exists = isFull ? b.getTrue() : b.CreateICmpULT(place, length);
          Value *inside =
              isFull ? place
                     : b.CreateBinaryIntrinsic(Intrinsic::umin, place, code.i32(elements - 1));
          own.push_back(code.load(memory, inside));
          Value *digit = code.digitOf(code.keyOf(own.back().raw), shift, bits);
          own32.push_back(b.CreateSelect(exists, digit, code.i32((1u << bits) - 1)));
          exist.push_back(exists);
        }
        RadixCode::Values ranks = code.rank(own32, bits, counts, before);
        for (unsigned index = 0; index < each; ++index)
          e.emitIf(exist[index], [&] { code.store(memory, ranks[index], own[index]); });
        code.barrier();
        return SmallVector<Value *>();
      },
      "digit");
  forEach(plan.kept, [&](Value *place) { code.leave(place, code.load(memory, place)); });
}

void tegula::lowerBlockSort(StatementLowering &statement, const SortPlan &plan,
                            const SortShape &block, int64_t elements, LoadElement load) {
  PlanTileLaunch launch{statement.name + "_sort", plan.rows, unsigned(block.threads),
                        unsigned(sortedBytes(plan, block)), "sorts a row"};
  statement.emitTileLaunch(launch, [&](DeviceEmitter &e, Value *workspace) {
    RadixCode code(e, plan, block.threads, workspace);
    Value *row = code.blockNumber();
    code.atRow(row, [&] {
      sortInBlock(code, block.each, elements, plan,
                  [&](Value *number) { return load(code, row, number); });
    });
  });
}

//===----------------------------------------------------------------------===//
// In tiles
//===----------------------------------------------------------------------===//

namespace {
/// The launches of one digit.
class TiledDigit {
public:
  TiledDigit(const SortPlan &plan, const SortShape &shape, const SortWorkspace &space,
             unsigned number)
      : plan(plan), shape(shape), space(space), number(number), digits(sortDigits(plan.bits())),
        digit(digits[number]), tiles(divideCeil(plan.length, shape.tile())) {}

  void lower(StatementLowering &statement) {
    std::string suffix = "_digit" + std::to_string(number);
    auto launch = [&](StringRef name, int64_t blocks, unsigned threads, StringRef what) {
      return PlanTileLaunch{statement.name + suffix + name.str(), blocks, threads, 0, what.str()};
    };
    statement.emitTileLaunch(
        launch("_count", plan.rows * tiles, shape.threads, "counts a digit's values in a tile"),
        [&](DeviceEmitter &e, Value *workspace) {
          RadixCode code(e, plan, shape.threads, workspace);
          count(code);
        });
    constexpr int64_t manyTiles = 512;
    unsigned threads = tiles > manyTiles ? 256 : RadixCode::warp;
    statement.emitTileLaunch(launch("_scan", plan.rows << digit.bits, threads,
                                    "sums up a value's counts over a row's tiles"),
                             [&](DeviceEmitter &e, Value *workspace) {
                               RadixCode code(e, plan, threads, workspace);
                               scan(code);
                             });
    statement.emitTileLaunch(
        launch("_move", plan.rows * tiles, shape.threads, "moves a tile's elements"),
        [&](DeviceEmitter &e, Value *workspace) {
          RadixCode code(e, plan, shape.threads, workspace);
          move(code);
        });
  }

private:
  const SortPlan &plan;
  const SortShape &shape;
  const SortWorkspace &space;
  unsigned number;
  SmallVector<Digit> digits;
  Digit digit;
  int64_t tiles;

  unsigned values() const { return 1u << digit.bits; }

  /// `body` for the block's row and tile (i64).
  void atTile(RadixCode &code, function_ref<void(Value *row, Value *tile)> body) {
    IRBuilder<> &b = code.b;
    Value *block = code.blockNumber();
    Value *row = b.CreateUDiv(block, b.getInt64(tiles));
    code.atRow(row, [&] { body(row, b.CreateURem(block, b.getInt64(tiles))); });
  }

  RadixCode::Element load(RadixCode &code, Value *row, Value *place) {
    if (number == 0)
      return code.evaluate(place);
    return code.load(number % 2 ? code.workspaceRow(space, row, plan.length) : code.tensorRow(),
                     place);
  }

  /// The elements that this thread ranks of the block's tile, and which of them exist.
  struct Own {
    SmallVector<RadixCode::Element> elements;
    RadixCode::Values digits, exist;
  };
  Own loadOwn(RadixCode &code, Value *row, Value *tile) {
    IRBuilder<> &b = code.b;
    Own own;
    Value *begin = b.CreateTrunc(b.CreateMul(tile, b.getInt64(shape.tile())), b.getInt32Ty());
    bool isFull = plan.length % shape.tile() == 0;
    for (unsigned index = 0; index < shape.each; ++index) {
      Value *place = b.CreateAdd(begin, code.rankedPlace(index, shape.each));
      own.exist.push_back(isFull ? b.getTrue() : b.CreateICmpULT(place, code.i32(plan.length)));
      if (!isFull)
        place = b.CreateBinaryIntrinsic(Intrinsic::umin, place, code.i32(plan.length - 1));
      own.elements.push_back(load(code, row, place));
    }
    for (auto [element, exists] : zip_equal(own.elements, own.exist))
      own.digits.push_back(b.CreateSelect(exists, code.digitOf(code.keyOf(element.raw), digit),
                                          code.i32(values() - 1)));
    return own;
  }

  Value *countsOf(RadixCode &code, Value *rowAndValue) {
    IRBuilder<> &b = code.b;
    Value *base = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), code.workspace, space.counts);
    return code.slot(base, b.CreateNSWMul(rowAndValue, b.getInt64(tiles)));
  }
  Value *totalsAt(RadixCode &code, Value *rowAndValue) {
    Value *base =
        code.b.CreateConstInBoundsGEP1_64(code.b.getInt8Ty(), code.workspace, space.totals);
    return code.slot(base, rowAndValue);
  }
  /// The number of a row's value of the digit, for all threads with one.
  Value *rowAndValue(RadixCode &code, Value *row) {
    IRBuilder<> &b = code.b;
    return b.CreateNSWAdd(b.CreateNSWMul(row, b.getInt64(values())), code.wide(code.thread));
  }
  void forValues(RadixCode &code, function_ref<void()> body) {
    if (values() == code.threads)
      return body();
    code.e.emitIf(code.b.CreateICmpULT(code.thread, code.i32(values())), body);
  }

  void count(RadixCode &code) {
    IRBuilder<> &b = code.b;
    Value *table = code.sharedCounts(RadixCode::digitValues, "counts");
    atTile(code, [&](Value *row, Value *tile) {
      code.clear(table, RadixCode::digitValues);
      code.barrier();
      Own own = loadOwn(code, row, tile);
      for (auto [value, exists] : zip_equal(own.digits, own.exist))
        code.e.emitIf(exists, [&, value = value] {
          b.CreateAtomicRMW(AtomicRMWInst::Add, code.slot(table, value), code.i32(1), Align(4),
                            AtomicOrdering::Monotonic,
                            b.getContext().getOrInsertSyncScopeID("block"));
        });
      code.barrier();
      forValues(code, [&] {
        Value *found = b.CreateLoad(b.getInt32Ty(), code.slot(table, code.thread));
        b.CreateStore(found, code.slot(countsOf(code, rowAndValue(code, row)), tile));
      });
    });
  }

  /// A thread adds up neighbouring tiles.
  void scan(RadixCode &code) {
    IRBuilder<> &b = code.b;
    Value *block = code.blockNumber(), *counts = countsOf(code, block);
    int64_t each = divideCeil(tiles, code.threads);
    auto bound = [&](Value *value) {
      return b.CreateBinaryIntrinsic(Intrinsic::umin, value, b.getInt64(tiles));
    };
    Value *begin = bound(b.CreateNSWMul(code.wide(code.thread), b.getInt64(each)));
    Value *end = bound(b.CreateNSWAdd(begin, b.getInt64(each)));
    auto at = [&](Value *tile) { return code.slot(counts, tile); };
    Value *own = code.e.emitLoop(begin, end, b.getInt64(1), {code.i32(0)},
                                 [&](Value *tile, ArrayRef<Value *> carried) {
                                   Value *count = b.CreateLoad(b.getInt32Ty(), at(tile));
                                   return SmallVector<Value *>{b.CreateAdd(carried[0], count)};
                                 })[0];
    RadixCode::Scanned scanned = code.scanBlock(own);
    code.e.emitLoop(begin, end, b.getInt64(1), {scanned.before},
                    [&](Value *tile, ArrayRef<Value *> carried) {
                      Value *count = b.CreateLoad(b.getInt32Ty(), at(tile));
                      b.CreateStore(carried[0], at(tile));
                      return SmallVector<Value *>{b.CreateAdd(carried[0], count)};
                    });
    code.e.emitIf(b.CreateICmpEQ(code.thread, code.i32(0)),
                  [&] { b.CreateStore(scanned.all, totalsAt(code, block)); });
  }

  void move(RadixCode &code) {
    IRBuilder<> &b = code.b;
    DeviceEmitter &e = code.e;
    // Three blocks hide each other's waits better than two with all registers that they like, where
    // elements have no numbers yet.
    if (number == 0)
      b.GetInsertBlock()->getParent()->addFnAttr("nvvm.minctasm", "3");
    Value *counts =
        code.sharedCounts(shape.threads / RadixCode::warp * RadixCode::digitValues, "counts");
    Value *before = code.sharedCounts(RadixCode::digitValues, "before");
    Value *to = code.sharedCounts(RadixCode::digitValues, "to");
    RadixCode::Memory ordered{code.sharedElements(shape.tile()),
                              plan.keepsPositions ? code.sharedCounts(shape.tile(), "numbers")
                                                  : nullptr};
    atTile(code, [&](Value *row, Value *tile) {
      // Where the values begin in the row, and this tile's among those of each value.
      auto isValue = [&]() -> Value * { return b.CreateICmpULT(code.thread, code.i32(values())); };
      Value *number = rowAndValue(code, row);
      Value *total = e.emitIfElse(
          isValue(),
          [&]() -> Value * { return b.CreateLoad(b.getInt32Ty(), totalsAt(code, number)); },
          code.i32(0));
      Value *start = code.scanBlock(total).before;
      Own own = loadOwn(code, row, tile);
      RadixCode::Values ranks = code.rank(own.digits, digit.bits, counts, before);
      forValues(code, [&] {
        Value *earlier = b.CreateLoad(b.getInt32Ty(), code.slot(countsOf(code, number), tile));
        Value *inTile = b.CreateLoad(b.getInt32Ty(), code.slot(before, code.thread));
        b.CreateStore(b.CreateSub(b.CreateAdd(start, earlier), inTile), code.slot(to, code.thread));
      });
      for (auto [rank, element] : zip_equal(ranks, own.elements))
        code.store(ordered, rank, element);
      code.barrier();
      Value *left =
          b.CreateSub(b.getInt64(plan.length), b.CreateMul(tile, b.getInt64(shape.tile())));
      Value *count = b.CreateTrunc(
          b.CreateBinaryIntrinsic(Intrinsic::umin, left, b.getInt64(shape.tile())), b.getInt32Ty());
      bool isLast = this->number + 1 == digits.size();
      for (unsigned index = 0; index < shape.each; ++index) {
        Value *place = b.CreateAdd(code.thread, code.i32(index * shape.threads));
        auto moveOne = [&] {
          RadixCode::Element element = code.load(ordered, place);
          Value *value = code.digitOf(code.keyOf(element.raw), digit);
          Value *target = b.CreateAdd(place, b.CreateLoad(b.getInt32Ty(), code.slot(to, value)));
          if (isLast)
            e.emitIf(b.CreateICmpULT(target, code.i32(plan.kept)),
                     [&] { code.leave(code.wide(target), element); });
          else
            code.store(this->number % 2 ? code.tensorRow()
                                        : code.workspaceRow(space, row, plan.length),
                       target, element);
        };
        if (plan.length % shape.tile() == 0)
          moveOne();
        else
          e.emitIf(b.CreateICmpULT(place, count), moveOne);
      }
    });
  }
};
} // namespace

void tegula::lowerTiledSort(StatementLowering &statement, const SortPlan &plan,
                            const SortShape &shape) {
  SortWorkspace space;
  int64_t tiles = divideCeil(plan.length, shape.tile());
  space.elements = space.add(plan.rows * plan.length * (plan.bits() / 8));
  if (plan.keepsPositions)
    space.numbers = space.add(plan.rows * plan.length * 4);
  space.counts = space.add(plan.rows * RadixCode::digitValues * tiles * 4);
  space.totals = space.add(plan.rows * RadixCode::digitValues * 4);
  statement.step.tiles.workspaceBytes = space.bytes;
  for (unsigned number = 0; number < sortDigits(plan.bits()).size(); ++number)
    TiledDigit(plan, shape, space, number).lower(statement);
}
