//===- DeviceEmitter.cpp - One statement as a device function ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceEmitter.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "passes/Nest.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned globalSpace = 1, sharedSpace = 3;
/// Constant-size temporaries up to this live in a thread's local memory or a team's shared memory.
static constexpr int64_t localBytes = 1024;
/// Points of straight code that a thread does at a time, where enough threads are left.
static constexpr unsigned mostStraightRounds = 2;
static constexpr int64_t threadsLeft = 1 << 18;

static EmitterOptions withVectors(EmitterOptions options) {
  options.vectorBytes = options.checked ? 0 : DeviceEmitter::accessBytes; // checks are of single elements
  options.wholeVectors = true;
  return options;
}

DeviceEmitter::DeviceEmitter(Module &module, const EmitterOptions &options,
                             std::vector<ErrorSite> &sites)
    : Emitter(module, withVectors(options), sites) {}

//===----------------------------------------------------------------------===//
// Points and threads
//===----------------------------------------------------------------------===//

bool DeviceEmitter::runsAlongPoints(tgl::ParallelOp op) {
  return prefersOwnAxes(cast<tgl::AxesOp>(op.getOperation()), accessBytes);
}

Value *DeviceEmitter::special(Intrinsic::ID id, unsigned limit) {
  auto *call = b.CreateIntrinsic(b.getInt32Ty(), id, {});
  call->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, limit)));
  return b.CreateZExt(call, b.getInt64Ty(), "", /*IsNonNeg=*/true);
}

void DeviceEmitter::meet() {
  if (!shape.byThread() && shape.team <= warp)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {b.getInt32(-1)});
  else
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
}

/// Axes whose bounds do not depend on the op's own axes form a box; the others are looped over inside.
void DeviceEmitter::splitAxes(tgl::AxesOp op, SmallVectorImpl<unsigned> &box,
                              SmallVectorImpl<unsigned> &rest) {
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
    bool independent = true;
    for (mlir::Value own : op.getAxes())
      independent &= !lowOf(op, axis).uses(own) && !highOf(op, axis).uses(own);
    (independent ? box : rest).push_back(axis);
  }
}

Value *DeviceEmitter::extent(tgl::AxesOp op, unsigned axis) {
  int64_t points = isTiled(op, axis) ? windows.points : 1;
  if (std::optional<int64_t> constant = (highOf(op, axis) - lowOf(op, axis)).asConstant())
    return i64(divideCeil(std::max<int64_t>(0, *constant) + (points > 1 ? windows.slack : 0), points));
  Value *difference = b.CreateSub(emitIndex(highOf(op, axis)), emitIndex(lowOf(op, axis)));
  return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
}

/// Points of a box; of the lane axis, vectors.
Value *DeviceEmitter::countOf(tgl::AxesOp op, ArrayRef<unsigned> axes,
                              const std::optional<LaneChoice> &lane) {
  Value *count = i64(1);
  for (unsigned axis : axes) {
    Value *size = extent(op, axis);
    if (lane && lane->axis == axis)
      size = b.CreateUDiv(size, i64(lane->width)); // exact: vectors are whole
    count = b.CreateMul(count, size);
  }
  return count;
}

/// `body` at the point (the vector of points) with this number in the box of `axes`, the last axis fastest,
/// the lane axis faster than all.
void DeviceEmitter::setAxes(tgl::AxesOp op, ArrayRef<unsigned> given, Value *number,
                            const std::optional<LaneChoice> &lane, function_ref<void()> body) {
  SmallVector<unsigned> axes(given);
  if (lane) {
    llvm::erase(axes, lane->axis);
    axes.push_back(lane->axis);
  }
  // Divisions of 32 bits cost a fraction of those of 64.
  std::optional<int64_t> points = tgl::knownPoints(op, axes);
  bool isShort = points && *points <= std::numeric_limits<int32_t>::max() && axes.size() > 1;
  if (isShort)
    number = b.CreateTrunc(number, b.getInt32Ty(), "", /*IsNUW=*/true, /*IsNSW=*/true);
  Value *base = nullptr;
  for (unsigned axis : reverse(axes)) {
    bool isLane = lane && lane->axis == axis;
    Value *size = extent(op, axis);
    if (isLane)
      size = b.CreateUDiv(size, i64(lane->width));
    Value *digit = number;
    if (isShort)
      size = b.CreateTrunc(size, b.getInt32Ty());
    if (axis != axes.front()) {
      digit = b.CreateURem(number, size);
      number = b.CreateUDiv(number, size);
    }
    if (isShort)
      digit = b.CreateZExt(digit, b.getInt64Ty(), "", /*IsNonNeg=*/true);
    if (isLane)
      digit = b.CreateNSWMul(digit, i64(lane->width));
    if (isTiled(op, axis))
      digit = b.CreateNSWMul(digit, i64(windows.points));
    Value *position = b.CreateNSWAdd(digit, emitIndex(lowOf(op, axis)));
    if (isLane)
      base = position;
    else
      values[op.getAxes()[axis]] = position;
  }
  if (lane)
    withLanes(op.getAxes()[lane->axis], lane->width, base, nullptr, body);
  else
    body();
}

SmallVector<Value *> DeviceEmitter::deal(Value *count, ArrayRef<Value *> inits, Dealt body, unsigned ahead) {
  auto *constant = dyn_cast<ConstantInt>(count);
  int64_t team = shape.team;
  SmallVector<Value *> carried(inits);
  if (!constant || constant->getSExtValue() > mostRounds * team) {
    Value *first = thread;
    if (int64_t step = team * ahead; constant && ahead > 1) {
      Value *whole = i64(constant->getSExtValue() / step * step);
      nextLoopStays = true;
      carried = emitLoop(thread, whole, i64(step), carried, [&](Value *number, ArrayRef<Value *> now) {
        SmallVector<Value *> results(now);
        for (unsigned round = 0; round < ahead; ++round)
          results = body(b.CreateNSWAdd(number, i64(round * team)), nullptr, results);
        return results;
      });
      first = b.CreateNSWAdd(thread, whole);
    }
    return emitLoop(first, count, i64(team), carried, [&](Value *number, ArrayRef<Value *> now) {
      return body(number, nullptr, now);
    });
  }
  int64_t points = constant->getSExtValue();
  for (int64_t first = 0; first < points; first += team) {
    Value *number = b.CreateNSWAdd(thread, i64(first)), *exists = nullptr;
    if (points - first < team) {
      exists = b.CreateICmpULT(number, count);
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, i64(points - 1));
    }
    carried = body(number, exists, carried);
  }
  return carried;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// How many (vectors of) points of straight code a thread does at a time: so many loads are under way at once.
unsigned DeviceEmitter::roundsFor(Value *count) {
  auto *constant = dyn_cast<ConstantInt>(count);
  if (!shape.byThread() || !constant || !square.rows.empty())
    return 1;
  bool isLong = false;
  for (mlir::Operation &op : statement.getBody().front()) {
    if (op.getNumRegions())
      return 1;
    isLong |= isa<mlir::math::MathDialect>(op.getDialect());
  }
  // Short code leaves room for more blocks instead.
  unsigned rounds = isLong ? mostStraightRounds : 1;
  while (rounds > 1 && (constant->getSExtValue() % (int64_t(rounds) * shape.threads) != 0 ||
                        constant->getSExtValue() < int64_t(rounds) * threadsLeft))
    rounds /= 2;
  return rounds;
}

/// The function and what its arguments are.
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
  lines.emplace(*function, options.lineTables);
  b.SetCurrentDebugLocation(lines->locationOf(op.getLoc()));

  tgl::Accesses accesses = tgl::accessesOf(op);
  for (mlir::Value tensor : accesses.writes)
    if (accesses.reads.contains(tensor))
      exchanged.insert(tensor);
  unsigned next = 0;
  SmallVector<Buffer *> scoped;
  for (mlir::Value tensor : inputs.tensors) {
    Argument *argument = function->getArg(next);
    // What an earlier launch of the call may still be writing is read after the wait: without noalias, which
    // would let loads pass it.
    bool isInput = !tensor.getDefiningOp() &&
                   op->getParentOfType<tgl::KernelOp>().getArgRole(
                       cast<mlir::BlockArgument>(tensor).getArgNumber()) == "in";
    bool isReady = !options.dependentLaunches || isInput;
    // Nor may loads pass the barriers behind which a team's threads see each other's values: LLVM takes a
    // `noalias` tensor for one that barriers do not touch.
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
  errorRecord = function->getArg(next++);
  function->addParamAttr(next, Attribute::getWithAlignment(module.getContext(), Align(temporaryAlignment)));
  workspace = function->getArg(next++);
  for (mlir::Value tensor : inputs.tensors)
    scoped.push_back(&buffers[tensor]);
  addAliasScopes(scoped);
  if (options.dependentLaunches) {
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_griddepcontrol_launch_dependents, {});
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_griddepcontrol_wait, {});
  }
}

void DeviceEmitter::emitTileFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                     unsigned threads, function_ref<void(Value *workspace)> body) {
  begin(op, name, inputs, threads);
  alone = true; // as far as operations of the statement go
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
  alone = true;
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);
  body();
  b.CreateRetVoid();
}

IndexExpr DeviceEmitter::emitFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                      ArrayRef<unsigned> outer, DeviceShape &wanted) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  shape = wanted;
  begin(op, name, inputs, shape.threads);
  planRow(op, wanted);
  planSharers(op, wanted);
  Value *inBlock = special(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  Value *block = special(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff);
  Value *blocks = special(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, 0x7fffffff);
  Value *perBlock = i64(shape.unitsPerBlock());
  thread = shape.team == shape.threads ? inBlock : b.CreateURem(inBlock, i64(shape.team));
  Value *inside = shape.byThread() ? inBlock : b.CreateUDiv(inBlock, i64(shape.team));
  if (shape.sharers > 1) {
    inside = b.CreateURem(inBlock, perBlock);
    sharer = b.CreateUDiv(inBlock, perBlock);
  }
  if (shape.cluster > 1) {
    function->addFnAttr("nvvm.cluster_dim", std::to_string(shape.cluster));
    rank = b.CreateURem(block, i64(shape.cluster));
    block = b.CreateUDiv(block, i64(shape.cluster));
    blocks = b.CreateUDiv(blocks, i64(shape.cluster));
  }
  unit = b.CreateNSWAdd(b.CreateNSWMul(block, perBlock), inside);
  units = b.CreateNSWMul(blocks, perBlock);
  placeTemporaries();
  alone = true; // scalars before the points are computed by every thread
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);

  alone = shape.byThread();
  std::optional<LaneChoice> lane;
  if (alone)
    lane = chooseLanes(axes);
  if (lane && !is_contained(outer, lane->axis))
    lane.reset();
  if (unsigned most = alone ? planColumn(op) : 0; most && lane && lane->width > most) {
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
  if (alone)
    planWindows(op, outer, lane);
  if (!runs.empty()) { // vectors of their own
    lane.reset();
    wanted.lanes = 1;
  }
  SmallVector<unsigned> numbered(outer);
  if (alone && windows.points == 1 && runs.empty() && shape.sharers == 1) {
    if (options.ordersPoints)
      planOrder(op, outer, lane);
    if (options.squares)
      planSquares(op, numbered, lane);
  }
  outer = numbered;
  if (!square.rows.empty())
    wanted.lanes = lane->width;
  Value *count = countOf(axes, outer, lane);
  wanted.rounds = roundsFor(count);
  // A thread's points are a block of threads apart, so that threads side by side touch memory side by side.
  int64_t apart = shape.threads;
  Value *first = unit, *step = units;
  if (wanted.rounds > 1) {
    first = b.CreateNSWAdd(b.CreateNSWMul(block, i64(apart * wanted.rounds)), inBlock);
    step = b.CreateNSWMul(units, i64(wanted.rounds));
  }
  // Who meet all have the same loop, of their block: what is no point repeats the last.
  bool inStep = shape.sharers > 1 || shape.isPartOfWarp();
  if (inStep) {
    first = b.CreateNSWMul(block, perBlock);
    nextLoopStays = true;
  }
  SmallVector<Value *> parity(shape.cluster > 1 ? 1 : 0, i64(0));
  emitLoop(first, count, step, parity, [&](Value *number, ArrayRef<Value *> carried) {
    rowParity = carried.empty() ? nullptr : carried.front();
    if (row.vectors && options.prefetchRows) {
      Value *next = b.CreateNSWAdd(number, step);
      prefetchRow(op, outer, next, b.CreateICmpSLT(next, count));
    }
    if (inStep) {
      number = b.CreateNSWAdd(number, inside);
      isPoint = b.CreateICmpSLT(number, count);
      if (shape.sharers > 1)
        writes = b.CreateAnd(b.CreateICmpEQ(sharer, i64(0)), isPoint);
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.CreateNSWSub(count, i64(1)));
    }
    for (unsigned round = 0; round < wanted.rounds; ++round)
      setAxes(axes, outer, inOrder(b.CreateNSWAdd(number, i64(round * apart)), count), lane, [&] {
        emitNest(axes, inner, [&] {
          !square.rows.empty()  ? emitSquare(op)
          : windows.points > 1 ? emitWindows(op)
                               : emitBlock(op.getBody().front());
          if (!alone && shape.cluster == 1)
            meet(); // what is shared is used again for the next point
        });
      });
    return carried.empty() ? SmallVector<Value *>() : SmallVector<Value *>{b.CreateXor(rowParity, i64(1))};
  });
  b.CreateRetVoid();
  if (windows.points > 1)
    wanted.rounds = windows.points;
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
  if (DebugLoc own = lines->locationOf(op->getLoc()))
    b.SetCurrentDebugLocation(own);
  emitPlaced(op);
  b.SetCurrentDebugLocation(around);
}

void DeviceEmitter::emitPlaced(mlir::Operation *op) {
  if (emitKept(op) || emitInRun(op) || emitInSquare(op) || emitQuotient(op))
    return;
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (write && writes)
    return emitIf(writes, [&] { Emitter::emitOp(op); });
  if (!write || alone)
    return Emitter::emitOp(op);
  // All threads may still be reading what is overwritten; afterwards all see what was written.
  bool seen = exchanges(op);
  if (seen)
    meet();
  Value *isFirst = b.CreateICmpEQ(thread, i64(0));
  if (isPoint)
    isFirst = b.CreateAnd(isFirst, isPoint);
  if (shape.cluster > 1)
    isFirst = b.CreateAnd(isFirst, b.CreateICmpEQ(rank, i64(0)));
  emitIf(isFirst, [&] { Emitter::emitOp(op); });
  if (seen)
    meet();
}

bool DeviceEmitter::isLarge(tgl::TempOp temp) {
  std::optional<int64_t> bytes = bytesOf(temp.getTensor().getType(), 16).asConstant();
  return !bytes || *bytes > localBytes;
}

bool DeviceEmitter::takesInTurn(tgl::ParallelOp nest) {
  // Terms of a row for each point from where on it is worth while that threads come together for it.
  constexpr int64_t termsForPoint = 32, shortRow = 256;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(nest.getOperation()));
  int64_t terms = 0, inside = 0;
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
    auto reduce = dyn_cast<tgl::ReduceOp>(op);
    if (reduce && own && runsAlongRows(reduce))
      terms = std::max(terms, *own);
  });
  if (!isPlain || !points || *points <= 0)
    return false;
  // A thread alone would walk through a part of memory of its own for each point, far from its neighbours'.
  if (hasLarge)
    return inside >= shortRow;
  return !hasTemps && terms >= shortRow && *points <= terms / termsForPoint;
}

void DeviceEmitter::emitParallel(tgl::ParallelOp op) {
  if (alone && straight.contains(op)) {
    if (shape.sharers > 1)
      return emitSharedParallel(op);
    auto nest = cast<tgl::AxesOp>(op.getOperation());
    SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
    for (int64_t point = 0, points = *tgl::knownPoints(nest); point < points; ++point)
      setAxes(nest, all, i64(point), std::nullopt, [&] { emitBlock(op.getBody().front()); });
    return;
  }
  if (alone)
    return Emitter::emitParallel(op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  if (takesInTurn(op)) {
    emitLoop(i64(0), i64(*tgl::knownPoints(axes)), i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
      setAxes(axes, box, number, std::nullopt, [&] { emitBlock(op.getBody().front()); });
      return SmallVector<Value *>();
    });
    return;
  }
  bool seen = exchanges(op);
  if (seen)
    meet(); // earlier writes of all threads are seen, earlier reads are over
  alone = true;
  std::optional<LaneChoice> lane = chooseLanes(axes);
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
    dealRow({axes}, lane, {}, each);
  else if (isPoint)
    emitIf(isPoint, [&] { deal(countOf(axes, box, lane), {}, each); });
  else
    deal(countOf(axes, box, lane), {}, each);
  alone = false;
  if (seen)
    meet();
}

void DeviceEmitter::emitSteps(Value *count, function_ref<void(Value *)> body) {
  if (alone)
    return Emitter::emitSteps(count, body);
  meet();
  alone = true;
  emitLoop(thread, count, i64(shape.team), {}, [&](Value *n, ArrayRef<Value *>) {
    body(n);
    return SmallVector<Value *>();
  });
  alone = false;
  meet();
}

//===----------------------------------------------------------------------===//
// Temporaries
//===----------------------------------------------------------------------===//

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
  auto *space = new GlobalVariable(module, ArrayType::get(b.getInt8Ty(), 0), false, GlobalValue::ExternalLinkage,
                                   nullptr, name, nullptr, GlobalValue::NotThreadLocal, sharedSpace);
  space->setAlignment(Align(128));
  return space;
}

/// Places every private temporary of the statement: in the stack frame or shared memory where it is small,
/// else in the team's part of the workspace.
void DeviceEmitter::placeTemporaries() {
  int64_t teams = shape.unitsPerBlock();
  Value *inBlock = b.CreateURem(unit, i64(teams));
  statement.getBody().walk([&](tgl::TempOp temp) {
    bool ownedByThread = shape.byThread();
    for (auto around = temp->getParentOfType<tgl::ParallelOp>(); around != statement;
         around = around->getParentOfType<tgl::ParallelOp>())
      ownedByThread |= !takesInTurn(around);
    IndexExpr bytes = bytesOf(temp.getTensor().getType(), 16);
    std::optional<int64_t> constant = bytes.asConstant();
    Value *&place = places[temp];
    if (constant && *constant <= localBytes && ownedByThread) {
      AllocaInst *space = b.CreateAlloca(b.getInt8Ty(), i64(*constant), temp.getName());
      space->setAlignment(Align(16));
      place = space;
      return;
    }
    if (constant && *constant <= localBytes) {
      int64_t each = std::max<int64_t>(*constant, 16);
      GlobalVariable *space = shared(ArrayType::get(b.getInt8Ty(), each * teams), temp.getName());
      place = b.CreateInBoundsGEP(b.getInt8Ty(), space, b.CreateMul(inBlock, i64(each)));
      return;
    }
    place = emitSize(workspaceBytes); // the offset; the address follows when the size of all is known
    // A thread function's units are threads: each has a part of its own already.
    bool isShared = ownedByThread && !shape.byThread();
    if (isShared)
      place = b.CreateAdd(place, b.CreateMul(thread, emitSize(bytes)));
    inWorkspace.push_back(temp);
    workspaceBytes = workspaceBytes + (isShared ? bytes * IndexExpr(shape.team) : bytes);
  });
  if (inWorkspace.empty())
    return;
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), workspace, b.CreateMul(unit, emitSize(workspaceBytes)));
  for (tgl::TempOp temp : inWorkspace)
    places[temp] = b.CreateInBoundsGEP(b.getInt8Ty(), base, places[temp]);
  workspaceBytes = workspaceBytes * IndexExpr(teams);
}

void DeviceEmitter::emitTemp(tgl::TempOp op) {
  if (tgl::isPrivate(op))
    buffers[op.getTensor()] = Buffer{places.lookup(op), op.getTensor().getType()};
}
