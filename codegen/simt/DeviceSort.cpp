//===- DeviceSort.cpp - Sorts a row by a team of threads ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element becomes a word of 64 bits, its key above its number in the row: an unsigned key whose
// order is the one asked for. Words are distinct, so any order of comparisons gives the stable
// result, and a comparison has no branch. They stay in registers; other threads' come by shuffles,
// those of other warps through shared memory.
//
//   a few are read   each warp keeps the 32 least words that it has met, in order, one in each
//   lane. It sorts 32 new
//                    ones, where one of them is among the least at all, and takes the lesser of its
//                    first and their last, and so on: the 32 least of both, which five steps bring
//                    into order. In the end the warps' are merged so.
//   all of a short   a bitonic network (Batcher 1968) whose comparators all point upwards. Of a
//   word's place the low bits row are read     are its register, those above its lane, then its
//   warp: so most steps are within a thread.
//
// Longer rows of which all is read are sorted where they lie (EmitSort.cpp).
//
//===----------------------------------------------------------------------===//
#include "codegen/common/EmitSort.h"
#include "codegen/simt/DeviceEmitter.h"

#include "llvm/ADT/bit.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Words of a thread that a network may have: each step is written out for all of them.
static constexpr int64_t maxWords = 4;
/// Of a block, that warps exchange at a time.
static constexpr int64_t exchangedWords = 4096;

namespace {
/// Sorts words that a team of `e` has.
struct TeamSort {
  IRBuilder<> &b;
  function_ref<Value *(Value *word, unsigned mask)>
      fromLane; ///< of the lane whose number differs in these bits
  function_ref<void()> barrier;
  Value *thread, *lane; ///< i32, in the team and in its warp
  unsigned team;

  static constexpr unsigned warp = DeviceEmitter::warp;

  Value *i32(unsigned value) { return b.getInt32(value); }
  Value *isClear(Value *number, unsigned bit) {
    return b.CreateICmpEQ(b.CreateAnd(number, i32(bit)), i32(0));
  }

  /// The lesser of two words, or the greater where `isLower` (i1) does not hold.
  Value *keep(Value *word, Value *other, Value *isLower) {
    Value *isOther = b.CreateXor(b.CreateICmpULT(other, word), b.CreateNot(isLower));
    return b.CreateSelect(isOther, other, word);
  }
  Value *least(Value *word, Value *other) {
    return b.CreateBinaryIntrinsic(Intrinsic::umin, word, other);
  }
  Value *greatest(Value *word, Value *other) {
    return b.CreateBinaryIntrinsic(Intrinsic::umax, word, other);
  }

  /// One step between lanes; the lower of two keeps the lesser word, or the greater.
  Value *step(Value *word, unsigned mask, bool isDescending) {
    Value *isLower = isClear(lane, llvm::bit_floor(mask));
    return keep(word, fromLane(word, mask), isDescending ? b.CreateNot(isLower) : isLower);
  }
  /// From an order that rises and falls.
  Value *mergeLanes(Value *word) {
    for (unsigned distance = warp / 2; distance; distance /= 2)
      word = step(word, distance, /*isDescending=*/false);
    return word;
  }
  Value *sortLanesDescending(Value *word) {
    for (unsigned run = 1; run < warp; run *= 2) {
      word = step(word, 2 * run - 1, true);
      for (unsigned distance = run / 2; distance; distance /= 2)
        word = step(word, distance, true);
    }
    return word;
  }

  /// One step of the network: words whose places differ in the bits of `mask`. `space`: for all
  /// words; only where warps exchange some.
  void exchange(MutableArrayRef<Value *> words, unsigned mask,
                function_ref<Value *(Value *index)> space) {
    unsigned count = words.size(), shift = llvm::countr_zero(count),
             highest = llvm::bit_floor(mask);
    unsigned inThread = mask & (count - 1), ofThread = mask >> shift;
    SmallVector<Value *> others;
    auto at = [&](unsigned number, Value *owner) {
      return space(b.CreateAdd(owner, i32(number * team)));
    };
    if (ofThread >= warp) {
      for (auto [number, word] : enumerate(words))
        b.CreateAlignedStore(word, at(number, thread), Align(8));
      barrier();
      Value *partner = b.CreateXor(thread, i32(ofThread));
      for (unsigned number = 0; number < count; ++number)
        others.push_back(
            b.CreateAlignedLoad(b.getInt64Ty(), at(number ^ inThread, partner), Align(8)));
    } else {
      for (unsigned number = 0; number < count; ++number) {
        Value *other = words[number ^ inThread];
        others.push_back(ofThread ? fromLane(other, ofThread) : other);
      }
    }
    Value *isLower = highest < count ? nullptr : isClear(thread, highest >> shift);
    for (auto [number, word] : enumerate(words)) {
      if (isLower)
        word = keep(word, others[number], isLower);
      else
        word = number & highest ? greatest(word, others[number]) : least(word, others[number]);
    }
  }
};
} // namespace

/// The key of an element whose unsigned order is that of the language: nan is the largest, -0 is 0.
static Value *sortKey(IRBuilder<> &b, Value *value, bool isDescending) {
  Value *key;
  if (value->getType()->isFloatTy()) {
    Value *bits = b.CreateBitCast(value, b.getInt32Ty());
    Value *isNegative = b.CreateICmpSLT(bits, b.getInt32(0));
    key = b.CreateSelect(isNegative, b.CreateNot(bits), b.CreateOr(bits, b.getInt32(0x80000000)));
    key = b.CreateSelect(b.CreateFCmpOEQ(value, ConstantFP::get(value->getType(), 0)),
                         b.getInt32(0x80000000), key);
    key = b.CreateSelect(b.CreateFCmpUNO(value, value), b.getInt32(~0u), key);
  } else if (value->getType()->isIntegerTy(1)) {
    key = b.CreateZExt(value, b.getInt32Ty());
  } else {
    key = b.CreateXor(value, b.getInt32(0x80000000));
  }
  return isDescending ? b.CreateNot(key) : key;
}

/// Shared memory for so many words, the same for all sorts of the function.
GlobalVariable *DeviceEmitter::sortSpace(uint64_t words) {
  if (!sortedWords || sortedWords->getValueType()->getArrayNumElements() < words)
    sortedWords = shared(ArrayType::get(b.getInt64Ty(), words), "sorted");
  return sortedWords;
}

void DeviceEmitter::emitSort(tgl::SortOp op) {
  const Buffer sorted = buffers.lookup(op.getValues()),
               positions = buffers.lookup(op.getPositions());
  mlir::Type element = sorted.type.getElementType(), position = positions.type.getElementType();
  bool isTeam = options.registerSorts && !perThread &&
                (shape.team == warp || shape.team == shape.threads) && shape.team >= warp;
  if (!isTeam || element.isInteger(4) || position.isInteger(4) || element.isInteger(64) ||
      element.isF64() || shadow.clock)
    return Emitter::emitSort(op);
  std::optional<IndexExpr> looked = elementsRead(op);
  std::optional<int64_t> length = sorted.type.getDims().back().getExpr().asConstant();
  std::optional<int64_t> read = looked ? looked->asConstant() : std::nullopt;
  if (!length || *length > int64_t(UINT32_MAX)) // numbers are half of a word
    return Emitter::emitSort(op);
  int64_t words = llvm::PowerOf2Ceil(llvm::divideCeil(std::max<int64_t>(*length, 1), shape.team));
  bool areFew = read && *read <= warp;
  if (!areFew && (words > maxWords || words * shape.team > exchangedWords))
    return Emitter::emitSort(op);

  SmallVector<ValueExpr> first = op.getSubscriptExprs();
  first.push_back(ValueExpr(int64_t(0)));
  Value *row = emitIndex(elementOffset(sorted.type, first));
  Value *count = emitSize(sorted.type.getDims().back().getExpr());
  auto at = [&](const Buffer &buffer, mlir::Type type, Value *number) {
    return b.CreateInBoundsGEP(storageType(type), buffer.pointer, b.CreateAdd(row, number));
  };
  constexpr uint64_t none = ~uint64_t(0);
  /// The word of an element (i64), or none beyond the end.
  auto load = [&](Value *number) -> Value * {
    return emitIfElse(
        b.CreateICmpSLT(number, count),
        [&]() -> Value * {
          Value *raw = b.CreateLoad(storageType(element), at(sorted, element, number));
          Value *key = sortKey(b, decode(raw, element), op.getDescending());
          return b.CreateOr(b.CreateShl(b.CreateZExt(key, b.getInt64Ty()), 32), number);
        },
        i64(none));
  };
  /// The elements of these words to the places that begin at `place` (i64), so far as somebody
  /// looks.
  auto place = [&](ArrayRef<Value *> sortedWords, Value *begin) {
    Value *end = read ? b.CreateBinaryIntrinsic(Intrinsic::smin, count, i64(*read)) : count;
    SmallVector<std::pair<Value *, Value *>> moved;
    for (auto [number, word] : enumerate(sortedWords)) {
      Value *exists = b.CreateICmpSLT(b.CreateAdd(begin, i64(number)), end);
      Value *source = b.CreateSelect(exists, b.CreateAnd(word, i64(0xffffffff)), i64(0));
      moved.push_back({b.CreateLoad(storageType(element), at(sorted, element, source)),
                       b.CreateLoad(storageType(position), at(positions, position, source))});
    }
    barrier();
    for (auto [number, from] : enumerate(moved)) {
      Value *to = b.CreateAdd(begin, i64(number));
      emitIf(b.CreateICmpSLT(to, end), [&, from = from] {
        b.CreateStore(from.first, at(sorted, element, to));
        b.CreateStore(from.second, at(positions, position, to));
      });
    }
    barrier();
  };

  auto fromLane = [&](Value *word, unsigned mask) {
    return shuffle(word, Intrinsic::nvvm_shfl_sync_bfly_i32, b.getInt32(mask), warp - 1);
  };
  Value *own = b.CreateTrunc(thread, b.getInt32Ty());
  auto syncTeam = [&] { barrier(); };
  TeamSort sort{b, fromLane, syncTeam, own, b.CreateAnd(own, b.getInt32(warp - 1)), shape.team};
  unsigned warps = shape.team / warp;
  barrier();
  if (areFew) {
    SmallVector<Value *> least = emitLoop(
        i64(0), count, i64(shape.team), {i64(none)},
        [&](Value *begin, ArrayRef<Value *> carried) {
          Value *word = load(b.CreateAdd(begin, thread)), *before = carried[0];
          Value *last =
              shuffle(before, Intrinsic::nvvm_shfl_sync_idx_i32, b.getInt32(warp - 1), warp - 1);
          Value *isAny = b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_vote_any_sync,
                                           {b.getInt32(-1), b.CreateICmpULT(word, last)});
          return SmallVector<Value *>{emitIfElse(
              isAny,
              [&] { return sort.mergeLanes(sort.least(before, sort.sortLanesDescending(word))); },
              before)};
        },
        "part");
    Value *result = least[0];
    if (warps > 1) {
      GlobalVariable *space = sortSpace(shape.team);
      auto slot = [&](Value *index) { return b.CreateInBoundsGEP(b.getInt64Ty(), space, index); };
      b.CreateStore(result, slot(thread));
      barrier();
      Value *lane = b.CreateZExt(sort.lane, b.getInt64Ty());
      Value *reversed = b.CreateSub(i64(warp - 1), lane);
      result = b.CreateLoad(b.getInt64Ty(), slot(lane));
      for (unsigned other = 1; other < warps; ++other) {
        Value *word = b.CreateLoad(b.getInt64Ty(), slot(b.CreateAdd(reversed, i64(other * warp))));
        result = sort.mergeLanes(sort.least(result, word));
      }
    }
    // All warps have the same; those beyond the first have no places.
    return place({result}, thread);
  }

  SmallVector<Value *> own64;
  for (int64_t number = 0; number < words; ++number)
    own64.push_back(load(b.CreateAdd(thread, i64(number * shape.team))));
  // Where there is room for two halves what is written next is not what others may still read.
  int64_t all = words * shape.team, halves = 2 * all <= exchangedWords ? 2 : 1;
  GlobalVariable *space = warps > 1 ? sortSpace(halves * all) : nullptr;
  int64_t half = 0;
  auto exchange = [&](unsigned mask) {
    bool betweenWarps = mask / words >= warp;
    sort.exchange(own64, mask, [&](Value *index) {
      index = b.CreateAdd(index, b.getInt32(half * all));
      return b.CreateInBoundsGEP(b.getInt64Ty(), space, b.CreateZExt(index, b.getInt64Ty()));
    });
    if (betweenWarps && halves == 1)
      barrier();
    half = (half + betweenWarps) % halves;
  };
  for (int64_t run = 1; run < all; run *= 2) {
    exchange(2 * run - 1);
    for (int64_t distance = run / 2; distance; distance /= 2)
      exchange(distance);
  }
  place(own64, b.CreateMul(thread, i64(words)));
}
