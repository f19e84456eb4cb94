//===- CheckTiles.cpp - Results do not depend on the tile size --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over tiles means what it means at tiles of one element, whatever the compiler's tiles are
// [7.2]. This is tried: the block runs on small made-up data, at a few of its points, with tiles of
// one, two and three elements and of the whole range, and what it writes must agree.
//
//===----------------------------------------------------------------------===//

#include "frontend/Checker.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

namespace {

/// Runs one point of a parallel block. All numbers are doubles; storage types do not round, so
/// that results differ by the order of sums alone.
class BlockRun {
public:
  using Written = std::map<std::pair<const Tensor *, std::vector<int64_t>>, double>;

  BlockRun(const Program &program, const std::map<std::string, int64_t> &sizes, unsigned seed,
           uint64_t &budget)
      : program(program), sizes(sizes), seed(seed), budget(budget) {}

  int64_t tileSize = 0; // 0: the whole range
  Written written;
  bool exhausted() const { return budget == 0; }

  void setVar(unsigned id, int64_t value) { vars[id] = value; }
  void run(llvm::ArrayRef<Stmt *> body) {
    for (const Stmt *stmt : body)
      run(*stmt);
  }
  std::optional<int64_t> index(const IndexExpr &expr) {
    return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
      if (var.isSymbol()) {
        auto found = sizes.find(var.name().str());
        if (found == sizes.end())
          return std::nullopt;
        return found->second;
      }
      const Var &bound = program.vars[var.position()];
      if (bound.kind == Var::Data)
        return integer(value(bound.data));
      auto found = vars.find(bound.id);
      if (found == vars.end())
        return std::nullopt;
      return found->second;
    });
  }

private:
  static int64_t integer(double value) {
    if (std::isnan(value))
      return 0;
    return static_cast<int64_t>(std::clamp(std::trunc(value), -1e15, 1e15));
  }
  std::pair<int64_t, int64_t> bounds(const Var &var) {
    return {index(var.lo).value_or(0), index(var.hi).value_or(0)};
  }

  uint64_t hash(uint64_t key) const {
    key += 0x9E3779B97F4A7C15ull * (seed + 1);
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
    return key ^ (key >> 31);
  }
  /// Made-up data: the same element has the same value in every run.
  double data(const Tensor &tensor, llvm::ArrayRef<int64_t> at) const {
    uint64_t key = 1;
    for (char c : tensor.name)
      key = hash(key * 31 + static_cast<unsigned char>(c));
    for (int64_t one : at)
      key = hash(key * 1000003 + static_cast<uint64_t>(one));
    if (tensor.type == DType::Bool) // the second data set masks most
      return seed % 2 ? key % 4 == 0 : key % 2;
    if (isFloat(tensor.type))
      return static_cast<double>(key % 4001) / 1000.0 - 2.0;
    return static_cast<double>(key % 5);
  }

  void store(const Stmt &stmt) {
    if (stmt.guard && value(stmt.guard) == 0)
      return;
    std::vector<int64_t> at;
    for (auto [subscript, dim] : llvm::zip(stmt.subscripts, stmt.tensor->dims)) {
      std::optional<int64_t> one = index(subscript), size = index(dim);
      if (!one || !size || *one < 0 || *one >= *size)
        return;
      at.push_back(*one);
    }
    double result = value(stmt.value);
    auto key = std::make_pair(stmt.tensor, at);
    if (!stmt.accumulate) {
      written[key] = result;
      return;
    }
    auto found = written.find(key);
    double old = found != written.end() ? found->second : 0.0;
    written[key] = old + result;
  }

  /// Runs `body` for all values of vars[which...].
  template <typename Body>
  void forAll(llvm::ArrayRef<const Var *> over, Body body) {
    if (over.empty())
      return body();
    const Var &var = *over.front();
    auto [lo, hi] = range(var);
    auto outer = vars.find(var.id);
    std::optional<int64_t> old;
    if (outer != vars.end())
      old = outer->second;
    memo.emplace_back();
    for (int64_t i = lo; i < hi && budget; ++i) {
      vars[var.id] = i;
      memo.back().clear();
      forAll(over.drop_front(), body);
    }
    memo.pop_back();
    if (old)
      vars[var.id] = *old;
    else
      vars.erase(var.id);
  }
  std::pair<int64_t, int64_t> range(const Var &var) {
    if (&var == tileVar)
      return tile;
    return bounds(var);
  }

  bool varies(const Expr *expr) const {
    return tileVar && llvm::is_contained(expr->axes, tileVar->id);
  }

  void run(const Stmt &stmt) {
    if (!budget)
      return;
    memo.clear();
    memo.emplace_back();
    switch (stmt.kind) {
    case Stmt::Define: {
      std::map<int64_t, double> values;
      if (varies(stmt.let->value))
        forAll({tileVar}, [&] { values[vars[tileVar->id]] = value(stmt.let->value); });
      else
        values[0] = value(stmt.let->value);
      lets[stmt.let] = std::move(values);
      return;
    }
    case Stmt::StateInit:
      states[stmt.state] = value(stmt.state->init);
      return;
    case Stmt::Update:
      states[stmt.state] = value(stmt.value);
      return;
    case Stmt::Equation: {
      llvm::SmallVector<const Var *> over(stmt.vars.begin(), stmt.vars.end());
      // Inside of a tile it also runs along the tile's index, where it varies along it.
      bool alongTile = tileVar && varies(stmt.value);
      for (const IndexExpr &subscript : stmt.subscripts)
        alongTile |= tileVar && subscript.uses(IndexVar::dim(tileVar->id));
      if (alongTile)
        over.push_back(tileVar);
      forAll(over, [&] { store(stmt); });
      return;
    }
    case Stmt::Tiles: {
      const Var &var = *stmt.vars[0];
      auto [lo, hi] = bounds(var);
      int64_t size = tileSize ? tileSize : std::max<int64_t>(hi - lo, 1);
      tileVar = &var;
      for (int64_t begin = lo; begin < hi && budget; begin += size) {
        tile = {begin, std::min(begin + size, hi)};
        run(llvm::ArrayRef(stmt.body));
      }
      tileVar = nullptr;
      return;
    }
    case Stmt::For: {
      const Var &var = *stmt.vars[0];
      auto [lo, hi] = bounds(var);
      for (int64_t i = lo; i < hi && budget; ++i) {
        vars[var.id] = var.reverse ? hi - 1 - (i - lo) : i;
        run(llvm::ArrayRef(stmt.body));
      }
      vars.erase(var.id);
      return;
    }
    default:
      return; // kernels are not called in a block
    }
  }

  double value(const Expr *expr) {
    if (budget == 0)
      return 0;
    auto known = memo.back().find(expr);
    if (known != memo.back().end())
      return known->second;
    --budget;
    double result = compute(*expr);
    memo.back()[expr] = result;
    return result;
  }

  double compute(const Expr &e) {
    switch (e.kind) {
    case Expr::Constant:
      return isFloat(e.type) ? e.floatValue : static_cast<double>(e.intValue);
    case Expr::Index:
      return static_cast<double>(index(e.index).value_or(0));
    case Expr::Scalar:
      return isFloat(e.type) ? 0.75 : 2;
    case Expr::Let: {
      auto found = lets.find(e.let);
      if (found == lets.end()) // named before the block
        return value(e.let->value);
      if (!varies(e.let->value))
        return found->second.begin()->second;
      auto at = found->second.find(vars[tileVar->id]);
      return at == found->second.end() ? 0.0 : at->second;
    }
    case Expr::State:
      return states[e.state];
    case Expr::Read:
      return read(e);
    case Expr::Unary:
      return unary(e.unary, value(e.operands[0]));
    case Expr::Binary:
      return binary(e);
    case Expr::Where:
      return value(value(e.operands[0]) != 0 ? e.operands[1] : e.operands[2]);
    case Expr::Convert:
    case Expr::Quantize: {
      double v = value(e.operands[0]);
      if (isFloat(e.target))
        return v;
      return static_cast<double>(integer(e.kind == Expr::Quantize ? std::nearbyint(v) : v));
    }
    case Expr::Widen:
      return value(e.operands[0]);
    case Expr::Reduce:
      return reduce(e);
    case Expr::Scan:
      return scan(e);
    case Expr::Random: {
      uint64_t key = e.normal;
      for (const Expr *operand : e.operands)
        key = hash(key * 31 + static_cast<uint64_t>(integer(value(operand))));
      return static_cast<double>(key % 1000) / 1000.0;
    }
    }
    return 0;
  }

  double read(const Expr &e) {
    if (e.guard && value(e.guard) == 0)
      return 0;
    double outside = e.fill ? value(e.fill) : 0.0;
    for (const auto &[numerator, denominator] : e.exact) {
      std::optional<int64_t> n = index(numerator), d = index(denominator);
      if (!n || !d || *d == 0 || *n % *d != 0)
        return outside;
    }
    std::vector<int64_t> at;
    for (auto [subscript, dim] : llvm::zip(e.subscripts, e.tensor->dims)) {
      std::optional<int64_t> one = index(subscript), size = index(dim);
      if (!one || !size || *one < 0 || *one >= *size)
        return outside;
      at.push_back(*one);
    }
    auto found = written.find({e.tensor, at});
    if (found != written.end())
      return found->second;
    return data(*e.tensor, at);
  }

  static double unary(checked::Unary op, double x) {
    using U = checked::Unary;
    switch (op) {
    case U::Neg:
      return -x;
    case U::Not:
      return x == 0;
    case U::Abs:
      return std::fabs(x);
    case U::Sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case U::Floor:
      return std::floor(x);
    case U::Ceil:
      return std::ceil(x);
    case U::Round:
      return std::nearbyint(x);
    case U::Trunc:
      return std::trunc(x);
    case U::Exp:
      return std::exp(x);
    case U::Exp2:
      return std::exp2(x);
    case U::Expm1:
      return std::expm1(x);
    case U::Log:
      return std::log(x);
    case U::Log2:
      return std::log2(x);
    case U::Log1p:
      return std::log1p(x);
    case U::Sqrt:
      return std::sqrt(x);
    case U::Rsqrt:
      return 1 / std::sqrt(x);
    case U::Sin:
      return std::sin(x);
    case U::Cos:
      return std::cos(x);
    case U::Tan:
      return std::tan(x);
    case U::Tanh:
      return std::tanh(x);
    case U::Erf:
      return std::erf(x);
    case U::IsNan:
      return std::isnan(x);
    case U::IsInf:
      return std::isinf(x);
    }
    return 0;
  }

  static double greater(double a, double b) {
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  }
  static double lesser(double a, double b) {
    return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  }

  double binary(const Expr &e) {
    using B = checked::Binary;
    double a = value(e.operands[0]);
    if (e.binary == B::And)
      return a != 0 && value(e.operands[1]) != 0;
    if (e.binary == B::Or)
      return a != 0 || value(e.operands[1]) != 0;
    double b = value(e.operands[1]);
    bool integers = !isFloat(e.type);
    switch (e.binary) {
    case B::Add:
      return a + b;
    case B::Sub:
      return a - b;
    case B::Mul:
      return a * b;
    case B::Div:
      return a / b;
    case B::FloorDiv:
      return integers && b == 0 ? 0 : std::floor(a / b);
    case B::Mod:
      return integers && b == 0 ? 0 : a - b * std::floor(a / b);
    case B::Pow:
      return std::pow(a, b);
    case B::Max:
      return greater(a, b);
    case B::Min:
      return lesser(a, b);
    case B::LT:
      return a < b;
    case B::LE:
      return a <= b;
    case B::GT:
      return a > b;
    case B::GE:
      return a >= b;
    case B::EQ:
      return a == b;
    case B::NE:
      return a != b;
    default:
      return 0;
    }
  }

  double reduce(const Expr &e) {
    using R = checked::Reduction;
    std::vector<double> values;
    std::vector<int64_t> places;
    forAll(e.vars, [&] {
      if (e.filter && value(e.filter) == 0)
        return;
      values.push_back(value(e.operands[0]));
      places.push_back(vars[e.vars.back()->id]);
    });
    double sum = 0, product = 1, most = -INFINITY, least = INFINITY;
    bool any = false, all = true;
    size_t first = 0, last = 0;
    for (size_t i = 0; i != values.size(); ++i) {
      double v = values[i];
      sum += v;
      product *= v;
      most = greater(most, v);
      least = lesser(least, v);
      any |= v != 0;
      all &= v != 0;
      if (v > values[first] || (std::isnan(v) && !std::isnan(values[first])))
        first = i;
      if (v < values[last] || (std::isnan(v) && !std::isnan(values[last])))
        last = i;
    }
    double count = static_cast<double>(values.size());
    switch (e.reduction) {
    case R::Sum:
      return sum;
    case R::Prod:
      return product;
    case R::Max:
      return most;
    case R::Min:
      return least;
    case R::Mean:
      return sum / count;
    case R::Var: {
      double squares = 0;
      for (double v : values)
        squares += (v - sum / count) * (v - sum / count);
      return squares / (count - (e.unbiased ? 1 : 0));
    }
    case R::Any:
      return any;
    case R::All:
      return all;
    case R::Count:
      return static_cast<double>(llvm::count_if(values, [](double v) { return v != 0; }));
    case R::ArgMax:
      return places.empty() ? 0.0 : static_cast<double>(places[first]);
    case R::ArgMin:
      return places.empty() ? 0.0 : static_cast<double>(places[last]);
    case R::LogSumExp: {
      double shift = std::isfinite(most) ? most : 0, total = 0;
      for (double v : values)
        total += std::exp(v - shift);
      return std::log(total) + shift;
    }
    }
    return 0;
  }

  double scan(const Expr &e) {
    using S = checked::Scan;
    std::vector<double> a, b;
    size_t wanted = 0;
    bool isRank = e.scan == S::Sort || e.scan == S::ArgSort || e.scan == S::TopKValue ||
                  e.scan == S::TopKIndex;
    llvm::SmallVector<int64_t, 2> positions;
    for (const IndexExpr &position : e.positions)
      positions.push_back(index(position).value_or(0));
    forAll(e.vars, [&] {
      bool here = !isRank;
      for (auto [var, position] : llvm::zip(e.vars, positions))
        here &= vars[var->id] == position;
      if (here)
        wanted = a.size();
      a.push_back(value(e.operands[0]));
      if (e.scan == S::Recurrence)
        b.push_back(value(e.operands[1]));
    });
    int64_t lo = bounds(*e.vars[0]).first;
    if (isRank) {
      std::vector<size_t> order(a.size());
      for (size_t i = 0; i != order.size(); ++i)
        order[i] = i;
      bool down = e.descending || e.scan == S::TopKValue || e.scan == S::TopKIndex;
      llvm::stable_sort(order,
                       [&](size_t x, size_t y) { return down ? a[x] > a[y] : a[x] < a[y]; });
      int64_t rank = positions[0] - (e.scan == S::Sort || e.scan == S::ArgSort ? lo : 0);
      if (rank < 0 || rank >= static_cast<int64_t>(order.size()))
        return 0;
      bool isIndex = e.scan == S::ArgSort || e.scan == S::TopKIndex;
      return isIndex ? static_cast<double>(lo + static_cast<int64_t>(order[rank])) : a[order[rank]];
    }
    if (a.empty())
      return 0;
    if (e.scan == S::Softmax || e.scan == S::LogSoftmax) {
      double most = -INFINITY, total = 0;
      for (double v : a)
        most = greater(most, v);
      for (double v : a)
        total += std::exp(v - most);
      return e.scan == S::Softmax ? std::exp(a[wanted] - most) / total
                                  : a[wanted] - most - std::log(total);
    }
    double h = e.scan == S::CumSum    ? 0
               : e.scan == S::CumProd ? 1
               : e.scan == S::CumMax  ? -INFINITY
               : e.scan == S::CumMin  ? INFINITY
               : e.operands.size() > 2 ? value(e.operands[2])
                                       : 0;
    size_t n = a.size();
    for (size_t step = 0; step != n; ++step) {
      size_t i = e.reverse ? n - 1 - step : step;
      double before = h;
      switch (e.scan) {
      case S::CumSum:
        h += a[i];
        break;
      case S::CumProd:
        h *= a[i];
        break;
      case S::CumMax:
        h = greater(h, a[i]);
        break;
      case S::CumMin:
        h = lesser(h, a[i]);
        break;
      default:
        h = a[i] * h + b[i];
        break;
      }
      if (i == wanted)
        return e.exclusive ? before : h;
    }
    return h;
  }

  const Program &program;
  const std::map<std::string, int64_t> &sizes;
  unsigned seed;
  uint64_t &budget;
  std::map<unsigned, int64_t> vars;
  std::map<const StateDef *, double> states;
  std::map<const Let *, std::map<int64_t, double>> lets;
  const Var *tileVar = nullptr;
  std::pair<int64_t, int64_t> tile;
  std::vector<llvm::DenseMap<const Expr *, double>> memo = std::vector<llvm::DenseMap<const Expr *, double>>(1);
};

} // namespace

static const Stmt *findTiles(llvm::ArrayRef<Stmt *> body) {
  for (const Stmt *stmt : body) {
    if (stmt->kind == Stmt::Tiles)
      return stmt;
    if (const Stmt *found = findTiles(stmt->body))
      return found;
  }
  return nullptr;
}

/// Small sizes that the guards admit, `tiled` ones large enough for several tiles.
static std::optional<std::map<std::string, int64_t>>
chooseSizes(const Program &program, const std::set<std::string> &tiled) {
  static const int64_t forTiles[] = {5, 7, 6, 8, 4, 16, 32, 64, 128};
  static const int64_t others[] = {3, 2, 4, 1, 6, 8, 16, 32, 64, 5};
  uint32_t random = 12345;
  for (unsigned attempt = 0; attempt != 400; ++attempt) {
    std::map<std::string, int64_t> sizes;
    auto value = [&](const IndexVar &var) -> std::optional<int64_t> {
      auto found = sizes.find(var.name().str());
      if (!var.isSymbol() || found == sizes.end())
        return std::nullopt;
      return found->second;
    };
    bool fine = true;
    for (const checked::Size &size : program.sizes) {
      if (!size.boundBy && !size.isOpen) {
        std::optional<int64_t> derived = size.definition.evaluate(value);
        fine &= derived.has_value();
        if (derived)
          sizes[size.name] = *derived;
        continue;
      }
      random = random * 1664525u + 1013904223u;
      // The preferred sizes first, then wider and wider choices.
      unsigned spread = std::min<unsigned>(attempt / 4 + 1, 9);
      unsigned which = attempt == 0 ? 0 : (random >> 16) % spread;
      sizes[size.name] = tiled.count(size.name) ? forTiles[which] : others[which];
    }
    for (const Guard &guard : program.guards) {
      if (!fine)
        break;
      if (guard.kind == Guard::InBounds)
        continue; // what lies outside reads as 0 here
      std::optional<int64_t> lhs = guard.lhs.evaluate(value), rhs = guard.rhs.evaluate(value);
      fine &= lhs && rhs;
      if (!fine)
        break;
      switch (guard.kind) {
      case Guard::NonNegative:
        fine = *lhs >= 0;
        break;
      case Guard::Zero:
        fine = *lhs == 0;
        break;
      case Guard::NonZero:
        fine = *lhs != 0;
        break;
      default:
        fine = *rhs != 0 && *lhs % *rhs == 0;
        break;
      }
    }
    if (fine)
      return sizes;
  }
  return std::nullopt;
}

void Checker::checkTileIndependence(const Stmt &block) {
  const Stmt *loop = findTiles(block.body);
  if (!loop)
    return;
  std::set<std::string> tiled;
  const Var &tileVar = *loop->vars[0];
  for (const IndexVar &var : tileVar.hi.variables())
    if (var.isSymbol())
      tiled.insert(var.name().str());
  std::optional<std::map<std::string, int64_t>> sizes = chooseSizes(*program, tiled);
  if (!sizes)
    return; // no small sizes: the meaning at run time is that of the compiler's tiles
  uint64_t budget = 400'000;
  struct Difference {
    const Tensor *tensor;
    std::vector<int64_t> at;
    double one, other;
    int64_t tile;
  };
  std::optional<Difference> difference;
  for (unsigned seed = 0; seed != 2 && !difference; ++seed) {
    // A few points: the first, the last, and some between.
    for (unsigned sample = 0; sample != 5 && !difference && budget; ++sample) {
      BlockRun::Written reference;
      for (int64_t tile : {1, 2, 3, 0}) {
        BlockRun run(*program, *sizes, seed, budget);
        run.tileSize = tile;
        bool empty = false;
        for (const Var *var : block.vars) {
          int64_t lo = run.index(var->lo).value_or(0), hi = run.index(var->hi).value_or(0);
          if (hi <= lo) {
            empty = true;
            break;
          }
          int64_t count = hi - lo;
          run.setVar(var->id, sample == 0   ? lo
                              : sample == 1 ? hi - 1
                                            : lo + (sample * 7 + var->id * 3) % count);
        }
        if (empty)
          break;
        run.run(block.body);
        if (run.exhausted())
          break;
        if (tile == 1) {
          reference = run.written;
          continue;
        }
        auto agree = [](double a, double b) {
          if (std::isnan(a) || std::isnan(b))
            return std::isnan(a) && std::isnan(b);
          return a == b || std::fabs(a - b) <= 1e-6 * (1 + std::max(std::fabs(a), std::fabs(b)));
        };
        for (const auto &[place, value] : run.written) {
          auto found = reference.find(place);
          double one = found == reference.end() ? 0.0 : found->second;
          if (!agree(one, value)) {
            difference = {place.first, place.second, one, value, tile};
            break;
          }
        }
        if (difference)
          break;
      }
    }
  }
  if (!difference)
    return;
  auto number = [](double v) {
    std::string result;
    llvm::raw_string_ostream os(result);
    if (std::isnan(v))
      os << "nan";
    else
      os << llvm::format("%g", v);
    return result;
  };
  std::string element = difference->tensor->name;
  for (size_t i = 0; i != difference->at.size(); ++i)
    element += (i ? ", " : "[") + std::to_string(difference->at[i]);
  if (!difference->at.empty())
    element += "]";
  Report record =
      report(Code::TileDependent, Span{loop->span.file, loop->span.begin, tileVar.span.end},
             "what this loop computes depends on the size of its tiles");
  std::string with;
  for (const auto &[name, value] : *sizes)
    if (!autoDefinitions.contains(name))
      with += (with.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  record.note("on small data with " + with + ", " + element + " is " + number(difference->one) +
              " with tiles of 1 and " + number(difference->other) + " with " +
              (difference->tile ? "tiles of " + std::to_string(difference->tile)
                                : std::string("one tile")));
  if (std::isnan(difference->one) != std::isnan(difference->other))
    record.note("start a running maximum at -1e30: from -inf, a tile that is masked altogether "
                "computes -inf minus -inf");
  else
    record.note("each step must combine what a state holds with a reduction over the whole tile, as "
                "in acc = acc + sum(v for " +
                tileVar.name + ")");
}
