//===- TileVectors.cpp - Operands of products in registers ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With slices of the sum (#tile.mma<1x1x8>) a lane has neighbours along both dims of an operand:
// with g = lane / 4, t = lane % 4 and warp w
//
//   rows      R*g + r     R = rows / 8, r < R
//   columns   V*(4*w + t) + c     V = columns / (4 * warps), c < V
//
// mma.sync takes them in another order: its row g + 8*h of fragment f is r = 2*f + h of the left
// operand, its column g of fragment q is r = q of the right one, and the words t and t + 4 of step
// s are columns 4*s and 4*s + 2. So a lane's elements come in vectors, and what is the same for
// neighbours (a packed word, the scale of a group) is computed once.
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileEmitter.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/Accesses.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned lanesOfRow = 4, groupsOfLanes = 8;

static tile::SpanOp spanOf(mlir::Value span) { return span.getDefiningOp<tile::SpanOp>(); }

/// Rows of a lane.
static unsigned rowsOfLane(tile::TileType type) { return type.getShape()[0] / groupsOfLanes; }

static bool hasWholeRows(tile::SpanOp span, int64_t rows) {
  return tile::isMultipleEverywhere(span.getBaseExpr(), rows) &&
         tile::isMultipleEverywhere(span.getEndExpr(), rows);
}

/// Offset of an element from the first, of nibbles in rows of whole bytes.
static ValueExpr storedOffset(tgl::TglTensorType type, ArrayRef<ValueExpr> subscripts) {
  if (!isPacked(type.getElementType()) || subscripts.empty())
    return tgl::elementOffset(type, subscripts);
  ValueExpr row(int64_t(0));
  for (auto [subscript, dim] : zip_equal(subscripts.drop_back(), type.getDims().drop_back()))
    row = row * ValueExpr(dim.getExpr()) + subscript;
  ValueExpr two(int64_t(2));
  ValueExpr bytes = ValueExpr::floorDiv(ValueExpr(type.getDims().back().getExpr()) + 1, two);
  return row * bytes * two + subscripts.back();
}

Value *TileEmitter::laneOfLine() {
  Value *warpNumber = b.CreateLShr(thread, i32(5));
  return b.CreateZExt(
      b.CreateAdd(b.CreateMul(warpNumber, i32(lanesOfRow)), b.CreateAnd(lane, i32(lanesOfRow - 1))),
      b.getInt64Ty());
}

Value *TileEmitter::pieceOf(tile::SpanOp span, int64_t length, Value *number) {
  Value *piece = b.CreateAdd(emitIndex(ValueExpr::floorDiv(span.getBaseExpr(), length)), number);
  Value *end = emitIndex(ValueExpr::floorDiv(span.getEndExpr(), length));
  return b.CreateBinaryIntrinsic(Intrinsic::smin, piece, b.CreateSub(end, i64(1)));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

TileEmitter::VectorLoads TileEmitter::vectorLoads(tile::VectorsOp op) const {
  constexpr unsigned widestBits = 128;
  tile::TileType type = op.getType();
  tgl::ReadOp read = op.getRead();
  mlir::Block &point = op.getBody().front();
  mlir::BlockArgument row = point.getArgument(0), column = point.getArgument(1);
  unsigned lanes = lanesOfRow * type.getFragments().getWarpSlices();
  VectorLoads loads;
  loads.rows = rowsOfLane(type);
  loads.columns = std::max<int64_t>(1, type.getShape()[1] / lanes);
  loads.bits = isPacked(type.getElementType()) ? 4 : storageBytes(type.getElementType()) * 8;
  tile::SpanOp rowSpan = spanOf(op.getSpans()[0]);
  // A lane's rows that all read the same are loaded once.
  auto haveRowsRun = [&] {
    return isPowerOf2_64(loads.rows) && hasWholeRows(rowSpan, loads.rows) &&
           tgl::Runs(row, loads.rows).of(read.getOperation()) == loads.rows;
  };
  if (row.use_empty() || haveRowsRun())
    loads.rows = 1;
  ValueExpr offset = storedOffset(read.getTensorType(), read.getSubscriptExprs());
  // Neighbours in memory whose guard, bounds and whatever else gives their place are those of the
  // first. Checks of proofs are of single elements.
  auto isAlong = [&](mlir::BlockArgument axis, int64_t length) {
    tgl::Runs runs(axis, length);
    return !options.checked && stepAlong(offset, axis) == 1 && tile::isInsideTogether(read, axis) &&
           all_of(read->getOperands(),
                  [&](mlir::Value value) { return value == axis || runs.of(value) == length; });
  };
  ValueExpr inPieces;
  if (loads.columns > 1 && isAlong(column, loads.columns)) {
    loads.direction = VectorLoads::Columns;
    inPieces = offset.substitute(column, ValueExpr(column) * ValueExpr(loads.columns));
  } else if (loads.rows > 1 && isAlong(row, loads.rows) && hasWholeRows(rowSpan, loads.rows)) {
    loads.direction = VectorLoads::Rows;
    inPieces = offset.substitute(row, ValueExpr(row) * ValueExpr(loads.rows));
  } else {
    loads.direction = VectorLoads::Elements;
  }
  loads.vector = 1;
  while (loads.direction != VectorLoads::Elements && loads.length() % (2 * loads.vector) == 0 &&
         2 * loads.vector * loads.bits <= widestBits &&
         tile::isMultipleEverywhere(inPieces, 2 * loads.vector))
    loads.vector *= 2;
  if (loads.vector * loads.bits < 8) // a run may begin within a byte
    loads.direction = VectorLoads::Elements;
  return loads;
}

void TileEmitter::loadRun(const Buffer &buffer, Value *address, const VectorLoads &loads,
                          Value *exists, Values &parts) {
  unsigned bytes = divideCeil(loads.vector * loads.bits, 8);
  Type *word = b.getIntNTy(std::min(8 * bytes, 32u));
  Type *type = loads.words() > 1 ? FixedVectorType::get(word, loads.words()) : word;
  for (unsigned first = 0; first < loads.length(); first += loads.vector) {
    Value *place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), address, first * loads.bits / 8);
    auto load = [&]() -> Value * {
      LoadInst *loaded = b.CreateAlignedLoad(type, place, Align(bytes));
      describeAccess(loaded, buffer);
      return loaded;
    };
    Value *loaded = exists ? emitIfElse(exists, load, Constant::getNullValue(type)) : load();
    for (unsigned number = 0; number < loads.words(); ++number)
      parts.push_back(loads.words() > 1 ? b.CreateExtractElement(loaded, number) : loaded);
  }
}

void TileEmitter::emitVectors(tile::VectorsOp op) {
  tile::TileType type = op.getType();
  tgl::ReadOp read = op.getRead();
  VectorLoads loads = vectorLoads(op);
  mlir::Block &point = op.getBody().front();
  const Buffer &buffer = buffers.find(read.getTensor())->second;
  tile::SpanOp rowSpan = spanOf(op.getSpans()[0]), span = spanOf(op.getSpans()[1]);
  unsigned lanes = lanesOfRow * type.getFragments().getWarpSlices();
  // Where there are fewer columns than lanes, neighbours share one.
  Value *number = laneOfLine();
  if (type.getShape()[1] < lanes)
    number = b.CreateUDiv(number, i64(lanes / type.getShape()[1]));
  Value *firstColumn = b.CreateMul(pieceOf(span, loads.columns, number), i64(loads.columns));
  Value *group = b.CreateZExt(b.CreateLShr(lane, i32(2)), b.getInt64Ty());
  unsigned rowsEach = rowsOfLane(type);
  auto rowAt = [&](unsigned row) -> Value * {
    if (hasWholeRows(rowSpan, rowsEach))
      return b.CreateAdd(b.CreateMul(pieceOf(rowSpan, rowsEach, group), i64(rowsEach)), i64(row));
    Value *inTile = b.CreateAdd(b.CreateMul(group, i64(rowsEach)), i64(row));
    return pieceOf(rowSpan, 1, inTile);
  };
  Values result;
  auto loadAt = [&](unsigned row, unsigned column) {
    values[point.getArgument(0)] = rowAt(row);
    values[point.getArgument(1)] = b.CreateAdd(firstColumn, i64(column));
    for (mlir::Operation &before : point.without_terminator())
      if (&before != read && !failed())
        emitOp(&before);
    Value *exists = emitReadMask(*this, read);
    SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
    Value *offset = emitIndex(storedOffset(buffer.type, subscripts));
    checks.verifyProved(buffer.type, subscripts, exists);
    if (loads.length() > 1) { // the last, too
      mlir::Value axis = point.getArgument(loads.direction == VectorLoads::Rows ? 0 : 1);
      for (ValueExpr &subscript : subscripts)
        subscript = subscript.substitute(axis, ValueExpr(axis) + int64_t(loads.length() - 1));
      checks.verifyProved(buffer.type, subscripts, exists);
    }
    Value *address =
        loads.bits == 4
            ? b.CreateInBoundsGEP(b.getInt8Ty(), buffer.pointer, b.CreateAShr(offset, i64(1)))
            : b.CreateInBoundsGEP(b.getIntNTy(loads.bits), buffer.pointer, offset);
    loadRun(buffer, address, loads, exists, result);
    if (loads.vector * loads.bits < 8) // a nibble: in its byte
      result.back() = b.CreateLShr(
          result.back(), b.CreateShl(b.CreateAnd(b.CreateTrunc(offset, b.getInt8Ty()), 1), 2));
  };
  bool byRows = loads.direction != VectorLoads::Rows,
       byColumns = loads.direction != VectorLoads::Columns;
  for (unsigned row = 0; row < (byRows ? loads.rows : 1); ++row)
    for (unsigned column = 0; column < (byColumns ? loads.columns : 1) && !failed(); ++column)
      loadAt(row, column);
  parts[op] = result;
}

Value *TileEmitter::elementOf(tile::VectorsOp op, ArrayRef<Value *> parts, unsigned row,
                              unsigned column) {
  VectorLoads loads = vectorLoads(op);
  if (loads.rows == 1)
    row = 0;
  unsigned run = row * loads.columns + column, place = 0;
  if (loads.direction == VectorLoads::Columns)
    run = row, place = column;
  else if (loads.direction == VectorLoads::Rows)
    run = column, place = row;
  unsigned load = run * (loads.length() / loads.vector) + place / loads.vector;
  unsigned bit = place % loads.vector * loads.bits;
  Value *word = parts[load * loads.words() + bit / 32];
  if (bit % 32)
    word = b.CreateLShr(word, bit % 32);
  mlir::Type element = op.getType().getElementType();
  if (loads.bits == 4)
    return decode(b.CreateAnd(b.CreateTrunc(word, b.getInt8Ty()), b.getInt8(15)), element);
  Value *raw = b.CreateTrunc(word, b.getIntNTy(loads.bits));
  return decode(b.CreateBitCast(raw, storageType(element)), element);
}

//===----------------------------------------------------------------------===//
// Elements, as they are multiplied
//===----------------------------------------------------------------------===//

TileEmitter::Stream TileEmitter::startStream(tile::OperandOp op) {
  tile::TileType type = op.getType();
  mlir::Block &point = op.getBody().front();
  unsigned lanes = lanesOfRow * type.getFragments().getWarpSlices(), rows = rowsOfLane(type);
  int64_t vector = type.getShape()[1] / lanes;
  tile::SpanOp rowSpan = spanOf(op.getSpans()[0]), span = spanOf(op.getSpans()[1]);
  bool isWhole = isPowerOf2_64(rows) && hasWholeRows(rowSpan, rows);
  Stream stream{op,
                rows,
                vector,
                isWhole,
                nullptr,
                pieceOf(span, vector, laneOfLine()),
                nullptr,
                tgl::Runs(point.getArgument(0), isWhole ? rows : 1),
                tgl::Runs(point.getArgument(1), vector),
                decltype(Stream::known)()};
  Value *group = b.CreateZExt(b.CreateLShr(lane, i32(2)), b.getInt64Ty());
  stream.firstRow = isWhole ? pieceOf(rowSpan, rows, group) : b.CreateMul(group, i64(rows));
  if (!span.isFull()) {
    Value *number =
        b.CreateAdd(emitIndex(ValueExpr::floorDiv(span.getBaseExpr(), vector)), laneOfLine());
    stream.exists =
        b.CreateICmpSLT(number, emitIndex(ValueExpr::floorDiv(span.getEndExpr(), vector)));
  }
  for (auto [argument, input] :
       zip_equal(cast<tile::PointsOp>(op.getOperation()).getInputArguments(), op.getInputs())) {
    stream.alongColumns.set(argument, type.getShape()[1] /
                                          cast<tile::TileType>(input.getType()).getShape()[1]);
    stream.alongRows.set(argument, 1);
  }
  return stream;
}

/// A piece's element, whose low bits are known.
static Value *elementOfPiece(IRBuilder<> &b, Value *piece, int64_t length, unsigned number) {
  Value *first = b.CreateShl(piece, Log2_64(length), "", /*HasNUW=*/true, /*HasNSW=*/true);
  return number ? b.CreateOr(first, b.getInt64(number), "", /*IsDisjoint=*/true) : first;
}

/// Bits of an integer with a sign that are known to be enough for it.
static unsigned signedBits(IRBuilder<> &b, Value *integer) {
  const DataLayout &layout = b.GetInsertBlock()->getModule()->getDataLayout();
  return integer->getType()->getIntegerBitWidth() - ComputeNumSignBits(integer, layout) + 1;
}

namespace {
/// Bits of a word that an integer is made of: `bits` of them from `shift` on.
struct BitField {
  Value *word;
  unsigned shift, bits;
  bool isAll; ///< whether the integer has no other bits than those
};
} // namespace

/// The bits that the integer takes out of a word of 32 bits, as unpacking does.
static BitField bitFieldOf(Value *integer) {
  using namespace PatternMatch;
  unsigned width = integer->getType()->getIntegerBitWidth();
  Value *from;
  const APInt *number;
  auto most = [&](unsigned bits) {
    BitField field = bitFieldOf(from);
    field.isAll |= bits <= field.bits;
    field.bits = std::min(field.bits, bits);
    return field;
  };
  if (match(integer, m_And(m_Value(from), m_LowBitMask(number))))
    return most(number->getActiveBits());
  if (match(integer, m_Trunc(m_Value(from))))
    return most(width);
  if (match(integer, m_ZExt(m_Value(from))))
    return bitFieldOf(from);
  if (match(integer, m_SExt(m_Value(from)))) {
    BitField field = bitFieldOf(from);
    field.isAll &= field.bits < from->getType()->getIntegerBitWidth();
    return field;
  }
  if (match(integer, m_Shr(m_Value(from), m_APInt(number)))) {
    BitField field = bitFieldOf(from);
    bool isLogical = cast<Operator>(integer)->getOpcode() == Instruction::LShr;
    if (number->ult(field.bits)) {
      unsigned by = number->getZExtValue();
      field.isAll &= isLogical || field.bits < width;
      return {field.word, field.shift + by, field.bits - by, field.isAll};
    }
  }
  return {integer, 0, width, true};
}

/// The integer as f32. Most are of few bits, whatever type they are computed in: conversions take
/// more than one turn of the units, of 64 bits many.
static Value *floatOf(IRBuilder<> &b, Value *integer, bool isSigned) {
  const DataLayout &layout = b.GetInsertBlock()->getModule()->getDataLayout();
  unsigned width = integer->getType()->getIntegerBitWidth();
  constexpr unsigned significand = 23, word = 32, exponent = (127 + significand) << significand;
  auto ofBits = [&](Value *bits, double from) {
    return b.CreateFSub(b.CreateBitCast(bits, b.getFloatTy()),
                        ConstantFP::get(b.getFloatTy(), from));
  };
  // Bits of a word stay where they are: those of 2^(23 - s) + n are n from bit s on. What lies too
  // high is moved down with all others of its half.
  BitField field = bitFieldOf(integer);
  bool hasSign = isSigned && field.bits == width;
  if (field.isAll && !hasSign && field.shift && field.word->getType()->isIntegerTy(word)) {
    unsigned down = field.shift + field.bits <= significand ? 0 : std::min(field.shift, word / 2);
    unsigned shift = field.shift - down;
    if (shift + field.bits <= significand) {
      Value *moved = down ? b.CreateLShr(field.word, down) : field.word;
      Value *bits = b.CreateAnd(moved, ((1u << field.bits) - 1) << shift);
      return ofBits(b.CreateOr(bits, b.getInt32(exponent - (shift << significand))),
                    1 << (significand - shift));
    }
  }
  if (width < word)
    integer =
        isSigned ? b.CreateSExt(integer, b.getInt32Ty()) : b.CreateZExt(integer, b.getInt32Ty());
  // The bits of 2^23 + n are those of 2^23, and of n; of 3*2^22 + n their sum, below zero too.
  if (computeKnownBits(integer, layout).countMaxActiveBits() <= significand)
    return ofBits(b.CreateOr(b.CreateTrunc(integer, b.getInt32Ty()), b.getInt32(exponent)),
                  1 << significand);
  if (width > word && isSigned && signedBits(b, integer) <= significand)
    return ofBits(b.CreateAdd(b.CreateTrunc(integer, b.getInt32Ty()),
                              b.getInt32(exponent + (1 << (significand - 1)))),
                  3 << (significand - 1));
  return isSigned ? b.CreateSIToFP(integer, b.getFloatTy())
                  : b.CreateUIToFP(integer, b.getFloatTy());
}

Value *TileEmitter::rowOfLane(const Stream &stream, unsigned row) {
  if (stream.hasWholeRows)
    return elementOfPiece(b, stream.firstRow, stream.rows, row);
  return pieceOf(spanOf(tile::OperandOp(stream.op).getSpans()[0]), 1,
                 b.CreateAdd(stream.firstRow, i64(row)));
}

/// Where an input is computed: through loops that carry it.
static tile::VectorsOp vectorsOf(mlir::Value input) {
  while (auto argument = dyn_cast<mlir::BlockArgument>(input)) {
    auto loop = dyn_cast<tile::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument.getArgNumber() == 0)
      return {};
    input = loop.getInits()[argument.getArgNumber() - 1];
  }
  return input.getDefiningOp<tile::VectorsOp>();
}

Value *TileEmitter::streamInput(Stream &stream, mlir::BlockArgument input, unsigned row,
                                unsigned column) {
  mlir::Value tile = stream.op.getInputs()[input.getArgNumber() - 2];
  tile::VectorsOp vectors = vectorsOf(tile);
  if (!vectors) {
    fail(stream.op, "has an input that no vectors are loaded for");
    return PoisonValue::get(typeOf(input.getType()));
  }
  int64_t run = stream.alongColumns.of(input);
  return elementOf(vectors, parts[tile], row, column / run);
}

Value *TileEmitter::loadedWord(Stream &stream, mlir::BlockArgument input, unsigned row,
                               unsigned column) {
  if (input.getArgNumber() < 2)
    return nullptr;
  mlir::Value tile = stream.op.getInputs()[input.getArgNumber() - 2];
  tile::VectorsOp vectors = vectorsOf(tile);
  if (!vectors || vectors.getType().getElementType() != stream.op.getType().getElementType() ||
      stream.alongColumns.of(input) != 1)
    return nullptr;
  VectorLoads loads = vectorLoads(vectors);
  if (loads.direction != VectorLoads::Columns || loads.vector == 1)
    return nullptr;
  return parts[tile][((loads.rows == 1 ? 0 : row) * loads.columns + column) / 2];
}

Value *TileEmitter::streamValue(Stream &stream, mlir::Value value, unsigned row, unsigned column) {
  mlir::Block &point = stream.op.getBody().front();
  auto argument = dyn_cast<mlir::BlockArgument>(value);
  mlir::Operation *op = value.getDefiningOp();
  bool isInside = argument ? argument.getOwner() == &point : op->getBlock() == &point;
  if (!isInside)
    return valueOf(value);
  // The first of the neighbours for which it is the same.
  unsigned rowRun = stream.alongRows.of(value), columnRun = stream.alongColumns.of(value);
  row -= row % rowRun;
  column -= column % columnRun;
  Value *&known = stream.known[{argument ? argument.getAsOpaquePointer() : op, {row, column}}];
  if (known)
    return known;
  mlir::BlockArgument rowArgument = point.getArgument(0), columnArgument = point.getArgument(1);
  Value *result = nullptr;
  if (value == rowArgument) {
    result = rowOfLane(stream, row);
  } else if (value == columnArgument) {
    result = elementOfPiece(b, stream.chunk, stream.vector, column);
  } else if (argument) {
    result = streamInput(stream, argument, row, column);
  } else {
    // All of them before any is set: what computes one sets others.
    SmallVector<std::pair<mlir::Value, Value *>> operands;
    for (mlir::Value operand : op->getOperands())
      if (!isa<tgl::TglTensorType>(operand.getType()))
        operands.push_back({operand, streamValue(stream, operand, row, column)});
    if (failed())
      return PoisonValue::get(typeOf(value.getType()));
    for (auto [operand, number] : operands)
      values[operand] = number;
    if (auto index = dyn_cast<tgl::IndexOp>(op)) {
      // Remainders of columns are numbers.
      ValueExpr expr = index.getValueExpr().substitute(
          columnArgument, ValueExpr(columnArgument) * stream.vector + int64_t(column));
      values[columnArgument] = stream.chunk;
      if (stream.hasWholeRows) {
        expr = expr.substitute(rowArgument,
                               ValueExpr(rowArgument) * int64_t(stream.rows) + int64_t(row));
        values[rowArgument] = stream.firstRow;
      }
      result = emitIndex(expr);
    } else if (isa<mlir::arith::SIToFPOp, mlir::arith::UIToFPOp>(op) && value.getType().isF32()) {
      result = floatOf(b, valueOf(op->getOperand(0)), isa<mlir::arith::SIToFPOp>(op));
    } else {
      emitOp(op);
      result = values[value];
    }
  }
  return stream.known[{argument ? argument.getAsOpaquePointer() : op, {row, column}}] = result;
}

Value *TileEmitter::streamWord(Stream &stream, unsigned row, unsigned column) {
  mlir::Value yielded = stream.op.getYielded();
  mlir::Type element = stream.op.getType().getElementType();
  if (auto input = dyn_cast<mlir::BlockArgument>(yielded))
    if (Value *word = loadedWord(stream, input, row, column))
      return stream.exists ? b.CreateSelect(stream.exists, word, i32(0)) : word;
  // Rounding is part of packing.
  auto rounded = yielded.getDefiningOp<tgl::ConvertOp>();
  if (rounded && rounded.getTarget() == element && rounded.getValue().getType().isF32())
    yielded = rounded.getValue();
  bool isOfInteger = rounded && rounded.getTarget() == element &&
                     isa<mlir::IntegerType>(rounded.getValue().getType());
  Value *pair[2];
  for (unsigned number : {0, 1}) {
    if (isOfInteger) {
      // An integer that f32 has is rounded once.
      constexpr unsigned exactBits = 25;
      Value *integer = streamValue(stream, rounded.getValue(), row, column + number);
      if (!failed() && signedBits(b, integer) <= exactBits) {
        pair[number] = floatOf(b, integer, /*isSigned=*/true);
        continue;
      }
    }
    pair[number] = streamValue(stream, yielded, row, column + number);
  }
  if (failed())
    return i32(0);
  Value *word;
  if (element.isF16())
    word = b.CreateBitCast(b.CreateIntrinsic(Intrinsic::nvvm_ff2f16x2_rn, {pair[1], pair[0]}),
                           b.getInt32Ty());
  else if (options.target.hasPackedBF16Convert)
    word = b.CreateBitCast(b.CreateIntrinsic(Intrinsic::nvvm_ff2bf16x2_rn, {pair[1], pair[0]}),
                           b.getInt32Ty());
  else
    word = b.CreateOr(b.CreateZExt(encode(pair[0], element), b.getInt32Ty()),
                      b.CreateShl(b.CreateZExt(encode(pair[1], element), b.getInt32Ty()), 16));
  return stream.exists ? b.CreateSelect(stream.exists, word, i32(0)) : word;
}

void TileEmitter::emitSlicedMma(tile::MmaOp op) {
  auto a = op.getA().getDefiningOp<tile::OperandOp>(),
       columns = op.getB().getDefiningOp<tile::OperandOp>();
  Mma core(b, a.getType().getElementType().isBF16() ? MmaType::BF16 : MmaType::F16);
  Stream left = startStream(a), right = startStream(columns);
  unsigned across = right.rows; // fragments of 8 columns
  std::vector<std::array<Value *, 4>> sums(left.rows / 2 * across);
  for (auto [number, value] : enumerate(parts[op.getC()]))
    sums[number / 4][number % 4] = value;
  for (unsigned column = 0; column < left.vector && !failed(); column += 4) {
    SmallVector<std::array<Value *, 2>> words;
    for (unsigned q = 0; q < across; ++q)
      words.push_back({streamWord(right, q, column), streamWord(right, q, column + 2)});
    for (unsigned f = 0; f < left.rows / 2; ++f) {
      Value *rows[] = {streamWord(left, 2 * f, column), streamWord(left, 2 * f + 1, column),
                       streamWord(left, 2 * f, column + 2),
                       streamWord(left, 2 * f + 1, column + 2)};
      for (unsigned q = 0; q < across; ++q)
        sums[f * across + q] = core.multiply(rows, words[q], sums[f * across + q]);
    }
  }
  Values &result = parts[op];
  result.clear();
  for (const std::array<Value *, 4> &fragment : sums)
    append_range(result, fragment);
}

//===----------------------------------------------------------------------===//
// Sums of slices
//===----------------------------------------------------------------------===//

void TileEmitter::emitSumWarps(tile::SumWarpsOp op) {
  tile::TileType type = op.getType();
  unsigned rows = type.getShape()[0], columns = type.getShape()[1], total = rows * columns;
  unsigned slices = op.getTerms().getType().getFragments().getWarpSlices();
  unsigned threads = cast<tile::LinearLayoutAttr>(type.getLayout()).getThreads();
  unsigned ofLane = rows / groupsOfLanes, across = columns / groupsOfLanes;
  Value *base = parts[op.getScratch()].front();
  ArrayRef<Value *> terms = parts[op.getTerms()];
  auto place = [&](Value *number) { return b.CreateInBoundsGEP(b.getFloatTy(), base, number); };
  Value *warpFirst = b.CreateMul(b.CreateLShr(thread, i32(5)), i32(total));
  Value *firstRow = b.CreateMul(b.CreateLShr(lane, i32(2)), i32(ofLane));
  // A lane's rows are neighbours; of fragment q it has the columns 2*t and 2*t + 1.
  unsigned together = ofLane % 4 == 0 ? 4 : 2;
  for (unsigned q = 0; q < across; ++q)
    for (unsigned half = 0; half < 2; ++half) {
      Value *inFragment =
          b.CreateAdd(b.CreateShl(b.CreateAnd(lane, i32(lanesOfRow - 1)), 1), i32(half));
      Value *column = b.CreateAdd(b.CreateMul(inFragment, i32(across)), i32(q));
      Value *first = b.CreateAdd(warpFirst, b.CreateAdd(b.CreateMul(column, i32(rows)), firstRow));
      for (unsigned row = 0; row < ofLane; row += together) {
        Value *vector = PoisonValue::get(FixedVectorType::get(b.getFloatTy(), together));
        for (unsigned n = 0; n < together; ++n) {
          unsigned r = row + n;
          Value *term = terms[((r / 2) * across + q) * 4 + r % 2 * 2 + half];
          vector = b.CreateInsertElement(vector, term, n);
        }
        b.CreateAlignedStore(vector, place(b.CreateAdd(first, i32(row))), Align(4 * together));
      }
    }
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
  Values result;
  for (unsigned first = 0; first < total; first += threads) {
    Value *number = b.CreateAdd(thread, i32(first));
    if (first + threads > total) // what does not exist repeats the last
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, i32(total - 1));
    Value *sum = nullptr;
    for (unsigned slice = 0; slice < slices; ++slice) {
      Value *term = b.CreateAlignedLoad(b.getFloatTy(),
                                        place(b.CreateAdd(number, i32(slice * total))), Align(4));
      sum = sum ? b.CreateFAdd(sum, term) : term;
    }
    result.push_back(sum);
  }
  parts[op] = result;
}

void TileEmitter::emitLinearStore(tile::StoreOp op) {
  auto type = cast<tile::TileType>(op.getInputs()[0].getType());
  unsigned threads = cast<tile::LinearLayoutAttr>(type.getLayout()).getThreads();
  unsigned rows = type.getShape()[0], total = rows * type.getShape()[1];
  const Span rowSpan = spans[op.getSpans()[0]], columnSpan = spans[op.getSpans()[1]];
  mlir::Block &point = op.getBody().front();
  for (unsigned first = 0, turn = 0; first < total && !failed(); first += threads, ++turn) {
    Value *number = b.CreateAdd(thread, i32(first));
    Value *row = b.CreateAdd(rowSpan.base, wide(b.CreateURem(number, i32(rows))));
    Value *column = b.CreateAdd(columnSpan.base, wide(b.CreateUDiv(number, i32(rows))));
    Value *exists = first + threads > total ? b.CreateICmpULT(number, i32(total)) : nullptr;
    if (!rowSpan.isFull)
      exists = emitAnd(exists, b.CreateICmpSLT(row, rowSpan.end));
    if (!columnSpan.isFull)
      exists = emitAnd(exists, b.CreateICmpSLT(column, columnSpan.end));
    auto store = [&] {
      values[point.getArgument(0)] = row;
      values[point.getArgument(1)] = column;
      for (auto [argument, input] : zip_equal(point.getArguments().drop_front(2), op.getInputs()))
        values[argument] = parts[input][turn];
      emitPoint(point);
    };
    if (exists)
      emitIf(exists, store);
    else
      store();
  }
}
