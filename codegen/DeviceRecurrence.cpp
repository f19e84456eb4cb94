//===- DeviceRecurrence.cpp - Loops over time with resident weights -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Why nobody overwrites what another still reads: values of step t go into the copy that step t - 1 read. A block that
// sends them has the values of step t - 1 from all blocks, and each block sent its own after a barrier to which its
// threads came when they were through with that copy. And a phase of a copy's barrier ends before bytes of its next one
// come, two steps later.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceRecurrence.h"
#include "codegen/async/Async.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned clusterSpace = 7;
/// Terms of a sum that a thread reads of a state at once.
static constexpr int64_t vectorElements = RecurrenceShape::together;

DeviceRecurrence::DeviceRecurrence(DeviceEmitter &emitter, const RecurrencePlan &plan, const RecurrenceShape &shape)
    : e(emitter), b(emitter.b), plan(plan), shape(shape) {}

DeviceShape DeviceRecurrence::deviceShape(const RecurrenceShape &shape) {
  DeviceShape result;
  result.team = result.threads = shape.threads;
  result.cluster = shape.cluster;
  return result;
}

static mlir::Block &bodyOf(const RecurrenceNest &nest) { return tgl::ParallelOp(nest.op).getBody().front(); }

//===----------------------------------------------------------------------===//
// Before the rows
//===----------------------------------------------------------------------===//

void DeviceRecurrence::placePoints() {
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

/// Two copies of each state, with zeros up to what lanes read in whole vectors. Lanes of a point put its value into
/// blocks of the cluster in turn.
void DeviceRecurrence::placeStates() {
  for (auto [number, state] : enumerate(plan.states)) {
    int64_t elements = alignTo(state.points, vectorElements);
    int64_t lanes = 1;
    for (const RecurrenceNest &nest : plan.nests) {
      for (const RecurrenceSum &sum : nest.sums)
        if (tgl::ReadOp(sum.state).getTensor() == state.tensor)
          elements = std::max(elements, shape.termsOfLane(nest, sum) * shape.lanesFor(nest.points));
      for (tgl::WriteOp write : bodyOf(nest).getOps<tgl::WriteOp>())
        if (write.getTensor() == state.next)
          lanes = shape.lanesFor(nest.points);
    }
    State &placed = states.emplace_back();
    placed.elements = elements;
    placed.both = e.shared(ArrayType::get(b.getFloatTy(), 2 * elements), "state");
    for (int64_t first = 0; hasCluster() && first < shape.cluster; first += lanes) {
      // By all threads: there is an address for every block of the cluster alone.
      Value *target = b.CreateURem(b.CreateAdd(b.CreateURem(thread, i64(lanes)), i64(first)), i64(shape.cluster));
      auto inBlock = [&](GlobalVariable *own) {
        return b.CreateIntrinsic(PointerType::get(b.getContext(), clusterSpace), Intrinsic::nvvm_mapa_shared_cluster,
                                 {own, b.CreateTrunc(target, b.getInt32Ty())});
      };
      placed.remote.push_back(inBlock(placed.both));
      if (!countsBytes())
        continue;
      if (!placed.barriers)
        placed.barriers = e.shared(ArrayType::get(b.getInt64Ty(), 2), "arrived");
      placed.remoteBarriers.push_back(inBlock(placed.barriers));
    }
  }
  // Other blocks see them after the barrier before the first step.
  if (countsBytes())
    e.emitIf(b.CreateICmpEQ(thread, i64(0)), [&] {
      SmallVector<Value *> barriers;
      for (const State &state : states)
        for (unsigned copy : {0, 1})
          barriers.push_back(b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), state.barriers, copy));
      async::initCounts(b, barriers);
    });
  current.resize(states.size());
  owns.resize(plan.owns.size());
}

/// Vectors of weights that registers have no room for: those of a thread are a block of threads apart.
Value *DeviceRecurrence::sharedWeights(int64_t number) {
  Value *vector = b.CreateNSWAdd(thread, i64(number * shape.threads));
  return b.CreateInBoundsGEP(FixedVectorType::get(b.getFloatTy(), vectorElements), e.dynamicShared(), vector);
}

void DeviceRecurrence::loadWeights() {
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
            isWhole ? position : b.CreateBinaryIntrinsic(Intrinsic::umin, position, i64(sum.terms - 1));
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

/// Reads of what the loop does not change, by whether the time is in their subscripts. What data decides is read where
/// it stands.
void DeviceRecurrence::findInputs() {
  mlir::Value time = tgl::ForOp(plan.loop).getLoopVar();
  for (auto [nest, point] : zip_equal(plan.nests, points))
    for (tgl::ReadOp read : bodyOf(nest).getOps<tgl::ReadOp>()) {
      bool isPlain = nest.copied < 0 && !plan.changing.contains(read.getTensor()) && !read.getGuard() &&
                     !read.getFill() && read.getExactNumerators().empty(), moves = false;
      for (const ValueExpr &expr : read.getSubscriptExprs())
        for (mlir::Value operand : expr.operands()) {
          isPlain &= isa<mlir::BlockArgument>(operand);
          moves |= operand == time;
        }
      if (isPlain)
        (moves ? point.ahead : point.still).push_back(read);
    }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value *DeviceRecurrence::elementOf(unsigned state, Value *index) {
  return b.CreateInBoundsGEP(b.getFloatTy(), states[state].both, b.CreateNSWAdd(current[state], index));
}

/// The row of each state into the first copy of every block.
void DeviceRecurrence::loadStates() {
  for (auto [number, state] : enumerate(plan.states)) {
    mlir::Value axis = cast<tgl::ParallelOp>(tgl::WriteOp(state.write)->getParentOp()).getAxes()[0];
    SmallVector<ValueExpr> subscripts = tgl::WriteOp(state.write).getSubscriptExprs();
    int64_t elements = states[number].elements, points = state.points;
    Value *both = states[number].both;
    e.emitLoop(thread, i64(elements), i64(shape.threads), {}, [&](Value *index, ArrayRef<Value *>) {
      e.values[axis] = b.CreateBinaryIntrinsic(Intrinsic::umin, index, i64(points - 1));
      Value *value = e.decode(e.loadRaw(e.buffers[state.tensor], subscripts, nullptr),
                              cast<tgl::TglTensorType>(state.tensor.getType()).getElementType());
      Value *zero = ConstantFP::get(b.getFloatTy(), 0);
      value = b.CreateSelect(b.CreateICmpULT(index, i64(points)), value, zero);
      b.CreateStore(value, b.CreateInBoundsGEP(b.getFloatTy(), both, index));
      b.CreateStore(zero, b.CreateInBoundsGEP(b.getFloatTy(), both, b.CreateNSWAdd(index, i64(elements))));
      return SmallVector<Value *>();
    });
  }
}

/// What it is after the last step, from all blocks a part.
void DeviceRecurrence::storeStates(Value *count) {
  for (auto [number, state] : enumerate(plan.states)) {
    auto copy = cast<tgl::ParallelOp>(tgl::WriteOp(state.write)->getParentOp());
    SmallVector<ValueExpr> subscripts = tgl::WriteOp(state.write).getSubscriptExprs();
    current[number] = b.CreateNSWMul(b.CreateAnd(count, i64(1)), i64(states[number].elements));
    Value *first = b.CreateNSWAdd(b.CreateNSWMul(rank, i64(shape.threads)), thread);
    e.emitLoop(first, i64(state.points), i64(shape.threads * shape.cluster), {},
               [&](Value *index, ArrayRef<Value *>) {
                 e.values[copy.getAxes()[0]] = index;
                 Value *value = b.CreateLoad(b.getFloatTy(), elementOf(number, index));
                 e.storeRaw(e.buffers[state.tensor], subscripts, value, nullptr);
                 return SmallVector<Value *>();
               });
  }
}

/// The value before the first step; nothing that counts where the first access writes.
Value *DeviceRecurrence::loadOwn(unsigned number) {
  const RecurrenceOwn &own = plan.owns[number];
  mlir::Type element = cast<tgl::TglTensorType>(own.tensor.getType()).getElementType();
  bool isReadFirst = false, isFound = false;
  for (mlir::Operation &op : bodyOf(plan.nests[own.nest])) {
    auto read = dyn_cast<tgl::ReadOp>(op);
    auto write = dyn_cast<tgl::WriteOp>(op);
    if (isFound || !((read && read.getTensor() == own.tensor) || (write && write.getTensor() == own.tensor)))
      continue;
    isFound = true;
    isReadFirst = bool(read);
  }
  if (isReadFirst)
    return e.decode(e.loadRaw(e.buffers[own.tensor], own.subscripts, nullptr), element);
  return Constant::getNullValue(e.decode(Constant::getNullValue(e.storageType(element)), element)->getType());
}

void DeviceRecurrence::storeOwn(unsigned number) {
  const RecurrenceOwn &own = plan.owns[number];
  mlir::Type element = cast<tgl::TglTensorType>(own.tensor.getType()).getElementType();
  e.storeRaw(e.buffers[own.tensor], own.subscripts, e.encode(owns[number], element), points[own.nest].writes);
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void DeviceRecurrence::meetBlock() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
}

void DeviceRecurrence::meetAll() {
  hasCluster() ? e.meetCluster() : meetBlock();
}

/// i64: 0 or 1, the copy that the step writes.
Value *DeviceRecurrence::copyAfter(unsigned state) {
  return b.CreateZExt(b.CreateICmpEQ(current[state], i64(0)), b.getInt64Ty());
}

/// One thread says how many bytes the block waits for.
void DeviceRecurrence::expectStates() {
  e.emitIf(b.CreateICmpEQ(thread, i64(0)), [&] {
    for (auto [number, state] : enumerate(states))
      async::expect(b, b.CreateInBoundsGEP(b.getInt64Ty(), state.barriers, copyAfter(number)),
                    b.getInt32(plan.states[number].points * sizeof(float)));
  });
}

/// All values of the copy that the step writes.
void DeviceRecurrence::waitFor(unsigned state) {
  async::awaitPhase(b, b.CreateInBoundsGEP(b.getInt64Ty(), states[state].barriers, copyAfter(state)), parity,
                    /*ofCluster=*/true);
}

/// The point's value of the next step, into the copy that is not read now, of all blocks.
void DeviceRecurrence::send(unsigned nest, unsigned state, Value *value) {
  const Point &point = points[nest];
  Value *other = b.CreateNSWSub(i64(states[state].elements), current[state]);
  Value *index = b.CreateNSWAdd(other, point.axis);
  if (!hasCluster())
    return e.emitIf(point.writes, [&] {
      b.CreateStore(value, b.CreateInBoundsGEP(b.getFloatTy(), states[state].both, index));
    });
  for (auto [round, remote] : enumerate(states[state].remote)) {
    Value *block = b.CreateNSWAdd(point.lane, i64(round * point.lanes));
    Value *to = b.CreateInBoundsGEP(b.getFloatTy(), remote, index);
    Value *barrier = nullptr;
    if (countsBytes())
      barrier = b.CreateInBoundsGEP(b.getInt64Ty(), states[state].remoteBarriers[round], copyAfter(state));
    e.emitIf(b.CreateAnd(point.exists, b.CreateICmpULT(block, i64(shape.cluster))), [&] {
      if (barrier)
        async::storeCounted(b, to, value, barrier);
      else
        b.CreateAlignedStore(value, to, Align(sizeof(float)));
    });
  }
}

void DeviceRecurrence::writeResults() {
  for (const Result &result : results)
    e.emitIf(points[result.nest].writes, [&] { e.emitOp(tgl::WriteOp(result.write)); });
  results.clear();
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

void DeviceRecurrence::setLoopVar(Value *step, Value *count) {
  tgl::ForOp loop = plan.loop;
  if (loop.getReverse())
    step = b.CreateNSWSub(b.CreateNSWSub(count, i64(1)), step);
  e.values[loop.getLoopVar()] = b.CreateNSWAdd(e.emitIndex(loop.getLowExpr()), step);
}

/// All sums of a nest: a vector of the state is read once for all of them.
void DeviceRecurrence::emitSums(unsigned number) {
  const RecurrenceNest &nest = plan.nests[number];
  const Point &point = points[number];
  Type *vector = FixedVectorType::get(b.getFloatTy(), vectorElements);
  SmallVector<SmallVector<Value *>> totals(nest.sums.size(), SmallVector<Value *>(vectorElements, nullptr));
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
        Value *first = b.CreateNSWMul(b.CreateNSWAdd(point.lane, i64(part * point.lanes)), i64(vectorElements));
        elements = b.CreateAlignedLoad(vector, elementOf(state, first), Align(16));
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
      total = b.CreateFAdd(total, e.shuffle(total, Intrinsic::nvvm_shfl_sync_bfly_i32, b.getInt32(distance),
                                            DeviceEmitter::warp - 1));
    e.values[tgl::ReduceOp(sum.reduce).getResult()] = total;
  }
}

void DeviceRecurrence::emitWrite(unsigned number, tgl::WriteOp write) {
  if (int own = plan.ownOf(write.getTensor()); own >= 0) {
    mlir::Type element = write.getTensorType().getElementType();
    owns[own] = e.decode(e.encode(e.valueOf(write.getValue()), element), element);
    return;
  }
  for (auto [index, state] : enumerate(plan.states))
    if (state.next == write.getTensor())
      return send(number, index, e.valueOf(write.getValue()));
  results.push_back({write, number});
}

void DeviceRecurrence::emitNest(unsigned number) {
  const RecurrenceNest &nest = plan.nests[number];
  bool hasMet = !countsBytes();
  emitSums(number);
  for (mlir::Operation &op : bodyOf(nest)) {
    auto read = dyn_cast<tgl::ReadOp>(op);
    if (isa<tgl::ReduceOp>(op) || (read && (is_contained(points[number].ahead, read) ||
                                            is_contained(points[number].still, read))))
      continue;
    if (auto write = dyn_cast<tgl::WriteOp>(op)) {
      bool isSent = llvm::any_of(plan.states, [&](const RecurrenceState &state) { return state.next == write.getTensor(); });
      if (isSent && !std::exchange(hasMet, true))
        meetBlock(); // all are through with what other blocks overwrite once they have this value
      emitWrite(number, write);
    } else if (const RecurrenceState *state = read ? plan.stateOf(read.getTensor()) : nullptr) {
      Value *index = e.emitIndex(read.getSubscriptExprs()[state->dim]);
      e.values[read.getResult()] = b.CreateLoad(b.getFloatTy(), elementOf(state - plan.states.begin(), index));
    } else if (int own = read ? plan.ownOf(read.getTensor()) : -1; own >= 0) {
      e.values[read.getResult()] = owns[own];
    } else {
      e.emitOp(&op);
    }
  }
}

/// `carried`: own values, then what was loaded ahead; both become those of the next step.
void DeviceRecurrence::emitStep(Value *step, Value *count, MutableArrayRef<Value *> carried) {
  for (auto [own, value] : zip(owns, carried))
    own = value;
  for (auto [state, where] : zip_equal(states, current))
    where = b.CreateNSWMul(b.CreateAnd(step, i64(1)), i64(state.elements));

  Value *next = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(step, i64(1)), b.CreateNSWSub(count, i64(1)));
  setLoopVar(next, count);
  SmallVector<Value *> loaded;
  for (Point &point : points)
    for (mlir::Operation *read : point.ahead) {
      e.emitOp(read);
      loaded.push_back(e.valueOf(read->getResult(0)));
    }
  setLoopVar(step, count);
  Value **before = carried.begin() + owns.size();
  for (Point &point : points)
    for (mlir::Operation *read : point.ahead)
      e.values[read->getResult(0)] = *before++;

  if (countsBytes()) {
    Value *isOdd = b.CreateTrunc(step, b.getInt1Ty());
    Value *uses = b.CreateAdd(b.CreateSelect(isOdd, phases[0], phases[1]), b.CreateLShr(step, i64(1)));
    parity = b.CreateAnd(b.CreateTrunc(uses, b.getInt32Ty()), b.getInt32(1));
    expectStates();
  }
  bool hasMet = false;
  for (auto [number, nest] : enumerate(plan.nests)) {
    if (nest.copied < 0) {
      emitNest(number);
      hasMet = false;
      continue;
    }
    if (countsBytes()) {
      writeResults();
      waitFor(nest.copied);
    } else if (!std::exchange(hasMet, true)) {
      if (hasCluster())
        b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_arrive_aligned, {});
      writeResults();
      if (hasCluster())
        b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_wait_aligned, {});
      else
        meetBlock();
    }
    current[nest.copied] = b.CreateNSWSub(i64(states[nest.copied].elements), current[nest.copied]);
  }
  writeResults();
  copy(owns, carried.begin());
  copy(loaded, carried.begin() + owns.size());
}

/// Returns how many steps there were.
Value *DeviceRecurrence::emitRow() {
  tgl::ForOp loop = plan.loop;
  Value *low = e.emitIndex(loop.getLowExpr()), *high = e.emitIndex(loop.getHighExpr());
  Value *count = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateNSWSub(high, low), i64(0));
  // Without a step nothing changes, and there is no first step for which to load.
  e.emitIf(b.CreateICmpSGT(count, i64(0)), [&] {
    loadStates();
    for (auto [number, point] : enumerate(points))
      if (plan.nests[number].copied < 0)
        e.values[plan.nests[number].axis()] = point.axis;
    SmallVector<Value *> inits;
    for (unsigned own = 0; own < owns.size(); ++own)
      inits.push_back(loadOwn(own));
    setLoopVar(i64(0), count);
    for (Point &point : points) {
      for (mlir::Operation *read : point.still)
        e.emitOp(read);
      for (mlir::Operation *read : point.ahead) {
        e.emitOp(read);
        inits.push_back(e.valueOf(read->getResult(0)));
      }
    }
    meetAll();
    e.nextLoopStays = true;
    SmallVector<Value *> last =
        e.emitLoop(i64(0), count, i64(1), inits, [&](Value *step, ArrayRef<Value *> carried) {
          SmallVector<Value *> values(carried);
          emitStep(step, count, values);
          return values;
        }, "step");
    storeStates(count);
    copy(ArrayRef(last).take_front(owns.size()), owns.begin());
    for (unsigned own = 0; own < owns.size(); ++own)
      storeOwn(own);
    meetAll(); // the next row's states take the place of these
  });
  return count;
}

void DeviceRecurrence::emit() {
  auto axes = cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation());
  constexpr unsigned mostBlocks = 0x7fffffff;
  thread = e.special(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  Value *block = e.special(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, mostBlocks);
  Value *blocks = e.special(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, mostBlocks);
  rank = b.CreateURem(block, i64(shape.cluster));
  placePoints();
  placeStates();
  loadWeights();
  findInputs();
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, axes.getAxes().size()));
  Value *first = b.CreateUDiv(block, i64(shape.cluster)), *step = b.CreateUDiv(blocks, i64(shape.cluster));
  e.nextLoopStays = true;
  e.emitLoop(first, i64(plan.rows), step, {i64(0), i64(0)}, [&](Value *number, ArrayRef<Value *> carried) {
    copy(carried, phases.begin());
    Value *count = nullptr;
    e.setAxes(axes, all, number, std::nullopt, [&] { count = emitRow(); });
    return SmallVector<Value *>{b.CreateAdd(carried[0], b.CreateLShr(count, i64(1))),
                                b.CreateAdd(carried[1], b.CreateLShr(b.CreateAdd(count, i64(1)), i64(1)))};
  }, "row");
}
