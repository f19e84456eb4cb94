//===- PlanJson.cpp - A kernel's launch plan as data ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/publish/PlanJson.h"
#include "runtime/PlanMemory.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static json::Value exprOf(const IndexExpr &expr);

/// The names of IndexExpr::FloatOp, in its order.
static constexpr const char *floatNames[] = {
    "+",   "-",     "*",    "/",     "//",    "%",    "**",  "max",  "min", "neg",
    "abs", "floor", "ceil", "round", "trunc", "sqrt", "exp", "exp2", "log", "log2"};

static json::Value floatsOf(ArrayRef<IndexExpr> steps) {
  json::Array result{"float"};
  for (size_t at = 0; at + 1 < steps.size(); at += 2) {
    switch (static_cast<IndexExpr::FloatStep>(*steps[at].asConstant())) {
    case IndexExpr::FloatStep::Push:
      result.push_back("push");
      result.push_back(exprOf(steps[at + 1]));
      break;
    case IndexExpr::FloatStep::Number:
      result.push_back("number");
      result.push_back(*steps[at + 1].asConstant());
      break;
    case IndexExpr::FloatStep::Apply:
      result.push_back("apply");
      result.push_back(floatNames[*steps[at + 1].asConstant()]);
      break;
    }
  }
  return result;
}

static json::Value variableOf(const IndexVar &var) {
  if (var.isSymbol())
    return var.name().str(); // the variable may be a copy
  return json::Array{"loop", var.position()};
}

static json::Value atomOf(const IndexExpr::Atom &atom) {
  auto list = [&](const char *name) {
    json::Array result{name};
    for (const IndexExpr &operand : atom.operands)
      result.push_back(exprOf(operand));
    return result;
  };
  switch (atom.kind) {
  case IndexExpr::AtomKind::Variable:
    return variableOf(atom.var);
  case IndexExpr::AtomKind::FloorDiv:
    return list("//");
  case IndexExpr::AtomKind::Min:
    return list("min");
  case IndexExpr::AtomKind::Max:
    return list("max");
  case IndexExpr::AtomKind::Select: {
    json::Array result = list("where");
    result.insert(result.begin() + 1, atom.cmp == IndexExpr::Cmp::EQ ? "==" : "<=");
    return result;
  }
  case IndexExpr::AtomKind::Float:
    return floatsOf(atom.operands);
  }
  llvm_unreachable("all kinds of atoms are written");
}

/// Null where it has overflowed.
static json::Value exprOf(const IndexExpr &expr) {
  if (expr.isOverflow())
    return nullptr;
  if (std::optional<int64_t> value = expr.asConstant())
    return *value;
  if (std::optional<IndexVar> var = expr.asVariable())
    return variableOf(*var);
  json::Array sum{"+"};
  for (const IndexExpr::Term &term : expr.terms()) {
    json::Array product{"*", term.coefficient};
    for (const auto &[atom, power] : term.factors)
      for (unsigned i = 0; i != power; ++i)
        product.push_back(atomOf(*atom));
    sum.push_back(std::move(product));
  }
  return sum;
}

static json::Array exprsOf(ArrayRef<IndexExpr> exprs) {
  json::Array result;
  for (const IndexExpr &expr : exprs)
    result.push_back(exprOf(expr));
  return result;
}

//===----------------------------------------------------------------------===//
// Arguments, sizes, guards
//===----------------------------------------------------------------------===//

static IndexExpr withDim(const IndexExpr &expr, unsigned dim, int64_t value) {
  return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    return !var.isSymbol() && var.position() == dim ? std::optional(IndexExpr(value))
                                                    : std::nullopt;
  });
}

/// Of a subscript that is linear in the points of its box: what each adds, so that the corners
/// decide it. Nothing where it is not, or where conditions choose the points.
static std::optional<json::Object> linearOf(const GuardSpec &guard) {
  auto isSize = [](const IndexExpr &expr) { return expr.isSize(); };
  if (!guard.conditions.empty() || !guard.rhs.isSize() || !all_of(guard.lows, isSize) ||
      !all_of(guard.highs, isSize))
    return std::nullopt;
  json::Array weights;
  IndexExpr rest = guard.lhs;
  for (unsigned k = 0; k != guard.lows.size(); ++k) {
    IndexExpr base = withDim(rest, k, 0), weight = withDim(rest, k, 1) - base;
    if (!weight.isSize() || base + weight * IndexExpr::dim(k) != rest)
      return std::nullopt;
    weights.push_back(exprOf(weight));
    rest = base;
  }
  return json::Object{{"rest", exprOf(rest)}, {"weights", std::move(weights)}};
}

static json::Array guardsOf(const CompiledKernel &kernel) {
  static const char *kinds[] = {"not negative", "zero", "not zero", "divides", "in bounds"};
  json::Array result;
  for (const GuardSpec &guard : kernel.checks->guards()) {
    json::Object one{
        {"kind", kinds[guard.kind]},
        {"lhs", exprOf(guard.lhs)},
        {"rhs", exprOf(guard.rhs)},
        {"message", json::fixUTF8(guard.message.empty() ? guard.str() : guard.message)}};
    if (guard.kind == GuardSpec::InBounds) {
      one["lows"] = exprsOf(guard.lows);
      one["highs"] = exprsOf(guard.highs);
      one["conditions"] = exprsOf(guard.conditions);
      if (std::optional<json::Object> linear = linearOf(guard))
        one["linear"] = std::move(*linear);
    }
    result.push_back(std::move(one));
  }
  return result;
}

static json::Array argumentsOf(const CompiledKernel &kernel) {
  static const char *roles[] = {"in", "inout", "out", "scalar"};
  json::Array result;
  for (const KernelArgument &argument : kernel.arguments)
    result.push_back(json::Object{{"name", argument.name},
                                  {"role", roles[argument.role]},
                                  {"dtype", toString(argument.dtype)},
                                  {"declared", toString(argument.declared)},
                                  {"dims", exprsOf(argument.dims)}});
  return result;
}

static json::Array sizesOf(const CompiledKernel &kernel) {
  json::Array result;
  for (const SizeSpec &size : kernel.checks->sizes()) {
    json::Object one{{"name", size.name}};
    if (size.boundBy)
      one["bound"] = json::Array{size.boundBy->first, size.boundBy->second};
    else
      one["value"] = exprOf(size.definition);
    result.push_back(std::move(one));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

static json::Value functionOf(const PlanFunction &function) {
  if (function.name.empty())
    return nullptr;
  return json::Object{{"name", function.name},
                      {"threads", function.threads},
                      {"units_per_block", function.unitsPerBlock},
                      {"points_per_unit", function.pointsPerUnit},
                      {"units", int64_t(function.units)},
                      {"cluster", function.cluster},
                      {"shared", function.sharedBytes},
                      {"workspace", exprOf(function.workspaceBytes)}};
}

static json::Object tilesOf(const PlanTiles &tiles) {
  json::Array launches;
  for (const PlanTileLaunch &launch : tiles.launches)
    launches.push_back(json::Object{{"function", launch.function},
                                    {"blocks", exprOf(launch.blocks)},
                                    {"threads", launch.threads},
                                    {"shared", launch.sharedBytes},
                                    {"dependent", launch.usesDependentLaunch}});
  return json::Object{{"launches", std::move(launches)},
                      {"workspace", exprOf(tiles.workspaceBytes)},
                      {"zeroed", tiles.isZeroed},
                      {"largest", exprOf(tiles.largestNumber)},
                      {"aligned", json::Array(tiles.aligned)}};
}

static json::Array argumentOf(const PlanArgument &argument) {
  switch (argument.kind) {
  case PlanArgument::Buffer:
    return json::Array{"buffer", argument.index};
  case PlanArgument::Size:
    return json::Array{"size", exprOf(argument.size)};
  case PlanArgument::Scalar:
    return json::Array{"scalar", argument.index};
  case PlanArgument::Errors:
    return json::Array{"errors"};
  case PlanArgument::Workspace:
    return json::Array{"workspace"};
  }
  llvm_unreachable("all kinds of arguments are written");
}

static json::Object stepOf(const PlanStep &step) {
  switch (step.kind) {
  case PlanStep::Zero:
    return json::Object{{"kind", "zero"}, {"buffer", step.buffer}};
  case PlanStep::Loop: {
    json::Array body;
    for (const PlanStep &inner : step.body)
      body.push_back(stepOf(inner));
    return json::Object{{"kind", "loop"},
                        {"low", exprOf(step.low)},
                        {"high", exprOf(step.high)},
                        {"reverse", step.reverse},
                        {"body", std::move(body)}};
  }
  case PlanStep::Launch:
    break;
  }
  static const char *units[] = {"points", "thread", "team"};
  json::Array arguments;
  for (const PlanArgument &argument : step.arguments)
    arguments.push_back(argumentOf(argument));
  return json::Object{{"kind", "launch"},
                      {"thread", functionOf(step.byThread)},
                      {"team", functionOf(step.byTeam)},
                      {"tiles", tilesOf(step.tiles)},
                      {"points", exprOf(step.points)},
                      {"unit", units[step.unit]},
                      {"arguments", std::move(arguments)}};
}

static json::Object planOf(const Plan &plan) {
  json::Array buffers, steps;
  std::vector<std::optional<Lifetime>> lives = lifetimesOf(plan);
  for (auto [buffer, life] : zip_equal(plan.buffers, lives))
    buffers.push_back(json::Object{
        {"name", buffer.name},
        {"argument", buffer.argument},
        {"bytes", exprOf(buffer.bytes)},
        {"life", life ? json::Value(json::Array{life->first, life->last}) : json::Value(nullptr)}});
  for (const PlanStep &step : plan.steps)
    steps.push_back(stepOf(step));
  return json::Object{{"buffers", std::move(buffers)},
                      {"steps", std::move(steps)},
                      {"dependent_launches", plan.dependentLaunches}};
}

json::Object planJson(const CompiledKernel &kernel) {
  json::Array errors;
  for (const KernelErrorSite &site : kernel.errorSites)
    errors.push_back(
        json::Object{{"place", json::fixUTF8(site.place)}, {"text", json::fixUTF8(site.text)}});
  return json::Object{{"arguments", argumentsOf(kernel)},
                      {"sizes", sizesOf(kernel)},
                      {"guards", guardsOf(kernel)},
                      {"plan", planOf(kernel.plan)},
                      {"errors", std::move(errors)}};
}

} // namespace tegula
