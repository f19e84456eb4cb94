//===- ErrorBounds.cpp - How far roundings may take a result -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/ErrorBounds.h"

#include "ir/tgl/Tgl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "prove/Evaluate.h"
#include <cmath>

using namespace llvm;

namespace tegula::bench {

/// A second or two of evaluation.
static constexpr uint64_t mostSteps = 4'000'000;

ErrorBounds::ErrorBounds() {
  mlir::DialectRegistry registry;
  registry.insert<tgl::TglDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
}

ErrorBounds::~ErrorBounds() = default;

std::unique_ptr<ErrorBounds> ErrorBounds::make(const Module &module, CompileOptions options) {
  options.target = "cpu";
  options.stopAfter = Phase::Emit;
  options.keepStages = {"tgl"};
  Diagnostics unheard(module.sourceManager());
  Expected<std::unique_ptr<CompiledKernel>> compiled = compileKernel(module, options, unheard);
  if (!compiled) {
    consumeError(compiled.takeError()); // as the launch was told, which compiled it too
    return nullptr;
  }
  if (!*compiled)
    return nullptr;
  std::unique_ptr<ErrorBounds> made(new ErrorBounds);
  made->module = mlir::parseSourceString<mlir::ModuleOp>((*compiled)->stages["tgl"],
                                                         mlir::ParserConfig(made->context.get()));
  return made->module ? std::move(made) : nullptr;
}

static prove::PointTensor pointOf(const Tensor &tensor, StringRef name,
                                  const std::vector<double> *errors, uint64_t seed,
                                  const prove::Algebra &algebra) {
  prove::PointTensor point;
  point.name = name.str();
  point.dtype = tensor.dtype();
  point.shape.assign(tensor.shape().begin(), tensor.shape().end());
  for (int64_t n = 0, count = tensor.elements(); n < count; ++n) {
    if (!isFloat(point.dtype)) {
      point.integers.push_back(tensor.integer(n));
      continue;
    }
    double value = tensor.real(n);
    prove::Number number;
    if (std::isfinite(value) && value != 0)
      number = algebra.drawn(value, prove::mix(seed, uint64_t(n)));
    else if (value != 0)
      number = std::isnan(value) ? algebra.nan() : algebra.infinity(value < 0);
    number.heldAs = uint8_t(unsigned(point.dtype) + 1);
    number.error = errors ? (*errors)[size_t(n)] : 0;
    point.numbers.push_back(number);
  }
  return point;
}

std::optional<ErrorBounds::ByName> ErrorBounds::at(const Launch &launch,
                                                   const ByName &ofInputs) const {
  tgl::KernelOp entry;
  for (auto kernel : module.get().getOps<tgl::KernelOp>())
    if (!kernel.isCalled())
      entry = kernel;
  prove::Algebra algebra(/*seed=*/1);
  std::vector<prove::PointTensor> inputs;
  std::vector<prove::PointScalar> scalars;
  RefValues values = launch.refValues();
  for (auto [index, argument] : enumerate(launch.kernel().arguments)) {
    if (argument.role == KernelArgument::In || argument.role == KernelArgument::Inout) {
      auto errors = ofInputs.find(argument.name);
      inputs.push_back(pointOf(launch.host(index), argument.name,
                               errors == ofInputs.end() ? nullptr : &errors->second, index,
                               algebra));
    } else if (argument.role == KernelArgument::Scalar) {
      auto found = values.find(argument.name);
      if (found == values.end())
        return std::nullopt;
      if (auto *integer = std::get_if<int64_t>(&found->second))
        scalars.emplace_back(*integer);
      else if (auto *truth = std::get_if<bool>(&found->second))
        scalars.emplace_back(int64_t(*truth));
      else if (auto *real = std::get_if<double>(&found->second))
        scalars.emplace_back(algebra.constant(*real, /*isDouble=*/true));
    }
  }
  prove::Coverage coverage;
  prove::EvaluateOptions options;
  options.maxSteps = mostSteps;
  prove::Evaluation found = prove::evaluate(entry, inputs, scalars, algebra, coverage, options);
  if (found.problem != prove::Evaluation::None)
    return std::nullopt;
  ByName bounds;
  for (const prove::PointTensor &output : found.outputs)
    for (const prove::Number &number : output.numbers)
      bounds[output.name].push_back(number.kind == prove::Number::Finite ? number.error : 0);
  return bounds;
}

} // namespace tegula::bench
