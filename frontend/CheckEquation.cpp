//===- CheckEquation.cpp - Equations, pieces and coverage -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `t[s1, ..., sn] = e`: the left side's indices get their ranges, the right side its value, and what
// the equation defines is held against what others defined (disjoint) and against the whole tensor
// (covered) [4.1 - 4.7].
//
//===----------------------------------------------------------------------===//

#include "frontend/CheckerLeft.h"

using namespace tegula;
using namespace tegula::checked;

/// Names in an expression that nothing defines: indices of the equation.
static void collectNames(const ast::Expr &e, llvm::SmallVectorImpl<const ast::Ident *> &names) {
  if (e.kind == ast::Expr::Name)
    names.push_back(&e.name);
  for (const ast::ExprPtr &operand : e.operands)
    if (operand)
      collectNames(*operand, names);
  for (const ast::Subscript &subscript : e.subscripts) {
    if (subscript.expr)
      collectNames(*subscript.expr, names);
    for (const ast::Subscript &member : subscript.members)
      if (member.expr)
        collectNames(*member.expr, names);
  }
  for (const ast::Argument &argument : e.arguments)
    collectNames(*argument.value, names);
}

bool Checker::expandLeft(LeftSide &left) {
  size_t ellipses = 0;
  for (const ast::Subscript &subscript : left.target->subscripts) {
    if (subscript.kind == ast::Subscript::Ellipsis) {
      if (!frame->ellipsis || ellipses++) {
        report(Code::EllipsisMisuse, subscript.span,
               ellipses > 1 ? llvm::Twine("'...' stands twice on the left")
                            : "'...' stands for dims that a parameter shows as '...', and this "
                              "kernel has none");
        return false;
      }
      for (size_t q = 0; q != frame->ellipsis->size(); ++q) {
        LeftSide::Sub sub;
        sub.ast = &subscript;
        sub.isIndex = true;
        sub.name = {"..." + std::to_string(q), subscript.span};
        sub.ellipsisDim = (*frame->ellipsis)[q];
        left.subs.push_back(std::move(sub));
      }
      continue;
    }
    LeftSide::Sub sub;
    sub.ast = &subscript;
    if (subscript.kind == ast::Subscript::Single && subscript.expr->kind == ast::Expr::Name) {
      const ast::Ident &name = subscript.expr->name;
      Entity *entity = lookup(name.name);
      bool isOuter = entity && entity->kind != Entity::Tensor;
      if (entity && entity->kind == Entity::Poison)
        return false;
      if (!entity || subscript.range || (entity->kind == Entity::Tensor && !entity->tensor->isElement)) {
        if (!checkIndexName(name))
          return false;
        sub.isIndex = true;
        sub.name = name;
      }
      (void)isOuter;
    } else if (subscript.range) {
      report(Code::BadTarget, subscript.span, "'in' follows an index name, not an expression")
          .note("write the range at the end: y[b, P + d] = x[b, d] for d in P");
      return false;
    }
    left.subs.push_back(std::move(sub));
  }
  if (left.info && left.info->tensor->dims.size() != left.subs.size() &&
      !(left.info->tensor->kind == Tensor::Temp && left.info->pieces.empty() && !left.info->isComplete)) {
    rankMismatch(*left.info, left.subs.size(), left.target->span);
    return false;
  }
  llvm::StringSet<> seen;
  for (const LeftSide::Sub &sub : left.subs)
    if (sub.isIndex && !seen.insert(sub.name.name).second) {
      report(Code::DuplicateIndex, sub.name.span,
             "index '" + sub.name.name + "' stands twice on the left")
          .note("for a diagonal write a condition: where(i == j, ..., 0)");
      return false;
    }
  return true;
}

bool Checker::bindLeftIndex(LeftSide &left, const ast::Ident &name,
                            std::optional<std::pair<IndexExpr, IndexExpr>> range) {
  if (!range)
    return false;
  const Var *var = newVar(Var::Axis, name.name, range->first, range->second, name.span);
  defineIndex(left.scope, name, var);
  left.vars.push_back(var);
  return true;
}

bool Checker::bindLeftIndices(LeftSide &left) {
  bool failed = false;
  auto isBound = [&](llvm::StringRef name) { return left.scope.names.contains(name); };
  for (const auto &[name, range] : left.presets)
    bindLeftIndex(left, name, range);
  // Nothing more is said of an index whose range is wrong.
  auto fail = [&] {
    for (const LeftSide::Sub &sub : left.subs) {
      if (sub.isIndex && !isBound(sub.name.name))
        poison(left.scope, sub.name);
      for (const ast::Subscript &member : sub.ast->members)
        if (member.expr && member.expr->kind == ast::Expr::Name && !isBound(member.expr->name.name))
          poison(left.scope, member.expr->name);
    }
    if (left.stmt)
      for (const ast::ForItem &item : left.stmt->trailing)
        if (!item.ellipsis && !isBound(item.index.name))
          poison(left.scope, item.index);
    return false;
  };
  auto rangeOf = [&](const ast::Range &written, const ast::Ident &name) {
    bool onIndex = llvm::any_of(left.subs, [&](const LeftSide::Sub &sub) {
      auto stands = [&](llvm::StringRef index) {
        return (written.lo && mentions(*written.lo, index)) || mentions(*written.hi, index);
      };
      return (sub.isIndex && stands(sub.name.name)) ||
             llvm::any_of(sub.ast->members, [&](const ast::Subscript &member) {
               return member.expr && member.expr->kind == ast::Expr::Name &&
                      stands(member.expr->name.name);
             });
    });
    auto range = onIndex ? std::nullopt : evalRange(written, name.name);
    if (onIndex || (range && (!range->first.isSize() || !range->second.isSize()))) {
      report(Code::LoopBounds, written.span,
             "the range of '" + name.name + "' on the left cannot depend on an index or on data")
          .note("use where(...) or a filter: ... for " + name.name + " in SIZE if CONDITION");
      range.reset();
    }
    return range;
  };
  // Ranges written on the left.
  auto written = [&](const ast::Subscript &subscript, const ast::Ident &name) {
    auto range = rangeOf(*subscript.range, name);
    if (!range || !bindLeftIndex(left, name, range)) {
      failed = true;
      poison(left.scope, name);
    }
  };
  for (LeftSide::Sub &sub : left.subs) {
    if (sub.isIndex && sub.ast->range)
      written(*sub.ast, sub.name);
    if (sub.ast->kind != ast::Subscript::Group)
      continue;
    for (const ast::Subscript &member : sub.ast->members)
      if (member.range) {
        if (member.kind != ast::Subscript::Single || member.expr->kind != ast::Expr::Name) {
          report(Code::BadTarget, member.span, "'in' follows an index name, not an expression");
          return fail();
        }
        if (isBound(member.expr->name.name) || !checkIndexName(member.expr->name))
          return fail();
        written(member, member.expr->name);
      }
  }
  if (failed)
    return fail();
  // Ranges written at the end.
  llvm::SmallVector<const ast::Ident *> pending;
  if (left.stmt)
    for (const ast::ForItem &item : left.stmt->trailing) {
      if (item.ellipsis) {
        report(Code::EllipsisMisuse, item.span, "'...' has its range from the left side");
        return fail();
      }
      if (isBound(item.index.name)) {
        report(Code::DuplicateIndex, item.index.span,
               "index '" + item.index.name + "' has its range on the left already");
        return fail();
      }
      if (!checkIndexName(item.index))
        return fail();
      if (!item.range)
        pending.push_back(&item.index);
      else if (!bindLeftIndex(left, item.index, rangeOf(*item.range, item.index)))
        return fail();
    }
  // Indices that stand bare run over the dims of a declared tensor.
  for (size_t i = 0; i != left.subs.size(); ++i) {
    LeftSide::Sub &sub = left.subs[i];
    if (!sub.isIndex || isBound(sub.name.name))
      continue;
    if (sub.ellipsisDim)
      bindLeftIndex(left, sub.name, std::pair(IndexExpr(0), *sub.ellipsisDim));
    else if (left.isDeclared())
      bindLeftIndex(left, sub.name, std::pair(IndexExpr(0), left.info->tensor->dims[i]));
    else
      pending.push_back(&sub.name);
  }
  // The others: names inside of expressions and groups.
  llvm::SmallVector<const ast::Ident *> names;
  for (const LeftSide::Sub &sub : left.subs) {
    if (sub.isIndex)
      continue;
    if (sub.ast->expr)
      collectNames(*sub.ast->expr, names);
    for (const ast::Subscript &member : sub.ast->members)
      if (member.expr)
        collectNames(*member.expr, names);
  }
  for (const ast::Ident *name : names) {
    if (isBound(name->name) || isReserved(name->name) || lookup(name->name))
      continue;
    if (llvm::none_of(pending, [&](const ast::Ident *one) { return one->name == name->name; }))
      pending.push_back(name);
  }
  llvm::SmallVector<const ast::Expr *> bodies = left.bodies;
  for (const LeftSide::Sub &sub : left.subs)
    if (sub.ast->expr && !sub.isIndex)
      bodies.push_back(sub.ast->expr.get());
  while (!pending.empty()) {
    size_t before = pending.size();
    llvm::erase_if(pending, [&](const ast::Ident *name) {
      if (isBound(name->name))
        return true;
      auto range = inferRange(name->name, bodies, name->span);
      // A group on the left of a declared tensor gives the range of its last unknown member.
      if (!range && left.isDeclared()) {
        llvm::SmallVector<Extent> extents;
        for (size_t i = 0; i != left.subs.size(); ++i)
          if (left.subs[i].ast->kind == ast::Subscript::Group)
            collectExtents(*left.subs[i].ast, left.info->tensor->dims[i], left.target->name.name,
                           name->name, /*isOffset=*/false, extents);
        if (!extents.empty()) {
          requireExact(extents[0].exact, extents[0].span);
          range = std::pair(IndexExpr(0), extents[0].size);
        }
      }
      if (!range)
        return false;
      return bindLeftIndex(left, *name, range);
    });
    if (pending.size() != before)
      continue;
    // Pieces of a temporary after the first: its dims so far.
    llvm::erase_if(pending, [&](const ast::Ident *name) {
      for (size_t i = 0; left.info && i != left.subs.size(); ++i)
        if (left.subs[i].isIndex && left.subs[i].name.name == name->name)
          return bindLeftIndex(left, *name,
                               std::pair(IndexExpr(0), left.info->tensor->dims[i]));
      return false;
    });
    if (pending.size() == before)
      break;
  }
  bool onPoison = llvm::any_of(bodies, [&](const ast::Expr *body) { return body && readsPoison(*body); });
  for (const ast::Ident *name : pending) {
    if (onPoison) {
      // What is wrong there may be why; but say what the right side itself has to say.
      poison(left.scope, *name);
      failed = true;
      continue;
    }
    const LeftSide::Sub *group = nullptr;
    for (const LeftSide::Sub &sub : left.subs)
      for (const ast::Subscript &member : sub.ast->members)
        if (member.expr && member.expr->kind == ast::Expr::Name &&
            member.expr->name.name == name->name)
          group = &sub;
    if (group)
      report(Code::GroupRange, group->ast->span,
             "the range of '" + name->name + "' does not follow: at most one range of a group is "
             "inferred")
          .note("write the others, as in (g in G, e)");
    else {
      bool isIndex = llvm::any_of(left.subs, [&](const LeftSide::Sub &sub) {
        return sub.isIndex && &sub.name == name;
      });
      rangeUnknown(*name, text(left.target->span).str() + " = ... for " + name->name + " in SIZE",
                   bodies, isIndex);
    }
    poison(left.scope, *name);
    failed = true;
  }
  return !failed;
}

bool Checker::evalLeft(LeftSide &left) {
  bool failed = false;
  for (size_t i = 0; i != left.subs.size(); ++i) {
    LeftSide::Sub &sub = left.subs[i];
    std::optional<Subscript> value;
    if (sub.isIndex) {
      Entity *entity = lookup(sub.name.name);
      assert(entity && entity->kind == Entity::Index && "bound by bindLeftIndices");
      value = Subscript{IndexExpr::dim(entity->var->id), {}, sub.ast->span, entity->var};
      sub.extent = entity->var->hi;
    } else if (sub.ast->kind == ast::Subscript::Group) {
      value = evalGroup(*sub.ast, left.info ? left.info->tensor->dims[i] : IndexExpr(0),
                        left.isDeclared() ? left.info : nullptr);
      // As large as the product of the ranges where the members are indices.
      IndexExpr product(1);
      for (const ast::Subscript &member : sub.ast->members) {
        Entity *entity =
            member.expr->kind == ast::Expr::Name ? lookup(member.expr->name.name) : nullptr;
        if (entity && entity->kind == Entity::Index && entity->var->hi.isSize())
          product = product * entity->var->hi;
        else
          product = IndexExpr(-1) * IndexExpr::dim(0);
      }
      if (product.isSize())
        sub.extent = product;
    } else {
      value = evalIndex(*sub.ast->expr, "a subscript");
    }
    if (!value) {
      failed = true;
      left.values.push_back({});
      continue;
    }
    left.values.push_back(*value);
  }
  return !failed;
}

const checked::Expr *Checker::storable(const Value &value, DType type, const llvm::Twine &what,
                                       Span span) {
  if (value.isPoison())
    return nullptr;
  DType own = value.expr->type, compute = computeType(type);
  if (isFloat(type)) {
    if (own == DType::Bool || isInteger(own) || value.weak)
      return coerce(value, compute);
    return value.expr;
  }
  if (isFloat(own)) {
    Report record = report(type == DType::Bool ? Code::NotABool : Code::FloatToInteger, span,
                           what + " is " + toString(type) + ", got " + toString(typeAlone(value)));
    if (type == DType::Bool) {
      record.note("a comparison gives a bool: v > 0");
    } else {
      record.note(toString(type).str() + "(v) truncates, quantize(v, " + toString(type).str() +
                  ") rounds to the nearest");
      if (expansions.empty() && span.isValid())
        record.fix("convert it",
                   {{span, toString(type).str() + "(" + text(span).str() + ")"}});
    }
    return nullptr;
  }
  if (type == DType::Bool) {
    if (own == DType::Bool)
      return value.expr;
    report(Code::NotABool, span, what + " is bool, got " + toString(own))
        .note("a comparison gives a bool: v != 0");
    return nullptr;
  }
  if (own == DType::Bool)
    return widen(value.expr, compute);
  if (value.weak && own != compute) {
    std::optional<double> known = constantOf(value.expr);
    if (own == DType::I64 && compute == DType::I32 &&
        (!known || std::abs(value.expr->intValue) > INT32_MAX))
      return value.expr; // the store wraps
    return coerce(value, compute);
  }
  return own == DType::I32 && compute == DType::I64 ? widen(value.expr, compute) : value.expr;
}

bool Checker::readsOthers(const Expr *value, const Tensor *tensor,
                          llvm::ArrayRef<IndexExpr> subscripts) {
  llvm::SmallPtrSet<const Expr *, 32> seen;
  llvm::SmallVector<const Expr *> work{value};
  while (!work.empty()) {
    const Expr *at = work.pop_back_val();
    if (!at || !seen.insert(at).second)
      continue;
    if (at->kind == Expr::Read && at->tensor == tensor &&
        !llvm::equal(at->subscripts, subscripts))
      return true;
    llvm::append_range(work, at->operands);
    work.append({at->fill, at->guard, at->filter});
    auto addData = [&](const IndexExpr &index) {
      for (const IndexVar &var : index.variables())
        if (!var.isSymbol() && program->vars[var.position()].kind == Var::Data)
          work.push_back(program->vars[var.position()].data);
    };
    addData(at->index);
    for (const IndexExpr &subscript : at->subscripts)
      addData(subscript);
  }
  return false;
}

bool Checker::checkLeftBounds(LeftSide &left, Stmt &out) {
  TensorInfo &info = *left.info;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    const IndexExpr &dim = info.tensor->dims[i];
    requireExact(value.exact, value.span);
    if (value.bare && value.bare->lo == IndexExpr(0) && value.bare->hi == dim)
      continue;
    // A temporary is as large as what is written to it.
    if (!left.isDeclared() && !usesData(value.index) && left.subs[i].extent)
      continue;
    Obligation what;
    what.span = value.span.isValid() ? value.span : left.target->span;
    what.access = left.target->span;
    what.what = text(left.target->span).str();
    what.tensor = &info;
    what.dim = i;
    what.isWrite = true;
    Bound bound = requireInBounds(value.index, dim, what);
    if (bound == Bound::Wrong)
      return false;
    if (bound == Bound::Runtime)
      out.dataDependent = true;
  }
  return true;
}

bool Checker::checkInjective(LeftSide &left, const Stmt &out) {
  if (out.accumulate)
    return true;
  // The indices along which this statement runs: its own, and those of the block that it uses.
  std::set<unsigned> along;
  for (const Var *var : left.vars)
    along.insert(var->id);
  std::vector<unsigned> outer = out.value->axes;
  if (out.guard)
    addAxes(outer, out.guard);
  for (const Subscript &value : left.values)
    addAxes(outer, value.index);
  for (unsigned id : outer) {
    const Var &var = program->vars[id];
    if (var.kind == Var::Tile || llvm::is_contained(parallelVars, &var))
      along.insert(id);
  }
  std::set<unsigned> bare, used;
  bool onData = false;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    onData |= usesData(value.index);
    for (const IndexVar &var : value.index.variables())
      if (!var.isSymbol() && program->vars[var.position()].kind != Var::Data)
        used.insert(var.position());
    if (value.bare)
      bare.insert(value.bare->id);
    else if (left.subs[i].ast->kind == ast::Subscript::Group && left.subs[i].extent)
      for (const IndexVar &var : value.index.variables())
        if (!var.isSymbol())
          bare.insert(var.position());
  }
  for (unsigned id : along) {
    if (used.count(id) || bare.count(id))
      continue;
    const Var &var = program->vars[id];
    if (onData)
      break;
    report(Code::FreeIndex, left.valueSpan,
           "the right side varies along '" + var.name + "', which is not on the left")
        .note("put it on the left, or reduce over it: sum(... for " + var.name + ")");
    return false;
  }
  if (llvm::all_of(along, [&](unsigned id) { return bare.count(id) != 0; }))
    return true;
  std::string what = "'" + text(left.target->span).str() + "'";
  if (onData) {
    Report record =
        report(Code::AmbiguousWrite, left.target->span,
               "two points of " + what + " could meet: a subscript comes from data");
    record.note("'+=' adds up what meets; '=' needs every index bare on the left as well");
    suggestAccumulation(record, left);
    return false;
  }
  if (isSilent())
    return true;
  Image image;
  llvm::SmallVector<IndexExpr> exprs;
  for (unsigned id : along)
    exprs.push_back(IndexExpr::dim(id));
  image.domain = domainOf(exprs, false, true);
  for (const Subscript &value : left.values)
    image.subscripts.push_back(value.index);
  Outcome outcome = prover->injective(image);
  if (outcome.proved())
    return true;
  if (!outcome.suffices.empty() && !failsWhereTried(outcome, image)) {
    for (const Condition &condition : outcome.suffices) {
      addGuard(condition.kind == Condition::Zero      ? Guard::Zero
               : condition.kind == Condition::NonZero ? Guard::NonZero
               : condition.kind == Condition::Divides ? Guard::Divides
                                                      : Guard::NonNegative,
               condition.lhs, condition.rhs, "two points of " + what + " meet", left.target->span);
      assume(condition);
    }
    return true;
  }
  Report record = report(Code::AmbiguousWrite, left.target->span,
                         "two points of " + what + (outcome.counterexample
                                                        ? " meet"
                                                        : " may meet: that they differ is not shown"));
  if (outcome.counterexample)
    record.note("for instance with " + showSizes(*outcome.counterexample));
  record.note("'+=' adds up what meets");
  suggestAccumulation(record, left);
  return false;
}

bool Checker::sizeTemporary(LeftSide &left) {
  TensorInfo &info = *left.info;
  std::vector<IndexExpr> needs;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    std::optional<IndexExpr> need = left.subs[i].extent;
    if (!need && !usesData(value.index)) {
      Domain domain = domainOf({value.index}, false, false);
      if (value.index.isSize())
        need = value.index + 1;
      else if (std::optional<IndexExpr> max = prover->range(value.index, domain).max)
        need = *max + 1;
    }
    if (!need || !need->isSize()) {
      report(Code::RangeUnknown, value.span,
             "the size of '" + info.tensor->name + "' does not follow from this subscript")
          .note("a temporary is as large as the union of what is written; write to an output or a "
                "state, whose dims are declared");
      return false;
    }
    needs.push_back(named(*need));
  }
  std::vector<IndexExpr> &dims = info.tensor->dims;
  if (info.pieces.empty() && !info.isComplete) {
    dims = needs;
    for (size_t i = 0; i != dims.size(); ++i)
      if (!left.subs[i].extent)
        requireNonNegative(dims[i], left.values[i].span,
                           "dim " + llvm::Twine(i + 1) + " of '" + info.tensor->name + "'");
    return true;
  }
  for (size_t i = 0; i != dims.size(); ++i) {
    if (needs[i] == dims[i] || prover->proves(Condition::lessEqual(needs[i], dims[i])))
      continue;
    dims[i] = prover->proves(Condition::lessEqual(dims[i], needs[i]))
                  ? needs[i]
                  : named(IndexExpr::max(dims[i], needs[i]));
  }
  return true;
}

bool Checker::isDefinedBy(const Piece &piece, llvm::ArrayRef<IndexExpr> subscripts) {
  if (piece.isPartial || !piece.image.domain.conditions.empty())
    return false;
  std::set<unsigned> seen;
  for (auto [defined, read] : llvm::zip(piece.image.subscripts, subscripts)) {
    std::optional<IndexVar> var = defined.asVariable();
    if (var && !var->isSymbol() && !llvm::is_contained(loops, var->position())) {
      if (!seen.insert(var->position()).second)
        return false;
      for (const RangedVar &bound : piece.image.domain.vars)
        if (bound.position == var->position() &&
            !prover->provesInBounds(read - bound.lo, bound.hi - bound.lo,
                                    domainOf({read, bound.lo, bound.hi}, false, true)))
          return false;
      continue;
    }
    if (defined != read && !prover->proves(Condition::equal(defined, read),
                                           domainOf({defined, read}, false, true)))
      return false;
  }
  return true;
}

bool Checker::addPiece(LeftSide &left, const Stmt &out) {
  TensorInfo &info = *left.info;
  Tensor::Kind kind = info.tensor->kind;
  if (inParallel) {
    std::vector<IndexExpr> subscripts;
    for (const Subscript &value : left.values)
      subscripts.push_back(value.index);
    if (info.blockWrites.empty())
      blockTensors.push_back(&info);
    info.blockWrites.push_back(std::move(subscripts));
  }
  if (dry)
    return true;
  bool isFree = kind == Tensor::State || kind == Tensor::Inout;
  if (isFree) {
    // A state is whole from its own definition on.
    if (!left.isState)
      return true;
  }
  if (out.accumulate) {
    if (!info.isComplete)
      zeroFirst(info);
    info.isComplete = true;
    return true;
  }
  Piece piece;
  piece.span = left.target->span;
  piece.text = text(left.target->span).str();
  piece.inLoop = !loops.empty();
  llvm::SmallVector<IndexExpr> exprs;
  bool isWhole = !out.guard && !out.dataDependent && loops.empty();
  std::set<unsigned> seen;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    piece.image.subscripts.push_back(value.index);
    exprs.push_back(value.index);
    const IndexExpr &dim = info.tensor->dims[i];
    if (value.bare)
      isWhole &= value.bare->lo == IndexExpr(0) && value.bare->hi == dim &&
                 seen.insert(value.bare->id).second;
    else
      isWhole = false;
  }
  for (const Var *var : left.vars)
    exprs.push_back(IndexExpr::dim(var->id));
  for (unsigned loop : loops)
    exprs.push_back(IndexExpr::dim(loop));
  piece.image.domain = domainOf(exprs, false, out.guard != nullptr);
  piece.isPartial = (out.guard && !pathIsComplete()) || out.dataDependent;
  for (const IndexExpr &expr : exprs)
    piece.isPartial |= usesData(expr);

  if (loops.empty() && !info.isSuspect) {
    if (info.isComplete && (info.pieces.empty() || isWhole)) {
      Report record = report(Code::Overlap, left.target->span,
                             "'" + info.tensor->name + "' is already defined");
      if (!info.pieces.empty())
        record.note("here", info.pieces.front().span);
      record.note("a tensor is defined once: take a new name, or a 'state' for what changes in a loop");
      return false;
    }
    for (const Piece &old : info.pieces) {
      Outcome outcome = prover->disjoint(old.image, piece.image);
      if (outcome.proved() || outcome.verdict == Verdict::Unknown)
        continue;
      std::string message = "'" + piece.text + "' meets '" + old.text + "'";
      if (outcome.verdict == Verdict::Depends && !outcome.suffices.empty() &&
          !failsWhereTried(outcome, {old.image, piece.image})) {
        for (const Condition &condition : outcome.suffices) {
          addGuard(condition.kind == Condition::Zero      ? Guard::Zero
                   : condition.kind == Condition::NonZero ? Guard::NonZero
                   : condition.kind == Condition::Divides ? Guard::Divides
                                                          : Guard::NonNegative,
                   condition.lhs, condition.rhs, message, piece.span);
          assume(condition);
        }
        if (std::optional<Report> record = warnGuard(Code::GuardBounds, piece.span,
                                                     message + " for some sizes", true))
          record->note("every launch checks it");
        continue;
      }
      Report record = report(Code::Overlap, piece.span, message + ": an element is defined twice");
      if (outcome.counterexample)
        record.note("for instance with " + showSizes(*outcome.counterexample));
      record.note("the other definition", old.span)
          .note("a tensor is defined once, in pieces that do not meet: take a new name, or a 'state' "
                "for what changes in a loop");
      return false;
    }
  }
  info.pieces.push_back(std::move(piece));
  if (isWhole)
    info.isComplete = true;
  return true;
}

void Checker::requireCovered(TensorInfo &info, Span readSpan, bool atEnd) {
  if (info.isComplete || info.isPoison || info.isSuspect || isSilent())
    return;
  std::string name = "'" + info.tensor->name + "'";
  std::vector<Image> images;
  bool inLoop = false;
  for (const Piece &piece : info.pieces) {
    if (!piece.isPartial)
      images.push_back(piece.image);
    inLoop |= piece.inLoop;
  }
  Outcome outcome;
  if (!images.empty())
    outcome = prover->covers(images, info.tensor->dims);
  if (outcome.proved()) {
    info.isComplete = !(inLoop && !loops.empty());
    return;
  }
  // A loop defines element after element; what it has not reached yet reads as 0.
  if (!loops.empty() && !atEnd) {
    zeroFirst(info);
    return;
  }
  if (outcome.verdict == Verdict::Unknown) {
    zeroFirst(info);
    info.isComplete = true;
    return;
  }
  bool canHold = llvm::none_of(outcome.suffices, [](const Condition &condition) {
    return condition.kind == Condition::NonNegative && condition.lhs.asConstant().value_or(0) < 0;
  });
  if (outcome.verdict == Verdict::Depends && !outcome.suffices.empty() && canHold) {
    for (const Condition &condition : outcome.suffices) {
      addGuard(condition.kind == Condition::Zero      ? Guard::Zero
               : condition.kind == Condition::NonZero ? Guard::NonZero
               : condition.kind == Condition::Divides ? Guard::Divides
                                                      : Guard::NonNegative,
               condition.lhs, condition.rhs, "not every element of " + name + " is defined",
               info.pieces.front().span);
      assume(condition);
    }
    std::string needs;
    for (const Condition &condition : outcome.suffices)
      needs += (needs.empty() ? "" : " and ") + show(condition);
    if (std::optional<Report> record =
            warnGuard(Code::GuardBounds, info.pieces.front().span,
                      "not every element of " + name + " is defined for some sizes", true))
      record->note("all are where " + needs + "; every launch checks it");
    info.isComplete = true;
    return;
  }
  Report record =
      report(atEnd ? Code::NotCovered : Code::ReadBeforeDefined, atEnd ? info.pieces.front().span : readSpan,
             atEnd ? "not every element of " + name + " is defined"
                   : name + " is read before all of it is defined");
  if (outcome.counterexample) {
    std::string element = info.tensor->name + "[";
    for (size_t i = 0; i != outcome.counterexample->point.size(); ++i)
      element += (i ? ", " : "") + std::to_string(outcome.counterexample->point[i].second);
    Counterexample sizes = *outcome.counterexample;
    sizes.point.clear();
    std::string with = showSizes(sizes);
    record.note("for instance " + element + "]" + (with.empty() ? "" : " with " + with));
  }
  record.note(name + " has dims " + showDims(info), info.tensor->span);
  info.isComplete = true; // said once
}

void Checker::zeroFirst(TensorInfo &info) {
  if (info.isZeroed || dry)
    return;
  info.isZeroed = true;
  std::vector<Stmt *> zeros;
  {
    Saved savedSink(sink, &zeros);
    Stmt *zero = append(Stmt::Equation, info.tensor->span);
    zero->tensor = info.tensor;
    for (size_t i = 0; i != info.tensor->dims.size(); ++i) {
      const Var *var = newVar(Var::Axis, "z" + std::to_string(i), IndexExpr(0),
                              info.tensor->dims[i], info.tensor->span);
      zero->vars.push_back(var);
      zero->subscripts.push_back(IndexExpr::dim(var->id));
    }
    DType type = computeType(info.tensor->type);
    zero->value = type == DType::Bool ? boolean(false, info.tensor->span)
                                      : constant(0, type, info.tensor->span);
  }
  std::vector<Stmt *> &body = info.home ? *info.home : *frame->body;
  auto at = body.begin();
  if (info.definition)
    at = std::next(llvm::find(body, info.definition));
  body.insert(at, zeros.front());
}

void Checker::defineElements(LeftSide &left, llvm::function_ref<Value()> evalValue) {
  const ast::Ident &name = left.target->name;
  Scope *outside = scope;
  auto failed = [&] {
    if (!left.info)
      poison(*outside, name);
    else
      left.info->isSuspect = true;
  };
  std::optional<DType> declared;
  if (left.target->type) {
    declared = resolveType(*left.target->type);
    if (!declared)
      return failed();
  }
  Saved savedScope(scope, &left.scope);
  Trimmed trimmedVars(activeVars);
  Trimmed trimmedPath(path);
  forgetValues();
  if (!expandLeft(left))
    return failed();
  if (!bindLeftIndices(left)) {
    // The names of the right side can still be looked at.
    Saved savedDry(dry, dry + 1);
    evalValue();
    return failed();
  }
  if (!evalLeft(left))
    return failed();
  // Filters at the end protect the right side.
  const Expr *guard = nullptr;
  if (left.stmt)
    for (const ast::ForItem &item : left.stmt->trailing) {
      if (!item.filter)
        continue;
      const Expr *one = condition(eval(*item.filter), item.filter->span, "'if'");
      if (!one)
        return failed();
      if (boolOf(one) == true)
        continue;
      guard = guard ? binaryNode(Binary::And, guard, one, DType::Bool, one->span) : one;
      path.push_back({one, true});
    }
  Value value = evalValue();
  if (value.isPoison())
    return failed();

  bool isNew = !left.info;
  const Expr *stored = nullptr;
  if (isNew) {
    DType type = declared.value_or(typeAlone(value));
    if (!declared && left.isState && value.weak && hasDouble && type == DType::F32)
      type = DType::F64;
    left.info = newTensor(left.isState ? Tensor::State : Tensor::Temp, name.name, type, {}, name.span);
    stored = storable(value, type, "'" + name.name + "'", left.valueSpan);
  } else {
    if (declared && *declared != left.info->tensor->type) {
      report(Code::BadTarget, left.target->type->span,
             "'" + name.name + "' is " + toString(left.info->tensor->type) + " already");
      return failed();
    }
    stored = storable(value, left.info->tensor->type, "'" + name.name + "'", left.valueSpan);
  }
  auto failedNew = [&] {
    left.info->isPoison = isNew;
    left.info->isSuspect = true;
    if (isNew)
      poison(*outside, name);
  };
  if (!stored)
    return failedNew();
  if (!left.isDeclared() && !dry && !sizeTemporary(left))
    return failedNew();
  if (!left.isDeclared() && dry && left.info->tensor->dims.empty())
    sizeTemporary(left);

  std::vector<Stmt *> *body = sink;
  Stmt *definition = nullptr;
  if (isNew) {
    definition = append(Stmt::TensorDef, left.target->span);
    definition->tensor = left.info->tensor;
    left.info->home = body;
    left.info->definition = definition;
    left.info->isElement = left.info->tensor->dims.empty();
  }
  Stmt *out = append(Stmt::Equation, left.stmt ? left.stmt->span : left.target->span);
  out->tensor = left.info->tensor;
  out->vars = left.vars;
  for (const Subscript &one : left.values)
    out->subscripts.push_back(one.index);
  out->accumulate = left.accumulate;
  out->guard = guard;
  out->value = stored;
  bool fine = checkLeftBounds(left, *out) && checkInjective(left, *out) && addPiece(left, *out);
  if (!fine)
    return failedNew();
  out->readsTarget = readsOthers(stored, out->tensor, out->subscripts);
  if (left.isState)
    requireCovered(*left.info, left.target->span, /*atEnd=*/true);
  if (isNew) {
    Saved savedBack(scope, outside);
    Entity entity;
    entity.kind = Entity::Tensor;
    entity.tensor = left.info;
    define(*outside, name, std::move(entity));
  }
}

void Checker::checkEquation(const ast::Stmt &stmt, const ast::Target &target, bool isState) {
  Entity *entity = lookup(target.name.name);
  LeftSide left(scope);
  left.stmt = &stmt;
  left.target = &target;
  left.isState = isState;
  left.accumulate = stmt.accumulate;
  left.valueSpan = stmt.value->span;
  left.bodies.push_back(stmt.value.get());
  for (const ast::ForItem &item : stmt.trailing)
    if (item.filter)
      left.bodies.push_back(item.filter.get());
  auto evalValue = [&] { return eval(*stmt.value); };
  if (entity && entity->kind == Entity::Poison) {
    // Its own mistakes are still worth finding where its indices are plain.
    return;
  }
  if (isState) {
    if (entity) {
      report(Code::Redefinition, target.name.span,
             "'" + target.name.name + "' is already defined, as " + describe(*entity))
          .note("first defined here", entity->span);
      return;
    }
    return defineElements(left, evalValue);
  }
  if (entity) {
    if (entity->kind != Entity::Tensor) {
      Report record = report(Code::WrongKind, target.span,
                             "'" + target.name.name + "' is " + describe(*entity) + ", not a tensor");
      record.note("it is defined here", entity->span);
      return;
    }
    left.info = entity->tensor;
    if (left.info->isPoison)
      return;
    if (left.info->tensor->kind == Tensor::In) {
      Report record = report(stmt.accumulate ? Code::BadAccumulation : Code::AssignToInput,
                             target.name.span,
                             "'" + target.name.name + "' is an input and cannot be changed");
      suggestInout(record, *left.info);
      return;
    }
  }
  if (stmt.accumulate && (!left.info || left.info->tensor->kind == Tensor::Temp)) {
    report(Code::BadAccumulation, target.name.span,
           "'+=' accumulates into an output, a state or an inout, and '" + target.name.name +
               "' is none")
        .note("for a sum write t[i] = sum(x[i, k] for k)");
    if (!left.info)
      poison(*scope, target.name);
    return;
  }
  if (!left.info && inParallel) {
    report(Code::BadNesting, target.name.span,
           "a temporary in a parallel block has no subscripts: '" + target.name.name +
               "' varies along the indices that its value has")
        .note("write " + target.name.name + " = ...");
    poison(*scope, target.name);
    return;
  }
  defineElements(left, evalValue);
}
