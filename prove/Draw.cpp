//===- Draw.cpp - Sizes and data at which programs are evaluated --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Draw.h"
#include "prove/EvaluateImpl.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

llvm::StringRef tegula::prove::toString(DataKind kind) {
  static const llvm::StringRef names[] = {"normal",   "large", "huge", "sparse", "positive",
                                          "infinite", "ties",  "far",  "blank",  "tiny"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(SizeKind kind) {
  static const llvm::StringRef names[] = {"borders", "small", "primes", "wide"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(IntegerKind kind) {
  static const llvm::StringRef names[] = {"small", "wide", "outside", "named"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(ScalarKind kind) {
  static const llvm::StringRef names[] = {"positive", "signed", "zero"};
  return names[unsigned(kind)];
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

uint64_t tegula::prove::elementsOf(tgl::KernelOp kernel, const Sizes &sizes) {
  uint64_t total = 0;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = dyn_cast<tgl::TglTensorType>(type);
    auto shape = tensor ? shapeOf(tensor, sizes) : std::nullopt;
    uint64_t count = shape ? 1 : 0;
    for (int64_t dim : shape.value_or(llvm::SmallVector<int64_t>()))
      count = llvm::SaturatingMultiply(count, uint64_t(dim));
    total = llvm::SaturatingAdd(total, count);
  }
  return total;
}

/// A real of 24 bits, as f32 holds it.
static Real drawReal(DataKind kind, uint64_t bits) {
  Real share = Real(float(bits >> 40)) * 0x1p-24L; // in [0, 1)
  bool isNegative = bits & 1;
  Real scale = kind == DataKind::Large || kind == DataKind::Blank ? 20
               : kind == DataKind::Huge                           ? 400
               : kind == DataKind::Tiny                           ? 0x1p-4L
                                                                  : 2;
  if (kind == DataKind::Positive)
    return share + 0x1p-24L;
  Real value = Real(float(share * scale)) + 0x1p-20L;
  return isNegative ? -value : value;
}

namespace {
/// Draws the data of one point.
class Drawer {
public:
  Drawer(const PointKind &kind, uint64_t seed, const Algebra &algebra, const Hints &hints)
      : kind(kind), seed(seed), algebra(algebra), hints(hints) {
    if (kind.data == DataKind::Ties)
      fillPool();
  }

  /// Element `n` of the tensor whose own seed this is.
  Number number(DType type, uint64_t own, int64_t n) const {
    bool isLeftOut = mix(own, ~uint64_t(n / 4)) & 1;
    if (isLeftOut && kind.data == DataKind::Sparse)
      return Number();
    if (kind.data == DataKind::Blank && mix(own, 0x626c616e6b) % 2 == 0)
      return Number();
    if (isLeftOut && kind.data == DataKind::Infinite)
      return algebra.infinity(true);
    uint64_t bits = mix(own, uint64_t(n));
    Number number;
    if (kind.data == DataKind::Ties)
      number = tie(own, bits, n);
    else if (isLeftOut && kind.data == DataKind::Far && !hints.farConstants.empty())
      number = far(own, n, bits);
    else
      number = algebra.drawn(drawReal(kind.data, bits), bits);
    number.numerator = 1;
    number.heldAs = uint8_t(unsigned(type) + 1);
    return number;
  }

  int64_t integer(DType type, uint64_t own, int64_t n, bool leads) const {
    uint64_t bits = mix(own, uint64_t(n)), more = mix(bits, 1);
    if (type == DType::Bool)
      return int64_t(bits & 1);
    auto small = int64_t(bits % uint64_t(kind.integerLimit));
    if (kind.integers == IntegerKind::Small || (leads && kind.integers == IntegerKind::Wide))
      return wrap(small, type);
    if (leads && kind.integers == IntegerKind::Named)
      return wrap(more % 2 || hints.integers.empty() ? small
                                                     : hints.integers[bits % hints.integers.size()],
                  type);
    if (leads)
      return wrap(more % 2 ? small : int64_t(bits % uint64_t(kind.integerLimit + 6)) - 3, type);
    switch (more % 4) {
    case 0:
      return wrap(int64_t(bits % 9) - 4, type);
    case 1:
      if (!hints.integers.empty())
        return wrap(
            int64_t(uint64_t(hints.integers[bits % hints.integers.size()]) + more / 4 % 3 - 1),
            type);
      [[fallthrough]];
    case 2: // of any magnitude
      return wrap(int64_t(mix(bits, 2)) >> more / 4 % 64, type);
    default:
      return wrap(int64_t(mix(bits, 2)), type);
    }
  }

private:
  /// Small halves and constants with what lies around them, of which each point has a few.
  void fillPool() {
    std::vector<Hints::Constant> all = {{-1, false}, {-0.5, false}, {0, false},   {0.5, false},
                                        {1, false},  {1.5, false},  {-2.5, false}};
    for (const Hints::Constant &one : hints.constants) {
      all.push_back(one);
      all.push_back(one);
      all.push_back({-one.value, one.isDouble});
      all.push_back({2 * one.value, one.isDouble});
    }
    for (size_t k = 0; k + 1 < hints.constants.size(); ++k)
      all.push_back({(hints.constants[k].value + hints.constants[k + 1].value) / 2, true});
    Draws draws(mix(seed, 0x74696573));
    for (unsigned k = 0; k < 6; ++k) {
      const Hints::Constant &one = all[draws.below(all.size())];
      pool.push_back(algebra.constant(one.value, one.isDouble));
    }
  }

  Number tie(uint64_t own, uint64_t bits, int64_t n) const {
    size_t place = n % 2      ? size_t(own % pool.size()) + size_t(n / 2)
                   : bits % 3 ? size_t(bits / 3)
                              : size_t(mix(seed, uint64_t(n))); // as in other tensors
    return pool[place % pool.size()];
  }

  /// The same constant for a run, so that a reduction may see nothing else.
  Number far(uint64_t own, int64_t n, uint64_t bits) const {
    const Hints::Constant &one =
        hints.farConstants[mix(own, uint64_t(n / 4)) % hints.farConstants.size()];
    return algebra.constant(one.value * (1 + 0.5 * double(bits % 3)), true);
  }

  const PointKind &kind;
  uint64_t seed;
  const Algebra &algebra;
  const Hints &hints;
  std::vector<Number> pool;
};
} // namespace

static PointScalar drawScalar(Type type, const PointKind &kind, uint64_t own, bool leads,
                              const Algebra &algebra, const Drawer &drawer, bool isPlain) {
  if (!isa<FloatType>(type)) {
    bool isSmall = leads || kind.integers == IntegerKind::Small || isPlain;
    return isSmall ? int64_t(1 + own % 3) : drawer.integer(DType::I32, own, 0, false);
  }
  switch (kind.scalars) {
  case ScalarKind::Zero:
    return Number();
  case ScalarKind::Signed: {
    auto value = double(int64_t(own % 121) - 60) / 20;
    if (isPlain)
      return algebra.constant(value, true);
    return algebra.drawn(Real(value) + 0x1p-20L, own);
  }
  case ScalarKind::Positive:
    break;
  }
  if (isPlain)
    return algebra.constant(double(1 + own % 19) / 20, true);
  return algebra.drawn(drawReal(DataKind::Positive, own), own);
}

Point tegula::prove::drawPoint(tgl::KernelOp kernel, const Sizes &sizes, const PointKind &kind,
                               uint64_t seed, const Algebra &algebra, const Hints &hints,
                               bool hasPlainScalars) {
  Point point;
  Drawer drawer(kind, seed, algebra, hints);
  size_t read = 0;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    uint64_t own = mix(seed, 1000 + i);
    if (kernel.getArgRole(i) == "out")
      continue;
    bool leads = read >= hints.leads.size() || hints.leads[read];
    ++read;
    auto type = dyn_cast<tgl::TglTensorType>(kernel.getArgumentTypes()[i]);
    if (!type) {
      point.scalars.push_back(drawScalar(kernel.getArgumentTypes()[i], kind, own, leads, algebra,
                                         drawer, hasPlainScalars));
      continue;
    }
    PointTensor tensor;
    tensor.name = kernel.getArgName(i).str();
    tensor.dtype = *dtypeOf(type.getElementType());
    tensor.shape = *shapeOf(type, sizes);
    int64_t count = kind.isOutline ? 0 : tensor.count();
    (isFloat(tensor.dtype) ? tensor.numbers.reserve(size_t(count))
                           : tensor.integers.reserve(size_t(count)));
    for (int64_t n = 0; n < count; ++n) {
      if (isFloat(tensor.dtype))
        tensor.numbers.push_back(drawer.number(tensor.dtype, own, n));
      else
        tensor.integers.push_back(drawer.integer(tensor.dtype, own, n, leads));
    }
    point.inputs.push_back(std::move(tensor));
  }
  return point;
}
