//===- EmitIRDistinct.cpp - Places that cannot repeat ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   c[i] = cumsum(where(p(i), 1, 0), over=i)        o[i] = argsort(x[i], over=i)
//   y[c[i] - 1] = x[i] for i in N if p(i)           y[o[i]] = i
//
// The count grows at each point that is written, and places of a sort are a permutation. So nobody
// has to find out which point writes an element last.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRDistinct.h"
#include "frontend/lower/EmitIREqual.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emit;

static const Expr *withoutWidening(const Expr *value) {
  while (value->kind == Expr::Widen || value->kind == Expr::Let)
    value = value->kind == Expr::Let ? value->let->value : value->operands[0];
  return value;
}

static std::optional<unsigned> indexOf(const Program &program, const IndexExpr &expr) {
  std::optional<IndexVar> var = expr.asVariable();
  if (!var || var->isSymbol() || program.vars[var->position()].kind == Var::Data)
    return std::nullopt;
  return var->position();
}

/// What writes a tensor: the one equation at the top of the program; null where there are others.
static const Stmt *onlyEquation(const Program &program, const Tensor *tensor) {
  unsigned writes = 0;
  forEachStmt(program.body, [&](const Stmt &stmt) {
    writes += stmt.kind == Stmt::Equation && stmt.tensor == tensor;
    if (stmt.callee)
      for (const auto &[output, target] : stmt.callee->results)
        writes += target == tensor;
  });
  auto found = find_if(program.body, [&](const Stmt *stmt) {
    return stmt->kind == Stmt::Equation && stmt->tensor == tensor;
  });
  return writes == 1 && found != program.body.end() && !(*found)->accumulate && !(*found)->guard &&
                 !is_contained(program.inputs, tensor)
             ? *found
             : nullptr;
}

namespace {
/// Compares two values of which one has other names for its indices.
class Renamed {
public:
  Renamed(const Program &program, DenseMap<unsigned, unsigned> names)
      : program(program), names(std::move(names)) {}

  bool equal(const Expr *a, const Expr *b) {
    auto isSameIndex = [&](const IndexExpr &own, const IndexExpr &other) {
      return equal(own, other);
    };
    auto isSameTensor = [&](const Tensor *tensor) { return staysAsItIs(tensor); };
    return areAlike(a, b, {/*isOfOneStatement=*/false, isSameIndex, isSameTensor});
  }

private:
  const Program &program;
  DenseMap<unsigned, unsigned> names; ///< of the first value's indices in the second

  bool equal(const IndexExpr &a, const IndexExpr &b) {
    bool hasData = false;
    for (const IndexExpr &expr : {a, b})
      for (const IndexVar &var : expr.variables())
        hasData |= !var.isSymbol() && program.vars[var.position()].kind == Var::Data;
    return !hasData && b == a.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      auto found = var.isSymbol() ? names.end() : names.find(var.position());
      return found == names.end() ? std::nullopt : std::optional(IndexExpr::dim(found->second));
    });
  }

  /// Whether a tensor has the same elements wherever it is read.
  bool staysAsItIs(const Tensor *tensor) {
    bool isInput = is_contained(program.inputs, tensor), isWritten = false;
    forEachStmt(program.body, [&](const Stmt &stmt) {
      isWritten |= stmt.kind == Stmt::Equation && stmt.tensor == tensor;
      isWritten |= stmt.callee && any_of(stmt.callee->results, [&](const auto &result) {
                     return result.second == tensor;
                   });
    });
    return isInput ? !isWritten : onlyEquation(program, tensor) != nullptr;
  }
};
} // namespace

/// The condition of a value that is 1 where it holds and 0 elsewhere.
static const Expr *countedCondition(const Expr *value) {
  value = withoutWidening(value);
  if (value->kind == Expr::Convert && isInteger(value->target))
    value = withoutWidening(value->operands[0]);
  if (value->type == DType::Bool)
    return value;
  if (value->kind != Expr::Where)
    return nullptr;
  auto is = [](const Expr *operand, int64_t number) {
    operand = withoutWidening(operand);
    return operand->kind == Expr::Constant && isInteger(operand->type) &&
           operand->intValue == number;
  };
  bool isOne = is(value->operands[1], 1) && is(value->operands[2], 0);
  return isOne ? value->operands[0] : nullptr;
}

/// The indices that elements of a read's tensor stand for one by one, if its points differ; nothing
/// where they may be alike.
static std::optional<SmallVector<unsigned>> distinctAlong(Emitter &emitter, const Stmt &scatter,
                                                          const Expr *read) {
  const Program &program = emitter.program;
  const Stmt *equation = onlyEquation(program, read->tensor);
  if (!equation || read->fill || !read->exact.empty() || read->guard ||
      equation->subscripts.size() != read->subscripts.size())
    return std::nullopt;
  const Expr *scan = withoutWidening(equation->value);
  if (scan->kind != Expr::Scan || scan->vars.size() != 1 || scan->positions.size() != 1)
    return std::nullopt;
  std::optional<unsigned> place = indexOf(program, scan->positions[0]);
  DenseMap<unsigned, unsigned> names;
  SmallVector<unsigned> along;
  bool hasPlace = false;
  for (auto [own, other] : zip_equal(equation->subscripts, read->subscripts)) {
    std::optional<unsigned> from = indexOf(program, own), to = indexOf(program, other);
    if (!from || !to || is_contained(along, *to) || !names.try_emplace(*from, *to).second)
      return std::nullopt;
    hasPlace |= from == place;
    along.push_back(*to);
  }
  if (!hasPlace)
    return std::nullopt;
  if (scan->scan == Scan::ArgSort || scan->scan == Scan::TopKIndex)
    return along;
  if (scan->scan != Scan::CumSum || !isInteger(scan->type) || !scatter.guard)
    return std::nullopt;
  const Expr *condition = countedCondition(scan->operands[0]);
  names[scan->vars[0]->id] = names.lookup(*place);
  if (!condition || !Renamed(program, std::move(names)).equal(condition, scatter.guard))
    return std::nullopt;
  return along;
}

bool tegula::emit::writesDistinctPlaces(Emitter &emitter, const Stmt &scatter) {
  const Program &program = emitter.program;
  SmallVector<unsigned> apart;
  for (const IndexExpr &subscript : scatter.subscripts)
    if (std::optional<unsigned> bare = indexOf(program, subscript))
      apart.push_back(*bare);
  for (const IndexExpr &subscript : scatter.subscripts)
    for (const IndexVar &var : subscript.variables()) {
      if (var.isSymbol() || program.vars[var.position()].kind != Var::Data ||
          !(subscript - IndexExpr::dim(var.position())).isSize())
        continue;
      const Expr *data = withoutWidening(program.vars[var.position()].data);
      std::optional<SmallVector<unsigned>> along =
          data->kind == Expr::Read ? distinctAlong(emitter, scatter, data) : std::nullopt;
      if (!along)
        continue;
      // Elements of one row differ, of which the other subscripts tell which it is.
      const Expr *scan = withoutWidening(onlyEquation(program, data->tensor)->value);
      for (auto [own, axis] : zip_equal(onlyEquation(program, data->tensor)->subscripts, *along)) {
        bool isPlace = indexOf(program, own) == indexOf(program, scan->positions[0]);
        if (!isPlace && !is_contained(apart, axis))
          return false;
      }
      append_range(apart, *along);
    }
  AxisSet axes = emitter.analysis.axesOf(scatter);
  for (const Var *var : scatter.vars)
    insertAll(axes, {var->id});
  return all_of(axes, [&](unsigned axis) { // steps of a loop come one after the other
    return is_contained(apart, axis) || program.vars[axis].kind == Var::Loop;
  });
}
