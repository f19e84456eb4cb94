//===- RadixSelect.cpp - The first elements of rows, by digits ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The k-th key of a row is found from its highest digit on: a launch for each digit counts its
// values among the elements whose higher digits are those of the k-th key, which every block finds
// again from the counts of the launches before. Then two launches take the elements before that
// key, and the first of those equal to it, in the row's order: warps count what they have, then put
// it behind what the warps before them have. A block sorts them.
//
//===----------------------------------------------------------------------===//
#include "strategies/sort/lower/RadixSort.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

namespace {
class Selection {
public:
  Selection(const SortPlan &plan, const SortShape &shape)
      : plan(plan), shape(shape), digits(selectDigits(plan.bits())),
        values(1u << digits.front().bits), tiles(divideCeil(plan.length, shape.tile())),
        warps(shape.threads / RadixCode::warp) {
    space.totals = space.add(plan.rows * digits.size() * values * 4);
    space.counts = space.add(plan.rows * tiles * warps * 2 * 4);
    space.elements = space.add(plan.rows * plan.kept * (plan.bits() / 8));
    if (plan.keepsPositions)
      space.numbers = space.add(plan.rows * plan.kept * 4);
  }

  void lower(StatementLowering &statement) {
    PlanTiles &planned = statement.step.tiles;
    planned.workspaceBytes = space.bytes;
    planned.isZeroed = true;
    auto launch = [&](const Twine &suffix, StringRef what,
                      function_ref<void(RadixCode &, Value * row, Value * tile)> body) {
      statement.emitTileLaunch(
          PlanTileLaunch{(statement.name + suffix).str(), plan.rows * tiles,
                         unsigned(shape.threads), 0, what.str()},
          [&](DeviceEmitter &e, Value *workspace) {
            RadixCode code(e, plan, shape.threads, workspace);
            Value *block = code.blockNumber();
            Value *row = code.b.CreateUDiv(block, code.b.getInt64(tiles));
            code.atRow(row,
                       [&] { body(code, row, code.b.CreateURem(block, code.b.getInt64(tiles))); });
          });
    };
    for (unsigned number = 0; number < digits.size(); ++number)
      launch("_digit" + Twine(number), "counts a digit's values in a tile",
             [&](RadixCode &code, Value *row, Value *tile) { count(code, row, tile, number); });
    launch("_taken", "counts the elements of a tile that are taken",
           [&](RadixCode &code, Value *row, Value *tile) { countTaken(code, row, tile); });
    launch("_take", "takes elements of a tile",
           [&](RadixCode &code, Value *row, Value *tile) { take(code, row, tile); });
    SortShape block = *blockFor(plan, plan.kept, statement.options().target);
    lowerBlockSort(statement, plan, block, plan.kept,
                   [&](RadixCode &code, Value *row, Value *number) {
                     return code.load(code.workspaceRow(space, row, plan.kept), number);
                   });
  }

private:
  const SortPlan &plan;
  const SortShape &shape;
  SmallVector<Digit> digits;
  unsigned values; ///< of a digit, at most
  int64_t tiles;
  unsigned warps;
  SortWorkspace space;

  /// What is known of the row's k-th key: its digits so far, and that it is the so many-th of the
  /// keys that begin with them.
  struct Found {
    Value *prefix, *left; ///< of the key's type; i32
  };

  Value *totalsOf(RadixCode &code, Value *row, unsigned number) {
    IRBuilder<> &b = code.b;
    Value *base = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), code.workspace, space.totals);
    Value *digit =
        b.CreateNSWAdd(b.CreateNSWMul(row, b.getInt64(digits.size())), b.getInt64(number));
    return code.slot(base, b.CreateNSWMul(digit, b.getInt64(values)));
  }

  /// From the counts of the first so many digits.
  Found find(RadixCode &code, Value *row, unsigned count) {
    IRBuilder<> &b = code.b;
    Found found{ConstantInt::get(code.rawType, 0), code.i32(plan.kept)};
    unsigned each = divideCeil(values, code.threads);
    for (unsigned number = 0; number < count; ++number) {
      Value *totals = totalsOf(code, row, number), *result = code.sharedCounts(2, "found");
      Value *first = b.CreateMul(code.thread, code.i32(each));
      RadixCode::Values own;
      Value *sum = code.i32(0);
      for (unsigned value = 0; value < each; ++value) {
        Value *at = code.slot(totals, b.CreateAdd(first, code.i32(value)));
        own.push_back(b.CreateLoad(b.getInt32Ty(), at));
        sum = b.CreateAdd(sum, own.back());
      }
      // One value of one thread holds the k-th key.
      Value *before = code.scanBlock(sum).before;
      for (unsigned value = 0; value < each; ++value) {
        Value *with = b.CreateAdd(before, own[value]);
        Value *isHere =
            b.CreateAnd(b.CreateICmpULT(before, found.left), b.CreateICmpUGE(with, found.left));
        code.e.emitIf(isHere, [&] {
          b.CreateStore(b.CreateAdd(first, code.i32(value)), code.slot(result, code.i32(0)));
          b.CreateStore(b.CreateSub(found.left, before), code.slot(result, code.i32(1)));
        });
        before = with;
      }
      code.barrier();
      Value *digit = b.CreateLoad(b.getInt32Ty(), code.slot(result, code.i32(0)));
      found.left = b.CreateLoad(b.getInt32Ty(), code.slot(result, code.i32(1)));
      if (number)
        found.prefix = b.CreateShl(found.prefix, digits[number].bits);
      found.prefix = b.CreateOr(found.prefix, b.CreateZExtOrTrunc(digit, code.rawType));
    }
    return found;
  }

  /// Elements that a warp has under way together.
  static constexpr unsigned ahead = 4;

  /// Over the warp's part of a tile, `ahead` runs of 32 elements at a time, all lanes alike; with
  /// what is carried from one to the next.
  RadixCode::Values forEach(
      RadixCode &code, Value *tile, ArrayRef<Value *> inits,
      function_ref<RadixCode::Values(RadixCode::Element element, Value *exists, ArrayRef<Value *>)>
          body) {
    IRBuilder<> &b = code.b;
    int64_t ofWarp = RadixCode::warp * shape.each, step = RadixCode::warp * ahead;
    Value *begin = b.CreateNSWAdd(b.CreateNSWMul(tile, b.getInt64(shape.tile())),
                                  b.CreateNSWMul(code.wide(code.warpNumber), b.getInt64(ofWarp)));
    bool isFull = plan.length % shape.tile() == 0;
    return code.e.emitLoop(
        b.getInt64(0), b.getInt64(ofWarp), b.getInt64(step), inits,
        [&](Value *offset, ArrayRef<Value *> carried) {
          Value *first = b.CreateTrunc(b.CreateNSWAdd(begin, offset), b.getInt32Ty());
          SmallVector<RadixCode::Element> elements;
          RadixCode::Values exist;
          for (unsigned index = 0; index < ahead; ++index) {
            Value *number =
                b.CreateAdd(first, b.CreateAdd(code.lane, code.i32(index * RadixCode::warp)));
            exist.push_back(isFull ? b.getTrue() : b.CreateICmpULT(number, code.i32(plan.length)));
            if (!isFull)
              number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, code.i32(plan.length - 1));
            elements.push_back(code.evaluate(number));
          }
          RadixCode::Values state(carried);
          for (auto [element, exists] : zip_equal(elements, exist))
            state = body(element, exists, state);
          return state;
        },
        "part");
  }

  void count(RadixCode &code, Value *row, Value *tile, unsigned number) {
    IRBuilder<> &b = code.b;
    Value *table = code.sharedCounts(values, "counts");
    code.clear(table, values);
    Found found = find(code, row, number);
    code.barrier();
    Digit digit = digits[number];
    forEach(code, tile, {}, [&](RadixCode::Element element, Value *exists, ArrayRef<Value *>) {
      Value *key = code.keyOf(element.raw);
      if (number) {
        Value *above = b.CreateLShr(key, digit.shift + digit.bits);
        exists = b.CreateAnd(exists, b.CreateICmpEQ(above, found.prefix));
      }
      code.e.emitIf(exists, [&] {
        add(code, code.slot(table, code.digitOf(key, digit)), code.i32(1), "block");
      });
      return RadixCode::Values();
    });
    code.barrier();
    Value *totals = totalsOf(code, row, number);
    for (unsigned begin = 0; begin < (1u << digit.bits); begin += code.threads) {
      Value *value = b.CreateAdd(code.thread, code.i32(begin));
      Value *own = b.CreateLoad(b.getInt32Ty(), code.slot(table, value));
      code.e.emitIf(b.CreateICmpNE(own, code.i32(0)),
                    [&] { add(code, code.slot(totals, value), own, "device"); });
    }
  }

  static void add(RadixCode &code, Value *address, Value *value, StringRef scope) {
    code.b.CreateAtomicRMW(AtomicRMWInst::Add, address, value, Align(4), AtomicOrdering::Monotonic,
                           code.b.getContext().getOrInsertSyncScopeID(scope));
  }

  /// Of a part of the row: how many of its elements come before the k-th key, and how many are
  /// equal to it.
  Value *countsAt(RadixCode &code, Value *row, Value *part) {
    IRBuilder<> &b = code.b;
    Value *base = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), code.workspace, space.counts);
    Value *number = b.CreateNSWAdd(b.CreateNSWMul(row, b.getInt64(tiles * warps)), part);
    return code.slot(base, b.CreateNSWMul(number, b.getInt64(2)));
  }
  std::pair<Value *, Value *> loadCounts(RadixCode &code, Value *row, Value *part) {
    Value *at = countsAt(code, row, part);
    return {code.b.CreateLoad(code.b.getInt32Ty(), at),
            code.b.CreateLoad(code.b.getInt32Ty(), code.slot(at, code.i32(1)))};
  }
  Value *ownPart(RadixCode &code, Value *tile) {
    IRBuilder<> &b = code.b;
    return b.CreateNSWAdd(b.CreateNSWMul(tile, b.getInt64(warps)), code.wide(code.warpNumber));
  }

  void countTaken(RadixCode &code, Value *row, Value *tile) {
    IRBuilder<> &b = code.b;
    Found found = find(code, row, digits.size());
    RadixCode::Values counts = forEach(
        code, tile, {code.i32(0), code.i32(0)},
        [&](RadixCode::Element element, Value *exists, ArrayRef<Value *> carried) {
          Value *key = code.keyOf(element.raw);
          auto plus = [&](Value *count, Value *counts) {
            return b.CreateAdd(count, b.CreateZExt(b.CreateAnd(exists, counts), b.getInt32Ty()));
          };
          return RadixCode::Values{plus(carried[0], b.CreateICmpULT(key, found.prefix)),
                                   plus(carried[1], b.CreateICmpEQ(key, found.prefix))};
        });
    Value *less = code.addWarp(counts[0]), *equal = code.addWarp(counts[1]);
    code.e.emitIf(b.CreateICmpEQ(code.lane, code.i32(0)), [&] {
      Value *at = countsAt(code, row, ownPart(code, tile));
      b.CreateStore(less, at);
      b.CreateStore(equal, code.slot(at, code.i32(1)));
    });
  }

  void take(RadixCode &code, Value *row, Value *tile) {
    IRBuilder<> &b = code.b;
    Found found = find(code, row, digits.size());
    // What the tiles before have, then the warps before.
    Value *end = b.CreateNSWMul(tile, b.getInt64(warps));
    RadixCode::Values sums =
        code.e.emitLoop(code.wide(code.thread), end, b.getInt64(code.threads),
                        {code.i32(0), code.i32(0)}, [&](Value *part, ArrayRef<Value *> carried) {
                          auto [less, equal] = loadCounts(code, row, part);
                          return SmallVector<Value *>{b.CreateAdd(carried[0], less),
                                                      b.CreateAdd(carried[1], equal)};
                        });
    Value *less = code.scanBlock(sums[0]).all, *equal = code.scanBlock(sums[1]).all;
    for (unsigned number = 0; number + 1 < warps; ++number) {
      auto [lessThere, equalThere] = loadCounts(code, row, b.CreateNSWAdd(end, b.getInt64(number)));
      Value *isBefore = b.CreateICmpULT(code.i32(number), code.warpNumber);
      less = b.CreateAdd(less, b.CreateSelect(isBefore, lessThere, code.i32(0)));
      equal = b.CreateAdd(equal, b.CreateSelect(isBefore, equalThere, code.i32(0)));
    }
    auto [ownLess, ownEqual] = loadCounts(code, row, ownPart(code, tile));
    Value *hasEqual =
        b.CreateAnd(b.CreateICmpNE(ownEqual, code.i32(0)), b.CreateICmpULT(equal, found.left));
    Value *hasAny = b.CreateOr(b.CreateICmpNE(ownLess, code.i32(0)), hasEqual);
    Value *allLess = b.CreateSub(code.i32(plan.kept), found.left), *below = code.lanesBelow();
    RadixCode::Memory taken = code.workspaceRow(space, row, plan.kept);
    code.e.emitIf(hasAny, [&] {
      forEach(
          code, tile, {less, equal},
          [&](RadixCode::Element element, Value *exists, ArrayRef<Value *> carried) {
            Value *key = code.keyOf(element.raw);
            Value *isLess = b.CreateAnd(exists, b.CreateICmpULT(key, found.prefix));
            Value *isEqual = b.CreateAnd(exists, b.CreateICmpEQ(key, found.prefix));
            Value *lessLanes = code.ballot(isLess), *equalLanes = code.ballot(isEqual);
            auto countOf = [&](Value *lanes) {
              return b.CreateUnaryIntrinsic(Intrinsic::ctpop, lanes);
            };
            Value *lessPlace = b.CreateAdd(carried[0], countOf(b.CreateAnd(lessLanes, below)));
            Value *equalPlace = b.CreateAdd(carried[1], countOf(b.CreateAnd(equalLanes, below)));
            isEqual = b.CreateAnd(isEqual, b.CreateICmpULT(equalPlace, found.left));
            Value *place = b.CreateSelect(isLess, lessPlace, b.CreateAdd(allLess, equalPlace));
            code.e.emitIf(b.CreateOr(isLess, isEqual), [&] { code.store(taken, place, element); });
            return RadixCode::Values{b.CreateAdd(carried[0], countOf(lessLanes)),
                                     b.CreateAdd(carried[1], countOf(equalLanes))};
          });
    });
  }
};
} // namespace

void tegula::lowerSelection(StatementLowering &statement, const SortPlan &plan,
                            const SortShape &shape) {
  Selection(plan, shape).lower(statement);
}
