//===- Report.cpp - A page on what a program becomes -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Report.h"
#include "bench/report/Figures.h"
#include "bench/report/Page.h"
#include "codegen/ptx/Assemble.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace tegula::report {
namespace {

/// Phases whose result is IR of ours, with the stage that holds its text.
constexpr std::pair<Phase, StringRef> irPhases[] = {
    {Phase::Emit, "tgl"},
    {Phase::Simplify, "scheduled"},
    {Phase::Fuse, "scheduled"},
    {Phase::Schedule, "scheduled"},
};

class Reporter {
public:
  Reporter(const Module &module, CompileOptions compile, Diagnostics &diagnostics,
           const ReportOptions &options)
      : module(module), compile(std::move(compile)), diagnostics(diagnostics), options(options),
        isDevice(this->compile.target != "cpu"), page("Tegula: " + options.path) {
    this->compile.lineTables = isDevice;
  }

  Expected<std::optional<std::string>> run() {
    // The end first: what is wrong with the program, or with the machine, is known before the page
    // begins.
    compile.pipeline.trace = std::make_shared<PassTrace>();
    Expected<std::unique_ptr<CompiledKernel>> last =
        compileTo(Phase::EmitPtx, isDevice ? "llvm" : "asm");
    std::shared_ptr<PassTrace> trace = std::move(compile.pipeline.trace);
    if (!last)
      return last.takeError();
    if (!*last)
      return std::nullopt;
    kernel = std::move(*last);
    if (isDevice)
      if (Error error = assembleKernel())
        return std::move(error);
    page.section("figures", "Figures");
    addFigures();
    page.section("source", "Source");
    page.source(options.text);
    page.section("ir", "IR after each phase");
    if (Error error = addPhases())
      return std::move(error);
    page.section("passes", "What each pass changed");
    addPasses(*trace);
    if (isDevice) {
      page.section("layouts", "Layouts");
      addLayouts();
      page.section("ptx", "PTX");
      page.paragraph("Numbers on the left are lines of the source.");
      page.code("PTX", linesOfPtx(kernel->ptx), options.path, /*open=*/true);
      page.section("sass", "SASS");
      addMachineCode();
    } else {
      page.section("assembly", "Assembly");
      page.text(kernel->stages["asm"]);
    }
    return std::optional(page.finish());
  }

private:
  Expected<std::unique_ptr<CompiledKernel>> compileTo(Phase phase, StringRef stage) {
    CompileOptions each = compile;
    each.stopAfter = phase;
    each.keepStages = {stage.str()};
    return compileKernel(module, each, diagnostics);
  }

  /// Machine code, and what the assembler says of it; where there is none, why.
  Error assembleKernel() {
    Expected<Cubin> cubin = assemble(kernel->ptx, kernel->target);
    if (!cubin)
      return handleErrors(cubin.takeError(), [&](const MissingToolError &missing) {
        raw_string_ostream stream(missingAssembler);
        missing.log(stream);
      });
    assembler = cubin->assembler;
    functions = readAssemblerLog(cubin->log);
    Expected<std::string> text = disassemble(cubin->image);
    if (!text)
      return handleErrors(text.takeError(), [&](const MissingToolError &missing) {
        raw_string_ostream stream(missingDisassembler);
        missing.log(stream);
      });
    machineCode = linesOfDisassembly(*text);
    return Error::success();
  }

  //===--------------------------------------------------------------------===//
  // Figures
  //===--------------------------------------------------------------------===//

  void addFigures() {
    std::string sizes;
    for (const auto &[name, value] : compile.sizes)
      sizes += (sizes.empty() ? "" : ", ") + name + " = " + std::to_string(value);
    page.paragraph("Kernel " + kernel->name + " for " + kernel->target +
                   (sizes.empty() ? ", for any sizes." : ", for " + sizes + "."));
    KnownSizes known(*kernel, compile.sizes);
    if (isDevice)
      addFunctions(known);
    addWork(known);
  }

  void addFunctions(const KnownSizes &known) {
    const DeviceLimits *limits = options.machine;
    if (!limits) {
      page.paragraph("Occupancy: not computed, no machine is given.");
      limits = &deviceLimits().front(); // which of several functions runs depends on it a little
    }
    if (missingAssembler.empty())
      page.paragraph("Assembled by " + assembler + ".");
    else
      page.paragraph("Registers, stack and spills: not known, " + missingAssembler + ".");
    std::vector<std::vector<std::string>> rows;
    std::string failures;
    for (const LaunchFigures &launch : launchesOf(*kernel, known, *limits)) {
      auto found = functions.find(launch.function);
      std::vector<std::string> row = {launch.function + (launch.isChosen ? " *" : ""),
                                      launch.units,
                                      std::to_string(launch.threads),
                                      launch.cluster > 1 ? std::to_string(launch.cluster) : "",
                                      launch.blocks ? std::to_string(*launch.blocks) : "?",
                                      launch.bytes ? formatv("{0:n}", *launch.bytes).str() : "?",
                                      std::to_string(launch.dynamicShared)};
      if (found != functions.end()) {
        const AssembledFunction &its = found->second;
        row.push_back(std::to_string(its.sharedBytes));
        row.push_back(std::to_string(its.registers));
        row.push_back(std::to_string(its.stackBytes));
        row.push_back(std::to_string(its.spillStores) + " / " + std::to_string(its.spillLoads));
        if (options.machine)
          for (const std::string &cell : occupancyCells(launch, its))
            row.push_back(cell);
        if (its.isFailure())
          failures += (failures.empty() ? "" : ", ") + launch.function;
      }
      rows.push_back(std::move(row));
    }
    if (!failures.empty())
      page.warning("The schedule has failed: spills or a stack frame in " + failures +
                   ". Its registers do not hold what it keeps.");
    std::vector<std::string> head = {"function", "a block does",         "threads",       "cluster",
                                     "blocks",   "bytes of its tensors", "dynamic shared"};
    if (!functions.empty()) {
      for (const char *name : {"static shared", "registers", "stack", "spills: stored / loaded"})
        head.push_back(name);
      if (options.machine)
        for (const char *name : {"blocks at a time", "warps", "occupancy", "limited by"})
          head.push_back(name);
    }
    page.table(head, rows);
    page.paragraph("* runs for these sizes. Bytes: each tensor that the function is given once, "
                   "whether it reads or "
                   "writes it.");
    if (options.machine && !functions.empty())
      page.paragraph(
          formatv("Occupancy is of a multiprocessor of {0}: {1} registers, {2} warps, {3} blocks, "
                  "{4} bytes "
                  "of shared memory, of which {5} for each block are the system's (CUDA C++ "
                  "Programming "
                  "Guide, Compute Capabilities; Hopper Tuning Guide). Clusters may have less.",
                  limits->title, limits->registers, limits->warps, limits->blocks,
                  limits->sharedBytes, limits->sharedOfBlock)
              .str());
  }

  std::vector<std::string> occupancyCells(const LaunchFigures &launch,
                                          const AssembledFunction &its) {
    Occupancy occupancy = occupancyOf(*options.machine, launch.threads, its.registers,
                                      its.sharedBytes + launch.dynamicShared);
    return {std::to_string(occupancy.blocks), std::to_string(occupancy.warps),
            formatv("{0:f0} %", 100 * occupancy.share).str(), occupancy.limit.str()};
  }

  void addWork(const KnownSizes &known) {
    std::optional<CallFigures> figures = callFigures(*kernel, known);
    if (!figures) {
      std::string names;
      for (const std::string &name : known.missing())
        names += (names.empty() ? "" : ", ") + name;
      page.paragraph("Bytes and operations: not counted, sizes are not known: " + names +
                     ". Give them with -d.");
      return;
    }
    page.paragraph(
        formatv(
            "A call moves {0:n} bytes, inputs read and outputs written once, and asks for {1:n} "
            "floating-point operations, counted on the IR as emitted: {2:f2} for a byte.",
            int64_t(figures->bytes), int64_t(figures->operations),
            figures->bytes ? figures->operations / figures->bytes : 0.0)
            .str());
    if (!options.machine)
      return;
    const DeviceLimits &limits = *options.machine;
    OperationRate rate = operationRate(*kernel, limits);
    double forBytes = figures->bytes / limits.bytesPerSecond * 1e6;
    double forOperations = figures->operations / rate.perSecond * 1e6;
    double least = std::max(forBytes, forOperations);
    page.paragraph(formatv("Roofline of {0}: {1:f2} us for the bytes at {2:f2} TB/s, {3:f2} us for "
                           "the operations at "
                           "{4:f0} Tflop/s ({5}; data sheet). The kernel is bound by {6} and takes "
                           "at least {7:f2} us.",
                           limits.title, forBytes, limits.bytesPerSecond / 1e12, forOperations,
                           rate.perSecond / 1e12, rate.units,
                           forBytes >= forOperations ? "memory" : "arithmetic", least)
                       .str());
    if (options.microseconds > 0)
      page.paragraph(formatv("It took {0:f2} us: {1:f1} % of the roofline.", options.microseconds,
                             100 * least / options.microseconds)
                         .str());
    else
      page.paragraph("Its share of the roofline: not known, no time is given (--microseconds, as "
                     "tegula bench prints "
                     "it).");
  }

  //===--------------------------------------------------------------------===//
  // Code
  //===--------------------------------------------------------------------===//

  Error addPhases() {
    page.paragraph(
        "Each with what is different from the phase before; numbers of values do not count.");
    std::string before;
    for (auto [phase, stage] : irPhases) {
      Expected<std::unique_ptr<CompiledKernel>> made = compileTo(phase, stage);
      if (!made)
        return made.takeError();
      std::string after = (*made)->stages[stage.str()];
      addPhase(phase, before, after);
      before = std::move(after);
    }
    if (!isDevice) {
      Expected<std::unique_ptr<CompiledKernel>> made = compileTo(Phase::EmitPtx, "llvm");
      if (!made)
        return made.takeError();
      addPhase(Phase::Lower, "", (*made)->stages["llvm"]);
      return Error::success();
    }
    Expected<std::unique_ptr<CompiledKernel>> lowered = compileTo(Phase::Lower, "llvm");
    if (!lowered)
      return lowered.takeError();
    StringRef plain = (*lowered)->stages["llvm"];
    addPhase(Phase::Lower, "", plain);
    addPhase(Phase::EmitPtx, plain, kernel->stages["llvm"]);
    return Error::success();
  }

  void addPhase(Phase phase, StringRef before, StringRef after) {
    const PhaseInfo *info =
        find_if(phases(), [&](const PhaseInfo &each) { return each.phase == phase; });
    std::string title = (info->name + " (" + info->sentence + ")").str();
    if (!before.empty())
      return page.difference(title, diffLines(before, after));
    std::vector<CodeLine> lines;
    SmallVector<StringRef> split;
    after.rtrim('\n').split(split, '\n');
    for (StringRef line : split)
      lines.push_back({line.str(), "", 0});
    page.code(title, lines, "", /*open=*/false);
  }

  /// A unified diff for each pass that changed the IR.
  void addPasses(const PassTrace &trace) {
    page.paragraph(formatv("{0} of {1} passes changed the IR; numbers of values do not count.",
                           trace.changes.size(), trace.runs)
                       .str());
    StringRef before = trace.initial;
    for (auto [index, change] : enumerate(trace.changes)) {
      page.unifiedDifference(
          formatv("{0}. {1} ({2})", index + 1, change.pass, change.sentence).str(),
          diffLines(before, change.after));
      before = change.after;
    }
  }

  void addLayouts() {
    if (kernel->layouts.empty() && kernel->rows.empty())
      page.paragraph(
          "Nothing to draw: no function has tiles of a product, or rows in shared memory.");
    for (const TileLayout &layout : kernel->layouts)
      page.text(drawLayout(layout));
    for (const RowLayout &row : kernel->rows)
      page.text(drawLayout(row));
  }

  void addMachineCode() {
    if (!missingAssembler.empty())
      return page.paragraph("Not there: " + missingAssembler + ".");
    if (!missingDisassembler.empty())
      return page.paragraph("Not there: " + missingDisassembler + ".");
    page.code("SASS", machineCode, options.path, /*open=*/false);
  }

  const Module &module;
  CompileOptions compile;
  Diagnostics &diagnostics;
  const ReportOptions &options;
  bool isDevice;
  Page page;
  std::unique_ptr<CompiledKernel> kernel;
  std::string assembler, missingAssembler, missingDisassembler;
  std::map<std::string, AssembledFunction> functions;
  std::vector<CodeLine> machineCode;
};

} // namespace

Expected<std::optional<std::string>> makeReport(const Module &module, CompileOptions compile,
                                                Diagnostics &diagnostics,
                                                const ReportOptions &options) {
  return Reporter(module, std::move(compile), diagnostics, options).run();
}

} // namespace tegula::report
