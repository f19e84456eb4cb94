//===- TglOps.cpp - Registration of operations, kernels, calls, launches ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Tgl.h"
#include "ir/tgl/TglFunctions.h"
#include "ir/tgl/TglSyntax.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;
using llvm::StringRef;

#define GET_OP_CLASSES
#include "ir/tgl/TglOps.cpp.inc"
#define GET_OP_CLASSES
#include "ir/tgl/TglFunctions.cpp.inc"

void TglDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "ir/tgl/TglOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/tgl/TglFunctions.cpp.inc"
      >();
}

Operation *TglDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===----------------------------------------------------------------------===//
// tgl.kernel
//===----------------------------------------------------------------------===//

static constexpr StringRef nameAttrName = "tgl.name", roleAttrName = "tgl.role";

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     llvm::ArrayRef<KernelArgument> arguments, bool isPrivate) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  if (isPrivate)
    state.addAttribute(getSymVisibilityAttrName(state.name), builder.getStringAttr("private"));
  llvm::SmallVector<Type> types;
  llvm::SmallVector<Attribute> argAttrs;
  Block &block = state.addRegion()->emplaceBlock();
  for (const KernelArgument &argument : arguments) {
    types.push_back(argument.type);
    argAttrs.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(nameAttrName, builder.getStringAttr(argument.name)),
         builder.getNamedAttr(roleAttrName, builder.getStringAttr(argument.role))}));
    block.addArgument(argument.type, state.location);
  }
  state.addAttribute(getFunctionTypeAttrName(state.name),
                     TypeAttr::get(builder.getFunctionType(types, {})));
  state.addAttribute(getArgAttrsAttrName(state.name), builder.getArrayAttr(argAttrs));
}

StringRef KernelOp::getArgName(unsigned index) {
  auto name = getArgAttrOfType<StringAttr>(index, nameAttrName);
  return name ? name.getValue() : StringRef();
}

StringRef KernelOp::getArgRole(unsigned index) {
  auto role = getArgAttrOfType<StringAttr>(index, roleAttrName);
  return role ? role.getValue() : StringRef();
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    if (StringRef name = getArgName(argument.getArgNumber()); !name.empty())
      setName(argument, name);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  if (succeeded(parser.parseOptionalKeyword("private")))
    result.addAttribute(getSymVisibilityAttrName(result.name), builder.getStringAttr("private"));
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes))
    return failure();

  llvm::SmallVector<OpAsmParser::Argument> arguments;
  llvm::SmallVector<Type> resultTypes;
  llvm::SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic;
  if (function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes, resultAttrs))
    return failure();
  llvm::SmallVector<Type> types;
  for (const OpAsmParser::Argument &argument : arguments)
    types.push_back(argument.type);
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(types, resultTypes)));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttrs,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));

  auto parseList = [&](StringRef keyword, StringAttr attrName, auto parseElement) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    llvm::SmallVector<Attribute> elements;
    auto parseOne = [&]() -> ParseResult {
      auto element = parseElement(parser);
      if (failed(element))
        return failure();
      elements.push_back(*element);
      return success();
    };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
      return failure();
    result.addAttribute(attrName, builder.getArrayAttr(elements));
    return success();
  };
  if (parseList("sizes", getSizesAttrName(result.name), SizeAttr::parseBody) ||
      parseList("guards", getGuardsAttrName(result.name), GuardAttr::parseBody) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parseBody(parser, result, arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), false,
                                                  getResultTypes());
  auto printList = [&](StringRef keyword, llvm::ArrayRef<Attribute> elements, auto printElement) {
    if (elements.empty())
      return;
    printer.increaseIndent();
    printer.increaseIndent();
    printer.printNewline();
    printer << keyword << " [";
    llvm::interleaveComma(elements, printer, printElement);
    printer << ']';
    printer.decreaseIndent();
    printer.decreaseIndent();
  };
  printList("sizes", getSizeAttrs(),
            [&](Attribute size) { cast<SizeAttr>(size).printBody(printer); });
  printList("guards", getGuardAttrs(),
            [&](Attribute guard) { cast<GuardAttr>(guard).printBody(printer); });
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getSymVisibilityAttrName(), getFunctionTypeAttrName(),
       getArgAttrsAttrName(), getResAttrsAttrName(), getSizesAttrName(), getGuardsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

/// Arguments say what they are; sizes are bound by arguments or derived from sizes before them.
/// What is derived from a size that no order depends on is such a size too.
static LogicalResult verifyInvariant(KernelOp kernel) {
  llvm::StringSet<> invariant, sizes;
  if (auto names = kernel->getAttrOfType<ArrayAttr>("invariant"))
    for (auto name : names.getAsRange<StringAttr>())
      if (!invariant.insert(name.getValue()).second)
        return kernel.emitOpError()
               << "expected distinct invariant sizes, found '" << name.getValue() << "' twice";
  for (Attribute attr : kernel.getSizeAttrs()) {
    auto size = cast<SizeAttr>(attr);
    sizes.insert(size.getName());
    if (size.isBound() || invariant.contains(size.getName()))
      continue;
    for (const IndexVar &var : size.getDefinition().variables())
      if (invariant.contains(var.name()))
        return kernel.emitOpError() << "size '" << size.getName() << "' is derived from '"
                                    << var.name() << "', which is invariant, and is not";
  }
  if (auto names = kernel->getAttrOfType<ArrayAttr>("invariant"))
    for (auto name : names.getAsRange<StringAttr>())
      if (!sizes.contains(name.getValue()))
        return kernel.emitOpError()
               << "'" << name.getValue() << "' is invariant and not a size of the kernel";
  return success();
}

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError("expected no results: outputs are arguments");
  llvm::StringSet<> names;
  for (unsigned i = 0; i < getNumArguments(); ++i) {
    StringRef name = getArgName(i), role = getArgRole(i);
    Type type = getArgumentTypes()[i];
    if (name.empty())
      return emitOpError() << "expected argument " << i << " to have a tgl.name";
    if (!names.insert(name).second)
      return emitOpError() << "expected distinct argument names, found '" << name << "' twice";
    if (role == "scalar") {
      if (isa<TglTensorType>(type) || !isElementType(type) || getComputeType(type) != type)
        return emitOpError() << "expected scalar argument '" << name
                             << "' to have type i1, i32, i64, f32 or f64, found " << type;
    } else if (role == "in" || role == "inout" || role == "out") {
      if (!isa<TglTensorType>(type))
        return emitOpError() << "expected argument '" << name << "' to be a tensor, found " << type;
    } else {
      return emitOpError() << "expected the tgl.role of argument '" << name
                           << "' to be in, inout, out or scalar, found '" << role << "'";
    }
  }
  if (isCalled() && !(getSizes().empty() && getGuards().empty()))
    return emitOpError("expected no sizes and guards on a private kernel: they are its caller's");

  llvm::StringSet<> known;
  for (Attribute attr : getSizeAttrs()) {
    auto size = cast<SizeAttr>(attr);
    StringRef name = size.getName();
    if (size.isBound()) {
      if (size.getArgument() >= int64_t(getNumArguments()))
        return emitOpError() << "size '" << name << "' is bound by argument " << size.getArgument()
                             << " of " << getNumArguments();
      auto type = dyn_cast<TglTensorType>(getArgumentTypes()[size.getArgument()]);
      if (!type || size.getDimension() >= int64_t(type.getRank()))
        return emitOpError() << "size '" << name << "' is bound by dim " << size.getDimension()
                             << " of argument " << size.getArgument() << ", which has no such dim";
      // A size that is known has its number for a dim. `2*P` binds a size that P is derived from.
      IndexExpr dim = type.getDim(size.getDimension());
      auto isDerivedFrom = [&](Attribute attr) {
        auto derived = cast<SizeAttr>(attr);
        return !derived.isBound() && dim.uses(IndexVar::symbol(derived.getName())) &&
               derived.getDefinition().uses(IndexVar::symbol(name));
      };
      if (dim != IndexExpr::symbol(name) && !dim.asConstant() &&
          llvm::none_of(getSizeAttrs(), isDerivedFrom))
        return emitOpError() << "size '" << name << "' is bound by a dim that is '"
                             << type.getDim(size.getDimension()).str() << "'";
    } else {
      for (const IndexVar &var : size.getDefinition().variables())
        if (!var.isSymbol() || !known.contains(var.name()))
          return emitOpError() << "size '" << name << "' is derived from "
                               << (var.isSymbol()
                                       ? "'" + var.name().str() + "', which is not a size before it"
                                       : std::string("a dim"));
    }
    if (!known.insert(name).second)
      return emitOpError() << "expected distinct sizes, found '" << name << "' twice";
  }
  return verifyInvariant(*this);
}

/// Every size symbol below is a size of the kernel.
LogicalResult KernelOp::verifyRegions() {
  if (isCalled())
    return success();
  llvm::StringSet<> known;
  for (Attribute size : getSizeAttrs())
    known.insert(cast<SizeAttr>(size).getName());
  llvm::DenseSet<Attribute> goodAttrs;
  llvm::DenseSet<Type> goodTypes;
  std::string unknown;
  auto check = [&](const IndexExpr &expr) {
    for (const IndexVar &var : expr.variables())
      if (var.isSymbol() && !known.contains(var.name()))
        unknown = var.name().str();
    return unknown.empty();
  };
  auto checkAttr = [&](Attribute attr) {
    auto expr = dyn_cast<IndexExprAttr>(attr);
    return !expr || !goodAttrs.insert(expr).second || check(expr.getExpr());
  };
  auto checkType = [&](Type type) {
    auto tensor = dyn_cast<TglTensorType>(type);
    return !tensor || !goodTypes.insert(tensor).second ||
           llvm::all_of(tensor.getDims(), [&](IndexExprAttr dim) { return check(dim.getExpr()); });
  };
  for (Type type : getArgumentTypes())
    if (!checkType(type))
      return emitOpError() << "'" << unknown << "' in " << type << " is not a size of the kernel";
  for (Attribute attr : getGuardAttrs()) {
    auto guard = cast<GuardAttr>(attr);
    bool fine = check(guard.getLhs()) && check(guard.getRhs());
    for (auto exprs : {guard.getLows(), guard.getHighs(), guard.getConditions()})
      fine = fine && llvm::all_of(exprs, checkAttr);
    if (!fine)
      return emitOpError() << "'" << unknown << "' in a guard is not a size of the kernel";
  }
  WalkResult walked = getBody().walk([&](Operation *op) -> WalkResult {
    bool fine = llvm::all_of(op->getResultTypes(), checkType);
    for (NamedAttribute attr : op->getAttrDictionary()) {
      if (auto array = dyn_cast<ArrayAttr>(attr.getValue()))
        fine = fine && llvm::all_of(array, checkAttr);
      else
        fine = fine && checkAttr(attr.getValue());
    }
    if (!fine)
      return op->emitOpError() << "uses '" << unknown << "', which is not a size of the kernel";
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// tgl.call, tgl.temp, tgl.launch
//===----------------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "'" << getCallee() << "' is not a kernel here";
  if (!callee.isCalled())
    return emitOpError() << "expected a private kernel, found '" << getCallee() << "'";
  if (callee.getNumArguments() != getArgs().size())
    return emitOpError() << "expected " << callee.getNumArguments() << " arguments, found "
                         << getArgs().size();
  for (auto [position, type, value] : llvm::enumerate(callee.getArgumentTypes(), getArgs()))
    if (type != value.getType())
      return emitOpError() << "expected argument " << position << " to be " << type << ", found "
                           << value.getType();
  return success();
}

void TempOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (!getName().empty())
    setName(getTensor(), getName());
}

void LaunchOp::build(OpBuilder &builder, OperationState &state, StringRef name) {
  state.addAttribute(getNameAttrName(state.name), builder.getStringAttr(name));
  state.addRegion()->emplaceBlock();
}
