//===- MutateNames.cpp - Programs with names exchanged -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tegula-mutate-names FOLDER... --count=N --start=SEED: takes the programs in the folders, puts
// names of a program in the places of others, and checks the result. A program that the checker
// refuses has an error. One that it accepts becomes IR that verifies, writes every output, and has
// an equation for every statement with subscripts.
//
//===----------------------------------------------------------------------===//
#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/lower/EmitIR.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <random>
#include <set>

using namespace llvm;
using namespace tegula;

static cl::list<std::string> folders(cl::Positional, cl::OneOrMore, cl::desc("FOLDER..."));
static cl::opt<uint64_t> programCount("count", cl::init(20000),
                                      cl::desc("How many programs to make"));
static cl::opt<uint64_t> start("start", cl::init(1), cl::desc("The first seed"));

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Adds the programs in a folder and those below it, in order of their paths. Returns whether there
/// are any.
static bool readPrograms(StringRef folder, std::vector<std::string> &programs) {
  std::set<std::string> paths;
  std::error_code error;
  for (sys::fs::recursive_directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error))
    if (sys::path::extension(at->path()) == ".tgl")
      paths.insert(at->path());
  for (const std::string &path : paths)
    if (auto buffer = MemoryBuffer::getFile(path); buffer && (*buffer)->getBufferSize() < 8192)
      programs.push_back((*buffer)->getBuffer().str());
  return !paths.empty();
}

/// The places of names in a text, keywords among them, comments not.
static std::vector<std::pair<size_t, size_t>> placesOfNames(StringRef text) {
  std::vector<std::pair<size_t, size_t>> places;
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    size_t length = text.drop_front(at).take_while(isWord).size();
    if (length != 0 && !isDigit(text[at]))
      places.push_back({at, length});
    at += std::max<size_t>(length, 1);
  }
  return places;
}

static std::string mutate(StringRef program, std::mt19937_64 &random) {
  std::string text = program.str();
  for (unsigned changes = 1 + random() % 3; changes--;) {
    std::vector<std::pair<size_t, size_t>> places = placesOfNames(text);
    if (places.size() < 2)
      return text;
    auto [at, length] = places[random() % places.size()];
    // Mostly a name that stands close by: of the same statement or signature.
    size_t near = llvm::find(places, std::pair(at, length)) - places.begin();
    size_t from = random() % 2 ? random() % places.size()
                               : std::min<size_t>(places.size() - 1,
                                                  near - std::min<size_t>(near, 8) + random() % 17);
    std::string name = text.substr(places[from].first, places[from].second);
    text.replace(at, length, name);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// What must hold
//===----------------------------------------------------------------------===//

/// The statements that define elements, in blocks and loops too.
static void collectEquations(ArrayRef<ast::StmtPtr> body, std::vector<const ast::Stmt *> &found) {
  for (const ast::StmtPtr &stmt : body) {
    bool isEquation = stmt->kind == ast::Stmt::Assign || stmt->kind == ast::Stmt::State;
    if (isEquation && !stmt->targets.empty() && stmt->targets[0].hasSubscripts &&
        !stmt->targets[0].hasColon)
      found.push_back(stmt.get());
    collectEquations(stmt->body, found);
  }
}

/// What is wrong with an accepted program; empty where nothing is.
static std::string faultOf(const Module &module, const checked::Program &program,
                           const ast::Kernel &kernel, mlir::MLIRContext &context,
                           SourceManager &sources) {
  std::vector<const ast::Stmt *> equations;
  collectEquations(kernel.body, equations);
  for (const ast::Stmt *stmt : equations)
    if (none_of(program.stmts, [&](const checked::Stmt &one) {
          return one.kind == checked::Stmt::Equation && one.span.file == stmt->span.file &&
                 one.span.begin >= stmt->span.begin && one.span.end <= stmt->span.end;
        }))
      return "the statement '" + sources.text(stmt->span).str() + "' is in no program";
  mlir::OwningOpRef<mlir::ModuleOp> ir = emitIR(program, sources, context, {});
  if (failed(mlir::verify(*ir)))
    return "its IR does not verify";
  std::string fault;
  ir->walk([&](tgl::KernelOp op) {
    auto written = tgl::accessesOf(op).writes;
    for (mlir::BlockArgument argument : op.getBody().getArguments())
      if (op.getArgRole(argument.getArgNumber()) == "out" && !written.contains(argument))
        fault = "nothing writes '" + op.getArgName(argument.getArgNumber()).str() + "' of '" +
                op.getSymName().str() + "'";
  });
  return fault;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "Checks programs in which names are exchanged\n");
  std::vector<std::string> programs;
  for (const std::string &folder : folders)
    if (!readPrograms(folder, programs)) {
      errs() << "no programs in '" << folder << "'\n";
      return 2;
    }
  auto context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  uint64_t accepted = 0, faults = 0;
  for (uint64_t seed = start; seed != start + programCount; ++seed) {
    if (seed % 4096 == 0) // it keeps every type and attribute
      context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    std::mt19937_64 random(seed);
    std::string text = mutate(programs[random() % programs.size()], random);
    SourceManager sources;
    uint32_t file = sources.add("mutated.tgl", text);
    Diagnostics diagnostics(sources);
    std::unique_ptr<Module> module = openModule(sources, file, diagnostics);
    // The checker looks at what it can read of a file with syntax errors, and refuses it.
    bool isPartial = diagnostics.hasErrors();
    for (const auto &kernel : module->file().kernels) {
      InstanceOptions options;
      options.kernel = kernel->name.name;
      Diagnostics found(sources);
      std::unique_ptr<checked::Program> program = check(*module, options, found);
      std::string fault;
      if (!program)
        fault = isPartial || found.hasErrors() ? "" : "it is refused without an error";
      else if (isPartial)
        fault = "it is accepted in spite of syntax errors";
      else
        fault = faultOf(*module, *program, *kernel, *context, sources);
      for (const Diagnostic &one : found.all())
        if (StringRef(one.message).contains("no message says why"))
          fault = "its error has no message";
      accepted += program != nullptr;
      if (fault.empty())
        continue;
      ++faults;
      outs() << "seed " << seed << ", kernel '" << kernel->name.name << "': " << fault << '\n'
             << text << '\n';
    }
  }
  outs() << programCount << " programs, " << accepted << " kernels accepted, " << faults
         << " faults\n";
  if (programCount >= 100 && accepted * 50 < programCount) {
    outs() << "too few were accepted to say anything\n";
    return 1;
  }
  return faults != 0;
}
