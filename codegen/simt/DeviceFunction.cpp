//===- DeviceFunction.cpp - Functions of the device, from their arguments to their return -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"

#include "codegen/async/Timeline.h"
#include "codegen/simt/ClusterReduction.h"
#include "codegen/simt/ColumnSplit.h"
#include "codegen/simt/PrivateTemporaries.h"
#include "codegen/simt/RaggedLanes.h"
#include "codegen/simt/Rasterize.h"
#include "codegen/simt/RowCache.h"
#include "codegen/simt/SegmentedCombines.h"
#include "codegen/simt/TransposeTiles.h"
#include "codegen/simt/VectorAdds.h"
#include "codegen/simt/WindowTiles.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned globalSpace = 1;
static constexpr unsigned sharedSpace = 3;

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
    auto given = dyn_cast<mlir::BlockArgument>(tensor);
    if (given && op->getParentOfType<tgl::KernelOp>().getArgName(given.getArgNumber()) ==
                     async::Timeline::tensorName)
      argument->setName(async::Timeline::tensorName); // by which marks find it
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

/// Whether each thread takes points one after the other, in no tile.
bool DeviceEmitter::takesSinglePoints() const {
  return perThread && !windows->isPlanned() && !transposes->isPlanned() && shape.columnSplit == 1;
}

/// The thread's point of a step that all threads of the block take: the last one where it has none.
Value *DeviceEmitter::stepTogether(Value *number, Value *inside, Value *count) {
  number = b.CreateNSWAdd(number, inside);
  isPoint = b.CreateICmpSLT(number, count);
  if (shape.columnSplit > 1)
    writes = b.CreateAnd(b.CreateICmpEQ(columns->slice, i64(0)), isPoint);
  else if (segments->isPlanned())
    writes = isPoint;
  return b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.CreateNSWSub(count, i64(1)));
}

/// Lanes where rows are no whole vectors, and those of sums in memory; `wanted` gets how many
/// vectors there are.
std::optional<LaneChoice>
DeviceEmitter::takeRaggedLanes(tgl::ParallelOp op, ArrayRef<unsigned> outer, DeviceShape &wanted) {
  if (!takesSinglePoints() || !options.vectorBytes)
    return std::nullopt;
  std::optional<LaneChoice> lane;
  if (options.raggedLanes)
    lane = chooseRaggedLanes(op, outer, options.vectorBytes, options.tensorAlignment);
  if (lane) {
    SmallVector<unsigned> others(outer);
    llvm::erase(others, lane->axis);
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    wanted.units =
        *tgl::knownPoints(axes, others) * raggedVectors(*lane, *tgl::knownPoints(axes, lane->axis));
  } else if (addsInVectors(options.target.capability)) {
    lane = chooseAddLanes(op, outer, options.tensorAlignment);
  }
  if (lane)
    wanted.lanes = lane->width;
  return lane;
}

IndexExpr DeviceEmitter::emitFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                      ArrayRef<unsigned> outer, DeviceShape &wanted,
                                      const IndexExpr *behind) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  shape = wanted;
  begin(op, name, inputs, shape.threads);
  if (behind)
    returnUnlessFlagged(*behind);
  rows->plan(op, outer, wanted);
  columns->plan(op, wanted);
  Value *inBlock = readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  Value *block = readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff);
  Value *blocks = readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, 0x7fffffff);
  Value *perBlock = i64(shape.unitsPerBlock());
  thread = shape.team == shape.threads ? inBlock : b.CreateURem(inBlock, i64(shape.team));
  Value *inside = shape.byThread() ? inBlock : b.CreateUDiv(inBlock, i64(shape.team));
  if (shape.columnSplit > 1) {
    inside = b.CreateURem(inBlock, perBlock);
    columns->slice = b.CreateUDiv(inBlock, perBlock);
  }
  if (shape.cluster > 1) {
    function->addFnAttr("nvvm.cluster_dim", std::to_string(shape.cluster));
    rank = b.CreateURem(block, i64(shape.cluster));
    block = b.CreateUDiv(block, i64(shape.cluster));
    blocks = b.CreateUDiv(blocks, i64(shape.cluster));
  }
  unit = b.CreateNSWAdd(b.CreateNSWMul(block, perBlock), inside);
  units = b.CreateNSWMul(blocks, perBlock);
  temporaries->planStates();
  shape.sharedBytes = wanted.sharedBytes; // behind a row
  temporaries->allocate();
  wanted.sharedBytes = shape.sharedBytes;
  if (shape.cluster > 1 && rows->isPlanned())
    clusters->allocate(op);
  perThread = true; // scalars before the points are computed by every thread
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);

  perThread = shape.byThread();
  std::optional<LaneChoice> lane;
  if (perThread)
    lane = chooseLanes(axes);
  if (lane && !is_contained(outer, lane->axis))
    lane.reset();
  if (unsigned most = perThread ? columns->planKept(op) : 0; most && lane && lane->width > most) {
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
    return temporaries->bytesInWorkspace();
  }
  if (perThread)
    windows->plan(op, outer, lane);
  if (windows->isPlanned()) { // vectors of their own
    lane.reset();
    wanted.lanes = 1;
  }
  SmallVector<unsigned> numbered(outer);
  Raster raster;
  if (perThread && !windows->isPlanned() && shape.columnSplit == 1) {
    if (options.rasterizes)
      raster = planRaster(*this, op, outer, lane);
    if (options.transposeTiles)
      transposes->plan(op, numbered, lane, raster);
  }
  outer = numbered;
  if (transposes->isPlanned())
    wanted.lanes = lane->width;
  if (!lane && !raster.repeats)
    lane = takeRaggedLanes(op, outer, wanted);
  Value *count = countOf(axes, outer, lane);
  // A vector at a time: two, a block of threads apart, make a copy of 6.4 GB take 3124 us in place
  // of 3020 on an H200.
  Value *first = unit;
  // Who meet all have the same loop, of their block: what is no point repeats the last.
  if (!lane && takesSinglePoints())
    segments->plan(op, outer);
  bool inStep = shape.columnSplit > 1 || shape.isPartOfWarp() || segments->isPlanned();
  if (inStep) {
    first = b.CreateNSWMul(block, perBlock);
    keepNextLoopRolled = true;
  }
  SmallVector<Value *> turn(shape.cluster > 1 ? 1 : 0, i64(0));
  if (rows->copies()) {
    rows->atNextRow(axes, outer, first, count);
    rows->prefetchFirstRow();
  }
  emitLoop(first, count, units, turn, [&](Value *number, ArrayRef<Value *> carried) {
    rowPhase = carried.empty() ? nullptr : carried.front();
    if (inStep)
      number = stepTogether(number, inside, count);
    rows->atNextRow(axes, outer, b.CreateNSWAdd(number, units), count);
    setAxes(axes, outer, raster.rasterized(b, number, count), lane, [&] {
      rows->beginRow();
      emitNest(axes, inner, [&] {
        transposes->isPlanned() ? transposes->emit(op)
        : windows->isPlanned()  ? windows->emit(op)
                                : checks.reportTogether([&] { emitBlock(op.getBody().front()); });
        if (!perThread && shape.cluster == 1)
          barrier(); // what is shared is used again for the next point
      });
    });
    if (carried.empty())
      return SmallVector<Value *>();
    return SmallVector<Value *>{b.CreateAnd(b.CreateAdd(rowPhase, i64(1)), i64(3))};
  });
  b.CreateRetVoid();
  wanted.rounds = pointTile.points * pointTile.wide;
  return temporaries->bytesInWorkspace();
}

GlobalVariable *DeviceEmitter::shared(Type *type, const Twine &name) {
  auto *space = new GlobalVariable(module, type, false, GlobalValue::InternalLinkage,
                                   UndefValue::get(type), function->getName() + "." + name, nullptr,
                                   GlobalValue::NotThreadLocal, sharedSpace);
  space->setAlignment(Align(16));
  return space;
}

/// The bytes that a launch gives: one object for all functions of the module.
Value *DeviceEmitter::dynamicShared() {
  constexpr StringLiteral name = "tegula_shared_memory";
  if (GlobalVariable *known = module.getNamedGlobal(name))
    return known;
  auto *space = new GlobalVariable(module, ArrayType::get(b.getInt8Ty(), 0), false,
                                   GlobalValue::ExternalLinkage, nullptr, name, nullptr,
                                   GlobalValue::NotThreadLocal, sharedSpace);
  space->setAlignment(Align(128));
  return space;
}
