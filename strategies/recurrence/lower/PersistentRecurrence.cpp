//===- PersistentRecurrence.cpp - Persistent RNN: weights stay in registers ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/recurrence/lower/PersistentRecurrence.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Terms of a sum that a thread reads of a state at once.
static constexpr int64_t vectorElements = RecurrenceShape::together;

PersistentRecurrence::PersistentRecurrence(DeviceEmitter &emitter, const RecurrencePlan &plan,
                                           const RecurrenceShape &shape)
    : e(emitter), b(emitter.b), plan(plan), shape(shape), states(emitter, plan, shape) {}

DeviceShape PersistentRecurrence::deviceShape(const RecurrenceShape &shape) {
  DeviceShape result;
  result.team = result.threads = shape.threads;
  result.cluster = shape.cluster;
  return result;
}

static mlir::Block &bodyOf(const RecurrenceNest &nest) {
  return tgl::ParallelOp(nest.op).getBody().front();
}

//===----------------------------------------------------------------------===//
// Before the rows
//===----------------------------------------------------------------------===//

void PersistentRecurrence::assignPoints() {
  for (const RecurrenceNest &nest : plan.nests) {
    Point &point = points.emplace_back();
    if (nest.copied >= 0)
      continue;
    point.lanes = shape.lanesFor(nest.points);
    point.lane = b.CreateURem(thread, i64(point.lanes));
    // No block is without a point, whose value tells the others that it has read theirs.
    auto firstOf = [&](Value *block) {
      return b.CreateUDiv(b.CreateNSWMul(block, i64(nest.points)), i64(shape.cluster));
    };
    Value *number = b.CreateNSWAdd(firstOf(rank), b.CreateUDiv(thread, i64(point.lanes)));
    Value *end = firstOf(b.CreateNSWAdd(rank, i64(1)));
    point.exists = b.CreateICmpULT(number, end);
    point.writes = b.CreateAnd(point.exists, b.CreateICmpEQ(point.lane, i64(0)));
    Value *last = b.CreateBinaryIntrinsic(Intrinsic::umax, end, i64(1));
    point.axis = b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.CreateNSWSub(last, i64(1)));
    e.values[nest.axis()] = point.axis;
  }
}

/// Vectors of weights that registers have no room for: those of a thread are a block of threads
/// apart.
Value *PersistentRecurrence::sharedWeights(int64_t number) {
  Value *vector = b.CreateNSWAdd(thread, i64(number * shape.threads));
  return b.CreateInBoundsGEP(FixedVectorType::get(b.getFloatTy(), vectorElements),
                             e.dynamicShared(), vector);
}

void PersistentRecurrence::loadWeights() {
  int64_t inRegisters = 0;
  for (auto [number, nest, point] : enumerate(plan.nests, points))
    for (auto [index, sum] : enumerate(nest.sums)) {
      SmallVector<Value *> &weights = point.weights.emplace_back();
      mlir::Value axis = tgl::ReduceOp(sum.reduce).getBody().front().getArgument(0);
      int64_t terms = shape.termsOfLane(nest, sum);
      bool isWhole = terms * point.lanes == sum.terms;
      auto load = [&](int64_t term) {
        int64_t vector = term / vectorElements * point.lanes * vectorElements;
        Value *position = b.CreateNSWAdd(b.CreateNSWMul(point.lane, i64(vectorElements)),
                                         i64(vector + term % vectorElements));
        e.values[axis] =
            isWhole ? position
                    : b.CreateBinaryIntrinsic(Intrinsic::umin, position, i64(sum.terms - 1));
        e.emitOp(tgl::ReadOp(sum.weight));
        Value *weight = e.valueOf(tgl::ReadOp(sum.weight).getResult());
        return isWhole ? weight
                       : b.CreateSelect(b.CreateICmpULT(position, i64(sum.terms)), weight,
                                        ConstantFP::get(b.getFloatTy(), 0));
      };
      for (int64_t first = 0; first < terms; first += vectorElements) {
        bool isShared = inRegisters + vectorElements > shape.weightsInRegisters();
        Value *vector = PoisonValue::get(FixedVectorType::get(b.getFloatTy(), vectorElements));
        for (int64_t term = first; term < first + vectorElements; ++term) {
          Value *weight = load(term);
          weights.push_back(isShared ? nullptr : weight);
          vector = b.CreateInsertElement(vector, weight, term - first);
        }
        if (!isShared) {
          inRegisters += vectorElements;
          continue;
        }
        int64_t place = shared.size();
        shared[{unsigned(number), unsigned(index), first}] = place;
        b.CreateAlignedStore(vector, sharedWeights(place), Align(16)); // this thread alone reads it
      }
    }
}

/// Reads of what the loop does not change, by whether the time is in their subscripts. What data
/// decides is read where it stands.
void PersistentRecurrence::findInputs() {
  mlir::Value time = tgl::ForOp(plan.loop).getLoopVar();
  for (auto [nest, point] : zip_equal(plan.nests, points))
    for (tgl::ReadOp read : bodyOf(nest).getOps<tgl::ReadOp>()) {
      bool isPlain = nest.copied < 0 && !plan.changing.contains(read.getTensor()) &&
                     !read.getGuard() && !read.getFill() && read.getExactNumerators().empty(),
           moves = false;
      for (const ValueExpr &expr : read.getSubscriptExprs())
        for (mlir::Value operand : expr.operands()) {
          isPlain &= isa<mlir::BlockArgument>(operand);
          moves |= operand == time;
        }
      if (isPlain)
        (moves ? point.prefetched : point.invariant).push_back(read);
    }
}

//===----------------------------------------------------------------------===//
// Own values and results
//===----------------------------------------------------------------------===//

/// The value before the first step; nothing that counts where the first access writes.
Value *PersistentRecurrence::loadPrivate(unsigned number) {
  const RecurrencePrivate &own = plan.privates[number];
  mlir::Type element = cast<tgl::TglTensorType>(own.tensor.getType()).getElementType();
  bool isReadFirst = false, isFound = false;
  for (mlir::Operation &op : bodyOf(plan.nests[own.nest])) {
    auto read = dyn_cast<tgl::ReadOp>(op);
    auto write = dyn_cast<tgl::WriteOp>(op);
    if (isFound ||
        !((read && read.getTensor() == own.tensor) || (write && write.getTensor() == own.tensor)))
      continue;
    isFound = true;
    isReadFirst = bool(read);
  }
  if (isReadFirst)
    return e.decode(e.loadRaw(e.buffers[own.tensor], own.subscripts, nullptr), element);
  return Constant::getNullValue(
      e.decode(Constant::getNullValue(e.storageType(element)), element)->getType());
}

void PersistentRecurrence::storePrivate(unsigned number) {
  const RecurrencePrivate &own = plan.privates[number];
  mlir::Type element = cast<tgl::TglTensorType>(own.tensor.getType()).getElementType();
  e.storeRaw(e.buffers[own.tensor], own.subscripts, e.encode(privates[number], element),
             points[own.nest].writes);
}

void PersistentRecurrence::writeResults() {
  for (const Result &result : results)
    e.emitIf(points[result.nest].writes, [&] { e.emitOp(tgl::WriteOp(result.write)); });
  results.clear();
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

void PersistentRecurrence::setLoopVar(Value *step, Value *count) {
  tgl::ForOp loop = plan.loop;
  if (loop.getReverse())
    step = b.CreateNSWSub(b.CreateNSWSub(count, i64(1)), step);
  e.values[loop.getLoopVar()] = b.CreateNSWAdd(e.emitIndex(loop.getLowExpr()), step);
}

/// All sums of a nest: a vector of the state is read once for all of them.
void PersistentRecurrence::emitSums(unsigned number) {
  const RecurrenceNest &nest = plan.nests[number];
  const Point &point = points[number];
  Type *vector = FixedVectorType::get(b.getFloatTy(), vectorElements);
  SmallVector<SmallVector<Value *>> totals(nest.sums.size(),
                                           SmallVector<Value *>(vectorElements, nullptr));
  int64_t vectors = 0;
  for (const RecurrenceSum &sum : nest.sums)
    vectors = std::max(vectors, shape.termsOfLane(nest, sum) / vectorElements);
  for (int64_t part = 0; part < vectors; ++part) {
    DenseMap<mlir::Value, Value *> loaded;
    for (auto [index, sum] : enumerate(nest.sums)) {
      if (part >= shape.termsOfLane(nest, sum) / vectorElements)
        continue;
      mlir::Value tensor = tgl::ReadOp(sum.state).getTensor();
      Value *&elements = loaded[tensor];
      if (!elements) {
        unsigned state = plan.stateOf(tensor) - plan.states.begin();
        Value *first = b.CreateNSWMul(b.CreateNSWAdd(point.lane, i64(part * point.lanes)),
                                      i64(vectorElements));
        elements = b.CreateAlignedLoad(vector, states.elementOf(state, first), Align(16));
      }
      Value *weights = nullptr; // those that are not in registers
      if (!point.weights[index][part * vectorElements]) {
        int64_t place = shared.lookup({number, unsigned(index), part * vectorElements});
        weights = b.CreateAlignedLoad(vector, sharedWeights(place), Align(16));
      }
      for (int64_t element = 0; element < vectorElements; ++element) {
        Value *factor = b.CreateExtractElement(elements, element);
        Value *weight = weights ? b.CreateExtractElement(weights, element)
                                : point.weights[index][part * vectorElements + element];
        Value *&total = totals[index][element];
        total = total ? b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma, {factor, weight, total})
                      : b.CreateFMul(factor, weight);
      }
    }
  }
  for (auto [sum, parts] : zip_equal(nest.sums, totals)) {
    Value *total = b.CreateFAdd(b.CreateFAdd(parts[0], parts[1]), b.CreateFAdd(parts[2], parts[3]));
    for (int64_t distance = 1; distance < point.lanes; distance *= 2)
      total = b.CreateFAdd(total, e.shuffle(total, Intrinsic::nvvm_shfl_sync_bfly_i32,
                                            b.getInt32(distance), DeviceEmitter::warp - 1));
    e.values[tgl::ReduceOp(sum.reduce).getResult()] = total;
  }
}

void PersistentRecurrence::emitWrite(unsigned number, tgl::WriteOp write) {
  if (int own = plan.privateOf(write.getTensor()); own >= 0) {
    mlir::Type element = write.getTensorType().getElementType();
    privates[own] = e.decode(e.encode(e.valueOf(write.getValue()), element), element);
    return;
  }
  for (auto [index, state] : enumerate(plan.states))
    if (state.next == write.getTensor())
      return states.send(points[number], index, e.valueOf(write.getValue()));
  results.push_back({write, number});
}

void PersistentRecurrence::emitNest(unsigned number) {
  const RecurrenceNest &nest = plan.nests[number];
  bool hasSynced = !countsBytes();
  emitSums(number);
  for (mlir::Operation &op : bodyOf(nest)) {
    auto read = dyn_cast<tgl::ReadOp>(op);
    if (isa<tgl::ReduceOp>(op) || (read && (is_contained(points[number].prefetched, read) ||
                                            is_contained(points[number].invariant, read))))
      continue;
    if (auto write = dyn_cast<tgl::WriteOp>(op)) {
      bool isSent = llvm::any_of(plan.states, [&](const RecurrenceState &state) {
        return state.next == write.getTensor();
      });
      if (isSent && !std::exchange(hasSynced, true))
        states.syncBlock(); // all are through with what other blocks overwrite once they have this
                            // value
      emitWrite(number, write);
    } else if (const RecurrenceState *state = read ? plan.stateOf(read.getTensor()) : nullptr) {
      Value *index = e.emitIndex(read.getSubscriptExprs()[state->dim]);
      e.values[read.getResult()] =
          b.CreateLoad(b.getFloatTy(), states.elementOf(state - plan.states.begin(), index));
    } else if (int own = read ? plan.privateOf(read.getTensor()) : -1; own >= 0) {
      e.values[read.getResult()] = privates[own];
    } else {
      e.emitOp(&op);
    }
  }
}

/// `carried`: own values, then what was loaded ahead; both become those of the next step.
void PersistentRecurrence::emitStep(Value *step, Value *count, MutableArrayRef<Value *> carried) {
  for (auto [own, value] : zip(privates, carried))
    own = value;
  states.beginStep(step);

  Value *next = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(step, i64(1)),
                                        b.CreateNSWSub(count, i64(1)));
  setLoopVar(next, count);
  SmallVector<Value *> loaded;
  for (Point &point : points)
    for (mlir::Operation *read : point.prefetched) {
      e.emitOp(read);
      loaded.push_back(e.valueOf(read->getResult(0)));
    }
  setLoopVar(step, count);
  Value **before = carried.begin() + privates.size();
  for (Point &point : points)
    for (mlir::Operation *read : point.prefetched)
      e.values[read->getResult(0)] = *before++;

  if (countsBytes())
    states.expect(step);
  bool hasSynced = false;
  for (auto [number, nest] : enumerate(plan.nests)) {
    if (nest.copied < 0) {
      emitNest(number);
      hasSynced = false;
      continue;
    }
    if (countsBytes()) {
      writeResults();
      states.waitFor(nest.copied);
    } else if (!std::exchange(hasSynced, true)) {
      states.syncAll([&] { writeResults(); });
    }
    states.swapCopies(nest.copied);
  }
  writeResults();
  copy(privates, carried.begin());
  copy(loaded, carried.begin() + privates.size());
}

/// Returns how many steps there were.
Value *PersistentRecurrence::emitRow() {
  tgl::ForOp loop = plan.loop;
  Value *low = e.emitIndex(loop.getLowExpr()), *high = e.emitIndex(loop.getHighExpr());
  Value *count = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateNSWSub(high, low), i64(0));
  // Without a step nothing changes, and there is no first step for which to load.
  e.emitIf(b.CreateICmpSGT(count, i64(0)), [&] {
    states.load();
    for (auto [number, point] : enumerate(points))
      if (plan.nests[number].copied < 0)
        e.values[plan.nests[number].axis()] = point.axis;
    SmallVector<Value *> inits;
    for (unsigned own = 0; own < privates.size(); ++own)
      inits.push_back(loadPrivate(own));
    setLoopVar(i64(0), count);
    for (Point &point : points) {
      for (mlir::Operation *read : point.invariant)
        e.emitOp(read);
      for (mlir::Operation *read : point.prefetched) {
        e.emitOp(read);
        inits.push_back(e.valueOf(read->getResult(0)));
      }
    }
    states.syncAll();
    e.keepNextLoopRolled = true;
    SmallVector<Value *> last = e.emitLoop(
        i64(0), count, i64(1), inits,
        [&](Value *step, ArrayRef<Value *> carried) {
          SmallVector<Value *> values(carried);
          emitStep(step, count, values);
          return values;
        },
        "step");
    states.store(count);
    copy(ArrayRef(last).take_front(privates.size()), privates.begin());
    for (unsigned own = 0; own < privates.size(); ++own)
      storePrivate(own);
    states.syncAll(); // the next row's states take the place of these
  });
  return count;
}

void PersistentRecurrence::emit() {
  auto axes = cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation());
  constexpr unsigned maxBlocks = 0x7fffffff;
  thread = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  Value *block = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, maxBlocks);
  Value *blocks = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, maxBlocks);
  rank = b.CreateURem(block, i64(shape.cluster));
  assignPoints();
  states.allocate(thread, rank);
  privates.resize(plan.privates.size());
  loadWeights();
  findInputs();
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, axes.getAxes().size()));
  Value *first = b.CreateUDiv(block, i64(shape.cluster)),
        *step = b.CreateUDiv(blocks, i64(shape.cluster));
  e.keepNextLoopRolled = true;
  e.emitLoop(
      first, i64(plan.rows), step, {i64(0), i64(0)},
      [&](Value *number, ArrayRef<Value *> carried) {
        states.beginRow(carried);
        Value *count = nullptr;
        e.setAxes(axes, all, number, std::nullopt, [&] { count = emitRow(); });
        return states.phasesAfter(count);
      },
      "row");
}
