//===- Draw.cpp - Sizes and data at which programs are evaluated --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Draw.h"
#include "prove/EvaluateImpl.h"
#include "symbolic/Guards.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

llvm::StringRef tegula::prove::toString(DataKind kind) {
  static const llvm::StringRef names[] = {"normal", "large",    "huge",
                                          "sparse", "positive", "infinite"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(SizeKind kind) {
  static const llvm::StringRef names[] = {"borders", "primes", "wide"};
  return names[unsigned(kind)];
}

static int64_t drawSize(SizeKind kind, unsigned attempt, Draws &draws) {
  static const int64_t primes[] = {2, 3, 5, 7, 11, 13};
  static const int64_t multiples[] = {4, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  // Guards that want multiples, or sizes above others, are met by trying more and more freely.
  bool isFree = attempt > 40 && draws.below(3) == 0;
  if (isFree)
    return draws.below(2) ? multiples[draws.below(std::size(multiples))]
                          : 1 + int64_t(draws.below(16));
  switch (kind) {
  case SizeKind::Borders:
    return 1 + int64_t(draws.below(3));
  case SizeKind::Primes:
    return primes[draws.below(std::size(primes))];
  case SizeKind::Wide:
    return 4 + int64_t(draws.below(draws.below(2) ? 8 : 36));
  }
  return 1;
}

/// The dims of an argument; nothing where one has no value or is negative.
static std::optional<llvm::SmallVector<int64_t>> shapeOf(tgl::TglTensorType type,
                                                         const Sizes &sizes) {
  llvm::SmallVector<int64_t> shape;
  for (tgl::IndexExprAttr dim : type.getDims()) {
    std::optional<int64_t> value =
        dim.getExpr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
          auto found = sizes.find(var.name().str());
          return found == sizes.end() ? std::nullopt : std::optional(found->second);
        });
    if (!value || *value < 0)
      return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

/// Whether the guards admit these sizes.
static bool admits(tgl::KernelOp kernel, const LaunchChecks &checks, const Sizes &sizes) {
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  for (Type type : kernel.getArgumentTypes()) {
    shapes.emplace_back();
    auto tensor = dyn_cast<tgl::TglTensorType>(type);
    if (!tensor)
      continue;
    auto shape = shapeOf(tensor, sizes);
    if (!shape)
      return false;
    shapes.back() = *shape;
  }
  llvm::SmallVector<int64_t> values;
  return !checks.run([&](unsigned argument, unsigned dim) { return shapes[argument][dim]; },
                     values);
}

std::optional<Sizes> tegula::prove::drawSizes(tgl::KernelOp kernel, SizeKind kind,
                                              const Sizes &given, uint64_t seed) {
  std::vector<SizeSpec> sizeSpecs;
  std::vector<GuardSpec> guardSpecs;
  launchSpecs(kernel, sizeSpecs, guardSpecs);
  std::string error;
  std::optional<LaunchChecks> checks = LaunchChecks::make(sizeSpecs, guardSpecs, error);
  if (!checks)
    return std::nullopt;
  Draws draws(mix(seed, 0x73697a6573));
  for (unsigned attempt = 0; attempt < 5000; ++attempt) {
    Sizes sizes;
    bool isComplete = true;
    for (const SizeSpec &spec : sizeSpecs) {
      std::optional<int64_t> value;
      if (auto found = given.find(spec.name); found != given.end())
        value = found->second;
      else if (spec.boundBy)
        value = drawSize(kind, attempt, draws);
      else
        value = spec.definition.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
          auto found = sizes.find(var.name().str());
          return found == sizes.end() ? std::nullopt : std::optional(found->second);
        });
      isComplete = value && *value >= 0;
      if (!isComplete)
        break;
      sizes[spec.name] = *value;
    }
    if (isComplete && admits(kernel, *checks, sizes))
      return sizes;
  }
  return std::nullopt;
}

/// A real of 24 bits, as f32 holds it.
static Real drawReal(DataKind kind, uint64_t bits) {
  Real share = Real(float(bits >> 40)) * 0x1p-24L; // in [0, 1)
  bool isNegative = bits & 1;
  Real scale = kind == DataKind::Large ? 20 : kind == DataKind::Huge ? 400 : 2;
  if (kind == DataKind::Positive)
    return share + 0x1p-24L;
  Real value = Real(float(share * scale)) + 0x1p-20L;
  return isNegative ? -value : value;
}

/// Element `n` of the tensor whose own seed this is.
static Number drawNumber(DataKind kind, DType type, uint64_t own, int64_t n,
                         const Algebra &algebra) {
  bool isLeftOut = mix(own, ~uint64_t(n / 4)) & 1;
  if (isLeftOut && kind == DataKind::Sparse)
    return Number();
  if (isLeftOut && kind == DataKind::Infinite)
    return algebra.infinity(true);
  uint64_t bits = mix(own, uint64_t(n));
  Number number = algebra.drawn(drawReal(kind, bits), bits);
  number.heldAs = uint8_t(unsigned(type) + 1);
  return number;
}

Point tegula::prove::drawPoint(tgl::KernelOp kernel, const Sizes &sizes, DataKind kind,
                               int64_t integerLimit, uint64_t seed, const Algebra &algebra,
                               bool hasPlainScalars) {
  Point point;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    uint64_t own = mix(seed, 1000 + i);
    auto type = dyn_cast<tgl::TglTensorType>(kernel.getArgumentTypes()[i]);
    if (!type) {
      if (isa<FloatType>(kernel.getArgumentTypes()[i]) && hasPlainScalars)
        point.scalars.push_back(algebra.constant(double(1 + own % 19) / 20, true));
      else if (isa<FloatType>(kernel.getArgumentTypes()[i]))
        point.scalars.push_back(algebra.drawn(drawReal(DataKind::Positive, own), own));
      else
        point.scalars.push_back(int64_t(1 + own % 3));
      continue;
    }
    if (kernel.getArgRole(i) == "out")
      continue;
    PointTensor tensor;
    tensor.name = kernel.getArgName(i).str();
    tensor.dtype = *dtypeOf(type.getElementType());
    tensor.shape = *shapeOf(type, sizes);
    for (int64_t n = 0, count = tensor.count(); n < count; ++n) {
      if (isFloat(tensor.dtype))
        tensor.numbers.push_back(drawNumber(kind, tensor.dtype, own, n, algebra));
      else
        tensor.integers.push_back(
            wrap(int64_t(mix(own, uint64_t(n)) %
                         uint64_t(tensor.dtype == DType::Bool ? 2 : integerLimit)),
                 tensor.dtype));
    }
    point.inputs.push_back(std::move(tensor));
  }
  return point;
}
