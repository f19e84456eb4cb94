//===- Checked.h - A checked kernel instance --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the checker makes of one kernel at given type arguments, constants and rank of `...`: every
// name resolved, every size an IndexExpr over the *entry kernel's* size symbols (a called kernel is
// checked anew at each call, in terms of its caller's sizes), every value typed and annotated with
// the axes it varies along, `fn`s expanded. Emission (EmitIR.cpp) turns this into tgl IR one to
// one.
//
// In the IndexExprs of this tree a dim `d<n>` is the index variable `Program::vars[n]`.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKED_H
#define TEGULA_FRONTEND_CHECK_CHECKED_H

#include "frontend/ast/AST.h"
#include "ir/DTypes.h"
#include "symbolic/IndexExpr.h"
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tegula::checked {

using tegula::bitWidth;
using tegula::computeType;
using tegula::DType;
using tegula::isFloat;
using tegula::isUnsigned;
using tegula::parseDType;
using tegula::toString;

/// What an integer type (or bool) can hold, inclusive; nothing for floats. The one table from which
/// the checker knows what values of a type can be.
struct IntegerRange {
  __int128 lo = 0, hi = 0;
  bool contains(const IntegerRange &other) const { return lo <= other.lo && other.hi <= hi; }
};
std::optional<IntegerRange> integerRange(DType type);

/// What a kernel's `precision` may say, and the names in words.
bool isPrecision(llvm::StringRef name);
inline constexpr llvm::StringLiteral precisionNames = "f32, tf32, conv_tf32 or bf16";

struct Expr;

/// An integer that varies: an axis of an equation, reduction, scan or parallel block, a loop
/// variable, or an integer computed from data (`Data`), whose value is `data`.
struct Var {
  enum Kind { Axis, Tile, Loop, Data } kind = Axis;
  unsigned id = 0; // position in Program::vars
  std::string name;
  IndexExpr lo, hi;     // Axis, Tile, Loop: lo <= value < hi; may use earlier vars (Data ones too)
  bool hasRange = true; // Data: whether lo and hi are known to hold
  bool reverse = false; // Loop: walks from hi-1 down
  const Expr *data = nullptr;
  Span span;
};

struct Tensor {
  enum Kind { In, Inout, Out, Temp, State } kind = In;
  std::string name;
  DType type = DType::F32;
  std::vector<IndexExpr> dims; // sizes
  /// An optional input that was left out reads as this everywhere (and is not an argument).
  std::optional<double> constantValue;
  /// Its generic type was shown by no argument: reads are weak numbers, integers where the default
  /// is one.
  bool isTypeless = false;
  bool isWholeDefault = false;
  Span span;
};

/// A run-time scalar parameter `s: f32`.
struct ScalarParam {
  std::string name;
  DType type = DType::F32;
  Span span;
};

enum class Unary {
  Neg,
  Not,
  Abs,
  Sign,
  Floor,
  Ceil,
  Round,
  Trunc,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log1p,
  Sqrt,
  Rsqrt,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Log10,
  Erfc,
  Erfinv,
  Lgamma,
  Digamma,
  Erf,
  IsNan,
  IsInf,
  IsFloat,
  LargestFinite
};
enum class Binary {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Atan2,
  CopySign,
  Max,
  Min,
  And,
  Or,
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,
  LT,
  LE,
  GT,
  GE,
  EQ,
  NE
};
enum class Reduction { Sum, Prod, Max, Min, Mean, Var, Any, All, Count, ArgMax, ArgMin, LogSumExp };
enum class Scan {
  CumSum,
  CumProd,
  CumMax,
  CumMin,
  Softmax,
  LogSoftmax,
  Sort,
  ArgSort,
  TopKValue,
  TopKIndex,
  Recurrence
};

/// A scalar value at one point of its axes. Shared subtrees are allowed (a `let` is a node that is
/// referred to twice); nodes are owned by the Program and never change after checking.
struct Expr {
  enum Kind {
    Constant, // constant (Bool and integers: intValue, of U64 its bits; floats: floatValue)
    Index,    // index: an integer expression of sizes and vars; type I64
    Scalar,   // scalar
    Let,      // let: a value named in a parallel block or at top level
    State,    // state: the current value of a scalar state
    Read,     // tensor, subscripts, groups, fill, exact, guard, dataDependent
    Unary,
    Binary,
    Where,    // operands: condition, yes, no
    Convert,  // operands[0] to `target`: rounds to floats, wraps between integers, truncates and
              // saturates from floats to integers; the result's type is computeType(target), its
              // value representable in `target`
    Quantize, // as Convert, rounded to nearest even first, and integers saturate
    Widen,  // operands[0] to `type` exactly (bool -> i32 -> u32 -> i64 -> u64 -> f32 -> f64, int to
            // float)
    Reduce, // reduction, vars, filter, operands[0]; unbiased. `max(s for j)` over the current
            // tile: `vars` holds the Tile var itself
    Scan,   // scan, vars (the scanned: new ones), positions, operands; reverse, exclusive.
            // Recurrence: a, b and, where written, init (which does not vary along `vars`)
    Random, // normal, operands: the keys, i64
  } kind = Constant;
  DType type = DType::F32; // a compute type: Bool I32 U32 I64 U64 F32 F64
  Span span;
  /// Vars that the value depends on, by id, sorted; `Data` vars are replaced by what they depend
  /// on.
  std::vector<unsigned> axes;

  int64_t intValue = 0;
  double floatValue = 0;
  IndexExpr index;
  const ScalarParam *scalar = nullptr;
  const struct Let *let = nullptr;
  const struct StateDef *state = nullptr;

  const Tensor *tensor = nullptr;
  std::vector<IndexExpr> subscripts;
  /// (dim, first member) of each subscript that is a group `(a, b)`; members behind the first are
  /// indices, and the members are digits of the subscript.
  std::vector<std::pair<unsigned, IndexExpr>> groups;
  const Expr *fill = nullptr; // value outside the tensor
  /// `(numerator, denominator)`: where a division is not exact the read gives the fill (or, with
  /// none, cannot happen: proved or guarded). The subscript holds the floored quotient.
  std::vector<std::pair<IndexExpr, IndexExpr>> exact;
  const Expr *guard = nullptr; // boolean: where false the read does not happen and gives 0
  bool dataDependent = false;  // checked while running: outside, 0 and an error report

  tegula::checked::Unary unary = tegula::checked::Unary::Neg;
  tegula::checked::Binary binary = tegula::checked::Binary::Add;
  /// Pow of integers: how many low bits the exponent can have set; 64 where it may be negative.
  /// Shl, Shr: 0 where the count is known to be less than the width, else 64.
  unsigned exponentBits = 64;
  DType target = DType::F32;
  bool isClamp = false; // Max, Min: a bound of `clamp`, whose derivative is another at ties
  bool isWeak = false;  // Convert: of a weak value to the type of what it meets [2.5], not written
  std::vector<const Expr *> operands;
  tegula::checked::Reduction reduction = Reduction::Sum;
  bool unbiased = false;
  std::vector<const Var *> vars; // Reduce, Scan: bound here, in order
  const Expr *filter = nullptr;  // Reduce, boolean
  tegula::checked::Scan scan = tegula::checked::Scan::CumSum;
  /// Scan: which position of the sequence is wanted, one index expression for each of `vars` (for
  /// cumulative ones and softmax the equation's own axes, for sort and topk the rank).
  std::vector<IndexExpr> positions;
  bool reverse = false, exclusive = false, descending = false;
  bool normal = false;
};

struct Let {
  std::string name;
  const Expr *value = nullptr;
  Span span;
};

/// `state m = v` in a parallel block: a scalar for each point of `axes`.
struct StateDef {
  std::string name;
  DType type = DType::F32;
  std::optional<DType> storage; // rounding at each update
  std::vector<unsigned> axes;   // parallel vars, by id, sorted
  const Expr *init = nullptr;
  Span span;
};

/// What a `print` or an `assert` looks at, a search for NaN (InstanceOptions::watch), or when a
/// statement is reached and at which points an equation is computed (InstanceOptions::trace).
/// Equations write it, one element for each point, to tensors that exist for that alone.
struct Observation {
  enum Kind { Print, Assert, Watch, Reach, Points } kind = Print;
  Span span;                   // of the statement
  std::vector<uint32_t> calls; // where the calls of kernels begin that lead to it, outermost first
  std::string message;         // Assert: what it says, without quotes
  /// Of the tensors, loops around the statement first. `lo` is the index of element 0.
  struct Axis {
    std::string name; // empty: the dim of a tensor that is printed whole
    IndexExpr lo, extent;
  };
  std::vector<Axis> axes;
  bool isInTiles = false; // in a loop over tiles
  /// Where it is true the statement was reached (Print, Reach; Points: an equation at this one),
  /// its condition false (Assert), or its value what is looked for (Watch).
  const Tensor *happened = nullptr;
  struct Value {
    std::string text;               // `h[i, j]`, or a text that is printed
    const Tensor *tensor = nullptr; // null: a text
    const Tensor *isRead = nullptr; // where it is true there is such a value; null: everywhere
  };
  std::vector<Value> values;
  /// When it runs: for the statements around it and itself, outermost first, the place in the body
  /// and, of loops and blocks, the axis of their index; a step for each further index.
  struct Step {
    unsigned position = 0;
    std::optional<unsigned> axis;
    bool reverse = false;
    bool isFurtherAxis = false; // of the statement of the step before
  };
  std::vector<Step> path;
};

struct Stmt {
  enum Kind {
    Equation,  // tensor[subscripts] = value (or +=, max=, min=) for all points of `vars`; in a
               // parallel block `vars` are its own new indices, and it also runs along the block's
               // axes and the tile axes that it varies along (what accumulates: along all axes of
               // the block)
    Define,    // let
    Update,    // state = value
    StateInit, // stateDef begins its life here
    TensorDef, // tensor (a Temp or State) begins its life here
    Parallel,  // vars, body
    Tiles,     // vars[0] (Tile), body
    For,       // vars[0] (Loop), body
    Call,      // callee
    Observe,   // observations, and the equations that write them, `observing`. The checker alone
               // has these: settleObservations removes them, or puts the equations in their place
  } kind = Equation;
  Span span;
  const Tensor *tensor = nullptr;
  std::vector<const Var *> vars;
  std::vector<IndexExpr> subscripts;
  bool accumulate = false;            // an output has been filled with 0 by an equation before
  Reduction combine = Reduction::Sum; // how: Sum, Max or Min
  /// What happens where two points of an `=` meet at an element, whose subscripts hold data.
  enum Meeting {
    Never,    // they do not, by proof or by the program's word, `distinct`
    Alike,    // all of them write the same value
    LastWins, // that of the last point counts, in row-major order of `order`
  } meeting = Never;
  std::vector<const Var *> order;
  std::string distinct;       // the names that the program says are distinct, where that was needed
  bool dataDependent = false; // a subscript holds data: checked while running, dropped if bad
  const Expr *guard = nullptr; // boolean: nothing is written where false
  const Expr *value = nullptr;
  /// Two points of the right side that read `tensor` itself: the old values are copied first.
  bool readsTarget = false;
  const Let *let = nullptr;
  const StateDef *state = nullptr;
  std::vector<Stmt *> body;
  std::unique_ptr<struct Callee> callee;
  std::vector<Observation *> observations;
  std::vector<Stmt *> observing;
};

/// A called kernel, checked at this call. Its tensors are its own; arguments are tensors of the
/// caller in the order of `params`.
struct Callee {
  std::string name;
  std::vector<std::pair<const Tensor *, const Tensor *>> arguments; // parameter, argument
  std::vector<std::pair<const Tensor *, const Tensor *>> results;   // output, where it goes
  std::vector<std::pair<const ScalarParam *, const Expr *>> scalars;
  std::vector<Stmt *> body;
  std::vector<const Tensor *> tensors; // parameters and outputs in order
  std::optional<std::string> precision;
};

/// What must hold for the sizes of a launch.
struct Guard {
  enum Kind {
    NonNegative, // lhs >= 0
    Zero,        // lhs == 0
    NonZero,     // lhs != 0
    Divides,     // lhs % rhs == 0, rhs != 0
    /// For all points of `vars` where every `conditions` expr is >= 0: 0 <= lhs < rhs.
    InBounds,
  } kind = NonNegative;
  IndexExpr lhs, rhs;
  std::vector<const Var *> vars;
  std::vector<IndexExpr> conditions;
  std::string message; // what is wrong where it does not hold: `x[i + 2] leaves 'x' in dim 1`
  std::string advice;  // the declaration that would prove it, if there is one
  Span span;
};

/// A size symbol of the entry kernel: bound by a dim of an argument, or derived.
struct Size {
  std::string name;
  std::optional<std::pair<unsigned, unsigned>> boundBy; // index into inputs, dim
  IndexExpr definition; // derived: in earlier sizes. Not an expression where bound
  /// A compile-time integer that was given no value: such a program can be checked, not compiled.
  bool isOpen = false;
  bool isUnnamed =
      false; ///< derived, and the program has no name for it: messages show its definition
};

struct Constant { // a compile-time constant and the value it was checked at
  std::string name;
  std::variant<int64_t, double, bool, std::vector<int64_t>> value;
};

struct ScheduleSetting {
  std::string keyword, axis; // axis empty where the setting has none
  std::optional<int64_t> value;
  Span span;
};

struct Program {
  std::string name;
  std::deque<Var> vars;
  std::deque<Tensor> tensors;
  std::deque<ScalarParam> scalarParams;
  std::deque<Expr> exprs;
  std::deque<Let> lets;
  std::deque<StateDef> states;
  std::deque<Stmt> stmts;
  std::deque<Observation> observations;

  std::vector<Size> sizes;
  std::vector<Constant> constants;
  /// Entry parameters that are arguments of a launch (left-out optional tensors are not), then
  /// outputs. An inout is in `inputs` only.
  std::vector<const Tensor *> inputs, outputs;
  /// With InstanceOptions::observe: observations, whose tensors are among the `inputs`.
  std::vector<const Observation *> observed;
  std::vector<const ScalarParam *> scalars;
  std::vector<Guard> guards;
  std::optional<std::string> precision; // see isPrecision
  std::vector<ScheduleSetting> schedule;
  bool deterministic = false;
  /// Sizes that no order of a sum depends on [4.11]: those named, those that they are made of, and
  /// those made of any of these.
  std::vector<std::string> invariant;
  std::vector<Stmt *> body;
  Span span;
};

} // namespace tegula::checked

#endif // TEGULA_FRONTEND_CHECK_CHECKED_H
