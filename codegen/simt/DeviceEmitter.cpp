//===- DeviceEmitter.cpp - Emits a statement as a SIMT device function ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned globalSpace = 1;
static EmitterOptions withVectors(EmitterOptions options) {
  options.vectorBytes =
      options.checked ? 0 : DeviceEmitter::accessBytes; // checks are of single elements
  options.wholeVectors = true;
  options.atomicScope = "device";
  return options;
}

DeviceEmitter::DeviceEmitter(Module &module, const EmitterOptions &options,
                             std::vector<ErrorSite> &sites)
    : Emitter(module, withVectors(options), sites) {}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// The function and what its arguments are.
/// Whether steps of a loop in the statement may write an element that another write, or another
/// step, has written: the order of both counts.
static bool isWrittenAgain(mlir::Value tensor, tgl::ParallelOp statement) {
  bool isInLoop = false, isAgain = false;
  unsigned writes = 0;
  for (mlir::Operation *user : tensor.getUsers()) {
    auto write = dyn_cast<tgl::WriteOp>(user);
    if (!write || !statement->isAncestor(write))
      continue;
    ++writes;
    for (auto loop = write->getParentOfType<tgl::ForOp>(); loop && statement->isAncestor(loop);
         loop = loop->getParentOfType<tgl::ForOp>()) {
      isInLoop = true;
      isAgain |= none_of(write.getSubscriptExprs(), [&](const ValueExpr &subscript) {
        return subscript.asValue() == loop.getLoopVar();
      });
    }
  }
  return isInLoop && (isAgain || writes > 1);
}

void DeviceEmitter::begin(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                          unsigned threads) {
  statement = op;
  Type *global = PointerType::get(module.getContext(), globalSpace);
  SmallVector<Type *> types;
  types.append(inputs.tensors.size(), global);
  for (mlir::Value scalar : inputs.scalars)
    types.push_back(scalar.getType().isInteger(1) ? b.getInt8Ty() : typeOf(scalar.getType()));
  types.append(inputs.loopVars.size() + inputs.sizes.size(), b.getInt64Ty());
  types.append(2, global); // error record, workspace
  function = Function::Create(FunctionType::get(b.getVoidTy(), types, false),
                              Function::ExternalLinkage, name, module);
  function->setCallingConv(CallingConv::PTX_Kernel);
  function->addFnAttr(Attribute::NoUnwind);
  function->addFnAttr("nvvm.maxntid", std::to_string(threads));
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", function));
  debugLocations.emplace(*function, options.lineTables);
  b.SetCurrentDebugLocation(debugLocations->locationOf(op.getLoc()));

  tgl::Accesses accesses = tgl::accessesOf(op);
  for (mlir::Value tensor : accesses.writes)
    if (accesses.reads.contains(tensor) || isWrittenAgain(tensor, op))
      exchanged.insert(tensor);
  unsigned next = 0;
  SmallVector<Buffer *> scoped;
  for (mlir::Value tensor : inputs.tensors) {
    Argument *argument = function->getArg(next);
    // What an earlier launch of the call may still be writing is read after the wait: without
    // noalias, which would let loads pass it.
    bool isInput =
        !tensor.getDefiningOp() && op->getParentOfType<tgl::KernelOp>().getArgRole(
                                       cast<mlir::BlockArgument>(tensor).getArgNumber()) == "in";
    bool isReady = !options.dependentLaunches || isInput;
    // Nor may loads pass the barriers behind which a team's threads see each other's values: LLVM
    // takes a `noalias` tensor for one that barriers do not touch.
    bool isShared = !shape.byThread() && exchanged.contains(tensor);
    if (isReady && !isShared)
      function->addParamAttr(next, Attribute::NoAlias);
    // The runtime allocates temporaries.
    unsigned alignment = tensor.getDefiningOp() ? temporaryAlignment : options.tensorAlignment;
    if (alignment)
      function->addParamAttr(next,
                             Attribute::getWithAlignment(module.getContext(), Align(alignment)));
    ++next;
    Buffer buffer{argument, cast<tgl::TglTensorType>(tensor.getType())};
    buffer.isConstant = isReady && !accesses.writes.contains(tensor);
    buffers[tensor] = buffer;
  }
  for (mlir::Value scalar : inputs.scalars) {
    Value *argument = function->getArg(next++);
    values[scalar] =
        scalar.getType().isInteger(1) ? b.CreateICmpNE(argument, b.getInt8(0)) : argument;
  }
  for (mlir::Value loopVar : inputs.loopVars)
    values[loopVar] = function->getArg(next++);
  for (StringRef size : inputs.sizes)
    sizes[size] = function->getArg(next++);
  checks.record = function->getArg(next++);
  function->addParamAttr(
      next, Attribute::getWithAlignment(module.getContext(), Align(temporaryAlignment)));
  workspace = function->getArg(next++);
  for (mlir::Value tensor : inputs.tensors)
    scoped.push_back(&buffers[tensor]);
  addAliasScopes(scoped);
  if (options.dependentLaunches)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_griddepcontrol_launch_dependents, {});
  if (options.dependentLaunches || usesDependentLaunch)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_griddepcontrol_wait, {});
}

void DeviceEmitter::emitTileFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                     unsigned threads, function_ref<void(Value *workspace)> body) {
  begin(op, name, inputs, threads);
  perThread = true; // as far as operations of the statement go
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);
  body(workspace);
  b.CreateRetVoid();
}

void DeviceEmitter::emitTeamFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                     const DeviceShape &wanted, function_ref<void()> body) {
  shape = wanted;
  begin(op, name, inputs, shape.threads);
  if (shape.cluster > 1)
    function->addFnAttr("nvvm.cluster_dim", std::to_string(shape.cluster));
  perThread = true;
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);
  body();
  b.CreateRetVoid();
}

/// What follows is for launches of which the workspace's first word is not 0.
void DeviceEmitter::returnUnlessFlagged(const IndexExpr &behind) {
  Value *isDone =
      b.CreateICmpEQ(b.CreateAlignedLoad(b.getInt32Ty(), workspace, Align(4)), b.getInt32(0));
  BasicBlock *end = BasicBlock::Create(module.getContext(), "done", function),
             *again = BasicBlock::Create(module.getContext(), "again", function);
  b.CreateCondBr(isDone, end, again);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
  b.SetInsertPoint(again);
  workspace = b.CreateInBoundsGEP(b.getInt8Ty(), workspace, emitSize(behind));
}

IndexExpr DeviceEmitter::emitFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                      ArrayRef<unsigned> outer, DeviceShape &wanted,
                                      const IndexExpr *behind) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  shape = wanted;
  begin(op, name, inputs, shape.threads);
  if (behind)
    returnUnlessFlagged(*behind);
  planRow(op, outer, wanted);
  planColumnSplit(op, wanted);
  Value *inBlock = readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  Value *block = readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff);
  Value *blocks = readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, 0x7fffffff);
  Value *perBlock = i64(shape.unitsPerBlock());
  thread = shape.team == shape.threads ? inBlock : b.CreateURem(inBlock, i64(shape.team));
  Value *inside = shape.byThread() ? inBlock : b.CreateUDiv(inBlock, i64(shape.team));
  if (shape.columnSplit > 1) {
    inside = b.CreateURem(inBlock, perBlock);
    columnSlice = b.CreateUDiv(inBlock, perBlock);
  }
  if (shape.cluster > 1) {
    function->addFnAttr("nvvm.cluster_dim", std::to_string(shape.cluster));
    rank = b.CreateURem(block, i64(shape.cluster));
    block = b.CreateUDiv(block, i64(shape.cluster));
    blocks = b.CreateUDiv(blocks, i64(shape.cluster));
  }
  unit = b.CreateNSWAdd(b.CreateNSWMul(block, perBlock), inside);
  units = b.CreateNSWMul(blocks, perBlock);
  planStates();
  shape.sharedBytes = wanted.sharedBytes; // behind a row
  allocateTemporaries();
  wanted.sharedBytes = shape.sharedBytes;
  allocateClusterBarriers(op);
  perThread = true; // scalars before the points are computed by every thread
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);

  perThread = shape.byThread();
  std::optional<LaneChoice> lane;
  if (perThread)
    lane = chooseLanes(axes);
  if (lane && !is_contained(outer, lane->axis))
    lane.reset();
  if (unsigned most = perThread ? planColumn(op) : 0; most && lane && lane->width > most) {
    if (most > 1)
      lane->width = most;
    else
      lane.reset();
  }
  wanted.lanes = lane ? lane->width : 1;
  SmallVector<unsigned> inner;
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis)
    if (!is_contained(outer, axis))
      inner.push_back(axis);
  if (isEmpty(op)) {
    b.CreateRetVoid();
    return workspaceBytes;
  }
  if (perThread)
    planWindows(op, outer, lane);
  if (!windowRows.empty() || !windowReads.empty()) { // vectors of their own
    lane.reset();
    wanted.lanes = 1;
  }
  SmallVector<unsigned> numbered(outer);
  if (perThread && windowReads.empty() && windowRows.empty() && shape.columnSplit == 1) {
    if (options.rasterizes)
      planRaster(op, outer, lane);
    if (options.transposeTiles)
      planTransposeTiles(op, numbered, lane);
  }
  outer = numbered;
  if (!transposeTile.rows.empty())
    wanted.lanes = lane->width;
  Value *count = countOf(axes, outer, lane);
  // A vector at a time: two, a block of threads apart, make a copy of 6.4 GB take 3124 us in place
  // of 3020 on an H200.
  Value *first = unit;
  // Who meet all have the same loop, of their block: what is no point repeats the last.
  bool inStep = shape.columnSplit > 1 || shape.isPartOfWarp();
  if (inStep) {
    first = b.CreateNSWMul(block, perBlock);
    keepNextLoopRolled = true;
  }
  SmallVector<Value *> turn(shape.cluster > 1 ? 1 : 0, i64(0));
  if (row.copies) {
    atNextRow(axes, outer, first, count);
    prefetchFirstRow();
  }
  emitLoop(first, count, units, turn, [&](Value *number, ArrayRef<Value *> carried) {
    rowPhase = carried.empty() ? nullptr : carried.front();
    if (inStep) {
      number = b.CreateNSWAdd(number, inside);
      isPoint = b.CreateICmpSLT(number, count);
      if (shape.columnSplit > 1)
        writes = b.CreateAnd(b.CreateICmpEQ(columnSlice, i64(0)), isPoint);
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.CreateNSWSub(count, i64(1)));
    }
    atNextRow(axes, outer, b.CreateNSWAdd(number, units), count);
    setAxes(axes, outer, rasterized(number, count), lane, [&] {
      row.shift = emitShift();
      emitNest(axes, inner, [&] {
        !transposeTile.rows.empty() ? emitTransposeTile(op)
        : !windowRows.empty()       ? emitWindowRowTile(op)
        : !windowReads.empty()      ? emitWindows(op)
                                    : emitBlock(op.getBody().front());
        if (!perThread && shape.cluster == 1)
          barrier(); // what is shared is used again for the next point
      });
    });
    if (carried.empty())
      return SmallVector<Value *>();
    return SmallVector<Value *>{b.CreateAnd(b.CreateAdd(rowPhase, i64(1)), i64(3))};
  });
  b.CreateRetVoid();
  wanted.rounds = windows.points * windows.wide;
  return workspaceBytes;
}

/// Whether threads of a team see each other's values of a tensor in this op.
bool DeviceEmitter::exchanges(mlir::Operation *op) {
  if (exchanged.empty())
    return false;
  tgl::Accesses accesses = tgl::accessesOf(op);
  auto is = [&](mlir::Value tensor) { return exchanged.contains(tensor); };
  return any_of(accesses.reads, is) || any_of(accesses.writes, is);
}

void DeviceEmitter::emitOp(mlir::Operation *op) {
  // What comes after the op in the statement around it is that statement's again.
  DebugLoc around = b.getCurrentDebugLocation();
  if (DebugLoc own = debugLocations->locationOf(op->getLoc()))
    b.SetCurrentDebugLocation(own);
  emitPlaced(op);
  b.SetCurrentDebugLocation(around);
}

void DeviceEmitter::emitPlaced(mlir::Operation *op) {
  if (emitOwnState(op) || emitKept(op) || emitInWindowRow(op) || emitInWindow(op) ||
      emitInTransposeTile(op) || emitFastDivision(op))
    return;
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (write && writes)
    return emitIf(writes, [&] { Emitter::emitOp(op); });
  if (!write || perThread)
    return Emitter::emitOp(op);
  // All threads may still be reading what is overwritten; afterwards all see what was written.
  bool seen = exchanges(op);
  if (seen)
    barrier();
  Value *isFirst = b.CreateICmpEQ(thread, i64(0));
  if (isPoint)
    isFirst = b.CreateAnd(isFirst, isPoint);
  if (shape.cluster > 1)
    isFirst = b.CreateAnd(isFirst, b.CreateICmpEQ(rank, i64(0)));
  emitIf(isFirst, [&] { Emitter::emitOp(op); });
  if (seen)
    barrier();
}

bool DeviceEmitter::runsSerially(tgl::ParallelOp nest) {
  // Terms of a row for each point from where on it is worth while that threads come together for
  // it.
  constexpr int64_t termsForPoint = 32, shortRow = 256;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(nest.getOperation()));
  int64_t terms = 0, inside = 0, nested = 0;
  bool isPlain = true, hasTemps = false, hasLarge = false;
  for (tgl::AxisRange &range : tgl::getAxisRanges(cast<tgl::AxesOp>(nest.getOperation())))
    isPlain &= range.lo.operands().empty() && range.hi.operands().empty();
  nest.getBody().walk([&](mlir::Operation *op) {
    isPlain &= !isa<tgl::ForOp, tgl::TilesOp, tgl::SortOp>(op);
    if (auto temp = dyn_cast<tgl::TempOp>(op)) {
      hasTemps = true;
      hasLarge |= isLarge(temp);
    }
    if (op->getParentOp() != nest || !isa<tgl::ReduceOp, tgl::ParallelOp>(op))
      return;
    std::optional<int64_t> own = tgl::knownPoints(cast<tgl::AxesOp>(op));
    inside = std::max(inside, own.value_or(0));
    if (isa<tgl::ParallelOp>(op))
      nested = std::max(nested, own.value_or(0));
    auto reduce = dyn_cast<tgl::ReduceOp>(op);
    if (reduce && own && runsAlongRows(reduce))
      terms = std::max(terms, *own);
  });
  if (!isPlain || !points || *points <= 0)
    return false;
  // A thread alone would walk through a part of memory of its own for each point, far from its
  // neighbours'.
  if (hasLarge)
    return inside >= shortRow;
  // Of nests inside all threads take the points, where the nest around has too few for them.
  if (!hasTemps && nested >= shortRow && *points < nested)
    return true;
  return !hasTemps && terms >= shortRow && *points <= terms / termsForPoint;
}

void DeviceEmitter::emitParallel(tgl::ParallelOp op) {
  if (perThread && unrolled.contains(op)) {
    if (shape.columnSplit > 1)
      return emitSplitParallel(op);
    auto nest = cast<tgl::AxesOp>(op.getOperation());
    SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
    for (int64_t point = 0, points = *tgl::knownPoints(nest); point < points; ++point)
      setAxes(nest, all, i64(point), std::nullopt, [&] { emitBlock(op.getBody().front()); });
    return;
  }
  if (perThread)
    return Emitter::emitParallel(op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  if (runsSerially(op)) {
    emitLoop(i64(0), i64(*tgl::knownPoints(axes)), i64(1), {},
             [&](Value *number, ArrayRef<Value *>) {
               setAxes(axes, box, number, std::nullopt, [&] { emitBlock(op.getBody().front()); });
               return SmallVector<Value *>();
             });
    return;
  }
  bool seen = exchanges(op);
  if (seen)
    barrier(); // earlier writes of all threads are seen, earlier reads are over
  perThread = true;
  std::optional<LaneChoice> lane = laneOf(axes);
  if (lane && !is_contained(box, lane->axis))
    lane.reset();
  auto each = [&](Value *number, Value *exists, ArrayRef<Value *>) {
    auto point = [&] {
      setAxes(axes, box, number, lane,
              [&] { emitNest(axes, rest, [&] { emitBlock(op.getBody().front()); }); });
    };
    if (exists)
      emitIf(exists, point);
    else
      point();
    return SmallVector<Value *>();
  };
  if (row.nests.contains(op))
    distributeRow({axes}, lane, {}, each);
  else if (isPoint)
    emitIf(isPoint, [&] { distribute(countOf(axes, box, lane), {}, each); });
  else
    distribute(countOf(axes, box, lane), {}, each);
  perThread = false;
  if (seen)
    barrier();
}

void DeviceEmitter::emitSteps(Value *count, function_ref<void(Value *)> body) {
  if (perThread)
    return Emitter::emitSteps(count, body);
  barrier();
  perThread = true;
  emitLoop(thread, count, i64(shape.team), {}, [&](Value *n, ArrayRef<Value *>) {
    body(n);
    return SmallVector<Value *>();
  });
  perThread = false;
  barrier();
}
