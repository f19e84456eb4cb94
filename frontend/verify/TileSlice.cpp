//===- TileSlice.cpp - Statements with tile loops on their own ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/verify/TileSlice.h"
#include "frontend/lower/EmitIRAnalysis.h"

using namespace tegula;
using namespace tegula::checked;

namespace {
/// How far apart two orders of rounding to this type may lead.
double toleranceOf(checked::DType type) {
  switch (type) {
  case checked::DType::F16:
    return 0x1p-7;
  case checked::DType::BF16:
    return 0x1p-4;
  case checked::DType::F8E4M3:
    return 0x1p-1;
  case checked::DType::F8E5M2:
    return 1;
  default:
    return 0x1p-9; // f32 itself rounds at 2^-24; sums that cancel have shown 2^-13
  }
}

class Slicer {
public:
  explicit Slicer(const Program &program) : analysis(program) {}

  TileSlice slice(std::vector<Stmt *> body) {
    TileSlice result;
    current = &result;
    result.tolerance = toleranceOf(checked::DType::F32);
    llvm::SmallPtrSet<const Tensor *, 4> own;
    emit::forEachStmt(body, [&](const Stmt &stmt) {
      if (stmt.kind == Stmt::TensorDef)
        own.insert(stmt.tensor);
      if (stmt.kind == Stmt::Tiles)
        result.loops.push_back(&stmt);
      see(stmt);
    });
    result.reads.remove_if([&](const Tensor *t) { return own.contains(t) || t->constantValue; });
    result.writes.remove_if([&](const Tensor *t) { return own.contains(t); });
    result.body = std::move(body);
    return result;
  }

private:
  void see(const Expr *root) {
    if (!root)
      return;
    analysis.walk(root, [&](const Expr *expr) {
      if (expr->kind == Expr::Read)
        current->reads.insert(expr->tensor);
      if (expr->kind == Expr::Scalar)
        current->scalars.insert(expr->scalar);
      if (expr->kind == Expr::Convert && isFloat(expr->target))
        round(expr->target);
      // A step of a quantised value may go either way.
      if (expr->kind == Expr::Quantize || (expr->kind == Expr::Convert && !isFloat(expr->target)))
        round(checked::DType::BF16);
      return true;
    });
  }
  void see(const IndexExpr &index) {
    analysis.forEachData(index, [&](const Expr *data) { see(data); });
  }
  void see(const Stmt &stmt) {
    for (const Var *var : stmt.vars) {
      see(var->lo);
      see(var->hi);
    }
    for (const IndexExpr &subscript : stmt.subscripts)
      see(subscript);
    see(stmt.guard);
    see(stmt.value);
    if (stmt.kind == Stmt::Define)
      see(stmt.let->value);
    if (stmt.kind == Stmt::StateInit) {
      see(stmt.state->init);
      if (stmt.state->storage)
        round(*stmt.state->storage);
    }
    if (stmt.kind == Stmt::Equation) {
      current->writes.insert(stmt.tensor);
      round(stmt.tensor->type);
      // What it does not write stays; what it adds to was there.
      if (stmt.tensor->kind != Tensor::Out)
        current->reads.insert(stmt.tensor);
    }
    if (stmt.kind == Stmt::Call) {
      for (const auto &[parameter, argument] : stmt.callee->arguments)
        current->reads.insert(argument);
      for (const auto &[output, target] : stmt.callee->results)
        if (target)
          current->writes.insert(target);
      for (const auto &[parameter, argument] : stmt.callee->scalars)
        see(argument);
    }
  }
  void round(checked::DType type) {
    if (isFloat(type))
      current->tolerance = std::max(current->tolerance, toleranceOf(type));
  }

  emit::Analysis analysis;
  TileSlice *current = nullptr;
};

/// The statements with tile loops, each with what it needs before it.
void findSlices(llvm::ArrayRef<Stmt *> body, Slicer &slicer, const SourceManager &sources,
                std::vector<TileSlice> &slices) {
  auto isBare = [](const Stmt *stmt) { return stmt->kind == Stmt::Tiles; };
  std::vector<Stmt *> before; // lets and states, which any later statement may use
  bool whole = llvm::any_of(body, isBare);
  for (Stmt *stmt : body) {
    emit::forEachStmt(llvm::ArrayRef(stmt), [&](const Stmt &nested) {
      if (nested.kind == Stmt::Call)
        findSlices(nested.callee->body, slicer, sources, slices);
    });
    if (stmt->kind == Stmt::Define || stmt->kind == Stmt::StateInit)
      before.push_back(stmt);
    if (whole)
      continue;
    bool hasLoop = false;
    emit::forEachStmt(llvm::ArrayRef(stmt), [&](const Stmt &nested) {
      hasLoop |= nested.kind == Stmt::Tiles && !sources.isLibrary(nested.span.file);
    });
    if (!hasLoop)
      continue;
    std::vector<Stmt *> alone = before;
    alone.push_back(stmt);
    slices.push_back(slicer.slice(std::move(alone)));
  }
  // A loop outside of any block leaves its results in states that later statements read.
  if (whole && llvm::any_of(body, [&](const Stmt *stmt) {
        return isBare(stmt) && !sources.isLibrary(stmt->span.file);
      }))
    slices.push_back(slicer.slice(std::vector<Stmt *>(body.begin(), body.end())));
}
} // namespace

std::vector<TileSlice> tegula::findTileSlices(const Program &program,
                                              const SourceManager &sources) {
  Slicer slicer(program);
  std::vector<TileSlice> slices;
  findSlices(program.body, slicer, sources, slices);
  return slices;
}

TileDisguise::TileDisguise(Program &program, const TileSlice &slice)
    : program(program), body(program.body), inputs(program.inputs), outputs(program.outputs),
      scalars(program.scalars), guards(program.guards), sizes(program.sizes),
      schedule(program.schedule), precision(program.precision) {
  program.body = slice.body;
  program.inputs.clear();
  program.outputs.clear();
  for (const Tensor *tensor : slice.reads) {
    bool both = slice.writes.contains(tensor);
    setKind(tensor, both ? Tensor::Inout : Tensor::In);
    program.inputs.push_back(tensor);
  }
  for (const Tensor *tensor : slice.writes)
    if (!slice.reads.contains(tensor)) {
      setKind(tensor, Tensor::Out);
      program.outputs.push_back(tensor);
    }
  program.scalars.assign(slice.scalars.begin(), slice.scalars.end());
  program.guards.clear();
  program.schedule.clear();
  program.precision.reset();
  for (Size &size : program.sizes) {
    size.boundBy.reset();
    size.definition = IndexExpr(1); // replaced in the emitted kernel
  }
}

TileDisguise::~TileDisguise() {
  program.body = std::move(body);
  program.inputs = std::move(inputs);
  program.outputs = std::move(outputs);
  program.scalars = std::move(scalars);
  program.guards = std::move(guards);
  program.sizes = std::move(sizes);
  program.schedule = std::move(schedule);
  program.precision = std::move(precision);
  for (auto [tensor, kind] : kinds)
    tensor->kind = kind;
}

void TileDisguise::setKind(const Tensor *tensor, Tensor::Kind kind) {
  auto *own = const_cast<Tensor *>(tensor); // the program is ours to change
  kinds.push_back({own, own->kind});
  own->kind = kind;
}
