//===- EmitHost.cpp - A scheduled kernel as host code -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel is one function that runs statements in order. A parallel statement outside of others
// is outlined: its points are numbered, and the runtime calls the outlined function on ranges of
// numbers.
//
//===----------------------------------------------------------------------===//
#include "codegen/EmitHost.h"

#include "codegen/Contraction.h"
#include "codegen/HostAbi.h"
#include "ir/DTypes.h"
#include "ir/TglUtils.h"
#include "llvm/ADT/SetVector.h"
#include <cstddef>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

namespace {

/// Points of the vectorised axis that one number stands for: at most, long enough to amortise the outlined
/// call; at least, so that neighbours do not share cache lines and each walks along a stretch of memory.
constexpr int64_t mostLaneBlock = 4096, leastLaneBlock = 128;
/// Parts of a reduction over the whole of a kernel, and their length in points. Both follow from sizes
/// alone: results must not depend on the number of threads.
constexpr int64_t mostParts = 256, leastPartPoints = 32768;
/// Constant-size temporaries up to this live on the stack.
constexpr int64_t stackBytes = 16 * 1024;
/// Temporaries begin and end on cache lines, so that neighbours do not share one.
constexpr int64_t cacheLineBytes = 64;

class HostEmitter : public Emitter {
public:
  HostEmitter(Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites)
      : Emitter(module, options, sites) {
    if (options.checked)
      this->options.vectorBytes = 0; // one element at a time
  }

  HostCode run(tgl::KernelOp kernel) {
    HostCode code;
    code.function = ("tegula_" + kernel.getSymName()).str();
    Type *pointer = b.getPtrTy();
    auto *type = FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, pointer}, false);
    function = Function::Create(type, Function::ExternalLinkage, code.function, module);
    begin(function);
    hostRun = function->getArg(3);
    errorRecord = hostRun; // the record is its first member

    SmallVector<Buffer *> all;
    unsigned numBuffers = 0, numScalars = 0;
    auto nextPointer = [&](const Twine &name) {
      Value *slot = b.CreateConstInBoundsGEP1_64(pointer, function->getArg(0), numBuffers++);
      return b.CreateLoad(pointer, slot, name);
    };
    auto addBuffer = [&](mlir::Value tensor, const Twine &name) {
      Buffer buffer;
      buffer.pointer = nextPointer(name);
      buffer.type = cast<tgl::TglTensorType>(tensor.getType());
      buffers[tensor] = buffer;
    };
    for (auto [index, attribute] : enumerate(kernel.getSizeAttrs())) {
      StringRef name = cast<tgl::SizeAttr>(attribute).getName();
      Value *slot = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), function->getArg(1), index);
      sizes[name] = b.CreateLoad(b.getInt64Ty(), slot, name);
    }
    for (auto [index, argument] : enumerate(kernel.getBody().getArguments())) {
      if (isa<tgl::TglTensorType>(argument.getType())) {
        addBuffer(argument, kernel.getArgName(index));
        continue;
      }
      Value *slot = b.CreateConstInBoundsGEP1_64(pointer, function->getArg(2), numScalars++);
      Type *type = typeOf(argument.getType());
      Type *stored = type->isIntegerTy(1) ? b.getInt8Ty() : type;
      Value *value = b.CreateLoad(stored, b.CreateLoad(pointer, slot), kernel.getArgName(index));
      values[argument] = type == stored ? value : b.CreateICmpNE(value, b.getInt8(0));
    }
    kernel.walk([&](tgl::TempOp temp) {
      if (isOutlined(temp))
        return;
      addBuffer(temp.getTensor(), temp.getName());
      code.temporaries.push_back({temp.getName().str(), temp.getTensor().getType()});
    });
    if (options.checked) {
      clock = clockOf(hostRun);
      auto addStamps = [&](mlir::Value tensor, StringRef name, bool isDefined) {
        Buffer &buffer = buffers[tensor];
        tgl::TglTensorType type = stampsOf(buffer.type);
        code.temporaries.push_back({(name + ".stamps").str(), type});
        buffer.stamps = nextPointer(name + ".stamps");
        clearStamps(buffer, isDefined);
      };
      for (auto [index, argument] : enumerate(kernel.getBody().getArguments()))
        if (isa<tgl::TglTensorType>(argument.getType()) && kernel.getArgRole(index) != "in")
          addStamps(argument, kernel.getArgName(index), kernel.getArgRole(index) == "inout");
      kernel.walk([&](tgl::TempOp temp) {
        if (!isOutlined(temp))
          addStamps(temp.getTensor(), temp.getName(), /*isDefined=*/false);
      });
    }
    for (auto &entry : buffers)
      all.push_back(&entry.second);
    // The map's order is that of addresses; scopes are anonymous, so it shows nowhere.
    addAliasScopes(all);

    emitBlock(kernel.getBody().front());
    for (auto [index, argument] : enumerate(kernel.getBody().getArguments()))
      if (options.checked && kernel.getArgRole(index) == "out")
        checkComplete(kernel, argument);
    b.CreateRetVoid();
    return code;
  }

  /// Whether a temporary belongs to a point of an outlined statement. One inside of a nest without
  /// axes exists once, as those of the kernel do.
  static bool isOutlined(tgl::TempOp temp) {
    for (auto nest = temp->getParentOfType<tgl::ParallelOp>(); nest;
         nest = nest->getParentOfType<tgl::ParallelOp>())
      if (!nest.getAxes().empty())
        return true;
    return false;
  }

protected:
  void emitOp(mlir::Operation *op) override {
    if (auto launch = dyn_cast<tgl::LaunchOp>(op))
      return emitBlock(launch.getBody().front());
    Emitter::emitOp(op);
  }

  void emitParallel(tgl::ParallelOp op) override {
    if (!nested && !op.getAxes().empty())
      return emitOutlined(op);
    if (nested && !lanes && emitInnerProduct(op))
      return;
    Emitter::emitParallel(op);
  }

  void emitReduce(tgl::ReduceOp op) override {
    if (nested || lanes || !emitParts(op))
      Emitter::emitReduce(op);
  }

  /// The runtime sorts; only as many elements as anyone looks at.
  void emitSort(tgl::SortOp op) override {
    const Buffer sorted = buffers.lookup(op.getValues()), places = buffers.lookup(op.getPositions());
    mlir::Type element = sorted.type.getElementType();
    if (lanes || element.isInteger(4) || !options.vectorBytes || options.checked)
      return Emitter::emitSort(op);
    SmallVector<ValueExpr> first = op.getSubscriptExprs();
    first.push_back(ValueExpr(int64_t(0)));
    Value *row = emitIndex(elementOffset(sorted.type, first));
    Value *length = emitSize(sorted.type.getDims().back().getExpr());
    Value *take = length;
    if (std::optional<IndexExpr> looked = elementsRead(op))
      take = b.CreateBinaryIntrinsic(Intrinsic::smin, take, emitSize(*looked));
    Type *pointer = b.getPtrTy(), *wide = b.getInt64Ty(), *narrow = b.getInt32Ty();
    Value *callee = b.CreateLoad(
        pointer, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun, offsetof(HostRun, sort)));
    auto *type = FunctionType::get(b.getVoidTy(),
                                   {pointer, pointer, pointer, wide, wide, narrow, narrow}, false);
    b.CreateCall(type, callee,
                 {hostRun, b.CreateInBoundsGEP(storageType(element), sorted.pointer, row),
                  b.CreateInBoundsGEP(wide, places.pointer, row), length, take,
                  b.getInt32(static_cast<int32_t>(*dtypeOf(element))),
                  b.getInt32(op.getDescending())});
  }

  void emitTemp(tgl::TempOp op) override {
    if (!isOutlined(op)) { // an argument of the kernel function
      if (clock)
        clearStamps(buffers[op.getTensor()], /*isDefined=*/false);
      return;
    }
    Buffer buffer;
    buffer.type = op.getTensor().getType();
    buffer.pointer = ownMemory(op, buffer.type, scratchAddress);
    if (clock) {
      buffer.stamps = ownMemory(op, stampsOf(buffer.type), scratchStamps);
      clearStamps(buffer, /*isDefined=*/false);
    }
    buffers[op.getTensor()] = buffer;
  }

private:
  Function *function = nullptr;
  BasicBlock *entry = nullptr;
  Value *hostRun = nullptr;
  bool nested = false;
  DenseMap<mlir::Operation *, Value *> scratchAddress, scratchStamps; // of private temporaries
  unsigned numOutlined = 0;

  void begin(Function *target) {
    target->addFnAttr(Attribute::NoUnwind);
    entry = BasicBlock::Create(module.getContext(), "entry", target);
    b.SetInsertPoint(entry);
  }

  Value *emitBytes(tgl::TglTensorType type) { return emitSize(bytesOf(type, cacheLineBytes)); }

  /// Memory of a private temporary, or of its stamps: on the stack, or its share of the scratch space.
  Value *ownMemory(tgl::TempOp op, tgl::TglTensorType type,
                   const DenseMap<mlir::Operation *, Value *> &shares) {
    auto *constant = dyn_cast<ConstantInt>(emitBytes(type));
    if (constant && constant->getSExtValue() <= stackBytes) {
      IRBuilder<>::InsertPointGuard guard(b);
      b.SetInsertPoint(entry, entry->getFirstInsertionPt());
      AllocaInst *space = b.CreateAlloca(b.getInt8Ty(), constant, op.getName());
      space->setAlignment(Align(64));
      return space;
    }
    Value *share = shares.lookup(op);
    if (!share)
      fail(op, "a private temporary outside of an outlined statement");
    return share ? share : PoisonValue::get(b.getPtrTy());
  }

  //===--- Stamps (checked mode) ---===//

  Value *clockOf(Value *run) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), run, offsetof(HostRun, clock));
  }

  static tgl::TglTensorType stampsOf(tgl::TglTensorType type) {
    mlir::MLIRContext *context = type.getContext();
    return tgl::TglTensorType::get(context, type.getDims(), mlir::IntegerType::get(context, 64));
  }

  /// Nothing is defined from here on; or, for an inout, everything was at the beginning.
  void clearStamps(const Buffer &buffer, bool isDefined) {
    Value *bytes = emitBytes(stampsOf(buffer.type));
    if (!isDefined) {
      b.CreateMemSet(buffer.stamps, b.getInt8(0), bytes, MaybeAlign(8));
      return;
    }
    Value *count = b.CreateLShr(bytes, 3);
    emitLoop(i64(0), count, i64(1), {}, [&](Value *n, ArrayRef<Value *>) {
      b.CreateStore(i64(2), b.CreateGEP(b.getInt64Ty(), buffer.stamps, n));
      return SmallVector<Value *>();
    });
  }

  //===--- Outlining ---===//

  struct Captured {
    SmallVector<mlir::Value> tensors, scalars;
  };

  /// What the statement uses and does not define.
  Captured capturesOf(mlir::Operation *op) {
    SetVector<mlir::Value> tensors, scalars;
    mlir::Region &body = op->getRegion(0);
    auto visit = [&](mlir::Value value) {
      mlir::Region *home = value.getParentRegion();
      if (body.isAncestor(home))
        return;
      (isa<tgl::TglTensorType>(value.getType()) ? tensors : scalars).insert(value);
    };
    for (mlir::Value operand : op->getOperands())
      visit(operand);
    body.walk([&](mlir::Operation *inner) {
      for (mlir::Value operand : inner->getOperands())
        visit(operand);
    });
    return {SmallVector<mlir::Value>(tensors.begin(), tensors.end()),
            SmallVector<mlir::Value>(scalars.begin(), scalars.end())};
  }

  /// How the points of a statement are numbered: a box over `outer` axes, times blocks of the lane
  /// axis.
  struct Numbering {
    SmallVector<unsigned> outer; // slowest first
    SmallVector<unsigned> inner; // looped over inside: their bounds depend on other axes
    std::optional<LaneChoice> lane;
  };

  Numbering numberingOf(tgl::ParallelOp op) {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    Numbering result;
    result.lane = chooseLanes(axes);
    for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
      if (result.lane && result.lane->axis == axis)
        continue;
      bool independent = true;
      for (mlir::Value own : op.getAxes())
        independent &= !lowOf(axes, axis).uses(own) && !highOf(axes, axis).uses(own);
      (independent ? result.outer : result.inner).push_back(axis);
    }
    if (result.lane) { // a lane axis whose bounds differ from point to point stays whole
      for (mlir::Value own : op.getAxes())
        if (lowOf(axes, result.lane->axis).uses(own) || highOf(axes, result.lane->axis).uses(own))
          return result;
      laneIsBlocked = true;
    }
    return result;
  }
  bool laneIsBlocked = false;

  Value *extent(tgl::AxesOp op, unsigned axis) {
    Value *difference = b.CreateSub(emitIndex(highOf(op, axis)), emitIndex(lowOf(op, axis)));
    return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
  }

  void emitOutlined(tgl::ParallelOp op) {
    std::optional<ContractionPlan> plan;
    if (options.vectorBytes)
      plan = planContraction(op, module.getContext());
    if (!plan)
      return emitPoints(op);
    ContractionEmitter contraction(*this, *plan);
    ContractionShape shape = contraction.emitShape(emitThreads(), i64(4));
    auto asProduct = [&] {
      outline(op, shape.units, contraction.emitCost(shape), {},
              [&](Value *begin, Value *end, ArrayRef<Value *>) {
        ContractionShape inside = contraction.emitShape(emitThreads(), i64(4));
        Value *memory = emitMemory(offsetof(HostRun, panels), contraction.emitScratchBytes(inside));
        emitLoop(
            begin, end, i64(1), {},
            [&](Value *unit, ArrayRef<Value *>) {
              contraction.emitUnit(inside, unit, memory);
              return SmallVector<Value *>();
            },
            "unit");
      });
    };
    Value *worthwhile = contraction.emitWorthwhile(shape);
    if (auto *known = dyn_cast<ConstantInt>(worthwhile))
      return known->isOne() ? asProduct() : emitPoints(op);
    emitIf(worthwhile, asProduct);
    emitIf(b.CreateNot(worthwhile), [&] { emitPoints(op); });
  }

  /// A matrix product inside of a statement, on this thread.
  bool emitInnerProduct(tgl::ParallelOp op) {
    std::optional<ContractionPlan> plan;
    if (options.vectorBytes)
      plan = planContraction(op, module.getContext());
    if (!plan)
      return false;
    ContractionEmitter contraction(*this, *plan);
    Value *one = i64(1);
    ContractionShape shape = contraction.emitShape(one, one);
    Value *worthwhile = contraction.emitWorthwhile(shape);
    emitIf(worthwhile, [&] {
      Value *memory = emitMemory(offsetof(HostRun, panels), contraction.emitScratchBytes(shape));
      emitLoop(i64(0), shape.units, one, {}, [&](Value *unit, ArrayRef<Value *>) {
        contraction.emitUnit(shape, unit, memory);
        return SmallVector<Value *>();
      }, "unit");
    });
    emitIf(b.CreateNot(worthwhile), [&] { Emitter::emitParallel(op); });
    return true;
  }

  /// Threads that parallel statements run on.
  Value *emitThreads() {
    Value *threads =
        b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun,
                                                                  offsetof(HostRun, threads)));
    return b.CreateBinaryIntrinsic(Intrinsic::smax, threads, i64(1));
  }

  /// Point by point, along vectors where an axis allows it.
  void emitPoints(tgl::ParallelOp op) {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    laneIsBlocked = false;
    Numbering numbering = numberingOf(op);
    bool blocked = laneIsBlocked;

    // The caller: numbers of points, the frame, the call.
    Value *count = i64(1), *laneBlock = nullptr;
    for (unsigned axis : numbering.outer)
      count = b.CreateMul(count, extent(axes, axis));
    Value *cost = emitWork(op.getBody().front(), op);
    for (unsigned axis : numbering.inner)
      cost = b.CreateMul(cost, estimateExtent(axes, axis, op));
    if (numbering.lane) {
      Value *length = blocked ? extent(axes, numbering.lane->axis)
                              : estimateExtent(axes, numbering.lane->axis, op);
      if (blocked) {
        laneBlock = emitLaneBlock(count, length);
        count = b.CreateMul(
            count, b.CreateUDiv(b.CreateAdd(length, b.CreateSub(laneBlock, i64(1))), laneBlock));
        length = b.CreateBinaryIntrinsic(Intrinsic::smin, length, laneBlock);
      }
      cost =
          b.CreateAdd(b.CreateSDiv(b.CreateMul(cost, length), i64(numbering.lane->width)), i64(1));
    }
    SmallVector<Value *> extra;
    if (blocked)
      extra.push_back(laneBlock);
    outline(op, count, cost, extra, [&](Value *begin, Value *end, ArrayRef<Value *> passed) {
      allocateScratch(op);
      emitNumbers(op, numbering, blocked ? passed[0] : nullptr, begin, end);
    });
  }

  /// Points of the lane axis for one number where there are `others` points around it.
  Value *emitLaneBlock(Value *others, Value *length) {
    Value *wanted = b.CreateMul(emitThreads(), i64(2));
    Value *most = b.CreateBinaryIntrinsic(Intrinsic::smax, others, i64(1));
    Value *pieces = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateUDiv(wanted, most), i64(1));
    Value *block = b.CreateUDiv(length, pieces);
    block = b.CreateAnd(b.CreateAdd(block, i64(leastLaneBlock - 1)), i64(-leastLaneBlock));
    block = b.CreateBinaryIntrinsic(Intrinsic::smax, block, i64(leastLaneBlock));
    return b.CreateBinaryIntrinsic(Intrinsic::smin, block, i64(mostLaneBlock));
  }

  //===--- Reductions of a whole kernel ---===//

  /// A long reduction outside of parallel statements: parts of its first axis on all threads, then the
  /// parts' results in order. False where it is short or cannot be cut.
  bool emitParts(tgl::ReduceOp op) {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    if (!options.vectorBytes || options.checked || op.getAxes().empty())
      return false;
    bool single = op.getAxes().size() == 1;
    Value *low = emitIndex(lowOf(axes, 0)), *high = emitIndex(highOf(axes, 0)), *inner = i64(1);
    for (unsigned axis = 1; axis < op.getAxes().size(); ++axis)
      inner = b.CreateMul(inner, estimateExtent(axes, axis, op));
    Value *length = extent(axes, 0);
    auto ceilDiv = [&](Value *value, Value *by) {
      return b.CreateUDiv(b.CreateAdd(value, b.CreateSub(by, i64(1))), by);
    };
    inner = b.CreateBinaryIntrinsic(Intrinsic::smax, inner, i64(1));
    Value *part = b.CreateBinaryIntrinsic(Intrinsic::smax, ceilDiv(i64(leastPartPoints), inner),
                                          ceilDiv(length, i64(mostParts)));
    if (single) // whole vectors, so that parts begin on the same lanes
      part = b.CreateAnd(b.CreateAdd(part, i64(1023)), i64(-1024));
    Value *count = ceilDiv(length, part);

    Accumulator identity = initialAccumulator(op);
    SmallVector<Type *> types;
    for (Value *element : identity)
      types.push_back(element->getType());
    StructType *partType = StructType::get(module.getContext(), types);
    Value *results;
    {
      IRBuilder<>::InsertPointGuard guard(b);
      b.SetInsertPoint(entry, entry->getFirstInsertionPt());
      results = b.CreateAlloca(ArrayType::get(partType, mostParts));
    }
    Value *cost = b.CreateMul(b.CreateMul(part, inner), emitWork(op.getBody().front(), op));
    cost = b.CreateUDiv(cost, i64(std::max(1u, options.vectorBytes / 4)));
    outline(op, count, cost, {results, low, high, part},
            [&](Value *begin, Value *end, ArrayRef<Value *> passed) {
              emitLoop(begin, end, i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
                Value *first = b.CreateAdd(passed[1], b.CreateMul(number, passed[3]));
                Value *last = b.CreateBinaryIntrinsic(
                    Intrinsic::smin, b.CreateAdd(first, passed[3]), passed[2]);
                axisPart = AxisPart{op.getAxes()[0], first, last};
                Accumulator sum = emitReduceNest(op);
                axisPart.reset();
                Value *slot = b.CreateInBoundsGEP(partType, passed[0], number);
                for (auto [k, element] : enumerate(sum))
                  b.CreateStore(element, b.CreateStructGEP(partType, slot, k));
                return SmallVector<Value *>();
              });
            });
    SmallVector<Value *> total =
        emitLoop(i64(0), count, i64(1), identity, [&](Value *number, ArrayRef<Value *> carried) {
          Value *slot = b.CreateInBoundsGEP(partType, results, number);
          Accumulator one;
          for (auto [k, type] : enumerate(types))
            one.push_back(b.CreateLoad(type, b.CreateStructGEP(partType, slot, k)));
          return SmallVector<Value *>(combine(op, Accumulator(carried.begin(), carried.end()), one));
        });
    values[op.getResult()] = total.back();
    return true;
  }

  using OutlinedBody = function_ref<void(Value *begin, Value *end, ArrayRef<Value *> passed)>;

  /// Outlines what `inside` emits for units [begin, end) of the statement and calls it for all
  /// `count`; it sees `extra` as `passed`.
  void outline(mlir::Operation *op, Value *count, Value *cost, ArrayRef<Value *> extra,
               OutlinedBody inside) {
    Captured captured = capturesOf(op);
    SmallVector<Value *> slots;
    for (mlir::Value tensor : captured.tensors)
      slots.push_back(buffers[tensor].pointer);
    for (mlir::Value tensor : captured.tensors)
      if (Value *stamps = buffers[tensor].stamps)
        slots.push_back(stamps);
    for (mlir::Value scalar : captured.scalars)
      slots.push_back(valueOf(scalar));
    SmallVector<StringRef> symbols;
    for (auto &size : sizes)
      symbols.push_back(size.first());
    llvm::sort(symbols);
    for (StringRef symbol : symbols)
      slots.push_back(sizes[symbol]);
    slots.append(extra.begin(), extra.end());
    SmallVector<Type *> types;
    for (Value *slot : slots)
      types.push_back(slot->getType());
    StructType *frameType = StructType::get(module.getContext(), types);
    Value *frame;
    {
      IRBuilder<>::InsertPointGuard guard(b);
      b.SetInsertPoint(entry, entry->getFirstInsertionPt());
      frame = b.CreateAlloca(frameType);
    }
    for (auto [index, slot] : enumerate(slots))
      b.CreateStore(slot, b.CreateStructGEP(frameType, frame, index));

    Type *pointer = b.getPtrTy();
    auto *bodyType =
        FunctionType::get(b.getVoidTy(), {b.getInt64Ty(), b.getInt64Ty(), pointer, pointer}, false);
    Function *body = Function::Create(bodyType, Function::InternalLinkage,
                                      function->getName() + "." + Twine(numOutlined++), module);
    emitBody(body, captured, symbols, extra.size(), frameType, inside);
    if (clock) { // in order, on this thread
      b.CreateCall(body, {i64(0), count, frame, hostRun});
      return;
    }

    Value *callee =
        b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun,
                                                           offsetof(HostRun, parallelFor)));
    auto *calleeType = FunctionType::get(
        b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty(), b.getInt64Ty()}, false);
    b.CreateCall(calleeType, callee, {hostRun, body, frame, count, cost});
  }

  void emitBody(Function *body, const Captured &captured, ArrayRef<StringRef> symbols,
                size_t numExtra, StructType *frameType, OutlinedBody inside) {
    IRBuilder<>::InsertPointGuard guard(b);
    auto savedValues = values;
    auto savedBuffers = buffers;
    StringMap<Value *> savedSizes = sizes;
    Function *savedFunction = std::exchange(function, body);
    BasicBlock *savedEntry = entry;
    Value *savedRun = hostRun, *savedErrors = errorRecord, *savedClock = clock;
    SmallVector<Level> savedLevels = std::exchange(levels, {});
    nested = true;

    begin(body);
    hostRun = body->getArg(3);
    errorRecord = hostRun;
    if (clock)
      clock = clockOf(hostRun);
    unsigned slot = 0;
    auto load = [&](const Twine &name) {
      Value *address = b.CreateStructGEP(frameType, body->getArg(2), slot);
      return b.CreateLoad(frameType->getElementType(slot++), address, name);
    };
    SmallVector<Buffer *> scoped;
    for (mlir::Value tensor : captured.tensors)
      buffers[tensor].pointer = load("");
    for (mlir::Value tensor : captured.tensors)
      if (buffers[tensor].stamps)
        buffers[tensor].stamps = load("");
    for (mlir::Value scalar : captured.scalars)
      values[scalar] = load("");
    for (StringRef symbol : symbols)
      sizes[symbol] = load(symbol);
    SmallVector<Value *> passed;
    for (size_t k = 0; k < numExtra; ++k)
      passed.push_back(load(""));
    for (mlir::Value tensor : captured.tensors)
      scoped.push_back(&buffers[tensor]);
    addAliasScopes(scoped);
    inside(body->getArg(0), body->getArg(1), passed);
    b.CreateRetVoid();

    values = std::move(savedValues);
    buffers = std::move(savedBuffers);
    sizes = std::move(savedSizes);
    function = savedFunction;
    entry = savedEntry;
    hostRun = savedRun;
    errorRecord = savedErrors;
    clock = savedClock;
    levels = std::move(savedLevels);
    nested = false;
  }

  void emitNumbers(tgl::ParallelOp op, const Numbering &numbering, Value *laneBlock, Value *begin,
                   Value *end) {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    beginPoints();
    emitLoop(begin, end, i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
      Value *rest = number;
      auto digit = [&](Value *size) {
        Value *value = b.CreateURem(rest, size);
        rest = b.CreateUDiv(rest, size);
        return value;
      };
      Value *block = nullptr;
      if (laneBlock) {
        Value *length = extent(axes, numbering.lane->axis);
        Value *blocks =
            b.CreateUDiv(b.CreateAdd(length, b.CreateSub(laneBlock, i64(1))), laneBlock);
        block = b.CreateMul(digit(blocks), laneBlock);
      }
      for (unsigned axis : reverse(numbering.outer))
        values[op.getAxes()[axis]] =
            b.CreateAdd(digit(extent(axes, axis)), emitIndex(lowOf(axes, axis)));
      emitNest(axes, numbering.inner, [&] {
        if (!numbering.lane) {
          beginPoint();
          return emitBlock(op.getBody().front());
        }
        Value *low = emitIndex(lowOf(axes, numbering.lane->axis));
        Value *high = emitIndex(highOf(axes, numbering.lane->axis));
        if (block) {
          low = b.CreateAdd(low, block);
          high = b.CreateBinaryIntrinsic(Intrinsic::smin, high, b.CreateAdd(low, laneBlock));
        }
        emitLaneRange(op, *numbering.lane, low, high);
      });
      return SmallVector<Value *>();
    });
    endPoints();
  }

  /// One request for all private temporaries of the statement that do not fit on the stack.
  void allocateScratch(tgl::ParallelOp op) {
    Value *total = nullptr;
    struct Share {
      Value *&address, *offset;
    };
    SmallVector<Share> shares;
    auto add = [&](tgl::TglTensorType type, Value *&address) {
      Value *bytes = emitBytes(type);
      auto *constant = dyn_cast<ConstantInt>(bytes);
      if (constant && constant->getSExtValue() <= stackBytes)
        return;
      shares.push_back({address, total ? total : i64(0)});
      total = total ? b.CreateAdd(total, bytes) : bytes;
    };
    op.walk([&](tgl::TempOp temp) { // references stay: the maps have all keys before
      scratchAddress[temp] = scratchStamps[temp] = nullptr;
    });
    op.walk([&](tgl::TempOp temp) {
      add(temp.getTensor().getType(), scratchAddress[temp]);
      if (clock)
        add(stampsOf(temp.getTensor().getType()), scratchStamps[temp]);
    });
    if (!total)
      return;
    Value *space = emitMemory(offsetof(HostRun, scratch), total);
    for (const Share &share : shares)
      share.address = b.CreateInBoundsGEP(b.getInt8Ty(), space, share.offset);
  }

  /// Memory of this thread from the member of HostRun; the function returns where there is none.
  Value *emitMemory(unsigned member, Value *bytes) {
    Type *pointer = b.getPtrTy();
    Value *callee = b.CreateLoad(
        pointer, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun, member));
    Value *space = b.CreateCall(FunctionType::get(pointer, {pointer, b.getInt64Ty()}, false),
                                callee, {hostRun, bytes});
    BasicBlock *giveUp = BasicBlock::Create(module.getContext(), "nomemory", function);
    BasicBlock *goOn = BasicBlock::Create(module.getContext(), "memory", function);
    b.CreateCondBr(b.CreateIsNull(space), giveUp, goOn);
    b.SetInsertPoint(giveUp);
    b.CreateRetVoid();
    b.SetInsertPoint(goOn);
    return space;
  }

  //===--- Sorts ---===//

  /// How many elements of sorted rows are read at most, where every read of the temporaries walks along
  /// them from the front to a size.
  static std::optional<IndexExpr> elementsRead(tgl::SortOp op) {
    std::optional<IndexExpr> most;
    for (mlir::Value tensor : {op.getValues(), op.getPositions()}) {
      if (!tensor.getDefiningOp<tgl::TempOp>())
        return std::nullopt;
      for (mlir::Operation *user : tensor.getUsers()) {
        auto read = dyn_cast<tgl::ReadOp>(user);
        if (!read) {
          if (isa<tgl::WriteOp>(user) || user == op)
            continue; // what is sorted
          return std::nullopt;
        }
        auto axis = dyn_cast_or_null<mlir::BlockArgument>(read.getSubscriptExprs().back().asValue());
        auto owner = axis ? dyn_cast<tgl::AxesOp>(axis.getOwner()->getParentOp()) : tgl::AxesOp();
        if (!owner)
          return std::nullopt;
        ValueExpr high = tgl::getAxisRange(owner, axis.getArgNumber()).hi;
        if (!high.operands().empty())
          return std::nullopt;
        most = most ? IndexExpr::max(*most, high.expr()) : high.expr();
      }
    }
    return most;
  }

  //===--- Estimates ---===//

  /// The extent of an axis if it can be computed before `statement`, else a guess.
  Value *estimateExtent(tgl::AxesOp op, unsigned axis, mlir::Operation *statement) {
    auto known = [&](const ValueExpr &expr) {
      return none_of(expr.operands(), [&](mlir::Value value) {
        return statement->getRegion(0).isAncestor(value.getParentRegion());
      });
    };
    if (known(lowOf(op, axis)) && known(highOf(op, axis)))
      return extent(op, axis);
    return i64(16);
  }

  /// Operations of one point of a block.
  Value *emitWork(mlir::Block &block, mlir::Operation *statement) {
    int64_t plain = 0;
    Value *loops = i64(0);
    for (mlir::Operation &op : block) {
      if (op.getNumRegions() == 0) {
        ++plain;
        continue;
      }
      Value *inside = emitWork(op.getRegion(0).front(), statement);
      if (auto axes = dyn_cast<tgl::AxesOp>(op)) {
        for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
          inside = b.CreateMul(inside, estimateExtent(axes, axis, statement));
      } else {
        inside = b.CreateMul(inside, i64(16));
      }
      loops = b.CreateAdd(loops, inside);
    }
    return b.CreateAdd(loops, i64(plain));
  }
};
} // namespace

Expected<HostCode> tegula::emitHost(tgl::KernelOp kernel, Module &module,
                                    const EmitterOptions &options) {
  std::vector<ErrorSite> sites;
  HostEmitter emitter(module, options, sites);
  HostCode code = emitter.run(kernel);
  if (!emitter.error().empty())
    return createStringError(inconvertibleErrorCode(), emitter.error());
  code.sites = std::move(sites);
  return code;
}
