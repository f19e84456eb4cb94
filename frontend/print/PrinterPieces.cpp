//===- PrinterPieces.cpp - Text between possible line breaks -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/print/PrinterPieces.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace tegula {

void PieceBuilder::text(StringRef text, uint32_t offset) {
  // A piece without a place of its own stands where the one before it does.
  if (offset == 0 && !pieces.empty())
    offset = pieces.back().offset;
  bool joins = !pieces.empty() && !wantsBlank && !listOpened && nextLevel < 0 &&
               offset == pieces.back().offset;
  if (joins)
    pieces.back().text += text;
  else
    pieces.push_back({text.str(), wantsBlank, nextLevel, depth, listOpened, offset});
  wantsBlank = listOpened = false;
  nextLevel = -1;
}

void PieceBuilder::openList() {
  ++depth;
  listOpened = true;
}

void PieceBuilder::open(StringRef bracket, uint32_t offset) {
  text(bracket, offset);
  openList();
}

void PieceBuilder::close(StringRef bracket, uint32_t offset) {
  --depth;
  listOpened = false; // an empty list
  text(bracket, offset);
}

void PieceBuilder::comma() {
  text(",");
  blank();
  mayBreak(Comma);
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

void PieceBuilder::params(const std::vector<ast::Param> &params) {
  open("(");
  for (size_t i = 0; i != params.size(); ++i) {
    const ast::Param &param = params[i];
    if (i)
      comma();
    text(param.name.name, param.name.span.begin);
    text(": ");
    if (param.isInout)
      text("inout ");
    text(param.type.name, param.type.span.begin);
    if (param.hasDims) {
      open("[");
      for (size_t d = 0; d != param.dims.size(); ++d) {
        if (d)
          comma();
        if (param.dims[d].ellipsis)
          text("...", param.dims[d].span.begin);
        else
          expr(*param.dims[d].expr);
      }
      close("]");
    }
    if (param.defaultValue) {
      text(" = ");
      expr(*param.defaultValue);
    }
  }
  close(")");
}

void PieceBuilder::head(const ast::Kernel &kernel, uint32_t brace) {
  text("kernel " + kernel.name.name, kernel.span.begin);
  params(kernel.params);
  if (kernel.hasOutputs) {
    blank();
    mayBreak(Clause);
    text("-> ");
    params(kernel.outputs);
  }
  for (size_t i = 0; i != kernel.sizes.size(); ++i) {
    if (i)
      comma();
    else {
      blank();
      mayBreak(Clause);
      text("where ");
      openList();
    }
    let(kernel.sizes[i].name, *kernel.sizes[i].value, Product);
  }
  if (!kernel.sizes.empty())
    closeList();
  openBlock(brace);
}

void PieceBuilder::openBlock(uint32_t brace) {
  blank();
  text("{", brace);
}

void PieceBuilder::head(const ast::Fn &fn, uint32_t brace) {
  signature(fn);
  openBlock(brace);
}

void PieceBuilder::signature(const ast::Fn &fn) {
  text("fn " + fn.name.name, fn.span.begin);
  open("(");
  for (size_t i = 0; i != fn.params.size(); ++i) {
    if (i)
      comma();
    text(fn.params[i].name, fn.params[i].span.begin);
    if (i < fn.defaults.size() && fn.defaults[i]) {
      text("=");
      expr(*fn.defaults[i]);
    }
  }
  close(")");
}

void PieceBuilder::definition(const ast::Fn &fn) {
  signature(fn);
  text(" =");
  blank();
  mayBreak(Assign);
  expr(*fn.result);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void PieceBuilder::let(const ast::Ident &name, const ast::Expr &value, Rank rank) {
  text(name.name, name.span.begin);
  text(" =");
  blank();
  mayBreak(rank);
  expr(value);
}

void PieceBuilder::result(const ast::Expr &value) {
  text("return ");
  expr(value);
}

void PieceBuilder::range(const ast::Range &range) {
  if (range.lo) {
    expr(*range.lo, /*tight=*/true);
    text(":");
    expr(*range.hi, /*tight=*/true);
  } else {
    expr(*range.hi);
  }
}

void PieceBuilder::items(const std::vector<ast::ForItem> &items) {
  blank();
  mayBreak(For);
  text("for ");
  openList();
  for (size_t i = 0; i != items.size(); ++i) {
    const ast::ForItem &item = items[i];
    if (i)
      comma();
    if (item.ellipsis) {
      text("...", item.span.begin);
      continue;
    }
    text(item.index.name, item.index.span.begin);
    if (item.range) {
      text(" in ");
      range(*item.range);
    }
    if (item.filter) {
      text(" if ");
      expr(*item.filter);
    }
  }
  closeList();
}

void PieceBuilder::subscript(const ast::Subscript &subscript) {
  switch (subscript.kind) {
  case ast::Subscript::Ellipsis:
    text("...", subscript.span.begin);
    break;
  case ast::Subscript::Single:
    expr(*subscript.expr);
    break;
  case ast::Subscript::Group:
    open("(", subscript.span.begin);
    for (size_t i = 0; i != subscript.members.size(); ++i) {
      if (i)
        comma();
      this->subscript(subscript.members[i]);
    }
    // A group of one without a range needs its comma to be a group.
    if (subscript.members.size() == 1 && !subscript.members[0].range)
      text(",");
    close(")", subscript.range ? 0 : subscript.span.end - 1);
    break;
  }
  if (subscript.range) {
    text(" in ");
    range(*subscript.range);
  }
}

void PieceBuilder::subscripts(const std::vector<ast::Subscript> &subscripts,
                              const std::vector<ast::Argument> &keywords, uint32_t end) {
  open("[");
  for (size_t i = 0; i != subscripts.size(); ++i) {
    if (i)
      comma();
    subscript(subscripts[i]);
  }
  for (size_t i = 0; i != keywords.size(); ++i) {
    if (i || !subscripts.empty())
      comma();
    text(keywords[i].keyword->name, keywords[i].keyword->span.begin);
    text("=");
    expr(*keywords[i].value);
  }
  close("]", end - 1);
}

void PieceBuilder::target(const ast::Target &target) {
  text(target.name.name, target.name.span.begin);
  if (target.hasColon)
    text(": ");
  if (target.type)
    text(target.type->name, target.type->span.begin);
  if (target.hasSubscripts)
    subscripts(target.subscripts, {}, target.span.end);
}

void PieceBuilder::targets(const ast::Stmt &stmt) {
  for (size_t i = 0; i != stmt.targets.size(); ++i) {
    if (i)
      comma();
    target(stmt.targets[i]);
  }
}

void PieceBuilder::head(const ast::Stmt &block, uint32_t brace) {
  if (block.kind == ast::Stmt::Parallel) {
    text("parallel ", block.span.begin);
    openList();
    for (size_t i = 0; i != block.binders.size(); ++i) {
      if (i)
        comma();
      text(block.binders[i].index.name, block.binders[i].index.span.begin);
      text(" in ");
      range(block.binders[i].range);
    }
    closeList();
  } else {
    text("for " + block.index.name + " in ", block.span.begin);
    if (block.kind == ast::Stmt::ForTiles) {
      text("tiles");
      open("(");
      range(*block.range);
      close(")");
    } else {
      range(*block.range);
      if (block.reverse)
        text(", reverse");
    }
  }
  openBlock(brace);
}

/// `print("after", h[i] for i in 4)`: a text that stands behind the ranges stays there.
void PieceBuilder::observation(const ast::Stmt &stmt) {
  text(stmt.index.name, stmt.span.begin);
  open("(");
  bool areItemsDue = !stmt.trailing.empty(), first = true;
  auto addItems = [&] {
    areItemsDue = false;
    items(stmt.trailing);
  };
  for (const ast::Argument &argument : stmt.value->arguments) {
    if (areItemsDue && argument.value->span.begin > stmt.trailing.front().span.begin)
      addItems();
    if (!first)
      comma();
    first = false;
    expr(*argument.value);
  }
  if (areItemsDue)
    addItems();
  close(")", stmt.value->span.end - 1);
}

void PieceBuilder::statement(const ast::Stmt &stmt) {
  switch (stmt.kind) {
  case ast::Stmt::Precision:
    text("precision ", stmt.span.begin);
    text(stmt.index.name, stmt.index.span.begin);
    return;
  case ast::Stmt::Deterministic:
    text("deterministic", stmt.span.begin);
    return;
  case ast::Stmt::Distinct:
    text("distinct ", stmt.span.begin);
    for (size_t i = 0; i != stmt.distinct.size(); ++i) {
      const std::vector<ast::Ident> &item = stmt.distinct[i];
      if (i)
        comma();
      if (item.size() > 1)
        text("(");
      for (size_t k = 0; k != item.size(); ++k) {
        if (k)
          comma();
        text(item[k].name, item[k].span.begin);
      }
      if (item.size() > 1)
        text(")");
    }
    return;
  case ast::Stmt::Invariant:
    text("invariant ", stmt.span.begin);
    for (size_t i = 0; i != stmt.invariant.size(); ++i) {
      if (i)
        comma();
      text(stmt.invariant[i].name, stmt.invariant[i].span.begin);
    }
    return;
  case ast::Stmt::Call:
    expr(*stmt.value);
    return;
  case ast::Stmt::Observe:
    observation(stmt);
    return;
  case ast::Stmt::Schedule:
    text("schedule {", stmt.span.begin);
    for (size_t i = 0; i != stmt.schedule.size(); ++i) {
      const ast::ScheduleItem &item = stmt.schedule[i];
      if (i)
        text(";");
      blank();
      mayBreak(Clause);
      text(item.keyword.name, item.keyword.span.begin);
      for (size_t s = 0; s != item.settings.size(); ++s) {
        if (s)
          comma();
        else
          blank();
        const auto &[name, value] = item.settings[s];
        if (name) {
          text(name->name, name->span.begin);
          text("=");
        }
        expr(*value);
      }
    }
    blank();
    text("}", stmt.span.end - 1);
    return;
  case ast::Stmt::State:
    text("state ", stmt.span.begin);
    [[fallthrough]];
  case ast::Stmt::Assign:
    targets(stmt);
    text(stmt.accumulate ? " " + ast::spelling(stmt.combine).str() : " =");
    blank();
    mayBreak(Assign);
    expr(*stmt.value);
    if (!stmt.trailing.empty())
      items(stmt.trailing);
    return;
  case ast::Stmt::Parallel:
  case ast::Stmt::ForTiles:
  case ast::Stmt::For:
    break;
  }
  llvm_unreachable("blocks are printed by their head");
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static StringRef spelling(ast::BinaryOp op) {
  switch (op) {
  case ast::BinaryOp::Add:
    return "+";
  case ast::BinaryOp::Sub:
    return "-";
  case ast::BinaryOp::Mul:
    return "*";
  case ast::BinaryOp::Div:
    return "/";
  case ast::BinaryOp::FloorDiv:
    return "//";
  case ast::BinaryOp::Mod:
    return "%";
  case ast::BinaryOp::Pow:
    return "**";
  case ast::BinaryOp::And:
    return "and";
  case ast::BinaryOp::Or:
    return "or";
  case ast::BinaryOp::BitAnd:
    return "&";
  case ast::BinaryOp::BitOr:
    return "|";
  case ast::BinaryOp::BitXor:
    return "^";
  case ast::BinaryOp::Shl:
    return "<<";
  case ast::BinaryOp::Shr:
    return ">>";
  }
  llvm_unreachable("all operators are spelt");
}

static StringRef spelling(ast::CompareOp op) {
  switch (op) {
  case ast::CompareOp::LT:
    return "<";
  case ast::CompareOp::LE:
    return "<=";
  case ast::CompareOp::GT:
    return ">";
  case ast::CompareOp::GE:
    return ">=";
  case ast::CompareOp::EQ:
    return "==";
  case ast::CompareOp::NE:
    return "!=";
  }
  llvm_unreachable("all comparisons are spelt");
}

/// Where a line is broken first, and which operators form chains.
static PieceBuilder::Rank rankOf(ast::BinaryOp op) {
  switch (op) {
  case ast::BinaryOp::Or:
    return PieceBuilder::Or;
  case ast::BinaryOp::And:
    return PieceBuilder::And;
  case ast::BinaryOp::BitOr:
    return PieceBuilder::BitOr;
  case ast::BinaryOp::BitXor:
    return PieceBuilder::BitXor;
  case ast::BinaryOp::BitAnd:
    return PieceBuilder::BitAnd;
  case ast::BinaryOp::Shl:
  case ast::BinaryOp::Shr:
    return PieceBuilder::Shift;
  case ast::BinaryOp::Add:
  case ast::BinaryOp::Sub:
    return PieceBuilder::Sum;
  default:
    return PieceBuilder::Product;
  }
}

/// Neither reads nor calls: `2*N`, but `x[i] * w[i]`.
static bool isPlain(const ast::Expr &expr) {
  if (expr.kind == ast::Expr::Index || expr.kind == ast::Expr::Call)
    return false;
  return llvm::all_of(expr.operands, [](const ast::ExprPtr &each) { return isPlain(*each); });
}

/// `a + b*c`: a product is written close where it is part of a sum or all plain, else wide.
void PieceBuilder::binary(const ast::Expr &expr, bool tight) {
  ast::BinaryOp op = expr.binaryOp;
  Rank rank = rankOf(op);
  bool word = rank == Or || rank == And;
  bool onBits = rank >= BitOr && rank <= Shift;
  bool close = op == ast::BinaryOp::Pow || (tight && !word && !onBits);
  // The chain on the left side is a loop: it can be long.
  SmallVector<const ast::Expr *> chain = {&expr};
  auto sameRank = [&](const ast::Expr &e) {
    return e.kind == ast::Expr::Binary && !e.parenthesized && op != ast::BinaryOp::Pow &&
           e.binaryOp != ast::BinaryOp::Pow && rankOf(e.binaryOp) == rank;
  };
  while (sameRank(*chain.back()->operands[0]))
    chain.push_back(chain.back()->operands[0].get());
  close |= rank == Product && isPlain(expr) && llvm::all_of(chain, [](const ast::Expr *each) {
             return each->binaryOp == ast::BinaryOp::Mul || each->binaryOp == ast::BinaryOp::Div;
           });
  bool tightOperands = close || rank == Sum;
  this->expr(*chain.back()->operands[0], tightOperands);
  for (const ast::Expr *each : llvm::reverse(chain)) {
    if (!close) {
      blank();
      mayBreak(rank);
    }
    text(spelling(each->binaryOp), each->opSpan.begin);
    if (!close)
      text(" ");
    this->expr(*each->operands[1], tightOperands);
  }
}

/// Where an expression ends inside its parentheses. How far these are away is not known: then it is
/// 1, which is before everything.
static uint32_t innerEnd(const ast::Expr &expr) { return expr.parenthesized ? 1 : expr.span.end; }

void PieceBuilder::call(const ast::Expr &expr) {
  text(expr.name.name, expr.name.span.begin);
  open("(");
  bool first = true;
  if (expr.isComprehension) {
    this->expr(*expr.operands[0]);
    items(expr.items);
    first = false;
  }
  for (const ast::Argument &argument : expr.arguments) {
    if (!first)
      comma();
    first = false;
    if (argument.keyword) {
      text(argument.keyword->name, argument.keyword->span.begin);
      text("=");
    }
    this->expr(*argument.value);
  }
  close(")", innerEnd(expr) - 1);
}

void PieceBuilder::expr(const ast::Expr &expr, bool tight) {
  if (expr.parenthesized) {
    open("(", expr.span.begin);
    tight = false;
  }
  switch (expr.kind) {
  case ast::Expr::Integer:
  case ast::Expr::Float:
  case ast::Expr::String:
    text(expr.text, expr.parenthesized ? 0 : expr.span.begin);
    break;
  case ast::Expr::Name:
    text(expr.name.name, expr.name.span.begin);
    break;
  case ast::Expr::Unary:
    text(expr.unaryOp == ast::UnaryOp::Not      ? "not "
         : expr.unaryOp == ast::UnaryOp::Neg    ? "-"
         : expr.unaryOp == ast::UnaryOp::BitNot ? "~"
                                                : "+",
         expr.opSpan.begin);
    this->expr(*expr.operands[0], tight || expr.unaryOp != ast::UnaryOp::Not);
    break;
  case ast::Expr::Binary:
    binary(expr, tight);
    break;
  case ast::Expr::Compare:
    this->expr(*expr.operands[0]);
    for (size_t i = 0; i != expr.compares.size(); ++i) {
      blank();
      mayBreak(Compare);
      text(spelling(expr.compares[i]));
      text(" ");
      this->expr(*expr.operands[i + 1]);
    }
    break;
  case ast::Expr::Index:
    text(expr.name.name, expr.name.span.begin);
    subscripts(expr.subscripts, expr.arguments, innerEnd(expr));
    break;
  case ast::Expr::Call:
    call(expr);
    break;
  case ast::Expr::Tuple:
    open("(", expr.span.begin);
    for (size_t i = 0; i != expr.operands.size(); ++i) {
      if (i)
        comma();
      this->expr(*expr.operands[i]);
    }
    if (expr.operands.size() == 1)
      text(",");
    close(")", innerEnd(expr) - 1);
    break;
  }
  if (expr.parenthesized)
    close(")", expr.span.end - 1);
}

} // namespace tegula
