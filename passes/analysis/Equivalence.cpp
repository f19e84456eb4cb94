//===- Equivalence.cpp - Checks that passes keep results ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Equivalence.h"
#include "ir/tgl/TglFunctions.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Pass/PassInstrumentation.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

KernelOp tegula::entryOf(ModuleOp module) {
  for (KernelOp kernel : module.getOps<KernelOp>())
    if (!kernel.isCalled())
      return kernel;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static std::optional<int64_t> evaluate(const IndexExpr &expr,
                                       const llvm::StringMap<int64_t> &sizes) {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = var.isSymbol() ? sizes.find(var.name()) : sizes.end();
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

/// One try: sizes at random, arguments of the shapes that follow.
static std::optional<KernelInputs> tryInputs(KernelOp kernel, std::mt19937_64 &random,
                                             const std::map<std::string, int64_t> &given) {
  static constexpr int64_t candidates[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12};
  KernelInputs inputs;
  int64_t smallest = 12;
  for (Attribute attr : kernel.getSizeAttrs()) {
    auto size = cast<SizeAttr>(attr);
    auto fixed = given.find(size.getName().str());
    std::optional<int64_t> value;
    if (fixed != given.end())
      value = fixed->second;
    else if (size.isBound())
      value = candidates[random() % std::size(candidates)];
    else
      value = evaluate(size.getDefinition(), inputs.sizes);
    if (!value)
      return std::nullopt;
    inputs.sizes[size.getName()] = *value;
    if (size.isBound() && *value > 0)
      smallest = std::min(smallest, *value);
  }
  for (auto [number, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    StringRef role = kernel.getArgRole(number);
    if (role == "scalar") {
      if (isa<FloatType>(type))
        inputs.scalars.push_back(double(random() % 4 + 1));
      else
        inputs.scalars.push_back(int64_t(random() % 2));
      continue;
    }
    if (role != "in" && role != "inout")
      continue;
    auto tensor = cast<TglTensorType>(type);
    SmallVector<int64_t> shape;
    for (IndexExprAttr dim : tensor.getDims()) {
      std::optional<int64_t> extent = evaluate(dim.getExpr(), inputs.sizes);
      if (!extent || *extent < 0 || *extent > 4096)
        return std::nullopt;
      shape.push_back(*extent);
    }
    HostTensor data(*dtypeOf(tensor.getElementType()), shape);
    // Integers may be subscripts: they stay below every size. Floats of both signs, no zeros, so
    // that quotients and logarithms of squares exist.
    for (int64_t element = 0; element < data.numElements(); ++element) {
      int64_t value = int64_t(random() % 6) - 3;
      data.set(element, isFloat(data.dtype) ? double(value < 0 ? value : value + 1)
                                            : double(random() % uint64_t(smallest)));
    }
    inputs.tensors.push_back(std::move(data));
  }
  return inputs;
}

std::optional<KernelInputs> tegula::randomInputs(KernelOp kernel, uint64_t seed,
                                                 const std::map<std::string, int64_t> &given) {
  std::mt19937_64 random(seed);
  for (unsigned attempt = 0; attempt < 2000; ++attempt) {
    std::optional<KernelInputs> inputs = tryInputs(kernel, random, given);
    if (!inputs)
      continue;
    InterpreterOptions options;
    options.maxSteps = 1; // the guards are decided before the first step
    InterpreterResult result =
        interpret(kernel, inputs->tensors, inputs->sizes, inputs->scalars, options);
    bool refused = llvm::any_of(result.errors, [](const InterpreterError &error) {
      return error.kind == InterpreterError::Guard || error.kind == InterpreterError::Invalid;
    });
    if (!refused)
      return inputs;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

bool tegula::isExactOnIntegers(KernelOp kernel) {
  return !kernel->getParentOfType<ModuleOp>()
              .walk([](Operation *op) {
                bool rounds = isa<arith::DivFOp, RandomOp>(op) || op->hasTrait<FloatFunction>() ||
                              (isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
                               !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp,
                                    math::TruncOp, math::RoundEvenOp, math::CopySignOp>(op));
                if (auto reduce = dyn_cast<ReduceOp>(op))
                  rounds = reduce.getKind() == ReduceKind::Mean ||
                           reduce.getKind() == ReduceKind::Var ||
                           reduce.getKind() == ReduceKind::LogSumExp;
                if (auto scan = dyn_cast<ScanOp>(op))
                  rounds =
                      scan.getKind() == ScanKind::Softmax || scan.getKind() == ScanKind::LogSoftmax;
                return rounds ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

static std::string describe(const InterpreterError &error) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "error after the pass: " << error.message << " at " << error.location;
  return text;
}

std::string tegula::difference(const InterpreterResult &before, const InterpreterResult &after,
                               double relative) {
  for (const InterpreterError &error : after.errors)
    if (llvm::none_of(before.errors,
                      [&](const InterpreterError &known) { return known.kind == error.kind; }))
      return describe(error);
  if (before.outputs.size() != after.outputs.size())
    return "another number of outputs";
  for (auto [number, tensors] : llvm::enumerate(llvm::zip_equal(before.outputs, after.outputs))) {
    auto &[was, is] = tensors;
    double largest = 0;
    for (int64_t n = 0; n < was.numElements(); ++n)
      if (double magnitude = std::abs(was.get(n)); std::isfinite(magnitude))
        largest = std::max(largest, magnitude);
    // A result of a storage type is a rounding away from one that differs in the last place of f32.
    double unit = was.dtype == DType::BF16                                   ? 0x1p-7
                  : was.dtype == DType::F16                                  ? 0x1p-10
                  : was.dtype == DType::F8E4M3 || was.dtype == DType::F8E5M2 ? 0x1p-2
                  : isFloat(was.dtype) ? 0
                                       : 1 / std::max(largest, 1.0);
    double allowed = relative == 0 ? 0 : largest * std::max(relative, unit * 1.01);
    for (int64_t n = 0; n < was.numElements(); ++n) {
      double x = was.get(n), y = is.get(n);
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= allowed)
        continue;
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "output " << number << ", element " << n << ": was " << x << ", is " << y;
      return text;
    }
  }
  return "";
}

namespace {
class EquivalenceCheck : public PassInstrumentation {
public:
  EquivalenceCheck(ModuleOp module, const KernelInputs &inputs,
                   std::function<void(StringRef, StringRef)> report)
      : inputs(inputs), report(std::move(report)),
        relative(isExactOnIntegers(entryOf(module)) ? 0 : 2e-5) {
    expected = interpret(entryOf(module), inputs.tensors, inputs.sizes, inputs.scalars);
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module)
      module = op->getParentOfType<ModuleOp>();
    KernelOp entry = module ? entryOf(module) : KernelOp();
    // A pass on a private kernel leaves it between two states of the entry; the entry decides.
    if (!entry || (isa<KernelOp>(op) && op != entry.getOperation()) || pass->getArgument().empty())
      return;
    InterpreterOptions options;
    options.reversePoints = flip = !flip; // an order that matters shows
    InterpreterResult result =
        interpret(entry, inputs.tensors, inputs.sizes, inputs.scalars, options);
    std::string text = difference(expected, result, relative);
    if (!text.empty())
      report(pass->getArgument(), text);
  }

private:
  KernelInputs inputs;
  std::function<void(StringRef, StringRef)> report;
  double relative;
  InterpreterResult expected;
  bool flip = false;
};
} // namespace

void tegula::checkEquivalence(PassManager &manager, ModuleOp module, const KernelInputs &inputs,
                              std::function<void(StringRef, StringRef)> report) {
  manager.getContext()->disableMultithreading();
  manager.addInstrumentation(std::make_unique<EquivalenceCheck>(module, inputs, std::move(report)));
}
