//===- Equal.cpp - Whether two programs compute one function ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Equal.h"
#include "prove/EvaluateImpl.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

llvm::StringRef tegula::prove::toString(Verdict verdict) {
  static const llvm::StringRef names[] = {"equal", "equal on points", "undecided", "less precise",
                                          "not equal"};
  return names[unsigned(verdict)];
}

unsigned KernelSubject::productBits() const {
  auto bitsOf = [](std::optional<llvm::StringRef> precision) -> unsigned {
    if (!precision || *precision == "f32")
      return 23;
    return *precision == "bf16" ? 7 : 10;
  };
  unsigned bits = bitsOf(tgl::KernelOp(kernel).getPrecision());
  kernel->getParentOp()->walk([&](tgl::ReduceOp reduce) {
    if (auto own = reduce->getAttrOfType<StringAttr>("precision"))
      bits = std::min(bits, bitsOf(own.getValue()));
  });
  return bits;
}

/// Storage types that a program rounds to where the other one has no type of so few bits.
static bool isNarrower(uint32_t types, uint32_t others) {
  auto bitsOf = [](uint32_t set) {
    unsigned least = 24;
    static const std::pair<DType, unsigned> mantissas[] = {
        {DType::F16, 10}, {DType::BF16, 7}, {DType::F8E4M3, 3}, {DType::F8E5M2, 2}};
    for (auto [type, bits] : mantissas)
      if (set >> unsigned(type) & 1)
        least = std::min(least, bits);
    return least;
  };
  return bitsOf(types) < bitsOf(others);
}

/// Bits of the mantissa and of the exponent.
static std::pair<unsigned, unsigned> bitsOf(DType type) {
  switch (type) {
  case DType::F64:
    return {52, 11};
  case DType::F16:
    return {10, 5};
  case DType::BF16:
    return {7, 8};
  case DType::F8E4M3:
    return {3, 4};
  case DType::F8E5M2:
    return {2, 5};
  default:
    return {23, 8};
  }
}

namespace {
class Comparer {
public:
  Comparer(tgl::KernelOp kernel, Subject &first, Subject &second, const EqualOptions &options)
      : kernel(kernel), first(first), second(second), options(options) {}

  Judgement run() {
    using S = SizeKind;
    using D = DataKind;
    using I = IntegerKind;
    using V = ScalarKind;
    static const Planned plan[] = {
        {S::Borders, D::Normal},
        {S::Primes, D::Normal},
        {S::Wide, D::Normal},
        {S::Primes, D::Sparse},
        {S::Primes, D::Large},
        {S::Primes, D::Positive},
        {S::Borders, D::Huge},
        {S::Borders, D::Sparse},
        {S::Primes, D::Infinite},
        {S::Primes, D::Ties, I::Wide, V::Signed, true},
        {S::Primes, D::Ties, I::Outside, V::Zero, true},
        {S::Wide, D::Ties, I::Wide, V::Positive, true},
        {S::Primes, D::Normal, I::Wide, V::Signed, true},
        {S::Primes, D::Normal, I::Outside, V::Signed, true},
        {S::Primes, D::Normal, I::Named, V::Signed, true},
        {S::Primes, D::Far, I::Small, V::Positive, true},
    };
    uint64_t next = std::size(plan);
    readsDoubles = llvm::any_of(readTypes(), [](Type type) {
      auto tensor = dyn_cast<tgl::TglTensorType>(type);
      return (tensor ? tensor.getElementType() : type).isF64();
    });
    drawsSizes = llvm::any_of(boundSizes(kernel),
                              [&](const std::string &name) { return !options.sizes.count(name); });
    hints = hintsOf({kernel, first.guarded(), second.guarded()});
    for (auto [number, planned] : llvm::enumerate(plan))
      if (isOfUse(planned) && !runTrial(planned, number))
        return std::move(judgement);
    if (llvm::none_of(judgement.trials, isTelling) && !largeOnes.empty()) {
      // One point of more than the least sizes is worth its time.
      largeOnes.clear();
      timesTooLarge.clear();
      stepsOfSmall *= 4;
      if (!runTrial({S::Small, D::Normal}, fewestBlank - 1))
        return std::move(judgement);
      stepsOfSmall /= 4;
    }
    if (!runSizes(next))
      return std::move(judgement);
    for (uint64_t number = fewestBlank; number < fewestBlank + mostBlank && isOneSided(); ++number)
      if (!runTrial({number % 2 ? S::Borders : S::Primes, D::Blank, I::Small, V::Positive, true},
                    number))
        return std::move(judgement);
    if (!addChains())
      return std::move(judgement);
    conclude();
    return std::move(judgement);
  }

private:
  struct Planned {
    SizeKind sizes;
    DataKind data;
    IntegerKind integers = IntegerKind::Small;
    ScalarKind scalars = ScalarKind::Positive;
    /// A program may refuse such data, and then nothing is concluded from them.
    bool isOptional = false;
  };

  /// Whether the programs have what a planned point draws in particular.
  bool isOfUse(const Planned &planned) {
    if (planned.data == DataKind::Far)
      return !hints.farConstants.empty();
    if (!planned.isOptional || planned.data == DataKind::Ties)
      return true;
    bool leads = planned.integers >= IntegerKind::Outside;
    if (planned.integers == IntegerKind::Named && hints.integers.empty())
      return false;
    for (auto [read, type] : llvm::enumerate(readTypes())) {
      auto tensor = dyn_cast<tgl::TglTensorType>(type);
      if (!leads && !tensor)
        return true; // a run-time scalar
      if (!isa<FloatType>(tensor ? tensor.getElementType() : type) && hints.leads[read] == leads)
        return true;
    }
    return false;
  }

  std::vector<Type> readTypes() {
    std::vector<Type> types;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      if (kernel.getArgRole(i) != "out")
        types.push_back(kernel.getArgumentTypes()[i]);
    return types;
  }

  /// Points of one size that is 0, of one that is 1, and of one beyond what the programs compare
  /// sizes with.
  bool runSizes(uint64_t number) {
    constexpr int64_t farthest = 300;
    const size_t mostSizes = second.hasTypes() ? 4 : 1; // a reference is traced for each
    std::set<int64_t> asked = bordersOf(kernel), drawn = bordersOf(first.guarded());
    if (tgl::KernelOp other = second.guarded())
      for (int64_t border : bordersOf(other))
        asked.insert(border);
    drawn.insert(asked.begin(), asked.end());
    auto largest = [&](const std::set<int64_t> &borders) {
      auto above = borders.upper_bound(farthest);
      return above == borders.begin() ? 0 : *std::prev(above);
    };
    std::vector<std::string> names = boundSizes(kernel);
    llvm::erase_if(names, [&](const std::string &name) { return options.sizes.count(name); });
    bool isReached = false;
    int64_t border = largest(asked);
    std::set<int64_t> borders = {border, largest(drawn)};
    for (const std::string &name : llvm::ArrayRef(names).take_front(mostSizes)) {
      if (!runWith({{name, 0}}, number++))
        return false;
      if (second.hasTypes() && !runWith({{name, 1}}, number++))
        return false;
      for (int64_t one : borders) {
        size_t before = judgement.trials.size();
        if (one < 3)
          continue;
        if (!runWith({{name, one + 5}}, number++))
          return false;
        isReached |= one == border && judgement.trials.size() > before;
      }
    }
    if (!isReached && border >= 3 && !names.empty()) { // where sizes must agree
      Sizes all;
      for (const std::string &name : names)
        all[name] = border + 5;
      size_t before = judgement.trials.size();
      if (!runWith(all, number++))
        return false;
      isReached = judgement.trials.size() > before;
    }
    if (!asked.empty() && *asked.rbegin() > farthest && !names.empty())
      unreached = *asked.rbegin();
    else if (!isReached && border > 40 && !names.empty())
      unreached = border;
    return true;
  }

  /// A point that has these sizes; the others are small.
  bool runWith(const Sizes &sizes, uint64_t number) {
    forced = sizes;
    bool goesOn = runTrial({SizeKind::Borders, DataKind::Normal, IntegerKind::Small,
                            ScalarKind::Positive, /*isOptional=*/true},
                           number);
    forced.clear();
    return goesOn;
  }

  /// Whether a condition was never true, or never false.
  bool isOneSided() const { return !first.oneSided().empty() || !second.oneSided().empty(); }

  /// Numbers of points that none of runSizes has.
  static constexpr uint64_t fewestBlank = 1000, mostBlank = 8;
  static constexpr unsigned mostRefusals = 16;
  /// How many times as many steps a point of small sizes may take as another one: it may be all
  /// that there is.
  uint64_t stepsOfSmall = 4;
  static constexpr unsigned mostChains = 8;
  static constexpr double wantedBits = 60;

  /// Evaluates over more primes where the degree wants it. False where the verdict is there.
  bool addChains() {
    double degree = 1;
    for (const Trial &trial : judgement.trials)
      degree = std::max(degree, trial.degree);
    // Schwartz and Zippel, for the least prime, which is more than 2^53. Inverse variables double
    // the zeros; values that agree at one of three levels count as equal, and so do exponentials
    // at one of two whose powers agree that are up to 30: 2*(1 + 1/2 + 1/4) + 2*30*(1/2 + 1/4).
    const double bitsLost = comparesExponentials ? 6 : 2;
    double bitsOfChain = 53 - bitsLost - std::log2(degree);
    judgement.chains = Chains::count;
    if (bitsOfChain * mostChains >= wantedBits)
      for (; bitsOfChain * judgement.chains < wantedBits; judgement.chains += Chains::count)
        for (Trial &trial : judgement.trials) {
          std::string why;
          Step step = evaluateBoth(trial, judgement.chains / Chains::count, why);
          if (step == Step::Done)
            return false;
          if (step != Step::Fine) {
            finish(Verdict::Undecided, why);
            return false;
          }
        }
    judgement.bits = bitsOfChain * judgement.chains;
    return true;
  }

  enum class Step { Fine, Again, TooLarge, SmallerIntegers, Done };

  /// False where the verdict is there.
  bool runTrial(const Planned &planned, uint64_t number) {
    SizeKind sizeKind = planned.sizes;
    DataKind dataKind = planned.data;
    isOptional = planned.isOptional;
    std::string why = "no sizes were found that all guards admit";
    int64_t limit = 0;
    unsigned tooLarge = 0, tooClose = 0;
    std::optional<Sizes> kept; // where programs differed, and nothing could be told
    trialDoubt.clear();
    for (unsigned attempt = 0; attempt < (isOptional ? 4 : 12); ++attempt) {
      uint64_t seed = mix(options.seed, number * 64 + attempt);
      SizeKind kind = smallerKind(affordable(sizeKind), tooLarge);
      if (kind == SizeKind::Wide && second.isSlowToPrepare())
        kind = SizeKind::Primes;
      Sizes given = options.sizes;
      given.insert(forced.begin(), forced.end());
      std::optional<Sizes> sizes = kept ? kept : knownSizes(kind, number);
      if (!sizes)
        sizes = drawSizes(kernel, kind, given, seed);
      if (!sizes)
        continue;
      if (isKnownTooLarge(*sizes)) {
        why = "the smallest sizes that were drawn have too many points";
        ++tooLarge;
        continue;
      }
      Trial trial;
      trial.sizeKind = kind;
      bool isTooHuge = dataKind == DataKind::Huge && attempt > 1;
      trial.kind.data = milderKind(dataKind, isTooHuge ? std::max(tooClose, 2u) : tooClose);
      trial.kind.integers = planned.integers;
      trial.kind.scalars = planned.scalars;
      trial.sizes = *sizes;
      trial.seed = seed;
      if (!limit)
        for (auto &[name, value] : *sizes)
          limit = std::max(limit, value);
      limit = std::max<int64_t>(limit, 1);
      trial.kind.integerLimit = limit;
      trial.tileSize = number % 2 ? 3 : 0;
      Step step = evaluateBoth(trial, 0, why);
      if (step == Step::Done)
        return false;
      tooClose += isAmbiguous;
      // Where one point was drawn again, agreeing is not enough: nothing may be unsure there.
      if (step == Step::Fine && isAmbiguous && !trialDoubt.empty())
        step = Step::Again;
      settle(step != Step::Fine                      ? Coverage::Kind::Dropped
             : trial.kind.data == DataKind::Infinite ? Coverage::Kind::Infinite
                                                     : Coverage::Kind::Finite);
      if (step == Step::Fine) {
        if (forced.empty())
          taken[kind].push_back(trial.sizes);
        judgement.trials.push_back(std::move(trial));
        return true;
      }
      if (!trialDoubt.empty() && !kept)
        kept = *sizes;
      tooLarge += step == Step::TooLarge;
      if (step == Step::TooLarge) {
        largeOnes.push_back(*sizes);
        timesTooLarge[kind] += forced.empty();
      }
      limit = step == Step::SmallerIntegers ? std::max<int64_t>(limit / 2, 1) : 0;
    }
    if (doubt.empty())
      doubt = trialDoubt;
    if (isOptional)
      return true;
    // A kind of data may leave a program's domain; the other points still say something.
    failures.push_back(toString(sizeKind).str() + " sizes, " + toString(dataKind).str() +
                       " data: " + why);
    return true;
  }

  /// Whether no size is below that of a point that took too many steps.
  bool isKnownTooLarge(const Sizes &sizes) const {
    return llvm::any_of(largeOnes, [&](const Sizes &large) {
      return llvm::all_of(large, [&](const auto &one) {
        auto found = sizes.find(one.first);
        return found != sizes.end() && found->second >= one.second;
      });
    });
  }

  /// After so many points at which numbers were too close, or beyond what a real holds: functions
  /// of large numbers are as good as constant.
  static DataKind milderKind(DataKind kind, unsigned tooClose) {
    static const DataKind kinds[] = {DataKind::Huge, DataKind::Large, DataKind::Normal,
                                     DataKind::Tiny};
    const auto *found = llvm::find(kinds, kind);
    if (found == std::end(kinds))
      return kind;
    return kinds[std::min(size_t(found - kinds) + tooClose / 2, std::size(kinds) - 1)];
  }

  /// The next smaller kind for one of which several points took too many steps and none did not.
  SizeKind affordable(SizeKind kind) {
    constexpr unsigned several = 4;
    while (kind != SizeKind::Borders && taken[kind].empty() && timesTooLarge[kind] >= several)
      kind = SizeKind(unsigned(kind) - 1);
    return kind;
  }

  /// After so many points that took too many steps.
  static SizeKind smallerKind(SizeKind kind, unsigned tooLarge) {
    if (tooLarge > 5)
      return SizeKind::Borders;
    if (tooLarge > 1 && kind > SizeKind::Small)
      return tooLarge > 3 || kind == SizeKind::Primes ? SizeKind::Small : SizeKind::Primes;
    return kind;
  }

  /// A reference is traced anew for all sizes, which takes its time: it has the second point of a
  /// kind at other sizes than the first one, and further ones at those of both in turn. Where that
  /// takes long, all points of a kind have the sizes of the first. Where those took more steps than
  /// a point of other kinds may, the sizes that took least are taken again.
  std::optional<Sizes> knownSizes(SizeKind kind, uint64_t number) {
    const std::vector<Sizes> &known = taken[kind];
    const size_t wanted = second.isSlowToPrepare() ? 1 : 2;
    if (second.hasTypes() || !forced.empty() || known.empty() ||
        (known.size() < wanted && !isOptional))
      return std::nullopt;
    const Sizes &next = known[number % known.size()];
    if (stepsAt[next] <= options.evaluate.maxSteps)
      return next;
    return *llvm::min_element(
        known, [&](const Sizes &a, const Sizes &b) { return stepsAt[a] < stepsAt[b]; });
  }

  void settle(Coverage::Kind kind) {
    first.settle(kind);
    second.settle(kind);
  }

  Step explain(const Evaluation &run, const char *which, std::string &why) {
    why = std::string(which) + ": " + run.message;
    switch (run.problem) {
    case Evaluation::Limit:
      return Step::TooLarge;
    case Evaluation::BadSubscript:
      return isOptional ? Step::Again : Step::SmallerIntegers;
    case Evaluation::Unknown:
    case Evaluation::OutOfBounds: // of an access that the checker had proved
    case Evaluation::Undefined:
      if (isOptional)
        return Step::Again;
      finish(Verdict::Undecided, why);
      return Step::Done;
    case Evaluation::Refused:
      // A module that is made for some sizes raises an error at all others.
      if (judgement.trials.empty() && ++refusals > mostRefusals) {
        finish(Verdict::Undecided, why);
        return Step::Done;
      }
      return Step::Again;
    default:
      return Step::Again;
    }
  }

  /// `round`: of primes, each of which has its chains.
  Step evaluateBoth(Trial &trial, unsigned round, std::string &why) {
    isAmbiguous = false;
    EvaluateOptions own = options.evaluate;
    own.tileSize = trial.tileSize;
    if (trial.sizeKind <= SizeKind::Small || !drawsSizes)
      own.maxSteps *= stepsOfSmall;
    if (elementsOf(kernel, trial.sizes) > 4 * own.maxSteps) {
      why = "tensors have too many elements at these sizes";
      return Step::TooLarge;
    }
    Algebra algebra(mix(trial.seed, 7919 + round));
    if (fitting.insert(trial.sizes).second) {
      Step step = outlineBoth(trial, algebra, own, why);
      if (step != Step::Fine) {
        fitting.erase(trial.sizes);
        return step;
      }
    }
    Point point = drawPoint(kernel, trial.sizes, trial.kind, trial.seed, algebra, hints,
                            options.hasPlainScalars);
    auto clearEvents = [&] {
      algebra.events.types = 0;
      algebra.events.coarseConditions = algebra.events.singleConditions = 0;
      algebra.events.overflows = 0;
    };
    clearEvents();
    Evaluation a = first.run(point, algebra, own);
    Events events = algebra.events;
    if (a.problem != Evaluation::None)
      return explain(a, "the first program", why);
    stepsAt[trial.sizes] = a.steps;
    clearEvents();
    Evaluation b = second.run(point, algebra, own);
    isLessPrecise |= isNarrower(events.types, algebra.events.types) ||
                     (events.coarseConditions && !algebra.events.coarseConditions) ||
                     (readsDoubles && events.singleConditions && !algebra.events.singleConditions);
    overflows |= events.overflows && !algebra.events.overflows;
    if (b.problem != Evaluation::None)
      return explain(b, "the second program", why);
    if (algebra.events.isUnlucky) {
      why = "a residue was zero by chance";
      return Step::Again;
    }
    isAmbiguous = algebra.events.ambiguous > 0;
    judgement.comparisons += algebra.events.comparisons;
    judgement.roundings += algebra.events.roundings;
    return compareOutputs(trial, a, b, algebra, why);
  }

  /// Whether both take the sizes at all, before data are drawn for them.
  Step outlineBoth(const Trial &trial, Algebra &algebra, const EvaluateOptions &own,
                   std::string &why) {
    PointKind kind = trial.kind;
    kind.isOutline = true;
    Point point =
        drawPoint(kernel, trial.sizes, kind, trial.seed, algebra, hints, options.hasPlainScalars);
    for (auto [subject, which] :
         {std::pair(&first, "the first program"), std::pair(&second, "the second program")}) {
      Evaluation outline = subject->outline(point, algebra, own);
      if (outline.problem != Evaluation::None)
        return explain(outline, which, why);
    }
    return Step::Fine;
  }

  Step compareOutputs(Trial &trial, const Evaluation &a, const Evaluation &b, Algebra &algebra,
                      std::string &why) {
    if (a.outputs.size() != b.outputs.size()) {
      finish(Verdict::NotEqual, "the programs have " + std::to_string(a.outputs.size()) + " and " +
                                    std::to_string(b.outputs.size()) + " outputs");
      return Step::Done;
    }
    trial.elements = trial.finite = 0;
    for (auto [mine, theirs] : llvm::zip_equal(a.outputs, b.outputs)) {
      if (mine.shape != theirs.shape || isFloat(mine.dtype) != isFloat(theirs.dtype)) {
        finish(Verdict::NotEqual, "'" + mine.name + "' and '" + theirs.name +
                                      "' differ in shape or kind at these sizes");
        judgement.trials.push_back(trial);
        return Step::Done;
      }
      if (mine.dtype != theirs.dtype && !isFloat(mine.dtype)) {
        finish(Verdict::NotEqual, "'" + mine.name + "' is " + toString(mine.dtype).str() +
                                      " and '" + theirs.name + "' is " +
                                      toString(theirs.dtype).str());
        return Step::Done;
      }
      if (isFloat(mine.dtype) && first.hasTypes() && second.hasTypes()) {
        auto [mantissa, exponent] = bitsOf(mine.dtype);
        auto [otherMantissa, otherExponent] = bitsOf(theirs.dtype);
        isLessPrecise |= mantissa < otherMantissa;
        hasLessRange |= exponent < otherExponent;
      }
      for (int64_t n = 0, count = mine.count(); n < count; ++n) {
        Step step = compareElement(trial, mine, theirs, n, algebra, why);
        if (step != Step::Fine)
          return step;
      }
    }
    return Step::Fine;
  }

  Step compareElement(Trial &trial, const PointTensor &mine, const PointTensor &theirs, int64_t n,
                      Algebra &algebra, std::string &why) {
    ++trial.elements;
    bool isSure = algebra.events.ambiguous == 0;
    if (!isFloat(mine.dtype)) {
      ++trial.finite;
      if (mine.integers[n] == theirs.integers[n])
        return Step::Fine;
      if (isSure && forgivesNan(trial, algebra))
        return Step::Fine;
      if (isSure)
        return differ(trial, mine, n, double(mine.integers[n]), double(theirs.integers[n]));
      return doubtful(trial, algebra, why);
    }
    const Number &x = mine.numbers[n], &y = theirs.numbers[n];
    trial.finite += x.kind == Number::Finite;
    isLessPrecise |=
        x.coarse > 1.05 * y.coarse + 1e-12 * double(std::fabs(x.real)) + Algebra::negligible;
    bool isDouble = mine.dtype == DType::F64 && theirs.dtype == DType::F64;
    isLessPrecise |= isDouble && x.single > 1.05 * y.single + 1e-15 * double(std::fabs(x.real));
    // Of their difference, over what is under both.
    trial.degree = std::max(
        {trial.degree, double(x.numerator) + y.denominator, double(y.numerator) + x.denominator});
    if (x.kind == Number::Finite) {
      trial.error = std::max(trial.error, x.error);
      trial.magnitude = std::max(trial.magnitude, double(std::fabs(x.real)));
    }
    // Reals that are apart refute what a root's sign in a field may feign.
    Real apart = 0, scale = 0;
    bool areFinite = x.kind == Number::Finite && y.kind == Number::Finite;
    if (areFinite) {
      apart = std::fabs(x.real - y.real);
      scale = std::max(std::fabs(x.real), std::fabs(y.real));
    }
    comparesExponentials |= x.hasExp || y.hasExp;
    bool isApart = apart > 64 * (Real(x.slack) + Real(y.slack)) && apart > 1e-12L * scale;
    if (!isApart && algebra.same(x, y))
      return Step::Fine;
    if (!isSure) {
      return doubtful(trial, algebra, why);
    }
    bool isNan = x.kind == Number::NotANumber || y.kind == Number::NotANumber;
    if (forgivesNan(trial, algebra, isNan))
      return Step::Fine;
    if (!areFinite || isApart)
      return differ(trial, mine, n, shown(x), shown(y));
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "an element of '" << mine.name << "' has one value, " << double(x.real)
       << ", by formulas that are not known to be equal";
    why = text;
    finish(Verdict::Undecided, why);
    judgement.trials.push_back(trial);
    return Step::Done;
  }

  /// Another order of sums may well meet inf - inf: the result is a NaN, or is chosen by one.
  bool forgivesNan(const Trial &trial, const Algebra &algebra, bool isNan = false) {
    if (trial.kind.data != DataKind::Infinite || (!isNan && !algebra.events.unordered))
      return false;
    judgement.differsAtInfinity = true;
    return true;
  }

  /// Other data of the same sizes are drawn, and what differed here is not forgotten until those
  /// have nothing that is unsure: points that are drawn until one agrees would prove nothing.
  Step doubtful(const Trial &trial, const Algebra &algebra, std::string &why) {
    why = "numbers are too close to be told apart, or too large (" + algebra.events.firstAmbiguous +
          ")";
    if (trial.kind.data != DataKind::Far) // whose numbers need not have a value
      trialDoubt = why;
    return Step::Again;
  }

  static double shown(const Number &number) {
    if (number.kind == Number::NotANumber)
      return std::numeric_limits<double>::quiet_NaN();
    return number.kind == Number::Infinite
               ? double(number.real) * std::numeric_limits<double>::infinity()
               : double(number.real);
  }

  Step differ(const Trial &trial, const PointTensor &tensor, int64_t n, double a, double b) {
    Counterexample example;
    example.trial = judgement.trials.size();
    example.output = tensor.name;
    example.index.resize(tensor.shape.size());
    for (size_t k = tensor.shape.size(); k-- > 0; n /= tensor.shape[k])
      example.index[k] = n % tensor.shape[k];
    example.first = a;
    example.second = b;
    judgement.counterexample = std::move(example);
    judgement.trials.push_back(trial);
    finish(Verdict::NotEqual, "the values of an element differ");
    return Step::Done;
  }

  void finish(Verdict verdict, llvm::StringRef reason) {
    judgement.verdict = verdict;
    judgement.reason = reason.str();
  }

  static bool isTelling(const Trial &trial) {
    return trial.sizeKind != SizeKind::Borders && trial.elements > 0 &&
           2 * trial.finite >= trial.elements;
  }

  void conclude() {
    uint64_t finite = 0;
    for (const Trial &trial : judgement.trials)
      finite += trial.finite;
    std::set<std::string> untaken;
    for (Subject *subject : {&first, &second})
      for (const std::string &text : subject->oneSided())
        untaken.insert(text);
    // Conversions that saturate or wrap count where the other program has others.
    if (auto mine = first.unboundConversions(), theirs = second.unboundConversions();
        mine != theirs)
      for (const auto &[types, others, name] :
           {std::tuple(mine, theirs, "first"), std::tuple(theirs, mine, "second")})
        for (const std::string &type : types)
          if (types.count(type) > others.count(type))
            untaken.insert("a conversion to " + type + " of the " + name +
                           " program never met the border of the type");
    judgement.untaken.assign(untaken.begin(), untaken.end());
    if (judgement.trials.size() < 3)
      return finish(Verdict::Undecided,
                    failures.empty() ? "too few points could be evaluated" : failures.front());
    if (finite == 0)
      return finish(Verdict::Undecided, "no output was finite at any point");
    if (!doubt.empty())
      return finish(Verdict::Undecided, "values differ at a point where " + doubt);
    if (llvm::none_of(judgement.trials, isTelling))
      return finish(Verdict::Undecided, "no point had more than small sizes and finite outputs");
    if (judgement.bits < wantedBits)
      return finish(Verdict::Undecided, "the degree of the formulas leaves an error of more than "
                                        "2^-60");
    if (isLessPrecise || first.productBits() < second.productBits())
      return finish(
          Verdict::LessPrecise,
          "equal over exact arithmetic, but the first program rounds more to types of few "
          "bits, or allows them in products");
    if (hasLessRange)
      return finish(Verdict::Undecided, "equal over exact arithmetic, but an output of the first "
                                        "program has a type of a smaller range");
    if (overflows)
      return finish(Verdict::Undecided, "equal over exact arithmetic, but the first program stores "
                                        "numbers that their type is too small for");
    if (!judgement.untaken.empty())
      return finish(Verdict::Undecided,
                    "equal at all points, which take a condition one way alone");
    if (unreached)
      return finish(Verdict::Undecided, "equal at all points, whose sizes are not beyond " +
                                            std::to_string(unreached) +
                                            ", which a program compares them with; -d gives sizes");
    if (std::string refused = findRefused(); !refused.empty())
      return finish(Verdict::Undecided,
                    "equal, but the first program refuses sizes that the second one takes: " +
                        refused);
    bool hasBranches = judgement.comparisons || judgement.roundings;
    finish(hasBranches ? Verdict::EqualOnPoints : Verdict::Equal, "");
  }

  /// Why the first program does not take sizes that the second one takes.
  std::string findRefused() {
    tgl::KernelOp other = second.guarded();
    if (!other)
      return "";
    EvaluateOptions own;
    own.maxSteps = 0; // what is not refused ends at once
    std::vector<std::string> names = boundSizes(other);
    std::set<int64_t> borders = bordersOf(first.guarded());
    for (uint64_t k = 0; k < 24; ++k) {
      uint64_t seed = mix(options.seed, 0x726566757365 + k);
      Sizes given = options.sizes;
      if (k >= 12 && !names.empty() && !borders.empty() && *borders.rbegin() < 100'000)
        given.try_emplace(names[k % names.size()], *borders.rbegin() + 2);
      std::optional<Sizes> sizes = drawSizes(other, SizeKind(k % 4), given, seed);
      if (!sizes)
        continue;
      Algebra algebra(seed);
      Point point = drawPoint(other, *sizes, {}, seed, algebra, hints);
      Evaluation run = first.run(point, algebra, own);
      if (run.problem == Evaluation::Refused)
        return run.message;
    }
    return "";
  }

  tgl::KernelOp kernel;
  Subject &first, &second;
  const EqualOptions &options;
  Judgement judgement;
  std::vector<std::string> failures;
  Hints hints;
  bool isOptional = false;                      // the point at hand
  Sizes forced;                                 // of the point at hand
  std::map<SizeKind, std::vector<Sizes>> taken; // at which points were evaluated
  std::map<Sizes, uint64_t> stepsAt;            // of the first program, at such points
  std::set<Sizes> fitting;                      // that both programs take
  std::vector<Sizes> largeOnes;                 // at which they took too many steps
  std::map<SizeKind, unsigned> timesTooLarge;
  unsigned refusals = 0;
  int64_t unreached = 0; // a constant that sizes are compared with, and that no size is beyond
  bool isLessPrecise = false, hasLessRange = false, overflows = false;
  bool readsDoubles = false; // a parameter is of f64
  bool drawsSizes = true;    // not all are given
  bool comparesExponentials = false;
  bool isAmbiguous = false; // the point at hand
  /// Why a difference was not taken for one: at points of the kind at hand, and at the first kind
  /// that had no better one.
  std::string trialDoubt, doubt;
};
} // namespace

Judgement tegula::prove::compare(tgl::KernelOp kernel, Subject &first, Subject &second,
                                 const EqualOptions &options) {
  return Comparer(kernel, first, second, options).run();
}
