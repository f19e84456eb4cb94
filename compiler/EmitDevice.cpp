//===- EmitDevice.cpp - Device code of a scheduled kernel -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the kernel's statements: each parallel one outside of others becomes a device function in
// one or both of the forms of DeviceEmitter.h, and a step of the plan. With sizes that are known
// the better form is chosen here, else by the runtime.
//
//===----------------------------------------------------------------------===//
#include "compiler/EmitDevice.h"

#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/StatementWork.h"
#include "codegen/tile/TileEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "passes/schedule/OrderSums.h"
#include "strategies/contraction/lower/DeviceContraction.h"
#include "strategies/recurrence/lower/PersistentRecurrence.h"
#include "strategies/scan/lower/LookBackScan.h"
#include "strategies/tile_loop/lower/FusedTileLoop.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <optional>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

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
      buffer.bytes = Emitter::bytesOf(temp.getTensor().getType(), temporaryAlignment);
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

  /// An expression over sizes and host loop variables, in the plan's own dims; nothing where it is
  /// more.
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
      else if (auto tiled = dyn_cast<tile::KernelOp>(op))
        steps.push_back(tileStep(tiled));
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

  /// All that the statement uses: scalars computed outside are repeated in the function, down to
  /// kernel arguments, loop variables and constants.
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

  /// What a function for the statement is given; `arguments`: the same for the plan.
  void inputsOf(tgl::ParallelOp op, DeviceEmitter::Inputs &inputs,
                std::vector<PlanArgument> *arguments) {
    SetVector<mlir::Value> leaves;
    SetVector<mlir::Operation *> prologue;
    auto visit = [&](mlir::Operation *inner) {
      for (mlir::Value operand : inner->getOperands())
        collect(operand, op.getBody(), leaves, prologue);
    };
    visit(op);
    op.getBody().walk(visit);

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
    if (!arguments)
      return;
    auto add = [&](PlanArgument::Kind kind, unsigned index, IndexExpr size = 0) {
      PlanArgument argument;
      argument.kind = kind;
      argument.index = index;
      argument.size = size;
      arguments->push_back(argument);
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
  }

  /// General code of the statement, and the kernel's where it is placed.
  PlanStep tileStep(tile::KernelOp tiled) {
    auto statements = tiled.getOtherwise().getOps<tgl::ParallelOp>();
    if (!llvm::hasSingleElement(statements)) {
      fail(tiled, "a kernel in tiles without the statement that it computes");
      return PlanStep();
    }
    tgl::ParallelOp op = *statements.begin();
    PlanStep step = launchStep(op);
    std::optional<IndexExpr> blocks = TileEmitter::numBlocks(tiled);
    if (!TileEmitter::canEmit(tiled) || options.checked || !blocks || !failure.empty())
      return step;
    DeviceEmitter::Inputs inputs;
    inputsOf(op, inputs, nullptr);
    std::string name =
        ("tegula_" + kernel.getSymName() + "_" + Twine(numFunctions++) + "_tiles").str();
    TileEmitter emitter(module, options, code.sites, tiled);
    emitter.emit(op, name, inputs);
    if (failure.empty())
      failure = emitter.error();
    step.tiles.launches = {{name, *blocks, unsigned(*tiled.getThreads()),
                            unsigned(*tiled.getSharedBytes()), "rows of a product"}};
    step.tiles.largestNumber = *blocks;
    for (mlir::Value tensor : TileEmitter::alignedTensors(tiled))
      step.tiles.aligned.push_back(llvm::find(inputs.tensors, tensor) - inputs.tensors.begin());
    return step;
  }

  PlanStep launchStep(tgl::ParallelOp op) {
    if (partialWrites(op).empty())
      return launchStep(op, op);
    // What adds parts up has one order without tiles too.
    mlir::OpBuilder before(op);
    tgl::ParallelOp ordered = orderSums(cast<tgl::ParallelOp>(before.clone(*op)));
    SmallVector<StringRef> mapping(ordered.getAxes().size(), "thread");
    ordered.setMapping(llvm::join(mapping, ","));
    PlanStep step = launchStep(ordered, op);
    ordered.erase();
    return step;
  }

  /// `tiled`: the same statement, for tiles.
  PlanStep launchStep(tgl::ParallelOp op, tgl::ParallelOp tiled) {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    PlanStep step;
    DeviceEmitter::Inputs inputs;
    inputsOf(op, inputs, &step.arguments);

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

    std::string name = ("tegula_" + kernel.getSymName() + "_" + Twine(numFunctions++)).str();
    if (emitRecurrence(op, step, name, inputs) || emitScanTiles(op, step, name, inputs))
      return step;
    StatementWork work(op);
    bool canBeThread = !work.hasSort && (!work.hasParallel || (work.isKnown() && !work.hasLarge));
    bool canBeTeam = work.hasParallel || work.hasReduce || work.hasSort || work.hasPrefix;
    if (work.hasSteps && canBeTeam) // states of a thread alone would be in its local memory
      canBeThread = false;
    if (canBeThread && canBeTeam && work.isKnown()) {
      // Threads side by side should touch memory side by side.
      // Points with temporaries are in no vectors of points; those of windows may lie apart by a
      // window's length.
      bool isKept = work.hasParallel && work.hasTemporaries;
      bool alongPoints = neighboursAreNear(op) || (!isKept && DeviceEmitter::runsAlongPoints(op));
      bool isBusy = *work.points >= manyThreads ||
                    DeviceEmitter(module, options, code.sites).columnsKeepMemoryBusy(op);
      bool byThread = (*work.inside < shortNest && !isKept) || (alongPoints && isBusy);
      (byThread ? canBeTeam : canBeThread) = false;
    }
    if (canBeThread)
      emit(op, name + "_thread", inputs, outer, DeviceShape(), step.byThread);
    if (canBeTeam)
      emit(op, name + "_block", inputs, outer, teamFor(work), step.byTeam);
    if (!code.clusters.empty() && step.byTeam.cluster > 1) // as the program asks
      step.unit = PlanStep::Team;
    emitTiles(tiled, step, name, inputs);
    emitTileLoop(op, step, name, inputs, outer, canBeTeam ? teamFor(work) : DeviceShape());
    return step;
  }

  /// Where the schedule says so, and the device can, a function whose clusters of blocks take a row
  /// each through a loop.
  bool emitRecurrence(tgl::ParallelOp op, PlanStep &step, const std::string &name,
                      const DeviceEmitter::Inputs &inputs) {
    std::optional<RecurrenceShape> shape = RecurrenceShape::of(op);
    if (!shape || options.checked || shape->cluster > options.target.clusterBlocks)
      return false;
    std::optional<RecurrencePlan> plan = planRecurrence(op);
    if (!plan) {
      fail(op, "a cluster's shape of a statement that is no recurrence");
      return false;
    }
    DeviceEmitter emitter(module, options, code.sites);
    PersistentRecurrence recurrence(emitter, *plan, *shape);
    PlanFunction &function = step.byTeam;
    function.name = name + "_steps";
    function.threads = shape->threads;
    function.unitsPerBlock = 1;
    function.cluster = shape->cluster;
    function.sharedBytes = shape->sharedBytes(shape->weightsOfThread(*plan).value_or(0));
    if (function.sharedBytes > options.target.sharedBytes) {
      function = PlanFunction();
      return false;
    }
    emitter.emitTeamFunction(op, function.name, inputs, PersistentRecurrence::deviceShape(*shape),
                             [&] { recurrence.emit(); });
    if (failure.empty())
      failure = emitter.error();
    return true;
  }

  /// Where the schedule says so, a function whose blocks take parts of the statement's loop.
  bool emitScanTiles(tgl::ParallelOp op, PlanStep &step, const std::string &name,
                     const DeviceEmitter::Inputs &inputs) {
    std::optional<PrefixLoop> prefix = options.checked ? std::nullopt : matchLookBackScan(op);
    if (!prefix)
      return false;
    DeviceEmitter emitter(module, options, code.sites);
    LookBackScan scan(emitter, op, *prefix);
    step.tiles.launches = {
        {name + "_scan", scan.numBlocks(), unsigned(ScanTile::threads), 0, "a part of a scan"}};
    step.tiles.workspaceBytes = scan.workspaceBytes();
    step.tiles.isZeroed = scan.looksBack();
    emitter.emitTileFunction(op, name + "_scan", inputs, ScanTile::threads,
                             [&](Value *workspace) { scan.emit(workspace); });
    if (failure.empty())
      failure = emitter.error();
    return true;
  }

  /// Where the schedule says so, and the device can, a function whose blocks take rows of the
  /// statement together. `outer`, `general`: the axes that are numbered in general code, and who
  /// does a point there.
  void emitTileLoop(tgl::ParallelOp op, PlanStep &step, const std::string &name,
                    const DeviceEmitter::Inputs &inputs, ArrayRef<unsigned> outer,
                    const DeviceShape &general) {
    std::optional<TileLoopShape> tile = TileLoopShape::of(op);
    if (!tile || options.checked || !options.target.hasWgmma)
      return;
    std::optional<TileLoopPlan> plan = planTileLoop(op);
    if (!plan)
      return fail(op, "a row tile of a statement without products in a tile loop");
    DeviceEmitter none(module, options, code.sites);
    FusedTileLoop facts(none, *plan, *tile); // what the host knows of it
    PlanTiles &tiles = step.tiles;
    for (mlir::Value tensor : facts.alignedTensors())
      tiles.aligned.push_back(llvm::find(inputs.tensors, tensor) - inputs.tensors.begin());
    auto emitOne = [&](PlanTileLaunch launch, void (FusedTileLoop::*body)(Value *workspace)) {
      DeviceEmitter emitter(module, options, code.sites);
      FusedTileLoop rows(emitter, *plan, *tile);
      emitter.emitTileFunction(op, launch.function, inputs, launch.threads,
                               [&](Value *workspace) { (rows.*body)(workspace); });
      tiles.launches.push_back(std::move(launch));
      if (failure.empty())
        failure = emitter.error();
    };
    if (facts.usesSplitPrecision()) {
      tiles.workspaceBytes = facts.workspaceBytes();
      emitOne({name + "_largest", facts.splitPrecisionBlocks(), facts.splitPrecisionThreads, 0,
               "largest numbers of factors"},
              &FusedTileLoop::emitLargest);
      emitOne({name + "_planes", facts.splitPrecisionBlocks(), facts.splitPrecisionThreads, 0,
               "factors split"},
              &FusedTileLoop::emitSplitPrecision);
    }
    emitOne({name + "_rows", facts.numBlocks(), facts.threads(), facts.sharedBytes(),
             "rows together", facts.cluster()},
            &FusedTileLoop::emit);
    if (facts.usesSplitPrecision())
      emitAgain(op, step, name + "_again", inputs, outer, general);
  }

  /// After tiles that may have a doubt: the statement's general code, for which they leave a word.
  void emitAgain(tgl::ParallelOp op, PlanStep &step, const std::string &name,
                 const DeviceEmitter::Inputs &inputs, ArrayRef<unsigned> outer, DeviceShape shape) {
    constexpr int64_t blocksOfMultiprocessor = 4;
    constexpr const char *unit = "points again, where the accuracy check fails";
    int64_t blocks = blocksOfMultiprocessor * options.target.multiprocessors;
    PlanTiles &tiles = step.tiles;
    // One function is both where the general launch has no workspace.
    const PlanFunction &general = step.byTeam.name.empty() ? step.byThread : step.byTeam;
    if (general.cluster == 1 && general.workspaceBytes == IndexExpr(0)) {
      returnUnlessFlagged(*module.getFunction(general.name));
      tiles.launches.push_back({general.name, blocks, general.threads, general.sharedBytes, unit});
      return;
    }
    EmitterOptions alone = options;
    alone.target.clusterBlocks = 1;
    DeviceEmitter emitter(module, alone, code.sites);
    IndexExpr ofBlock = emitter.emitFunction(op, name, inputs, outer, shape, &tiles.workspaceBytes);
    tiles.workspaceBytes = tiles.workspaceBytes + ofBlock * IndexExpr(blocks);
    tiles.launches.push_back({name, blocks, shape.threads, shape.sharedBytes, unit});
    if (failure.empty())
      failure = emitter.error();
  }

  /// What the function does is for launches without a workspace, or of which its first word is not
  /// 0.
  static void returnUnlessFlagged(Function &function) {
    BasicBlock &entry = function.getEntryBlock();
    auto isWait = [](const Instruction &instruction) { // for the launch that leaves the word
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      return call && call->getIntrinsicID() == Intrinsic::nvvm_griddepcontrol_wait;
    };
    auto place = entry.getFirstNonPHIOrDbgOrAlloca();
    if (auto wait = find_if(entry, isWait); wait != entry.end())
      place = std::next(wait);
    BasicBlock *body = entry.splitBasicBlock(place, "body");
    LLVMContext &context = function.getContext();
    BasicBlock *ask = BasicBlock::Create(context, "ask", &function, body);
    BasicBlock *end = BasicBlock::Create(context, "done", &function);
    entry.getTerminator()->eraseFromParent();
    Value *workspace = function.getArg(function.arg_size() - 1);
    IRBuilder<> b(&entry);
    b.CreateCondBr(b.CreateIsNull(workspace), body, ask);
    b.SetInsertPoint(ask);
    b.CreateCondBr(b.CreateIsNull(b.CreateAlignedLoad(b.getInt32Ty(), workspace, Align(4))), end,
                   body);
    b.SetInsertPoint(end);
    b.CreateRetVoid();
  }

  /// Where the schedule says so, functions that compute the statement in tiles.
  void emitTiles(tgl::ParallelOp op, PlanStep &step, const std::string &name,
                 const DeviceEmitter::Inputs &inputs) {
    std::optional<TensorTile> tile = TensorTile::of(op);
    if (!tile || options.checked)
      return;
    Matched<TensorProduct> product = matchTensorProduct(op);
    if (!product)
      return fail(op, "a tile of a statement that is no matrix product");
    PlanTiles &tiles = step.tiles;
    using Body = void (DeviceContraction::*)(Value *workspace);
    auto emitOne = [&](const ContractionNumbers &of, const std::string &function, IndexExpr blocks,
                       unsigned threads, unsigned sharedBytes, const char *unit, Body body) {
      DeviceEmitter emitter(module, options, code.sites);
      emitter.usesDependentLaunch = options.earlyCombine && body == &DeviceContraction::emitCombine;
      DeviceContraction contraction(emitter, of);
      emitter.emitTileFunction(op, function, inputs, threads,
                               [&](Value *workspace) { (contraction.*body)(workspace); });
      if (failure.empty())
        failure = emitter.error();
      tiles.launches.push_back({function, std::move(blocks), threads, sharedBytes, unit});
      tiles.launches.back().usesDependentLaunch = emitter.usesDependentLaunch;
      if (body != &DeviceContraction::emitTile)
        return;
      tiles.launches.back().cluster = of.cluster();
      code.layouts.push_back(contraction.layout(function));
    };
    ContractionNumbers numbers(options, product->plan, *tile, product->operands);
    tiles.workspaceBytes = numbers.workspaceBytes();
    tiles.largestNumber = numbers.largestNumber();
    for (mlir::Value tensor : numbers.alignedTensors())
      tiles.aligned.push_back(llvm::find(inputs.tensors, tensor) - inputs.tensors.begin());
    if (numbers.isPrepacked())
      emitOne(numbers, name + "_pack", numbers.prepackBlocks(), numbers.prepackThreads(),
              numbers.prepackSharedBytes(), "lines of operands split",
              &DeviceContraction::emitPrepack);
    if (numbers.usesTma() && !numbers.makesTmaDescriptors())
      emitOne(numbers, name + "_maps", 1, numbers.tmaDescriptorThreads(), 0, "maps of operands",
              &DeviceContraction::emitTmaDescriptors);
    emitOne(numbers, name + "_tile", numbers.numBlocks(), numbers.blockThreads(),
            numbers.sharedBytes(), "a tile", &DeviceContraction::emitTile);
    auto emitCombine = [&](const ContractionNumbers &of) {
      emitOne(of, name + "_combine", of.numCombineBlocks(), of.blockThreads(),
              of.combineSharedBytes(), "a tile's parts added up", &DeviceContraction::emitCombine);
    };
    if (numbers.storesPartials())
      emitCombine(numbers);
    if (std::optional<ContractionNumbers::RemainderTiles> left = numbers.remainderTiles())
      emitCombine(
          ContractionNumbers(options, product->plan, left->tile, product->operands, left->range));
    if (!numbers.numTiles().isSize()) // it changes in a loop on the host
      tiles = {};
  }

  void emit(tgl::ParallelOp op, const std::string &name, const DeviceEmitter::Inputs &inputs,
            ArrayRef<unsigned> outer, DeviceShape shape, PlanFunction &result) {
    DeviceEmitter emitter(module, options, code.sites);
    result.name = name;
    result.workspaceBytes = emitter.emitFunction(op, name, inputs, outer, shape);
    result.threads = shape.threads;
    result.unitsPerBlock = shape.unitsPerBlock();
    result.pointsPerUnit = shape.lanes * shape.rounds;
    result.cluster = shape.cluster;
    result.sharedBytes = shape.sharedBytes;
    if (std::optional<RowLayout> row = emitter.rowLayout(name))
      code.rows.push_back(std::move(*row));
    if (emitter.clusterAnswer())
      code.clusters.push_back(*emitter.clusterAnswer());
    if (failure.empty())
      failure = emitter.error();
  }
};

} // namespace

std::optional<Refusal> tegula::whyRefused(tgl::KernelOp kernel, const ScheduleSetting &setting,
                                          ArrayRef<ClusterAnswer> answers) {
  if (!isOfRowClusters(kernel, setting))
    return std::nullopt;
  if (answers.empty())
    return refuseEverywhere(kernel, setting);
  const ClusterAnswer *refused =
      find_if(answers, [](const ClusterAnswer &one) { return !one.holds; });
  if (refused == answers.end())
    return std::nullopt;
  return Refusal{"no row that this kernel keeps can have '" + setting.text() + "'",
                 "the nearest that fits is " + refused->nearest};
}

Expected<DeviceCode> tegula::emitDevice(tgl::KernelOp kernel, Module &module,
                                        const EmitterOptions &options) {
  PlanBuilder builder(kernel, module, options);
  DeviceCode code = builder.run();
  if (!builder.failure.empty())
    return createStringError(inconvertibleErrorCode(), builder.failure);
  return code;
}
