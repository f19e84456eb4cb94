//===- Safe.cpp - A record of why accesses stay inside ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Safe.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "prove/Evaluate.h"
#include "prove/Witness.h"
#include "symbolic/Guards.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;
using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;
using tgl::ValueExpr;

namespace {
/// What is known at one access.
class Scope {
public:
  Scope(ArrayRef<SizeSpec> sizes, ArrayRef<GuardSpec> guards) : guards(guards) {
    for (auto [k, spec] : enumerate(sizes)) {
      if (!spec.boundBy) {
        Poly value = witness.poly(spec.definition);
        defined.push_back({spec.name, witness.text(value)});
        witness.define(spec.name, value);
        continue;
      }
      unsigned var = witness.variable(spec.name, "size", double(k) + 1);
      witness.assume(var ? Poly::variable(var) : Poly::bad(), json::Object{{"size", spec.name}});
    }
    for (auto [k, guard] : enumerate(guards))
      addGuard(int64_t(k), guard);
  }

  /// The ranges of all that runs around the operation, and of its values.
  void enter(Operation *op) {
    SmallVector<Operation *> around;
    for (Operation *at = op->getParentOp(); at; at = at->getParentOp())
      around.push_back(at);
    for (Operation *at : reverse(around))
      for (mlir::Region &region : at->getRegions())
        if (region.isAncestor(op->getParentRegion()) && !region.empty())
          for (BlockArgument argument : region.front().getArguments())
            if (isa<mlir::IndexType>(argument.getType()))
              polyOf(Value(argument));
    for (auto [k, guard] : enumerate(guards))
      if (guard.kind == GuardSpec::InBounds) {
        SmallVector<unsigned> chosen;
        instantiate(int64_t(k), guard, chosen);
      }
  }

  /// What holds where a condition does.
  void assume(Value condition, bool is = true) {
    Operation *op = condition ? condition.getDefiningOp() : nullptr;
    if (auto both = dyn_cast_or_null<mlir::arith::AndIOp>(op); both && is) {
      assume(both.getLhs());
      assume(both.getRhs());
    } else if (auto either = dyn_cast_or_null<mlir::arith::OrIOp>(op); either && !is) {
      assume(either.getLhs(), false);
      assume(either.getRhs(), false);
    } else if (auto flip = dyn_cast_or_null<mlir::arith::XOrIOp>(op)) {
      if (mlir::matchPattern(flip.getRhs(), mlir::m_One()))
        assume(flip.getLhs(), !is);
    } else if (auto compare = dyn_cast_or_null<mlir::arith::CmpIOp>(op)) {
      assumeComparison(compare, is);
    }
  }

  /// A read gives the fill where the division leaves a rest.
  void assumeExact(const ValueExpr &numerator, const ValueExpr &denominator) {
    equate(polyOf(ValueExpr::floorDiv(numerator, denominator)) * polyOf(denominator),
           polyOf(numerator), "exact", true);
  }

  Poly polyOf(const ValueExpr &expr) {
    return witness.poly(expr.expr(), [&](unsigned dim) { return polyOf(expr.operands()[dim]); });
  }

  std::string textOf(const ValueExpr &expr) {
    std::string text;
    raw_string_ostream os(text);
    expr.expr().print(os, [&](raw_ostream &out, unsigned dim) {
      Poly value = polyOf(expr.operands()[dim]);
      bool isBare = value.terms.size() == 1 && value.terms[0].second == 1 &&
                    monomial::degree(value.terms[0].first) == 1;
      out << (isBare ? "" : "(") << witness.text(value) << (isBare ? "" : ")");
    });
    return text;
  }

  Witness witness;
  std::vector<std::pair<std::string, std::string>> defined;

private:
  struct Axis {
    unsigned var;
    Poly low, high;
  };

  void equate(const Poly &a, const Poly &b, StringRef key, json::Value why) {
    witness.assume(a - b, json::Object{{key, why}});
    witness.assume(b - a, json::Object{{key, std::move(why)}});
  }

  void addGuard(int64_t number, const GuardSpec &guard) {
    Poly lhs = guard.kind == GuardSpec::InBounds ? Poly() : witness.poly(guard.lhs);
    switch (guard.kind) {
    case GuardSpec::NonNegative:
      return witness.assume(lhs, json::Object{{"guard", number}});
    case GuardSpec::Zero:
      return equate(lhs, Poly(), "guard", number);
    case GuardSpec::NonZero: {
      json::Value notNegative = witness.prove(lhs);
      if (notNegative != nullptr)
        witness.assume(lhs - Poly(1),
                       json::Object{{"guard", number}, {"not_negative", std::move(notNegative)}});
      return;
    }
    case GuardSpec::Divides: {
      Poly rhs = witness.poly(guard.rhs);
      Poly ratio = witness.poly(IndexExpr::floorDiv(guard.lhs, guard.rhs));
      return equate(lhs, rhs * ratio, "guard", number);
    }
    case GuardSpec::InBounds:
      return;
    }
  }

  Poly polyOf(Value value) {
    if (auto known = polys.find(value); known != polys.end())
      return known->second;
    Poly result;
    auto argument = dyn_cast<BlockArgument>(value);
    std::optional<tgl::AxisRange> range = argument ? tgl::getRange(argument) : std::nullopt;
    ValueExpr expr = range ? ValueExpr(value) : tgl::getValueExpr(value);
    if (range)
      result = axis(argument, *range);
    else if (expr.asValue() != value)
      result = polyOf(expr);
    else if (unsigned var = witness.variable(nameFor("data"), "data", 500 + double(polys.size())))
      result = Poly::variable(var);
    else
      result = Poly::bad();
    polys[value] = result;
    return result;
  }

  Poly axis(BlockArgument argument, const tgl::AxisRange &range) {
    Poly low = polyOf(range.lo), high = polyOf(range.hi);
    StringRef name = "d";
    if (auto axes = dyn_cast<tgl::AxesOp>(argument.getOwner()->getParentOp()))
      if (StringRef own = tgl::getAxisName(axes, argument.getArgNumber()); !own.empty())
        name = own;
    if (auto names = argument.getOwner()->getParentOp()->getAttrOfType<mlir::ArrayAttr>("names");
        name == "d" && names && !names.empty())
      name = cast<mlir::StringAttr>(names[0]).getValue();
    if (name.empty())
      name = "d";
    std::string unique = nameFor(name);
    unsigned var = witness.variable(unique, "axis", 1000 + double(polys.size()));
    if (!var)
      return Poly::bad();
    Poly self = Poly::variable(var);
    axes.push_back({var, low, high});
    witness.assume(self - low, json::Object{{"axis", unique}, {"low", witness.text(low)}});
    witness.assume(high - Poly(1) - self,
                   json::Object{{"axis", unique}, {"high", witness.text(high)}});
    if (auto tiles = dyn_cast<tgl::TilesOp>(argument.getOwner()->getParentOp());
        tiles && argument == tiles.getTileHigh() && tiles.getSize())
      addTile(polyOf(Value(tiles.getTileLow())), self, *tiles.getSize());
    // There is a point, so that the range is not empty.
    witness.assume(
        high - Poly(1) - low,
        json::Object{{"axis", unique}, {"low", witness.text(low)}, {"high", witness.text(high)}});
    return self;
  }

  /// A tile has an element, and no more than its size.
  void addTile(const Poly &low, const Poly &high, uint64_t size) {
    json::Object from{{"tile", json::Array{witness.text(low), witness.text(high)}},
                      {"size", int64_t(size)}};
    witness.assume(high - low - Poly(1), from);
    witness.assume(low + Poly(int64_t(size)) - high, from);
  }

  /// A name that no size has.
  std::string nameFor(StringRef name) {
    std::string plain = isAlpha(name.front()) ? name.str() : "axis";
    for (char &c : plain)
      c = isAlnum(c) ? c : '_';
    return plain + "_" + std::to_string(++names);
  }

  /// A guard that is about all points of a box holds at each choice of axes that have its ranges.
  void instantiate(int64_t number, const GuardSpec &guard, SmallVectorImpl<unsigned> &chosen) {
    auto dimOf = [&](unsigned dim) {
      return dim < chosen.size() ? Poly::variable(axes[chosen[dim]].var) : Poly::bad();
    };
    if (chosen.size() < guard.lows.size()) {
      Poly low = witness.poly(guard.lows[chosen.size()], dimOf),
           high = witness.poly(guard.highs[chosen.size()], dimOf);
      for (unsigned k = 0; k < axes.size(); ++k)
        if (!low.badResult() && !high.badResult() && axes[k].low == low && axes[k].high == high) {
          chosen.push_back(k);
          instantiate(number, guard, chosen);
          chosen.pop_back();
        }
      return;
    }
    json::Array conditions, at;
    for (const IndexExpr &condition : guard.conditions) {
      json::Value proof = witness.prove(witness.poly(condition, dimOf));
      if (proof == nullptr)
        return;
      conditions.push_back(std::move(proof));
    }
    for (unsigned k : chosen)
      at.push_back(witness.text(Poly::variable(axes[k].var)));
    json::Object from{{"guard", number}, {"at", std::move(at)}, {"given", std::move(conditions)}};
    Poly index = witness.poly(guard.lhs, dimOf), size = witness.poly(guard.rhs, dimOf);
    witness.assume(index, json::Object(from));
    witness.assume(size - Poly(1) - index, std::move(from));
  }

  void assumeComparison(mlir::arith::CmpIOp compare, bool is) {
    using P = mlir::arith::CmpIPredicate;
    if (!isa<mlir::IndexType>(compare.getLhs().getType()))
      return; // other integers wrap
    P predicate = compare.getPredicate();
    if (!is)
      predicate = mlir::arith::invertPredicate(predicate);
    Poly a = polyOf(compare.getLhs()), b = polyOf(compare.getRhs());
    std::string place = placeOf(compare.getLoc());
    auto holds = [&](const Poly &p) { witness.assume(p, json::Object{{"condition", place}}); };
    switch (predicate) {
    case P::eq:
      holds(a - b);
      return holds(b - a);
    case P::slt:
      return holds(b - a - Poly(1));
    case P::sle:
      return holds(b - a);
    case P::sgt:
      return holds(a - b - Poly(1));
    case P::sge:
      return holds(a - b);
    default:
      return;
    }
  }

  ArrayRef<GuardSpec> guards;
  DenseMap<Value, Poly> polys;
  std::vector<Axis> axes;
  unsigned names = 0;
};

/// Writes the record.
class Recorder {
public:
  Recorder(tgl::KernelOp entry, SafeCounts &counts) : counts(counts) {
    launchSpecs(entry, sizes, guards);
  }

  void access(Operation *op, StringRef what, Value tensor, ArrayRef<ValueExpr> subscripts,
              Value guard, Value fill, StringRef checked,
              ArrayRef<std::pair<ValueExpr, ValueExpr>> exact) {
    Scope scope(sizes, guards);
    scope.enter(op);
    scope.assume(guard);
    for (const auto &[numerator, denominator] : exact)
      scope.assumeExact(numerator, denominator);
    auto type = cast<tgl::TglTensorType>(tensor.getType());
    json::Array subscriptTexts, extents;
    for (auto [subscript, dim] : zip(subscripts, type.getDims())) {
      subscriptTexts.push_back(scope.textOf(subscript));
      extents.push_back(dim.getExpr().str());
    }
    json::Object record{{"op", what},
                        {"place", placeOf(op->getLoc())},
                        {"tensor", nameOf(tensor)},
                        {"subscripts", std::move(subscriptTexts)},
                        {"extents", std::move(extents)}};
    if (fill) {
      record["how"] = "fill";
      ++counts.filled;
    } else if (!checked.empty()) {
      record["how"] = "checked while it runs";
      record["checked"] = checked;
      ++counts.runtime;
    } else {
      prove(scope, subscripts, type, record);
    }
    records.push_back(std::move(record));
  }

  json::Object finish() {
    json::Array sizeTexts, guardTexts;
    for (const SizeSpec &size : sizes)
      sizeTexts.push_back(size.str());
    for (const GuardSpec &guard : guards)
      guardTexts.push_back(guard.str());
    counts.guards = unsigned(guards.size());
    return json::Object{{"sizes", std::move(sizeTexts)},
                        {"guards", std::move(guardTexts)},
                        {"accesses", std::move(records)}};
  }

private:
  static std::string nameOf(Value tensor) {
    if (auto temp = tensor.getDefiningOp<tgl::TempOp>())
      return temp.getName().str();
    auto argument = cast<BlockArgument>(tensor);
    auto kernel = cast<tgl::KernelOp>(argument.getOwner()->getParentOp());
    return kernel.getArgName(argument.getArgNumber()).str();
  }

  void prove(Scope &scope, ArrayRef<ValueExpr> subscripts, tgl::TglTensorType type,
             json::Object &record) {
    json::Array goals;
    json::Object hypotheses;
    bool isProved = true;
    for (auto [k, subscript] : enumerate(subscripts)) {
      Poly index = scope.polyOf(subscript);
      Poly extent = scope.witness.poly(type.getDims()[k].getExpr());
      for (bool isHigh : {false, true}) {
        Poly goal = isHigh ? extent - Poly(1) - index : index;
        json::Value proof = scope.witness.prove(goal);
        isProved &= proof != nullptr;
        for (auto &[number, hypothesis] : scope.witness.hypothesesOf(proof))
          hypotheses[number] = hypothesis;
        goals.push_back(json::Object{{"dim", int64_t(k)},
                                     {"side", isHigh ? "high" : "low"},
                                     {"subscript", scope.witness.text(index)},
                                     {"extent", scope.witness.text(extent)},
                                     {"proof", std::move(proof)}});
      }
    }
    json::Array defined;
    for (const auto &[name, value] : scope.defined)
      defined.push_back(json::Object{{"name", name}, {"is", value}});
    record["how"] = isProved ? "proved" : "open";
    record["variables"] = scope.witness.variables();
    record["defined"] = std::move(defined);
    record["hypotheses"] = std::move(hypotheses);
    record["goals"] = std::move(goals);
    ++(isProved ? counts.proved : counts.open);
    if (!isProved)
      counts.openPlaces.push_back(
          (*record.getString("place") + ": '" + *record.getString("tensor") + "'").str());
  }

  SafeCounts &counts;
  std::vector<SizeSpec> sizes;
  std::vector<GuardSpec> guards;
  json::Array records;
};
} // namespace

json::Object tegula::prove::recordSafety(tgl::KernelOp entry, SafeCounts &counts) {
  Recorder recorder(entry, counts);
  entry->getParentOp()->walk<mlir::WalkOrder::PreOrder>([&](Operation *op) {
    if (auto read = dyn_cast<tgl::ReadOp>(op))
      recorder.access(op, "read", read.getTensor(), read.getSubscriptExprs(), read.getGuard(),
                      read.getFill(), read.getChecked().value_or(""), read.getExactExprs());
    else if (auto write = dyn_cast<tgl::WriteOp>(op))
      recorder.access(op, "write", write.getTensor(), write.getSubscriptExprs(), write.getGuard(),
                      {}, write.getChecked().value_or(""), {});
    else if (auto sort = dyn_cast<tgl::SortOp>(op))
      recorder.access(op, "sort", sort.getValues(), sort.getSubscriptExprs(), {}, {}, "", {});
  });
  return recorder.finish();
}

std::string tegula::prove::toText(const SafeCounts &counts) {
  std::string text;
  raw_string_ostream os(text);
  unsigned all = counts.proved + counts.filled + counts.runtime + counts.open;
  os << (counts.open ? "not all accesses have a proof that can be replayed" : "safe") << '\n';
  os << "  " << all << " accesses: " << counts.proved << " proved inside, " << counts.filled
     << " with a fill outside, " << counts.runtime << " checked while it runs";
  if (counts.open)
    os << ", " << counts.open << " by the checker alone";
  os << "\n  " << counts.guards << " guards of a launch\n";
  for (const std::string &place : counts.openPlaces)
    os << "  by the checker alone: " << place << '\n';
  return text;
}
