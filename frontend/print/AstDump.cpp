//===- AstDump.cpp - The tree as S-expressions -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/print/Printer.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula {

namespace {
class Dumper {
public:
  explicit Dumper(raw_ostream &os) : os(os) {}
  void kernel(const ast::Kernel &kernel);
  void fn(const ast::Fn &fn);

private:
  void param(StringRef what, const ast::Param &param);
  void stmt(const ast::Stmt &stmt, unsigned indent);
  void target(const ast::Target &target);
  void range(const ast::Range &range);
  void subscript(const ast::Subscript &subscript);
  void subscripts(const std::vector<ast::Subscript> &all) {
    for (const ast::Subscript &each : all)
      subscript(each);
  }
  void item(const ast::ForItem &item);
  void argument(const ast::Argument &argument);
  void expr(const ast::Expr &expr);

  raw_ostream &os;
};
} // namespace

static StringRef name(ast::BinaryOp op) {
  static const StringRef names[] = {"+",   "-",  "*", "/", "//", "%",  "**",
                                    "and", "or", "&", "|", "^",  "<<", ">>"};
  return names[static_cast<unsigned>(op)];
}

static StringRef name(ast::CompareOp op) {
  static const StringRef names[] = {"<", "<=", ">", ">=", "==", "!="};
  return names[static_cast<unsigned>(op)];
}

void Dumper::range(const ast::Range &range) {
  os << " (in";
  if (range.lo)
    expr(*range.lo);
  expr(*range.hi);
  os << ')';
}

void Dumper::subscript(const ast::Subscript &subscript) {
  switch (subscript.kind) {
  case ast::Subscript::Ellipsis:
    os << " ...";
    break;
  case ast::Subscript::Single:
    expr(*subscript.expr);
    break;
  case ast::Subscript::Group:
    os << " (group";
    subscripts(subscript.members);
    os << ')';
    break;
  }
  if (subscript.range)
    range(*subscript.range);
}

void Dumper::item(const ast::ForItem &item) {
  if (item.ellipsis) {
    os << " ...";
    return;
  }
  os << " (for " << item.index.name;
  if (item.range)
    range(*item.range);
  if (item.filter) {
    os << " (if";
    expr(*item.filter);
    os << ')';
  }
  os << ')';
}

void Dumper::argument(const ast::Argument &argument) {
  if (argument.keyword)
    os << ' ' << argument.keyword->name << '=';
  expr(*argument.value);
}

void Dumper::expr(const ast::Expr &expr) {
  auto operands = [&] {
    for (const ast::ExprPtr &operand : expr.operands)
      this->expr(*operand);
    os << ')';
  };
  switch (expr.kind) {
  case ast::Expr::Integer:
  case ast::Expr::Float:
  case ast::Expr::String:
    os << ' ' << expr.text;
    break;
  case ast::Expr::Name:
    os << ' ' << expr.name.name;
    break;
  case ast::Expr::Unary:
    os << (expr.unaryOp == ast::UnaryOp::Neg      ? " (neg"
           : expr.unaryOp == ast::UnaryOp::Plus   ? " (pos"
           : expr.unaryOp == ast::UnaryOp::BitNot ? " (~"
                                                  : " (not");
    operands();
    break;
  case ast::Expr::Binary:
    os << " (" << name(expr.binaryOp);
    operands();
    break;
  case ast::Expr::Compare:
    os << " (compare";
    this->expr(*expr.operands[0]);
    for (size_t i = 0; i != expr.compares.size(); ++i) {
      os << ' ' << name(expr.compares[i]);
      this->expr(*expr.operands[i + 1]);
    }
    os << ')';
    break;
  case ast::Expr::Index:
    os << " (read " << expr.name.name;
    subscripts(expr.subscripts);
    llvm::for_each(expr.arguments, [&](const ast::Argument &each) { argument(each); });
    os << ')';
    break;
  case ast::Expr::Call:
    os << " (call " << expr.name.name;
    for (const ast::ExprPtr &operand : expr.operands)
      this->expr(*operand);
    llvm::for_each(expr.items, [&](const ast::ForItem &each) { item(each); });
    llvm::for_each(expr.arguments, [&](const ast::Argument &each) { argument(each); });
    os << ')';
    break;
  case ast::Expr::Tuple:
    os << " (tuple";
    operands();
    break;
  }
}

void Dumper::target(const ast::Target &target) {
  os << " (target " << target.name.name;
  if (target.hasColon)
    os << " :" << (target.type ? target.type->name : "");
  if (target.hasSubscripts) {
    os << " [";
    subscripts(target.subscripts);
    os << ']';
  }
  os << ')';
}

void Dumper::stmt(const ast::Stmt &stmt, unsigned indent) {
  static const StringRef names[] = {"assign",        "state",    "call",      "observe",
                                    "parallel",      "tiles",    "for",       "precision",
                                    "deterministic", "distinct", "invariant", "schedule"};
  os.indent(indent) << '(' << names[stmt.kind];
  if (stmt.accumulate)
    os << ' ' << ast::spelling(stmt.combine);
  for (const std::vector<ast::Ident> &item : stmt.distinct) {
    os << " (";
    llvm::interleave(item, os, [&](const ast::Ident &each) { os << each.name; }, " ");
    os << ')';
  }
  for (const ast::Ident &each : stmt.invariant)
    os << ' ' << each.name;
  llvm::for_each(stmt.targets, [&](const ast::Target &each) { target(each); });
  if (!stmt.index.name.empty())
    os << ' ' << stmt.index.name;
  if (stmt.range)
    range(*stmt.range);
  if (stmt.reverse)
    os << " reverse";
  for (const ast::Binder &binder : stmt.binders) {
    os << " (" << binder.index.name;
    range(binder.range);
    os << ')';
  }
  if (stmt.value)
    expr(*stmt.value);
  llvm::for_each(stmt.trailing, [&](const ast::ForItem &each) { item(each); });
  for (const ast::ScheduleItem &each : stmt.schedule) {
    os << " (" << each.keyword.name;
    for (const auto &[name, value] : each.settings) {
      os << ' ' << (name ? name->name + "=" : "");
      expr(*value);
    }
    os << ')';
  }
  for (const ast::StmtPtr &each : stmt.body) {
    os << '\n';
    this->stmt(*each, indent + 2);
  }
  os << ')';
}

void Dumper::param(StringRef what, const ast::Param &param) {
  os << "\n  (" << what << ' ' << param.name.name << (param.isInout ? " inout" : "") << " :"
     << param.type.name;
  if (param.hasDims) {
    os << " [";
    for (const ast::Dim &dim : param.dims)
      if (dim.ellipsis)
        os << " ...";
      else
        expr(*dim.expr);
    os << ']';
  }
  if (param.defaultValue) {
    os << " =";
    expr(*param.defaultValue);
  }
  os << ')';
}

void Dumper::kernel(const ast::Kernel &kernel) {
  os << "(kernel " << kernel.name.name;
  for (const ast::Param &each : kernel.params)
    param("param", each);
  for (const ast::Param &each : kernel.outputs)
    param("output", each);
  for (const ast::SizeDef &each : kernel.sizes) {
    os << "\n  (where " << each.name.name;
    expr(*each.value);
    os << ')';
  }
  for (const ast::StmtPtr &each : kernel.body) {
    os << '\n';
    stmt(*each, 2);
  }
  os << ")\n";
}

void Dumper::fn(const ast::Fn &fn) {
  os << "(fn " << fn.name.name;
  for (size_t i = 0; i != fn.params.size(); ++i) {
    os << " (param " << fn.params[i].name;
    if (i < fn.defaults.size() && fn.defaults[i])
      expr(*fn.defaults[i]);
    os << ')';
  }
  for (const auto &[name, value] : fn.lets) {
    os << "\n  (let " << name.name;
    expr(*value);
    os << ')';
  }
  os << "\n  (result";
  expr(*fn.result);
  os << "))\n";
}

void dump(const ast::File &file, raw_ostream &os) {
  Dumper dumper(os);
  for (const auto &fn : file.fns)
    dumper.fn(*fn);
  for (const auto &kernel : file.kernels)
    dumper.kernel(*kernel);
}

} // namespace tegula
