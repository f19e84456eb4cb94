//===- AST.h - Syntax tree of a Tegula file ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the text says, nothing more: names are unresolved and sizes unevaluated. Every node has the
// exact bytes it came from. Nodes live as long as the `ast::File` that owns them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_AST_AST_H
#define TEGULA_FRONTEND_AST_AST_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tegula {

/// Bytes [begin, end) of file `file` of the SourceManager.
struct Span {
  uint32_t file = 0, begin = 0, end = 0;
  bool isValid() const { return end > begin; }
};

namespace ast {

struct Ident {
  std::string name;
  Span span;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// `e` (0 to e) or `lo:hi`.
struct Range {
  ExprPtr lo; // null: 0
  ExprPtr hi;
  Span span;
};

/// A subscript on either side: an expression, `...`, a group `(h, d in D)`, with its own range
/// `i in M` where one is written.
struct Subscript {
  enum Kind { Single, Ellipsis, Group } kind = Single;
  ExprPtr expr;                   // Single
  std::optional<Range> range;     // `in`, on a Single or a member
  std::vector<Subscript> members; // Group: all Single
  Span span;
};

struct Argument {
  std::optional<Ident> keyword;
  ExprPtr value;
};

/// One item after `for` in a reduction: `k`, `k in R`, `k in R if c`, or `...`.
struct ForItem {
  bool ellipsis = false;
  Ident index;
  std::optional<Range> range;
  ExprPtr filter;
  Span span;
};

enum class UnaryOp { Neg, Plus, Not, BitNot };
enum class BinaryOp {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  And,
  Or,
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr
};
enum class CompareOp { LT, LE, GT, GE, EQ, NE };

struct Expr {
  enum Kind {
    Integer, // intValue
    Float,   // floatValue
    String,  // text, with its quotes; valid in Observe alone
    Name,    // name
    Unary,   // unaryOp, operands[0]
    Binary,  // binaryOp, operands[0..1]; left-associative chains are nested
    Compare, // operands[0] compares[0] operands[1] compares[1] operands[2] ...
    Index,   // name[subscripts, fill=...]: name, subscripts, arguments (keywords)
    Call,    // name(arguments) or name(operands[0] for items, keywords): name, arguments, items
    Tuple,   // (a, b): operands
  } kind = Integer;
  Span span;
  Ident name;
  int64_t intValue = 0;
  double floatValue = 0;
  std::string text; // literals as written
  UnaryOp unaryOp = UnaryOp::Neg;
  BinaryOp binaryOp = BinaryOp::Add;
  Span opSpan;
  std::vector<CompareOp> compares;
  std::vector<ExprPtr> operands;
  std::vector<Subscript> subscripts;
  std::vector<Argument> arguments;
  std::vector<ForItem> items; // Call with `for`
  bool isComprehension = false;
  bool parenthesized = false;
};

/// A dim in a declaration: an expression or `...`.
struct Dim {
  bool ellipsis = false;
  ExprPtr expr;
  Span span;
};

/// `x: f32[M, N] = 0`, `pad: int = 1`, `cache: inout f16[B]`, `stride: int[2] = 1`.
struct Param {
  Ident name;
  bool isInout = false;
  Ident type;
  bool hasDims = false;
  std::vector<Dim> dims;
  ExprPtr defaultValue;
  Span span;
};

struct SizeDef { // in `where`
  Ident name;
  ExprPtr value;
};

/// A left side: `y`, `y[i, j]`, `h: bf16[i, j]`, `h: [N, O]`.
struct Target {
  Ident name;
  bool hasColon = false;
  std::optional<Ident> type;
  bool hasSubscripts = false;
  std::vector<Subscript> subscripts;
  Span span;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;

struct Binder { // `i in M`
  Ident index;
  Range range;
};

struct ScheduleItem { // `tile i=128, j=256` is one item with two settings; `persistent` has none
  Ident keyword;
  std::vector<std::pair<std::optional<Ident>, ExprPtr>> settings;
  Span span;
};

struct Stmt {
  enum class Combine { Add, Max, Min };
  enum Kind {
    Assign,    // targets = value [for items]; accumulate: what `combine` says
    State,     // state targets[0] = value
    Call,      // value is the call
    Observe,   // index (print or assert): value is a call of it, with `items` as its `trailing`
    Parallel,  // parallel binders { body }
    ForTiles,  // for index in tiles(range) { body }
    For,       // for index in range[, reverse] { body }
    Precision, // precision index
    Deterministic,
    Distinct,  // distinct names, a list for each item
    Invariant, // invariant names
    Schedule,  // schedule { items }
  } kind = Assign;
  Span span;
  std::vector<Target> targets;
  bool accumulate = false;
  Combine combine = Combine::Add;
  std::vector<std::vector<Ident>> distinct;
  std::vector<Ident> invariant; // sizes
  ExprPtr value;
  std::vector<ForItem> trailing; // `y[b, P + d] = x[b, d] for d in P`
  std::vector<Binder> binders;
  Ident index;
  std::optional<Range> range;
  bool reverse = false;
  std::vector<StmtPtr> body;
  std::vector<ScheduleItem> schedule;
};

/// `+=`, `max=` or `min=`.
inline llvm::StringRef spelling(Stmt::Combine combine) {
  return combine == Stmt::Combine::Add ? "+=" : combine == Stmt::Combine::Max ? "max=" : "min=";
}

struct Kernel {
  Ident name;
  std::vector<Param> params;
  bool hasOutputs = false;
  std::vector<Param> outputs;
  std::vector<SizeDef> sizes;
  std::vector<StmtPtr> body;
  /// Names that statements with syntax errors define; these are not in `body`.
  std::vector<std::string> lost;
  Span span;     // all of it
  Span headSpan; // `kernel` to the last `)` or size before `{`
};

struct Fn {
  Ident name;
  std::vector<Ident> params;
  std::vector<ExprPtr> defaults; // of the params, in their order; null where there is none
  std::vector<std::pair<Ident, ExprPtr>> lets;
  ExprPtr result;
  Span span;
};

struct Comment { // `#` to the end of its line
  Span span;
  bool ownLine = false; // nothing but blanks before it
};

struct File {
  uint32_t id = 0;
  std::vector<std::unique_ptr<Kernel>> kernels; // in order of text
  std::vector<std::unique_ptr<Fn>> fns;
  std::vector<Comment> comments;
  /// There were syntax errors: statements with one are left out, and definitions whose heads have
  /// one.
  bool isPartial = false;
  /// Words of what was left out: that one of them is unknown is not said.
  llvm::StringSet<> lostWords;
};

} // namespace ast
} // namespace tegula

#endif // TEGULA_FRONTEND_AST_AST_H
