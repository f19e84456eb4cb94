//===- CheckInvariant.cpp - Sizes that no order of a sum depends on -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `invariant M` says that the order of every sum is a function of the sizes that are summed over.
// Passes and strategies keep that by what they may know of M (ir/tgl/Invariance.h). Here is what
// they could not keep: a sum over M itself. Sums of integers, and what has no roundings (max,
// count, sort), have one value in any order.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckStmt.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;
using namespace tegula::checked;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Adds the size, those that it is made of, and those that are made of any of these.
static void addInvariant(Program &program, llvm::StringRef symbol) {
  llvm::StringSet<> found;
  found.insert(symbol);
  auto usesFound = [&](const IndexExpr &expr) {
    return llvm::any_of(expr.variables(), [&](const IndexVar &var) {
      return var.isSymbol() && found.contains(var.name());
    });
  };
  for (size_t before = 0; before != found.size();) {
    before = found.size();
    for (const Size &size : program.sizes) {
      if (size.boundBy || size.isOpen)
        continue;
      if (usesFound(size.definition))
        found.insert(size.name);
      if (size.name == symbol)
        for (const IndexVar &var : size.definition.variables())
          found.insert(var.name());
    }
  }
  for (const Size &size : program.sizes)
    if (found.contains(size.name) && !llvm::is_contained(program.invariant, size.name))
      program.invariant.push_back(size.name);
}

void tegula::bindInvariantNames(CheckContext &ctx, Frame &of) {
  Program &program = *ctx.program;
  for (const ast::Ident &name : of.invariant) {
    Entity *entity = ctx.lookup(name.name);
    if (!entity) {
      unknownName(ctx, name, false);
      continue;
    }
    entity->isUsed = true;
    if (entity->kind == Entity::Poison)
      continue;
    if (entity->kind != Entity::Scalar || !entity->isSize || !entity->value.index ||
        (entity->param && kindOf(*entity->param) == ParamKind::Constant)) {
      ctx.report(Code::WrongKind, name.span,
                 "'invariant' names sizes of a launch, and '" + name.name + "' is " +
                     (entity->param && kindOf(*entity->param) == ParamKind::Constant
                          ? std::string("a constant")
                          : describe(*entity)));
      continue;
    }
    // A size that is fixed for now is a number in expressions.
    if (!of.caller &&
        llvm::any_of(program.sizes, [&](const Size &size) { return size.name == name.name; }))
      addInvariant(program, name.name);
    else
      for (const IndexVar &var : entity->value.index->variables())
        if (var.isSymbol())
          addInvariant(program, var.name());
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {
/// Walks the statements of the program with those of called kernels, which stand at their calls.
class SumFinder {
public:
  explicit SumFinder(CheckContext &ctx) : ctx(ctx), program(*ctx.program) {}

  void visit(llvm::ArrayRef<Stmt *> body) {
    for (const Stmt *stmt : body)
      visit(*stmt);
  }

private:
  CheckContext &ctx;
  const Program &program;
  llvm::SmallPtrSet<const Expr *, 32> seen;
  llvm::SmallVector<const Var *> around; // axes that the statement runs along, in any order
  llvm::SmallVector<const Var *> steps;  // of loops that are around all of that
  bool inBlock = false;
  std::vector<const Stmt *> sums; // by `+=` in the block
  std::optional<Span> call;       // of a kernel, the outermost

  /// The size that the range goes over, or null.
  const std::string *sizeOf(const Var &var) const {
    for (const std::string &name : program.invariant)
      for (const IndexExpr *bound : {&var.lo, &var.hi})
        if (bound->uses(IndexVar::symbol(name)))
          return &name;
    return nullptr;
  }
  const Var *variesWith(llvm::ArrayRef<const Var *> vars) const {
    const auto *found = llvm::find_if(vars, [&](const Var *var) { return sizeOf(*var); });
    return found == vars.end() ? nullptr : *found;
  }

  void report(Span span, const llvm::Twine &what, const Var &var) {
    const std::string &size = *sizeOf(var);
    Span place = call.value_or(span.file == program.span.file ? span : ctx.frame->kernel->span);
    Report record = ctx.report(Code::InvariantSum, place,
                               what + " over '" + size + "', of which 'invariant' says that no " +
                                   "order of a sum depends on it");
    record.note("'" + var.name + "' ranges over " + range(var) +
                "; sums of integers, and max, min, count and sorts, may");
    if (std::optional<std::pair<Span, std::string>> edit = without(size))
      record.fix(edit->second.empty() ? "leave it out" : "write '" + edit->second + "'",
                 {{edit->first, edit->second}});
  }

  static std::string range(const Var &var) {
    return (var.lo == IndexExpr(0) ? std::string() : var.lo.str() + ":") + var.hi.str();
  }

  /// The statement `invariant` without the name; nothing where another name implies the size.
  std::optional<std::pair<Span, std::string>> without(llvm::StringRef size) const {
    for (const ast::StmtPtr &stmt : ctx.frame->kernel->body) {
      if (stmt->kind != ast::Stmt::Invariant ||
          llvm::none_of(stmt->invariant, [&](const ast::Ident &one) { return one.name == size; }))
        continue;
      std::string text;
      for (const ast::Ident &one : stmt->invariant)
        if (one.name != size)
          text += (text.empty() ? "invariant " : ", ") + one.name;
      return std::pair(stmt->span, text);
    }
    return std::nullopt;
  }

  void visit(const Stmt &stmt) {
    if (stmt.kind == Stmt::Tiles || stmt.kind == Stmt::For) {
      if (const Var *var = variesWith(stmt.vars))
        return report(stmt.span, "a loop", *var);
    }
    size_t before = around.size(), stepsBefore = steps.size();
    bool isStep = stmt.kind == Stmt::For && !inBlock;
    if (stmt.kind != Stmt::Call)
      llvm::append_range(isStep ? steps : around, stmt.vars);
    Saved savedBlock(inBlock, inBlock || stmt.kind == Stmt::Parallel);
    if (stmt.kind == Stmt::Equation && stmt.accumulate && stmt.combine == Reduction::Sum &&
        isFloat(stmt.tensor->type))
      requireApart(stmt);
    size_t sumsBefore = sums.size();
    for (const Expr *expr : {stmt.value, stmt.guard})
      if (expr)
        visit(*expr, stmt.span);
    for (const IndexExpr &subscript : stmt.subscripts)
      visitData(subscript, stmt.span);
    visitRanges(stmt.vars, stmt.span);
    if (stmt.state && stmt.state->init)
      visit(*stmt.state->init, stmt.span);
    if (stmt.let && stmt.let->value)
      visit(*stmt.let->value, stmt.span);
    visit(stmt.body);
    if (stmt.kind == Stmt::Parallel)
      sums.resize(sumsBefore);
    visit(stmt.observing);
    around.truncate(before);
    steps.truncate(stepsBefore);
    if (stmt.callee) {
      std::optional<Span> outer = call;
      call = call.value_or(stmt.span);
      for (const auto &[parameter, value] : stmt.callee->scalars)
        visit(*value, stmt.span);
      visit(stmt.callee->body);
      call = outer;
    }
  }

  /// Points that differ along such a size add to different elements: what each element gets is
  /// added in an order of other indices alone.
  void requireApart(const Stmt &stmt) {
    auto areApart = [&](llvm::ArrayRef<IndexExpr> subscripts) {
      for (const Var *var : around)
        if (sizeOf(*var) && !tellsApart(subscripts, *var)) {
          report(stmt.span, "a sum by '+='", *var);
          return false;
        }
      return true;
    };
    if (!areApart(stmt.subscripts) || !inBlock)
      return;
    // Points of a block run in any order, so rows of two of its statements stay apart too.
    for (const Stmt *other : sums)
      if (other->tensor == stmt.tensor && !areDisjoint(*other, stmt)) {
        std::vector<IndexExpr> common;
        for (auto [one, its] : llvm::zip_equal(stmt.subscripts, other->subscripts))
          if (one == its)
            common.push_back(one);
        if (!areApart(common))
          return;
      }
    sums.push_back(&stmt);
  }

  bool areDisjoint(const Stmt &a, const Stmt &b) {
    auto imageOf = [&](const Stmt &stmt) {
      return Image{domainOf(ctx, stmt.subscripts, /*withLoops=*/false, /*withPath=*/false),
                   stmt.subscripts};
    };
    return llvm::all_of(a.subscripts, [&](const IndexExpr &one) { return hasKnownRange(one); }) &&
           llvm::all_of(b.subscripts, [&](const IndexExpr &one) { return hasKnownRange(one); }) &&
           ctx.prover->disjoint(imageOf(a), imageOf(b)).proved();
  }

  /// Whether no two points that differ along the axis write one element.
  bool tellsApart(llvm::ArrayRef<IndexExpr> subscripts, const Var &axis) {
    auto varies = [](const IndexExpr &expr, const Var &var) {
      return expr.uses(IndexVar::dim(var.id));
    };
    std::vector<IndexExpr> with, others;
    for (const IndexExpr &subscript : subscripts)
      if (hasKnownRange(subscript))
        (varies(subscript, axis) ? with : others).push_back(subscript);
    // Those that other indices link to it say more together.
    std::vector<IndexExpr> linked = with;
    for (size_t i = 0; i != linked.size(); ++i)
      for (const Var *var : around)
        if (varies(linked[i], *var))
          llvm::erase_if(others, [&](const IndexExpr &other) {
            bool isLinked = varies(other, *var);
            if (isLinked)
              linked.push_back(other);
            return isLinked;
          });
    return llvm::any_of(with, [&](const IndexExpr &one) { return isOneToOne(one); }) ||
           isOneToOne(with) || isOneToOne(linked);
  }

  /// Whether nothing is in the subscript of which any number may be at each point.
  bool hasKnownRange(const IndexExpr &subscript) const {
    return llvm::all_of(subscript.variables(), [&](const IndexVar &each) {
      return each.isSymbol() || program.vars[each.position()].hasRange;
    });
  }

  bool isOneToOne(llvm::ArrayRef<IndexExpr> subscripts) {
    if (subscripts.empty())
      return false;
    std::vector<IndexExpr> used = subscripts;
    Image image;
    image.subscripts = subscripts;
    // Steps of loops around are done one after the other.
    for (const Var *loop : steps)
      used.push_back(image.subscripts.emplace_back(IndexExpr::dim(loop->id)));
    image.domain = domainOf(ctx, used, /*withLoops=*/false, /*withPath=*/false);
    return ctx.prover->injective(image).proved();
  }

  void visit(const Expr &expr, Span statement) {
    if (!seen.insert(&expr).second)
      return;
    Span span = expr.span.file == program.span.file ? expr.span : statement;
    const Var *var = variesWith(expr.vars);
    if (expr.kind == Expr::Reduce && var && hasRoundings(expr))
      report(span, "a sum", *var);
    if (expr.kind == Expr::Scan && var && hasRoundings(expr))
      report(span, "a scan", *var);
    auto inside = [&](const Expr *each) {
      if (each)
        visit(*each, statement);
    };
    llvm::for_each(expr.operands, inside);
    for (const Expr *each : {expr.fill, expr.guard, expr.filter})
      inside(each);
    if (expr.let)
      inside(expr.let->value);
    for (const IndexExpr &subscript : expr.subscripts)
      visitData(subscript, statement);
    visitData(expr.index, statement);
    visitRanges(expr.vars, statement);
  }

  /// What is computed for a subscript, or for the end of a range.
  void visitData(const IndexExpr &index, Span statement) {
    for (const IndexVar &each : index.variables())
      if (!each.isSymbol())
        if (const Expr *data = program.vars[each.position()].data)
          visit(*data, statement);
  }
  void visitRanges(llvm::ArrayRef<const Var *> vars, Span statement) {
    for (const Var *var : vars)
      for (const IndexExpr *end : {&var->lo, &var->hi})
        visitData(*end, statement);
  }

  static bool hasRoundings(const Expr &expr) {
    if (expr.kind == Expr::Scan)
      switch (expr.scan) {
      case Scan::CumSum:
      case Scan::CumProd:
      case Scan::Recurrence:
        return isFloat(expr.type);
      case Scan::Softmax:
      case Scan::LogSoftmax:
        return true;
      default:
        return false;
      }
    switch (expr.reduction) {
    case Reduction::Sum:
    case Reduction::Prod:
      return isFloat(expr.type);
    case Reduction::Mean:
    case Reduction::Var:
    case Reduction::LogSumExp:
      return true;
    default:
      return false;
    }
  }
};
} // namespace

void tegula::requireNoInvariantSums(CheckContext &ctx) {
  if (!ctx.program->invariant.empty())
    SumFinder(ctx).visit(ctx.program->body);
}
