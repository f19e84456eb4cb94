//===- EmitDevice.cpp - A scheduled kernel as device code -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The general strategy on a GPU. Each parallel statement outside of others is a device function whose
// points are numbered. A *thread function* gives a point to a thread. A *block function* gives a point to
// a block: what stands directly in the statement is done by all threads alike, inner parallel statements
// and reductions are dealt out to the threads, writes are done by thread 0; barriers separate the steps.
// Partial results of a reduction are combined in a fixed, pairwise order.
//
//===----------------------------------------------------------------------===//
#include "codegen/EmitDevice.h"

#include "codegen/EmitPlaces.h"
#include "ir/TglUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <optional>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

namespace {

constexpr unsigned blockThreads = 256;
constexpr unsigned globalSpace = 1, sharedSpace = 3;
/// Constant-size temporaries up to this live in a thread's local memory or a block's shared memory.
constexpr int64_t localBytes = 1024;

/// Emits the device functions of one statement.
class DeviceEmitter : public Emitter {
public:
  DeviceEmitter(Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites)
      : Emitter(module, options, sites) {}

  struct Inputs {
    SmallVector<mlir::Value> tensors;           // buffers, in order of arguments
    SmallVector<mlir::Value> scalars;           // kernel's run-time scalars
    SmallVector<mlir::Value> loopVars;          // variables of host loops
    SmallVector<std::string> sizes;             // symbols
    SmallVector<mlir::Operation *> prologue;    // scalar ops to repeat, in order
  };

  /// `outer` axes are numbered, the rest is inside. Returns the function's workspace in bytes a block.
  IndexExpr emitFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                         ArrayRef<unsigned> outer, bool byBlock);

protected:
  void emitOp(mlir::Operation *op) override;
  void emitParallel(tgl::ParallelOp op) override;
  void emitReduce(tgl::ReduceOp op) override;
  void emitSteps(Value *count, function_ref<void(Value *)> body) override;
  void emitTemp(tgl::TempOp op) override;

private:
  void emitPlaced(mlir::Operation *op);
  Function *function = nullptr;
  BasicBlock *entry = nullptr;
  Value *thread = nullptr, *block = nullptr, *blocks = nullptr; // i64
  Value *workspace = nullptr;
  IndexExpr workspaceBytes;
  bool byBlock = false;
  /// Inside a statement that is dealt out: this thread is alone.
  bool alone = false;
  DenseMap<mlir::Operation *, Value *> places;
  SmallVector<tgl::TempOp> inWorkspace;
  GlobalVariable *exchange[2] = {};
  std::optional<PlaceEmitter> lines;

  Value *special(Intrinsic::ID id) {
    return b.CreateZExt(b.CreateIntrinsic(b.getInt32Ty(), id, {}), b.getInt64Ty());
  }
  void barrier() {
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
  }
  void splitAxes(tgl::AxesOp op, SmallVectorImpl<unsigned> &box, SmallVectorImpl<unsigned> &rest);
  Value *extent(tgl::AxesOp op, unsigned axis) {
    Value *difference = b.CreateSub(emitIndex(highOf(op, axis)), emitIndex(lowOf(op, axis)));
    return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
  }
  Value *countOf(tgl::AxesOp op, ArrayRef<unsigned> axes) {
    Value *count = i64(1);
    for (unsigned axis : axes)
      count = b.CreateMul(count, extent(op, axis));
    return count;
  }
  void setAxes(tgl::AxesOp op, ArrayRef<unsigned> axes, Value *number);
  void placeTemporaries(tgl::ParallelOp op);
  Value *exchangeSlot(unsigned which, Value *index, Type *type);
};

} // namespace

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

/// The point with this number in the box of `axes`, the last axis fastest.
void DeviceEmitter::setAxes(tgl::AxesOp op, ArrayRef<unsigned> axes, Value *number) {
  for (unsigned axis : reverse(axes)) {
    Value *size = extent(op, axis);
    Value *digit = number;
    if (axis != axes.front()) {
      digit = b.CreateURem(number, size);
      number = b.CreateUDiv(number, size);
    }
    values[op.getAxes()[axis]] = b.CreateAdd(digit, emitIndex(lowOf(op, axis)));
  }
}

IndexExpr DeviceEmitter::emitFunction(tgl::ParallelOp op, const Twine &name, const Inputs &inputs,
                                      ArrayRef<unsigned> outer, bool byBlockNow) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  byBlock = byBlockNow;
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
  function->addFnAttr("nvvm.maxntid", std::to_string(blockThreads));
  entry = BasicBlock::Create(module.getContext(), "entry", function);
  b.SetInsertPoint(entry);
  lines.emplace(*function);
  b.SetCurrentDebugLocation(lines->locationOf(op.getLoc()));

  unsigned next = 0;
  SmallVector<Buffer *> scoped;
  for (mlir::Value tensor : inputs.tensors) {
    Argument *argument = function->getArg(next);
    function->addParamAttr(next++, Attribute::NoAlias);
    buffers[tensor] = Buffer{argument, cast<tgl::TglTensorType>(tensor.getType())};
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
  workspace = function->getArg(next++);
  for (mlir::Value tensor : inputs.tensors)
    scoped.push_back(&buffers[tensor]);
  addAliasScopes(scoped);

  thread = special(Intrinsic::nvvm_read_ptx_sreg_tid_x);
  block = special(Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  blocks = special(Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  placeTemporaries(op);
  alone = true; // scalars before the points are computed by every thread
  for (mlir::Operation *scalar : inputs.prologue)
    emitOp(scalar);

  alone = !byBlock;
  SmallVector<unsigned> inner;
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis)
    if (!is_contained(outer, axis))
      inner.push_back(axis);
  Value *first = byBlock ? block : b.CreateAdd(b.CreateMul(block, i64(blockThreads)), thread);
  Value *stride = byBlock ? blocks : b.CreateMul(blocks, i64(blockThreads));
  emitLoop(first, countOf(axes, outer), stride, {}, [&](Value *number, ArrayRef<Value *>) {
    setAxes(axes, outer, number);
    emitNest(axes, inner, [&] {
      emitBlock(op.getBody().front());
      if (byBlock)
        barrier(); // temporaries are used again by the next point
    });
    return SmallVector<Value *>();
  });
  b.CreateRetVoid();
  return workspaceBytes;
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
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (!write || alone)
    return Emitter::emitOp(op);
  // All threads may still be reading what is overwritten; afterwards all see what was written.
  barrier();
  emitIf(b.CreateICmpEQ(thread, i64(0)), [&] { Emitter::emitOp(op); });
  barrier();
}

void DeviceEmitter::emitParallel(tgl::ParallelOp op) {
  if (alone)
    return Emitter::emitParallel(op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  barrier(); // earlier writes of all threads are seen, earlier reads are over
  alone = true;
  emitLoop(thread, countOf(axes, box), i64(blockThreads), {}, [&](Value *number, ArrayRef<Value *>) {
    setAxes(axes, box, number);
    emitNest(axes, rest, [&] { emitBlock(op.getBody().front()); });
    return SmallVector<Value *>();
  });
  alone = false;
  barrier();
}

void DeviceEmitter::emitSteps(Value *count, function_ref<void(Value *)> body) {
  if (alone)
    return Emitter::emitSteps(count, body);
  barrier();
  alone = true;
  emitLoop(thread, count, i64(blockThreads), {}, [&](Value *n, ArrayRef<Value *>) {
    body(n);
    return SmallVector<Value *>();
  });
  alone = false;
  barrier();
}

Value *DeviceEmitter::exchangeSlot(unsigned which, Value *index, Type *type) {
  if (!exchange[which]) {
    auto *array = ArrayType::get(b.getInt64Ty(), blockThreads);
    exchange[which] = new GlobalVariable(
        module, array, false, GlobalValue::InternalLinkage, UndefValue::get(array),
        function->getName() + ".exchange" + Twine(which), nullptr, GlobalValue::NotThreadLocal,
        sharedSpace);
    exchange[which]->setAlignment(Align(16));
  }
  return b.CreateInBoundsGEP(b.getInt64Ty(), exchange[which], index);
}

void DeviceEmitter::emitReduce(tgl::ReduceOp op) {
  if (alone)
    return Emitter::emitReduce(op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);

  // Each thread reduces every blockThreads-th point of the box.
  alone = true;
  SmallVector<Value *> partial =
      emitLoop(thread, countOf(axes, box), i64(blockThreads), initialAccumulator(op),
               [&](Value *number, ArrayRef<Value *> carried) {
                 setAxes(axes, box, number);
                 return SmallVector<Value *>(emitSerialReduce(
                     op, rest, Accumulator(carried.begin(), carried.end()),
                     [&](Accumulator inner) { return emitReducePoint(op, std::move(inner)); }));
               });
  alone = false;

  // Halves are added up until one is left.
  auto store = [&](const Accumulator &accumulator) {
    for (auto [which, element] : enumerate(accumulator))
      b.CreateStore(element->getType()->isIntegerTy(1) ? b.CreateZExt(element, b.getInt8Ty()) : element,
                    exchangeSlot(which, thread, element->getType()));
  };
  auto load = [&](Value *index) {
    Accumulator result;
    for (auto [which, element] : enumerate(partial)) {
      Type *type = element->getType();
      Value *slot = exchangeSlot(which, index, type);
      result.push_back(type->isIntegerTy(1)
                           ? b.CreateTrunc(b.CreateLoad(b.getInt8Ty(), slot), type)
                           : b.CreateLoad(type, slot));
    }
    return result;
  };
  barrier();
  store(Accumulator(partial.begin(), partial.end()));
  for (unsigned half = blockThreads / 2; half; half /= 2) {
    barrier();
    emitIf(b.CreateICmpSLT(thread, i64(half)), [&] {
      store(combine(op, load(thread), load(b.CreateAdd(thread, i64(half)))));
    });
  }
  barrier();
  values[op.getResult()] = load(i64(0)).back();
}

/// Places every private temporary of the statement: in the stack frame or shared memory where it is small,
/// else in the block's part of the workspace.
void DeviceEmitter::placeTemporaries(tgl::ParallelOp op) {
  op.getBody().walk([&](tgl::TempOp temp) {
    bool ownedByThread = !byBlock || temp->getParentOfType<tgl::ParallelOp>() != op;
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
      auto *array = ArrayType::get(b.getInt8Ty(), std::max<int64_t>(*constant, 16));
      auto *space = new GlobalVariable(module, array, false, GlobalValue::InternalLinkage,
                                       UndefValue::get(array), function->getName() + "." + temp.getName(),
                                       nullptr, GlobalValue::NotThreadLocal, sharedSpace);
      space->setAlignment(Align(16));
      place = space;
      return;
    }
    place = emitSize(workspaceBytes); // the offset; the address follows when the size of all is known
    if (ownedByThread)
      place = b.CreateAdd(place, b.CreateMul(thread, emitSize(bytes)));
    inWorkspace.push_back(temp);
    workspaceBytes = workspaceBytes + (ownedByThread ? bytes * IndexExpr(blockThreads) : bytes);
  });
  if (inWorkspace.empty())
    return;
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), workspace,
                                    b.CreateMul(block, emitSize(workspaceBytes)));
  for (tgl::TempOp temp : inWorkspace)
    places[temp] = b.CreateInBoundsGEP(b.getInt8Ty(), base, places[temp]);
}

void DeviceEmitter::emitTemp(tgl::TempOp op) {
  if (tgl::isPrivate(op))
    buffers[op.getTensor()] = Buffer{places.lookup(op), op.getTensor().getType()};
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

namespace {

/// Walks the kernel's statements, makes a device function of each parallel one and a step for it.
class PlanBuilder {
public:
  PlanBuilder(tgl::KernelOp kernel, Module &module, const EmitterOptions &options)
      : kernel(kernel), module(module), options(options) {}

  DeviceCode run() {
    for (auto [index, argument] : enumerate(kernel.getBody().getArguments())) {
      if (isa<tgl::TglTensorType>(argument.getType())) {
        PlanBuffer buffer;
        buffer.name = kernel.getArgName(index).str();
        buffer.argument = code.plan.buffers.size();
        addBuffer(argument, buffer);
      } else {
        scalarIndex[argument] = scalarIndex.size();
      }
    }
    kernel.walk([&](tgl::TempOp temp) {
      if (tgl::isPrivate(temp))
        return;
      PlanBuffer buffer;
      buffer.name = temp.getName().str();
      buffer.bytes = Emitter::bytesOf(temp.getTensor().getType(), 256);
      addBuffer(temp.getTensor(), buffer);
    });
    for (mlir::Attribute size : kernel.getSizeAttrs())
      symbols.push_back(cast<tgl::SizeAttr>(size).getName().str());
    code.plan.steps = stepsOf(kernel.getBody().front());
    return std::move(code);
  }

  std::string failure;

private:
  tgl::KernelOp kernel;
  Module &module;
  const EmitterOptions &options;
  DeviceCode code;
  DenseMap<mlir::Value, unsigned> bufferIndex, scalarIndex;
  SmallVector<mlir::Value> loopVars; // of the host loops around the current statement
  std::vector<std::string> symbols;
  unsigned numFunctions = 0;

  void addBuffer(mlir::Value tensor, const PlanBuffer &buffer) {
    bufferIndex[tensor] = code.plan.buffers.size();
    code.plan.buffers.push_back(buffer);
  }

  void fail(mlir::Operation *op, const Twine &why) {
    if (failure.empty()) {
      raw_string_ostream stream(failure);
      stream << op->getLoc() << ": " << why;
    }
  }

  /// An expression over sizes and host loop variables, in the plan's own dims; nothing where it is more.
  std::optional<IndexExpr> onHost(const ValueExpr &expr) {
    bool known = true;
    IndexExpr result = expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol())
        return std::nullopt;
      auto *found = llvm::find(loopVars, expr.operands()[var.position()]);
      known &= found != loopVars.end();
      return IndexExpr::dim(found - loopVars.begin());
    });
    return known ? std::optional(result) : std::nullopt;
  }

  std::vector<PlanStep> stepsOf(mlir::Block &block) {
    std::vector<PlanStep> steps;
    auto append = [&](std::vector<PlanStep> more) {
      std::move(more.begin(), more.end(), std::back_inserter(steps));
    };
    for (mlir::Operation &op : block) {
      if (auto launch = dyn_cast<tgl::LaunchOp>(op))
        append(stepsOf(launch.getBody().front()));
      else if (auto loop = dyn_cast<tgl::ForOp>(op))
        steps.push_back(loopStep(loop));
      else if (auto parallel = dyn_cast<tgl::ParallelOp>(op))
        steps.push_back(launchStep(parallel));
      else if (op.getNumRegions() || isa<tgl::WriteOp>(op))
        fail(&op, op.getName().getStringRef() + " outside of a parallel statement");
      // Temporaries are buffers; scalars are computed anew where they are used.
    }
    return steps;
  }

  PlanStep loopStep(tgl::ForOp op) {
    PlanStep step;
    step.kind = PlanStep::Loop;
    std::optional<IndexExpr> low = onHost(op.getLowExpr()), high = onHost(op.getHighExpr());
    if (!low || !high || !op.getInits().empty()) {
      fail(op, "a host loop with bounds or values from data");
      return step;
    }
    step.low = *low;
    step.high = *high;
    step.reverse = op.getReverse();
    loopVars.push_back(op.getLoopVar());
    step.body = stepsOf(op.getBody().front());
    loopVars.pop_back();
    return step;
  }

  /// All that the statement uses: scalars computed outside are repeated in the function, down to kernel
  /// arguments, loop variables and constants.
  void collect(mlir::Value value, mlir::Region &inside, SetVector<mlir::Value> &leaves,
               SetVector<mlir::Operation *> &prologue) {
    if (inside.isAncestor(value.getParentRegion()))
      return;
    mlir::Operation *definition = value.getDefiningOp();
    if (!definition || isa<tgl::TempOp>(definition)) {
      leaves.insert(value);
      return;
    }
    for (mlir::Value operand : definition->getOperands())
      collect(operand, inside, leaves, prologue);
    if (definition->getNumRegions())
      fail(definition, "a value of a statement with a region is not available on the device");
    prologue.insert(definition);
  }

  PlanStep launchStep(tgl::ParallelOp op) {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    PlanStep step;
    step.threads = blockThreads;
    SetVector<mlir::Value> leaves;
    SetVector<mlir::Operation *> prologue;
    auto visit = [&](mlir::Operation *inner) {
      for (mlir::Value operand : inner->getOperands())
        collect(operand, op.getBody(), leaves, prologue);
    };
    visit(op);
    op.getBody().walk(visit);

    DeviceEmitter::Inputs inputs;
    inputs.sizes.assign(symbols.begin(), symbols.end());
    inputs.prologue.assign(prologue.begin(), prologue.end());
    for (mlir::Value leaf : leaves) {
      if (isa<tgl::TglTensorType>(leaf.getType()))
        inputs.tensors.push_back(leaf);
      else if (scalarIndex.contains(leaf))
        inputs.scalars.push_back(leaf);
      else
        inputs.loopVars.push_back(leaf);
    }
    auto add = [&](PlanArgument::Kind kind, unsigned index, IndexExpr size = 0) {
      PlanArgument argument;
      argument.kind = kind;
      argument.index = index;
      argument.size = size;
      step.arguments.push_back(argument);
    };
    for (mlir::Value tensor : inputs.tensors)
      add(PlanArgument::Buffer, bufferIndex.lookup(tensor));
    for (mlir::Value scalar : inputs.scalars)
      add(PlanArgument::Scalar, scalarIndex.lookup(scalar));
    for (mlir::Value loopVar : inputs.loopVars) {
      auto *found = llvm::find(loopVars, loopVar);
      if (found == loopVars.end())
        fail(op, "a value that is neither an argument nor a host loop's variable");
      add(PlanArgument::Size, 0, IndexExpr::dim(found - loopVars.begin()));
    }
    for (StringRef size : inputs.sizes)
      add(PlanArgument::Size, 0, IndexExpr::symbol(size));
    add(PlanArgument::Errors, 0);
    add(PlanArgument::Workspace, 0);

    // Axes whose extents the host can tell are numbered.
    SmallVector<unsigned> outer;
    step.points = 1;
    for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
      tgl::AxisRange range = getAxisRange(axes, axis);
      std::optional<IndexExpr> low = onHost(range.lo), high = onHost(range.hi);
      if (!low || !high)
        continue;
      outer.push_back(axis);
      step.points = step.points * IndexExpr::max(*high - *low, 0);
    }

    bool hasParallel = false, hasReduce = false;
    op.getBody().walk([&](mlir::Operation *inner) {
      hasParallel |= isa<tgl::ParallelOp, tgl::SortOp>(inner);
      hasReduce |= isa<tgl::ReduceOp>(inner);
    });
    std::string name = ("tegula_" + kernel.getSymName() + "_" + Twine(numFunctions++)).str();
    if (!hasParallel) {
      step.threadFunction = name + "_thread";
      step.workspaceBytes = emit(op, step.threadFunction, inputs, outer, false);
    }
    if (hasParallel || hasReduce) {
      step.blockFunction = name + "_block";
      IndexExpr bytes = emit(op, step.blockFunction, inputs, outer, true);
      step.workspaceBytes = hasParallel ? bytes : IndexExpr::max(step.workspaceBytes, bytes);
    }
    return step;
  }

  IndexExpr emit(tgl::ParallelOp op, const Twine &name, const DeviceEmitter::Inputs &inputs,
                 ArrayRef<unsigned> outer, bool byBlock) {
    DeviceEmitter emitter(module, options, code.sites);
    IndexExpr bytes = emitter.emitFunction(op, name, inputs, outer, byBlock);
    if (failure.empty())
      failure = emitter.error();
    return bytes;
  }
};

} // namespace

Expected<DeviceCode> tegula::emitDevice(tgl::KernelOp kernel, Module &module,
                                        const EmitterOptions &options) {
  PlanBuilder builder(kernel, module, options);
  DeviceCode code = builder.run();
  if (!builder.failure.empty())
    return createStringError(inconvertibleErrorCode(), builder.failure);
  return code;
}
