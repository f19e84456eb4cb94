//===- EmitTest.cpp - Emission from checked programs made by hand -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Forms that text cannot reach (yet), or where the checked tree matters more than the text. Most
// tests of emission are test/frontend/emit-*.tgl.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIR.h"
#include "ir/tgl/Tgl.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace tegula;
using namespace tegula::checked;

namespace {

/// Builds a checked program from expressions.
class EmitTest : public ::testing::Test {
protected:
  Program program;
  SourceManager sources;
  mlir::MLIRContext context;

  void SetUp() override { program.name = "k"; }

  IndexExpr size(llvm::StringRef name) { return IndexExpr::symbol(name); }
  IndexExpr at(const Var *var) { return IndexExpr::dim(var->id); }

  Var *var(llvm::StringRef name, IndexExpr lo, IndexExpr hi, Var::Kind kind = Var::Axis) {
    Var &result = program.vars.emplace_back();
    result.id = program.vars.size() - 1;
    result.name = name.str();
    result.kind = kind;
    result.lo = lo;
    result.hi = hi;
    return &result;
  }
  Var *data(llvm::StringRef name, const Expr *value) {
    Var *result = var(name, 0, 0, Var::Data);
    result->data = value;
    return result;
  }
  Tensor *tensor(llvm::StringRef name, Tensor::Kind kind, std::vector<IndexExpr> dims,
                 DType type = DType::F32) {
    Tensor &result = program.tensors.emplace_back();
    result.name = name.str();
    result.kind = kind;
    result.dims = std::move(dims);
    result.type = type;
    if (kind == Tensor::In || kind == Tensor::Inout) {
      for (auto [position, dim] : llvm::enumerate(result.dims)) {
        std::optional<IndexVar> symbol = dim.asVariable();
        auto isKnown = [&](const Size &size) { return size.name == symbol->name(); };
        if (symbol && llvm::none_of(program.sizes, isKnown))
          program.sizes.push_back({symbol->name().str(),
                                   std::pair<unsigned, unsigned>(program.inputs.size(), position),
                                   IndexExpr()});
      }
      program.inputs.push_back(&result);
    } else if (kind == Tensor::Out) {
      program.outputs.push_back(&result);
    }
    return &result;
  }
  Expr *expr(Expr::Kind kind, DType type, std::vector<const Expr *> operands = {}) {
    Expr &result = program.exprs.emplace_back();
    result.kind = kind;
    result.type = type;
    result.operands = std::move(operands);
    return &result;
  }
  Expr *number(double value) {
    Expr *result = expr(Expr::Constant, DType::F32);
    result->floatValue = value;
    return result;
  }
  Expr *read(const Tensor *tensor, std::vector<IndexExpr> subscripts) {
    Expr *result = expr(Expr::Read, computeType(tensor->type));
    result->tensor = tensor;
    result->subscripts = std::move(subscripts);
    return result;
  }
  Expr *binary(checked::Binary op, const Expr *a, const Expr *b) {
    Expr *result = expr(Expr::Binary, a->type, {a, b});
    result->binary = op;
    return result;
  }
  Expr *mul(const Expr *a, const Expr *b) { return binary(checked::Binary::Mul, a, b); }
  Expr *add(const Expr *a, const Expr *b) { return binary(checked::Binary::Add, a, b); }
  Expr *sub(const Expr *a, const Expr *b) { return binary(checked::Binary::Sub, a, b); }
  Expr *exp(const Expr *a) {
    Expr *result = expr(Expr::Unary, a->type, {a});
    result->unary = checked::Unary::Exp;
    return result;
  }
  Expr *reduce(Reduction kind, const Expr *value, std::vector<const Var *> vars) {
    Expr *result = expr(Expr::Reduce, value->type, {value});
    result->reduction = kind;
    result->vars = std::move(vars);
    return result;
  }
  Stmt *stmt(Stmt::Kind kind, std::vector<Stmt *> body = {}) {
    Stmt &result = program.stmts.emplace_back();
    result.kind = kind;
    result.body = std::move(body);
    return &result;
  }
  Stmt *equation(const Tensor *tensor, std::vector<IndexExpr> subscripts,
                 std::vector<const Var *> vars, const Expr *value) {
    Stmt *result = stmt(Stmt::Equation);
    result->tensor = tensor;
    result->subscripts = std::move(subscripts);
    result->vars = std::move(vars);
    result->value = value;
    return result;
  }
  std::pair<Stmt *, const Expr *> define(llvm::StringRef name, const Expr *value) {
    Let &let = program.lets.emplace_back();
    let.name = name.str();
    let.value = value;
    Stmt *result = stmt(Stmt::Define);
    result->let = &let;
    Expr *use = expr(Expr::Let, value->type);
    use->let = &let;
    return {result, use};
  }
  std::pair<Stmt *, const Expr *> state(llvm::StringRef name, std::vector<unsigned> axes,
                                        const Expr *init) {
    StateDef &def = program.states.emplace_back();
    def.name = name.str();
    def.axes = std::move(axes);
    def.init = init;
    def.type = init->type;
    Stmt *result = stmt(Stmt::StateInit);
    result->state = &def;
    Expr *use = expr(Expr::State, init->type);
    use->state = &def;
    return {result, use};
  }
  Stmt *update(const Expr *state, const Expr *value) {
    Stmt *result = stmt(Stmt::Update);
    result->state = state->state;
    result->value = value;
    return result;
  }

  /// The module as text without locations; it must verify.
  std::string emit(EmitOptions options = {}) {
    mlir::OwningOpRef<mlir::ModuleOp> module = emitIR(program, sources, context, options);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os);
    return text;
  }
};

/// Occurrences, for the shape of a nest.
unsigned count(llvm::StringRef text, llvm::StringRef word) { return text.count(word); }

TEST_F(EmitTest, Matmul) {
  Tensor *x = tensor("x", Tensor::In, {size("M"), size("K")});
  Tensor *w = tensor("w", Tensor::In, {size("K"), size("N")});
  Tensor *y = tensor("y", Tensor::Out, {size("M"), size("N")});
  Var *i = var("i", 0, size("M")), *j = var("j", 0, size("N")), *k = var("k", 0, size("K"));
  program.body = {
      equation(y, {at(i), at(j)}, {i, j},
               reduce(Reduction::Sum, mul(read(x, {at(i), at(k)}), read(w, {at(k), at(j)})), {k}))};
  std::string text = emit();
  EXPECT_EQ(count(text, "tgl.parallel"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.reduce sum"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.temp"), 0u) << text;
}

/// The attention of the language page: m and l are carried, acc, s and p are private temporaries.
TEST_F(EmitTest, Attention) {
  IndexExpr S = size("S"), T = size("T"), D = size("D");
  Tensor *q = tensor("q", Tensor::In, {S, D}), *kt = tensor("k", Tensor::In, {T, D}),
         *v = tensor("v", Tensor::In, {T, D}), *o = tensor("o", Tensor::Out, {S, D});
  Var *i = var("i", 0, S), *d = var("d", 0, D), *j = var("j", 0, T, Var::Tile), *e = var("e", 0, D);
  auto [initM, m] = state("m", {i->id}, number(-1e30));
  auto [initL, l] = state("l", {i->id}, number(0));
  auto [initAcc, acc] = state("acc", {i->id, d->id}, number(0));
  auto [defS, s] = define(
      "s", reduce(Reduction::Sum, mul(read(q, {at(i), at(e)}), read(kt, {at(j), at(e)})), {e}));
  auto [defM2, m2] = define("m2", binary(checked::Binary::Max, m, reduce(Reduction::Max, s, {j})));
  auto [defP, p] = define("p", exp(sub(s, m2)));
  auto [defR, r] = define("r", exp(sub(m, m2)));
  Stmt *tiles = stmt(
      Stmt::Tiles,
      {defS, defM2, defP, defR, update(l, add(mul(l, r), reduce(Reduction::Sum, p, {j}))),
       update(acc, add(mul(acc, r), reduce(Reduction::Sum, mul(p, read(v, {at(j), at(d)})), {j}))),
       update(m, m2)});
  tiles->vars = {j};
  Stmt *parallel =
      stmt(Stmt::Parallel, {initM, initL, initAcc, tiles,
                            equation(o, {at(i), at(d)}, {}, binary(checked::Binary::Div, acc, l))});
  parallel->vars = {i, d};
  program.body = {parallel};
  EmitOptions options;
  options.tile = 16;
  std::string text = emit(options);
  EXPECT_EQ(count(text, "tgl.temp \"acc\" : !tgl.tensor<[D], f32>"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.temp \"s\" : !tgl.tensor<[16], f32>"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.temp \"p\" : !tgl.tensor<[16], f32>"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.temp"), 3u) << text;
  EXPECT_EQ(count(text, "size 16 iter"), 1u) << text;
  // Over i; acc's start and update; s; p; o.
  EXPECT_EQ(count(text, "tgl.parallel"), 6u) << text;
}

/// `h[i] = sum(w[i, k] * h[k] for k)`: through a temporary.
TEST_F(EmitTest, ReadsTarget) {
  IndexExpr N = size("N");
  Tensor *w = tensor("w", Tensor::In, {N, N}), *h = tensor("h", Tensor::Inout, {N});
  Var *i = var("i", 0, N), *k = var("k", 0, N);
  Stmt *whole = equation(
      h, {at(i)}, {i}, reduce(Reduction::Sum, mul(read(w, {at(i), at(k)}), read(h, {at(k)})), {k}));
  whole->readsTarget = true;
  Var *j = var("j", 0, N);
  Stmt *pointwise = equation(h, {at(j)}, {j}, mul(read(h, {at(j)}), number(2)));
  pointwise->readsTarget = true;
  program.body = {whole, pointwise};
  std::string text = emit();
  EXPECT_EQ(count(text, "tgl.temp \"h.new\" : !tgl.tensor<[N], f32>"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.temp"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.parallel"), 3u) << text;
}

/// `sum(x[s, t] for s, t in 0:length[s])`: the bounds of t are read inside the sum over s.
TEST_F(EmitTest, RaggedReduction) {
  IndexExpr S = size("S"), T = size("T");
  Tensor *x = tensor("x", Tensor::In, {S, T}),
         *length = tensor("length", Tensor::In, {S}, DType::I32);
  Tensor *y = tensor("y", Tensor::Out, {});
  Var *s = var("s", 0, S);
  Var *end = data("length[s]", read(length, {at(s)}));
  Var *t = var("t", 0, at(end));
  program.body = {equation(y, {}, {}, reduce(Reduction::Mean, read(x, {at(s), at(t)}), {s, t}))};
  std::string text = emit();
  EXPECT_EQ(count(text, "tgl.reduce sum"), 3u) << text; // a sum of sums, and a sum of counts
  EXPECT_EQ(count(text, "tgl.reduce count"), 1u) << text;
}

/// Bounds of an axis that use an earlier axis of the same op.
TEST_F(EmitTest, TriangularAxes) {
  IndexExpr N = size("N");
  Tensor *x = tensor("x", Tensor::In, {N, N}), *y = tensor("y", Tensor::Out, {});
  Var *i = var("i", 0, N);
  Var *j = var("j", at(i), N);
  program.body = {equation(y, {}, {}, reduce(Reduction::Sum, read(x, {at(i), at(j)}), {i, j}))};
  std::string text = emit();
  EXPECT_EQ(count(text, "tgl.reduce sum (%i = 0 to N, %j = %i to N)"), 1u) << text;
}

/// A costly value that varies along fewer axes than the block is computed before it.
TEST_F(EmitTest, HoistedValue) {
  IndexExpr M = size("M"), N = size("N"), K = size("K");
  Tensor *x = tensor("x", Tensor::In, {M, K}), *w = tensor("w", Tensor::In, {K, N}),
         *y = tensor("y", Tensor::Out, {M, N});
  Var *i = var("i", 0, M), *j = var("j", 0, N), *k = var("k", 0, K), *l = var("l", 0, K);
  auto [defMean, mean] = define("mu", reduce(Reduction::Mean, read(x, {at(i), at(l)}), {l}));
  auto [defSum, sum] =
      define("h", reduce(Reduction::Sum,
                         mul(sub(read(x, {at(i), at(k)}), mean), read(w, {at(k), at(j)})), {k}));
  Stmt *parallel = stmt(Stmt::Parallel, {defMean, defSum, equation(y, {at(i), at(j)}, {}, sum)});
  parallel->vars = {i, j};
  program.body = {parallel};
  std::string text = emit();
  EXPECT_EQ(count(text, "tgl.temp \"mu\" : !tgl.tensor<[M], f32>"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.temp"), 1u) << text;
  EXPECT_EQ(count(text, "tgl.parallel"), 2u) << text;
}

} // namespace
