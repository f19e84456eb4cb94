//===- LookBackScan.cpp - Decoupled look-back scan ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/scan/lower/LookBackScan.h"

#include "codegen/simt/TeamScan.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// The number that the next block takes is alone in its line of memory.
static constexpr int64_t ticketBytes = 128, wordBytes = 8;

LookBackScan::LookBackScan(DeviceEmitter &emitter, tgl::ParallelOp op, const PrefixLoop &prefix)
    : e(emitter), b(emitter.b), op(op), prefix(prefix), tile(*ScanTile::of(prefix.loop)),
      points(*tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()))),
      count(*(tgl::ForOp(prefix.loop).getHighExpr() - tgl::ForOp(prefix.loop).getLowExpr())
                 .asConstant()),
      grid(tile, points, count) {}

int64_t LookBackScan::workspaceBytes() const {
  if (!looksBack())
    return 0;
  mlir::Type carried = tgl::ForOp(prefix.loop).getIterArgs()[0].getType();
  return ticketBytes + wordBytes * wordsOf(carried.getIntOrFloatBitWidth()) * tile.columns *
                           grid.across * (grid.parts + grid.groups(tile));
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value *LookBackScan::combine(Value *lhs, Value *rhs) {
  return lhs && rhs ? combineWith(b, prefix.combine, lhs, rhs) : lhs ? lhs : rhs;
}

Value *LookBackScan::identity(Type *type) { return tegula::identityOf(prefix.combine, type); }

/// The value of the thread that is `lane` below this one in the warp (`up`), or of thread `lane`.
Value *LookBackScan::shuffle(Value *value, bool up, Value *lane) {
  return up ? e.shuffle(value, Intrinsic::nvvm_shfl_sync_up_i32, lane, 0)
            : e.shuffle(value, Intrinsic::nvvm_shfl_sync_idx_i32, lane, DeviceEmitter::warp - 1);
}

/// The scan over the warp's threads with the same points, this one included.
Value *LookBackScan::scanRows(Value *value) {
  for (unsigned distance = 1; distance < rows; distance *= 2) {
    Value *lower = shuffle(value, /*up=*/true, i32(distance * across));
    value = b.CreateSelect(b.CreateICmpUGE(row, i32(distance)), combine(lower, value), value);
  }
  return value;
}

/// The total of the warps before this one (null where the block has one warp), and of the whole
/// block; `own` is this warp's total, in its last row.
std::pair<Value *, Value *> LookBackScan::combineWarps(Value *own, const Twine &name) {
  Type *type = own->getType();
  GlobalVariable *totals = e.shared(ArrayType::get(type, warps * across), name);
  auto slot = [&](Value *number) {
    return b.CreateInBoundsGEP(type, totals, b.CreateAdd(b.CreateMul(number, i32(across)), inRow));
  };
  e.emitIf(b.CreateICmpEQ(row, i32(rows - 1)), [&] { b.CreateStore(own, slot(warpNumber)); });
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
  Value *before = identity(type), *all = nullptr;
  for (unsigned number = 0; number < warps; ++number) {
    if (number)
      before = b.CreateSelect(b.CreateICmpEQ(warpNumber, i32(number)), all, before);
    all = combine(all, b.CreateLoad(type, slot(i32(number))));
  }
  return {before, all};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void LookBackScan::takeTicket() {
  Value *thread = b.CreateTrunc(e.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, ScanTile::threads),
                                b.getInt32Ty());
  Value *number = nullptr;
  if (looksBack()) {
    GlobalVariable *taken = e.shared(b.getInt32Ty(), "number");
    e.emitIf(b.CreateICmpEQ(thread, i32(0)), [&] {
      Value *next = b.CreateAtomicRMW(AtomicRMWInst::Add, workspace, i32(1), Align(4),
                                      AtomicOrdering::Monotonic,
                                      b.getContext().getOrInsertSyncScopeID("device"));
      b.CreateStore(next, taken);
    });
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
    number = b.CreateLoad(b.getInt32Ty(), taken);
  } else {
    number = b.CreateTrunc(e.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, numBlocks()),
                           b.getInt32Ty());
  }
  part = grid.across == 1 ? number : b.CreateUDiv(number, i32(grid.across));
  column = grid.across == 1 ? i32(0) : b.CreateURem(number, i32(grid.across));
  Value *lane = b.CreateURem(thread, i32(DeviceEmitter::warp));
  inRow = across == 1 ? i32(0) : b.CreateURem(lane, i32(across));
  row = across == 1 ? lane : b.CreateUDiv(lane, i32(across));
  warpNumber = b.CreateUDiv(thread, i32(DeviceEmitter::warp));
}

void LookBackScan::emit(Value *memory) {
  workspace = memory;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  stepLanes = tile.columns == 1 ? vectorOf(prefix) : 1;
  rounds = tile.each / stepLanes;
  across = tile.columns;
  rows = DeviceEmitter::warp / across;
  // Elements of so many blocks together are on their way from memory. Registers for six are there
  // where a step is short, and its elements are enough to come to its results.
  constexpr size_t shortStep = 8;
  mlir::Type carried = tgl::ForOp(prefix.loop).getIterArgs()[0].getType();
  bool isLean = tile.columns == 1 && wordsOf(carried.getIntOrFloatBitWidth()) == 1 &&
                prefix.before.size() + prefix.after.size() <= shortStep &&
                (stepLanes > 1 || !usesExclusive());
  if (isLean)
    b.GetInsertBlock()->getParent()->addFnAttr("nvvm.minctasm", "6");
  takeTicket();

  Value *number =
      b.CreateZExt(b.CreateAdd(b.CreateMul(column, i32(across)), inRow), b.getInt64Ty(), "", true);
  if (points % across) {
    pointExists = b.CreateICmpULT(number, b.getInt64(points));
    number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.getInt64(points - 1));
  }
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, axes.getAxes().size()));
  e.setAxes(axes, all, number, std::nullopt, [&] {
    for (mlir::Operation &each : op.getBody().front())
      if (isa<tgl::ForOp>(each))
        emitLoop();
      else
        e.emitOp(&each);
  });
}

void LookBackScan::emitLoop() {
  load();
  auto [before, total] = combineWarps(scanWarp(), "totals");
  Value *init = e.valueOf(tgl::ForOp(prefix.loop).getInits()[0]);
  Value *earlier = init;
  if (looksBack()) {
    Type *type = total->getType();
    Value *publishes = b.CreateAnd(b.CreateICmpEQ(warpNumber, i32(0)), b.CreateICmpEQ(row, i32(0)));
    e.emitIf(publishes, [&] { publish(statusWordsAt(/*ofGroups=*/false, part, type), total); });
    earlier = lookBack(init);
    Value *isLast = b.CreateICmpEQ(b.CreateURem(part, i32(tile.group)), i32(tile.group - 1));
    e.emitIf(b.CreateAnd(publishes, isLast), [&] {
      publish(statusWordsAt(/*ofGroups=*/true, b.CreateUDiv(part, i32(tile.group)), type),
              combine(earlier, total));
    });
  }
  before = combine(earlier, before);
  inFullOrRagged([&](bool isWhole) {
    auto all = [&] {
      for (auto [number, round] : enumerate(inRounds)) {
        locate(round, number, isWhole);
        auto one = [&] { write(round, before); };
        round.exists ? e.emitIf(round.exists, one) : one();
      }
    };
    pointExists ? e.emitIf(pointExists, all) : all();
  });
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// At the round's steps, lanes along them where they are neighbours in memory.
void LookBackScan::at(Round &round, function_ref<void()> body) {
  mlir::Value axis = tgl::ForOp(prefix.loop).getLoopVar();
  if (stepLanes > 1)
    return e.withLanes(axis, stepLanes, round.base, nullptr, body);
  e.values[axis] = round.base;
  body();
}

/// Once for parts with all their steps, whose places are constants apart, and once for the last
/// one, if it has fewer. What they leave in the rounds is merged.
void LookBackScan::inFullOrRagged(function_ref<void(bool isWhole)> body) {
  if (count % tile.steps() == 0)
    return body(true);
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *blocks[2], *end = BasicBlock::Create(b.getContext(), "all", function);
  for (BasicBlock *&block : blocks)
    block = BasicBlock::Create(b.getContext(), "part", function, end);
  b.CreateCondBr(b.CreateICmpULT(part, i32(count / tile.steps())), blocks[0], blocks[1]);
  Values left[2];
  for (unsigned rest : {0, 1}) {
    b.SetInsertPoint(blocks[rest]);
    body(rest == 0);
    forEachLoaded([&](Value *&value) { left[rest].push_back(value); });
    blocks[rest] = b.GetInsertBlock();
    b.CreateBr(end);
  }
  b.SetInsertPoint(end);
  unsigned next = 0;
  forEachLoaded([&](Value *&value) {
    PHINode *phi = b.CreatePHI(value->getType(), 2);
    for (unsigned rest : {0, 1})
      phi->addIncoming(left[rest][next], blocks[rest]);
    value = phi;
    ++next;
  });
}

void LookBackScan::forEachLoaded(function_ref<void(Value *&)> visit) {
  for (Round &round : inRounds) {
    for (Values &found : round.found)
      for (Value *&value : found)
        visit(value);
    for (Value *&value : round.upTo)
      visit(value);
  }
}

void LookBackScan::locate(Round &round, unsigned number, bool isWhole) {
  tgl::ForOp loop = prefix.loop;
  int64_t ofRound = int64_t(rows) * stepLanes, ofWarp = ofRound * rounds;
  Value *step = b.CreateMul(part, i32(tile.steps()));
  step = b.CreateAdd(step, b.CreateMul(warpNumber, i32(ofWarp)));
  step = b.CreateAdd(step, b.CreateMul(row, i32(stepLanes)));
  step = b.CreateZExt(step, b.getInt64Ty(), "", /*IsNonNeg=*/true);
  step = b.CreateNSWAdd(step, b.getInt64(number * ofRound));
  round.exists = nullptr;
  if (!isWhole) {
    round.exists = b.CreateICmpULT(step, b.getInt64(count));
    step = b.CreateBinaryIntrinsic(Intrinsic::umin, step, b.getInt64(count - stepLanes));
  }
  Value *last = b.CreateNSWSub(e.emitIndex(loop.getHighExpr()), b.getInt64(stepLanes));
  round.base = loop.getReverse() ? b.CreateNSWSub(last, step)
                                 : b.CreateNSWAdd(e.emitIndex(loop.getLowExpr()), step);
}

/// Loads the tile, and computes what the loop computes before it needs the total.
void LookBackScan::load() {
  tgl::ForOp loop = prefix.loop;
  inFullOrRagged([&](bool isWhole) {
    inRounds.assign(rounds, Round());
    for (auto [number, round] : enumerate(inRounds)) {
      locate(round, number, isWhole);
      at(round, [&, &round = round] {
        for (mlir::Operation *each : prefix.before) {
          e.emitOp(each);
          Values &found = round.found.emplace_back();
          for (mlir::Value result : each->getResults())
            found.push_back(e.values.lookup(result));
        }
        Value *added = e.splat(e.valueOf(prefix.added));
        for (unsigned lane = 0; lane < stepLanes; ++lane) {
          unsigned locate = loop.getReverse() ? stepLanes - 1 - lane : lane;
          Value *one = stepLanes > 1 ? b.CreateExtractElement(added, uint64_t(locate)) : added;
          if (round.exists)
            one = b.CreateSelect(round.exists, one, identity(one->getType()));
          round.upTo.push_back(combine(lane ? round.upTo.back() : nullptr, one));
        }
      });
    }
  });
}

/// Whether more than the sums up to each step is wanted: those before it.
bool LookBackScan::usesExclusive() const {
  mlir::Value carried = tgl::ForOp(prefix.loop).getIterArgs()[0];
  return stepLanes > 1 ||
         !all_of(carried.getUsers(), [&](mlir::Operation *user) { return user == prefix.combine; });
}

/// Totals up to each element in the warp; the warp's.
Value *LookBackScan::scanWarp() {
  Value *total = nullptr;
  for (Round &round : inRounds) {
    Value *with = rows > 1 ? scanRows(round.upTo.back()) : round.upTo.back();
    round.before = total;
    if (rows > 1 && usesExclusive()) {
      Value *lower = shuffle(with, /*up=*/true, i32(across));
      lower = b.CreateSelect(b.CreateICmpEQ(row, i32(0)), identity(lower->getType()), lower);
      round.before = combine(total, lower);
    }
    round.with = combine(total, with);
    total = rows > 1
                ? shuffle(round.with, /*up=*/false, b.CreateAdd(inRow, i32((rows - 1) * across)))
                : round.with;
  }
  return total;
}

/// The rest of the steps, given the total before the warp.
void LookBackScan::write(Round &round, Value *before) {
  tgl::ForOp loop = prefix.loop;
  Value *carried = nullptr, *next = combine(before, round.with);
  if (usesExclusive()) {
    before = combine(before, round.before);
    carried = before;
    Value *last = before;
    if (stepLanes > 1) {
      auto *type = FixedVectorType::get(before->getType(), stepLanes);
      carried = next = PoisonValue::get(type);
      for (unsigned lane = 0; lane < stepLanes; ++lane) {
        uint64_t locate = loop.getReverse() ? stepLanes - 1 - lane : lane;
        Value *upTo = combine(before, round.upTo[lane]);
        carried = b.CreateInsertElement(carried, last, locate);
        next = b.CreateInsertElement(next, upTo, locate);
        last = upTo;
      }
    }
  }
  at(round, [&] {
    for (auto [each, found] : zip_equal(prefix.before, round.found))
      for (auto [result, value] : zip_equal(each->getResults(), found))
        e.values[result] = value;
    if (carried)
      e.values[loop.getIterArgs()[0]] = carried;
    for (mlir::Operation *each : prefix.after)
      if (each == prefix.combine)
        e.values[each->getResult(0)] = next;
      else
        e.emitOp(each);
  });
}

//===----------------------------------------------------------------------===//
// Looking back
//===----------------------------------------------------------------------===//

/// The words of this thread's point, of a part's total or of that of all groups up to one.
Value *LookBackScan::statusWordsAt(bool ofGroups, Value *number, Type *type) {
  int64_t each = wordsOf(type->getPrimitiveSizeInBits()), groups = grid.groups(tile),
          per = ofGroups ? groups : grid.parts;
  auto wide = [&](Value *value) {
    return b.CreateZExt(value, b.getInt64Ty(), "", /*IsNonNeg=*/true);
  };
  Value *locate = b.CreateNSWAdd(b.CreateNSWMul(wide(column), b.getInt64(per)), wide(number));
  if (ofGroups)
    locate = b.CreateNSWAdd(locate, b.getInt64(grid.across * grid.parts));
  locate = b.CreateNSWAdd(b.CreateNSWMul(locate, b.getInt64(across)), wide(inRow));
  Value *base = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), workspace, ticketBytes);
  return b.CreateInBoundsGEP(b.getInt64Ty(), base, b.CreateNSWMul(locate, b.getInt64(each)));
}

void LookBackScan::publish(Value *words, Value *value) {
  Type *type = value->getType();
  Value *whole = b.CreateZExt(b.CreateBitCast(value, b.getIntNTy(type->getPrimitiveSizeInBits())),
                              b.getInt64Ty());
  for (unsigned word = 0; word < wordsOf(type->getPrimitiveSizeInBits()); ++word) {
    Value *half = b.CreateAnd(b.CreateLShr(whole, 32 * word), b.getInt64(UINT32_MAX));
    StoreInst *store =
        b.CreateAlignedStore(b.CreateOr(half, b.getInt64(int64_t(1) << 32)),
                             b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), words, word), Align(8));
    store->setAtomic(AtomicOrdering::Monotonic, b.getContext().getOrInsertSyncScopeID("device"));
  }
}

/// Waits until all values have been published; all words are looked at together.
LookBackScan::Values LookBackScan::awaitStatus(ArrayRef<Value *> places, Type *type) {
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *look = BasicBlock::Create(b.getContext(), "look", function);
  BasicBlock *found = BasicBlock::Create(b.getContext(), "found", function);
  unsigned each = wordsOf(type->getPrimitiveSizeInBits()), bits = type->getPrimitiveSizeInBits();
  b.CreateBr(look);
  b.SetInsertPoint(look);
  Values words;
  Value *seen = nullptr;
  for (Value *locate : places)
    for (unsigned word = 0; word < each; ++word) {
      LoadInst *load = b.CreateAlignedLoad(
          b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), locate, word), Align(8));
      load->setAtomic(AtomicOrdering::Monotonic, b.getContext().getOrInsertSyncScopeID("device"));
      words.push_back(load);
      seen = seen ? b.CreateAnd(seen, load) : load;
    }
  b.CreateCondBr(b.CreateICmpNE(b.CreateLShr(seen, 32), b.getInt64(0)), found, look);
  b.SetInsertPoint(found);
  Values values;
  unsigned next = 0;
  for (size_t locate = 0; locate < places.size(); ++locate) {
    Value *whole = b.CreateAnd(words[next++], b.getInt64(UINT32_MAX));
    if (each == 2)
      whole = b.CreateOr(whole, b.CreateShl(words[next++], 32));
    values.push_back(b.CreateBitCast(b.CreateTrunc(whole, b.getIntNTy(bits)), type));
  }
  return values;
}

/// The total before the tile. What comes before the group, and then its earlier parts, are dealt
/// out in that order to the threads with the same points: all of it is looked for at once.
Value *LookBackScan::lookBack(Value *init) {
  Type *type = init->getType();
  int64_t threads = int64_t(rows) * warps, each = std::max<int64_t>(1, tile.group / threads);
  Value *inGroup = b.CreateURem(part, i32(tile.group)),
        *group = b.CreateUDiv(part, i32(tile.group));
  Value *first = b.CreateMul(b.CreateAdd(b.CreateMul(warpNumber, i32(rows)), row), i32(each));
  Value *isFirst = b.CreateICmpEQ(first, i32(0)), *hasGroups = b.CreateICmpNE(group, i32(0));
  Value *none = identity(type), *start = b.CreateSelect(isFirst, init, none);
  auto atLeast1 = [&](Value *value) {
    return b.CreateBinaryIntrinsic(Intrinsic::umax, value, i32(1));
  };
  Value *own = e.emitIfElse(
      b.CreateAnd(b.CreateICmpULE(first, inGroup), b.CreateICmpNE(part, i32(0))),
      [&] {
        SmallVector<Value *> places, exist;
        for (unsigned number = 0; number < each; ++number) {
          // Numbers past the group's end read its last tile, which exists.
          Value *wanted = b.CreateAdd(first, i32(number));
          Value *taken = atLeast1(b.CreateBinaryIntrinsic(Intrinsic::umin, wanted, inGroup));
          taken = b.CreateSub(b.CreateAdd(taken, b.CreateMul(group, i32(tile.group))), i32(1));
          Value *locate = statusWordsAt(/*ofGroups=*/false, taken, type);
          if (number == 0)
            locate = b.CreateSelect(
                b.CreateAnd(isFirst, hasGroups),
                statusWordsAt(/*ofGroups=*/true, b.CreateSub(atLeast1(group), i32(1)), type),
                locate);
          places.push_back(locate);
          exist.push_back(number ? b.CreateICmpULE(wanted, inGroup)
                                 : b.CreateOr(b.CreateNot(isFirst), hasGroups));
        }
        Value *sum = nullptr;
        for (auto [value, exists] : zip_equal(awaitStatus(places, type), exist))
          sum = combine(sum, b.CreateSelect(exists, value, sum ? none : start));
        return sum;
      },
      start);
  return combineWarps(scanRows(own), "earlier").second;
}
