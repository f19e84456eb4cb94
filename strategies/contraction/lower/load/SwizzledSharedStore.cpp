//===- SwizzledSharedStore.cpp - Stores operands of wgmma in the swizzled layout ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements come in units of eight neighbours, 16 bytes of a plane. Numbers of 16 bits that lie so
// in memory are copied asynchronously. All else is loaded or evaluated into registers, element by
// element where it must be, converted, and stored as lines along the sum whatever their order in
// memory: threads side by side have neighbours in memory, and store to different banks.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

WgmmaProduct WgmmaLoads::makeWgmmaProduct(unsigned number) {
  const ContractionProduct &planned = plan.products[number];
  const ProductOperands &how = numbers.wgmmaProducts[number];
  WgmmaProduct product;
  product.number = number;
  product.reduce = planned.reduce;
  product.type = how.type;
  product.promotesAccumulators = (product.isScaled() || numbers.usesBF16Terms()) && !how.isRounded;
  unsigned terms = product.isScaled() ? std::max(how.a.terms, how.b.terms) : 1;
  auto operand = [&](const ContractionSide &side, const ContractionOperand &operand,
                     const TileDim &group, unsigned lines, unsigned offset, unsigned firstLine) {
    WgmmaOperand result;
    result.side = &side;
    result.how = &operand;
    result.group = &group;
    result.planes = numbers.usesBF16Terms() && !operand.isExact ? tile.terms : 1;
    result.isCopied = result.planes == 1 && !product.isScaled() && !numbers.isPrepacked() &&
                      operand.staging == Staging::Vectors;
    result.isStaged = !result.isCopied;
    result.shared = {!result.isCopied || operand.kMajor, terms, lines, product.elementBytes()};
    bool inVectors = !result.isCopied && operand.staging == Staging::Vectors && operand.kMajor;
    bool isSingle = product.isScaled() || result.planes > 1;
    result.vector = !inVectors ? 1 : isSingle ? 4 : result.shared.chunkElements();
    result.terms = product.isScaled() ? operand.terms : 1;
    result.offset = offset;
    result.distributeOver(numbers.producerThreads());
    result.firstLine = firstLine;
    return result;
  };
  auto windowOf = [](const std::optional<WindowOperand> &window) {
    return window ? &*window : nullptr;
  };
  product.a = operand(planned.a, how.a, here.rows, tile.rows, 0, 0);
  product.b =
      operand(planned.b, how.b, here.columns, tile.columns, product.a.bytes(), here.rows.extent);
  // Sums of f32 are kept for 64 points at most.
  product.substeps = terms;
  KOrder order{to_vector(
      seq<unsigned>(0, cast<tgl::AxesOp>(product.reduce.getOperation()).getAxes().size()))};
  if (numbers.isPrepacked()) {
    order = numbers.prepacked[number].order;
    product.a.window = windowOf(numbers.prepacked[number].a);
    product.b.window = windowOf(numbers.prepacked[number].b);
    product.b.usesHaloTile = numbers.usesHaloTile();
  }
  product.kLoop =
      indices.makeKLoop(product.reduce, product.a.shared.depth() * product.substeps, order);
  if (tile.accumulated && number == 0) // those of the others follow
    for (const ContractionProduct &other : ArrayRef(plan.products).drop_front())
      product.kLoop.steps =
          b.CreateAdd(product.kLoop.steps, stepsOf(other, product.a.shared.depth()));
  if (numbers.usesHaloTile()) { // steps are groups
    product.kLoop.steps = i64(order.numGroups());
    product.substeps = order.groupPoints / product.a.shared.depth();
  }
  if (product.kLoop.isReordered) // neighbours in memory are neighbours in the statement's order
    product.a.vector = product.b.vector = 1;
  return product;
}

Value *WgmmaLoads::stepsOf(const ContractionProduct &product, int64_t depth) {
  tgl::AxesOp summed = cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation());
  auto all = to_vector(seq<unsigned>(0, summed.getAxes().size()));
  return ceilDiv(here.pointsOf(summed, all), i64(depth));
}

Wgmma WgmmaLoads::wgmmaFor(const WgmmaProduct &product) {
  if (isBytes(product.type))
    return Wgmma(b, nameOfByte(*product.a.how), nameOfByte(*product.b.how));
  return Wgmma(b, product.type == MmaType::BF16);
}

/// Where unit `index` of this thread lies in the tile.
WgmmaLoads::ChunkCoord WgmmaLoads::chunkOf(const WgmmaOperand &operand, unsigned index) {
  const WgmmaSharedLayout &shared = operand.shared;
  if (shared.kMajor && !operand.how->kMajor) { // neighbours in memory are lines
    bool isEven = operand.threads % shared.extent == 0;
    Value *number = isEven ? here.thread : b.CreateAdd(here.thread, i32(index * operand.threads));
    Value *line = b.CreateURem(number, i32(shared.extent)),
          *chunk = b.CreateUDiv(number, i32(shared.extent));
    return {line,
            isEven ? b.CreateAdd(chunk, i32(index * (operand.threads / shared.extent))) : chunk, 0};
  }
  return chunkInLine(shared.chunksPerLine(), index, operand.threads);
}

/// The same where `perLine` of so many threads, side by side, have neighbours along the sum.
WgmmaLoads::ChunkCoord WgmmaLoads::chunkInLine(unsigned perLine, unsigned index, unsigned threads) {
  if (threads % perLine) { // of 192 columns, for example
    Value *number = b.CreateAdd(here.thread, i32(index * threads));
    return {b.CreateUDiv(number, i32(perLine)), b.CreateURem(number, i32(perLine)), 0};
  }
  Value *line = b.CreateUDiv(here.thread, i32(perLine));
  if (perLine ==
      4) { // eight threads side by side have lines 0 and 4 of eight, whose units lie in all banks
    Value *high = b.CreateAnd(line, i32(~7)), *odd = b.CreateShl(b.CreateAnd(line, i32(1)), i32(2));
    line = b.CreateOr(b.CreateOr(high, odd), b.CreateAnd(b.CreateLShr(line, i32(1)), i32(3)));
  }
  return {line, b.CreateURem(here.thread, i32(perLine)), index * (threads / perLine)};
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// What comes in registers.
Type *WgmmaLoads::elementOf(const WgmmaProduct &product, const WgmmaOperand &operand) {
  return product.isScaled() || operand.planes > 1
             ? b.getFloatTy()
             : static_cast<Type *>(b.getIntNTy(8 * product.elementBytes()));
}

/// The row (column) of the statement that is line `line` of the tile, of `count` neighbours the
/// first. Beyond the last row it is the last again: its sums are not used, and it is there to be
/// read.
Value *WgmmaLoads::numberOf(const WgmmaOperand &operand, Value *line, unsigned count) {
  Value *number = b.CreateAdd(operand.group->first, line);
  if (operand.group->fits)
    return number;
  return b.CreateBinaryIntrinsic(Intrinsic::smin, number,
                                 b.CreateSub(operand.group->total, i64(count)));
}

/// Where in its tensor the side's read is, in elements. `inside`: whether that is in bounds; null:
/// always.
Value *WgmmaLoads::readOffset(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                              Value *number, Value *&inside) {
  tgl::ReadOp read = operand.how->read;
  indices.setPoint(product.reduce, product.kLoop, operand.side->collapsesSum, k);
  here.setNumber(axes, operand.group->axes, operand.side->collapsesAxes, number);
  for (mlir::Operation *op : operand.side->slice)
    if (op != read && !(operand.givenMatrix && op == operand.givenMatrix.getDefiningOp()))
      e.emitOp(op);
  tgl::TglTensorType type = e.buffers.find(read.getTensor())->second.type;
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  inside = read.getFill() ? e.checks.emitBoundsCheck(subscripts, type) : nullptr;
  return e.emitIndex(tgl::elementOffset(type, subscripts));
}

Value *WgmmaLoads::addressAt(const WgmmaOperand &operand, Value *offset) {
  const Emitter::Buffer &buffer =
      e.buffers.find(tgl::ReadOp(operand.how->read).getTensor())->second;
  return b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()), buffer.pointer, offset);
}

/// The address of the element that the side reads there; that of the tensor's first where it does
/// not exist.
Value *WgmmaLoads::readAddress(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                               Value *number, Value *&exists) {
  Value *inside = nullptr, *offset = readOffset(product, operand, k, number, inside);
  exists = e.emitAnd(indices.existsAt(product.reduce, product.kLoop, k), inside);
  return addressAt(operand, exists ? b.CreateSelect(exists, offset, i64(0)) : offset);
}

/// The operand's vector at that address; 0 where it does not exist.
Value *WgmmaLoads::loadAt(const WgmmaProduct &product, const WgmmaOperand &operand, Value *place,
                          Value *exists) {
  unsigned count = operand.vector;
  Type *element = elementOf(product, operand);
  Type *type = count == 1 ? element : FixedVectorType::get(element, count);
  unsigned bytes = count * element->getPrimitiveSizeInBits() / 8;
  LoadInst *load = b.CreateAlignedLoad(type, place, Align(bytes));
  // Producers' loads stay between the barriers where they stand: there they are under way while
  // others are used.
  if (!numbers.isWarpSpecialized() &&
      e.buffers.find(tgl::ReadOp(operand.how->read).getTensor())->second.isConstant)
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
  return exists ? b.CreateSelect(exists, load, Constant::getNullValue(type))
                : static_cast<Value *>(load);
}

/// One value, or one vector of neighbours in memory: f32, or the 16 bits of a number.
Value *WgmmaLoads::loadElement(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                               Value *number) {
  if (operand.how->isPlain) {
    Value *exists = nullptr, *place = readAddress(product, operand, k, number, exists);
    return loadAt(product, operand, place, exists);
  }
  Type *type = elementOf(product, operand);
  auto value = [&] {
    Value *result =
        indices.valueAt(product.reduce, product.kLoop, *operand.side, *operand.group, k, number);
    return type->isFloatTy() ? result : indices.narrow(product.type, *operand.how, result);
  };
  Value *exists = indices.existsAt(product.reduce, product.kLoop, k);
  return exists ? e.emitIfElse(exists, value, Constant::getNullValue(type)) : value();
}

/// The unit with a value or a vector from element `n` on.
Value *WgmmaLoads::insert(Value *chunk, Value *values, unsigned n) {
  return values->getType()->isVectorTy()
             ? b.CreateInsertVector(chunk->getType(), chunk, values, uint64_t(n))
             : b.CreateInsertElement(chunk, values, uint64_t(n));
}

/// By how many elements the points of a unit are apart, where a unit has one place in all axes of
/// the sum but one, and what a fill checks is the same for all its points; nothing elsewhere.
std::optional<int64_t> WgmmaLoads::stepInChunk(const WgmmaProduct &product,
                                               const WgmmaOperand &operand) {
  if (!operand.how->isPlain)
    return std::nullopt;
  tgl::ReadOp read = operand.how->read;
  auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation());
  ArrayRef<unsigned> order = product.kLoop.order.axes;
  bool isPadded = product.kLoop.isReordered, collapses = operand.side->collapsesSum && !isPadded;
  while (!collapses && !isPadded && order.size() > 1 && tgl::knownPoints(summed, order.back()) == 1)
    order = order.drop_back();
  bool isAlone = collapses || tgl::knownPoints(summed, order.drop_back()) == 1;
  std::optional<int64_t> extent = tgl::knownPoints(summed, order.back());
  if (!isAlone && !isPadded && (!extent || *extent % operand.shared.chunkElements()))
    return std::nullopt;
  mlir::Value axis = summed.getAxes()[order.back()];
  if (any_of(operand.side->slice, [&](mlir::Operation *op) {
        return op != read && is_contained(op->getOperands(), axis);
      }))
    return std::nullopt;
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  if (read.getFill()) {
    Prover prover(sizeFacts(read->getParentOfType<tgl::KernelOp>()));
    AxisScope scope(prover, read);
    for (auto [subscript, dim] : zip(subscripts, read.getTensorType().getDims()))
      if (subscript.uses(axis) && !scope.provesInBounds(subscript, dim.getExpr()))
        return std::nullopt;
  }
  std::optional<int64_t> step =
      tgl::stepAlong(tgl::elementOffset(read.getTensorType(), subscripts), axis);
  return step && *step >= 0 ? step : std::nullopt;
}

/// A unit whose points are `step` elements apart: its place and bounds are computed once.
Value *WgmmaLoads::loadSteps(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                             Value *number, int64_t step) {
  auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation());
  Value *exists = nullptr, *offset = readOffset(product, operand, k, number, exists);
  ArrayRef<unsigned> order = product.kLoop.order.axes;
  std::optional<int64_t> points =
      tgl::knownPoints(summed, product.kLoop.isReordered ? order.take_back() : order);
  bool isWhole = product.kLoop.fits || (points && *points % operand.shared.chunkElements() == 0);
  if (isWhole)
    exists = e.emitAnd(exists, indices.existsAt(product.reduce, product.kLoop, k));
  // From the tensor's first element on there are as many steps as in any unit.
  Value *place =
      addressAt(operand, exists && isWhole ? b.CreateSelect(exists, offset, i64(0)) : offset);
  Type *element = elementOf(product, operand);
  Value *chunk = PoisonValue::get(FixedVectorType::get(element, operand.shared.chunkElements()));
  for (unsigned n = 0; n < operand.shared.chunkElements(); n += operand.vector) {
    Value *from = b.CreateInBoundsGEP(element, place, i64(n * step)), *isThere = exists;
    if (!isWhole) {
      isThere = e.emitAnd(exists,
                          indices.existsAt(product.reduce, product.kLoop, b.CreateAdd(k, i64(n))));
      from = b.CreateSelect(isThere, from, addressAt(operand, i64(0)));
    }
    chunk = insert(chunk, loadAt(product, operand, from, isThere), n);
  }
  return chunk;
}

/// Eight neighbours along the sum from point `k` on as a vector.
Value *WgmmaLoads::loadChunkAt(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                               Value *number) {
  if (std::optional<int64_t> apart = stepInChunk(product, operand))
    return loadSteps(product, operand, k, number, *apart);
  Type *element = elementOf(product, operand);
  Value *chunk = PoisonValue::get(FixedVectorType::get(element, operand.shared.chunkElements()));
  for (unsigned n = 0; n < operand.shared.chunkElements(); n += operand.vector)
    chunk = insert(chunk, loadElement(product, operand, n ? b.CreateAdd(k, i64(n)) : k, number), n);
  return chunk;
}

/// This thread's unit `index` of a step.
Value *WgmmaLoads::loadChunk(const WgmmaProduct &product, const WgmmaOperand &operand, Value *step,
                             unsigned index) {
  ChunkCoord place = chunkOf(operand, index);
  Value *first = b.CreateAdd(b.CreateMul(step, i64(operand.shared.depth())),
                             wide(b.CreateMul(place.chunk, i32(operand.shared.chunkElements()))));
  return loadChunkAt(product, operand, first, numberOf(operand, wide(lineOf(place)), 1));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Of a thread, of what comes through registers.
unsigned WgmmaLoads::chunksOfStage(const WgmmaProduct &product) {
  return (product.a.isStaged ? product.a.count : 0) + (product.b.isStaged ? product.b.count : 0);
}

/// These units, rows first.
SmallVector<Value *> WgmmaLoads::loadChunks(const WgmmaProduct &product, Value *step) {
  SmallVector<Value *> chunks;
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index)
      chunks.push_back(loadChunk(product, *operand, step, index));
  return chunks;
}

/// The units of the block's step `number` (i64); of its last where it has no such step. There is no
/// branch, so that loads stay where they are: far from what uses them.
SmallVector<Value *> WgmmaLoads::loadNext(const WgmmaProduct &product, Value *number) {
  Value *substeps = i64(product.substeps);
  Value *last = b.CreateSub(b.CreateMul(product.kLoop.steps, substeps), i64(1));
  number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, last);
  Value *step =
      b.CreateMul(indices.stepInKLoop(product.kLoop, b.CreateUDiv(number, substeps)), substeps);
  return loadChunks(product, b.CreateAdd(step, b.CreateURem(number, substeps)));
}

void WgmmaLoads::storeChunks(const WgmmaProduct &product, ArrayRef<Value *> chunks,
                             ArrayRef<Value *> scales, Value *stage) {
  Wgmma group = wgmmaFor(product);
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index) {
      ChunkCoord place = chunkOf(*operand, index);
      auto store = [&](Value *values, unsigned term, unsigned plane = 0) {
        Value *offset =
            b.CreateAdd(group.swizzledOffset(operand->shared, place.line, place.chunk, term),
                        i32(operand->offset + plane * operand->shared.bytes() +
                            place.below * WgmmaSharedLayout::lineBytes));
        b.CreateAlignedStore(values, b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), Align(16));
      };
      Value *chunk = chunks.front();
      chunks = chunks.drop_front();
      if (operand->planes > 1) {
        for (auto [plane, term] : enumerate(precision.bf16Terms(chunk)))
          store(term, 0, plane);
        continue;
      }
      if (!product.isScaled()) {
        store(chunk, 0);
        continue;
      }
      std::array<Value *, 2> terms = precision.splitChunk(chunk, scales.front(), operand->terms);
      scales = scales.drop_front();
      for (unsigned term = 0; term < operand->terms; ++term)
        store(terms[term], term);
    }
}

/// The address from which a unit of the tile's line `line` and its neighbours, of `count` in all,
/// is copied. Of what does not exist nothing is read, so that it may be any; but where other reads
/// tell the place they need lines that exist.
Value *WgmmaLoads::copyAddress(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                               Value *line, unsigned count, Value *&exists) {
  mlir::Operation *own = tgl::ReadOp(operand.how->read);
  if (any_of(operand.side->slice,
             [&](mlir::Operation *op) { return op != own && isa<tgl::ReadOp>(op); }))
    return readAddress(product, operand, k, numberOf(operand, line, count), exists);
  Value *number = b.CreateAdd(operand.group->first, line), *inside = nullptr;
  Value *offset = readOffset(product, operand, k, number, inside);
  exists = e.emitAnd(indices.existsAt(product.reduce, product.kLoop, k), inside);
  if (!operand.group->fits)
    exists =
        e.emitAnd(exists, b.CreateICmpSLE(number, b.CreateSub(operand.group->total, i64(count))));
  return addressAt(operand, offset);
}

/// Starts the copies of one step.
void WgmmaLoads::copyChunks(const WgmmaProduct &product, Value *step, Value *stage) {
  Wgmma group = wgmmaFor(product);
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned index = 0; operand->isCopied && index < operand->count; ++index) {
      ChunkCoord place = chunkOf(*operand, index);
      unsigned inChunk = operand->shared.chunkElements();
      Value *alongLine = wide(b.CreateMul(place.chunk, i32(inChunk))), *line = wide(lineOf(place));
      bool kMajor = operand->shared.kMajor;
      Value *k =
          b.CreateAdd(b.CreateMul(step, i64(operand->shared.depth())), kMajor ? alongLine : line);
      Value *exists = nullptr, *from = copyAddress(product, *operand, k, kMajor ? line : alongLine,
                                                   kMajor ? 1 : inChunk, exists);
      Value *offset =
          b.CreateAdd(group.swizzledOffset(operand->shared, place.line, place.chunk, 0),
                      i32(operand->offset + place.below * WgmmaSharedLayout::lineBytes));
      group.copyChunk(b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), from, exists);
    }
}
