//===- CheckCall.cpp - Calls of kernels -------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A called kernel is checked anew at each call, in its caller's sizes: that is how generic types,
// `...`, constants and left-out tensors get their meaning, and how what goes wrong inside is
// reported at the call that caused it [8.1 - 8.3].
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckCall.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckFunction.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckResult.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckSuggest.h"
#include "frontend/check/observations/CheckObserver.h"
#include "llvm/ADT/StringExtras.h"

using namespace tegula;
using namespace tegula::checked;

static std::optional<std::vector<TensorInfo *>> callCat(CheckContext &ctx, const ast::Expr &call);

static bool isBuiltin(llvm::StringRef name) {
  return false
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) || name == #NAME
#include "dsl/Builtins.def"
      ;
}

/// The kernel that a call of the name is one of, or null. In a kernel its own name is the
/// library's: nothing calls itself.
static const ast::Kernel *findCalled(const CheckContext &ctx, llvm::StringRef name) {
  const ast::Kernel *kernel = ctx.module.findKernel(name, ctx.inLibrary());
  if (kernel && ctx.frame && kernel == ctx.frame->kernel && !ctx.module.isLibrary(*kernel))
    return ctx.module.findKernel(name, /*fromLibrary=*/true);
  return kernel;
}

bool tegula::isKernelCall(CheckContext &ctx, const ast::Expr &e) {
  if (e.kind != ast::Expr::Call || e.isComprehension)
    return false;
  if (const ast::Fn *fn = ctx.module.findFn(e.name.name, ctx.inLibrary());
      fn && !ctx.module.isLibrary(*fn))
    return false;
  // softmax(v, over=j) is the scan, whatever kernels there are.
  for (const ast::Argument &argument : e.arguments)
    if (argument.keyword && argument.keyword->name == "over")
      return false;
  if (findCalled(ctx, e.name.name) || e.name.name == "cat")
    return true;
  // What cannot mean a function either calls itself.
  return ctx.module.findKernel(e.name.name, ctx.inLibrary()) && !isBuiltin(e.name.name) &&
         !ctx.module.findFn(e.name.name) && !findInvention(Invention::Function, e.name.name);
}

std::string tegula::signatureOf(CheckContext &ctx, const ast::Kernel &kernel) {
  std::string result = kernel.name.name + "(";
  for (size_t i = 0; i != kernel.params.size(); ++i) {
    result += (i ? ", " : "") + kernel.params[i].name.name;
    if (kernel.params[i].defaultValue)
      result += "=" + ctx.text(kernel.params[i].defaultValue->span).str();
  }
  return result + ")";
}

TensorInfo *tegula::newTemporary(CheckContext &ctx, llvm::StringRef name, DType type,
                                 std::vector<IndexExpr> dims, Span span) {
  TensorInfo *info = newTensor(ctx, Tensor::Temp, name, type, std::move(dims), span);
  Stmt *definition = appendStmt(ctx, Stmt::TensorDef, span);
  definition->tensor = info->tensor;
  info->home = ctx.sink;
  info->definition = definition;
  info->isComplete = true;
  return info;
}

/// The library's variant for a tuple of that many sizes: layer_norm(x, (H, W)) is _layer_norm2.
static const ast::Kernel *chooseOverload(CheckContext &ctx, const ast::Kernel &kernel,
                                         const ast::Expr &call) {
  if (!ctx.module.isLibrary(kernel))
    return &kernel;
  size_t position = 0;
  for (const ast::Argument &argument : call.arguments) {
    const ast::Param *param = nullptr;
    if (argument.keyword) {
      for (const ast::Param &one : kernel.params)
        if (one.name.name == argument.keyword->name)
          param = &one;
    } else if (position < kernel.params.size()) {
      param = &kernel.params[position++];
    }
    if (!param || kindOf(*param) != ParamKind::Tuple)
      continue;
    size_t length = 0;
    if (argument.value->kind == ast::Expr::Tuple)
      length = argument.value->operands.size();
    else if (argument.value->kind == ast::Expr::Name)
      if (Entity *entity = ctx.lookup(argument.value->name.name);
          entity && entity->kind == Entity::Tuple)
        length = entity->tuple.size();
    if (length < 2)
      continue;
    std::string variant = "_" + kernel.name.name + std::to_string(length);
    if (const ast::Kernel *found = ctx.module.findKernel(variant, /*fromLibrary=*/true))
      return found;
  }
  return &kernel;
}

/// The library's variant for the ranks of the first one or two tensors, or for another dim than the
/// kernel's own: matmul of vectors is _matmul_1_1, glu(x, dim=-2) is _glu_dim2. Of equal
/// parameters.
static const ast::Kernel *chooseVariant(CheckContext &ctx, const ast::Kernel &kernel,
                                        llvm::MutableArrayRef<Given> given) {
  if (!ctx.module.isLibrary(kernel))
    return &kernel;
  llvm::SmallVector<size_t> ranks;
  Given *dim = nullptr;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (one.tensor)
      ranks.push_back(one.tensor->tensor->dims.size());
    if (param.name.name == "dim" && one.isGiven && one.value.index)
      dim = &one;
  }
  auto find = [&](const llvm::Twine &suffix) {
    return ctx.module.findKernel(("_" + kernel.name.name + "_" + suffix).str(),
                                 /*fromLibrary=*/true);
  };
  if (ranks.empty())
    return &kernel;
  std::string first = std::to_string(ranks[0]),
              second = ranks.size() > 1 ? std::to_string(ranks[1]) : "";
  for (const std::string &suffix : {first + "_" + second, first + "_n", "n_" + second, first})
    if (const ast::Kernel *found = find(suffix))
      return found;
  int64_t rank = ranks[0];
  std::optional<int64_t> value = dim ? dim->value.index->asConstant() : std::nullopt;
  if (!value || *value < -rank || *value >= rank)
    return &kernel;
  int64_t fromRight = *value < 0 ? -*value : rank - *value;
  if (const ast::Kernel *found = find("dim" + llvm::Twine(fromRight)))
    return found;
  if (fromRight == 1 || fromRight == rank) // as the kernel's own text has it
    dim->value = indexValue(ctx, IndexExpr(fromRight == 1 ? -1 : 0), dim->span);
  return &kernel;
}

/// Whether a kernel writes where data say: PyTorch's broadcast nothing then.
static bool writesByData(const ast::Kernel &kernel) {
  auto reads = [](auto &self, const ast::Expr &e) -> bool {
    return !e.subscripts.empty() || llvm::any_of(e.operands, [&](const ast::ExprPtr &operand) {
      return operand && self(self, *operand);
    });
  };
  return llvm::any_of(kernel.body, [&](const ast::StmtPtr &stmt) {
    return llvm::any_of(stmt->targets, [&](const ast::Target &target) {
      return llvm::any_of(target.subscripts, [&](const ast::Subscript &one) {
        return one.expr && reads(reads, *one.expr);
      });
    });
  });
}

/// The tensor with `run` in place of the `length` dims from `first`.
static TensorInfo *broadcastRun(CheckContext &ctx, TensorInfo *from, size_t first, size_t length,
                                llvm::ArrayRef<IndexExpr> run, Span span) {
  llvm::ArrayRef<IndexExpr> dims = from->tensor->dims;
  std::vector<IndexExpr> all(dims.begin(), dims.begin() + first);
  all.insert(all.end(), run.begin(), run.end());
  all.insert(all.end(), dims.begin() + first + length, dims.end());
  TensorInfo *to = newTemporary(ctx, from->tensor->name + "_batch", from->tensor->type, all, span);
  Stmt *copy = appendStmt(ctx, Stmt::Equation, span);
  copy->tensor = to->tensor;
  std::vector<Subscript> subscripts;
  size_t missing = run.size() - length;
  for (auto [d, size] : llvm::enumerate(all)) {
    const Var *var = newVar(ctx, Var::Axis, "i" + std::to_string(d), IndexExpr(0), size, span);
    copy->vars.push_back(var);
    copy->subscripts.push_back(IndexExpr::dim(var->id));
    if (d >= first && d < first + missing)
      continue;
    bool repeats = d >= first && d < first + run.size() && dims[d - missing].asConstant() == 1;
    if (repeats)
      subscripts.push_back({IndexExpr(0), {}, span, nullptr});
    else
      subscripts.push_back({IndexExpr::dim(var->id), {}, span, var});
  }
  Saved savedVars(ctx.activeVars, copy->vars);
  const Expr *value = readTensor(ctx, *from, subscripts, nullptr, span);
  copy->value =
      value ? storable(ctx, strong(value), to->tensor->type, "'" + to->tensor->name + "'", span)
            : nullptr;
  return copy->value ? to : nullptr;
}

/// The runs of dims that `...` of a library kernel stands for, broadcast as PyTorch does: counted
/// from the right, a dim of 1 or a missing one repeats.
static bool broadcastRuns(CheckContext &ctx, const ast::Kernel &kernel,
                          llvm::MutableArrayRef<Given> given, Span span) {
  struct Run {
    Given *argument;
    size_t first, length;
  };
  llvm::SmallVector<Run> runs;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Tensor || !one.tensor || one.tensor->tensor->constantValue ||
        param.isInout)
      continue;
    auto ellipsis = llvm::find_if(param.dims, [](const ast::Dim &dim) { return dim.ellipsis; });
    size_t rank = one.tensor->tensor->dims.size();
    if (ellipsis == param.dims.end() || rank + 1 < param.dims.size())
      continue;
    runs.push_back({&one, size_t(ellipsis - param.dims.begin()), rank + 1 - param.dims.size()});
  }
  auto dimOf = [](const Run &run, size_t fromRight) -> const IndexExpr & {
    return run.argument->tensor->tensor->dims[run.first + run.length - 1 - fromRight];
  };
  size_t length = 0;
  for (const Run &run : runs)
    length = std::max(length, run.length);
  std::vector<IndexExpr> common(length, IndexExpr(1));
  for (size_t k = 0; k != length; ++k)
    for (const Run &run : runs)
      if (k < run.length && common[length - 1 - k].asConstant() == 1)
        common[length - 1 - k] = dimOf(run, k);
  for (const Run &run : runs) {
    bool differs = run.length != length;
    for (size_t k = 0; k != run.length; ++k)
      differs |= dimOf(run, k).asConstant() == 1 && common[length - 1 - k].asConstant() != 1;
    if (!differs)
      continue;
    run.argument->tensor =
        broadcastRun(ctx, run.argument->tensor, run.first, run.length, common, span);
    if (!run.argument->tensor)
      return false;
  }
  return true;
}

/// What each parameter of the called kernel gets, evaluated in the caller.
static bool evalArguments(CheckContext &ctx, const ast::Expr &call, const ast::Kernel &kernel,
                          llvm::ArrayRef<const ast::Expr *> arguments, std::vector<Given> &given) {
  bool failed = false;
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    Given &one = given[i];
    one.span = call.span;
    if (!arguments[i])
      continue;
    const ast::Expr &argument = *arguments[i];
    switch (kindOf(param)) {
    case ParamKind::Tensor: {
      one.tensor = tensorArgument(ctx, argument, param.name.name, call.name.name);
      one.isGiven = true;
      if (!one.tensor) {
        failed = true;
        break;
      }
      requireReadable(ctx, *one.tensor, argument.span, {});
      if (!param.isInout)
        break;
      Tensor::Kind kind = one.tensor->tensor->kind;
      if (kind == Tensor::In || one.tensor->tensor->constantValue) {
        Report record = ctx.report(Code::InoutArgument, argument.span,
                                   "'" + param.name.name + "' of '" + call.name.name +
                                       "' is updated in place, and '" + one.tensor->tensor->name +
                                       "' is an input");
        suggestInout(ctx, record, *one.tensor);
        failed = true;
      }
      break;
    }
    case ParamKind::Scalar:
      one = Given{};
      one.isGiven = true;
      one.span = argument.span;
      one.value = eval(ctx, argument);
      failed |= one.value.isPoison();
      break;
    default:
      one = evalGiven(ctx, argument);
      failed |= !one.isTuple && one.value.isPoison();
      break;
    }
    one.span = argument.span;
  }
  return !failed;
}

std::optional<std::vector<TensorInfo *>> tegula::callKernel(CheckContext &ctx,
                                                            const ast::Expr &call) {
  if (ctx.block.isActive) {
    ctx.report(Code::BadNesting, call.span,
               "kernel '" + call.name.name +
                   "' works on whole tensors and is called outside of parallel "
                   "blocks");
    return std::nullopt;
  }
  const ast::Kernel *kernel = findCalled(ctx, call.name.name);
  if (!kernel && call.name.name == "cat")
    return callCat(ctx, call);
  kernel = kernel ? chooseOverload(ctx, *kernel, call) : ctx.frame->kernel;
  bool isLibrary = ctx.module.isLibrary(*kernel);
  for (const Frame *at = ctx.frame; at; at = at->caller)
    if (at->kernel == kernel) {
      ctx.report(Code::Recursion, call.span,
                 "kernel '" + call.name.name + "' calls itself; recursion is an error");
      return std::nullopt;
    }
  if (!mayExpand(ctx, call.span, 8))
    return std::nullopt;
  llvm::SmallVector<const ast::Expr *> arguments;
  if (!mapArguments(ctx, call, *kernel, arguments))
    return std::nullopt;

  // Arguments belong to the caller.
  std::vector<Given> given(kernel->params.size());
  if (!evalArguments(ctx, call, *kernel, arguments, given))
    return std::nullopt;
  for (auto [i, param] : llvm::enumerate(kernel->params))
    for (auto [j, other] : llvm::enumerate(given))
      if (param.isInout && i != j && given[i].tensor && given[i].tensor == other.tensor) {
        ctx.report(Code::InoutArgument, call.span,
                   "'" + given[i].tensor->tensor->name + "' is passed twice, and '" +
                       param.name.name + "' is updated in place");
        return std::nullopt;
      }

  kernel = chooseVariant(ctx, *kernel, given);
  if (isLibrary && !writesByData(*kernel) && !broadcastRuns(ctx, *kernel, given, call.span))
    return std::nullopt;

  auto callee = std::make_unique<Callee>();
  callee->name = kernel->name.name;
  Frame inner;
  inner.kernel = kernel;
  inner.isLibrary = isLibrary;
  inner.caller = ctx.frame;
  inner.body = &callee->body;
  llvm::SmallVector<TensorInfo *> outputs;
  unsigned errors = ctx.numErrors();
  {
    Saved savedFrame(ctx.frame, &inner);
    Saved savedScope(ctx.scope, &inner.scope);
    Saved savedSink(ctx.sink, &callee->body);
    Saved savedVars(ctx.activeVars, std::vector<const Var *>());
    Saved savedPath(ctx.path, std::vector<PathCondition>());
    Saved savedLoops(ctx.loops, std::vector<unsigned>());
    Saved savedKeep(ctx.sizeNames.keepAtoms, false);
    ctx.expansions.push_back({call.span, call.name.name, true, isLibrary, kernel});
    if (bindParams(ctx, given, callee.get()) && declareOutputs(ctx, inner, outputs)) {
      loseNames(ctx, inner);
      checkBody(ctx, kernel->body);
      finishKernel(ctx, inner, outputs);
    }
    ctx.expansions.pop_back();
  }
  callee->precision = inner.precision;
  if (ctx.numErrors() != errors)
    return std::nullopt;
  for (auto [param, one] : llvm::zip(kernel->params, given))
    if (param.isInout && one.tensor && one.tensor->tensor->kind == Tensor::Out)
      one.tensor->isComplete = true;

  std::vector<TensorInfo *> results;
  for (TensorInfo *output : outputs) {
    callee->tensors.push_back(output->tensor);
    TensorInfo *result = newTemporary(ctx, kernel->name.name + "_" + output->tensor->name,
                                      output->tensor->type, output->tensor->dims, call.span);
    callee->results.push_back({output->tensor, result->tensor});
    results.push_back(result);
  }
  Stmt *stmt = appendStmt(ctx, Stmt::Call, call.span);
  stmt->callee = std::move(callee);
  if (isLibrary)
    for (const TensorInfo *result : results)
      watchResult(ctx, call.span, *result->tensor);
  return results;
}

/// `t[i, j] = i64(a[i, j])`, of the one of two tensors whose type the other's holds.
static std::string conversionOf(const Tensor &a, const Tensor &b) {
  auto rank = [](DType type) {
    unsigned bits = 0; // of bool, the narrowest
    toString(type).drop_until(llvm::isDigit).take_while(llvm::isDigit).getAsInteger(10, bits);
    return std::pair(width(computeType(type)), bits);
  };
  bool isFirst = rank(a.type) < rank(b.type);
  const Tensor &narrow = isFirst ? a : b;
  std::string place = elementText("t", narrow.dims.size());
  return place + " = " + toString(isFirst ? b.type : a.type).str() + "(" +
         elementText(narrow.name, narrow.dims.size()) + ")";
}

static std::optional<std::vector<TensorInfo *>> callCat(CheckContext &ctx, const ast::Expr &call) {
  std::vector<TensorInfo *> parts;
  std::vector<Span> spans;
  if (!checkKeywords(ctx, call, {"dim"}))
    return std::nullopt;
  bool failed = false;
  for (const ast::Argument &argument : call.arguments) {
    if (argument.keyword)
      continue;
    TensorInfo *part = tensorArgument(ctx, *argument.value, "each argument", "cat");
    if (!part) {
      failed = true;
      continue;
    }
    requireReadable(ctx, *part, argument.value->span, {});
    parts.push_back(part);
    spans.push_back(argument.value->span);
  }
  if (failed)
    return std::nullopt;
  if (parts.empty()) {
    ctx.report(Code::MissingArgument, call.span, "'cat' joins tensors: h = cat(a, b, dim=1)");
    return std::nullopt;
  }
  int64_t rank = parts[0]->tensor->dims.size(), dim = 0;
  if (const ast::Expr *given = keywordArgument(call, "dim")) {
    std::optional<IndexExpr> value = evalSize(ctx, *given, "dim=");
    if (!value)
      return std::nullopt;
    if (!value->asConstant() || *value->asConstant() >= rank || *value->asConstant() < -rank) {
      ctx.report(Code::NotAConstant, given->span,
                 "dim= expects a constant from " + llvm::Twine(-rank) + " to " +
                     llvm::Twine(rank - 1));
      return std::nullopt;
    }
    dim = *value->asConstant();
    if (dim < 0)
      dim += rank;
  }
  if (rank == 0) {
    ctx.report(Code::ArgumentKind, spans[0],
               "'cat' joins tensors, and '" + parts[0]->tensor->name + "' is a scalar");
    return std::nullopt;
  }
  DType type = parts[0]->tensor->type;
  std::vector<IndexExpr> dims = parts[0]->tensor->dims;
  for (size_t i = 1; i < parts.size(); ++i) {
    const Tensor &part = *parts[i]->tensor;
    if (int64_t(part.dims.size()) != rank) {
      ctx.report(Code::RankMismatch, spans[i],
                 "'cat' joins tensors of as many dims: '" + part.name + "' has " +
                     llvm::Twine(part.dims.size()) + ", '" + parts[0]->tensor->name + "' has " +
                     llvm::Twine(rank));
      return std::nullopt;
    }
    // As elsewhere in the library, floats may differ: the result has the first one's type.
    if (part.type != type && !(isFloat(part.type) && isFloat(type))) {
      ctx.report(Code::ArgumentKind, spans[i],
                 "'cat' joins floats, or integers of one type: '" + part.name + "' is " +
                     toString(part.type) + ", '" + parts[0]->tensor->name + "' is " +
                     toString(type))
          .note("convert the narrower one first: " + conversionOf(*parts[0]->tensor, part));
      return std::nullopt;
    }
    for (int64_t d = 0; d != rank; ++d) {
      if (d == dim)
        dims[d] = dims[d] + part.dims[d];
      else if (!requireEqual(ctx, dims[d], part.dims[d], spans[i],
                             "dim " + llvm::Twine(d + 1) + " of '" + parts[0]->tensor->name +
                                 "' and '" + part.name + "', joined along dim " +
                                 llvm::Twine(dim + 1),
                             Code::SizeMismatch))
        return std::nullopt;
    }
  }
  TensorInfo *result = newTemporary(ctx, "cat", type, dims, call.span);
  IndexExpr offset(0);
  for (TensorInfo *part : parts) {
    if (!copyTensor(ctx, part, result, dim, offset, call.span))
      return std::nullopt;
    offset = offset + part->tensor->dims[dim];
  }
  return std::vector<TensorInfo *>{result};
}

bool tegula::checkCallAssign(CheckContext &ctx, const ast::Stmt &stmt) {
  auto poisonAll = [&] {
    for (const ast::Target &target : stmt.targets)
      ctx.poison(*ctx.scope, target.name);
    for (const ast::Target &target : stmt.targets)
      if (Entity *entity = ctx.lookup(target.name.name); entity && entity->kind == Entity::Tensor)
        entity->tensor->isSuspect = true;
    return false;
  };
  if (stmt.accumulate) {
    ctx.report(Code::BadAccumulation, stmt.span,
               "'" + ast::spelling(stmt.combine) +
                   "' changes elements; the result of a kernel is a whole tensor")
        .note("give it a name, then accumulate its elements");
    return poisonAll();
  }
  if (!stmt.trailing.empty()) {
    ctx.report(Code::BadTarget, stmt.span,
               "'for' belongs to equations, and this is the result of a kernel");
    return poisonAll();
  }
  auto results = callKernel(ctx, *stmt.value);
  if (!results)
    return poisonAll();
  if (results->size() != stmt.targets.size()) {
    ctx.report(Code::ResultCount, stmt.span,
               "'" + stmt.value->name.name + "' gives " + llvm::Twine(results->size()) +
                   (results->size() == 1 ? " result, " : " results, ") +
                   llvm::Twine(stmt.targets.size()) +
                   (stmt.targets.size() == 1 ? " name on the left" : " names on the left"));
    return poisonAll();
  }
  bool fine = true;
  for (auto [target, result] : llvm::zip(stmt.targets, *results))
    fine &= storeResult(ctx, target, result, stmt.value->span);
  return fine;
}

bool tegula::checkCallStatement(CheckContext &ctx, const ast::Stmt &stmt) {
  if (!stmt.value)
    return false;
  const ast::Expr &call = *stmt.value;
  const ast::Kernel *kernel =
      call.kind == ast::Expr::Call ? findCalled(ctx, call.name.name) : nullptr;
  if (call.kind != ast::Expr::Call || !isKernelCall(ctx, call)) {
    if (call.kind == ast::Expr::Call && !ctx.module.findFn(call.name.name, ctx.inLibrary()) &&
        !parseDType(call.name.name)) {
      llvm::StringRef name = call.name.name;
      if (!isBuiltin(name)) {
        unknownName(ctx, call.name, true);
        return false;
      }
    }
    ctx.report(Code::NotAStatement, stmt.span, "the value of this call goes nowhere")
        .note("a statement defines something: y[i] = ..., or calls a kernel that updates an inout");
    return false;
  }
  if (!kernel || !kernel->outputs.empty()) {
    Report record = ctx.report(Code::NotAStatement, stmt.span,
                               "the result of '" + call.name.name + "' goes nowhere");
    record.note("give it a name: h = " + ctx.text(call.span).str());
    suggestResult(ctx, record, call, kernel);
    return false;
  }
  return callKernel(ctx, call).has_value();
}
