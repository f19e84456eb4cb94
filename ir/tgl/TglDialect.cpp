//===- TglDialect.cpp - Dialect, types and attributes ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Tgl.h"
#include "ir/tgl/TglSyntax.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

#include "ir/tgl/TglDialect.cpp.inc"
#include "ir/tgl/TglEnums.cpp.inc"
#include "ir/tgl/TglInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/tgl/TglAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/tgl/TglTypes.cpp.inc"

void TglDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/tgl/TglAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/tgl/TglTypes.cpp.inc"
      >();
  registerOperations();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute IndexExprAttr::parse(AsmParser &parser, Type) {
  IndexExpr expr;
  if (parser.parseLess() || parseIndexExpr(parser, expr) || parser.parseGreater())
    return {};
  return get(parser.getContext(), expr);
}

void IndexExprAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printIndexExpr(printer, getExpr());
  printer << '>';
}

FailureOr<SizeAttr> SizeAttr::parseBody(AsmParser &parser) {
  std::string name;
  IndexExpr definition;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
      parseIndexExpr(parser, definition))
    return failure();
  if (failed(parser.parseOptionalColon()))
    return get(parser.getContext(), name, definition);
  std::optional<int64_t> argument = definition.asConstant();
  int64_t dimension;
  if (parser.parseInteger(dimension))
    return failure();
  if (!argument || *argument < 0 || dimension < 0) {
    parser.emitError(location, "expected 'name = argument : dim' with numbers >= 0");
    return failure();
  }
  return get(parser.getContext(), name, *argument, dimension);
}

void SizeAttr::printBody(AsmPrinter &printer) const {
  printer.printKeywordOrString(getName());
  printer << " = ";
  if (isBound())
    printer << getArgument() << " : " << getDimension();
  else
    printIndexExpr(printer, getDefinition());
}

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SizeAttr> size = parseBody(parser);
  if (failed(size) || parser.parseGreater())
    return {};
  return *size;
}

void SizeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer);
  printer << '>';
}

FailureOr<GuardAttr> GuardAttr::parseBody(AsmParser &parser) {
  llvm::StringRef word;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<GuardKind> kind = symbolizeGuardKind(word);
  if (!kind) {
    parser.emitError(location, "expected nonneg, zero, nonzero, divides or inbounds, found '")
        << word << "'";
    return failure();
  }
  IndexExpr lhs, rhs;
  if (parseIndexExpr(parser, lhs))
    return failure();
  if (*kind == GuardKind::Divides || *kind == GuardKind::InBounds)
    if (parser.parseComma() || parseIndexExpr(parser, rhs))
      return failure();
  llvm::SmallVector<IndexExprAttr> lows, highs, conditions;
  if (*kind == GuardKind::InBounds) {
    if (succeeded(parser.parseOptionalKeyword("for"))) {
      auto parseRange = [&]() -> ParseResult {
        IndexExpr lo, hi;
        if (parseIndexExpr(parser, lo) || parser.parseKeyword("to") || parseIndexExpr(parser, hi))
          return failure();
        lows.push_back(IndexExprAttr::get(parser.getContext(), lo));
        highs.push_back(IndexExprAttr::get(parser.getContext(), hi));
        return success();
      };
      if (parser.parseCommaSeparatedList(parseRange))
        return failure();
    }
    if (succeeded(parser.parseOptionalKeyword("where")) && parseIndexExprList(parser, conditions))
      return failure();
  }
  std::string message;
  if (parser.parseColon() || parser.parseString(&message))
    return failure();
  GuardAttr guard = getChecked([&] { return parser.emitError(location); }, parser.getContext(),
                               *kind, lhs, rhs, lows, highs, conditions, message);
  if (!guard)
    return failure();
  return guard;
}

void GuardAttr::printBody(AsmPrinter &printer) const {
  printer << stringifyGuardKind(getKind()) << ' ';
  printIndexExpr(printer, getLhs());
  if (getKind() == GuardKind::Divides || getKind() == GuardKind::InBounds) {
    printer << ", ";
    printIndexExpr(printer, getRhs());
  }
  if (!getLows().empty()) {
    printer << " for ";
    llvm::interleaveComma(llvm::zip_equal(getLows(), getHighs()), printer, [&](auto range) {
      printIndexExpr(printer, std::get<0>(range).getExpr());
      printer << " to ";
      printIndexExpr(printer, std::get<1>(range).getExpr());
    });
  }
  if (!getConditions().empty()) {
    printer << " where ";
    llvm::interleaveComma(getConditions(), printer, [&](IndexExprAttr condition) {
      printIndexExpr(printer, condition.getExpr());
    });
  }
  printer << " : ";
  printer.printString(getMessage());
}

Attribute GuardAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<GuardAttr> guard = parseBody(parser);
  if (failed(guard) || parser.parseGreater())
    return {};
  return *guard;
}

void GuardAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer);
  printer << '>';
}

LogicalResult GuardAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, GuardKind kind,
                                IndexExpr lhs, IndexExpr rhs, llvm::ArrayRef<IndexExprAttr> lows,
                                llvm::ArrayRef<IndexExprAttr> highs,
                                llvm::ArrayRef<IndexExprAttr> conditions, llvm::StringRef message) {
  if (lows.size() != highs.size())
    return emitError() << "expected as many upper as lower bounds";
  if (kind != GuardKind::InBounds && !(lows.empty() && conditions.empty()))
    return emitError() << "expected ranges and conditions of inbounds only, found them with "
                       << stringifyGuardKind(kind);
  if (message.empty())
    return emitError() << "expected a message for whoever breaks the guard";
  auto dimsBelow = [&](const IndexExpr &expr, size_t bound) {
    return llvm::all_of(expr.variables(), [&](const IndexVar &var) {
      return var.isSymbol() || var.position() < bound;
    });
  };
  for (size_t k = 0; k < lows.size(); ++k)
    if (!dimsBelow(lows[k].getExpr(), k) || !dimsBelow(highs[k].getExpr(), k))
      return emitError() << "expected the bounds of d" << k << " to use earlier dims only";
  bool fine = dimsBelow(lhs, lows.size()) && dimsBelow(rhs, lows.size());
  for (IndexExprAttr condition : conditions)
    fine &= dimsBelow(condition.getExpr(), lows.size());
  if (!fine)
    return emitError() << "expected dims below d" << lows.size() << " in a guard over "
                       << lows.size() << " ranges";
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type TglTensorType::parse(AsmParser &parser) {
  llvm::SmallVector<IndexExprAttr> dims;
  Type elementType;
  auto parseDim = [&]() -> ParseResult {
    IndexExpr dim;
    if (parseIndexExpr(parser, dim))
      return failure();
    dims.push_back(IndexExprAttr::get(parser.getContext(), dim));
    return success();
  };
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) ||
      parser.parseComma() || parser.parseType(elementType) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), dims,
                    elementType);
}

void TglTensorType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer,
                        [&](IndexExprAttr dim) { printIndexExpr(printer, dim.getExpr()); });
  printer << "], " << getElementType() << '>';
}

bool tgl::isElementType(Type type) {
  return isa<Float64Type, Float32Type, Float16Type, BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(
             type) ||
         type.isSignlessInteger(64) || type.isSignlessInteger(32) || type.isSignlessInteger(16) ||
         type.isSignlessInteger(8) || type.isSignlessInteger(4) || type.isSignlessInteger(1) ||
         type.isUnsignedInteger(64) || type.isUnsignedInteger(32) || type.isUnsignedInteger(16) ||
         type.isUnsignedInteger(8) || type.isUnsignedInteger(4);
}

Type tgl::getComputeType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  if (isa<FloatType>(elementType))
    return elementType.isF64() ? elementType : Float32Type::get(context);
  unsigned width = elementType.getIntOrFloatBitWidth();
  // Values have no sign: operations say how they take their bits.
  return width == 1 ? elementType : IntegerType::get(context, width == 64 ? 64 : 32);
}

Type TglTensorType::getComputeType() const { return tgl::getComputeType(getElementType()); }

LogicalResult TglTensorType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                    llvm::ArrayRef<IndexExprAttr> dims, Type elementType) {
  if (!isElementType(elementType))
    return emitError() << "expected an element type (f64 f32 f16 bf16 f8E4M3FN f8E5M2 i64 i32 i16 "
                          "i8 i4 ui64 ui32 ui16 ui8 ui4 i1), found "
                       << elementType;
  for (IndexExprAttr dim : dims)
    if (!dim.getExpr().isSize())
      return emitError() << "expected sizes as dims of a tensor, found '" << dim.getExpr().str()
                         << "'";
  return success();
}
