//===- CheckEntry.cpp - Parameters of the entry kernel ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A signature becomes sizes, types, constants and tensors, in this order: constants that are given,
// the symbols of the dims, scalars, defaults, `where` sizes, then the dims of every tensor, in
// those symbols.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckEntry.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDims.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckSizes.h"

using namespace tegula;
using namespace tegula::checked;

/// The type that `check` takes for an unbound generic name: i64 for what stands in subscripts.
static DType standInType(const ast::Kernel &kernel, llvm::StringRef name) {
  llvm::StringSet<> tensors;
  for (const ast::Param &param : kernel.params)
    if (param.type.name == name)
      tensors.insert(param.name.name);
  bool subscripts = false, hasBits = false;
  auto visit = [&](auto &&visit, const ast::Expr &e, bool inSubscript) -> void {
    if (inSubscript && (e.kind == ast::Expr::Index || e.kind == ast::Expr::Name) &&
        tensors.contains(e.name.name))
      subscripts = true;
    bool isOnBits = (e.kind == ast::Expr::Binary && e.binaryOp >= ast::BinaryOp::BitAnd) ||
                    (e.kind == ast::Expr::Unary && e.unaryOp == ast::UnaryOp::BitNot);
    for (const ast::ExprPtr &operand : e.operands)
      hasBits |= isOnBits && operand && operand->kind == ast::Expr::Index &&
                 tensors.contains(operand->name.name);
    for (const ast::ExprPtr &operand : e.operands)
      if (operand)
        visit(visit, *operand, inSubscript);
    for (const ast::Subscript &subscript : e.subscripts) {
      if (subscript.expr)
        visit(visit, *subscript.expr, true);
      for (const ast::Subscript &member : subscript.members)
        if (member.expr)
          visit(visit, *member.expr, true);
    }
    for (const ast::Argument &argument : e.arguments)
      visit(visit, *argument.value, inSubscript);
    for (const ast::ForItem &item : e.items) {
      if (item.range && item.range->hi)
        visit(visit, *item.range->hi, true);
      if (item.filter)
        visit(visit, *item.filter, false);
    }
  };
  auto body = [&](auto &&body, llvm::ArrayRef<ast::StmtPtr> stmts) -> void {
    for (const ast::StmtPtr &stmt : stmts) {
      if (stmt->value)
        visit(visit, *stmt->value, false);
      for (const ast::Target &target : stmt->targets)
        for (const ast::Subscript &subscript : target.subscripts)
          if (subscript.expr)
            visit(visit, *subscript.expr, true);
      body(body, stmt->body);
    }
  };
  body(body, kernel.body);
  return subscripts ? DType::I64 : hasBits ? DType::I32 : DType::F32;
}

/// Keeps what an entry's constant is by default, where that is known without sizes.
static void noteDefault(CheckContext &ctx, const ast::Param &param, const Entity &entity) {
  auto note = [&](auto value) { ctx.program->constants.push_back({param.name.name, value}); };
  if (entity.kind == Entity::Tuple) {
    std::vector<int64_t> values;
    for (const Value &one : entity.tuple)
      if (std::optional<int64_t> value = one.index ? one.index->asConstant() : std::nullopt)
        values.push_back(*value);
    if (values.size() == entity.tuple.size())
      note(values);
  } else if (entity.value.index) {
    if (std::optional<int64_t> value = entity.value.index->asConstant())
      note(*value);
  } else if (const Expr *expr = entity.value.expr; expr && expr->type == DType::Bool) {
    if (std::optional<bool> value = boolOf(expr))
      note(*value);
  } else if (expr) {
    bool isNegative = expr->kind == Expr::Unary && expr->unary == Unary::Neg;
    if (isNegative)
      expr = expr->operands[0];
    if (expr->kind == Expr::Constant && isFloat(expr->type))
      note(isNegative ? -expr->floatValue : expr->floatValue);
  }
}

/// Takes the names of the signature: no size that is made later gets one of them.
static void reserveSymbols(CheckContext &ctx, const ast::Kernel &kernel) {
  auto reserveSizes = [&](auto &&self, const ast::Expr &e) -> void {
    if (e.kind == ast::Expr::Name && llvm::none_of(kernel.sizes, [&](const ast::SizeDef &size) {
          return size.name.name == e.name.name;
        }))
      ctx.sizeNames.symbols.insert(e.name.name);
    for (const ast::ExprPtr &operand : e.operands)
      if (operand)
        self(self, *operand);
  };
  auto reserve = [&](const std::vector<ast::Param> &params) {
    for (const ast::Param &param : params) {
      ctx.sizeNames.symbols.insert(param.name.name);
      for (const ast::Dim &dim : param.dims)
        if (dim.expr)
          reserveSizes(reserveSizes, *dim.expr);
    }
  };
  reserve(kernel.params);
  reserve(kernel.outputs);
}

/// Parameters have a form that can be bound: a number as default, one `...`.
static bool checkParamForms(CheckContext &ctx, const ast::Kernel &kernel) {
  for (const std::vector<ast::Param> *params : {&kernel.params, &kernel.outputs})
    for (const ast::Param &param : *params) {
      const ast::Dim *ellipsis = nullptr;
      if (param.defaultValue && param.defaultValue->kind == ast::Expr::Name &&
          param.defaultValue->name.name == "None") {
        // What a weight that is left out multiplies by, and what others add.
        bool scales = llvm::StringRef(param.name.name).contains("weight") ||
                      param.name.name == "w" || param.name.name == "gamma";
        std::string number = scales ? "1" : "0";
        ctx.report(Code::InventedName, param.defaultValue->span,
                   "there is no 'None': the default of a parameter is the number that it reads as "
                   "where it is left out")
            .fix("write '" + number + "'", {{param.defaultValue->span, number}});
        return false;
      }
      for (const ast::Dim &dim : param.dims)
        if (dim.ellipsis && std::exchange(ellipsis, &dim)) {
          ctx.report(Code::EllipsisMisuse, dim.span, "'...' stands once in a parameter");
          return false;
        }
    }
  return true;
}

/// The value of a constant that is not given and has no default.
static void leaveConstantOpen(CheckContext &ctx, const ast::Param &param, ParamKind kind,
                              Given &one) {
  // Without a value the integer stays open, a number is 1 and a flag false.
  one.isGiven = true;
  if (param.type.name == "int") {
    size_t length = 1;
    if (kind == ParamKind::Tuple && param.dims.size() == 1 && param.dims[0].expr &&
        param.dims[0].expr->kind == ast::Expr::Integer) {
      length = std::clamp<int64_t>(param.dims[0].expr->intValue, 1, 64);
      one.isTuple = true;
    }
    for (size_t d = 0; d != length; ++d) {
      std::string name =
          one.isTuple ? uniqueSymbol(ctx, param.name.name + std::to_string(d)) : param.name.name;
      checked::Size size;
      size.name = name;
      size.isOpen = true;
      ctx.program->sizes.push_back(std::move(size));
      SizeFacts facts = ctx.prover->facts();
      facts.signedSymbols.push_back(name);
      *ctx.prover = Prover(std::move(facts));
      Value symbol = indexValue(ctx, IndexExpr::symbol(name), param.name.span);
      if (one.isTuple)
        one.tuple.push_back(symbol);
      else
        one.value = symbol;
    }
  } else if (param.type.name == "float") {
    one.value = floatLiteral(ctx, 1.0, param.name.span);
  } else {
    one.value = strong(booleanNode(ctx, false, param.name.span));
  }
}

/// The value of a constant: as it is given, else open; a default is bound later.
static void giveConstant(CheckContext &ctx, const ast::Param &param, ParamKind kind, Given &one) {
  auto value = ctx.options.constants.find(param.name.name);
  if (value == ctx.options.constants.end()) {
    if (param.defaultValue)
      return;
    leaveConstantOpen(ctx, param, kind, one);
    return;
  }
  one.isGiven = true;
  if (const int64_t *integer = std::get_if<int64_t>(&value->second)) {
    one.value = indexValue(ctx, IndexExpr(*integer), param.name.span);
  } else if (const double *number = std::get_if<double>(&value->second)) {
    one.value = floatLiteral(ctx, *number, param.name.span);
  } else if (const bool *flag = std::get_if<bool>(&value->second)) {
    one.value = strong(booleanNode(ctx, *flag, param.name.span));
  } else {
    one.isTuple = true;
    for (int64_t integer : std::get<std::vector<int64_t>>(value->second))
      one.tuple.push_back(indexValue(ctx, IndexExpr(integer), param.name.span));
  }
  ctx.program->constants.push_back({param.name.name, value->second});
}

/// Binds the sizes that are bare dims of the tensor that is argument `input`, and keeps the other
/// dims for later. Whether all dims are known; `fine` is cleared where a name is taken.
static bool bindBareDims(CheckContext &ctx, Frame &entry, const ast::Param &param, unsigned input,
                         llvm::StringSet<> &bound, bool &fine) {
  // Bare dims are symbols; what an expression shows is checked at the launch.
  std::vector<IndexExpr> dims;
  bool known = true;
  for (const ast::Dim &dim : param.dims) {
    if (dim.ellipsis) {
      unsigned rank = ctx.options.ellipsisRank.value_or(1);
      if (!entry.ellipsis) {
        std::vector<IndexExpr> run;
        for (unsigned q = 0; q != rank; ++q) {
          std::string name = uniqueSymbol(ctx, "E" + std::to_string(q));
          run.push_back(IndexExpr::symbol(name));
          addSize(ctx, name, input, dims.size() + q);
        }
        entry.ellipsis = run;
      }
      llvm::append_range(dims, *entry.ellipsis);
      continue;
    }
    if (!dim.expr) {
      known = false;
      break;
    }
    if (dim.expr->kind != ast::Expr::Name) {
      entry.openDims.push_back({&param, &dim, input, unsigned(dims.size()), std::nullopt});
    } else if (const std::string &name = dim.expr->name.name;
               !declares(*entry.kernel, name) && bound.insert(name).second) {
      addSize(ctx, name, input, dims.size());
      Entity entity;
      entity.kind = Entity::Scalar;
      entity.isSize = true;
      entity.value = indexValue(
          ctx, fixedSize(ctx, name, dim.span).value_or(IndexExpr::symbol(name)), dim.span);
      if (!ctx.define(entry.scope, dim.expr->name, std::move(entity)))
        fine = false;
    }
    dims.push_back(IndexExpr(0)); // filled in below, when all names are known
  }
  return known;
}

/// Scalars are parameters of the program, or their defaults.
static bool bindScalars(CheckContext &ctx, Frame &entry, llvm::ArrayRef<Given> given) {
  const ast::Kernel &kernel = *entry.kernel;
  bool fine = true;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Scalar)
      continue;
    std::optional<DType> type = resolveType(ctx, param.type);
    if (!type) {
      fine = false;
      continue;
    }
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.param = &param;
    if (one.isGiven) {
      auto [scalar, value] = addScalar(ctx, param, *type);
      ctx.program->scalars.push_back(scalar);
      entity.value = value;
    } else if (std::optional<Value> value = defaultOf(ctx, param, *type)) {
      entity.value = *value;
    } else {
      fine = false;
      continue;
    }
    fine &= ctx.define(entry.scope, param.name, std::move(entity)) != nullptr;
  }
  return fine;
}

/// Constants that are not given have their defaults.
static bool bindDefaults(CheckContext &ctx, Frame &entry, llvm::ArrayRef<Given> given) {
  const ast::Kernel &kernel = *entry.kernel;
  bool fine = true;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    if (one.isGiven || (kind != ParamKind::Constant && kind != ParamKind::Tuple))
      continue;
    Given fallback = evalGiven(ctx, *param.defaultValue);
    fallback.isGiven = false;
    if ((!fallback.isTuple && fallback.value.isPoison()) || !bindConstant(ctx, param, fallback)) {
      ctx.poison(entry.scope, param.name);
      fine = false;
      continue;
    }
    noteDefault(ctx, param, entry.scope.names.find(param.name.name)->second);
  }
  return fine;
}

/// Tensors with the dims that they declare, in the sizes bound by now.
static bool makeGivenTensors(CheckContext &ctx, const ast::Kernel &kernel,
                             std::vector<Given> &given) {
  bool fine = true;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Tensor)
      continue;
    if (!one.isGiven)
      continue;
    std::optional<std::vector<IndexExpr>> dims = evalDims(ctx, param);
    if (!dims) {
      fine = false;
      continue;
    }
    std::optional<DType> type = resolveType(ctx, param.type);
    one.tensor = newTensor(ctx, param.isInout ? Tensor::Inout : Tensor::In, param.name.name, *type,
                           std::move(*dims), param.span);
  }
  return fine;
}

/// Defines the names of tensors: inputs of the program, or what their defaults fill.
static bool defineTensors(CheckContext &ctx, Frame &entry, std::vector<Given> &given) {
  const ast::Kernel &kernel = *entry.kernel;
  bool fine = true;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    Entity entity;
    entity.param = &param;
    if (kind != ParamKind::Tensor)
      continue;
    if (!one.tensor) {
      std::optional<DType> type = resolveType(ctx, param.type);
      std::optional<std::vector<IndexExpr>> dims = evalDims(ctx, param);
      Value value = eval(ctx, *param.defaultValue);
      std::optional<double> constant = value.isPoison() ? std::nullopt : constantOf(value.expr);
      if (!type || !dims || value.isPoison()) {
        fine = false;
        continue;
      }
      if (!constant || (!isFloat(*type) && !isWhole(*constant))) {
        ctx.report(Code::BadDefault, param.defaultValue->span,
                   "the default of '" + param.name.name + "' must be " +
                       (isFloat(*type) ? "a number" : "an integer"));
        fine = false;
        continue;
      }
      one.tensor = newTensor(ctx, Tensor::In, param.name.name, *type, std::move(*dims), param.span);
      one.tensor->tensor->constantValue = constant;
    } else {
      ctx.program->inputs.push_back(one.tensor->tensor);
      // What an argument shows is a size: 0 or more.
      for (const IndexExpr &dim : one.tensor->tensor->dims)
        if (!dim.asConstant())
          assume(ctx, Condition::nonNegative(dim));
    }
    one.tensor->param = &param;
    one.tensor->isComplete = true;
    entity.kind = Entity::Tensor;
    entity.tensor = one.tensor;
    fine &= ctx.define(entry.scope, param.name, std::move(entity)) != nullptr;
  }
  return fine;
}

bool tegula::bindEntry(CheckContext &ctx, Frame &entry) {
  const ast::Kernel &kernel = *entry.kernel;
  reserveSymbols(ctx, kernel);
  std::vector<Given> given(kernel.params.size());
  bool fine = true;
  if (!checkParamForms(ctx, kernel))
    return false;
  unsigned input = 0;
  llvm::StringSet<> bound; // sizes
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    Given &one = given[i];
    one.span = param.name.span;
    ParamKind kind = kindOf(param);
    if (kind == ParamKind::Constant || kind == ParamKind::Tuple) {
      if (param.isInout) {
        ctx.report(Code::WrongKind, param.span, "'inout' belongs to tensors");
        fine = false;
      }
      giveConstant(ctx, param, kind, one);
      continue;
    }
    // Generic types.
    if (isGeneric(param.type.name) && !parseDType(param.type.name) &&
        !entry.types.contains(param.type.name)) {
      auto type = ctx.options.types.find(param.type.name);
      entry.types[param.type.name] =
          type != ctx.options.types.end() ? type->second : standInType(kernel, param.type.name);
    }
    bool isOptional = param.defaultValue != nullptr;
    bool isLeftOut = isOptional && !llvm::is_contained(ctx.options.givenOptionals, param.name.name);
    if (kind == ParamKind::Scalar) {
      one.isGiven = !isLeftOut;
      if (param.isInout) {
        ctx.report(Code::WrongKind, param.span,
                   "'inout' belongs to tensors, and '" + param.name.name + "' is a scalar");
        fine = false;
      }
      continue;
    }
    if (isLeftOut)
      continue;
    std::optional<DType> type = resolveType(ctx, param.type);
    if (!type) {
      fine = false;
      continue;
    }
    ctx.hasDouble |= *type == DType::F64;
    bool known = bindBareDims(ctx, entry, param, input, bound, fine);
    if (!known) {
      fine = false;
      continue;
    }
    one.isGiven = true;
    ++input;
  }
  fine &= bindScalars(ctx, entry, given);
  if (!fine)
    return false;

  // Constants, defaults and `where` sizes, then the dims of every tensor.
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    if (one.isGiven && (kind == ParamKind::Constant || kind == ParamKind::Tuple))
      fine &= bindConstant(ctx, param, one);
  }
  fine = fine && bindLinearDims(ctx);
  fine &= bindDefaults(ctx, entry, given);
  if (!fine || !bindLinearDims(ctx) || !defineWhereSizes(ctx))
    return false;
  // A dim is not used by being declared.
  llvm::StringSet<> usedSizes;
  for (const auto &name : entry.scope.names)
    if (name.second.isUsed)
      usedSizes.insert(name.first());
  fine &= makeGivenTensors(ctx, kernel, given);
  if (!fine)
    return false;
  fine &= defineTensors(ctx, entry, given);
  for (auto &name : entry.scope.names)
    if (!name.second.param || name.second.kind == Entity::Tensor)
      name.second.isUsed = usedSizes.contains(name.first());
  return fine;
}
