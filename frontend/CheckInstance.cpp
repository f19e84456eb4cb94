//===- CheckInstance.cpp - Signatures: sizes, types, constants, tensors -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A signature becomes sizes, types, constants and tensors, in this order: constants that are given,
// dims of the tensors that are given, defaults, `where` sizes, then every declared dim is held
// against the real one. For the entry the dims are symbols; for a called kernel they are expressions
// in its caller's.
//
//===----------------------------------------------------------------------===//

#include "frontend/Checker.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

Checker::ParamKind Checker::kindOf(const ast::Param &param) {
  const std::string &type = param.type.name;
  if (type == "int" || type == "float")
    return param.hasDims ? ParamKind::Tuple : ParamKind::Constant;
  if (type == "bool" && !param.hasDims)
    return ParamKind::Constant;
  return param.hasDims ? ParamKind::Tensor : ParamKind::Scalar;
}

/// An integer of 64 bits.
static bool isWhole(double value) {
  constexpr double limit = 9223372036854775808.0;
  return value >= -limit && value < limit && value == std::trunc(value);
}

bool Checker::isGeneric(llvm::StringRef name) const {
  return !name.empty() && name[0] >= 'A' && name[0] <= 'Z' &&
         !findInvention(Invention::Type, name);
}

std::optional<DType> Checker::resolveType(const ast::Ident &type) {
  if (std::optional<DType> known = parseDType(type.name))
    return known;
  auto generic = frame->types.find(type.name);
  if (generic != frame->types.end())
    return generic->second;
  if (reportInvention(type.name, type.span, Invention::Type))
    return std::nullopt;
  if (isGeneric(type.name)) {
    Report record = report(Code::GenericUnbound, type.span,
                           "type '" + type.name + "' is bound by no parameter");
    record.note("a capitalised type name stands for the type of the first tensor that shows it");
    return std::nullopt;
  }
  Report record = report(Code::UnknownType, type.span, "unknown type '" + type.name + "'");
  llvm::StringRef near = nearestName(
      type.name, {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8",
                  "i4", "u4", "bool", "int", "float"});
  if (!near.empty())
    record.note("did you mean '" + near.str() + "'?").fix("write " + near.str(), {{type.span, near.str()}});
  else
    record.note("types are f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 i4 u4 bool");
  return std::nullopt;
}

/// The type that `check` takes for an unbound generic name: i64 for what stands in subscripts.
DType Checker::standInType(const ast::Kernel &kernel, llvm::StringRef name) {
  llvm::StringSet<> tensors;
  for (const ast::Param &param : kernel.params)
    if (param.type.name == name)
      tensors.insert(param.name.name);
  bool subscripts = false;
  auto visit = [&](auto &&visit, const ast::Expr &e, bool inSubscript) -> void {
    if (inSubscript && (e.kind == ast::Expr::Index || e.kind == ast::Expr::Name) &&
        tensors.contains(e.name.name))
      subscripts = true;
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
  return subscripts ? DType::I64 : DType::F32;
}

TensorInfo *Checker::newTensor(Tensor::Kind kind, llvm::StringRef name, DType type,
                               std::vector<IndexExpr> dims, Span span) {
  Tensor &tensor = program->tensors.emplace_back();
  tensor.kind = kind;
  tensor.name = name.str();
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.span = span;
  TensorInfo &info = tensorInfos.emplace_back();
  info.tensor = &tensor;
  info.isElement = tensor.dims.empty();
  return &info;
}

void Checker::addSize(llvm::StringRef name, unsigned input, unsigned dim) {
  checked::Size size;
  size.name = name.str();
  size.boundBy = {input, dim};
  program->sizes.push_back(std::move(size));
}

Checker::Given Checker::evalGiven(const ast::Expr &e) {
  Given given;
  given.isGiven = true;
  given.span = e.span;
  if (e.kind == ast::Expr::Tuple) {
    given.isTuple = true;
    for (const ast::ExprPtr &one : e.operands)
      given.tuple.push_back(eval(*one));
    return given;
  }
  if (e.kind == ast::Expr::Name)
    if (Entity *entity = lookup(e.name.name); entity && entity->kind == Entity::Tuple) {
      given.isTuple = true;
      given.tuple = entity->tuple;
      return given;
    }
  given.value = eval(e);
  return given;
}

bool Checker::bindConstant(const ast::Param &param, const Given &given) {
  const std::string &type = param.type.name;
  bool isDefault = !given.isGiven;
  std::string what = "'" + param.name.name + "'";
  auto wrong = [&](Code code, const llvm::Twine &message) {
    report(code, given.span, message)
        .note(what + " is declared here", param.span);
    return false;
  };
  auto convert = [&](Value value, Value &result) {
    if (value.isPoison())
      return false;
    if (type == "int") {
      if (!value.index || usesData(*value.index) || !value.index->isSize())
        return wrong(!value.weak   ? Code::NotAConstant
                     : isDefault   ? Code::BadDefault
                                   : Code::ArgumentKind,
                     what + " expects an integer known when compiling, got " +
                         (value.weak ? "a number that is no integer"
                                     : "a value known only at the launch"));
      requireExact(value.exact, given.span);
      result = indexValue(*value.index, given.span);
      return true;
    }
    if (type == "float") {
      // A scalar of sizes passes as the expression it stands for.
      while (value.expr->kind == Expr::Let)
        value.expr = value.expr->let->value;
      if (!value.weak || value.expr->type == DType::Bool)
        return wrong(Code::NotAConstant,
                     what + " expects a number known when compiling, got a value of type " +
                         toString(value.expr->type));
      result = Value{coerce(value, DType::F64), true, std::nullopt, {}};
      return true;
    }
    std::optional<bool> known = boolOf(value.expr);
    if (!known)
      return wrong(value.expr->type == DType::Bool ? Code::NotAConstant
                   : isDefault                     ? Code::BadDefault
                                                   : Code::ArgumentKind,
                   what + " expects true or false, known when compiling, got " +
                       (value.expr->type == DType::Bool ? "a condition on data"
                                                        : toString(typeAlone(value)).str()));
    result = value;
    return true;
  };
  Entity entity;
  entity.param = &param;
  if (kindOf(param) == ParamKind::Constant) {
    if (given.isTuple)
      return wrong(isDefault ? Code::BadDefault : Code::UnexpectedTuple,
                   what + " takes one value, got a tuple of " + llvm::Twine(given.tuple.size()));
    entity.kind = Entity::Scalar;
    entity.isSize = type == "int";
    if (!convert(given.value, entity.value))
      return false;
  } else {
    entity.kind = Entity::Tuple;
    std::optional<int64_t> length;
    if (param.dims.size() == 1 && !param.dims[0].ellipsis)
      if (std::optional<IndexExpr> size = evalSize(*param.dims[0].expr, "the length of a tuple"))
        length = size->asConstant();
    if (!length || *length < 1 || *length > 64) {
      Report record = report(Code::TupleLength, param.span,
                             "the length of " + what + " must be a constant from 1 to 64");
      if (const Invention *known = findInvention(Invention::Type, type); known && !length) {
        // `x: float[M, N]`
        record.note("'" + type + "[2]' is a tuple of constants; a tensor is " +
                    known->replacement.str() + "[M, N]");
        record.fix("write '" + known->replacement.str() + "'",
                   {{param.type.span, known->replacement.str()}}, Applicability::Safe);
      }
      return false;
    }
    if (given.isTuple && int64_t(given.tuple.size()) != *length)
      return wrong(Code::TupleLength, what + " takes " + llvm::Twine(*length) + " values or one, got " +
                                          llvm::Twine(given.tuple.size()));
    for (int64_t i = 0; i != *length; ++i) {
      Value one;
      if (!convert(given.isTuple ? given.tuple[i] : given.value, one))
        return false;
      entity.tuple.push_back(std::move(one));
    }
  }
  return define(frame->scope, param.name, std::move(entity)) != nullptr;
}

bool Checker::bindDims(const ast::Param &param, llvm::ArrayRef<IndexExpr> dims, unsigned input) {
  size_t written = param.dims.size();
  const ast::Dim *ellipsis = nullptr;
  for (const ast::Dim &dim : param.dims)
    if (dim.ellipsis) {
      if (ellipsis) {
        report(Code::EllipsisMisuse, dim.span, "'...' stands once in a parameter");
        return false;
      }
      ellipsis = &dim;
    }
  if (ellipsis ? dims.size() + 1 < written : dims.size() != written) {
    report(Code::RankMismatch, param.span,
           "'" + param.name.name + "' has " + llvm::Twine(written - (ellipsis ? 1 : 0)) +
               (ellipsis ? " dims or more" : " dims") + ", the argument has " +
               llvm::Twine(dims.size()));
    return false;
  }
  size_t run = dims.size() + 1 - written;
  size_t position = 0;
  for (const ast::Dim &dim : param.dims) {
    if (dim.ellipsis) {
      std::vector<IndexExpr> here(dims.begin() + position, dims.begin() + position + run);
      if (!frame->ellipsis)
        frame->ellipsis = here;
      else if (frame->ellipsis->size() != here.size()) {
        report(Code::RankMismatch, param.span,
               "'...' of '" + param.name.name + "' stands for " + llvm::Twine(here.size()) +
                   " dims, but for " + llvm::Twine(frame->ellipsis->size()) + " before");
        return false;
      }
      position += run;
      continue;
    }
    if (dim.expr && dim.expr->kind == ast::Expr::Name) {
      const ast::Ident &name = dim.expr->name;
      bool isWhere = llvm::any_of(frame->kernel->sizes, [&](const ast::SizeDef &size) {
        return size.name.name == name.name;
      });
      bool isParam = llvm::any_of(frame->kernel->params, [&](const ast::Param &other) {
        return other.name.name == name.name;
      });
      if (!isWhere && !isParam && !frame->scope.names.contains(name.name)) {
        Entity entity;
        entity.kind = Entity::Scalar;
        entity.isSize = true;
        entity.value = indexValue(dims[position], name.span);
        if (!define(frame->scope, name, std::move(entity)))
          return false;
      }
    }
    ++position;
  }
  return true;
}

std::optional<std::vector<IndexExpr>> Checker::evalDims(const ast::Param &param) {
  std::vector<IndexExpr> dims;
  bool failed = false;
  for (const ast::Dim &dim : param.dims) {
    if (dim.ellipsis) {
      if (!frame->ellipsis) {
        report(Code::EllipsisMisuse, dim.span,
               "'...' of '" + param.name.name + "' is bound by no tensor that is given");
        return std::nullopt;
      }
      llvm::append_range(dims, *frame->ellipsis);
      continue;
    }
    if (!dim.expr)
      return std::nullopt;
    // A name that nothing binds is said to be a dim, not just unknown.
    llvm::SmallVector<const ast::Ident *> names;
    auto visit = [&](auto &&visit, const ast::Expr &e) -> void {
      if (e.kind == ast::Expr::Name)
        names.push_back(&e.name);
      for (const ast::ExprPtr &operand : e.operands)
        if (operand)
          visit(visit, *operand);
      for (const ast::Argument &argument : e.arguments)
        visit(visit, *argument.value);
    };
    visit(visit, *dim.expr);
    bool unbound = false;
    for (const ast::Ident *name : names) {
      if (lookup(name->name) || isReserved(name->name))
        continue;
      Report record = report(Code::UnboundDim, name->span,
                             "dim '" + name->name + "' of '" + param.name.name +
                                 "' is bound by no tensor");
      record.note("the first tensor that shows a dim bare binds it; sizes made of others follow the "
                  "outputs: 'where P = N - 2'");
      llvm::StringRef near = nearestName(name->name, visibleNames());
      if (!near.empty())
        record.fix("write '" + near.str() + "'", {{name->span, near.str()}});
      unbound = true;
    }
    if (unbound) {
      failed = true;
      continue;
    }
    std::optional<IndexExpr> size = evalSize(*dim.expr, "a dim");
    if (!size)
      failed = true;
    else
      dims.push_back(*size);
  }
  if (failed)
    return std::nullopt;
  return dims;
}

bool Checker::defineWhereSizes() {
  bool fine = true;
  for (const ast::SizeDef &size : frame->kernel->sizes) {
    if (!size.value)
      return false;
    Value value;
    {
      // The definition as a whole may get the name.
      Saved savedKeep(keepAtoms, true);
      value = eval(*size.value);
    }
    if (value.isPoison()) {
      poison(frame->scope, size.name);
      fine = false;
      continue;
    }
    if (!value.index || !value.index->isSize()) {
      Report record =
          report(Code::NotASize, size.value->span,
                 "'" + size.name.name + "' must be an integer known before the launch, got " +
                     (value.weak ? "a number that is no integer"
                                 : "a value of type " + toString(value.expr->type).str()));
      if (value.weak)
        record.note("sizes divide with '//' (rounding down) or '/' (exactly)");
      else
        record.note("sizes are made of dims and constants; an integer known when compiling is "
                    "declared 'n: int'");
      poison(frame->scope, size.name);
      fine = false;
      continue;
    }
    requireExact(value.exact, size.value->span);
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.isSize = true;
    entity.value = indexValue(defineSize(size.name.name, *value.index), size.value->span);
    if (entity.value.isPoison())
      entity.kind = Entity::Poison;
    if (!define(frame->scope, size.name, std::move(entity)))
      fine = false;
  }
  return fine;
}

bool Checker::bindParams(llvm::ArrayRef<Given> given, Callee *callee) {
  const ast::Kernel &kernel = *frame->kernel;
  bool fine = true;
  // Types, and tensors of the call.
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Tensor || !one.tensor || !isGeneric(param.type.name) ||
        parseDType(param.type.name))
      continue;
    frame->types.try_emplace(param.type.name, one.tensor->tensor->type);
  }
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (one.isGiven && (kindOf(param) == ParamKind::Constant || kindOf(param) == ParamKind::Tuple))
      fine &= bindConstant(param, one);
  }
  for (auto [i, param] : llvm::enumerate(kernel.params))
    if (given[i].tensor)
      fine &= bindDims(param, given[i].tensor->tensor->dims, i);
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    const Given &one = given[i];
    ParamKind kind = kindOf(param);
    if (kind == ParamKind::Scalar) {
      std::optional<DType> type = resolveType(param.type);
      if (!type) {
        fine = false;
        poison(frame->scope, param.name);
        continue;
      }
      Entity entity;
      entity.kind = Entity::Scalar;
      entity.param = &param;
      if (!one.isGiven && param.defaultValue) {
        Value value = eval(*param.defaultValue);
        const Expr *expr = storable(value, *type, "'" + param.name.name + "'", param.defaultValue->span);
        if (!expr) {
          fine = false;
          continue;
        }
        entity.value = strong(expr);
      } else {
        ScalarParam &scalar = program->scalarParams.emplace_back();
        scalar.name = param.name.name;
        scalar.type = *type;
        scalar.span = param.span;
        Expr *use = make(Expr::Scalar, computeType(*type), param.name.span);
        use->scalar = &scalar;
        entity.value = strong(finish(use));
        if (callee) {
          const Expr *passed = storable(one.value, *type, "'" + param.name.name + "'", one.span);
          if (!passed) {
            fine = false;
            continue;
          }
          callee->scalars.push_back({&scalar, passed});
        } else {
          program->scalars.push_back(&scalar);
        }
      }
      fine &= define(frame->scope, param.name, std::move(entity)) != nullptr;
      continue;
    }
  }
  if (!fine)
    return false;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    if (one.isGiven || (kind != ParamKind::Constant && kind != ParamKind::Tuple))
      continue;
    if (!param.defaultValue) {
      fine = false; // reported by the caller
      continue;
    }
    Given fallback = evalGiven(*param.defaultValue);
    fallback.isGiven = false;
    if (!fallback.isTuple && fallback.value.isPoison()) {
      fine = false;
      poison(frame->scope, param.name);
      continue;
    }
    if (!bindConstant(param, fallback)) {
      poison(frame->scope, param.name);
      fine = false;
    }
  }
  if (!fine || !defineWhereSizes())
    return false;

  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    const Given &one = given[i];
    ParamKind kind = kindOf(param);
    if (kind != ParamKind::Tensor)
      continue;
    std::optional<DType> type;
    if (isGeneric(param.type.name) && !frame->types.contains(param.type.name) && !one.tensor)
      type = frame->types[param.type.name] = DType::F32; // nothing of it is given
    else
      type = resolveType(param.type);
    if (!type) {
      fine = false;
      poison(frame->scope, param.name);
      continue;
    }
    std::optional<std::vector<IndexExpr>> declared = evalDims(param);
    if (!declared) {
      fine = false;
      poison(frame->scope, param.name);
      continue;
    }
    TensorInfo *info = nullptr;
    std::optional<double> constantValue;
    if (one.tensor)
      constantValue = one.tensor->tensor->constantValue;
    else if (param.defaultValue) {
      Value value = eval(*param.defaultValue);
      if (value.isPoison()) {
        fine = false;
        continue;
      }
      constantValue = constantOf(value.expr);
      if (!constantValue) {
        report(Code::BadDefault, param.defaultValue->span,
               "the default of '" + param.name.name + "' must be a number");
        fine = false;
        continue;
      }
      if (!isFloat(*type) && !isWhole(*constantValue)) {
        report(Code::BadDefault, param.defaultValue->span,
               "the default of '" + param.name.name + "' must be an integer, its type is " +
                   toString(*type));
        fine = false;
        continue;
      }
    }
    if (one.tensor) {
      const Tensor &argument = *one.tensor->tensor;
      if (argument.type != *type) {
        report(Code::ArgumentKind, one.span.isValid() ? one.span : param.span,
               "'" + param.name.name + "' is " + toString(*type) + ", the argument '" + argument.name +
                   "' is " + toString(argument.type))
            .note("convert it first: t[i] = " + toString(*type).str() + "(" + argument.name + "[i])");
        fine = false;
      }
      if (callee && declared->size() == argument.dims.size())
        for (size_t d = 0; d != declared->size(); ++d)
          if (!requireEqual(argument.dims[d], (*declared)[d], param.span,
                            "dim " + llvm::Twine(d + 1) + " of '" + argument.name + "', given as '" +
                                param.name.name + "'",
                            Code::SizeMismatch))
            fine = false;
      info = newTensor(param.isInout ? Tensor::Inout : Tensor::In, param.name.name, *type,
                       argument.dims, param.span);
    } else {
      info = newTensor(Tensor::In, param.name.name, *type, *declared, param.span);
    }
    info->param = &param;
    info->isComplete = true;
    info->tensor->constantValue = constantValue;
    Entity entity;
    entity.kind = Entity::Tensor;
    entity.tensor = info;
    entity.param = &param;
    fine &= define(frame->scope, param.name, std::move(entity)) != nullptr;
    if (constantValue)
      continue;
    if (callee) {
      callee->arguments.push_back({info->tensor, one.tensor->tensor});
      callee->tensors.push_back(info->tensor);
    } else {
      program->inputs.push_back(info->tensor);
      // What an argument shows is a size: 0 or more.
      for (const IndexExpr &dim : info->tensor->dims)
        if (!dim.asConstant() && !(dim.asVariable() && dim.asVariable()->isSymbol()))
          assume(Condition::nonNegative(dim));
    }
  }
  return fine;
}

/// Keeps what an entry's constant is by default, where that is known without sizes.
void Checker::noteDefault(const ast::Param &param, const Entity &entity) {
  auto note = [&](auto value) { program->constants.push_back({param.name.name, value}); };
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

bool Checker::bindEntry(Frame &entry) {
  const ast::Kernel &kernel = *entry.kernel;
  auto reserve = [&](const std::vector<ast::Param> &params) {
    for (const ast::Param &param : params) {
      symbols.insert(param.name.name);
      for (const ast::Dim &dim : param.dims)
        if (dim.expr && dim.expr->kind == ast::Expr::Name &&
            llvm::none_of(kernel.sizes, [&](const ast::SizeDef &size) {
              return size.name.name == dim.expr->name.name;
            }))
          symbols.insert(dim.expr->name.name);
    }
  };
  reserve(kernel.params);
  reserve(kernel.outputs);

  std::vector<Given> given(kernel.params.size());
  bool fine = true;
  for (const std::vector<ast::Param> *params : {&kernel.params, &kernel.outputs})
    for (const ast::Param &param : *params) {
      const ast::Dim *ellipsis = nullptr;
      if (param.defaultValue && param.defaultValue->kind == ast::Expr::Name &&
          param.defaultValue->name.name == "None") {
        // What a weight that is left out multiplies by, and what others add.
        bool scales = llvm::StringRef(param.name.name).contains("weight") ||
                      param.name.name == "w" || param.name.name == "gamma";
        std::string number = scales ? "1" : "0";
        report(Code::InventedName, param.defaultValue->span,
               "there is no 'None': the default of a parameter is the number that it reads as "
               "where it is left out")
            .fix("write '" + number + "'", {{param.defaultValue->span, number}});
        return false;
      }
      for (const ast::Dim &dim : param.dims)
        if (dim.ellipsis && std::exchange(ellipsis, &dim)) {
          report(Code::EllipsisMisuse, dim.span, "'...' stands once in a parameter");
          return false;
        }
    }
  unsigned input = 0;
  std::map<std::string, std::pair<unsigned, unsigned>> bound; // size -> argument, dim
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    Given &one = given[i];
    one.span = param.name.span;
    ParamKind kind = kindOf(param);
    if (kind == ParamKind::Constant || kind == ParamKind::Tuple) {
      if (param.isInout) {
        report(Code::WrongKind, param.span, "'inout' belongs to tensors");
        fine = false;
      }
      auto value = options.constants.find(param.name.name);
      if (value == options.constants.end()) {
        if (param.defaultValue)
          continue;
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
            std::string name = one.isTuple ? uniqueSymbol(param.name.name + std::to_string(d))
                                           : param.name.name;
            checked::Size size;
            size.name = name;
            size.isOpen = true;
            program->sizes.push_back(std::move(size));
            SizeFacts facts = prover->facts();
            facts.signedSymbols.push_back(name);
            *prover = Prover(std::move(facts));
            Value symbol = indexValue(IndexExpr::symbol(name), param.name.span);
            if (one.isTuple)
              one.tuple.push_back(symbol);
            else
              one.value = symbol;
          }
        } else if (param.type.name == "float") {
          one.value = floatLiteral(1.0, param.name.span);
        } else {
          one.value = strong(boolean(false, param.name.span));
        }
        continue;
      }
      one.isGiven = true;
      if (const int64_t *integer = std::get_if<int64_t>(&value->second)) {
        one.value = indexValue(IndexExpr(*integer), param.name.span);
      } else if (const double *number = std::get_if<double>(&value->second)) {
        one.value = floatLiteral(*number, param.name.span);
      } else if (const bool *flag = std::get_if<bool>(&value->second)) {
        one.value = strong(boolean(*flag, param.name.span));
      } else {
        one.isTuple = true;
        for (int64_t integer : std::get<std::vector<int64_t>>(value->second))
          one.tuple.push_back(indexValue(IndexExpr(integer), param.name.span));
      }
      program->constants.push_back({param.name.name, value->second});
      continue;
    }
    // Generic types.
    if (isGeneric(param.type.name) && !parseDType(param.type.name) &&
        !entry.types.contains(param.type.name)) {
      auto type = options.types.find(param.type.name);
      entry.types[param.type.name] =
          type != options.types.end() ? type->second : standInType(kernel, param.type.name);
    }
    bool isOptional = param.defaultValue != nullptr;
    bool isLeftOut = isOptional && !llvm::is_contained(options.givenOptionals, param.name.name);
    if (kind == ParamKind::Scalar) {
      one.isGiven = !isLeftOut;
      if (param.isInout) {
        report(Code::WrongKind, param.span, "'inout' belongs to tensors, and '" + param.name.name +
                                                "' is a scalar");
        fine = false;
      }
      continue;
    }
    if (isLeftOut)
      continue;
    std::optional<DType> type = resolveType(param.type);
    if (!type) {
      fine = false;
      continue;
    }
    hasDouble |= *type == DType::F64;
    // Bare dims are symbols; what an expression shows is checked at the launch.
    std::vector<IndexExpr> dims;
    bool known = true;
    for (const ast::Dim &dim : param.dims) {
      if (dim.ellipsis) {
        unsigned rank = options.ellipsisRank.value_or(1);
        if (!entry.ellipsis) {
          std::vector<IndexExpr> run;
          for (unsigned q = 0; q != rank; ++q) {
            std::string name = uniqueSymbol("E" + std::to_string(q));
            run.push_back(IndexExpr::symbol(name));
            addSize(name, input, dims.size() + q);
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
      bool isBare = dim.expr->kind == ast::Expr::Name;
      if (isBare) {
        const std::string &name = dim.expr->name.name;
        bool isWhere = llvm::any_of(kernel.sizes, [&](const ast::SizeDef &size) {
          return size.name.name == name;
        });
        bool isParam = llvm::any_of(kernel.params, [&](const ast::Param &other) {
          return other.name.name == name;
        });
        if (!isWhere && !isParam) {
          if (bound.try_emplace(name, input, dims.size()).second) {
            addSize(name, input, dims.size());
            auto fixed = options.sizes.find(name);
            Entity entity;
            entity.kind = Entity::Scalar;
            entity.isSize = true;
            if (fixed != options.sizes.end()) {
              addGuard(Guard::Zero, IndexExpr::symbol(name) - fixed->second, IndexExpr(0),
                       name + " is not " + std::to_string(fixed->second), dim.span);
              entity.value = indexValue(IndexExpr(fixed->second), dim.span);
            } else {
              entity.value = indexValue(IndexExpr::symbol(name), dim.span);
            }
            if (!define(entry.scope, dim.expr->name, std::move(entity)))
              fine = false;
          }
        }
      }
      dims.push_back(IndexExpr(0)); // filled in below, when all names are known
    }
    if (!known) {
      fine = false;
      continue;
    }
    one.isGiven = true;
    ++input;
  }
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    Entity entity;
    entity.param = &param;
    if (kind == ParamKind::Scalar) {
      std::optional<DType> type = resolveType(param.type);
      if (!type) {
        fine = false;
        continue;
      }
      entity.kind = Entity::Scalar;
      if (!one.isGiven) {
        const Expr *expr = storable(eval(*param.defaultValue), *type, "'" + param.name.name + "'",
                                    param.defaultValue->span);
        if (!expr) {
          fine = false;
          continue;
        }
        entity.value = strong(expr);
      } else {
        ScalarParam &scalar = program->scalarParams.emplace_back();
        scalar.name = param.name.name;
        scalar.type = *type;
        scalar.span = param.span;
        program->scalars.push_back(&scalar);
        Expr *use = make(Expr::Scalar, computeType(*type), param.name.span);
        use->scalar = &scalar;
        entity.value = strong(finish(use));
      }
      fine &= define(entry.scope, param.name, std::move(entity)) != nullptr;
      continue;
    }
  }
  if (!fine)
    return false;

  // Constants, defaults and `where` sizes, then the dims of every tensor.
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    if (one.isGiven && (kind == ParamKind::Constant || kind == ParamKind::Tuple))
      fine &= bindConstant(param, one);
  }
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    if (one.isGiven || (kind != ParamKind::Constant && kind != ParamKind::Tuple))
      continue;
    Given fallback = evalGiven(*param.defaultValue);
    fallback.isGiven = false;
    if ((!fallback.isTuple && fallback.value.isPoison()) || !bindConstant(param, fallback)) {
      poison(entry.scope, param.name);
      fine = false;
      continue;
    }
    noteDefault(param, entry.scope.names.find(param.name.name)->second);
  }
  if (!fine || !defineWhereSizes())
    return false;
  // A dim is not used by being declared.
  llvm::StringSet<> usedSizes;
  for (const auto &name : entry.scope.names)
    if (name.second.isUsed)
      usedSizes.insert(name.first());
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Tensor)
      continue;
    if (!one.isGiven)
      continue;
    std::optional<std::vector<IndexExpr>> dims = evalDims(param);
    if (!dims) {
      fine = false;
      continue;
    }
    std::optional<DType> type = resolveType(param.type);
    one.tensor = newTensor(param.isInout ? Tensor::Inout : Tensor::In, param.name.name, *type,
                           std::move(*dims), param.span);
  }
  if (!fine)
    return false;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    Entity entity;
    entity.param = &param;
    if (kind != ParamKind::Tensor)
      continue;
    if (!one.tensor) {
      std::optional<DType> type = resolveType(param.type);
      std::optional<std::vector<IndexExpr>> dims = evalDims(param);
      Value value = eval(*param.defaultValue);
      std::optional<double> constant = value.isPoison() ? std::nullopt : constantOf(value.expr);
      if (!type || !dims || value.isPoison()) {
        fine = false;
        continue;
      }
      if (!constant || (!isFloat(*type) && !isWhole(*constant))) {
        report(Code::BadDefault, param.defaultValue->span,
               "the default of '" + param.name.name + "' must be " +
                   (isFloat(*type) ? "a number" : "an integer"));
        fine = false;
        continue;
      }
      one.tensor = newTensor(Tensor::In, param.name.name, *type, std::move(*dims), param.span);
      one.tensor->tensor->constantValue = constant;
    } else {
      program->inputs.push_back(one.tensor->tensor);
      // What an argument shows is a size: 0 or more.
      for (const IndexExpr &dim : one.tensor->tensor->dims)
        if (!dim.asConstant())
          assume(Condition::nonNegative(dim));
    }
    one.tensor->param = &param;
    one.tensor->isComplete = true;
    entity.kind = Entity::Tensor;
    entity.tensor = one.tensor;
    fine &= define(entry.scope, param.name, std::move(entity)) != nullptr;
  }
  for (auto &name : entry.scope.names)
    if (!name.second.param || name.second.kind == Entity::Tensor)
      name.second.isUsed = usedSizes.contains(name.first());
  return fine;
}

bool Checker::declareOutputs(Frame &of, llvm::SmallVectorImpl<TensorInfo *> &outputs) {
  bool fine = true;
  for (const ast::Param &param : of.kernel->outputs) {
    ParamKind kind = kindOf(param);
    if (kind == ParamKind::Tuple || param.type.name == "int" || param.type.name == "float") {
      Report record = report(Code::UnknownType, param.type.span,
                             "an output has an element type, got '" + param.type.name + "'");
      std::string type = param.type.name == "int" ? "i64" : "f32";
      record.fix("write " + type, {{param.type.span, type}});
      fine = false;
      continue;
    }
    std::optional<DType> type = resolveType(param.type);
    std::optional<std::vector<IndexExpr>> dims = evalDims(param);
    if (!type || !dims) {
      fine = false;
      poison(of.scope, param.name);
      continue;
    }
    for (auto [i, dim] : llvm::enumerate(*dims))
      if (!requireNonNegative(dim, i < param.dims.size() ? param.dims[i].span : param.span,
                              "dim " + llvm::Twine(i + 1) + " of '" + param.name.name + "'"))
        fine = false;
    TensorInfo *info = newTensor(Tensor::Out, param.name.name, *type, std::move(*dims), param.span);
    info->param = &param;
    Entity entity;
    entity.kind = Entity::Tensor;
    entity.tensor = info;
    entity.param = &param;
    if (!define(of.scope, param.name, std::move(entity))) {
      fine = false;
      continue;
    }
    outputs.push_back(info);
    if (!of.caller)
      program->outputs.push_back(info->tensor);
  }
  if (of.kernel->outputs.empty() &&
      llvm::none_of(of.kernel->params, [](const ast::Param &param) { return param.isInout; })) {
    report(Code::NeverDefined, of.kernel->headSpan.isValid() ? of.kernel->headSpan : of.kernel->span,
           "kernel '" + of.kernel->name.name + "' has neither outputs nor inout parameters");
    fine = false;
  }
  return fine;
}

void Checker::finishKernel(Frame &of, llvm::ArrayRef<TensorInfo *> outputs) {
  for (TensorInfo *info : outputs) {
    if (info->isComplete || info->isPoison || info->isSuspect)
      continue;
    if (info->pieces.empty()) {
      // Where its equation was wrong, that was said.
      if (!hasErrors())
        report(Code::NeverDefined, info->tensor->span,
               "output '" + info->tensor->name + "' is never defined")
            .note("write an equation for it: " +
                  elementText(info->tensor->name, info->tensor->dims.size()) + " = ...");
      continue;
    }
    if (!hasErrors())
      requireCovered(*info, info->tensor->span, /*atEnd=*/true);
  }
  if (!of.caller && !hasErrors())
    warnUnused(of);
}

void Checker::warnUnused(Frame &of) {
  for (const ast::Param &param : of.kernel->params) {
    auto found = of.scope.names.find(param.name.name);
    if (found == of.scope.names.end() || found->second.isUsed)
      continue;
    bool dimsUsed = false;
    if (kindOf(param) == ParamKind::Tensor) {
      if (found->second.tensor && found->second.tensor->tensor->constantValue)
        continue; // left out here
      for (const ast::Dim &dim : param.dims) {
        if (dim.ellipsis || !dim.expr || dim.expr->kind != ast::Expr::Name)
          continue;
        auto size = of.scope.names.find(dim.expr->name.name);
        dimsUsed |= size != of.scope.names.end() && size->second.isUsed;
      }
    }
    if (dimsUsed)
      continue;
    report(Code::UnusedParameter, param.name.span,
           "parameter '" + param.name.name + "' is not used");
  }
}
