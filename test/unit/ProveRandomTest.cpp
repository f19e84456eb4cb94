//===- ProveRandomTest.cpp - Proofs against enumeration -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random statements; every verdict is held against all sizes up to a limit, point by point.
// TEGULA_PROVE_RANDOM=N in the environment tries N statements of each kind.
//
//===----------------------------------------------------------------------===//

#include "ProveTesting.h"
#include "symbolic/ProveSample.h"
#include <bit>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace tegula;

namespace {

const char *const symbolNames[] = {"A", "B", "C"};
constexpr int64_t sizeLimit = 5;

unsigned rounds(unsigned usual) {
  const char *text = std::getenv("TEGULA_PROVE_RANDOM");
  return text ? std::atoi(text) : usual;
}

using Values = std::map<IndexVar, int64_t>;

std::optional<int64_t> valueOf(const IndexExpr &expr, const Values &values) {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = values.find(var);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

std::optional<bool> holdsAt(const Condition &c, const Values &values) {
  std::optional<int64_t> lhs = valueOf(c.lhs, values), rhs = valueOf(c.rhs, values);
  if (!lhs || !rhs)
    return std::nullopt;
  switch (c.kind) {
  case Condition::NonNegative:
    return *lhs >= 0;
  case Condition::Zero:
    return *lhs == 0;
  case Condition::NonZero:
    return *lhs != 0;
  case Condition::Divides:
    return *rhs != 0 && *lhs % *rhs == 0;
  }
  return std::nullopt;
}

/// Divisors that are sizes must not be 0 wherever they stand (a guard of the kernel), unless in a
/// branch of a conditional.
bool dividesByZero(const IndexExpr &expr, const Values &values) {
  for (const IndexExpr::Term &term : expr.terms())
    for (const auto &[atom, power] : term.factors) {
      size_t count = atom->kind == IndexExpr::AtomKind::Select ? 2 : atom->operands.size();
      for (size_t i = 0; i < count; ++i)
        if (dividesByZero(atom->operands[i], values))
          return true;
      if (atom->kind == IndexExpr::AtomKind::FloorDiv && atom->operands[1].isSize() &&
          valueOf(atom->operands[1], values) == 0)
        return true;
    }
  return false;
}

bool dividesByZero(const Domain &domain, const Values &values) {
  for (const RangedVar &var : domain.vars)
    if (dividesByZero(var.lo, values) || dividesByZero(var.hi, values))
      return true;
  for (const Condition &c : domain.conditions)
    if (dividesByZero(c.lhs, values) || dividesByZero(c.rhs, values))
      return true;
  return false;
}

bool dividesByZero(const Image &image, const Values &values) {
  return dividesByZero(image.domain, values) ||
         llvm::any_of(image.subscripts,
                      [&](const IndexExpr &e) { return dividesByZero(e, values); });
}

class Generator {
public:
  explicit Generator(unsigned seed) : engine(seed) {}
  int64_t pick(int64_t lo, int64_t hi) { return lo + int64_t(engine() % uint64_t(hi - lo + 1)); }
  IndexExpr symbol() { return IndexExpr::symbol(symbolNames[pick(0, 2)]); }

  /// `int(floor(c*A))`; some factors are so near to each other that six digits are the same.
  IndexExpr scaled(const IndexExpr &value) {
    static constexpr double factors[] = {0.5, 0.49999999, 1.5, 1.49999999, 1, 0.99999999, -0.5};
    using Step = IndexExpr::FloatStep;
    auto op = [](IndexExpr::FloatOp op) { return IndexExpr(int64_t(op)); };
    return IndexExpr::ofFloats(
        {{Step::Number, IndexExpr(std::bit_cast<int64_t>(factors[pick(0, 6)]))},
         {Step::Push, value},
         {Step::Apply, op(IndexExpr::FloatOp::Mul)},
         {Step::Apply, op(IndexExpr::FloatOp::Floor)}});
  }

  IndexExpr expr(unsigned dims, int depth) {
    switch (pick(0, depth > 0 ? 12 : 3)) {
    case 12:
      return scaled(pick(0, 3) ? symbol() : expr(dims, depth - 1));
    case 0:
      return IndexExpr(pick(-2, 4));
    case 1:
      return symbol();
    case 2:
    case 3:
      return dims ? IndexExpr::dim(pick(0, dims - 1)) : symbol();
    case 4:
    case 5:
      return expr(dims, depth - 1) + expr(dims, depth - 1);
    case 6:
      return expr(dims, depth - 1) - expr(dims, depth - 1);
    case 7:
      return expr(dims, depth - 1) * expr(dims, depth - 2);
    case 8:
      return IndexExpr::floorDiv(expr(dims, depth - 1),
                                 pick(0, 1) ? IndexExpr(pick(1, 4)) : symbol());
    case 9:
      return IndexExpr::mod(expr(dims, depth - 1), pick(0, 1) ? IndexExpr(pick(1, 4)) : symbol());
    case 10:
      return pick(0, 1) ? IndexExpr::min(expr(dims, depth - 1), expr(dims, depth - 1))
                        : IndexExpr::max(expr(dims, depth - 1), expr(dims, depth - 1));
    default:
      return IndexExpr::select(IndexExpr::Cmp(pick(0, 3)), expr(dims, depth - 1),
                               expr(dims, depth - 2), expr(dims, depth - 1), expr(dims, depth - 1));
    }
  }
  Condition condition(unsigned dims) {
    switch (pick(0, 5)) {
    case 0:
      return Condition::equal(expr(dims, 0), expr(dims, 1));
    case 1:
      return Condition::divides(symbol(), pick(0, 1) ? IndexExpr(pick(2, 3)) : symbol());
    case 2:
      return Condition::nonZero(expr(dims, 1));
    default:
      return Condition::lessEqual(expr(dims, 1), expr(dims, 1));
    }
  }
  SizeFacts facts() {
    SizeFacts facts;
    if (pick(0, 3) == 0)
      facts.definitions.push_back(
          {"C", IndexExpr::floorDiv(IndexExpr::symbol("A") + pick(-2, 2),
                                    pick(0, 1) ? IndexExpr(pick(1, 3)) : IndexExpr::symbol("B")) +
                    pick(0, 1)});
    for (int64_t n = pick(0, 2); n > 0; --n)
      facts.facts.push_back(condition(0));
    return facts;
  }
  Domain domain(unsigned dims) {
    Domain domain;
    for (unsigned d = 0; d < dims; ++d) {
      IndexExpr lo = pick(0, 2) ? IndexExpr(0) : expr(d, 1);
      domain.add(d, lo, pick(0, 1) ? symbol() : expr(d, 2));
    }
    for (int64_t n = pick(0, 3) - 2; n > 0; --n)
      domain.conditions.push_back(condition(dims));
    return domain;
  }

private:
  std::mt19937_64 engine;
};

/// All admissible sizes.
void eachSize(const SizeFacts &facts, llvm::function_ref<void(Values &)> visit) {
  Values values;
  for (int64_t a = 0; a <= sizeLimit; ++a)
    for (int64_t b = 0; b <= sizeLimit; ++b)
      for (int64_t c = 0; c <= sizeLimit; ++c) {
        values = {
            {IndexVar::symbol("A"), a}, {IndexVar::symbol("B"), b}, {IndexVar::symbol("C"), c}};
        bool good = true;
        for (const auto &[name, definition] : facts.definitions) {
          std::optional<int64_t> value = valueOf(definition, values);
          good &= value.has_value() && c == 0;
          values[IndexVar::symbol(name)] = value.value_or(0);
        }
        for (const Condition &fact : facts.facts)
          good = good && holdsAt(fact, values).value_or(false);
        if (good)
          visit(values);
      }
}

/// All points, up to a number that the small sizes rarely reach.
void eachPoint(const Domain &domain, Values &values, llvm::function_ref<void()> visit,
               size_t next = 0) {
  if (next == domain.vars.size()) {
    for (const Condition &c : domain.conditions)
      if (!holdsAt(c, values).value_or(false))
        return;
    visit();
    return;
  }
  const RangedVar &var = domain.vars[next];
  std::optional<int64_t> lo = valueOf(var.lo, values), hi = valueOf(var.hi, values);
  if (!lo || !hi)
    return;
  for (int64_t v = *lo; v < std::min(*hi, *lo + 30); ++v) {
    values[IndexVar::dim(var.position)] = v;
    eachPoint(domain, values, visit, next + 1);
  }
  values.erase(IndexVar::dim(var.position));
}

std::string text(const SizeFacts &facts, const Domain &domain) {
  std::string result;
  llvm::raw_string_ostream os(result);
  for (auto &[name, definition] : facts.definitions)
    os << name << " = " << definition << "; ";
  for (const Condition &fact : facts.facts)
    os << fact.str() << "; ";
  for (const RangedVar &var : domain.vars)
    os << "d" << var.position << " in " << var.lo << ":" << var.hi << "; ";
  for (const Condition &c : domain.conditions)
    os << c.str() << "; ";
  return result;
}

TEST(ProveRandom, Conditions) {
  unsigned verdicts[4] = {};
  for (unsigned seed = 0, n = rounds(1500); seed < n && !HasFailure(); ++seed) {
    Generator gen(seed);
    SizeFacts facts = gen.facts();
    unsigned dims = gen.pick(0, 3);
    Domain domain = gen.domain(dims);
    Prover prover(facts);
    bool bounds = gen.pick(0, 1);
    IndexExpr e = gen.expr(dims, 2), size = gen.expr(0, 1);
    Condition condition = gen.condition(dims);
    Outcome outcome = bounds ? prover.inBounds(e, size, domain) : prover.holds(condition, domain);
    ++verdicts[unsigned(outcome.verdict)];
    auto holds = [&](const Values &values) -> std::optional<bool> {
      if (!bounds)
        return holdsAt(condition, values);
      std::optional<int64_t> value = valueOf(e, values), bound = valueOf(size, values);
      if (!value || !bound)
        return std::nullopt;
      return *value >= 0 && *value < *bound;
    };
    std::string what = "seed " + std::to_string(seed) + ": " + text(facts, domain) + " |- " +
                       (bounds ? e.str() + " in " + size.str() : condition.str()) + ": " +
                       describe(outcome);
    if (outcome.counterexample) {
      Values values;
      for (auto &[name, value] : outcome.counterexample->sizes)
        values[IndexVar::symbol(name)] = value;
      for (auto &[position, value] : outcome.counterexample->point)
        values[IndexVar::dim(position)] = value;
      EXPECT_EQ(holds(values), std::optional(false)) << what;
      for (const Condition &c : domain.conditions)
        EXPECT_EQ(holdsAt(c, values), std::optional(true)) << what;
      for (const RangedVar &var : domain.vars) {
        EXPECT_LE(valueOf(var.lo, values), values[IndexVar::dim(var.position)]) << what;
        EXPECT_GT(valueOf(var.hi, values), values[IndexVar::dim(var.position)]) << what;
      }
    } else {
      EXPECT_TRUE(outcome.verdict == Verdict::Proved || outcome.verdict == Verdict::Unknown)
          << what;
    }
    eachSize(facts, [&](Values &values) {
      if (dividesByZero(domain, values) || dividesByZero(condition.lhs, values) ||
          dividesByZero(condition.rhs, values) || dividesByZero(e, values) ||
          dividesByZero(size, values))
        return;
      bool any = false, fails = false;
      std::string at;
      eachPoint(domain, values, [&] {
        std::optional<bool> here = holds(values);
        any |= here.has_value();
        if (here != std::optional(false) || fails)
          return;
        fails = true;
        for (auto &[var, value] : values)
          at += " " + IndexExpr::variable(var).str() + "=" + std::to_string(value);
      });
      if (outcome.verdict == Verdict::Proved)
        EXPECT_FALSE(fails) << what << " at" << at;
      if (outcome.verdict == Verdict::Refuted && any)
        EXPECT_TRUE(fails) << what;
      if (!outcome.suffices.empty()) {
        bool suffices = true;
        for (const Condition &c : outcome.suffices) {
          if (!holdsAt(c, values))
            return; // says nothing at these sizes, nor does the statement
          suffices &= *holdsAt(c, values);
        }
        if (suffices)
          EXPECT_FALSE(fails) << what << " at" << at;
        else if (outcome.necessary && any)
          EXPECT_TRUE(fails) << what << " sizes A=" << values[IndexVar::symbol("A")]
                             << " B=" << values[IndexVar::symbol("B")]
                             << " C=" << values[IndexVar::symbol("C")];
      }
    });
  }
  printf("conditions: %u proved, %u refuted, %u depend, %u unknown\n", verdicts[0], verdicts[1],
         verdicts[2], verdicts[3]);
}

TEST(ProveRandom, SimplifyAndRange) {
  unsigned simpler = 0, bounded = 0;
  for (unsigned seed = 0, n = rounds(600); seed < n && !HasFailure(); ++seed) {
    Generator gen(seed + 1000000);
    SizeFacts facts = gen.facts();
    unsigned dims = gen.pick(1, 3);
    Domain domain = gen.domain(dims);
    Prover prover(facts);
    IndexExpr e = gen.expr(dims, 3);
    IndexExpr simplified = prover.simplify(e, domain);
    Range range = prover.range(e, domain);
    simpler += simplified != e;
    bounded += range.min && range.max;
    std::string what = "seed " + std::to_string(seed) + ": " + text(facts, domain) + " |- " +
                       e.str() + " is " + simplified.str() + " in " +
                       (range.min ? range.min->str() : "?") + " .. " +
                       (range.max ? range.max->str() : "?");
    eachSize(facts, [&](Values &values) {
      if (dividesByZero(domain, values) || dividesByZero(e, values))
        return;
      eachPoint(domain, values, [&] {
        std::optional<int64_t> value = valueOf(e, values);
        if (!value || HasFailure())
          return;
        EXPECT_EQ(valueOf(simplified, values), value) << what;
        if (range.min) {
          EXPECT_LE(valueOf(*range.min, values).value_or(INT64_MIN), *value) << what;
        }
        if (range.max) {
          EXPECT_GE(valueOf(*range.max, values).value_or(INT64_MAX), *value) << what;
        }
      });
    });
  }
  printf("simplified: %u, bounded: %u\n", simpler, bounded);
}

Image randomImage(Generator &gen, unsigned rank) {
  Image image;
  unsigned dims = gen.pick(1, 3);
  for (unsigned d = 0; d < dims; ++d) {
    IndexExpr lo = gen.pick(0, 3) ? IndexExpr(0) : gen.expr(d, 0);
    image.domain.add(d, lo, gen.pick(0, 2) ? gen.symbol() : gen.expr(d, 1));
  }
  if (gen.pick(0, 4) == 0)
    image.domain.conditions.push_back(gen.condition(dims));
  for (unsigned k = 0; k < rank; ++k) {
    IndexExpr var = IndexExpr::dim(gen.pick(0, dims - 1)),
              other = IndexExpr::dim(gen.pick(0, dims - 1));
    switch (gen.pick(0, 6)) {
    case 0:
      image.subscripts.push_back(var + gen.expr(0, 1));
      break;
    case 1:
      image.subscripts.push_back(gen.pick(2, 3) * var + gen.pick(0, 2));
      break;
    case 2:
      image.subscripts.push_back(var * gen.symbol() + other);
      break;
    case 3:
      image.subscripts.push_back(gen.expr(dims, 2));
      break;
    case 4:
      image.subscripts.push_back(gen.symbol() - 1 - var);
      break;
    default:
      image.subscripts.push_back(var);
      break;
    }
  }
  return image;
}

std::vector<int64_t> elementAt(const Image &image, const Values &values) {
  std::vector<int64_t> element;
  for (const IndexExpr &subscript : image.subscripts) {
    std::optional<int64_t> value = valueOf(subscript, values);
    if (!value)
      return {};
    element.push_back(*value);
  }
  return element;
}

std::string text(const Image &image) {
  std::string result = text(SizeFacts(), image.domain) + "->";
  for (const IndexExpr &subscript : image.subscripts)
    result += " " + subscript.str() + ",";
  return result;
}

TEST(ProveRandom, Images) {
  unsigned proved[3] = {}, tried = rounds(300);
  for (unsigned seed = 0; seed < tried && !HasFailure(); ++seed) {
    Generator gen(seed + 2000000);
    SizeFacts facts = gen.facts();
    unsigned rank = gen.pick(1, 2);
    Image a = randomImage(gen, rank), b = randomImage(gen, rank);
    std::vector<IndexExpr> dims;
    for (unsigned k = 0; k < rank; ++k)
      dims.push_back(gen.pick(0, 3) ? gen.symbol() : gen.symbol() + gen.pick(0, 2));
    Prover prover(facts);
    Outcome once = prover.injective(a), apart = prover.disjoint(a, b),
            full = prover.covers({a, b}, dims);
    proved[0] += once.proved();
    proved[1] += apart.proved();
    proved[2] += full.proved();
    std::string what = "seed " + std::to_string(seed) + ": " + text(facts, Domain()) + " |- " +
                       text(a) + " | " + text(b) + " in";
    for (const IndexExpr &dim : dims)
      what += " " + dim.str();
    eachSize(facts, [&](Values &values) {
      if (dividesByZero(a, values) || dividesByZero(b, values))
        return;
      std::set<std::vector<int64_t>> first, second;
      bool twice = false, meet = false;
      eachPoint(a.domain, values, [&] {
        std::vector<int64_t> element = elementAt(a, values);
        twice |= !element.empty() && !first.insert(element).second;
      });
      eachPoint(b.domain, values, [&] {
        std::vector<int64_t> element = elementAt(b, values);
        second.insert(element);
        meet |= !element.empty() && first.count(element);
      });
      if (once.proved())
        EXPECT_FALSE(twice) << "one-to-one " << what;
      if (apart.proved())
        EXPECT_FALSE(meet) << "disjoint " << what;
      if (once.verdict == Verdict::Refuted && !first.empty())
        EXPECT_TRUE(twice) << "one-to-one " << what;
      if (apart.verdict == Verdict::Refuted && !first.empty() && !second.empty())
        EXPECT_TRUE(meet) << "disjoint " << what;
      Domain all;
      for (unsigned k = 0; k < rank; ++k)
        all.add(k, 0, dims[k]);
      bool missing = false;
      eachPoint(all, values, [&] {
        std::vector<int64_t> element;
        for (unsigned k = 0; k < rank; ++k)
          element.push_back(values[IndexVar::dim(k)]);
        missing |= !first.count(element) && !second.count(element);
      });
      if (full.proved())
        EXPECT_FALSE(missing) << "covers " << what << " A=" << values[IndexVar::symbol("A")]
                              << " B=" << values[IndexVar::symbol("B")]
                              << " C=" << values[IndexVar::symbol("C")];
      if (full.verdict == Verdict::Refuted)
        EXPECT_TRUE(missing) << "covers " << what;
    });
  }
  printf("of %u: %u one-to-one, %u disjoint, %u cover\n", tried, proved[0], proved[1], proved[2]);
}

} // namespace
