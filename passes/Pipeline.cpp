//===- Pipeline.cpp - The passes in order ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "strategies/StatementMatches.h"
#include "support/Switches.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tegula;
using tgl::KernelOp;

namespace {
/// Adds passes to a manager, or only notes them.
class PipelineBuilder {
public:
  PipelineBuilder(OpPassManager *manager, const PipelineOptions &options)
      : manager(manager), options(options) {}

  void add(std::unique_ptr<Pass> pass) {
    StringRef flag = pass->getArgument();
    if (llvm::none_of(passes, [&](const PipelinePass &one) { return one.name == flag; }))
      passes.push_back({flag.str(), pass->getDescription().str(), Phase::Parse, false, false});
    if (!manager || (options.runs && !options.runs->shouldRun(flag, "")) ||
        llvm::is_contained(options.disabled, flag))
      return;
    if (auto *counted = dynamic_cast<CountedBase *>(pass.get()))
      counted->counters = options.counters;
    if (auto *matching = dynamic_cast<MatchingPass *>(pass.get()); matching && options.matches)
      matching->matches = options.matches;
    if (pass->getOpName() == KernelOp::getOperationName() || !pass->getOpName())
      manager->addNestedPass<KernelOp>(std::move(pass));
    else
      manager->addPass(std::move(pass));
  }

  /// A pass that serves some strategies alone: where one of them is on.
  void addPreparation(std::unique_ptr<Pass> pass) {
    if (llvm::any_of(strategies(), [&](const Strategy *strategy) {
          return !llvm::is_contained(options.disabled, strategy->name()) &&
                 llvm::is_contained(strategy->preparations(options.target), pass->getArgument());
        }))
      add(std::move(pass));
  }

  /// What the phase guarantees from here on.
  void endPhase(Phase phase) {
    for (; numOfPhases < passes.size(); ++numOfPhases)
      passes[numOfPhases].phase = phase;
    if (!manager || !options.checkInvariants)
      return;
    VerifyPhasePassOptions verifyOptions;
    verifyOptions.phase = toString(phase).str();
    manager->addPass(createVerifyPhasePass(verifyOptions));
  }

  std::vector<PipelinePass> passes;

private:
  size_t numOfPhases = 0; // passes whose phase has ended
  OpPassManager *manager;
  const PipelineOptions &options;
};
} // namespace

/// Forms that can be compared, without what is useless or done twice.
static void addSimplifyPasses(PipelineBuilder &pipeline, const PipelineOptions &options) {
  // One kernel from here on: library calls are the caller's own statements.
  pipeline.add(createInlinePass());
  // Where sizes are known, numbers from here on.
  SpecializeSizesPassOptions specializeOptions;
  for (const auto &[name, value] : options.sizes)
    specializeOptions.sizes.push_back(name + "=" + std::to_string(value));
  pipeline.add(createSpecializeSizesPass(specializeOptions));
  // Accesses become expressions that can be compared; what ranges decide is decided.
  pipeline.add(createSimplifyAccessesPass());
  // Arithmetic inside regions is MLIR's business.
  pipeline.add(createCanonicalizerPass());
  pipeline.add(createCSEPass());
  // Of `q - q + 2*M` an index is left, which accesses have as theirs.
  SimplifyAccessesPassOptions fold;
  fold.onlyFold = true;
  pipeline.add(createSimplifyAccessesPass(fold));
  // Results that nobody reads, then work done twice. Reductions inside statements are left for
  // later: they would become temporaries, which later passes of this phase do not expect in a
  // block.
  pipeline.add(createEliminateDeadEquationsPass());
  EliminateCommonEquationsPassOptions wholeEquations;
  wholeEquations.shareReductions = false;
  pipeline.add(createEliminateCommonEquationsPass(wholeEquations));
  // Accumulation written as a tile loop is a reduction.
  pipeline.add(createCollapseTilesPass());
  pipeline.endPhase(Phase::Simplify);
}

/// Which computations run together.
static void addFusePasses(PipelineBuilder &pipeline, const PipelineOptions &options) {
  // Rows that share a factor are told by their axes.
  if (options.target.isGpu()) {
    pipeline.add(createSplitQuotientsPass());
    pipeline.add(createSimplifyAccessesPass());
  }
  // Loops whose steps change a state linearly become products: as they were written.
  if (options.target.isGpu())
    pipeline.add(createChunkRecurrencesPass());
  // Of those that stay loops, steps take what many of their points need from memory.
  if (options.target.isGpu())
    pipeline.add(createHoistStepValuesPass());
  const bool reducesProducts =
      options.target.isGpu() &&
      !llvm::is_contained(options.disabled, productReductionStrategy().name());
  if (reducesProducts) {
    // A logsumexp of a product's columns stores no product...
    InlineReducedProductsPassOptions productOptions;
    productOptions.target = options.target.text();
    productOptions.tensorTile = options.tensorTile;
    pipeline.add(createInlineReducedProductsPass(productOptions));
  }
  // ...and is one reduction. Else fewer kinds of reductions, no scans.
  ExpandReductionsPassOptions expandOptions;
  expandOptions.keepExponentials = !options.target.isGpu();
  expandOptions.correctVariances = !options.target.isGpu();
  expandOptions.keepLogSumExps = reducesProducts;
  expandOptions.target = options.target.text();
  expandOptions.tensorTile = options.tensorTile;
  pipeline.add(createExpandReductionsPass(expandOptions));
  pipeline.add(createExpandScansPass());
  // Sums of products: fewer products.
  SumBeforeProductPassOptions sumOptions;
  if (options.target
          .isGpu()) // an H200 takes 290 to 400 at TF32 from tensor cores, 107 to 140 of f32
    sumOptions.productsForElement = 256;
  pipeline.add(createSumBeforeProductPass(sumOptions));
  // Each value once per point of its own axes: statements now do no redundant work...
  pipeline.add(createDistributePass());
  pipeline.add(createSimplifyAccessesPass());
  // ...except where two do the same.
  pipeline.add(createCanonicalizerPass());
  pipeline.add(createCSEPass());
  EliminateCommonEquationsPassOptions commonOptions;
  commonOptions.keepProducts = reducesProducts;
  commonOptions.target = options.target.text();
  commonOptions.tensorTile = options.tensorTile;
  pipeline.add(createEliminateCommonEquationsPass(commonOptions));
  pipeline.add(createEliminateDeadEquationsPass());
  // A product that others share is stored after all: two reductions read it.
  if (reducesProducts)
    pipeline.add(createExpandReductionsPass(expandOptions));
  // What several products multiply is made again for each, in a loop: while statements stand apart.
  pipeline.addPreparation(createRecomputeProductsPass());
  if (options.target.isGpu())
    pipeline.add(createRecomputePairsPass());
  // Attention by equations: while the statements of a softmax stand apart.
  pipeline.addPreparation(createOnlineSoftmaxPass());
  // Structural zeros bound the loops: after what compares reductions and asks which axes they use.
  pipeline.add(createBoundLoopsPass());
  // A step of a loop may replace a state in the statement that reads around each element of it.
  pipeline.add(createDoubleBufferPass());
  // Statements that belong together run together; the rest of memory traffic goes.
  FusePassOptions fuseOptions;
  fuseOptions.batchedProducts = !options.target.isGpu();
  fuseOptions.groupedProducts = options.target.isGpu();
  fuseOptions.skinnyProducts =
      options.target.isGpu() && !llvm::is_contained(options.disabled, "skinny-product");
  fuseOptions.reducedProducts = reducesProducts;
  fuseOptions.minPoints = options.target.isGpu() ? 512 : 0; // blocks: four for each multiprocessor
  pipeline.add(createFusePass(fuseOptions));
  // Transposed convolutions become convolutions: on fused nests, whose axes it splits for all that
  // is in them. A GPU multiplies by zeros where it can read the image once for all of them.
  if (!options.target.isGpu())
    pipeline.add(createSplitResiduesPass());
  else
    pipeline.add(createSplitPolyphasePass());
  if (options.target.isGpu())
    pipeline.add(createSplitCasesPass());
  pipeline.add(createSimplifyAccessesPass());
  pipeline.add(createCanonicalizerPass());
  pipeline.add(createCSEPass());
  pipeline.endPhase(Phase::Fuse);
}

/// What carries each axis of a nest.
static void addSchedulePasses(PipelineBuilder &pipeline, const PipelineOptions &options) {
  // What stays in memory has the type that it is read as.
  pipeline.add(createNarrowTemporariesPass());
  // Sums that are to have an order get it before anything else is made of their axes.
  pipeline.add(createOrderSumsPass());
  // Matrix products hidden in the nests of online algorithms come out.
  if (!options.target.isGpu())
    pipeline.add(createBlockRowsPass());
  // Loops over time that a cluster of blocks can walk by itself: while their axes are as they were
  // written.
  if (options.target.isGpu()) {
    GatherRecurrencesPassOptions gatherOptions;
    gatherOptions.target = options.target.text();
    pipeline.add(createGatherRecurrencesPass(gatherOptions));
    // Other loops of steps into one launch, where points of some axes never meet.
    pipeline.add(createInterchangeLoopsPass());
    // Chains of small sums into one too: while their axes are those of the equations. A tile that
    // is asked for is one of their products.
    if (options.tensorTile.empty())
      pipeline.add(createChainLaunchesPass());
  }
  // Loops that the host still runs: no copies between their steps, while axes are the tensors' own.
  pipeline.add(createRotateBuffersPass());
  // Scales of blocks of a sum stand beside the products, however they were written.
  if (options.target.isGpu())
    pipeline.add(createBlockScalesPass());
  // Products with a factor that data chooses for each row become products of rows of one factor.
  if (options.target.isGpu())
    pipeline.add(createGroupProductsPass());
  if (options.target.isGpu()) {
    // Sorts of long rows stand alone: what reads them is cut into pieces by the passes below.
    SplitSortsPassOptions sortOptions;
    sortOptions.target = options.target.text();
    sortOptions.wholeRows = !llvm::is_contained(options.disabled, "block-sorts");
    pipeline.addPreparation(createSplitSortsPass(sortOptions));
    // Convolutions read their images along runs of channels, their weights in that order.
    OrderWindowsPassOptions windowOptions;
    windowOptions.tensorTile = options.tensorTile;
    windowOptions.target = options.target.text();
    pipeline.add(createOrderWindowsPass(windowOptions));
    // What reduces a product's results begins in its tiles: while it has the product's axes.
    ReduceInTilesPassOptions partOptions;
    partOptions.tensorTile = options.tensorTile;
    partOptions.target = options.target.text();
    pipeline.addPreparation(createReduceInTilesPass(partOptions));
  }
  // Loops over keys whose few rows leave most of the machine idle, while their nests are as they
  // were made.
  if (options.target.isGpu()) {
    SplitTileLoopsPassOptions splitOptions;
    splitOptions.target = options.target.text();
    pipeline.addPreparation(createSplitTileLoopsPass(splitOptions));
  }
  // Vectors and parts for threads come from long axes.
  CollapseAxesPassOptions collapseOptions;
  collapseOptions.alike = options.target.isGpu();
  pipeline.add(createCollapseAxesPass(collapseOptions));
  if (options.target.isGpu()) {
    // Statistics in one pass over memory...
    pipeline.add(createFuseVariancesPass());
    // ...few points, many terms: more points...
    SplitReductionsPassOptions reductionOptions;
    reductionOptions.target = options.target.text();
    reductionOptions.tensorTile = options.tensorTile;
    reductionOptions.productReductions =
        !llvm::is_contained(options.disabled, productReductionStrategy().name());
    pipeline.add(createSplitReductionsPass(reductionOptions));
    // ...and what follows from them in a statement with points of its own.
    pipeline.add(createSpreadNestsPass());
    // Long scans that stand alone now, into tiles.
    pipeline.addPreparation(createSplitScansPass());
    pipeline.add(createSplitRecurrencesPass());
    // Scatters of which the last point counts: while both statements of their tables stand alone,
    // with the axes that they will have.
    pipeline.add(createFindLastWritersPass());
  }
  // What carries each axis.
  SchedulePassOptions scheduleOptions;
  scheduleOptions.target = options.target.text();
  scheduleOptions.tensorTile = options.tensorTile;
  scheduleOptions.without.assign(options.disabled.begin(), options.disabled.end());
  // A strategy counts as a pass that runs before its choice, and so does what can be taken of it.
  if (options.runs) {
    auto ask = [&](StringRef name) {
      if (!options.runs->shouldRun(name, ""))
        scheduleOptions.without.push_back(name.str());
    };
    for (const Strategy *strategy : strategies())
      if (strategy->isOptional())
        ask(strategy->name());
    for (const Strategy *strategy : strategies())
      llvm::for_each(strategy->switches(), ask);
  }
  pipeline.add(createSchedulePass(scheduleOptions));
  pipeline.endPhase(Phase::Schedule);
}

static void addPasses(PipelineBuilder &pipeline, const PipelineOptions &options, Phase stopAfter) {
  if (stopAfter >= Phase::Simplify)
    addSimplifyPasses(pipeline, options);
  if (stopAfter >= Phase::Fuse)
    addFusePasses(pipeline, options);
  if (stopAfter >= Phase::Schedule)
    addSchedulePasses(pipeline, options);
}

void tegula::buildPipeline(OpPassManager &manager, const PipelineOptions &options,
                           Phase stopAfter) {
  PipelineBuilder builder(&manager, options);
  addPasses(builder, options, stopAfter);
}

static std::vector<PipelinePass> passesOf(Machine machine) {
  PipelineOptions options;
  options.target = machine == Machine::GPU ? TargetInfo::gpu(90, true) : TargetInfo::host();
  PipelineBuilder builder(nullptr, options);
  addPasses(builder, options, Phase::Schedule);
  return std::move(builder.passes);
}

std::vector<PipelinePass> tegula::pipelinePasses() {
  std::vector<PipelinePass> all = passesOf(Machine::GPU);
  for (PipelinePass &pass : all)
    pass.onGpu = true;
  auto at = all.begin();
  for (PipelinePass &pass : passesOf(Machine::CPU)) {
    auto found = llvm::find_if(all, [&](const PipelinePass &one) { return one.name == pass.name; });
    if (found == all.end()) {
      pass.onGpu = false;
      found = all.insert(at, pass);
    }
    found->onCpu = true;
    at = std::next(found);
  }
  return all;
}

void tegula::instrument(PassManager &manager, const PipelineOptions &options, raw_ostream &stream) {
  if (!options.printAfter.empty()) {
    manager.getContext()->disableMultithreading();
    bool all = llvm::is_contained(options.printAfter, "all");
    std::vector<std::string> flags = options.printAfter;
    manager.enableIRPrinting([](Pass *, Operation *) { return false; },
                             [all, flags](Pass *pass, Operation *) {
                               return all || llvm::is_contained(flags, pass->getArgument());
                             },
                             /*printModuleScope=*/false, /*printAfterOnlyOnChange=*/false,
                             /*printAfterOnlyOnFailure=*/false, stream);
  }
  if (options.timing)
    manager.enableTiming();
  if (options.trace)
    manager.addInstrumentation(tracePasses(options.trace));
}

namespace {
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<bool> gpu{*this, "gpu", llvm::cl::desc("schedule for a GPU"), llvm::cl::init(false)};
  Option<std::string> stopAfter{*this, "stop-after", llvm::cl::desc("the last phase"),
                                llvm::cl::init("schedule")};
  ListOption<std::string> disable{*this, "disable", llvm::cl::desc("passes to leave out, by flag")};
};
} // namespace

/// Registers a pass whose instances count into `counters`.
template <typename Create>
static void registerCounted(Create create, const std::shared_ptr<Counters> &counters) {
  registerPass([create, counters] {
    std::unique_ptr<Pass> pass = create();
    if (auto *counted = dynamic_cast<CountedBase *>(pass.get()))
      counted->counters = counters;
    return pass;
  });
}

void tegula::registerTegulaPasses(const std::shared_ptr<Counters> &counters) {
  registerCounted([] { return createInlinePass(); }, counters);
  registerCounted([] { return createSpecializeSizesPass(); }, counters);
  registerCounted([] { return createSimplifyAccessesPass(); }, counters);
  registerCounted([] { return createEliminateDeadEquationsPass(); }, counters);
  registerCounted([] { return createEliminateCommonEquationsPass(); }, counters);
  registerCounted([] { return createOnlineSoftmaxPass(); }, counters);
  registerCounted([] { return createRecomputeProductsPass(); }, counters);
  registerCounted([] { return createRecomputePairsPass(); }, counters);
  registerCounted([] { return createBoundLoopsPass(); }, counters);
  registerCounted([] { return createCollapseTilesPass(); }, counters);
  registerCounted([] { return createChunkRecurrencesPass(); }, counters);
  registerCounted([] { return createHoistStepValuesPass(); }, counters);
  registerCounted([] { return createNarrowTemporariesPass(); }, counters);
  registerCounted([] { return createInlineReducedProductsPass(); }, counters);
  registerCounted([] { return createExpandReductionsPass(); }, counters);
  registerCounted([] { return createExpandScansPass(); }, counters);
  registerCounted([] { return createSumBeforeProductPass(); }, counters);
  registerCounted([] { return createDistributePass(); }, counters);
  registerCounted([] { return createDoubleBufferPass(); }, counters);
  registerCounted([] { return createFusePass(); }, counters);
  registerCounted([] { return createBlockScalesPass(); }, counters);
  registerCounted([] { return createGroupProductsPass(); }, counters);
  registerCounted([] { return createCollapseAxesPass(); }, counters);
  registerCounted([] { return createSplitResiduesPass(); }, counters);
  registerCounted([] { return createSplitPolyphasePass(); }, counters);
  registerCounted([] { return createSplitCasesPass(); }, counters);
  registerCounted([] { return createSplitQuotientsPass(); }, counters);
  registerCounted([] { return createOrderWindowsPass(); }, counters);
  registerCounted([] { return createReduceInTilesPass(); }, counters);
  registerCounted([] { return createBlockRowsPass(); }, counters);
  registerCounted([] { return createFuseVariancesPass(); }, counters);
  registerCounted([] { return createSplitReductionsPass(); }, counters);
  registerCounted([] { return createSpreadNestsPass(); }, counters);
  registerCounted([] { return createSplitScansPass(); }, counters);
  registerCounted([] { return createSplitRecurrencesPass(); }, counters);
  registerCounted([] { return createSplitTileLoopsPass(); }, counters);
  registerCounted([] { return createSplitSortsPass(); }, counters);
  registerCounted([] { return createOrderSumsPass(); }, counters);
  registerCounted([] { return createGatherRecurrencesPass(); }, counters);
  registerCounted([] { return createInterchangeLoopsPass(); }, counters);
  registerCounted([] { return createChainLaunchesPass(); }, counters);
  registerCounted([] { return createRotateBuffersPass(); }, counters);
  registerCounted([] { return createFindLastWritersPass(); }, counters);
  registerCounted([] { return createSchedulePass(); }, counters);
  registerCounted([] { return createVerifyPhasePass(); }, counters);
  PassPipelineRegistration<TextOptions>(
      "tgl-pipeline", "All passes of the phases simplify, fuse and schedule",
      [counters](OpPassManager &manager, const TextOptions &text) {
        PipelineOptions options;
        options.counters = counters;
        options.target = text.gpu ? TargetInfo::gpu(90, true) : TargetInfo::host();
        for (const std::string &name : text.disable)
          options.disabled.push_back(currentName(name).str());
        buildPipeline(manager, options, parsePhase(text.stopAfter).value_or(Phase::Schedule));
      });
}
