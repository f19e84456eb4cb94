//===- TileCheck.cpp - Results do not depend on tile sizes ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/verify/TileCheck.h"
#include "frontend/lower/EmitIR.h"
#include "frontend/verify/TileSlice.h"
#include "ir/interpreter/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "symbolic/ProveSample.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;
using namespace mlir;

namespace {
// Points of the largest nest at the sizes tried, and steps of one interpretation.
constexpr double maxWork = 1000, maxBroadWork = 150;
constexpr uint64_t maxSteps = 400000;
constexpr double maxElements = maxSteps; // of one tensor
constexpr unsigned dataTried = 4;        // at the first sizes
constexpr unsigned nudgesTried = 4;

//===----------------------------------------------------------------------===//
// Sizes and data
//===----------------------------------------------------------------------===//

using Sizes = llvm::StringMap<int64_t>;

std::optional<int64_t> valueOf(const IndexExpr &expr, const Sizes &sizes) {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = var.isSymbol() ? sizes.find(var.name()) : sizes.end();
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

SizeFacts factsOf(const Program &program) {
  SizeFacts facts;
  for (const Size &size : program.sizes)
    if (!size.boundBy)
      facts.definitions.push_back({size.name, size.definition});
  for (const Guard &guard : program.guards)
    switch (guard.kind) {
    case Guard::NonNegative:
      facts.facts.push_back(Condition::nonNegative(guard.lhs));
      break;
    case Guard::Zero:
      facts.facts.push_back(Condition::zero(guard.lhs));
      break;
    case Guard::NonZero:
      facts.facts.push_back(Condition::nonZero(guard.lhs));
      break;
    case Guard::Divides:
      facts.facts.push_back(Condition::divides(guard.lhs, guard.rhs));
      break;
    case Guard::InBounds:
      break; // a run at sizes that break it reports the access and is dropped
    }
  return facts;
}

/// Small sizes at which the tile loops have several tiles: once with long loops in few points, once
/// with as many sizes as possible above 2, so that masks meet tiles in different ways.
std::vector<Sizes> chooseSizes(const SizeFacts &facts, const Program &program,
                               const TileSlice &slice) {
  std::vector<IndexExpr> all;
  for (const Size &size : program.sizes)
    all.push_back(IndexExpr::symbol(size.name));
  SizeSampler sampler(facts, all);
  std::optional<std::pair<double, Sizes>> longest, broadest;
  for (unsigned i = 0; i < 150 && sampler.next(); ++i) {
    Sizes sizes;
    double work = 1, broad = 0;
    int64_t largest = 0;
    for (const auto &[name, value] : sampler.sizes()) {
      sizes[name] = value;
      largest = std::max(largest, value);
      work *= std::max<int64_t>(value, 1);
      broad += value > 2;
    }
    bool good = work <= maxWork;
    for (const Tensor *tensor :
         llvm::concat<const Tensor *const>(program.inputs, program.outputs)) {
      double elements = 1;
      for (const IndexExpr &dim : tensor->dims) {
        int64_t extent = valueOf(dim, sizes).value_or(0);
        good &= extent > 0; // an empty tensor shows nothing
        elements *= double(extent);
      }
      good &= elements <= maxElements;
    }
    if (!good)
      continue;
    double extents = 0;
    for (const Stmt *loop : slice.loops) {
      std::optional<int64_t> lo = valueOf(loop->vars[0]->lo, sizes);
      std::optional<int64_t> hi = valueOf(loop->vars[0]->hi, sizes);
      int64_t extent = lo && hi ? *hi - *lo : largest; // of data, which is at most that
      // Beyond 7 there is nothing new: 2 and 3 leave ragged tiles there.
      extents += std::clamp<int64_t>(extent, 0, 7) - 0.1 * (extent % 6 == 0);
    }
    auto offer = [&](auto &best, double score) {
      if (!best || score > best->first)
        best = {score, sizes};
    };
    offer(longest, 4 * extents - 3 * std::log2(work));
    if (work <= maxBroadWork)
      offer(broadest, 2 * extents + 6 * broad - std::log2(work));
  }
  std::vector<Sizes> result;
  for (auto *best : {&longest, &broadest})
    if (*best)
      result.push_back((*best)->second);
  return result;
}

/// A tile that holds every range at the sizes tried.
int64_t wholeTile(const Program &program, const TileSlice &slice, llvm::ArrayRef<Sizes> tried) {
  int64_t whole = 8;
  auto see = [&](const IndexExpr &expr, const Sizes &sizes) {
    whole = std::max(whole, valueOf(expr, sizes).value_or(0));
  };
  for (const Sizes &sizes : tried) {
    for (const auto &size : sizes)
      whole = std::max(whole, size.second);
    for (const Tensor *tensor : llvm::concat<const Tensor *const>(program.inputs, program.outputs))
      for (const IndexExpr &dim : tensor->dims)
        see(dim, sizes);
    for (const Stmt *loop : slice.loops)
      see(loop->vars[0]->hi - loop->vars[0]->lo, sizes);
  }
  return whole;
}

class Randomness {
public:
  explicit Randomness(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull >> 11;
  }
  /// Roughly normal.
  double normal() {
    double sum = 0;
    for (unsigned i = 0; i < 4; ++i)
      sum += double(next() % 1024) / 512 - 1;
    return sum * 0.87;
  }

private:
  uint64_t state;
};

/// What to fill inputs with: number `seed` of the random data, for `nudge` > 0 with the last bits
/// of the floats changed, each time differently.
struct Data {
  unsigned seed;
  unsigned nudge = 0;
};

/// A relative change of a few units in the last place.
double lastBits(tegula::DType type) {
  switch (type) {
  case tegula::DType::F8E5M2:
    return 0x1p-2;
  case tegula::DType::F8E4M3:
    return 0x1p-3;
  case tegula::DType::BF16:
    return 0x1p-7;
  case tegula::DType::F16:
    return 0x1p-10;
  default:
    return 0x1p-20;
  }
}

/// `maxLength`: the most that an integer should be that is the length of a range.
HostTensor randomTensor(tegula::DType type, llvm::ArrayRef<int64_t> shape, int64_t maxLength,
                        Randomness &random, const Data &data) {
  HostTensor tensor(type, shape);
  double scale = data.seed == 0 ? 1 : 3;
  Randomness nudges(data.nudge);
  // As a mask both ways; as a subscript small enough for most dims; as a length of several tiles.
  uint64_t integers = type == tegula::DType::Bool ? 2 : data.seed % 2 ? maxLength + 1 : 3;
  for (int64_t i = 0, n = tensor.numElements(); i < n; ++i) {
    double nudged = data.nudge ? 1 + (double(nudges.next() % 3) - 1) * lastBits(type) : 1;
    tensor.set(i,
               isFloat(type) ? random.normal() * scale * nudged : double(random.next() % integers));
  }
  return tensor;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

struct Difference {
  std::string tensor;
  std::vector<int64_t> element;
  double one, other;
};

std::vector<int64_t> elementAt(llvm::ArrayRef<int64_t> shape, int64_t n) {
  std::vector<int64_t> result(shape.size());
  for (size_t k = shape.size(); k-- > 0; n /= shape[k])
    result[k] = n % shape[k];
  return result;
}

std::optional<Difference> compare(const HostTensor &one, const HostTensor &other,
                                  llvm::StringRef name, double tolerance) {
  double largest = 0;
  for (int64_t i = 0, n = one.numElements(); i < n; ++i)
    if (std::isfinite(one.get(i)))
      largest = std::max(largest, std::abs(one.get(i)));
  for (int64_t i = 0, n = one.numElements(); i < n; ++i) {
    double a = one.get(i), b = other.get(i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    // Sums may cancel: a small element can carry the rounding of large terms.
    double room = tolerance * std::max({std::abs(a), std::abs(b), largest / 4});
    if (std::abs(a - b) <= room)
      continue;
    return Difference{name.str(), elementAt(one.shape, i), a, b};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

class TileChecker {
public:
  TileChecker(Program &program, Diagnostics &diagnostics, MLIRContext &context)
      : program(program), diagnostics(diagnostics), context(context), facts(factsOf(program)) {}

  /// False where the slice could not be run at any sizes.
  bool check(const TileSlice &slice);

private:
  struct Run {
    std::vector<HostTensor> outputs;
    std::vector<std::string> names;
  };
  /// All loops in tiles of `others`, those over `axis` (where given) in tiles of `size`.
  OwningOpRef<ModuleOp> emit(llvm::StringRef axis, int64_t size, int64_t others);
  std::optional<Run> run(ModuleOp module, const Sizes &sizes, Data data);
  std::optional<Difference> differ(const Run &one, const Run &other, double tolerance);
  bool isRounding(ModuleOp reference, const Sizes &sizes, unsigned data, const Run &expected,
                  const Difference &difference);
  bool report(const Stmt &loop, int64_t size, const Sizes &sizes, const Difference &difference);

  Program &program;
  Diagnostics &diagnostics;
  MLIRContext &context;
  SizeFacts facts;
};

OwningOpRef<ModuleOp> TileChecker::emit(llvm::StringRef axis, int64_t size, int64_t others) {
  program.schedule.clear();
  if (!axis.empty())
    program.schedule.push_back({"tile", axis.str(), size, {}});
  OwningOpRef<ModuleOp> module =
      emitIR(program, diagnostics.sourceManager(), context, EmitOptions{others});
  program.schedule.clear();
  return module;
}

std::optional<TileChecker::Run> TileChecker::run(ModuleOp module, const Sizes &sizes, Data data) {
  tgl::KernelOp kernel;
  for (auto candidate : module.getOps<tgl::KernelOp>())
    if (!candidate.isCalled())
      kernel = candidate;
  llvm::SmallVector<Attribute> definitions;
  for (const Size &size : program.sizes)
    definitions.push_back(
        tgl::SizeAttr::get(&context, size.name, IndexExpr(sizes.lookup(size.name))));
  kernel.setSizesAttr(ArrayAttr::get(&context, definitions));

  Randomness random(data.seed + 1);
  int64_t maxLength = 2;
  for (const auto &size : sizes)
    maxLength = std::max(maxLength, size.second);
  std::vector<HostTensor> inputs;
  std::vector<InterpreterScalar> scalars;
  Run result;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    llvm::StringRef role = kernel.getArgRole(i);
    auto tensor = dyn_cast<tgl::TglTensorType>(type);
    if (!tensor) {
      if (isa<FloatType>(type))
        scalars.push_back(0.5 + double(random.next() % 8) / 8);
      else
        scalars.push_back(int64_t(1 + random.next() % 2));
      continue;
    }
    if (role != "in")
      result.names.push_back(kernel.getArgName(i).str());
    if (role == "out")
      continue;
    llvm::SmallVector<int64_t> shape;
    for (tgl::IndexExprAttr dim : tensor.getDims())
      shape.push_back(*valueOf(dim.getExpr(), sizes));
    inputs.push_back(
        randomTensor(*dtypeOf(tensor.getElementType()), shape, maxLength, random, data));
  }
  InterpreterOptions options;
  options.maxSteps = maxSteps;
  InterpreterResult run = interpret(kernel, inputs, {}, scalars, options);
  for (const InterpreterError &error : run.errors)
    // Data that stands in subscripts was drawn blindly; parts of outputs may be written elsewhere.
    if (error.kind != InterpreterError::BadSubscript && error.kind != InterpreterError::Undefined)
      return std::nullopt;
  if (run.outputs.size() != result.names.size())
    return std::nullopt;
  result.outputs = std::move(run.outputs);
  return result;
}

std::optional<Difference> TileChecker::differ(const Run &one, const Run &other, double tolerance) {
  for (auto [a, b, name] : llvm::zip_equal(one.outputs, other.outputs, one.names))
    if (std::optional<Difference> difference = compare(a, b, name, tolerance))
      return difference;
  return std::nullopt;
}

/// Whether the last bits of the inputs alone change the element by about as much: where all terms
/// of a sum cancel, what is left of them is rounding, which no size of the result's own tells.
bool TileChecker::isRounding(ModuleOp reference, const Sizes &sizes, unsigned data,
                             const Run &expected, const Difference &difference) {
  double wanted = std::abs(difference.one - difference.other);
  if (!std::isfinite(wanted))
    return false;
  for (unsigned nudge = 1; nudge <= nudgesTried; ++nudge) {
    std::optional<Run> nudged = run(reference, sizes, {data, nudge});
    if (!nudged)
      continue;
    for (auto [a, b, name] : llvm::zip_equal(expected.outputs, nudged->outputs, expected.names)) {
      if (name != difference.tensor)
        continue;
      for (int64_t i = 0, n = a.numElements(); i < n; ++i)
        if (std::isfinite(b.get(i)) && 16 * std::abs(a.get(i) - b.get(i)) >= wanted)
          return true;
    }
  }
  return false;
}

bool TileChecker::report(const Stmt &loop, int64_t size, const Sizes &sizes,
                         const Difference &difference) {
  auto number = [](double value) -> std::string {
    if (std::isnan(value))
      return "nan"; // without the sign that the library would print
    std::string text;
    llvm::raw_string_ostream os(text);
    os << llvm::format("%.6g", value);
    return text;
  };
  std::string element = difference.tensor;
  for (auto [k, at] : llvm::enumerate(difference.element))
    element += (k ? ", " : "[") + std::to_string(at);
  if (!difference.element.empty())
    element += "]";
  std::string at;
  for (const Size &size : program.sizes)
    at += (at.empty() ? "" : ", ") + size.name + " = " + std::to_string(sizes.lookup(size.name));
  auto diagnostic =
      diagnostics.report(Code::TileDependent, loop.span,
                         "the result depends on the tile size: " + element + " is " +
                             number(difference.one) + " in tiles of 1, but " +
                             number(difference.other) + " in tiles of " + std::to_string(size));
  diagnostic.note("found by running the loop on random data" + (at.empty() ? "" : " at " + at));
  if (std::isnan(difference.one) != std::isnan(difference.other))
    diagnostic.note(
        "where a tile is masked throughout, -inf minus -inf is nan: let a running maximum "
        "start at -1e30 instead of -inf");
  else
    diagnostic.note("each iteration must combine its tile with the state so that any split of the "
                    "range gives the same, as in `s = s + sum(v for j)` or "
                    "`m = maximum(m, max(v for j))`");
  return true;
}

bool TileChecker::check(const TileSlice &slice) {
  TileDisguise disguise(program, slice);
  std::vector<Sizes> tried = chooseSizes(facts, program, slice);
  if (tried.empty())
    return false;
  int64_t whole = wholeTile(program, slice, tried);
  OwningOpRef<ModuleOp> reference = emit("", 1, 1);
  std::vector<std::pair<int64_t, OwningOpRef<ModuleOp>>> variants;
  for (int64_t size : {int64_t(2), int64_t(3), whole})
    variants.emplace_back(size, emit("", size, size));

  bool compared = false;
  for (const Sizes &sizes : tried)
    for (unsigned data = 0; data < (&sizes == &tried.front() ? dataTried : 1); ++data) {
      std::optional<Run> expected = run(*reference, sizes, {data});
      if (!expected)
        continue;
      for (auto &[size, module] : variants) {
        std::optional<Run> found = run(*module, sizes, {data});
        if (!found)
          continue;
        compared = true;
        std::optional<Difference> difference = differ(*expected, *found, slice.tolerance);
        if (!difference || isRounding(*reference, sizes, data, *expected, *difference))
          continue;
        // Which loop is it? One at a time.
        for (const Stmt *loop : slice.loops) {
          OwningOpRef<ModuleOp> single = emit(loop->vars[0]->name, size, 1);
          std::optional<Run> alone = run(*single, sizes, {data});
          if (!alone)
            continue;
          if (std::optional<Difference> own = differ(*expected, *alone, slice.tolerance))
            return report(*loop, size, sizes, *own);
        }
        return report(*slice.loops.front(), size, sizes, *difference);
      }
    }
  return compared;
}
} // namespace

TileCheckResult tegula::checkTiles(Program &program, Diagnostics &diagnostics) {
  TileCheckResult result;
  std::vector<TileSlice> slices = findTileSlices(program, diagnostics.sourceManager());
  if (slices.empty())
    return result;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  TileChecker checker(program, diagnostics, context);
  for (const TileSlice &slice : slices) {
    ++result.statements;
    if (checker.check(slice))
      ++result.compared;
    else
      result.untried.push_back(slice.loops.front()->span);
  }
  return result;
}
