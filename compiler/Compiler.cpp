//===- Compiler.cpp - Compiles program text to a runnable kernel ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "compiler/Compiler.h"

#include "codegen/async/Async.h"
#include "codegen/common/AccessShape.h"
#include "codegen/cpu/EmitHost.h"
#include "codegen/cpu/HostTarget.h"
#include "codegen/emulate/Emulate.h"
#include "codegen/llvm/PassGate.h"
#include "codegen/ptx/Assemble.h"
#include "codegen/ptx/Ptx.h"
#include "compiler/CodeClass.h"
#include "compiler/EmitDevice.h"
#include "compiler/ParallelCodegen.h"
#include "compiler/TargetOptions.h"
#include "frontend/check/Signature.h"
#include "ir/tgl/Invariance.h"
#include "mlir/IR/Verifier.h"
#include "passes/tile/TilePipeline.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Threading.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>

using namespace llvm;
using namespace tegula;

char WrongOptionError::ID = 0;

/// Threads that make machine code of one kernel. More would mostly make the same elementary
/// functions.
static constexpr unsigned maxParts = 8;

namespace {

/// One compilation: each phase is a function that leaves its result in a member.
class Compilation {
public:
  Compilation(const tegula::Module &module, const CompileOptions &options, Diagnostics &diagnostics)
      : source(module), options(options), diagnostics(diagnostics),
        context(mlir::MLIRContext::Threading::DISABLED),
        messages(&context, [this](mlir::Diagnostic &said) { return note(said); }),
        kernel(std::make_unique<CompiledKernel>()), runs(options.pipeline.runs) {
    if (options.explain)
      mismatches = collectMismatches(context);
  }

  Expected<std::unique_ptr<CompiledKernel>> run() {
    kernel->target = options.target;
    time(Phase::Check, [&] { program = check(source, options.instance, diagnostics); });
    if (!program)
      return nullptr;
    keepTemporaries();
    kernel->name = program->name;
    kernel->constants = program->constants;
    if (options.stopAfter <= Phase::Check)
      return std::move(kernel);
    Signature signature(*source.entry(options.instance.kernel));
    if (const Signature::Parameter *missing = signature.missing(options.instance))
      return make_error<WrongOptionError>("kernel '" + kernel->name + "' needs " +
                                          Signature::howToGive(*missing));

    // On the CPU a tile is a matrix product of its own, and wants to be worth packing.
    EmitOptions emit = options.emit;
    if (!emit.tile)
      emit.tile = options.target == "cpu" ? 128 : 32;
    if (looksIntoTiles())
      emit.tile = 1;
    if (options.timeline && options.target != "cpu")
      addTimelineTensor();
    time(Phase::Emit, [&] { ir = emitIR(*program, source.sourceManager(), context, emit); });
    if (mlir::failed(mlir::verify(*ir)))
      return defect("emission made IR that does not verify");
    if (Error error = checkSizeNames())
      return std::move(error);
    keep("tgl");
    hideSizes();
    choose();
    kernel->work = KernelWork::count(*ir);
    if (options.stopAfter <= Phase::Emit)
      return std::move(kernel);

    if (options.stopAfter >= Phase::Lower)
      if (Error error = describe())
        return std::move(error);
    if (Error error = runPasses())
      return std::move(error);
    keep("scheduled");
    if (options.stopAfter >= Phase::Schedule && options.target != "cpu" && !honoursSchedule())
      return nullptr;
    if (options.listTiles)
      listTiles();
    if (mismatches)
      kernel->launches = explainLaunches(entry(), *matches, *mismatches);
    if (options.stopAfter < Phase::Lower)
      return std::move(kernel);

    bool isCpu = options.target == "cpu";
    if (!isCpu)
      if (Error error = placeTiles())
        return std::move(error);
    if (Error error = isCpu ? compileForHost() : compileForDevice())
      return std::move(error);
    if (refusesClusters)
      return nullptr;
    return std::move(kernel);
  }

private:
  /// Keeps what MLIR says of errors: it belongs to the defect, not on standard error.
  mlir::LogicalResult note(mlir::Diagnostic &said) {
    if (said.getSeverity() == mlir::DiagnosticSeverity::Error)
      heard += "\n" + said.str();
    return mlir::success();
  }

  Error defect(const Twine &what) {
    return createStringError(inconvertibleErrorCode(), what + heard);
  }

  void time(Phase phase, function_ref<void()> work) {
    auto start = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    kernel->times.push_back({toString(phase).str(), taken.count()});
  }

  void keepTemporaries() {
    for (checked::Tensor &tensor : program->tensors) {
      if (tensor.kind != checked::Tensor::Temp || !is_contained(options.keepTensors, tensor.name))
        continue;
      size_t before = program->body.size();
      erase_if(program->body, [&](const checked::Stmt *stmt) {
        return stmt->kind == checked::Stmt::TensorDef && stmt->tensor == &tensor;
      });
      if (program->body.size() == before)
        continue; // of a loop or a called kernel
      tensor.kind = checked::Tensor::Out;
      program->outputs.push_back(&tensor);
    }
  }

  /// What is looked at in a loop over tiles is what tiles of one element make [7.2].
  bool looksIntoTiles() {
    return any_of(program->observed,
                  [&](const checked::Observation *one) { return one->isInTiles; });
  }

  /// An inout that no statement uses: device functions take it for their marks.
  void addTimelineTensor() {
    checked::Tensor &tensor = program->tensors.emplace_back();
    tensor.kind = checked::Tensor::Inout;
    tensor.name = async::Timeline::tensorName;
    tensor.type = DType::I64;
    tensor.dims = {IndexExpr(async::Timeline::words)};
    tensor.span = program->span;
    program->inputs.push_back(&tensor);
  }

  unsigned argumentOf(const checked::Tensor *tensor) {
    return find_if(kernel->arguments,
                   [&](const KernelArgument &one) { return one.name == tensor->name; }) -
           kernel->arguments.begin();
  }

  void describeObservations() {
    const SourceManager &sources = source.sourceManager();
    for (const checked::Observation *one : program->observed) {
      KernelObservation &made = kernel->observations.emplace_back();
      made.statement = *one;
      auto [line, column] = sources.lineAndColumn(one->span.file, one->span.begin);
      made.place = (sources.name(one->span.file) + ":" + Twine(line) + ":" + Twine(column)).str();
      made.text = sources.text(one->span).str();
      made.happened = argumentOf(one->happened);
      kernel->arguments[made.happened].isObserved = true;
      auto observed = [&](const checked::Tensor *tensor) -> std::optional<unsigned> {
        if (!tensor)
          return std::nullopt;
        unsigned argument = argumentOf(tensor);
        kernel->arguments[argument].isObserved = true;
        return argument;
      };
      for (const checked::Observation::Value &value : one->values)
        made.values.push_back({observed(value.tensor), observed(value.isRead)});
    }
  }

  /// Settles the choice, and with it which passes run.
  void choose() {
    kernel->choice = options.choice;
    if (options.listTiles || options.tuned) {
      raw_string_ostream stream(kernel->program);
      ir->print(stream);
    }
    if (options.tuned)
      if (auto found = findTuned({kernel->program, options.sizes, options.target, options.device}))
        kernel->choice = *found;
    const PipelineOptions &pipeline = options.pipeline;
    std::vector<std::string> disabled = pipeline.disabled;
    disabled.insert(disabled.end(), kernel->choice.without.begin(), kernel->choice.without.end());
    if (!runs && !(disabled.empty() && pipeline.enabled.empty()))
      runs = std::make_shared<PassRuns>(disabled, PassRuns::all, std::vector<std::string>(),
                                        pipeline.enabled);
    if (runs)
      runs->begin();
  }

  /// Of the scheduled program.
  void listTiles() {
    ir->walk([&](tgl::ParallelOp op) {
      const StatementMatch *match = matches->find(op);
      StatementCost cost = match ? match->strategy.cost(*match) : StatementCost();
      if (cost.choices.empty())
        return;
      std::vector<TileOption> &options = kernel->tiles.emplace_back();
      for (const StatementCost::Choice &one : cost.choices)
        options.push_back({one.name, one.clocks});
    });
  }

  /// Of the `schedule` block everything holds, or it is a mistake of the program.
  bool honoursSchedule(function_ref<std::optional<Refusal>(const ScheduleSetting &)> whyNot) {
    bool holds = true;
    for (const checked::ScheduleSetting &setting : program->schedule) {
      auto refusal = whyNot({setting.keyword, setting.axis, setting.value.value_or(1)});
      if (!refusal)
        continue;
      holds = false;
      diagnostics.report(Code::BadSchedule, setting.span, refusal->message).note(refusal->note);
    }
    return holds;
  }
  bool honoursSchedule() {
    return honoursSchedule([&](const ScheduleSetting &setting) {
      return whyRefused(entry(), setting, targetOf(options, runs.get()), *matches);
    });
  }

  bool wants(StringRef stage) { return is_contained(options.keepStages, stage); }

  void keep(StringRef stage) {
    if (!wants(stage))
      return;
    raw_string_ostream stream(kernel->stages[stage.str()]);
    mlir::OpPrintingFlags flags;
    if (options.printLocations)
      flags.enableDebugInfo(true, /*prettyForm=*/false);
    ir->print(stream, flags);
    stream << '\n';
  }

  void keepLlvm(llvm::Module &code) {
    if (!wants("llvm"))
      return;
    raw_string_ostream stream(kernel->stages["llvm"]);
    code.print(stream, nullptr);
  }

  /// Nothing that an order of a sum follows from depends on sizes that `invariant` names, nor on
  /// the device's number of multiprocessors: of sizes no more is known than their class.
  void hideSizes() {
    tgl::Invariance invariance = tgl::Invariance::of(entry());
    if (invariance.isFree())
      return;
    mlir::Builder builder(&context);
    SmallVector<mlir::NamedAttribute> classes;
    for (mlir::Attribute attr : entry().getSizeAttrs()) {
      auto size = cast<tgl::SizeAttr>(attr);
      std::string name = size.getName().str();
      if (invariance.mayDecide(name))
        continue;
      if (auto given = options.sizes.find(name); given != options.sizes.end() && size.isBound())
        classes.push_back(builder.getNamedAttr(
            name, builder.getI64IntegerAttr(tgl::Invariance::classOf(given->second))));
      options.sizes.erase(name);
      kernel->invariantSizes.push_back(name);
    }
    if (!classes.empty())
      entry()->setAttr(tgl::Invariance::classesName, builder.getDictionaryAttr(classes));
    options.emulatedMultiprocessors = TargetInfo::measured().multiprocessors;
    // Code for other addresses would add in another order.
    constexpr unsigned ofVectors = 16;
    if (options.target != "cpu")
      options.alignment = std::max(options.alignment, ofVectors);
  }

  Error checkSizeNames() {
    for (const auto &[name, value] : options.sizes)
      if (none_of(entry().getSizeAttrs(), [&](mlir::Attribute attr) {
            return cast<tgl::SizeAttr>(attr).getName() == name;
          }))
        return make_error<WrongOptionError>("kernel '" + kernel->name + "' has no size '" + name +
                                            "'");
    return Error::success();
  }

  Error runPasses() {
    PipelineOptions pipeline = options.pipeline;
    pipeline.runs = runs;
    pipeline.target = targetOf(options, runs.get());
    pipeline.sizes = options.sizes;
    pipeline.matches = matches;
    if (std::string tiles = kernel->choice.tensorTile(); !tiles.empty())
      pipeline.tensorTile = tiles;
    mlir::PassManager manager(&context);
    buildPipeline(manager, pipeline, std::min(options.stopAfter, Phase::Schedule));
    instrument(manager, pipeline);
#ifdef NDEBUG
    manager.enableVerifier(false); // once below; after each pass it is a tenth of the time of all
#endif
    bool good = true;
    time(std::min(options.stopAfter, Phase::Schedule),
         [&] { good = mlir::succeeded(manager.run(*ir)) && mlir::succeeded(mlir::verify(*ir)); });
    return good ? Error::success() : defect("a pass failed");
  }

  /// Kernels of the tile dialect, of statements for which the schedule chose such.
  Error placeTiles() {
    PipelineOptions pipeline = options.pipeline;
    pipeline.runs = runs;
    pipeline.target = targetOf(options, runs.get());
    pipeline.matches = matches;
    bool good = true;
    auto runManager = [&](auto build) {
      mlir::PassManager manager(&context);
      build(manager, pipeline);
      instrument(manager, pipeline);
      good = good && mlir::succeeded(manager.run(*ir));
    };
    time(Phase::Lower, [&] { runManager(buildTilePipeline); });
    keep("tile");
    time(Phase::Lower, [&] { runManager(buildPlacePipeline); });
    keep("placed");
    return good ? Error::success() : defect("a pass over tiles failed");
  }

  tgl::KernelOp entry() {
    for (tgl::KernelOp op : ir->getOps<tgl::KernelOp>())
      if (!op.isCalled())
        return op;
    llvm_unreachable("emission makes one public kernel");
  }

  static std::vector<IndexExpr> dimsOf(tgl::TglTensorType type) {
    std::vector<IndexExpr> dims;
    for (tgl::IndexExprAttr dim : type.getDims())
      dims.push_back(dim.getExpr());
    return dims;
  }

  Error describe() {
    tgl::KernelOp op = entry();
    for (auto [index, type] : enumerate(op.getArgumentTypes())) {
      KernelArgument argument;
      argument.name = op.getArgName(index).str();
      StringRef role = op.getArgRole(index);
      argument.role = role == "in"      ? KernelArgument::In
                      : role == "inout" ? KernelArgument::Inout
                      : role == "out"   ? KernelArgument::Out
                                        : KernelArgument::Scalar;
      auto tensor = dyn_cast<tgl::TglTensorType>(type);
      argument.dtype = *dtypeOf(tensor ? tensor.getElementType() : type);
      argument.declared = argument.dtype;
      if (auto declared = op.getArgAttrOfType<mlir::TypeAttr>(index, "tgl.type"))
        argument.declared = *dtypeOf(declared.getValue());
      if (tensor)
        argument.dims = dimsOf(tensor);
      argument.isObserved = argument.name == async::Timeline::tensorName;
      kernel->arguments.push_back(std::move(argument));
    }
    describeObservations();
    std::vector<SizeSpec> sizes;
    std::vector<GuardSpec> guards;
    launchSpecs(op, sizes, guards);
    for (const auto &[name, value] : options.sizes) {
      GuardSpec guard;
      guard.kind = GuardSpec::Zero;
      guard.lhs = IndexExpr::symbol(name) - value;
      guard.message = name + " is not " + std::to_string(value) + ", for which the code was made";
      guards.push_back(std::move(guard));
    }
    std::string message;
    std::optional<LaunchChecks> checks =
        LaunchChecks::make(std::move(sizes), std::move(guards), message);
    if (!checks)
      return defect(message);
    kernel->checks = std::make_unique<LaunchChecks>(std::move(*checks));
    return Error::success();
  }

  void addSites(ArrayRef<ErrorSite> sites) {
    for (const ErrorSite &site : sites)
      kernel->errorSites.push_back({site.text, placeOf(site.loc), site.tensor,
                                    site.type ? dimsOf(site.type) : std::vector<IndexExpr>(),
                                    site.isDefect, site.isUnsigned});
  }

  /// What `emit` makes in `code`, which is then LLVM IR that verifies.
  template <typename Code>
  Expected<Code> lowerTo(llvm::Module &code, function_ref<Expected<Code>()> emit) {
    std::optional<Expected<Code>> lowered;
    time(Phase::Lower, [&] { lowered.emplace(emit()); });
    if (!*lowered)
      return defect(toString(lowered->takeError()));
    std::string failure;
    raw_string_ostream stream(failure);
    if (verifyModule(code, &stream))
      return defect("lowering made LLVM IR that does not verify: " + failure);
    if (Error error = async::verifyAsync(code))
      return defect("lowering made LLVM IR that does not wait for what it starts: " +
                    toString(std::move(error)));
    return std::move(*lowered);
  }

  Error compileForHost() {
    std::optional<HostTarget> named;
    if (!options.processor.empty() && !(named = HostTarget::named(options.processor)))
      return createStringError("LLVM knows no processor '" + options.processor + "'");
    const HostTarget &host = named ? *named : HostTarget::get();
    std::unique_ptr<TargetMachine> machine = host.createMachine();
    LLVMContext llvmContext;
    PassGate gate(llvmContext, runs.get());
    collectErrors(llvmContext, heard);
    llvm::Module code(kernel->name, llvmContext);
    applyTarget(code, host, *machine);
    EmitterOptions emitter;
    emitter.vectorBytes = host.vectorBytes;
    emitter.checked = options.checked;
    emitter.evenProved = options.evenProved;
    Expected<HostCode> lowered =
        lowerTo<HostCode>(code, [&] { return emitHost(entry(), code, emitter); });
    if (!lowered)
      return lowered.takeError();
    addSites(lowered->sites);
    for (const TemporaryInfo &temporary : lowered->temporaries)
      kernel->temporaries.push_back({temporary.name, *dtypeOf(temporary.type.getElementType()),
                                     dimsOf(temporary.type), tensorBytes(temporary.type, 64)});
    Expected<std::unique_ptr<LoadedCode>> loaded = nullptr;
    time(Phase::Assemble, [&] {
      if (wants("llvm") || wants("asm")) { // of the whole
        std::unique_ptr<llvm::Module> whole = CloneModule(code);
        optimize(*whole, *machine);
        keepLlvm(*whole);
        if (wants("asm"))
          kernel->stages["asm"] = emitAssembly(*whole, *machine);
      }
      if (options.stopAfter < Phase::Assemble)
        return;
      // The order of runs is told where somebody notes them.
      unsigned threads = options.pipeline.runs ? 1 : hardware_concurrency().compute_thread_count();
      std::vector<std::unique_ptr<MemoryBuffer>> objects =
          assembleInParallel(code, host, std::min(threads, maxParts), heard);
      if (heard.empty())
        loaded = LoadedCode::load(std::move(objects));
    });
    if (!loaded)
      return loaded.takeError();
    if (!heard.empty())
      return defect("LLVM reports");
    if (options.stopAfter < Phase::Assemble)
      return Error::success();
    kernel->code = std::move(*loaded);
    Expected<void *> symbol = kernel->code->lookup(lowered->function);
    if (!symbol)
      return symbol.takeError();
    kernel->entry = reinterpret_cast<KernelFunction>(*symbol);
    return Error::success();
  }

  /// What would run beside tiles, for other addresses and beyond 31 bits, adds in another order.
  static void leaveTilesAlone(std::vector<PlanStep> &steps) {
    for (PlanStep &step : steps) {
      leaveTilesAlone(step.body);
      if (!step.tiles.launches.empty())
        step.byThread = step.byTeam = PlanFunction();
    }
  }

  Error compileForDevice() {
    bool isEmulated = options.target == "emulate";
    Expected<std::unique_ptr<TargetMachine>> machine = createDeviceMachine(deviceOf(options));
    if (!machine)
      return machine.takeError();
    LLVMContext llvmContext;
    PassGate gate(llvmContext, runs.get());
    collectErrors(llvmContext, heard);
    llvm::Module code(kernel->name, llvmContext);
    applyDeviceTarget(code, **machine);
    EmitterOptions emitter = deviceOptionsOf(options, runs.get());
    kernel->alignment = options.alignment;
    Expected<DeviceCode> lowered =
        lowerTo<DeviceCode>(code, [&] { return emitDevice(entry(), code, emitter, *matches); });
    if (!lowered)
      return lowered.takeError();
    refusesClusters = !options.checked && !honoursSchedule([&](const ScheduleSetting &setting) {
      return whyRefused(entry(), setting, targetOf(options, runs.get()), *matches,
                        lowered->clusters);
    });
    if (refusesClusters)
      return Error::success();
    addSites(lowered->sites);
    if (options.timeline)
      kernel->timeline = async::markTimeline(code);
    kernel->plan = std::move(lowered->plan);
    kernel->choice.apply(kernel->plan);
    kernel->layouts = std::move(lowered->layouts);
    kernel->rows = std::move(lowered->rows);
    kernel->plan.dependentLaunches = emitter.dependentLaunches;
    if (!kernel->invariantSizes.empty())
      leaveTilesAlone(kernel->plan.steps);
    if (options.stopAfter < Phase::EmitPtx) {
      keepLlvm(code);
      return Error::success();
    }
    time(Phase::EmitPtx, [&] {
      if (isEmulated) { // runs the whole
        optimizeForDevice(code, **machine);
        return keepLlvm(code);
      }
      if (wants("llvm")) {
        std::unique_ptr<llvm::Module> whole = CloneModule(code);
        optimizeForDevice(*whole, **machine);
        keepLlvm(*whole);
      }
      // The order of runs is told where somebody notes them.
      unsigned threads = options.pipeline.runs ? 1 : hardware_concurrency().compute_thread_count();
      kernel->ptx = emitPtxInParallel(code, options.target, threads, runs.get(), heard);
    });
    if (!heard.empty())
      return defect("LLVM reports");
    if (options.stopAfter < Phase::Assemble)
      return Error::success();
    Error error = Error::success();
    if (isEmulated) {
      time(Phase::Assemble, [&] {
        Expected<std::unique_ptr<EmulatedCode>> emulated =
            emulate(code, targetOf(options, nullptr).sharedBytes);
        if (emulated)
          kernel->emulated = std::move(*emulated);
        else
          error = joinErrors(std::move(error), emulated.takeError());
      });
      return error;
    }
    time(Phase::Assemble, [&] {
      Expected<Cubin> cubin = assemble(kernel->ptx, options.target);
      if (!cubin) {
        error = joinErrors(std::move(error), cubin.takeError());
        return;
      }
      kernel->cubin = std::move(cubin->image);
      kernel->assemblerLog = std::move(cubin->log);
      kernel->assembler = std::move(cubin->assembler);
    });
    return error;
  }

  const tegula::Module &source;
  CompileOptions options;
  Diagnostics &diagnostics;
  mlir::MLIRContext context;
  bool refusesClusters = false; // that the program asks for
  std::string heard;            // errors of MLIR and LLVM, a line each
  mlir::ScopedDiagnosticHandler messages;
  std::shared_ptr<std::vector<CollectedRemark>> mismatches; // with CompileOptions::explain
  std::unique_ptr<CompiledKernel> kernel;
  std::shared_ptr<PassRuns> runs; // null: every pass runs
  std::unique_ptr<checked::Program> program;
  mlir::OwningOpRef<mlir::ModuleOp> ir;
  std::shared_ptr<StatementMatches> matches = std::make_shared<StatementMatches>(); // of `ir`
};
} // namespace

Expected<std::unique_ptr<CompiledKernel>> tegula::compileKernel(const tegula::Module &module,
                                                                const CompileOptions &options,
                                                                Diagnostics &diagnostics) {
  return Compilation(module, options, diagnostics).run();
}

int64_t tegula::codeClass(const CompiledKernel &kernel, StringRef size, int64_t value) {
  return is_contained(kernel.invariantSizes, size) ? tgl::Invariance::classOf(value) : value;
}
