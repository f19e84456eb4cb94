//===- Differential.cpp - tegula-differential: random programs, compared ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each seed is a program (Generate.h). It must parse, check and verify after emission; the
// interpreter must give one result whatever the tile size and the order of points. With --tiles
// compiled code for a device must give what compiled code for the CPU does.
//
//===----------------------------------------------------------------------===//
#include "DifferentialPieces.h"
#include "Generate.h"
#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/lower/EmitIR.h"
#include "ir/interpreter/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipeline.h"
#include "runtime/Launch.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <deque>
#include <sys/wait.h>
#include <unistd.h>

using namespace tegula;
using namespace tegula::fuzz;
namespace cl = llvm::cl;

static cl::opt<uint64_t> firstSeed("start", cl::desc("First seed"), cl::init(1));
static cl::opt<uint64_t> count("count", cl::desc("Number of programs"), cl::init(1000));
static cl::opt<bool> verbose("v", cl::desc("Print each program"));
static cl::opt<bool>
    checkedMode("checked", cl::desc("Compile so that every access and definition is verified"));
static cl::opt<bool> tiled(
    "tiles",
    cl::desc("Programs of what a device does in tiles; compiled code is held against the CPU's"));
static cl::opt<bool> loops("loops", cl::desc("Programs of a loop over steps that changes states"));
static cl::opt<bool>
    accesses("accesses",
             cl::desc("Programs of subscripts, ranges and conditions over integers from "
                      "data, near the ends of their types"));
static cl::opt<bool> pieces(
    "pieces",
    cl::desc("Programs over a batch that say that its size is invariant; pieces of the batch "
             "get the bits that they get in all of it"));
static cl::opt<bool>
    evenProved("even-proved", cl::desc("Compile so that every access that was proved is verified"));
static cl::opt<bool>
    observed("observed",
             cl::desc("Compile so that every statement and value is looked at, as print, assert, "
                      "--checked=finite and --step do: results stay as they are"));
static cl::opt<bool>
    runOnly("run-only", cl::desc("Interpret nothing: what compiled code says of itself counts"));
static cl::opt<unsigned> jobs("jobs", cl::desc("Processes that share the seeds"), cl::init(1));
static cl::opt<bool> interpretOnly("interpret-only", cl::desc("Compile nothing"));
static cl::opt<std::string>
    target("target", cl::value_desc("cpu|cuda|emulate"), cl::init("cpu"),
           cl::desc("What compiled code runs on; the emulator in another order for each "
                    "program"));
static cl::opt<std::string> processor("processor",
                                      cl::desc("Compile for this processor (LLVM's name)"));
static cl::opt<unsigned> maxFailures("max-failures", cl::desc("Stop after so many"), cl::init(10));

namespace {

/// Bytes, as of the sizes of a launch's own code (runtime/Launch.h).
constexpr size_t specialAlignment = DeviceKernel::specialAlignment;

/// The tensors that an observed kernel writes.
class ObservedTensors {
public:
  /// One whose shape follows from the sizes, which no such tensor gives.
  LaunchArgument unknown(const KernelArgument &argument) {
    LaunchArgument tensor;
    tensor.dtype = argument.dtype;
    tensor.shape = shapes.emplace_back(argument.dims.size());
    return tensor;
  }
  void make(const CompiledKernel &kernel, const Binding &binding,
            llvm::MutableArrayRef<LaunchArgument> arguments) {
    for (auto [expected, argument, tensor] :
         llvm::zip_equal(kernel.arguments, arguments, binding.arguments))
      if (expected.isObserved) {
        argument.shape = tensor.shape;
        argument.data = zeros.emplace_back(tensor.bytes / 8 + 1).data();
      }
  }

private:
  std::deque<std::vector<int64_t>> shapes;
  std::deque<std::vector<uint64_t>> zeros;
};

/// One program through all stages; an empty message where everything agrees.
class Run {
public:
  /// Compiled code runs on `device`, or on the CPU where there is none.
  Run(uint64_t seed, std::shared_ptr<CudaDevice> device)
      : seed(seed), device(std::move(device)), program(accesses ? generateAccessProgram(seed)
                                                       : tiled  ? generateTiledProgram(seed)
                                                       : loops  ? generateLoopProgram(seed)
                                                       : pieces ? generateBatchProgram(seed)
                                                                : generateProgram(seed)) {}
  std::string operator()();
  const std::string &text() const { return program.text; }
  /// Whether compiled code ran: the checker may refuse programs of accesses, and a launch their
  /// sizes. Of pieces, whether there was anything to compare: a batch of one has none.
  bool hasRun() const { return didRun; }

private:
  std::vector<HostTensor> makeInputs();
  std::vector<HostTensor> makeOutputs();
  std::string interpretAll(const checked::Program &checked, const SourceManager &sources);
  /// `isCompiledNext`: this is the IR that runCompiled() runs.
  std::string interpretOne(mlir::ModuleOp module, llvm::StringRef name, bool reversePoints,
                           bool isCompiledNext);
  std::string runCompiled(const Module &module, Diagnostics &diagnostics, llvm::StringRef target);
  llvm::Error runOnDevice(const CompiledKernel &kernel, llvm::ArrayRef<LaunchArgument> arguments,
                          llvm::ArrayRef<int64_t> sizes);
  /// The first result is what later ones are held against.
  std::string agree(std::vector<HostTensor> got);
  std::string compare(llvm::ArrayRef<HostTensor> expected, llvm::ArrayRef<HostTensor> got);
  std::string diagnosticsText(const Diagnostics &diagnostics);

  uint64_t seed;
  std::shared_ptr<CudaDevice> device;
  GeneratedProgram program;
  std::vector<HostTensor> inputs, expected;
  bool isRefused = false; ///< a guard does not hold
  bool didRun = false;
  /// A subscript from data, or one behind a condition on data, leaves its tensor: the results are
  /// defined (0 is read, a write is dropped), and the run says so. Passes may drop what nobody
  /// reads with its message, so a stage may say less than the one before, never more.
  bool reports = false;
};

} // namespace

std::vector<HostTensor> Run::makeInputs() {
  std::vector<HostTensor> inputs;
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  auto below = [&](uint64_t count) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % count;
  };
  for (const GeneratedTensor &input : program.inputs) {
    DType type = *parseDType(input.type);
    HostTensor tensor(type, input.shape);
    for (int64_t n = 0; n < tensor.numElements(); ++n) {
      int64_t range = input.hi - input.lo;
      double value = isFloat(type) ? input.lo + 0.5 * static_cast<double>(below(2 * range + 1))
                                   : static_cast<double>(input.lo + int64_t(below(range + 1)));
      if (input.special && isFloat(type) && below(input.specialEvery) == 0) {
        static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0};
        value = specials[below(4)];
      }
      if (input.values.empty())
        tensor.set(n, value);
      else
        storeInteger(type, tensor.data(), tensor.position(n),
                     input.values[below(input.values.size())]);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

std::vector<HostTensor> Run::makeOutputs() {
  std::vector<HostTensor> outputs;
  for (const GeneratedTensor &output : program.outputs) {
    if (output.isInout)
      continue;
    outputs.emplace_back(*parseDType(output.type), output.shape);
    llvm::fill(outputs.back().bytes, 0xA5); // what is not written shows
  }
  return outputs;
}

std::string Run::diagnosticsText(const Diagnostics &diagnostics) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics.all())
    if (diagnostic.severity == Severity::Error) {
      auto [line, column] =
          diagnostics.sourceManager().lineAndColumn(diagnostic.span.file, diagnostic.span.begin);
      text += llvm::formatv("{0}:{1}: {2}: {3}\n", line, column, codeInfo(diagnostic.code).code,
                            diagnostic.message);
    }
  return text;
}

std::string Run::compare(llvm::ArrayRef<HostTensor> expected, llvm::ArrayRef<HostTensor> got) {
  if (expected.size() != got.size())
    return "another number of outputs";
  for (auto [output, a, b] : llvm::zip_equal(program.outputs, expected, got)) {
    if (a.shape != b.shape)
      return output.name + " has another shape";
    for (int64_t n = 0; n < a.numElements(); ++n) {
      double x = a.get(n), y = b.get(n);
      bool same =
          x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= output.tolerance;
      if (!same)
        return llvm::formatv("{0}, element {1}: {2} and {3}, at most {4} apart expected",
                             output.name, n, x, y, output.tolerance);
    }
  }
  return "";
}

std::string Run::agree(std::vector<HostTensor> got) {
  if (expected.empty()) {
    expected = std::move(got);
    return "";
  }
  return compare(expected, got);
}

std::string Run::interpretOne(mlir::ModuleOp module, llvm::StringRef name, bool reversePoints,
                              bool isCompiledNext) {
  if (mlir::failed(mlir::verify(module)))
    return "the verifier fails";
  InterpreterOptions options;
  options.reversePoints = reversePoints;
  llvm::StringMap<int64_t> sizes;
  for (const auto &[size, value] : program.sizes)
    sizes[size] = value;
  llvm::SmallVector<InterpreterScalar> scalars;
  for (const GeneratedScalar &scalar : program.scalars)
    scalars.push_back(isFloat(*parseDType(scalar.type)) ? InterpreterScalar(scalar.value)
                                                        : InterpreterScalar(scalar.asInteger()));
  InterpreterResult result = interpret(llvm::cast<tgl::KernelOp>(module.lookupSymbol(name)), inputs,
                                       sizes, scalars, options);
  bool refuses = !result.ok() && result.errors.front().kind == InterpreterError::Guard;
  if (expected.empty() && refuses)
    isRefused = true;
  if (refuses && isRefused)
    return "";
  bool isFirst = expected.empty();
  for (const InterpreterError &error : result.errors)
    if (error.kind != InterpreterError::BadSubscript || !(isFirst || reports))
      return "the interpreter says: " + error.message;
  if (isFirst || isCompiledNext)
    reports = !result.ok();
  return agree(std::move(result.outputs));
}

std::string Run::interpretAll(const checked::Program &checked, const SourceManager &sources) {
  mlir::MLIRContext context;
  // What is compiled next comes last: of device code, tiles of 32.
  bool isDevice = target != "cpu";
  for (int64_t tile : isDevice ? std::array{1, 2, 32} : std::array{1, 32, 2}) {
    EmitOptions options;
    options.tile = tile;
    mlir::OwningOpRef<mlir::ModuleOp> ir = emitIR(checked, sources, context, options);
    std::string message =
        interpretOne(*ir, checked.name, /*reversePoints=*/tile == 2, /*isCompiledNext=*/false);
    if (!message.empty())
      return llvm::formatv("emitted with tiles of {0}: {1}", tile, message);
    if (tile == 1)
      continue;
    mlir::PassManager manager(&context);
    PipelineOptions pipeline;
    if (tile != 2)
      pipeline.target = TargetInfo::gpu(90, true);
    buildPipeline(manager, pipeline);
    if (mlir::failed(manager.run(*ir)))
      return "the pipeline fails";
    message = interpretOne(*ir, checked.name, /*reversePoints=*/tile == 2,
                           /*isCompiledNext=*/tile == (isDevice ? 32 : 2));
    if (!message.empty())
      return llvm::formatv("scheduled with tiles of {0}: {1}", tile, message);
  }
  return "";
}

/// Tensors travel there, also the outputs' poison, and back; each in an allocation of its own.
llvm::Error Run::runOnDevice(const CompiledKernel &kernel, llvm::ArrayRef<LaunchArgument> arguments,
                             llvm::ArrayRef<int64_t> sizes) {
  auto loaded = DeviceKernel::load(kernel, device);
  if (!loaded)
    return loaded.takeError();
  llvm::SmallVector<LaunchArgument> there(arguments);
  llvm::SmallVector<uint64_t> bytes;
  llvm::scope_exit release([&] {
    for (LaunchArgument &argument : there)
      if (argument.data)
        device->free(reinterpret_cast<DeviceAddress>(argument.data));
  });
  for (LaunchArgument &argument : there) {
    void *here = std::exchange(argument.data, nullptr);
    bytes.push_back(here ? *storageBytes(argument.dtype, argument.shape) : 0);
    if (!bytes.back())
      continue;
    auto address = device->allocate(bytes.back());
    if (!address)
      return address.takeError();
    argument.data = reinterpret_cast<void *>(*address);
    if (llvm::Error error = device->copyToDevice(*address, here, bytes.back()))
      return error;
  }
  auto binding = (*loaded)->bind(sizes);
  if (!binding)
    return binding.takeError();
  if (llvm::Error error = (*loaded)->run(there, *binding))
    return error;
  // A subscript that is reported leaves results as well.
  llvm::Error result = (*loaded)->synchronize();
  for (auto [argument, copy, size] : llvm::zip_equal(arguments, there, bytes))
    if (size)
      result = llvm::joinErrors(
          std::move(result),
          device->copyToHost(argument.data, reinterpret_cast<DeviceAddress>(copy.data), size));
  return result;
}

std::string Run::runCompiled(const Module &module, Diagnostics &diagnostics,
                             llvm::StringRef target) {
  CompileOptions options;
  options.processor = processor;
  options.checked = checkedMode;
  options.evenProved = evenProved;
  if (observed) {
    options.instance.observe = options.instance.trace = true;
    options.instance.watch = InstanceOptions::Watch::NonFinite;
  }
  bool isCpu = target == "cpu";
  options.target = target == "cuda" ? device->info().target() : target.str();
  options.pipeline.tensorTile = program.tile;
  bool isEmulated = options.target == "emulate";
  // Of device code for any sizes the launch's checks are enough where code for these sizes follows.
  bool isSpecialized = isEmulated && (tiled ? seed % 8 != 0 : seed % 2);
  if (isSpecialized)
    options.stopAfter = Phase::Lower;
  auto kernel = compileKernel(module, options, diagnostics);
  if (!kernel)
    return "compiling: " + llvm::toString(kernel.takeError());
  std::vector<HostTensor> outputs = makeOutputs(), given = inputs; // inouts change
  llvm::SmallVector<LaunchArgument> arguments;
  // Where nothing else is asked tensors begin where vectors do.
  std::vector<std::vector<uint8_t>> memory;
  auto add = [&](HostTensor &tensor) {
    size_t element = std::max(1u, bitWidth(tensor.dtype) / 8),
           gap = program.isShifted ? element : 0;
    memory.emplace_back(tensor.bytes.size() + gap + specialAlignment);
    uint8_t *first = memory.back().data();
    first += llvm::offsetToAlignedAddr(first, llvm::Align(specialAlignment)) + gap;
    llvm::copy(tensor.bytes, first);
    LaunchArgument argument;
    argument.data = first;
    argument.dtype = tensor.dtype;
    argument.shape = tensor.shape;
    arguments.push_back(std::move(argument));
  };
  size_t nextOutput = 0;
  ObservedTensors hidden;
  for (const KernelArgument &argument : (*kernel)->arguments) {
    if (argument.isObserved)
      arguments.push_back(hidden.unknown(argument));
    if (argument.role == KernelArgument::Out)
      add(outputs[nextOutput++]);
    for (auto [input, tensor] : llvm::zip_equal(program.inputs, given))
      if (input.name == argument.name)
        add(tensor);
    for (const GeneratedScalar &scalar : program.scalars)
      if (scalar.name == argument.name) {
        LaunchArgument number;
        number.dtype = argument.dtype;
        number.number = scalar.value;
        number.integer = scalar.asInteger();
        arguments.push_back(number);
      }
  }
  auto sizes = bindSizes(**kernel, arguments);
  auto binding = sizes ? bind(**kernel, *sizes) : sizes.takeError();
  if (binding)
    hidden.make(**kernel, *binding, arguments);
  llvm::Error refusal =
      binding ? checkArguments(**kernel, arguments, *binding) : binding.takeError();
  if (refusal) {
    std::string reason = llvm::toString(std::move(refusal));
    return isRefused || runOnly ? "" : "the launch is refused: " + reason;
  }
  if (isRefused)
    return "the launch is not refused";
  if (isSpecialized) {
    options.stopAfter = Phase::Assemble;
    if (!program.isShifted)
      options.alignment = specialAlignment;
    for (auto [spec, value] : llvm::zip_equal((*kernel)->checks->sizes(), *sizes))
      options.sizes[spec.name] = value;
    kernel = compileKernel(module, options, diagnostics);
    if (!kernel)
      return "compiling for the sizes: " + llvm::toString(kernel.takeError());
  }
  didRun = true;
  bool didReport = false;
  std::string wrong;
  EmulatorOptions emulator;
  emulator.seed = seed;
  llvm::Error ran = isCpu        ? runOnHost(**kernel, arguments, *binding)
                    : isEmulated ? runEmulated(**kernel, arguments, *binding, emulator)
                                 : runOnDevice(**kernel, arguments, *sizes);
  auto collect = [&](HostTensor &tensor, const void *from) {
    if (!tensor.bytes.empty())
      std::memcpy(tensor.data(), from, tensor.bytes.size());
  };
  nextOutput = 0;
  for (auto [argument, launched] : llvm::zip_equal((*kernel)->arguments, arguments)) {
    if (argument.role == KernelArgument::Out)
      collect(outputs[nextOutput++], launched.data);
    for (auto [input, tensor] : llvm::zip_equal(program.inputs, given))
      if (input.name == argument.name && input.isInout)
        collect(tensor, launched.data);
  }
  llvm::handleAllErrors(
      std::move(ran),
      [&](const LaunchError &error) {
        didReport = error.kind == LaunchError::WrongResult;
        if (!didReport || !(reports || runOnly))
          wrong = "running: " + error.message;
      },
      [&](const llvm::ErrorInfoBase &error) { wrong = "running: " + error.message(); });
  if (!wrong.empty() || runOnly)
    return wrong;
  if (reports && !didReport)
    return "running reports no subscript";
  std::vector<HostTensor> results;
  for (auto [input, tensor] : llvm::zip_equal(program.inputs, given))
    if (input.isInout)
      results.push_back(std::move(tensor));
  std::move(outputs.begin(), outputs.end(), std::back_inserter(results));
  return agree(std::move(results));
}

std::string Run::operator()() {
  if (pieces) {
    CompileOptions options;
    options.target = target;
    return comparePieces(program, options, seed, didRun);
  }
  SourceManager sources;
  Diagnostics diagnostics(sources);
  std::unique_ptr<Module> module =
      openModule(sources, sources.add("random.tgl", program.text), diagnostics);
  if (diagnostics.hasErrors())
    return "parser: " + diagnosticsText(diagnostics);
  std::unique_ptr<checked::Program> checked = check(*module, {}, diagnostics);
  if (!checked)
    return accesses ? "" : "checker: " + diagnosticsText(diagnostics);
  inputs = makeInputs();
  if (runOnly)
    return runCompiled(*module, diagnostics, target);
  // Large programs would be interpreted for minutes.
  std::string message =
      tiled ? runCompiled(*module, diagnostics, "cpu") : interpretAll(*checked, sources);
  if (message.empty() && !interpretOnly && !(tiled && target == "cpu"))
    message = runCompiled(*module, diagnostics, target);
  return message;
}

/// Every `step`-th seed from `first` on. The exit code.
static int runSeeds(uint64_t first, unsigned step, const std::shared_ptr<CudaDevice> &device) {
  unsigned failures = 0, ran = 0, tried = 0;
  for (uint64_t seed = first; seed < firstSeed + count && failures < maxFailures;
       seed += step, ++tried) {
    Run run(seed, device);
    if (verbose)
      llvm::outs() << "# seed " << seed << "\n" << run.text() << "\n";
    std::string message;
    llvm::CrashRecoveryContext recovery; // one crash does not hide what the other seeds find
    if (!recovery.RunSafely([&] { message = run(); }))
      message = "crash";
    ran += run.hasRun();
    if (message.empty())
      continue;
    ++failures;
    llvm::outs() << "seed " << seed << ": " << message << "\n";
    llvm::outs().flush();
  }
  llvm::outs() << tried << " programs, ";
  if (!interpretOnly)
    llvm::outs() << ran << " of them run, ";
  llvm::outs() << failures << " failures\n";
  // The checker and the launches' checks refuse some of these programs, and some have no pieces;
  // were it most, nothing would be tested.
  unsigned enough = pieces ? 5 : 50;
  if (!interpretOnly && tried >= enough && failures < maxFailures && 2 * ran < tried) {
    llvm::outs() << "too few programs ran\n";
    return 1;
  }
  return failures != 0;
}

/// The seeds, shared by processes, each of which says what it finds.
static int runInProcesses() {
  llvm::outs().flush();
  std::vector<pid_t> children;
  for (unsigned job = 0; job < jobs; ++job) {
    pid_t child = fork();
    if (child == 0) {
      int code = runSeeds(firstSeed + job, jobs, nullptr);
      llvm::outs().flush();
      _exit(code);
    }
    if (child > 0)
      children.push_back(child);
  }
  bool failed = children.size() != jobs;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  llvm::outs() << count << " programs in " << jobs
               << " processes: " << (failed ? "failures" : "no failure") << "\n";
  return failed;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "Compares what the compiler's stages make of random "
                              "programs\n");
  llvm::CrashRecoveryContext::Enable();
  if (target != "cpu" && target != "cuda" && target != "emulate") {
    llvm::errs() << "--target takes cpu, cuda or emulate, not '" << target << "'\n";
    return 2;
  }
  if (jobs > 1 && target == "cuda") {
    llvm::errs() << "--jobs is for targets that processes do not share\n";
    return 2;
  }
  std::shared_ptr<CudaDevice> device;
  if (target == "cuda") {
    auto opened = CudaDevice::open();
    if (!opened) {
      llvm::errs() << llvm::toString(opened.takeError()) << '\n';
      return 3;
    }
    device = *opened;
  }
  return jobs > 1 ? runInProcesses() : runSeeds(firstSeed, 1, device);
}
