//===- EmitIR.cpp - Kernels, calls, sizes and guards ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIR.h"
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "frontend/lower/EmitIRReduce.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

OwningOpRef<ModuleOp> tegula::emitIR(const checked::Program &program, const SourceManager &sources,
                                     MLIRContext &context, const EmitOptions &options) {
  context.loadDialect<tgl::TglDialect, arith::ArithDialect, math::MathDialect>();
  return Emitter(program, sources, context, options).emit();
}

Emitter::Emitter(const Program &program, const SourceManager &sources, MLIRContext &context,
                 const EmitOptions &options)
    : program(program), sources(sources), context(context), options(options), builder(&context),
      analysis(program) {}

Location Emitter::locate(Span span) {
  Location loc = UnknownLoc::get(&context);
  if (span.isValid()) {
    auto [line, column] = sources.lineAndColumn(span.file, span.begin);
    loc = FileLineColLoc::get(&context, sources.name(span.file), line, column);
  }
  return callSite ? Location(CallSiteLoc::get(loc, *callSite)) : loc;
}

tgl::TglTensorType Emitter::tensorType(ArrayRef<IndexExpr> dims, Type element) {
  SmallVector<tgl::IndexExprAttr> attrs;
  for (const IndexExpr &dim : dims)
    attrs.push_back(tgl::IndexExprAttr::get(&context, dim));
  return tgl::TglTensorType::get(&context, attrs, element);
}

tgl::TglTensorType Emitter::tensorType(const Tensor &tensor) {
  return tensorType(tensor.dims, typeOf(*this, tensor.type));
}

OwningOpRef<ModuleOp> Emitter::emit() {
  OwningOpRef<ModuleOp> result = ModuleOp::create(builder, locate(program.span));
  module = *result;
  kernelNames.insert(program.name);
  emitEntry();
  return result;
}

//===----------------------------------------------------------------------===//
// The entry kernel
//===----------------------------------------------------------------------===//

void Emitter::emitEntry() {
  SmallVector<tgl::KernelArgument> arguments;
  for (const Tensor *tensor : program.inputs)
    arguments.push_back(
        {tensor->name, tensor->kind == Tensor::Inout ? "inout" : "in", tensorType(*tensor)});
  for (const Tensor *tensor : program.outputs)
    arguments.push_back({tensor->name, "out", tensorType(*tensor)});
  for (const ScalarParam *scalar : program.scalars)
    arguments.push_back({scalar->name, "scalar", computeTypeOf(*this, scalar->type)});

  builder.setInsertionPointToEnd(module.getBody());
  auto kernel = tgl::KernelOp::create(builder, locate(program.span), program.name, arguments);
  // Code takes a scalar in its compute type; whoever launches keeps it to the declared one.
  unsigned firstScalar = arguments.size() - program.scalars.size();
  for (auto [index, scalar] : llvm::enumerate(program.scalars))
    if (typeOf(*this, scalar->type) != computeTypeOf(*this, scalar->type))
      kernel.setArgAttr(firstScalar + index, "tgl.type",
                        TypeAttr::get(typeOf(*this, scalar->type)));
  SmallVector<Attribute> sizes, guards;
  for (const Size &size : program.sizes)
    sizes.push_back(sizeAttr(size));
  for (const Guard &guard : program.guards)
    guards.push_back(guardAttr(guard));
  kernel.setSizesAttr(builder.getArrayAttr(sizes));
  kernel.setGuardsAttr(builder.getArrayAttr(guards));
  precision = program.precision;
  if (precision)
    kernel.setPrecision(precisionOf(*this, /*isConvolution=*/false));
  kernel.setDeterministic(program.deterministic);
  if (!program.invariant.empty())
    kernel->setAttr("invariant", builder.getStrArrayAttr(SmallVector<StringRef>(
                                     program.invariant.begin(), program.invariant.end())));
  if (!program.schedule.empty())
    kernel.setScheduleAttr(scheduleAttr());

  Block &block = kernel.getBody().front();
  unsigned next = 0;
  for (const Tensor *tensor : program.inputs)
    tensors[tensor] = block.getArgument(next++);
  for (const Tensor *tensor : program.outputs)
    tensors[tensor] = block.getArgument(next++);
  for (const ScalarParam *scalar : program.scalars)
    scalars[scalar] = {Place::Scalar, block.getArgument(next++), {}};
  Region region(*this, &block, {}, {});
  emitBody(program.body);
}

Attribute Emitter::sizeAttr(const Size &size) {
  if (size.boundBy) // inputs are the first arguments
    return tgl::SizeAttr::get(&context, size.name, size.boundBy->first, size.boundBy->second);
  return tgl::SizeAttr::get(&context, size.name, size.definition);
}

static tgl::GuardKind guardKind(Guard::Kind kind) {
  switch (kind) {
  case Guard::NonNegative:
    return tgl::GuardKind::NonNegative;
  case Guard::Zero:
    return tgl::GuardKind::Zero;
  case Guard::NonZero:
    return tgl::GuardKind::NonZero;
  case Guard::Divides:
    return tgl::GuardKind::Divides;
  case Guard::InBounds:
    return tgl::GuardKind::InBounds;
  }
  llvm_unreachable("a kind of guard");
}

Attribute Emitter::guardAttr(const Guard &guard) {
  auto local = [&](const IndexExpr &expr) { // a variable becomes its place in the guard's list
    return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol())
        return std::nullopt;
      for (auto [position, bound] : llvm::enumerate(guard.vars))
        if (bound->id == var.position())
          return IndexExpr::dim(position);
      llvm_unreachable("a guard speaks of its own variables");
    });
  };
  SmallVector<tgl::IndexExprAttr> lows, highs, conditions;
  for (const Var *var : guard.vars) {
    lows.push_back(tgl::IndexExprAttr::get(&context, local(var->lo)));
    highs.push_back(tgl::IndexExprAttr::get(&context, local(var->hi)));
  }
  for (const IndexExpr &condition : guard.conditions)
    conditions.push_back(tgl::IndexExprAttr::get(&context, local(condition)));
  return tgl::GuardAttr::get(&context, guardKind(guard.kind), local(guard.lhs), local(guard.rhs),
                             lows, highs, conditions, guard.message);
}

/// `{tile = {i = 128, j = 256}, stages = 4, persistent}`.
DictionaryAttr Emitter::scheduleAttr() {
  std::map<std::string, SmallVector<NamedAttribute>> perAxis;
  NamedAttrList result;
  for (const ScheduleSetting &setting : program.schedule) {
    Attribute value = setting.value ? Attribute(builder.getI64IntegerAttr(*setting.value))
                                    : Attribute(builder.getUnitAttr());
    if (setting.axis.empty())
      result.set(setting.keyword, value);
    else
      perAxis[setting.keyword].push_back(builder.getNamedAttr(setting.axis, value));
  }
  for (auto &[keyword, settings] : perAxis)
    result.set(keyword, builder.getDictionaryAttr(settings));
  return result.getDictionary(&context);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void Emitter::emitCall(const Stmt &stmt) {
  const Callee &callee = *stmt.callee;
  Location loc = locate(stmt.span);
  SmallVector<Value> operands;
  SmallVector<tgl::KernelArgument> arguments;
  SmallVector<std::function<void(Value)>> bind;
  auto pass = [&](StringRef name, StringRef role, Value value, std::function<void(Value)> binding) {
    operands.push_back(value);
    arguments.push_back({name.str(), role.str(), value.getType()});
    bind.push_back(std::move(binding));
  };

  // What the call writes must not be seen through another argument.
  llvm::SmallPtrSet<const Tensor *, 4> written;
  for (const auto &[output, target] : callee.results)
    if (target)
      written.insert(target);
  for (const auto &[parameter, argument] : callee.arguments)
    if (parameter->kind == Tensor::Inout)
      written.insert(argument);

  for (const auto &[parameter, argument] : callee.arguments) {
    if (const Tensor *constant = constantTensor(argument)) {
      constants[parameter] = constant;
      continue;
    }
    const Tensor *own = parameter;
    bool isInout = own->kind == Tensor::Inout;
    Value value = tensors.lookup(argument);
    if (!isInout && written.contains(argument)) {
      Value copy = tgl::TempOp::create(builder, loc, value.getType(), argument->name + ".old");
      emitCopy(value, copy, loc);
      value = copy;
    }
    pass(own->name, isInout ? "inout" : "in", value, [this, own](Value v) { tensors[own] = v; });
  }

  SmallVector<std::pair<Value, Value>> copies;
  for (const auto &[output, target] : callee.results) {
    const Tensor *own = output;
    Value value = target ? tensors.lookup(target) : Value();
    if (!target || target->type != own->type) {
      Value direct = tgl::TempOp::create(
          builder, loc, tensorType(target ? target->dims : own->dims, typeOf(*this, own->type)),
          own->name);
      if (target)
        copies.push_back({direct, value});
      value = direct;
    }
    pass(own->name, "out", value, [this, own](Value v) { tensors[own] = v; });
  }

  for (const auto &[parameter, argument] : callee.scalars) {
    const ScalarParam *own = parameter;
    const Expr *value = argument;
    Type type = computeTypeOf(*this, own->type);
    if (isOnHost(value)) {
      pass(own->name, "scalar", evalAs(*this, value, type),
           [this, own](Value v) { scalars[own] = {Place::Scalar, v, {}}; });
      continue;
    }
    const Place *known = value->kind == Expr::Let ? &lets.find(value->let)->second : nullptr;
    if (known && known->kind == Place::Stored && computeTypeOf(*this, value->type) == type) {
      pass(own->name, "in", known->value,
           [this, own](Value v) { scalars[own] = {Place::Stored, v, {}}; });
      continue;
    }
    Place place = createStored(own->name, type, {}, loc);
    forPoints({}, loc, [&] { writeStored(eval(*this, value), place, loc); });
    pass(own->name, "in", place.value,
         [this, own](Value v) { scalars[own] = {Place::Stored, v, {}}; });
  }

  std::string name = callee.name;
  for (unsigned count = 0; !kernelNames.insert(name).second; ++count)
    name = callee.name + "_" + std::to_string(count);
  tgl::CallOp::create(builder, loc, name, operands);
  emitCallee(stmt, name, arguments, bind);
  for (auto [from, to] : copies)
    emitCopy(from, to, loc);
}

void Emitter::emitCallee(const Stmt &stmt, StringRef name, ArrayRef<tgl::KernelArgument> arguments,
                         ArrayRef<std::function<void(Value)>> bind) {
  const Callee &callee = *stmt.callee;
  // A kernel sees nothing of its caller but sizes.
  std::vector<Frame> outerFrames;
  SmallVector<const Var *> outerAxes;
  llvm::DenseMap<const Let *, Place> outerLets; // scalars that it is given may be made of them
  unsigned outerDepth = 0;
  auto outerSite = callSite;
  auto outerPrecision = precision;
  std::swap(frames, outerFrames);
  std::swap(lets, outerLets);
  std::swap(blockAxes, outerAxes);
  std::swap(parallelDepth, outerDepth);
  callSite = locate(stmt.span);
  if (callee.precision)
    precision = callee.precision;

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  auto kernel = tgl::KernelOp::create(builder, *callSite, name, arguments, /*isPrivate=*/true);
  if (precision)
    kernel.setPrecision(precisionOf(*this, /*isConvolution=*/false));
  Block &block = kernel.getBody().front();
  for (auto [binding, argument] : llvm::zip_equal(bind, block.getArguments()))
    binding(argument);
  {
    Region region(*this, &block, {}, {});
    emitBody(callee.body);
  }

  std::swap(frames, outerFrames);
  std::swap(lets, outerLets);
  std::swap(blockAxes, outerAxes);
  std::swap(parallelDepth, outerDepth);
  callSite = outerSite;
  precision = outerPrecision;
}
