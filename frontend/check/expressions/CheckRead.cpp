//===- CheckRead.cpp - Subscripts, groups and reads -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckParallel.h"
#include "frontend/check/CheckPieces.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

std::string tegula::showDims(CheckContext &ctx, const TensorInfo &info) {
  std::string result = "[";
  for (size_t i = 0; i != info.tensor->dims.size(); ++i)
    result += (i ? ", " : "") + show(ctx, info.tensor->dims[i]);
  return result + "]";
}

void tegula::rankMismatch(CheckContext &ctx, const TensorInfo &info, size_t given, Span span) {
  size_t rank = info.tensor->dims.size();
  ctx.report(Code::RankMismatch, span,
             "'" + info.tensor->name + "' has " + llvm::Twine(rank) +
                 (rank == 1 ? " dim, " : " dims, ") + showDims(ctx, info) + ", got " +
                 llvm::Twine(given) + (given == 1 ? " subscript" : " subscripts"))
      .note("'" + info.tensor->name + "' is declared here", info.tensor->span)
      .note(given > rank && !info.pieces.empty()
                ? "values broadcast by name: write " + info.pieces.front().text
                : "every dim takes a subscript: " + elementText(info.tensor->name, rank));
}

/// `x[j, i]` where x[i, j] does not fit its tensor and that does; else empty.
static std::string permutation(CheckContext &ctx, const TensorInfo &info,
                               llvm::ArrayRef<Subscript> subscripts) {
  size_t rank = subscripts.size();
  if (rank < 2 || rank > 4 || ctx.isSilent())
    return {};
  for (const Subscript &subscript : subscripts)
    if (!subscript.bare)
      return {};
  auto fits = [&](llvm::ArrayRef<size_t> order) {
    for (size_t i = 0; i != rank; ++i) {
      const Var &var = *subscripts[order[i]].bare;
      if (var.lo != IndexExpr(0) || var.hi != info.tensor->dims[i])
        return false;
    }
    return true;
  };
  llvm::SmallVector<size_t> order;
  for (size_t i = 0; i != rank; ++i)
    order.push_back(i);
  if (fits(order))
    return {};
  while (std::next_permutation(order.begin(), order.end()))
    if (fits(order)) {
      std::string result = info.tensor->name + "[";
      for (size_t i = 0; i != rank; ++i)
        result += (i ? ", " : "") + subscripts[order[i]].bare->name;
      return result + "]";
    }
  return {};
}

std::optional<Subscript> tegula::evalGroup(CheckContext &ctx, const ast::Subscript &group,
                                           const IndexExpr &dim, const TensorInfo *info) {
  Subscript result;
  result.span = group.span;
  IndexExpr product(1);
  bool allIndices = true, failed = false;
  for (size_t i = 0; i != group.members.size(); ++i) {
    const ast::Subscript &member = group.members[i];
    std::optional<Subscript> value;
    if (member.kind == ast::Subscript::Single)
      value = evalIndex(ctx, *member.expr, "a member of a group");
    if (!value || !requireWrittenRange(ctx, member)) {
      failed = true;
      continue;
    }
    std::optional<IndexExpr> extent;
    if (value->bare && value->bare->lo == IndexExpr(0))
      extent = value->bare->hi;
    if (extent && extent->isSize())
      requireNonNegative(ctx, *extent, member.span, "the range of '" + value->bare->name + "'");
    if (!extent && i != 0) {
      ctx.report(Code::GroupRange, member.span,
                 "a member of a group after the first must be an index that starts at 0")
          .note("the members are digits, the last one fastest: (h, d) is h*D + d");
      failed = true;
      continue;
    }
    if (i == 0) {
      result.index = value->index;
      result.leading = value->index;
      result.exact = value->exact;
      allIndices = extent.has_value();
      if (extent)
        product = *extent;
      continue;
    }
    result.index = result.index * *extent + value->index;
    product = product * *extent;
  }
  if (failed)
    return std::nullopt;
  if (result.index.isOverflow()) {
    ctx.report(Code::SizeOverflow, group.span, "this group leaves the range of 64 bits");
    return std::nullopt;
  }
  if (allIndices && info && product.isSize() && !info->tensor->constantValue)
    if (!requireEqual(ctx, product, dim, group.span,
                      "the group " + ctx.text(group.span) + " stands for a dim of '" +
                          info->tensor->name + "'",
                      Code::GroupRange))
      return std::nullopt;
  return result;
}

/// `t: f16[M, N] = 2*x[i, j]`: the left side shows the dims, where its indices should stand. Gives
/// it those of the read.
static bool suggestIndices(CheckContext &ctx, Report &record,
                           llvm::ArrayRef<ast::Subscript> subscripts) {
  const ast::Stmt *stmt = ctx.currentStmt;
  if (!stmt || stmt->kind != ast::Stmt::Assign || stmt->targets.size() != 1 ||
      !stmt->targets[0].hasColon || !ctx.expansions.empty() ||
      stmt->targets[0].subscripts.size() != subscripts.size())
    return false;
  auto nameOf = [](const ast::Subscript &subscript) -> const ast::Ident * {
    bool isName = subscript.kind == ast::Subscript::Single &&
                  subscript.expr->kind == ast::Expr::Name && !subscript.range;
    return isName ? &subscript.expr->name : nullptr;
  };
  std::vector<Edit> edits;
  for (auto [dim, index] : llvm::zip_equal(stmt->targets[0].subscripts, subscripts)) {
    const ast::Ident *name = nameOf(index);
    const Entity *size = nameOf(dim) ? ctx.lookup(nameOf(dim)->name) : nullptr;
    if (!name || ctx.lookup(name->name) || !size || size->kind != Entity::Scalar)
      return false;
    edits.push_back({dim.span, name->name});
  }
  record.fix("the left side takes the indices, whose ranges follow", std::move(edits));
  return true;
}

static std::optional<std::vector<Subscript>>
evalSubscripts(CheckContext &ctx, llvm::ArrayRef<ast::Subscript> subscripts, const TensorInfo &info,
               Span span) {
  std::vector<Subscript> result;
  bool failed = false;
  size_t rank = info.tensor->dims.size();
  size_t ellipsisRank = ctx.frame->ellipsis ? ctx.frame->ellipsis->size() : 0;
  size_t given = 0;
  for (const ast::Subscript &subscript : subscripts)
    given += subscript.kind == ast::Subscript::Ellipsis ? ellipsisRank : 1;
  for (const ast::Subscript &subscript : subscripts) {
    size_t position = result.size();
    IndexExpr dim = position < rank ? info.tensor->dims[position] : IndexExpr(0);
    switch (subscript.kind) {
    case ast::Subscript::Ellipsis:
      if (!ctx.frame->ellipsis) {
        ctx.report(
               Code::EllipsisMisuse, subscript.span,
               "'...' stands for dims that a parameter shows as '...', and this kernel has none")
            .note("write an index for each dim");
        return std::nullopt;
      }
      for (size_t i = 0; i != ellipsisRank; ++i) {
        Entity *entity = ctx.lookup("..." + std::to_string(i));
        if (!entity) {
          ctx.report(Code::EllipsisMisuse, subscript.span, "'...' is not an index here")
              .note("put '...' on the left side, or reduce over it: sum(x[..., j] for ..., j)");
          return std::nullopt;
        }
        if (entity->kind != Entity::Index)
          return std::nullopt; // defined wrongly, which was reported
        Value value = indexValue(ctx, IndexExpr::dim(entity->var->id), subscript.span);
        std::optional<Subscript> one = toSubscript(ctx, value, subscript.span, "a subscript");
        result.push_back(*one);
      }
      continue;
    case ast::Subscript::Group: {
      std::optional<Subscript> group =
          evalGroup(ctx, subscript, dim, position < rank ? &info : nullptr);
      failed |= !group;
      result.push_back(group.value_or(Subscript()));
      continue;
    }
    case ast::Subscript::Single: {
      // An index that only the right side knows is the most frequent slip; say what it is.
      if (subscript.expr->kind == ast::Expr::Name && !ctx.lookup(subscript.expr->name.name) &&
          !isReserved(subscript.expr->name.name) && !definedLater(ctx, subscript.expr->name.name)) {
        const std::string &name = subscript.expr->name.name;
        if (name == "None" || name == "newaxis") {
          ctx.report(Code::InventedName, subscript.span,
                     "there is no subscript '" + name + "': values broadcast by name");
          return std::nullopt;
        }
        Report record =
            ctx.report(Code::FreeIndex, subscript.span,
                       "index '" + name + "' is not on the left side and nothing reduces over it");
        if (!suggestIndices(ctx, record, subscripts))
          record.note("put it on the left, or reduce over it: sum(" + ctx.text(span).str() +
                      " for " + name + ")");
        failed = true;
        result.push_back({});
        continue;
      }
      std::optional<Subscript> one = evalIndex(ctx, *subscript.expr, "a subscript");
      failed |= !one || !requireWrittenRange(ctx, subscript);
      result.push_back(one.value_or(Subscript()));
      continue;
    }
    }
  }
  if (given != rank) {
    rankMismatch(ctx, info, given, span);
    return std::nullopt;
  }
  if (failed)
    return std::nullopt;
  return result;
}

Value tegula::evalRead(CheckContext &ctx, const ast::Expr &e) {
  Entity *entity = ctx.lookup(e.name.name);
  if (!entity) {
    if (ctx.isLost(e.name.name))
      return {};
    if (!reportInvention(ctx, e.name.name, e.name.span, Invention::Value) &&
        !reportDefinedLater(ctx, e.name)) {
      Report record =
          ctx.report(Code::UnknownName, e.name.span, "unknown tensor '" + e.name.name + "'");
      std::vector<llvm::StringRef> tensors;
      for (Scope *at = ctx.scope; at; at = at->parent)
        for (const auto &entry : at->names)
          if (entry.second.kind == Entity::Tensor || entry.second.kind == Entity::Tuple)
            tensors.push_back(entry.first());
      llvm::sort(tensors);
      llvm::StringRef near = nearestName(e.name.name, tensors);
      if (!near.empty())
        record.note("did you mean '" + near.str() + "'?")
            .fix("write '" + near.str() + "'", {{e.name.span, near.str()}});
      else if (ctx.frame && llvm::any_of(ctx.frame->kernel->outputs, [](auto &) { return true; }))
        record.note("a temporary is defined by an equation before it is read: " + e.name.name +
                    "[i] = ...");
    }
    return {};
  }
  bool isIndex = entity->kind == Entity::Poison && entity->isIndex;
  if ((entity->kind == Entity::Poison && !isIndex) || (entity->tensor && entity->tensor->isPoison))
    return {};
  if (entity->kind == Entity::Tuple) {
    if (e.subscripts.size() != 1 || e.subscripts[0].kind != ast::Subscript::Single) {
      ctx.report(Code::RankMismatch, e.span,
                 "'" + e.name.name + "' is " + describe(*entity) +
                     ", and takes one constant subscript");
      return {};
    }
    Value at = eval(ctx, *e.subscripts[0].expr);
    if (at.isPoison())
      return {};
    std::optional<int64_t> which = at.isIndex() ? at.index->asConstant() : std::nullopt;
    if (!which || *which < 0 || *which >= int64_t(entity->tuple.size())) {
      ctx.report(Code::RankMismatch, e.subscripts[0].span,
                 "'" + e.name.name + "' is " + describe(*entity) +
                     ": expected a constant from 0 to " + llvm::Twine(entity->tuple.size() - 1));
      return {};
    }
    return entity->tuple[*which];
  }
  if (entity->kind != Entity::Tensor) {
    Report record = ctx.report(Code::WrongKind, e.span,
                               "'" + e.name.name + "' is " +
                                   (isIndex ? "an index" : describe(*entity)) + ", not a tensor");
    record.note("it is defined here", entity->span);
    if (entity->kind == Entity::Scalar || entity->kind == Entity::State)
      record.fix("write it without subscripts", {{{e.span.file, e.name.span.end, e.span.end}, ""}});
    return {};
  }
  TensorInfo &info = *entity->tensor;
  std::optional<std::vector<Subscript>> subscripts =
      evalSubscripts(ctx, e.subscripts, info, e.span);
  const Expr *fill = nullptr;
  bool failed = !subscripts;
  for (const ast::Argument &argument : e.arguments) {
    if (!argument.keyword || argument.keyword->name != "fill" || fill) {
      if (argument.keyword) {
        Report record = ctx.report(fill ? Code::DuplicateArgument : Code::UnknownKeyword,
                                   argument.keyword->span,
                                   fill ? llvm::Twine("'fill' is given twice")
                                        : "a subscript takes fill= alone, got '" +
                                              llvm::Twine(argument.keyword->name) + "'");
        if (!fill)
          record.fix("write fill", {{argument.keyword->span, "fill"}});
      }
      failed = true;
      continue;
    }
    Value value = eval(ctx, *argument.value);
    if (value.isPoison()) {
      failed = true;
      continue;
    }
    // An infinity stands for the least or the greatest integer of the type.
    if (std::optional<double> known = value.weak ? constantOf(value.expr) : std::nullopt;
        known && std::isinf(*known) && !isFloat(info.tensor->type) &&
        info.tensor->type != DType::Bool) {
      Expr *extreme =
          makeExpr(ctx, Expr::Constant, computeType(info.tensor->type), argument.value->span);
      bool isWide = extreme->type == DType::I64;
      extreme->intValue =
          *known > 0 ? (isWide ? INT64_MAX : INT32_MAX) : (isWide ? INT64_MIN : INT32_MIN);
      value = strong(finishExpr(ctx, extreme));
    }
    fill = storable(ctx, value, info.tensor->type,
                    "the value outside of '" + info.tensor->name + "'", argument.value->span);
    if (fill && fill->type != computeType(info.tensor->type)) {
      // A wider value than the tensor's own is rounded as a stored one would be.
      Expr *narrow = makeExpr(ctx, Expr::Convert, computeType(info.tensor->type), fill->span);
      narrow->target = narrow->type;
      narrow->operands = {fill};
      fill = finishExpr(ctx, narrow);
    }
    failed |= !fill;
  }
  if (failed)
    return {};
  const Expr *read = readTensor(ctx, info, *subscripts, fill, e.span);
  if (!read)
    return {};
  Value result = ofElement(info, read);
  result.weak = info.tensor->isTypeless && !fill;
  return result;
}

Value tegula::ofElement(const TensorInfo &info, const Expr *read) {
  Value result = strong(read);
  if (!info.tensor->isTypeless)
    result.storage = info.tensor->type;
  return result;
}

const checked::Expr *tegula::pathGuard(CheckContext &ctx) {
  const Expr *guard = nullptr;
  for (const PathCondition &at : ctx.path) {
    const Expr *one = at.condition;
    if (!at.isTrue)
      one = unaryNode(ctx, Unary::Not, one, DType::Bool, one->span);
    guard = guard ? binaryNode(ctx, Binary::And, guard, one, DType::Bool, one->span) : one;
  }
  return guard;
}

const checked::Expr *tegula::readTensor(CheckContext &ctx, TensorInfo &info,
                                        llvm::ArrayRef<Subscript> subscripts, const Expr *fill,
                                        Span span) {
  const Tensor &tensor = *info.tensor;
  DType type = computeType(tensor.type);
  if (tensor.isTypeless && !fill)
    type = tensor.isWholeDefault ? DType::I64 : DType::F64;
  info.isRead = true;
  for (const Subscript &subscript : subscripts) {
    if (!requireIn64Bits(ctx, subscript.index, subscript.span.isValid() ? subscript.span : span))
      return nullptr;
    for (const auto &[numerator, denominator] : subscript.exact)
      if (!requireIn64Bits(ctx, numerator, span) || !requireIn64Bits(ctx, denominator, span))
        return nullptr;
  }
  if (tensor.constantValue) {
    const Expr *inside = type == DType::Bool ? booleanNode(ctx, *tensor.constantValue != 0, span)
                                             : constantNode(ctx, *tensor.constantValue, type, span);
    if (!fill || tensor.dims.empty())
      return inside;
    // What is left out has no elements to leave; only its size decides where fill= counts.
    const Expr *within = nullptr;
    for (auto [subscript, dim] : llvm::zip(subscripts, tensor.dims)) {
      const Expr *at = indexNode(ctx, subscript.index, span);
      const Expr *low =
          binaryNode(ctx, Binary::GE, at, indexNode(ctx, IndexExpr(0), span), DType::Bool, span);
      const Expr *high =
          binaryNode(ctx, Binary::LT, at, indexNode(ctx, dim, span), DType::Bool, span);
      const Expr *both = binaryNode(ctx, Binary::And, low, high, DType::Bool, span);
      within = within ? binaryNode(ctx, Binary::And, within, both, DType::Bool, span) : both;
    }
    Expr *choice = makeExpr(ctx, Expr::Where, type, span);
    choice->operands = {within, inside, fill};
    return finishExpr(ctx, choice);
  }
  requireReadable(ctx, info, span, subscripts);
  Expr *read = makeExpr(ctx, Expr::Read, type, span);
  read->tensor = &tensor;
  read->fill = fill;
  Bound worst = Bound::Proved;
  std::string permuted = fill ? "" : permutation(ctx, info, subscripts);
  for (size_t i = 0; i != subscripts.size(); ++i) {
    const Subscript &subscript = subscripts[i];
    read->subscripts.push_back(subscript.index);
    if (subscript.leading)
      read->groups.push_back({i, *subscript.leading});
    if (fill) {
      for (const auto &[numerator, denominator] : subscript.exact) {
        if (numerator.isSize() && denominator.isSize()) {
          requireDivides(ctx, numerator, denominator, subscript.span);
        } else if (requireNonZero(ctx, denominator, subscript.span)) {
          read->exact.push_back({numerator, denominator});
        }
      }
      continue;
    }
    requireExact(ctx, subscript.exact, subscript.span);
    Obligation what;
    what.span = subscript.span.isValid() ? subscript.span : span;
    what.access = span;
    what.what = ctx.shortText(span);
    what.tensor = &info;
    what.dim = i;
    what.permuted = permuted;
    Bound bound = requireInBounds(ctx, subscript.index, tensor.dims[i], what);
    if (bound == Bound::Wrong)
      return nullptr;
    if (bound == Bound::Runtime || (bound == Bound::OnPath && worst != Bound::Runtime))
      worst = bound;
  }
  if (worst == Bound::Runtime)
    read->dataDependent = true;
  if (worst == Bound::OnPath || worst == Bound::Runtime)
    read->guard = pathGuard(ctx);
  return finishExpr(ctx, read);
}

void tegula::requireReadable(CheckContext &ctx, TensorInfo &info, Span span,
                             llvm::ArrayRef<Subscript> subscripts) {
  if (info.isPoison || info.isSuspect || ctx.dead || ctx.dry)
    return;
  std::string name = "'" + info.tensor->name + "'";
  if (ctx.block.isActive)
    noteBlockAccess(ctx, info, /*isWrite=*/false, span, subscripts);
  if (!info.blockWrites.empty()) {
    std::vector<IndexExpr> here;
    for (const Subscript &subscript : subscripts)
      here.push_back(inBlock(ctx, subscript.index));
    if (llvm::none_of(info.blockWrites,
                      [&](const BlockAccess &write) { return write.image.subscripts == here; })) {
      ctx.report(Code::ReadBeforeDefined, span,
                 name + " is written by this parallel block, whose points run in any order")
          .note("read it after the block, or read the element that the point itself wrote");
      info.blockReads.pop_back(); // said once
    }
    return;
  }
  if (info.isComplete)
    return;
  if (info.pieces.empty()) {
    if (!info.isZeroed) {
      Report record =
          ctx.report(Code::ReadBeforeDefined, span, name + " is read before it is defined");
      record.note(name + " is declared here", info.tensor->span);
      if (!ctx.loops.empty() && info.tensor->kind == Tensor::Out)
        record.note("what an iteration takes from those before it is a state: state h[...] = ... "
                    "before the loop, "
                    "then h[...] = ... in it, and " +
                    info.tensor->name + " from h");
    }
    return;
  }
  // An element that one of the pieces defined is fine, whatever the rest.
  std::vector<IndexExpr> here;
  for (const Subscript &subscript : subscripts)
    here.push_back(subscript.index);
  for (const Piece &piece : info.pieces)
    if (isDefinedBy(ctx, piece, here))
      return;
  requireCovered(ctx, info, span, /*atEnd=*/false);
}
