//===- TglLoopOps.cpp - Sequential loops and loops over tiles -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Tgl.h"
#include "ir/tgl/TglOpsCommon.h"
#include "ir/tgl/TglSyntax.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;
using llvm::StringRef;

YieldOp ForOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }
YieldOp TilesOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

/// What the two loops' builders share: bounds, block, names, operand segments.
template <typename Loop>
static void buildLoop(OpBuilder &builder, OperationState &state, llvm::ArrayRef<StringRef> names,
                      const ValueExpr &low, const ValueExpr &high, ValueRange inits,
                      unsigned numLoopVars) {
  IndexOperands operands;
  state.addAttribute("low", exprAttr(builder, operands, low));
  state.addAttribute("high", exprAttr(builder, operands, high));
  if (!names.empty()) {
    llvm::SmallVector<StringRef> all(names);
    all.resize(1 + inits.size());
    state.addAttribute("names", builder.getStrArrayAttr(all));
  }
  state.addOperands(operands.values());
  state.addOperands(inits);
  state.getOrAddProperties<typename Loop::Properties>().setOperandSegmentSizes(
      {int32_t(operands.values().size()), int32_t(inits.size())});
  state.addTypes(inits.getTypes());
  Block &block = state.addRegion()->emplaceBlock();
  for (unsigned k = 0; k < numLoopVars; ++k)
    block.addArgument(builder.getIndexType(), state.location);
  for (Value init : inits)
    block.addArgument(init.getType(), state.location);
}

void ForOp::build(OpBuilder &builder, OperationState &state, llvm::ArrayRef<StringRef> names,
                  const ValueExpr &low, const ValueExpr &high, ValueRange inits, bool reverse) {
  buildLoop<ForOp>(builder, state, names, low, high, inits, 1);
  if (reverse)
    state.addAttribute(getReverseAttrName(state.name), builder.getUnitAttr());
}

void TilesOp::build(OpBuilder &builder, OperationState &state, llvm::ArrayRef<StringRef> names,
                    const ValueExpr &low, const ValueExpr &high, ValueRange inits,
                    std::optional<int64_t> size) {
  buildLoop<TilesOp>(builder, state, names, low, high, inits, 2);
  if (size)
    state.addAttribute(getSizeAttrName(state.name), builder.getI64IntegerAttr(*size));
}

/// `iter (%m = %m0 : f32, ...)`: block arguments and the values they start from.
static ParseResult parseIterArgs(OpAsmParser &parser, OperationState &result,
                                 llvm::SmallVectorImpl<OpAsmParser::Argument> &arguments,
                                 llvm::SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inits) {
  if (failed(parser.parseOptionalKeyword("iter")))
    return success();
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
    OpAsmParser::Argument argument;
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseColonType(argument.type))
      return failure();
    arguments.push_back(argument);
    result.addTypes(argument.type);
    return success();
  });
}

/// Parses a loop after its loop variables: `= lo to hi flags iter (...) attrs region`.
template <typename Loop>
static ParseResult parseLoop(OpAsmParser &parser, OperationState &result,
                             llvm::SmallVector<OpAsmParser::Argument> &arguments,
                             llvm::function_ref<ParseResult()> parseOptions,
                             llvm::function_ref<ArrayAttr()> namesOf) {
  ExprParser exprs(parser);
  IndexExpr low, high;
  llvm::SmallVector<OpAsmParser::UnresolvedOperand> inits;
  NamedAttrList attrs;
  if (parser.parseEqual() || exprs.parseExpr(low) || parser.parseKeyword("to") ||
      exprs.parseExpr(high) || parseOptions() || parseIterArgs(parser, result, arguments, inits) ||
      parser.parseOptionalAttrDictWithKeyword(attrs) || exprs.resolve(result) ||
      parser.resolveOperands(inits, result.types, parser.getCurrentLocation(), result.operands))
    return failure();
  if (ArrayAttr names = namesOf())
    result.addAttribute("names", names);
  for (NamedAttribute attr : attrs)
    result.attributes.set(attr.getName(), attr.getValue());
  result.addAttribute("low", exprs.attr(low));
  result.addAttribute("high", exprs.attr(high));
  result.getOrAddProperties<typename Loop::Properties>().setOperandSegmentSizes(
      {int32_t(exprs.numIndices()), int32_t(inits.size())});
  if (parseBody(parser, result, arguments))
    return failure();
  Loop::ensureTerminator(*result.regions[0], parser.getBuilder(), result.location);
  return success();
}

static void printIterArgs(OpAsmPrinter &printer, ValueRange arguments, ValueRange inits) {
  if (inits.empty())
    return;
  printer << " iter (";
  llvm::interleaveComma(llvm::zip_equal(arguments, inits), printer, [&](auto pair) {
    auto [argument, init] = pair;
    printer << argument << " = " << init << " : " << init.getType();
  });
  printer << ')';
}

template <typename Loop> static LogicalResult verifyLoop(Loop op, unsigned numLoopVars) {
  if (failed(verifyDims(op, {op.getLow(), op.getHigh()}, op.getIndices().size())))
    return failure();
  Block &block = op.getBody().front();
  TypeRange types = op.getInits().getTypes();
  if (block.getNumArguments() != numLoopVars + types.size())
    return op.emitOpError() << "expected " << numLoopVars + types.size()
                            << " block arguments, found " << block.getNumArguments();
  for (BlockArgument argument : block.getArguments().take_front(numLoopVars))
    if (!isa<IndexType>(argument.getType()))
      return op.emitOpError() << "expected loop variables of type index, found "
                              << argument.getType();
  if (TypeRange(block.getArguments().drop_front(numLoopVars)) != types ||
      op.getResultTypes() != types)
    return op.emitOpError("expected carried values of the types of their initial values");
  if (op.getNames() && op.getNames()->size() != 1 + types.size())
    return op.emitOpError("expected names for the loop variable and each carried value");
  return verifyYield(op, op.getYield(), types);
}

void ForOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setArgumentNames(region, getNames(), setName);
}

ParseResult ForOp::parse(OpAsmParser &parser, OperationState &result) {
  llvm::SmallVector<OpAsmParser::Argument> arguments(1);
  arguments[0].type = parser.getBuilder().getIndexType();
  if (parser.parseArgument(arguments[0]))
    return failure();
  auto options = [&]() -> ParseResult {
    parseFlags(parser, result, {"reverse"});
    return success();
  };
  return parseLoop<ForOp>(parser, result, arguments, options,
                          [&] { return namesFromArguments(parser.getBuilder(), arguments); });
}

void ForOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  printer << ' ' << getLoopVar() << " = ";
  exprs.print(getLow());
  printer << " to ";
  exprs.print(getHigh());
  if (getReverse())
    printer << " reverse";
  printIterArgs(printer, getIterArgs(), getInits());
  printAttrsBeforeBody(printer, *this, getBody().getArguments(), getNames(),
                       {getLowAttrName(), getHighAttrName(), getReverseAttrName(),
                        getOperandSegmentSizesAttrName()});
  printer.printRegion(getBody(), false, /*printBlockTerminators=*/!getInits().empty());
}

LogicalResult ForOp::verify() { return verifyLoop(*this, 1); }

/// The block arguments of a tile loop over `j` print as `%j_lo`, `%j_hi`.
static constexpr StringRef lowSuffix = "_lo", highSuffix = "_hi";

void TilesOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!getNames())
    return;
  for (auto [position, attr] : llvm::enumerate(*getNames())) {
    StringRef name = cast<StringAttr>(attr).getValue();
    if (name.empty() || position + 1 >= region.getNumArguments())
      continue;
    if (position > 0) {
      setName(region.getArgument(position + 1), name);
      continue;
    }
    setName(region.getArgument(0), (name + lowSuffix).str());
    setName(region.getArgument(1), (name + highSuffix).str());
  }
}

ParseResult TilesOp::parse(OpAsmParser &parser, OperationState &result) {
  llvm::SmallVector<OpAsmParser::Argument> arguments(2);
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = parser.getBuilder().getIndexType();
  if (parser.parseLParen() || parser.parseArgument(arguments[0]) || parser.parseComma() ||
      parser.parseArgument(arguments[1]) || parser.parseRParen())
    return failure();
  auto options = [&]() -> ParseResult {
    int64_t size;
    if (failed(parser.parseOptionalKeyword("size")))
      return success();
    if (parser.parseInteger(size))
      return failure();
    result.addAttribute(getSizeAttrName(result.name), parser.getBuilder().getI64IntegerAttr(size));
    return success();
  };
  return parseLoop<TilesOp>(parser, result, arguments, options, [&]() -> ArrayAttr {
    // `%j_lo` stands for the axis `j`.
    StringRef low = arguments[0].ssaName.name;
    if (!low.consume_back(lowSuffix) || low.size() < 2)
      low = "%";
    llvm::SmallVector<OpAsmParser::Argument> named(llvm::drop_begin(arguments));
    named[0].ssaName.name = low;
    return namesFromArguments(parser.getBuilder(), named);
  });
}

void TilesOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  printer << " (" << getTileLow() << ", " << getTileHigh() << ") = ";
  exprs.print(getLow());
  printer << " to ";
  exprs.print(getHigh());
  if (std::optional<int64_t> size = getSize())
    printer << " size " << *size;
  printIterArgs(printer, getIterArgs(), getInits());

  // The names that the printed arguments will be read back as.
  std::optional<ArrayAttr> expected;
  if (getNames()) {
    Builder builder(getContext());
    llvm::SmallVector<Attribute> spelled(getNames()->getValue());
    StringRef axis = cast<StringAttr>(spelled[0]).getValue();
    Attribute low = builder.getStringAttr(axis.empty() ? "" : (axis + lowSuffix).str());
    Attribute high = builder.getStringAttr(axis.empty() ? "" : (axis + highSuffix).str());
    spelled[0] = high;
    spelled.insert(spelled.begin(), low);
    expected = builder.getArrayAttr(spelled);
  }
  printAttrsBeforeBody(
      printer, *this, getBody().getArguments(), expected,
      {getLowAttrName(), getHighAttrName(), getSizeAttrName(), getOperandSegmentSizesAttrName()});
  printer.printRegion(getBody(), false, /*printBlockTerminators=*/!getInits().empty());
}

LogicalResult TilesOp::verify() {
  if (getSize() && *getSize() < 1)
    return emitOpError() << "expected a tile of at least one element, found " << *getSize();
  return verifyLoop(*this, 2);
}
