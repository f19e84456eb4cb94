//===- tegula-interpret.cpp - Runs textual IR and compares runs -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a kernel on made-up data and prints its outputs, or holds them against those of another
// file:
//
//   tegula-opt k.mlir --tgl-fuse | tegula-interpret - -d M=5,N=7 --against=k.mlir
//
// is what a pass must survive. Data are small integers unless `--data=normal`, so that sums are
// exact in any order and results must agree bit for bit.
//
// Exit codes: 0 fine, 1 a wrong access or another result, 2 the call, sizes or file do not fit the
// kernel.
//
//===----------------------------------------------------------------------===//
#include "ir/Random.h"
#include "ir/interpreter/Interpreter.h"
#include "ir/tile/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::init("-"), cl::desc("<file.mlir>"));
static cl::opt<std::string> kernelName("kernel",
                                       cl::desc("kernel to run (else the last public one)"));
static cl::list<std::string> sizeTexts("d", cl::CommaSeparated, cl::desc("sizes: M=4,N=5"));
static cl::list<std::string> scalarTexts("s", cl::CommaSeparated, cl::desc("scalars: alpha=0.5"));
static cl::opt<std::string> against("against", cl::desc("file whose outputs these must equal"));
static cl::opt<double> tolerance("tolerance", cl::init(0),
                                 cl::desc("error allowed, relative to max(1, |value|)"));
static cl::opt<std::string> data("data", cl::init("integers"),
                                 cl::desc("integers (-3..3), indices (0..3), or normal"));
static cl::opt<uint64_t> seed("seed", cl::init(0), cl::desc("of the data"));
static cl::opt<int64_t> tileSize("tile", cl::init(0), cl::desc("size of every tile loop"));
static cl::opt<bool> reversePoints("reverse", cl::desc("points of parallels run last to first"));
static cl::opt<bool> quiet("quiet", cl::desc("print no values"));

/// `NAME=VALUE` texts as a map; false on a malformed one.
static bool parseAssignments(const cl::list<std::string> &texts, llvm::StringMap<double> &result) {
  for (llvm::StringRef text : texts) {
    auto [name, value] = text.split('=');
    double number;
    if (name.empty() || value.getAsDouble(number)) {
      llvm::errs() << "expected NAME=NUMBER, found '" << text << "'\n";
      return false;
    }
    result[name] = number;
  }
  return true;
}

/// Deterministic data: a function of seed, argument and element.
static HostTensor makeInput(DType type, llvm::ArrayRef<int64_t> shape, unsigned argument) {
  HostTensor tensor(type, shape);
  for (int64_t n = 0, count = tensor.numElements(); n < count; ++n) {
    uint64_t bits = randomBits({int64_t(seed.getValue()), argument, n});
    double value = data == "normal" && isFloat(type) ? normalFromBits(bits)
                   : data == "indices"               ? double(bits % 4)
                                                     : double(int64_t(bits % 7)) - 3;
    if (type == DType::Bool)
      value = double(bits % 2);
    else if (!isFloat(type) && minValue(type) == 0)
      value = std::fabs(value);
    tensor.set(n, value);
  }
  return tensor;
}

namespace {
/// A file's kernel and what running it gave.
struct Execution {
  OwningOpRef<ModuleOp> module;
  tgl::KernelOp kernel;
  InterpreterResult result;
};
} // namespace

static tgl::KernelOp findKernel(ModuleOp module) {
  tgl::KernelOp found;
  for (auto kernel : module.getOps<tgl::KernelOp>())
    if (kernelName.empty() ? !kernel.isCalled() : kernel.getSymName() == kernelName)
      found = kernel;
  return found;
}

static std::optional<Execution> execute(llvm::StringRef file, MLIRContext &context) {
  llvm::StringMap<double> given, scalarValues;
  if (!parseAssignments(sizeTexts, given) || !parseAssignments(scalarTexts, scalarValues))
    return std::nullopt;
  Execution run;
  run.module = parseSourceFile<ModuleOp>(file, ParserConfig(&context));
  if (!run.module)
    return std::nullopt;
  run.kernel = findKernel(*run.module);
  if (!run.kernel) {
    llvm::errs() << file << ": no kernel '" << kernelName << "'\n";
    return std::nullopt;
  }
  // Bound sizes are given, derived ones follow.
  llvm::StringMap<int64_t> sizes;
  for (auto &entry : given)
    sizes[entry.getKey()] = int64_t(entry.second);
  auto valueOf = [&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = sizes.find(var.name());
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  };
  for (Attribute attr : run.kernel.getSizeAttrs()) {
    auto size = cast<tgl::SizeAttr>(attr);
    if (!size.isBound())
      if (std::optional<int64_t> value = size.getDefinition().evaluate(valueOf))
        sizes[size.getName()] = *value;
  }
  std::vector<HostTensor> inputs;
  std::vector<InterpreterScalar> scalars;
  for (unsigned i = 0; i < run.kernel.getNumArguments(); ++i) {
    auto type = dyn_cast<tgl::TglTensorType>(run.kernel.getArgumentTypes()[i]);
    if (!type) {
      auto scalar = scalarValues.find(run.kernel.getArgName(i));
      scalars.push_back(scalar == scalarValues.end() ? 2.0 : scalar->second);
      continue;
    }
    if (run.kernel.getArgRole(i) == "out")
      continue;
    llvm::SmallVector<int64_t> shape;
    for (tgl::IndexExprAttr dim : type.getDims()) {
      std::optional<int64_t> value = dim.getExpr().evaluate(valueOf);
      if (!value || *value < 0) {
        llvm::errs() << file << ": no value for '" << dim.getExpr().str() << "', a dim of '"
                     << run.kernel.getArgName(i) << "'; give sizes with -d\n";
        return std::nullopt;
      }
      shape.push_back(*value);
    }
    DType dtype = *dtypeOf(type.getElementType());
    if (!storageBytes(dtype, shape)) {
      llvm::errs() << file << ": '" << run.kernel.getArgName(i) << "' is too large\n";
      return std::nullopt;
    }
    inputs.push_back(makeInput(dtype, shape, i));
  }
  InterpreterOptions options;
  options.tileSize = tileSize;
  options.reversePoints = reversePoints;
  run.result = interpret(run.kernel, inputs, sizes, scalars, options);
  for (const InterpreterError &error : run.result.errors)
    emitError(error.location, error.message);
  return run;
}

static void printOutputs(Execution &run) {
  size_t next = 0;
  for (unsigned i = 0; i < run.kernel.getNumArguments(); ++i) {
    llvm::StringRef role = run.kernel.getArgRole(i);
    if ((role != "out" && role != "inout") || next == run.result.outputs.size())
      continue;
    const HostTensor &tensor = run.result.outputs[next++];
    llvm::outs() << run.kernel.getArgName(i) << ": " << toString(tensor.dtype) << '[';
    llvm::interleaveComma(tensor.shape, llvm::outs());
    llvm::outs() << "] =";
    for (int64_t n = 0; n < tensor.numElements(); ++n)
      llvm::outs() << ' ' << llvm::format("%.9g", tensor.get(n));
    llvm::outs() << '\n';
  }
}

/// True where the outputs agree; says where they first do not.
static bool compare(const InterpreterResult &found, const InterpreterResult &wanted) {
  if (found.outputs.size() != wanted.outputs.size()) {
    llvm::errs() << "expected " << wanted.outputs.size() << " outputs, found "
                 << found.outputs.size() << '\n';
    return false;
  }
  for (auto [k, outputs] : llvm::enumerate(llvm::zip_equal(found.outputs, wanted.outputs))) {
    auto &[mine, theirs] = outputs;
    if (mine.shape != theirs.shape || mine.dtype != theirs.dtype) {
      llvm::errs() << "output " << k << " differs in type or shape\n";
      return false;
    }
    for (int64_t n = 0; n < mine.numElements(); ++n) {
      double a = mine.get(n), b = theirs.get(n);
      if (a == b || (std::isnan(a) && std::isnan(b)) ||
          std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)))
        continue;
      llvm::errs() << "output " << k << " differs at element " << n << ": expected "
                   << llvm::format("%.9g", b) << ", found " << llvm::format("%.9g", a) << '\n';
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Runs textual tgl IR on made-up data\n");
  DialectRegistry registry;
  registry.insert<tgl::TglDialect, tile::TileDialect, func::FuncDialect, scf::SCFDialect>();
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);

  std::optional<Execution> run = execute(inputFile, context);
  if (!run)
    return 2;
  if (!quiet)
    printOutputs(*run);
  for (const InterpreterError &error : run->result.errors)
    if (error.kind == InterpreterError::Invalid || error.kind == InterpreterError::Guard)
      return 2;
  if (!run->result.ok())
    return 1;
  if (against.empty())
    return 0;
  std::optional<Execution> other = execute(against, context);
  if (!other)
    return 2;
  return other->result.ok() && compare(run->result, other->result) ? 0 : 1;
}
