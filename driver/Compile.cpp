//===- Compile.cpp - tegula compile -----------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Report.h"
#include "codegen/cpu/HostTarget.h"
#include "codegen/ptx/Assemble.h"
#include "codegen/ptx/Ptx.h"
#include "compiler/Compiler.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "driver/Why.h"
#include "frontend/check/Signature.h"
#include "frontend/print/Printer.h"
#include "support/Switches.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("compile", "Show what a program becomes at each stage");
static cl::SubCommand layoutSub("explain-layout",
                                "Draw where device code keeps operands and sums of products");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub),
                                 cl::sub(layoutSub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub), cl::sub(layoutSub));
static cl::opt<std::string> emitWhat("emit",
                                     cl::value_desc("ast|tgl|scheduled|placed|llvm|asm|ptx|cubin"),
                                     cl::desc("What to print (default: scheduled)"),
                                     cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> stopAfter("stop-after", cl::value_desc("PHASE"),
                                      cl::desc("Print the IR after this phase"),
                                      cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|sm_80|sm_90a"),
                                   cl::desc("The machine"), cl::init("cpu"), cl::cat(targetOptions),
                                   cl::sub(sub), cl::sub(layoutSub));
static cl::opt<unsigned>
    alignment("align", cl::value_desc("BYTES"),
              cl::desc("Device code: what addresses of tensors are multiples of "
                       "(default: of their elements)"),
              cl::init(0), cl::cat(targetOptions), cl::sub(sub), cl::sub(layoutSub));
static cl::opt<bool> dependentLaunches(
    "dependent-launches",
    cl::desc("Let a kernel's launches start early and wait on the device (sm_90)"),
    cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<std::string> processor("processor", cl::value_desc("x86-64-v3"),
                                      cl::desc("The processor of --target=cpu, by LLVM's name "
                                               "(default: this machine's)"),
                                      cl::cat(targetOptions), cl::sub(sub));
static cl::opt<std::string> outPath("o", cl::value_desc("OUT"), cl::desc("Where to write"),
                                    cl::init("-"), cl::cat(outputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("Sizes known when compiling"),
                                       cl::cat(inputOptions), cl::sub(sub), cl::sub(layoutSub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Compile-time constants"),
                                           cl::cat(inputOptions), cl::sub(sub), cl::sub(layoutSub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub), cl::sub(layoutSub));
static cl::opt<unsigned> rank("rank", cl::desc("How many dims '...' stands for"), cl::init(1),
                              cl::cat(inputOptions), cl::sub(sub), cl::sub(layoutSub));
static cl::list<std::string> givenOptionals("with", cl::value_desc("bias"),
                                            cl::desc("Optional tensors that are passed"),
                                            cl::CommaSeparated, cl::cat(inputOptions), cl::sub(sub),
                                            cl::sub(layoutSub));
static cl::list<std::string> disabled("disable", cl::value_desc("tgl-fuse"),
                                      cl::desc("Passes left out: ours, LLVM's by name"),
                                      cl::CommaSeparated, cl::cat(schedulingOptions), cl::sub(sub));
static cl::list<std::string> enabled("enable", cl::value_desc("slsr"),
                                     cl::desc("Passes of LLVM that are otherwise left out"),
                                     cl::CommaSeparated, cl::cat(schedulingOptions), cl::sub(sub));
static cl::list<std::string>
    printAfter("print-after", cl::value_desc("tgl-fuse|all"),
               cl::desc("Print the IR after these passes to standard error"), cl::CommaSeparated,
               cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<int64_t> tile("tile", cl::desc("Elements of a tile where no schedule says"),
                             cl::init(EmitOptions().tile), cl::cat(schedulingOptions),
                             cl::sub(sub));
static cl::opt<std::string> precision("precision", cl::value_desc("f32|tf32|conv_tf32|bf16"),
                                      cl::desc("Of products, for a kernel that does not say"),
                                      cl::cat(precisionOptions), cl::sub(sub));
static cl::opt<std::string>
    tensorTile("tensor-tile", cl::value_desc("128x128-packed"),
               cl::desc("The tile of matrix products on tensor cores, where it is possible"),
               cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<bool> timing("timing", cl::desc("Print the times of all passes"),
                            cl::cat(debuggingOptions), cl::sub(sub));
// In place of LLVM's own option of that name, which no pass manager here heeds.
static cl::alias timePasses("time-passes", cl::desc("The same as --timing"), cl::aliasopt(timing));
static cl::opt<bool> locations("locations", cl::desc("Print where each operation comes from"),
                               cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<bool>
    lineTables("lines", cl::desc("Device code tells lines of the program (.loc, for profilers)"),
               cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<std::string>
    reportPath("report", cl::value_desc("FILE.html"),
               cl::desc("Write a page on the program, its IR, code and figures"),
               cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> why("why", cl::ValueOptional, cl::value_desc("json"),
                                cl::desc("Say for each launch its strategy, what bounds it, and "
                                         "why other strategies do not compute it"),
                                cl::cat(outputOptions), cl::sub(sub));
static cl::opt<bool> remarks("remarks",
                             cl::desc("On a device: say which launches are expected to take more "
                                      "than twice their bound, and what would mend that"),
                             cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> machineName(
    "machine", cl::value_desc("h200|h100"),
    cl::desc("With --report, --why and --remarks: the device for occupancy and roofline "
             "(default: h200 for sm_90a)"),
    cl::cat(targetOptions), cl::sub(sub));
static cl::opt<double> microseconds("microseconds", cl::value_desc("12.5"), cl::init(0),
                                    cl::desc("With --report: what a call took there"),
                                    cl::cat(outputOptions), cl::sub(sub));

/// A stage that --emit names: its text in CompiledKernel::stages, and the phase after which it is
/// there.
struct Stage {
  StringRef name;
  Phase phase;
};

static constexpr Stage stages[] = {
    {"ast", Phase::Parse},   {"tgl", Phase::Emit},     {"scheduled", Phase::Schedule},
    {"tile", Phase::Lower},  {"placed", Phase::Lower}, {"llvm", Phase::EmitPtx},
    {"asm", Phase::EmitPtx}, {"ptx", Phase::EmitPtx},  {"cubin", Phase::Assemble},
};

/// What explain-layout prints; no stage that --emit names.
static constexpr StringRef layoutsStage = "layouts";

/// What to print after a phase when only --stop-after is given.
static StringRef stageAfter(Phase phase, bool isDevice) {
  if (phase <= Phase::Check)
    return "ast";
  if (phase == Phase::Emit)
    return "tgl";
  if (phase <= Phase::Schedule)
    return "scheduled";
  if (phase == Phase::Assemble)
    return isDevice ? "cubin" : "asm";
  return isDevice && phase == Phase::EmitPtx ? "ptx" : "llvm";
}

static std::optional<Stage> wantedStage(bool isDevice) {
  std::optional<Phase> last;
  if (!stopAfter.empty()) {
    last = parsePhase(stopAfter);
    if (!last) {
      errs() << "tegula: there is no phase '" << stopAfter << "' to stop after; phases are ";
      interleaveComma(phases(), errs(), [](const PhaseInfo &info) { errs() << info.name; });
      errs() << '\n';
      return std::nullopt;
    }
  }
  std::string name = emitWhat;
  if (name.empty())
    name = last ? stageAfter(*last, isDevice).str() : "scheduled";
  const Stage *stage = find_if(stages, [&](const Stage &each) { return each.name == name; });
  if (stage == std::end(stages)) {
    errs() << "tegula: --emit takes ";
    interleaveComma(stages, errs(), [](const Stage &each) { errs() << each.name; });
    errs() << ", not '" << name << "'\n";
    return std::nullopt;
  }
  bool deviceOnly = stage->name == "tile" || stage->name == "placed" || stage->name == "ptx" ||
                    stage->name == "cubin";
  if (deviceOnly && !isDevice) {
    errs() << "tegula: --emit=" << name << " needs a device target: --target=sm_90a\n";
    return std::nullopt;
  }
  if (stage->name == "asm" && isDevice) {
    errs() << "tegula: --emit=asm is for the CPU; a device has --emit=ptx and --emit=cubin\n";
    return std::nullopt;
  }
  return Stage{stage->name, last ? *last : stage->phase};
}

static ExitCode writeText(StringRef path, StringRef text) {
  if (Error error = writeFile(path, text)) {
    errs() << "tegula: " << toString(std::move(error)) << '\n';
    return ExitMissingResource;
  }
  return ExitSuccess;
}

/// Whether all names are in `known`; tells of one that is not.
static bool knowsAll(ArrayRef<std::string> names, const std::vector<std::string> &known,
                     StringRef what) {
  SmallVector<StringRef> knownNames(known.begin(), known.end());
  for (StringRef name : names) {
    if (is_contained(knownNames, name))
      continue;
    errs() << "tegula: this compilation has no pass '" << name << "' that " << what;
    StringRef nearest = nearestName(name, knownNames);
    if (!nearest.empty())
      errs() << "; nearest is '" << nearest << "'";
    errs() << '\n';
    return false;
  }
  return true;
}

/// Whether all that --disable, --enable and --print-after name are passes of the compilation. One
/// that stopped earlier is made to its end where a name is of none of its passes.
static bool knowsPasses(const Module &module, CompileOptions options) {
  const PipelineOptions &pipeline = options.pipeline;
  if (!pipeline.runs)
    return true;
  std::vector<std::string> passes = pipeline.runs->passes(), spares = pipeline.runs->spares();
  auto has = [](const std::vector<std::string> &known) {
    return [&](const std::string &name) { return is_contained(known, name); };
  };
  bool knows = all_of(pipeline.disabled, has(passes)) && all_of(pipeline.enabled, has(spares)) &&
               all_of(pipeline.printAfter, has(passes));
  if (!knows && options.stopAfter < Phase::EmitPtx) {
    options.stopAfter = Phase::EmitPtx;
    options.keepStages = {options.target == "cpu" ? "asm" : "ptx"}; // what is not kept is not made
    options.pipeline.printAfter.clear();
    options.pipeline.runs =
        std::make_shared<PassRuns>(options.pipeline.disabled, PassRuns::all,
                                   std::vector<std::string>(), options.pipeline.enabled);
    Diagnostics unheard(module.sourceManager());
    Expected<std::unique_ptr<CompiledKernel>> whole = compileKernel(module, options, unheard);
    if (!whole)
      consumeError(
          whole.takeError()); // sizes that code needs are not given: its passes stay unknown
    passes = options.pipeline.runs->passes();
    spares = options.pipeline.runs->spares();
  }
  std::vector<std::string> wanted(printAfter.begin(), printAfter.end()), printed = passes;
  printed.push_back("all");
  return knowsAll(options.pipeline.disabled, passes, "can be left out") &&
         knowsAll(options.pipeline.enabled, spares, "it leaves out by itself") &&
         knowsAll(wanted, printed, "can be printed after");
}

/// Whether --with and --rank are about something that the kernel has.
static bool fitsKernel(const ast::Kernel &kernel, const InstanceOptions &instance) {
  Signature signature(kernel);
  SmallVector<StringRef> optionals;
  for (const Signature::Parameter &parameter : signature.parameters)
    if (parameter.isOptional)
      optionals.push_back(parameter.name);
  for (StringRef name : instance.givenOptionals) {
    if (is_contained(optionals, name))
      continue;
    errs() << "tegula: --with: kernel '" << kernel.name.name << "' has no optional tensor '" << name
           << "'";
    if (optionals.empty())
      errs() << ", and no other";
    else if (StringRef nearest = nearestName(name, optionals); !nearest.empty())
      errs() << "; nearest is '" << nearest << "'";
    errs() << '\n';
    return false;
  }
  if (rank.getNumOccurrences() && !signature.hasEllipsis) {
    errs() << "tegula: --rank: kernel '" << kernel.name.name << "' has no '...'\n";
    return false;
  }
  return true;
}

/// All layouts of the kernel's device functions.
static std::string drawLayouts(const CompiledKernel &kernel) {
  std::string text;
  for (const TileLayout &layout : kernel.layouts)
    text += (text.empty() ? "" : "\n") + drawLayout(layout);
  for (const RowLayout &row : kernel.rows)
    text += (text.empty() ? "" : "\n") + drawLayout(row);
  return text;
}

/// Layouts as comments of the IR that they belong to.
static std::string placedText(const CompiledKernel &kernel) {
  std::string text = kernel.stages.at("placed"), layouts = drawLayouts(kernel);
  SmallVector<StringRef> lines;
  StringRef(layouts).split(lines, '\n', -1, /*KeepEmpty=*/true);
  for (StringRef line : ArrayRef(lines).drop_back())
    text += (line.empty() ? "//" : "// " + line.str()) + "\n";
  return text;
}

static ExitCode reportError(Error error) {
  ExitCode exit = error.isA<MissingToolError>()   ? ExitMissingResource
                  : error.isA<WrongOptionError>() ? ExitWrongCall
                                                  : ExitInternalError;
  errs() << "tegula: " << toString(std::move(error)) << '\n';
  return exit;
}

/// The passes among those left out that the kernel needs: without one of them alone it does not
/// compile, and with all it does. Nothing where a failure has another cause.
static std::vector<std::string> neededPasses(const Module &module, CompileOptions options) {
  auto compilesWithout = [&](std::vector<std::string> passes) {
    options.pipeline.disabled = std::move(passes);
    options.pipeline.printAfter.clear();
    options.pipeline.runs =
        std::make_shared<PassRuns>(options.pipeline.disabled, PassRuns::all,
                                   std::vector<std::string>(), options.pipeline.enabled);
    Diagnostics unheard(module.sourceManager());
    Expected<std::unique_ptr<CompiledKernel>> compiled = compileKernel(module, options, unheard);
    bool isMade = compiled && *compiled;
    consumeError(compiled.takeError());
    return isMade;
  };
  std::vector<std::string> needed, all = options.pipeline.disabled;
  if (all.empty() || !compilesWithout({}))
    return {};
  for (const std::string &pass : all)
    if (!compilesWithout({pass}))
      needed.push_back(pass);
  return needed.empty() ? all : needed;
}

static ExitCode writeReport(LoadedFile &loaded, const CompileOptions &options) {
  report::ReportOptions wanted;
  wanted.path = path;
  wanted.text = loaded.module->sourceManager().text(loaded.file).str();
  wanted.microseconds = microseconds;
  if (!findMachine(machineName, target, wanted.machine))
    return ExitWrongCall;
  Expected<std::optional<std::string>> page =
      report::makeReport(*loaded.module, options, loaded.diagnostics, wanted);
  loaded.print(/*json=*/false);
  if (!page)
    return reportError(page.takeError());
  if (!*page)
    return ExitWrongProgram;
  return writeText(reportPath, **page);
}

/// What the command line says, as options; false where it says it wrongly, which is told.
static bool readOptions(CompileOptions &options, std::optional<Stage> &stage) {
  options.target = target;
  options.processor = processor;
  options.dependentLaunches = dependentLaunches;
  if (!processor.empty() && !HostTarget::named(processor)) {
    errs() << "tegula: LLVM knows no processor '" << processor << "'\n";
    return false;
  }
  bool isDevice = target != "cpu";
  if (isDevice && !isDeviceTarget(target)) {
    errs() << "tegula: --target takes cpu, or " << expectedDeviceTargets() << ", not '" << target
           << "'\n";
    return false;
  }
  if (!stage)
    stage = wantedStage(isDevice);
  InstanceOptions &instance = options.instance;
  instance.kernel = kernelName;
  instance.ellipsisRank = rank;
  instance.givenOptionals.assign(givenOptionals.begin(), givenOptionals.end());
  instance.precision = precision;
  if (!stage || !isPrecision(precision) || !parseSizes(sizeTexts, options.sizes) ||
      !parseConstants(constantTexts, instance.constants) || !parseTypes(typeTexts, instance.types))
    return false;
  if (tile.getNumOccurrences() && tile < 1) {
    errs() << "tegula: --tile takes a positive number\n";
    return false;
  }
  options.emit.tile = tile;
  if (alignment && !isPowerOf2_32(alignment)) {
    errs() << "tegula: --align takes a power of two\n";
    return false;
  }
  options.alignment = alignment;
  options.stopAfter = stage->phase;
  options.keepStages = {stage->name.str()};
  options.lineTables = lineTables;
  options.printLocations = locations;
  for (const std::string &name : disabled)
    options.pipeline.disabled.push_back(currentName(name).str());
  options.pipeline.enabled.assign(enabled.begin(), enabled.end());
  if (!disabled.empty() || !enabled.empty() || !printAfter.empty())
    options.pipeline.runs =
        std::make_shared<PassRuns>(options.pipeline.disabled, PassRuns::all,
                                   std::vector<std::string>(), options.pipeline.enabled);
  options.pipeline.printAfter.assign(printAfter.begin(), printAfter.end());
  options.pipeline.timing = timing;
  options.pipeline.tensorTile = tensorTile;
  if (!isTensorTile(tensorTile))
    return false;

  return true;
}

/// Writes what the command line asks for of a kernel that is compiled.
static ExitCode writeCompiled(const CompiledKernel &kernel, const Stage &stage,
                              const report::DeviceLimits *machine) {
  if (timing)
    for (const PhaseTime &time : kernel.times)
      errs() << formatv("{0,-10} {1,8:f2} ms\n", time.phase, time.milliseconds);
  if (why.getNumOccurrences())
    return writeText(outPath,
                     why == "json"
                         ? formatv("{0:2}\n", json::Value(whyJson(kernel.launches, machine))).str()
                         : whyText(kernel.launches, machine));
  if (stage.name == "placed" && stage.phase >= Phase::Lower)
    return writeText(outPath, placedText(kernel));
  if (stage.name == layoutsStage) {
    std::string text = drawLayouts(kernel);
    return writeText(
        "-", text.empty()
                 ? "nothing to draw: no function has tiles of a product, or rows in shared memory\n"
                 : text);
  }
  StringRef text;
  if (stage.name == "ptx")
    text = kernel.ptx;
  else if (stage.name == "cubin")
    text = StringRef(kernel.cubin.data(), kernel.cubin.size());
  else if (auto kept = kernel.stages.find(stage.name.str()); kept != kernel.stages.end())
    text = kept->second;
  if (text.empty()) {
    errs() << "tegula: phase " << toString(stage.phase) << " comes before " << stage.name << '\n';
    return ExitWrongCall;
  }
  return writeText(outPath, text);
}

static ExitCode compile(std::optional<Stage> stage) {
  CompileOptions options;
  if (!readOptions(options, stage))
    return ExitWrongCall;
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  if (tellSyntaxErrors(*loaded))
    return ExitWrongProgram;
  if (stage->name == "ast") {
    std::string text;
    raw_string_ostream os(text);
    dump(loaded->module->file(), os);
    return writeText(outPath, text);
  }
  const ast::Kernel *entry = loaded->module->entry(kernelName);
  if (!entry) {
    errs() << "tegula: '" << path << "' has no kernel"
           << (kernelName.empty() ? "" : " '" + kernelName + "'") << '\n';
    return ExitWrongCall;
  }

  if (!fitsKernel(*entry, options.instance))
    return ExitWrongCall;
  bool asksWhy = why.getNumOccurrences() || remarks;
  if (reportPath.empty() &&
      ((!machineName.empty() && !asksWhy) || microseconds.getNumOccurrences())) {
    errs() << "tegula: --machine is for --report, --why and --remarks, --microseconds for "
              "--report\n";
    return ExitWrongCall;
  }
  const report::DeviceLimits *machine = nullptr;
  if (asksWhy) {
    if (target == "cpu") {
      errs() << "tegula: --" << (remarks ? "remarks" : "why")
             << " is for device targets: --target=sm_90a\n";
      return ExitWrongCall;
    }
    if (!why.empty() && why != "json") {
      errs() << "tegula: --why takes nothing, or json, not '" << why << "'\n";
      return ExitWrongCall;
    }
    if (!findMachine(machineName, target, machine))
      return ExitWrongCall;
    options.explain = true;
  }
  if (!reportPath.empty())
    return writeReport(*loaded, options);
  Expected<std::unique_ptr<CompiledKernel>> compiled =
      compileKernel(*loaded->module, options, loaded->diagnostics);
  loaded->print(/*json=*/false);
  if (!compiled) {
    std::vector<std::string> needed = neededPasses(*loaded->module, options);
    if (needed.empty())
      return reportError(compiled.takeError());
    consumeError(compiled.takeError());
    errs() << "tegula: --disable: the kernel does not compile without " << join(needed, ", ")
           << '\n';
    return ExitWrongCall;
  }
  if (!*compiled)
    return ExitWrongProgram;
  if (!knowsPasses(*loaded->module, options))
    return ExitWrongCall;
  if (remarks)
    for (const auto &[launch, remark] :
         zip_equal((*compiled)->launches, slowRemarks((*compiled)->launches, machine)))
      if (!remark.empty())
        errs() << launch.place << ": remark: " << remark << '\n';
  return writeCompiled(**compiled, *stage, machine);
}

static ExitCode run() { return compile(std::nullopt); }

static ExitCode explainLayout() {
  if (!target.getNumOccurrences())
    target = "sm_90a";
  if (target == "cpu") {
    errs() << "tegula: layouts are those of a device: --target=sm_90a\n";
    return ExitWrongCall;
  }
  return compile(Stage{layoutsStage, Phase::Lower});
}

const Command compileCommand = {sub, run};
const Command explainLayoutCommand = {layoutSub, explainLayout};

} // namespace tegula
