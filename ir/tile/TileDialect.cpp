//===- TileDialect.cpp - Dialect, types and attributes ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tile/Tile.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tile;

#include "ir/tile/TileDialect.cpp.inc"
#include "ir/tile/TileEnums.cpp.inc"
#include "ir/tile/TileInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/tile/TileAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/tile/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/tile/TileAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/tile/TileTypes.cpp.inc"
      >();
  registerOperations();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult verifyShape(EmitError emitError, llvm::ArrayRef<int64_t> shape, unsigned least,
                                 unsigned most) {
  if (shape.size() < least || shape.size() > most)
    return emitError() << "expected " << least << " to " << most << " dims, found " << shape.size();
  if (llvm::any_of(shape, [](int64_t extent) { return extent < 1; }))
    return emitError() << "expected extents of at least 1";
  return success();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

Attribute MmaLayoutAttr::parse(AsmParser &parser, Type) {
  llvm::SmallVector<int64_t> warps;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(warps, /*allowDynamic=*/false, /*withTrailingX=*/false) ||
      parser.parseGreater())
    return {};
  if (warps.size() != 2 && warps.size() != 3) {
    parser.emitError(location,
                     "expected warps along rows and columns, such as 4x1, and slices of the sum "
                     "where there are several, such as 1x1x8");
    return {};
  }
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), warps[0],
                    warps[1], warps.size() == 3 ? warps[2] : 1);
}

void MmaLayoutAttr::print(AsmPrinter &printer) const {
  printer << '<' << getWarpRows() << 'x' << getWarpColumns();
  if (isSliced())
    printer << 'x' << getWarpSlices();
  printer << '>';
}

LogicalResult MmaLayoutAttr::verify(EmitError emitError, int64_t warpRows, int64_t warpColumns,
                                    int64_t warpSlices) {
  constexpr int64_t maxWarps = 32;
  if (warpRows < 1 || warpColumns < 1 || warpSlices < 1 ||
      warpRows * warpColumns * warpSlices > maxWarps)
    return emitError() << "expected 1 to " << maxWarps << " warps";
  if (warpSlices > 1 && warpRows * warpColumns > 1)
    return emitError()
           << "expected warps of all rows and columns where they have slices of the sum";
  return success();
}

LogicalResult WgmmaLayoutAttr::verify(EmitError emitError, int64_t warpgroups) {
  constexpr int64_t maxWarpgroups = 8;
  if (warpgroups < 1 || warpgroups > maxWarpgroups)
    return emitError() << "expected 1 to " << maxWarpgroups << " warpgroups";
  return success();
}

int64_t FragmentLayout::getWarpRows() const {
  if (auto wgmma = dyn_cast<WgmmaLayoutAttr>(*this))
    return wgmma.getWarpgroups() * WgmmaLayoutAttr::warps;
  return cast<MmaLayoutAttr>(*this).getWarpRows();
}
int64_t FragmentLayout::getWarpColumns() const {
  auto mma = dyn_cast<MmaLayoutAttr>(*this);
  return mma ? mma.getWarpColumns() : 1;
}
int64_t FragmentLayout::getWarpSlices() const {
  auto mma = dyn_cast<MmaLayoutAttr>(*this);
  return mma ? mma.getWarpSlices() : 1;
}
int64_t FragmentLayout::getThreads() const {
  constexpr int64_t warpThreads = 32;
  return getWarpRows() * getWarpColumns() * getWarpSlices() * warpThreads;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult SpanType::verify(EmitError emitError, int64_t size) {
  return verifyShape(emitError, {size}, 1, 1);
}

/// `, #tile.mma<4x1>>` or `>`.
template <typename Layout> static ParseResult parseLayout(AsmParser &parser, Layout &layout) {
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout))
    return failure();
  return parser.parseGreater();
}

static void printLayout(AsmPrinter &printer, Attribute layout) {
  if (layout)
    printer << ", " << layout;
  printer << '>';
}

/// The tile's warps have whole fragments of 16 x 8; of slices, lanes have whole rows of operands.
static LogicalResult verifyLayout(EmitError emitError, llvm::ArrayRef<int64_t> shape,
                                  FragmentLayout layout) {
  if (layout && layout.isAsynchronous()) {
    using Wgmma = WgmmaLayoutAttr;
    if (shape[0] != cast<Wgmma>(layout).getWarpgroups() * Wgmma::rows ||
        (shape.size() == 2 && (shape[1] % Wgmma::columnUnit != 0 || shape[1] > Wgmma::maxColumns)))
      return emitError() << "expected " << Wgmma::rows << " rows for each warpgroup of the layout, "
                         << "and a multiple of " << Wgmma::columnUnit << " columns up to "
                         << Wgmma::maxColumns;
    return success();
  }
  if (layout && layout.isSliced())
    return shape.size() == 2 && shape[0] % 8 == 0
               ? success()
               : emitError() << "expected a multiple of 8 rows, and columns, where warps have "
                                "slices of the sum";
  if (layout && (shape[0] % (16 * layout.getWarpRows()) != 0 ||
                 (shape.size() == 2 && shape[1] % (16 * layout.getWarpColumns()) != 0)))
    return emitError() << "expected 16 x 16 elements, or multiples, for each warp of the layout";
  return success();
}

Type TileType::parse(AsmParser &parser) {
  llvm::SmallVector<int64_t> shape;
  Type element;
  Attribute layout;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parseLayout(parser, layout))
    return {};
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), shape, element,
                    layout);
}

FragmentLayout TileType::getFragments() const {
  return dyn_cast_or_null<FragmentLayout>(getLayout());
}

void TileType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t extent : getShape())
    printer << extent << 'x';
  printer << getElementType();
  printLayout(printer, getLayout());
}

LogicalResult TileType::verify(EmitError emitError, llvm::ArrayRef<int64_t> shape, Type element,
                               Attribute layout) {
  if (failed(verifyShape(emitError, shape, 1, 2)))
    return failure();
  if (!tgl::isElementType(element))
    return emitError() << "expected an element type of tensors, found " << element;
  if (layout && !isa<FragmentLayout, LinearLayoutAttr>(layout))
    return emitError() << "expected #tile.mma, #tile.wgmma or #tile.linear, found " << layout;
  return verifyLayout(emitError, shape, dyn_cast_or_null<FragmentLayout>(layout));
}

Type StateType::parse(AsmParser &parser) {
  llvm::StringRef word;
  llvm::SmallVector<int64_t> rows;
  Type element;
  FragmentLayout layout;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&word) || parser.parseComma() ||
      parser.parseDimensionList(rows, /*allowDynamic=*/false) || parser.parseType(element) ||
      parseLayout(parser, layout))
    return {};
  std::optional<tgl::ReduceKind> kind = tgl::symbolizeReduceKind(word);
  if (!kind || rows.size() != 1) {
    parser.emitError(location, "expected a kind of reduction, and rows");
    return {};
  }
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), *kind, rows[0],
                    element, layout);
}

void StateType::print(AsmPrinter &printer) const {
  printer << '<' << tgl::stringifyReduceKind(getKind()) << ", " << getRows() << 'x'
          << getElementType();
  printLayout(printer, getLayout());
}

LogicalResult StateType::verify(EmitError emitError, tgl::ReduceKind kind, int64_t rows,
                                Type element, FragmentLayout layout) {
  using tgl::ReduceKind;
  if (failed(verifyShape(emitError, {rows}, 1, 1)))
    return failure();
  if (!llvm::is_contained({ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min,
                           ReduceKind::ArgMax, ReduceKind::ArgMin, ReduceKind::LogSumExp},
                          kind))
    return emitError() << "no state for reductions " << tgl::stringifyReduceKind(kind);
  if (!element.isF32())
    return emitError() << "expected a state over f32, found " << element;
  return verifyLayout(emitError, {rows}, layout);
}

Type StateType::getResultType() const {
  bool isPosition = getKind() == tgl::ReduceKind::ArgMax || getKind() == tgl::ReduceKind::ArgMin;
  return isPosition ? IntegerType::get(getContext(), 64) : getElementType();
}

/// `128x64xbf16, k_major>`.
static SharedType parseSharedBody(AsmParser &parser) {
  llvm::SmallVector<int64_t> shape;
  Type element;
  llvm::StringRef order;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) ||
      parser.parseComma() || parser.parseKeyword(&order) || parser.parseGreater())
    return {};
  if (order != "k_major" && order != "mn_major") {
    parser.emitError(location, "expected k_major or mn_major");
    return {};
  }
  return SharedType::getChecked([&] { return parser.emitError(location); }, parser.getContext(),
                                shape, element, order == "k_major");
}

static void printSharedBody(AsmPrinter &printer, SharedType type) {
  printer << type.getShape()[0] << 'x' << type.getShape()[1] << 'x' << type.getElementType() << ", "
          << (type.getKMajor() ? "k_major" : "mn_major") << '>';
}

Type SharedType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  return parseSharedBody(parser);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << '<';
  printSharedBody(printer, *this);
}

bool tegula::tile::isByte(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element) || element.isInteger(8);
}

LogicalResult SharedType::verify(EmitError emitError, llvm::ArrayRef<int64_t> shape, Type element,
                                 bool kMajor) {
  constexpr int64_t depthBytes = 128, chunkBytes = 16, exchangedChunks = 8; // MmaSharedLayout
  if (failed(verifyShape(emitError, shape, 2, 2)))
    return failure();
  if (isByte(element)) {
    if (shape[kMajor ? 1 : 0] % chunkBytes != 0)
      return emitError() << "expected lines of a multiple of " << chunkBytes << " bytes";
    return success();
  }
  if (!element.isBF16() && !element.isF16() && !element.isF32())
    return emitError() << "expected elements of bf16, f16, f32 or of 8 bits, found " << element;
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  bool isWhole = shape[1] * elementBytes == depthBytes;
  // Lines of other lengths are as many as a product takes at a time, and exchange their own chunks.
  int64_t chunks = shape[0] * elementBytes / chunkBytes;
  bool isSteps = !kMajor && elementBytes == 2 && shape[1] % 16 == 0 &&
                 (chunks % exchangedChunks == 0 || llvm::isPowerOf2_64(chunks));
  if (shape[0] % 16 != 0 || (!isWhole && !isSteps))
    return emitError() << "expected a multiple of 16 by " << depthBytes << " bytes";
  return success();
}

int64_t SharedType::getBytes() const {
  return getShape()[0] * getShape()[1] * getElementType().getIntOrFloatBitWidth() / 8;
}

Type RingType::parse(AsmParser &parser) {
  int64_t stages;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(stages) || parser.parseComma())
    return {};
  SharedType stage = parseSharedBody(parser);
  if (!stage)
    return {};
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), stages, stage);
}

void RingType::print(AsmPrinter &printer) const {
  printer << '<' << getStages() << ", ";
  printSharedBody(printer, getStage());
}

LogicalResult RingType::verify(EmitError emitError, int64_t stages, SharedType) {
  if (stages < 1)
    return emitError() << "expected a stage or more, found " << stages;
  return success();
}

/// `<8x16x32xf32>`.
template <typename Shaped> static Type parseShaped(AsmParser &parser) {
  llvm::SmallVector<int64_t> shape;
  Type element;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  return Shaped::getChecked([&] { return parser.emitError(location); }, parser.getContext(), shape,
                            element);
}

static void printShaped(AsmPrinter &printer, llvm::ArrayRef<int64_t> shape, Type element) {
  printer << '<';
  for (int64_t extent : shape)
    printer << extent << 'x';
  printer << element << '>';
}

Type TmaDescriptorType::parse(AsmParser &parser) { return parseShaped<TmaDescriptorType>(parser); }
void TmaDescriptorType::print(AsmPrinter &printer) const {
  printShaped(printer, getShape(), getElementType());
}

LogicalResult TmaDescriptorType::verify(EmitError emitError, llvm::ArrayRef<int64_t> shape,
                                        Type element) {
  if (failed(verifyShape(emitError, shape, 2, 2)))
    return failure();
  if (!element.isBF16() && !element.isF16())
    return emitError() << "expected elements of bf16 or f16, found " << element;
  if (shape[0] > maxLines || shape[1] * element.getIntOrFloatBitWidth() / 8 != lineBytes)
    return emitError() << "expected at most " << maxLines << " lines of " << lineBytes << " bytes";
  return success();
}

LogicalResult PipeType::verify(EmitError emitError, int64_t stages) {
  if (stages < 1 || stages > maxStages)
    return emitError() << "expected 1 to " << maxStages << " stages, found " << stages;
  return success();
}

int64_t RingType::getBytes() const { return getStages() * getStage().getBytes(); }

Type ScratchType::parse(AsmParser &parser) { return parseShaped<ScratchType>(parser); }
void ScratchType::print(AsmPrinter &printer) const {
  printShaped(printer, getShape(), getElementType());
}

LogicalResult ScratchType::verify(EmitError emitError, llvm::ArrayRef<int64_t> shape,
                                  Type element) {
  if (failed(verifyShape(emitError, shape, 3, 3)))
    return failure();
  if (!element.isF32())
    return emitError() << "expected elements of f32, found " << element;
  return success();
}

int64_t ScratchType::getBytes() const {
  return getShape()[0] * getShape()[1] * getShape()[2] * getElementType().getIntOrFloatBitWidth() /
         8;
}
