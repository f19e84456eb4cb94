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
#include <set>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

llvm::StringRef tegula::prove::toString(DataKind kind) {
  static const llvm::StringRef names[] = {"normal",   "large", "huge", "sparse", "positive",
                                          "infinite", "ties",  "far",  "tiny"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(SizeKind kind) {
  static const llvm::StringRef names[] = {"borders", "small", "primes", "wide"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(IntegerKind kind) {
  static const llvm::StringRef names[] = {"small", "wide", "outside"};
  return names[unsigned(kind)];
}

llvm::StringRef tegula::prove::toString(ScalarKind kind) {
  static const llvm::StringRef names[] = {"positive", "signed", "zero"};
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
  case SizeKind::Small:
    return 2 + int64_t(draws.below(4));
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

/// Why the guards do not admit these sizes, nothing where they do; no value where a dim has none.
static std::optional<std::optional<GuardFailure>>
failureAt(tgl::KernelOp kernel, const LaunchChecks &checks, const Sizes &sizes) {
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  for (Type type : kernel.getArgumentTypes()) {
    shapes.emplace_back();
    auto tensor = dyn_cast<tgl::TglTensorType>(type);
    if (!tensor)
      continue;
    auto shape = shapeOf(tensor, sizes);
    if (!shape)
      return std::nullopt;
    shapes.back() = *shape;
  }
  llvm::SmallVector<int64_t> values;
  return checks.run([&](unsigned argument, unsigned dim) { return shapes[argument][dim]; }, values);
}

std::vector<std::string> tegula::prove::boundSizes(tgl::KernelOp kernel) {
  std::vector<SizeSpec> sizeSpecs;
  std::vector<GuardSpec> guardSpecs;
  launchSpecs(kernel, sizeSpecs, guardSpecs);
  std::vector<std::string> names;
  for (const SizeSpec &spec : sizeSpecs)
    if (spec.boundBy)
      names.push_back(spec.name);
  return names;
}

namespace {
/// Looks for sizes that the guards of a kernel admit.
class SizeSearch {
public:
  SizeSearch(tgl::KernelOp kernel, SizeKind kind, const Sizes &given, uint64_t seed)
      : kernel(kernel), kind(kind), given(given), draws(mix(seed, 0x73697a6573)) {
    std::vector<GuardSpec> guards;
    launchSpecs(kernel, specs, guards);
    std::string error;
    checks = LaunchChecks::make(specs, guards, error);
  }

  std::optional<Sizes> run() {
    if (!checks)
      return std::nullopt;
    for (unsigned attempt = 0; attempt < 5000; ++attempt) {
      Sizes sizes;
      // Where a network's sizes must meet many guards at once, hardly any draw does.
      bool isMended = attempt >= fewDraws && attempt < fewDraws + mendedDraws;
      for (const SizeSpec &spec : specs) {
        if (auto found = given.find(spec.name); found != given.end())
          sizes[spec.name] = found->second;
        else if (spec.boundBy)
          sizes[spec.name] = drawSize(kind, isMended ? 0 : attempt, draws);
      }
      if (isMended ? mend(sizes) : isAdmitted(sizes))
        return sizes;
    }
    return std::nullopt;
  }

private:
  static constexpr unsigned fewDraws = 40, mendedDraws = 60, mostChanges = 100;
  static constexpr int64_t largestMended = 128;

  /// Sets the derived sizes; false where one has no value.
  bool derive(Sizes &sizes) const {
    for (const SizeSpec &spec : specs) {
      if (spec.boundBy || given.count(spec.name))
        continue;
      std::optional<int64_t> value =
          spec.definition.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
            auto found = sizes.find(var.name().str());
            return found == sizes.end() ? std::nullopt : std::optional(found->second);
          });
      if (!value || *value < 0)
        return false;
      sizes[spec.name] = *value;
    }
    return true;
  }

  bool isAdmitted(Sizes &sizes) const {
    if (!derive(sizes))
      return false;
    auto failure = failureAt(kernel, *checks, sizes);
    return failure && !*failure;
  }

  /// How many guards hold before one does not; all and one more where all do.
  size_t progressOf(Sizes &sizes) const {
    if (!derive(sizes))
      return 0;
    auto failure = failureAt(kernel, *checks, sizes);
    if (!failure)
      return 0;
    if (!*failure)
      return checks->guards().size() + 2;
    return (*failure)->kind == GuardFailure::SizeError ? 0 : (*failure)->index + 1;
  }

  /// Changes one size after another so that more guards hold. False where that leads nowhere.
  bool mend(Sizes &sizes) {
    for (unsigned change = 0; change < mostChanges; ++change) {
      size_t progress = progressOf(sizes);
      if (progress > checks->guards().size() + 1)
        return true;
      std::vector<std::string> free = freeSizes(progress);
      if (free.empty())
        return false;
      if (!solve(sizes, progress, free) && !enlarge(sizes, progress, free))
        return false;
    }
    return false;
  }

  /// Drawn sizes that the guard at hand is about, in an order that is drawn; all where none is.
  std::vector<std::string> freeSizes(size_t progress) {
    std::vector<std::string> all, free;
    std::set<std::string> used;
    if (progress > 0)
      used = usedBy(checks->guards()[progress - 1]);
    for (const SizeSpec &spec : specs)
      if (spec.boundBy && !given.count(spec.name)) {
        all.push_back(spec.name);
        if (used.count(spec.name))
          free.push_back(spec.name);
      }
    std::vector<std::string> &result = free.empty() ? all : free;
    for (size_t k = result.size(); k > 1; --k)
      std::swap(result[k - 1], result[draws.below(k)]);
    return result;
  }

  /// Sizes that a guard is about, also by way of derived ones.
  std::set<std::string> usedBy(const GuardSpec &guard) const {
    std::set<std::string> used;
    auto add = [&](const IndexExpr &expr) {
      for (const IndexVar &var : expr.variables())
        if (var.isSymbol())
          used.insert(var.name().str());
    };
    add(guard.lhs);
    add(guard.rhs);
    for (const auto *list : {&guard.lows, &guard.highs, &guard.conditions})
      llvm::for_each(*list, add);
    for (const SizeSpec &spec : llvm::reverse(specs))
      if (!spec.boundBy && used.count(spec.name))
        add(spec.definition);
    return used;
  }

  /// Sets a size that an equation gives: KF = C*P*Q.
  bool solve(Sizes &sizes, size_t progress, llvm::ArrayRef<std::string> free) const {
    if (progress == 0 || checks->guards()[progress - 1].kind != GuardSpec::Zero)
      return false;
    const IndexExpr &equation = checks->guards()[progress - 1].lhs;
    for (const std::string &name : free) {
      auto valueAt = [&](int64_t value) -> std::optional<int64_t> {
        Sizes other = sizes;
        other[name] = value;
        if (!derive(other))
          return std::nullopt;
        return equation.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
          auto found = other.find(var.name().str());
          return found == other.end() ? std::nullopt : std::optional(found->second);
        });
      };
      std::optional<int64_t> at0 = valueAt(0), at1 = valueAt(1), at2 = valueAt(2);
      if (!at0 || !at1 || !at2 || *at1 == *at0 || *at2 - *at1 != *at1 - *at0 ||
          *at0 % (*at1 - *at0) != 0)
        continue;
      int64_t root = -*at0 / (*at1 - *at0);
      Sizes solved = sizes;
      solved[name] = root;
      if (root <= 0 || progressOf(solved) <= progress)
        continue;
      sizes = solved;
      return true;
    }
    return false;
  }

  /// The least larger size with which one guard more holds; where no size alone does it, one is
  /// doubled.
  bool enlarge(Sizes &sizes, size_t progress, llvm::ArrayRef<std::string> free) {
    for (const std::string &name : free)
      for (int64_t value = sizes[name] + 1; value <= largestMended; ++value) {
        Sizes other = sizes;
        other[name] = value;
        if (progressOf(other) <= progress)
          continue;
        sizes = other;
        return true;
      }
    int64_t &chosen = sizes[free[draws.below(free.size())]];
    chosen = std::max<int64_t>(2 * chosen, 1);
    return chosen <= largestMended;
  }

  tgl::KernelOp kernel;
  SizeKind kind;
  const Sizes &given;
  Draws draws;
  std::vector<SizeSpec> specs;
  std::optional<LaunchChecks> checks;
};
} // namespace

std::optional<Sizes> tegula::prove::drawSizes(tgl::KernelOp kernel, SizeKind kind,
                                              const Sizes &given, uint64_t seed) {
  return SizeSearch(kernel, kind, given, seed).run();
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
  Real scale = kind == DataKind::Large  ? 20
               : kind == DataKind::Huge ? 400
               : kind == DataKind::Tiny ? 0x1p-4L
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
    for (int64_t n = 0, count = tensor.count(); n < count; ++n) {
      if (isFloat(tensor.dtype))
        tensor.numbers.push_back(drawer.number(tensor.dtype, own, n));
      else
        tensor.integers.push_back(drawer.integer(tensor.dtype, own, n, leads));
    }
    point.inputs.push_back(std::move(tensor));
  }
  return point;
}
