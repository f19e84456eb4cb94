//===- Run.cpp - tegula run -------------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Pieces.h"
#include "bench/Repeat.h"
#include "bench/observe/Observe.h"
#include "codegen/ptx/Assemble.h"
#include "codegen/ptx/Ptx.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "driver/Watchdog.h"
#include "driver/run/RunFiles.h"
#include "driver/run/Step.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

static cl::SubCommand sub("run", "Run a kernel on files or random numbers");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"), cl::desc("Sizes"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Constants, scalars"), cl::cat(inputOptions),
                                           cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> inTexts("in", cl::value_desc("x=x.npy"), cl::desc("Inputs"),
                                     cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> outTexts("out", cl::value_desc("y=y.npy"),
                                      cl::desc("Where results go (default: they are shown)"),
                                      cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> precision("precision", cl::value_desc("f32|tf32|conv_tf32|bf16"),
                                      cl::desc("Of products, for a kernel that does not say"),
                                      cl::cat(precisionOptions), cl::sub(sub));
static cl::opt<std::string>
    tensorTile("tensor-tile", cl::value_desc("128x128-packed"),
               cl::desc("The tile of matrix products on tensor cores, where it is possible"),
               cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<std::string> emulatedDevice("device", cl::value_desc("sm_90a"),
                                           cl::init(CompileOptions().emulatedDevice),
                                           cl::desc("With --target=emulate: the device that it is"),
                                           cl::cat(targetOptions), cl::sub(sub));
static cl::opt<unsigned> multiprocessors("multiprocessors", cl::value_desc("3"),
                                         cl::init(CompileOptions().emulatedMultiprocessors),
                                         cl::desc("With --target=emulate: those of the device"),
                                         cl::cat(targetOptions), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|cuda|emulate"),
                                   cl::desc("The machine"), cl::init("cpu"), cl::cat(targetOptions),
                                   cl::sub(sub));
static cl::opt<bool> tuned("tuned",
                           cl::desc("On a device: with the schedules that `tegula tune` kept"),
                           cl::cat(schedulingOptions), cl::sub(sub));
namespace {
enum class Checked { No, Yes, Nan, Finite };
} // namespace
static cl::opt<Checked> checkedMode(
    "checked", cl::ValueOptional, cl::init(Checked::No),
    cl::values(clEnumValN(Checked::Yes, "", "As said"),
               clEnumValN(Checked::Nan, "nan", "And find the first NaN that an equation makes"),
               clEnumValN(Checked::Finite, "finite", "And the first NaN or infinity")),
    cl::desc("Verify while running, element by element, that every access stays inside, "
             "that what is read is defined, and that points do not meet; with what `print` and "
             "`assert` of the program say"),
    cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<bool> evenProved(
    "even-proved",
    cl::desc("Verify in the code as it always is that accesses stay inside that were proved "
             "to; one that does not is a defect. With --checked: after a run of that"),
    cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<unsigned> printedPoints("print-points", cl::value_desc("20"),
                                       cl::desc("With --checked, --step or --target=emulate: the "
                                                "points that each `print` shows at most"),
                                       cl::init(20), cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<bool>
    stepping("step",
             cl::desc("Walk through an observed run, statement by statement, by commands from "
                      "standard input; the command `help` lists them"),
             cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of inputs without --in"), cl::init(0),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<double>
    deadline("deadline", cl::desc("Seconds after which a launch on a device is given up; 0: never"),
             cl::init(300), cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<unsigned>
    repeat("repeat", cl::value_desc("1000"),
           cl::desc("Run so often and refuse other bits; on a device from shared memory full of "
                    "NaNs, blocks beginning in other orders, in the emulator in other orders"),
           cl::init(1), cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<std::string> pieces(
    "pieces", cl::value_desc("M"),
    cl::desc("Run pieces of this size, cut at random places, --repeat times, and refuse other "
             "bits: what `invariant M` in a kernel says"),
    cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<unsigned> threads("threads", cl::desc("Threads (default: all)"), cl::init(0),
                                 cl::cat(targetOptions), cl::sub(sub));

namespace {

/// Holds what the launch gave of pieces of a size against what it gives of these alone.
ExitCode comparePieces(Runner &runner, const RunCall &call, const Launch &launch,
                       ArrayRef<unsigned> written, ArrayRef<Tensor> results,
                       const std::string &what, LaunchWatch *watch) {
  auto extent = call.given.instance.sizes.find(pieces);
  if (extent == call.given.instance.sizes.end())
    return wrongCall("--pieces takes a size that -d or an input gives, not '" + pieces + "'");
  Instance instance = call.given.instance;
  auto sizesAt = [&](int64_t own) {
    instance.sizes[pieces] = own;
    return runner.sizes(call.signature, instance);
  };
  PieceRequest request{pieces, extent->second, repeat, seed, instance.scalars, sizesAt};
  Expected<PieceComparison> compared =
      bench::comparePieces(runner, launch, written, results, request, watch);
  if (!compared)
    return exitOf(compared.takeError());
  if (!compared->elements)
    return wrongCall("--pieces compared nothing: " + what + " has no result along " + pieces +
                     " that can be cut");
  const std::optional<OtherPiece> &other = compared->other;
  std::string times = repeat == 1 ? "once" : std::to_string(repeat) + " times";
  if (!other) {
    errs() << "tegula: " << what << ": cut along " << pieces << " " << times
           << ", all pieces gave the same bits\n";
    return ExitSuccess;
  }
  errs() << "tegula: " << what << ": " << pieces << " from " << other->begin << " to " << other->end
         << " alone gives other bits in '" << runner.kernel().arguments[other->argument].name
         << "', first at " << shapeText(other->place) << " of the piece\n";
  return ExitWrongResult;
}

/// Compiles and runs the kernel on inputs as given or drawn; prints the diagnostics where
/// `isFirst`, and shows or stores the results where `givesResults`.
ExitCode runKernel(LoadedFile &loaded, const RunCall &call, const CompileOptions &options,
                   bool isFirst, bool givesResults) {
  Expected<std::unique_ptr<Runner>> made =
      Runner::make(*loaded.module, options, loaded.diagnostics);
  if (!made)
    return exitOf(made.takeError());
  if (isFirst)
    loaded.print(/*json=*/false);
  if (!*made)
    return ExitWrongProgram;
  Runner &runner = **made;
  runner.setThreads(call.threads);

  std::vector<unsigned> written;
  if (ExitCode code = findWritten(runner, call.outFiles, written); code != ExitSuccess)
    return code;
  SizeValues sizes;
  std::unique_ptr<Launch> launch;
  if (ExitCode code = makeLaunch(runner, call, sizes, launch); code != ExitSuccess)
    return code;
  if (tuned)
    errs() << "schedule: " << launch->machineCode().choice.text() << '\n';
  std::string sizeText;
  for (auto [spec, value] : zip(runner.kernel().checks->sizes(), sizes))
    sizeText += (sizeText.empty() ? " at " : ", ") + spec.name + "=" + std::to_string(value);
  std::string what = "kernel '" + runner.kernel().name + "'" + sizeText;
  std::optional<Watchdog> watchdog;
  if (runner.isDevice())
    watchdog.emplace(what, deadline);
  Expected<double> taken = launch->run(watchdog ? &*watchdog : nullptr);
  if (!taken)
    return exitOf(handleErrors(taken.takeError(), [&](const CudaError &failed) -> Error {
      return make_error<CudaError>(failed.kind, what + ": " + failed.message);
    }));
  Expected<std::vector<Tensor>> results = launch->read(written);
  if (!results)
    return exitOf(results.takeError());
  if (Error failed = tellObservations(*launch, printedPoints, outs()))
    return exitOf(std::move(failed));
  if (!pieces.empty()) {
    if (ExitCode code = comparePieces(runner, call, *launch, written, *results, what,
                                      watchdog ? &*watchdog : nullptr))
      return code;
  } else if (repeat > 1) {
    Expected<std::optional<OtherBits>> other =
        findOtherBits(*launch, written, *results, repeat - 1, watchdog ? &*watchdog : nullptr);
    if (!other)
      return exitOf(other.takeError());
    if (*other) {
      errs() << "tegula: " << what << ": run " << (*other)->run + 1 << " of " << repeat
             << " gives other bits in '"
             << runner.kernel().arguments[written[(*other)->result]].name << "'\n";
      return ExitWrongResult;
    }
    errs() << "tegula: " << what << ": " << repeat << " runs gave the same bits\n";
  }
  watchdog.reset();

  if (!givesResults)
    return ExitSuccess;
  return writeResults(runner, written, *results, call.outFiles);
}

ExitCode run() {
  FilesByName inFiles, outFiles;
  Settings settings;
  if (!parsePaths(inTexts, inFiles) || !parsePaths(outTexts, outFiles))
    return ExitWrongCall;
  if (!readSettings({sizeTexts, constantTexts, typeTexts}, settings))
    return ExitWrongCall;

  if (deadline < 0)
    return wrongCall("--deadline takes seconds, 0 for none");
  if (target != "cpu" && target != "cuda" && target != "emulate")
    return wrongCall("--target takes cpu, cuda or emulate, not '" + target + "'");
  if (!isDeviceTarget(emulatedDevice))
    return wrongCall("--device takes " + expectedDeviceTargets() + ", not '" + emulatedDevice +
                     "'");
  if (multiprocessors == 0)
    return wrongCall("--multiprocessors takes a number above 0");
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  if (tellSyntaxErrors(*loaded))
    return ExitWrongProgram;
  const ast::Kernel *kernel = loaded->module->entry(kernelName);
  if (!kernel)
    return wrongCall("'" + path + "' has no kernel" +
                     (kernelName.empty() ? "" : " '" + kernelName + "'"));
  Signature signature(*kernel);
  Given given;
  std::string error;
  if (!signature.sort(settings, given.instance, error, evaluateConstant))
    return wrongCall(error);
  if (const Signature::Parameter *missing = signature.missing(given.instance.options))
    return wrongCall("kernel '" + kernel->name.name + "' needs " + Signature::howToGive(*missing));
  std::map<std::string, int64_t> demanded = given.instance.sizes;
  if (ExitCode code = readInputs(*kernel, signature, inFiles, given))
    return code;
  for (const auto &[name, value] : demanded)
    if (given.instance.sizes.at(name) != value)
      return wrongCall(name + " is " + Twine(value) + " by -d and " +
                       Twine(given.instance.sizes.at(name)) + " by an input");

  CompileOptions options;
  options.instance = given.instance.options;
  options.instance.kernel = kernel->name.name;
  options.target = target;
  options.pipeline.tensorTile = tensorTile;
  options.tuned = tuned;
  options.instance.precision = precision;
  options.emulatedDevice = emulatedDevice;
  options.emulatedMultiprocessors = multiprocessors;
  if (!isTensorTile(tensorTile) || !isPrecision(precision))
    return ExitWrongCall;
  for (const auto &[name, file] : outFiles)
    options.keepTensors.push_back(name);
  RunCall call{signature, given, inFiles, outFiles, seed, threads};
  auto runAs = [&](bool checked, bool isFirst, bool givesResults) {
    options.checked = checked;
    // What the program asks to see is part of the runs that look for mistakes.
    options.instance.observe = checked || target == "emulate";
    if (checked && checkedMode == Checked::Nan)
      options.instance.watch = InstanceOptions::Watch::Nan;
    if (checked && checkedMode == Checked::Finite)
      options.instance.watch = InstanceOptions::Watch::NonFinite;
    options.evenProved = !checked && evenProved;
    return runKernel(*loaded, call, options, isFirst, givesResults);
  };
  bool isChecked = checkedMode != Checked::No;
  if (stepping) {
    if (path == "-")
      return wrongCall("--step takes its commands from standard input, the program from a file");
    if (target == "cuda" || evenProved || repeat > 1 || !pieces.empty())
      return wrongCall("--step goes with --target=cpu or emulate, without --even-proved, --repeat "
                       "and --pieces");
    if (checkedMode == Checked::Nan)
      options.instance.watch = InstanceOptions::Watch::Nan;
    if (checkedMode == Checked::Finite)
      options.instance.watch = InstanceOptions::Watch::NonFinite;
    ExitCode code = ExitSuccess;
    std::unique_ptr<Recording> recording =
        Recording::make(path, loaded->sources.text(loaded->file).str(), call, options, code);
    return recording ? stepThrough(*recording, printedPoints) : code;
  }
  if (!isChecked || !evenProved)
    return runAs(isChecked, /*isFirst=*/true, /*givesResults=*/true);
  // Two kinds of code: one that checks element by element, and the one that runs else.
  if (ExitCode code = runAs(/*checked=*/true, /*isFirst=*/true, /*givesResults=*/false))
    return code;
  return runAs(/*checked=*/false, /*isFirst=*/false, /*givesResults=*/true);
}

} // namespace

const Command runCommand = {sub, run};

} // namespace tegula
