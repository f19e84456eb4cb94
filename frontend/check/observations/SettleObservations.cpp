//===- SettleObservations.cpp - Whether print and assert are part of a program --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A called kernel gets the tensors that its observations write as inouts. Where the call stands in
// loops, each of its runs writes a temporary, which is then copied to the part of this step.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/observations/SettleObservations.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;
using namespace tegula::checked;

namespace {
class Settler {
public:
  Settler(Program &program, bool observe) : program(program), observe(observe) {}

  void run() {
    std::vector<Observation *> observed;
    settle(program.body, observed);
    for (Observation *one : observed) {
      program.observed.push_back(one);
      forEachTensor(*one, [&](const Tensor *&tensor) { program.inputs.push_back(tensor); });
    }
  }

private:
  struct Around { // a statement around those that are being settled
    unsigned position;
    llvm::ArrayRef<const Var *> vars; // of a loop or a block
  };

  void settle(std::vector<Stmt *> &body, std::vector<Observation *> &observed) {
    std::vector<Stmt *> result;
    for (auto [position, stmt] : llvm::enumerate(body)) { // which tells the order alone
      around.push_back({static_cast<unsigned>(position), {}});
      if (stmt->kind == Stmt::Observe) {
        if (observe)
          for (Observation *one : stmt->observations) {
            addPath(*one);
            observed.push_back(one);
          }
        if (observe)
          llvm::append_range(result, stmt->observing);
        around.pop_back();
        continue;
      }
      if (!stmt->body.empty())
        around.back().vars = stmt->vars;
      settle(stmt->body, observed);
      if (stmt->callee)
        settleCall(*stmt, result, observed);
      else
        result.push_back(stmt);
      around.pop_back();
    }
    body = std::move(result);
  }

  /// Puts the statements around an observation before its path. Its axes begin with their loops.
  void addPath(Observation &one) {
    std::vector<Observation::Step> path;
    unsigned next = 0;
    for (const Around &each : around) {
      path.push_back({each.position, std::nullopt, false});
      for (const Var *var : each.vars)
        if (std::optional<unsigned> axis = axisOf(one, *var, next)) {
          if (path.back().axis)
            path.push_back({0, std::nullopt, false, /*isFurtherAxis=*/true});
          path.back().axis = axis;
          path.back().reverse = var->reverse;
        }
    }
    path.insert(path.end(), one.path.begin(), one.path.end());
    one.path = std::move(path);
  }

  /// The axis that belongs to a loop, or to an index of a block; values may not vary along one of
  /// these.
  static std::optional<unsigned> axisOf(const Observation &one, const Var &var, unsigned &next) {
    for (unsigned axis = next; axis < one.axes.size(); ++axis)
      if (one.axes[axis].name == var.name) {
        next = axis + 1;
        return axis;
      }
    return std::nullopt;
  }

  static void forEachTensor(Observation &one, llvm::function_ref<void(const Tensor *&)> visit) {
    visit(one.happened);
    for (Observation::Value &value : one.values)
      for (const Tensor **tensor : {&value.tensor, &value.isRead})
        if (*tensor)
          visit(*tensor);
  }

  void settleCall(Stmt &call, std::vector<Stmt *> &result, std::vector<Observation *> &observed) {
    std::vector<Observation *> inner;
    std::vector<Around> outside;
    std::swap(outside, around);
    settle(call.callee->body, inner);
    around = std::move(outside);
    std::vector<const Var *> loops;
    for (const Around &each : around) // calls stand in no block
      loops.insert(loops.end(), each.vars.begin(), each.vars.end());
    std::vector<Stmt *> after;
    for (Observation *one : inner) {
      forEachTensor(*one, [&](const Tensor *&tensor) {
        const Tensor *own = tensor;
        tensor = loops.empty() ? copyOf(*own, Tensor::Inout, own->dims)
                               : throughTemporary(call, *own, loops, result, after);
        if (loops.empty())
          call.callee->arguments.push_back({own, tensor});
      });
      std::vector<Observation::Axis> axes;
      for (const Var *loop : loops)
        axes.push_back({loop->name, loop->lo, extentOf(*loop)});
      for (Observation::Step &step : one->path)
        if (step.axis)
          *step.axis += loops.size();
      one->axes.insert(one->axes.begin(), axes.begin(), axes.end());
      addPath(*one);
      observed.push_back(one);
    }
    result.push_back(&call);
    llvm::append_range(result, after);
  }

  /// Lets a call in loops write `own` to a temporary of zeros, and copies that afterwards.
  const Tensor *throughTemporary(Stmt &call, const Tensor &own, llvm::ArrayRef<const Var *> loops,
                                 std::vector<Stmt *> &before, std::vector<Stmt *> &after) {
    Tensor *temporary = copyOf(own, Tensor::Temp, own.dims);
    call.callee->arguments.push_back({&own, temporary});
    Stmt *definition = newStmt(Stmt::TensorDef, call.span);
    definition->tensor = temporary;
    before.push_back(definition);
    Expr &zero = program.exprs.emplace_back();
    zero.type = own.type;
    zero.span = call.span;
    before.push_back(
        wholeEquation(*temporary, call.span, [&](llvm::ArrayRef<IndexExpr>) { return &zero; }));

    std::vector<IndexExpr> dims;
    for (const Var *loop : loops)
      dims.push_back(extentOf(*loop));
    dims.insert(dims.end(), own.dims.begin(), own.dims.end());
    Tensor *all = copyOf(own, Tensor::Inout, std::move(dims));
    Stmt *copy = wholeEquation(*temporary, call.span, [&](llvm::ArrayRef<IndexExpr> subscripts) {
      Expr &read = program.exprs.emplace_back();
      read.kind = Expr::Read;
      read.type = own.type;
      read.span = call.span;
      read.tensor = temporary;
      read.subscripts = subscripts;
      for (const IndexExpr &subscript : subscripts)
        read.axes.push_back(subscript.asVariable()->position());
      return &read;
    });
    copy->tensor = all;
    std::vector<IndexExpr> places;
    for (const Var *loop : loops)
      places.push_back(IndexExpr::dim(loop->id) - loop->lo);
    copy->subscripts.insert(copy->subscripts.begin(), places.begin(), places.end());
    after.push_back(copy);
    return all;
  }

  /// Steps of a loop at top level, whose range is made of sizes.
  static IndexExpr extentOf(const Var &loop) {
    return loop.lo == IndexExpr(0) ? loop.hi : IndexExpr::max(loop.hi - loop.lo, IndexExpr(0));
  }

  Tensor *copyOf(const Tensor &tensor, Tensor::Kind kind, std::vector<IndexExpr> dims) {
    Tensor &copy = program.tensors.emplace_back();
    copy.kind = kind;
    copy.name = "observed." + std::to_string(program.tensors.size());
    copy.type = tensor.type;
    copy.dims = std::move(dims);
    copy.span = tensor.span;
    return &copy;
  }

  Stmt *newStmt(Stmt::Kind kind, Span span) {
    Stmt &stmt = program.stmts.emplace_back();
    stmt.kind = kind;
    stmt.span = span;
    return &stmt;
  }

  /// `tensor[...] = value` for all elements.
  Stmt *wholeEquation(const Tensor &tensor, Span span,
                      llvm::function_ref<const Expr *(llvm::ArrayRef<IndexExpr>)> value) {
    Stmt *equation = newStmt(Stmt::Equation, span);
    equation->tensor = &tensor;
    for (const IndexExpr &dim : tensor.dims) {
      Var &var = program.vars.emplace_back();
      var.id = program.vars.size() - 1;
      var.name = "z" + std::to_string(equation->vars.size());
      var.lo = IndexExpr(0);
      var.hi = dim;
      var.span = span;
      equation->vars.push_back(&var);
      equation->subscripts.push_back(IndexExpr::dim(var.id));
    }
    equation->value = value(equation->subscripts);
    return equation;
  }

  Program &program;
  bool observe;
  std::vector<Around> around;
};
} // namespace

void tegula::settleObservations(Program &program, bool observe) { Settler(program, observe).run(); }
