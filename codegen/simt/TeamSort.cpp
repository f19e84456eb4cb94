//===- TeamSort.cpp - Sorts a row by a team of threads --------------------===//
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
#include "codegen/simt/TeamSort.h"

#include "codegen/common/EmitSort.h"
#include "codegen/simt/DeviceEmitter.h"

#include "passes/analysis/SortedRows.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Words of a thread that a network may have: each step is written out for all of them.
static constexpr int64_t maxWords = 4;
/// Of a block, that warps exchange at a time.
static constexpr int64_t exchangedWords = 4096;

/// Sorts words that the threads of a team have.
struct TeamSort::Network {
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
/// The row of a sort: words of its elements, and its elements in the order of words.
struct TeamSort::Row {
  DeviceEmitter &e;
  IRBuilder<> &b;
  bool isDescending;
  Emitter::Buffer sorted, positions;
  std::optional<int64_t> read; ///< so many elements of the result, where not all
  Value *begin = nullptr, *count = nullptr;

  static constexpr uint64_t none = ~uint64_t(0);

  mlir::Type element() const { return sorted.type.getElementType(); }
  mlir::Type position() const { return positions.type.getElementType(); }
  Value *at(const Emitter::Buffer &buffer, Value *number) const {
    return b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()), buffer.pointer,
                               b.CreateAdd(begin, number));
  }

  /// The word of an element (i64), or none beyond the end.
  Value *load(Value *number) const {
    return e.emitIfElse(
        b.CreateICmpSLT(number, count),
        [&]() -> Value * {
          Value *raw = b.CreateLoad(e.storageType(element()), at(sorted, number));
          Value *key = sortKey(b, e.decode(raw, element()), isDescending);
          return b.CreateOr(b.CreateShl(b.CreateZExt(key, b.getInt64Ty()), 32), number);
        },
        e.i64(none));
  }

  /// The elements of these words to the places that begin at `first` (i64), so far as somebody
  /// looks.
  void place(ArrayRef<Value *> words, Value *first) const {
    Value *end = read ? b.CreateBinaryIntrinsic(Intrinsic::smin, count, e.i64(*read)) : count;
    SmallVector<std::pair<Value *, Value *>> moved;
    for (auto [number, word] : enumerate(words)) {
      Value *exists = b.CreateICmpSLT(b.CreateAdd(first, e.i64(number)), end);
      Value *source = b.CreateSelect(exists, b.CreateAnd(word, e.i64(0xffffffff)), e.i64(0));
      moved.push_back({b.CreateLoad(e.storageType(element()), at(sorted, source)),
                       b.CreateLoad(e.storageType(position()), at(positions, source))});
    }
    e.barrier();
    for (auto [number, from] : enumerate(moved)) {
      Value *to = b.CreateAdd(first, e.i64(number));
      e.emitIf(b.CreateICmpSLT(to, end), [&, from = from] {
        b.CreateStore(from.first, at(sorted, to));
        b.CreateStore(from.second, at(positions, to));
      });
    }
    e.barrier();
  }
};

TeamSort::TeamSort(DeviceEmitter &e) : e(e), b(e.b) {}

GlobalVariable *TeamSort::sortSpace(uint64_t words) {
  if (!sortedWords || sortedWords->getValueType()->getArrayNumElements() < words)
    sortedWords = e.shared(ArrayType::get(b.getInt64Ty(), words), "sorted");
  return sortedWords;
}

bool TeamSort::emit(tgl::SortOp op) {
  Row row{e,
          b,
          op.getDescending(),
          e.buffers.lookup(op.getValues()),
          e.buffers.lookup(op.getPositions()),
          {}};
  bool isTeam = e.options.registerSorts && !e.perThread &&
                (e.shape.team == e.warp || e.shape.team == e.shape.threads) &&
                e.shape.team >= e.warp;
  mlir::Type element = row.element();
  if (!isTeam || element.isInteger(4) || row.position().isInteger(4) || element.isInteger(64) ||
      element.isF64() || e.shadow.clock)
    return false;
  std::optional<IndexExpr> looked = elementsRead(op);
  std::optional<int64_t> length = row.sorted.type.getDims().back().getExpr().asConstant();
  row.read = looked ? looked->asConstant() : std::nullopt;
  if (!length || *length > int64_t(UINT32_MAX)) // numbers are half of a word
    return false;
  int64_t words = llvm::PowerOf2Ceil(llvm::divideCeil(std::max<int64_t>(*length, 1), e.shape.team));
  bool areFew = row.read && *row.read <= e.warp;
  if (!areFew && (words > maxWords || words * e.shape.team > exchangedWords))
    return false;

  SmallVector<ValueExpr> first = op.getSubscriptExprs();
  first.push_back(ValueExpr(int64_t(0)));
  row.begin = e.emitIndex(tgl::elementOffset(row.sorted.type, first));
  row.count = e.emitSize(row.sorted.type.getDims().back().getExpr());
  auto fromLane = [&](Value *word, unsigned mask) {
    return e.shuffle(word, Intrinsic::nvvm_shfl_sync_bfly_i32, b.getInt32(mask), e.warp - 1);
  };
  Value *own = b.CreateTrunc(e.thread, b.getInt32Ty());
  auto syncTeam = [&] { e.barrier(); };
  Network sort{b, fromLane, syncTeam, own, b.CreateAnd(own, b.getInt32(e.warp - 1)), e.shape.team};
  e.barrier();
  areFew ? emitFew(row, sort) : emitAll(row, sort, words);
  return true;
}

/// Each warp's least words, then those of all.
void TeamSort::emitFew(const Row &row, Network &sort) {
  constexpr unsigned warp = DeviceEmitter::warp;
  unsigned warps = e.shape.team / warp;
  SmallVector<Value *> least = e.emitLoop(
      e.i64(0), row.count, e.i64(e.shape.team), {e.i64(Row::none)},
      [&](Value *begin, ArrayRef<Value *> carried) {
        Value *word = row.load(b.CreateAdd(begin, e.thread)), *before = carried[0];
        Value *last =
            e.shuffle(before, Intrinsic::nvvm_shfl_sync_idx_i32, b.getInt32(warp - 1), warp - 1);
        Value *isAny = b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_vote_any_sync,
                                         {b.getInt32(-1), b.CreateICmpULT(word, last)});
        return SmallVector<Value *>{e.emitIfElse(
            isAny,
            [&] { return sort.mergeLanes(sort.least(before, sort.sortLanesDescending(word))); },
            before)};
      },
      "part");
  Value *result = least[0];
  if (warps > 1) {
    GlobalVariable *space = sortSpace(e.shape.team);
    auto slot = [&](Value *index) { return b.CreateInBoundsGEP(b.getInt64Ty(), space, index); };
    b.CreateStore(result, slot(e.thread));
    e.barrier();
    Value *lane = b.CreateZExt(sort.lane, b.getInt64Ty());
    Value *reversed = b.CreateSub(e.i64(warp - 1), lane);
    result = b.CreateLoad(b.getInt64Ty(), slot(lane));
    for (unsigned other = 1; other < warps; ++other) {
      Value *word = b.CreateLoad(b.getInt64Ty(), slot(b.CreateAdd(reversed, e.i64(other * warp))));
      result = sort.mergeLanes(sort.least(result, word));
    }
  }
  // All warps have the same; those beyond the first have no places.
  row.place({result}, e.thread);
}

/// The whole row, `words` of it in each thread.
void TeamSort::emitAll(const Row &row, Network &sort, int64_t words) {
  constexpr unsigned warp = DeviceEmitter::warp;
  SmallVector<Value *> own;
  for (int64_t number = 0; number < words; ++number)
    own.push_back(row.load(b.CreateAdd(e.thread, e.i64(number * e.shape.team))));
  // Where there is room for two halves what is written next is not what others may still read.
  int64_t all = words * e.shape.team, halves = 2 * all <= exchangedWords ? 2 : 1;
  GlobalVariable *space = e.shape.team > warp ? sortSpace(halves * all) : nullptr;
  int64_t half = 0;
  auto exchange = [&](unsigned mask) {
    bool betweenWarps = mask / words >= warp;
    sort.exchange(own, mask, [&](Value *index) {
      index = b.CreateAdd(index, b.getInt32(half * all));
      return b.CreateInBoundsGEP(b.getInt64Ty(), space, b.CreateZExt(index, b.getInt64Ty()));
    });
    if (betweenWarps && halves == 1)
      e.barrier();
    half = (half + betweenWarps) % halves;
  };
  for (int64_t run = 1; run < all; run *= 2) {
    exchange(2 * run - 1);
    for (int64_t distance = run / 2; distance; distance /= 2)
      exchange(distance);
  }
  row.place(own, b.CreateMul(e.thread, e.i64(words)));
}
