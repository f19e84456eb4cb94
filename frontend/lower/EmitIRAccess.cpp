//===- EmitIRAccess.cpp - Subscripts, bounds and reads ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

/// The value of a bound variable, or of an integer read from data at the current point.
Value Emitter::valueOf(const Var &var) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (auto known = frame->vars.find(var.id); known != frame->vars.end())
      return known->second;
    if (var.kind == Var::Data && frame->rebinds)
      break;
  }
  assert(var.kind == Var::Data && "an index variable is used outside of its range");
  // What is unsigned is reported as such.
  Value value =
      var.data->type == DType::U64
          ? Value(arith::IndexCastUIOp::create(builder, locate(var.data->span),
                                               builder.getIndexType(), eval(*this, var.data)))
          : evalAs(*this, var.data, builder.getIndexType());
  frames.back().vars[var.id] = value;
  return value;
}

bool Emitter::isBound(unsigned var) const {
  return llvm::any_of(frames, [&](const Frame &frame) { return frame.vars.contains(var); });
}

tgl::ValueExpr Emitter::valueExpr(const IndexExpr &expr) {
  return tgl::ValueExpr(expr, [&](unsigned position) { return valueOf(program.vars[position]); });
}

SmallVector<tgl::ValueExpr> Emitter::valueExprs(ArrayRef<IndexExpr> exprs) {
  return llvm::map_to_vector(exprs, [&](const IndexExpr &expr) { return valueExpr(expr); });
}

Value Emitter::indexOf(const IndexExpr &expr, Location loc) {
  return tgl::materialize(builder, loc, valueExpr(expr));
}

SmallVector<ArrayRef<const Var *>> Emitter::splitAtData(ArrayRef<const Var *> vars) {
  SmallVector<ArrayRef<const Var *>> groups;
  size_t begin = 0;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (vars[i]->kind == Var::Tile)
      continue;
    bool mustFollow = false;
    for (const IndexExpr *bound : {&vars[i]->lo, &vars[i]->hi})
      analysis.forEachData(*bound, [&](const Expr *data) {
        for (size_t k = begin; k < i; ++k)
          mustFollow |= contains(analysis.axesOf(data), vars[k]->id);
      });
    if (mustFollow) {
      groups.push_back(vars.slice(begin, i - begin));
      begin = i;
    }
  }
  groups.push_back(vars.drop_front(begin));
  return groups;
}

SmallVector<tgl::AxisSpec> Emitter::axisSpecs(ArrayRef<const Var *> vars) {
  SmallVector<tgl::AxisSpec> specs;
  for (auto [k, var] : llvm::enumerate(vars)) {
    if (var->kind == Var::Tile) {
      auto [begin, end] = tileBounds.lookup(var->id);
      assert(begin && "a tile is used outside of its loop");
      specs.push_back({var->name, begin, end});
    } else if (usesAny(*var, vars.take_front(k))) {
      for (const IndexExpr &bound :
           {var->lo, var->hi}) // data that they use as well is read before the op
        for (const IndexVar &used : bound.variables())
          if (!used.isSymbol() && program.vars[used.position()].kind == Var::Data)
            valueOf(program.vars[used.position()]);
      specs.push_back({var->name, 0, 0}); // setOwnRanges
    } else {
      specs.push_back({var->name, valueExpr(var->lo), valueExpr(var->hi)});
    }
  }
  return specs;
}

bool Emitter::usesAny(const Var &var, ArrayRef<const Var *> others) {
  return llvm::any_of(others, [&](const Var *other) {
    IndexVar variable = IndexVar::dim(other->id);
    return var.kind != Var::Tile && (var.lo.uses(variable) || var.hi.uses(variable));
  });
}

/// Bounds that use axes of the same op; to be called where these are bound.
void Emitter::setOwnRanges(tgl::AxesOp op, ArrayRef<const Var *> vars) {
  for (auto [k, var] : llvm::enumerate(vars))
    if (usesAny(*var, vars.take_front(k)))
      tgl::setAxisRange(op, k, valueExpr(var->lo), valueExpr(var->hi));
}

std::string Emitter::accessText(Span span) {
  // The text of an equation ends in front of its `=`.
  std::string text;
  int open = 0;
  for (char c : sources.text(span)) {
    if (open == 0 && c == '=' && !text.empty())
      break;
    open += c == '[' || c == '(';
    open -= c == ']' || c == ')';
    if (!isspace(static_cast<unsigned char>(c)))
      text += c;
    else if (!text.empty() && text.back() != ' ') // an access over several lines becomes one
      text += ' ';
  }
  // Without the rest of `+=` and `max=`.
  StringRef access = StringRef(text).rtrim();
  if (access.ends_with("+") || access.ends_with("max") || access.ends_with("min"))
    access = access.take_front(access.rfind(']') + 1);
  return access.str();
}

const Tensor *Emitter::constantTensor(const Tensor *tensor) {
  if (const Tensor *other = constants.lookup(tensor))
    return other;
  return tensor->constantValue ? tensor : nullptr;
}

/// An optional tensor that was left out: its value everywhere inside, the fill outside.
Value Emitter::readConstant(const Expr *expr, const Tensor &tensor) {
  Location loc = locate(expr->span);
  Type type = computeTypeOf(*this, tensor.type);
  Value value = isFloat(tensor.type)
                    ? constant(*this, type, *tensor.constantValue, loc)
                    : constantInt(*this, type,
                                  convertToInteger(*tensor.constantValue, tensor.type, false), loc);
  if (isFloat(tensor.type) && typeOf(*this, tensor.type) != type)
    value = convertTo(*this, value, computeType(tensor.type), tensor.type, false, loc);
  if (!expr->fill)
    return value;
  Value inside;
  auto require = [&](arith::CmpIPredicate predicate, const IndexExpr &lhs, const IndexExpr &rhs) {
    Value holds =
        arith::CmpIOp::create(builder, loc, predicate, indexOf(lhs, loc), indexOf(rhs, loc));
    inside = inside ? arith::AndIOp::create(builder, loc, inside, holds) : holds;
  };
  for (auto [subscript, dim] : llvm::zip_equal(expr->subscripts, expr->tensor->dims)) {
    require(arith::CmpIPredicate::sge, subscript, IndexExpr(0));
    require(arith::CmpIPredicate::slt, subscript, dim);
  }
  for (const auto &[numerator, denominator] : expr->exact)
    require(arith::CmpIPredicate::eq, IndexExpr::mod(numerator, denominator), IndexExpr(0));
  if (!inside)
    return value;
  return arith::SelectOp::create(builder, loc, inside, value, evalAs(*this, expr->fill, type));
}

Value Emitter::computeRead(const Expr *expr) {
  if (const Tensor *constant = constantTensor(expr->tensor))
    return readConstant(expr, *constant);
  Location loc = locate(expr->span);
  Value tensor = tensors.lookup(expr->tensor);
  assert(tensor && "a tensor is read before it is defined");
  Type type = cast<tgl::TglTensorType>(tensor.getType()).getComputeType();

  SmallVector<tgl::ValueExpr> subscripts = valueExprs(expr->subscripts);
  SmallVector<std::pair<tgl::ValueExpr, tgl::ValueExpr>> exact;
  for (const auto &[numerator, denominator] : expr->exact)
    exact.push_back({valueExpr(numerator), valueExpr(denominator)});
  Value guard = expr->guard ? evalAs(*this, expr->guard, builder.getI1Type()) : Value();
  Value fill = expr->fill ? evalAs(*this, expr->fill, type) : Value();
  std::string checked = expr->dataDependent ? accessText(expr->span) : std::string();
  return tgl::ReadOp::create(builder, loc, tensor, subscripts, fill, guard, exact, checked);
}

/// The subscripts at the current point: each axis from its beginning.
SmallVector<tgl::ValueExpr> Emitter::storedSubscripts(const Place &place) {
  SmallVector<tgl::ValueExpr> subscripts;
  for (const Var *var : place.axes) {
    tgl::ValueExpr beginning = var->kind == Var::Tile
                                   ? tgl::ValueExpr(tileBounds.lookup(var->id).first)
                                   : valueExpr(var->lo);
    subscripts.push_back(tgl::ValueExpr(valueOf(*var)) - beginning);
  }
  return subscripts;
}

Value Emitter::readStored(const Place &place, Location loc) {
  return tgl::ReadOp::create(builder, loc, place.value, storedSubscripts(place));
}

void Emitter::writeStored(Value value, const Place &place, Location loc) {
  auto type = cast<tgl::TglTensorType>(place.value.getType());
  tgl::WriteOp::create(builder, loc, coerce(*this, value, type.getComputeType(), loc), place.value,
                       storedSubscripts(place));
}
