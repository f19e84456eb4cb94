//===- PlaneStaging.cpp - Operands of warpgroups to shared memory ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements come in units of eight neighbours, 16 bytes of a plane. Numbers of 16 bits that lie so in memory
// are copied asynchronously. All else is loaded or evaluated into registers, element by element where it must
// be, converted, and stored as lines along the sum whatever their order in memory: threads side by side have
// neighbours in memory, and store to different banks.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "passes/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

PlaneProduct DeviceContraction::makePlaneProduct(unsigned number) {
  const ContractionProduct &planned = plan.products[number];
  const ProductOperands &how = products[number];
  PlaneProduct product;
  product.number = number;
  product.reduce = planned.reduce;
  product.type = how.type;
  product.keepsPartial = product.isScaled() && !how.isRounded;
  unsigned planes = product.isScaled() ? std::max(how.row.parts, how.column.parts) : 1;
  auto operand = [&](const ContractionSide &side, const ContractionOperand &operand, const Group &group,
                     unsigned offset, unsigned firstLine) {
    PlaneOperand result;
    result.side = &side;
    result.how = &operand;
    result.group = &group;
    result.isCopied = !product.isScaled() && !isPacked() && operand.staging == Staging::Vectors;
    result.isStaged = !result.isCopied;
    result.shared = {!result.isCopied || operand.alongSum, planes, group.extent, product.elementBytes()};
    bool inVectors = !result.isCopied && operand.staging == Staging::Vectors && operand.alongSum;
    result.vector = !inVectors ? 1 : product.isScaled() ? 4 : result.shared.unitElements();
    result.planes = product.isScaled() ? operand.parts : 1;
    result.offset = offset;
    result.dealTo(stagers());
    result.firstLine = firstLine;
    return result;
  };
  auto windowOf = [](const std::optional<WindowOperand> &window) { return window ? &*window : nullptr; };
  product.row = operand(planned.row, how.row, here.rows, 0, 0);
  product.column = operand(planned.column, how.column, here.columns, product.row.shared.bytes(), here.rows.extent);
  // Sums of f32 are kept for 64 points at most.
  product.substeps = planes;
  SumOrder order{to_vector(seq<unsigned>(0, cast<tgl::AxesOp>(product.reduce.getOperation()).getAxes().size()))};
  if (isPacked()) {
    order = packs[number].order;
    product.row.window = windowOf(packs[number].row);
    product.column.window = windowOf(packs[number].column);
    product.column.isShifted = isShifted();
  }
  product.sum = makeSum(product.reduce, product.row.shared.depth() * product.substeps, order);
  if (isShifted()) { // steps are groups
    product.sum.steps = i64(order.numGroups());
    product.substeps = order.groupPoints / product.row.shared.depth();
  }
  if (product.sum.isReordered) // neighbours in memory are neighbours in the statement's order
    product.row.vector = product.column.vector = 1;
  return product;
}

/// Where unit `index` of this thread lies in the tile.
DeviceContraction::UnitPlace DeviceContraction::unitOf(const PlaneOperand &operand, unsigned index) {
  const PlaneTile &shared = operand.shared;
  if (shared.alongSum && !operand.how->alongSum) { // neighbours in memory are lines
    bool isEven = operand.threads % shared.extent == 0;
    Value *number = isEven ? here.thread : b.CreateAdd(here.thread, i32(index * operand.threads));
    Value *line = b.CreateURem(number, i32(shared.extent)), *unit = b.CreateUDiv(number, i32(shared.extent));
    return {line, isEven ? b.CreateAdd(unit, i32(index * (operand.threads / shared.extent))) : unit, 0};
  }
  return unitInLine(shared.unitsInLine(), index, operand.threads);
}

/// The same where `perLine` of so many threads, side by side, have neighbours along the sum.
DeviceContraction::UnitPlace DeviceContraction::unitInLine(unsigned perLine, unsigned index, unsigned threads) {
  if (threads % perLine) { // of 192 columns, for example
    Value *number = b.CreateAdd(here.thread, i32(index * threads));
    return {b.CreateUDiv(number, i32(perLine)), b.CreateURem(number, i32(perLine)), 0};
  }
  Value *line = b.CreateUDiv(here.thread, i32(perLine));
  if (perLine == 4) { // eight threads side by side have lines 0 and 4 of eight, whose units lie in all banks
    Value *high = b.CreateAnd(line, i32(~7)), *odd = b.CreateShl(b.CreateAnd(line, i32(1)), i32(2));
    line = b.CreateOr(b.CreateOr(high, odd), b.CreateAnd(b.CreateLShr(line, i32(1)), i32(3)));
  }
  return {line, b.CreateURem(here.thread, i32(perLine)), index * (threads / perLine)};
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// What comes in registers.
Type *DeviceContraction::elementOf(const PlaneProduct &product) {
  return product.isScaled() ? b.getFloatTy() : static_cast<Type *>(b.getIntNTy(8 * product.elementBytes()));
}

/// Whether the sum has a point `k`; null: always.
Value *DeviceContraction::existsAt(tgl::ReduceOp reduce, const Sum &sum, Value *k) {
  Value *exists = sum.fits ? nullptr : b.CreateICmpSLT(k, sum.total);
  if (!sum.isReordered)
    return exists;
  auto summed = cast<tgl::AxesOp>(reduce.getOperation());
  int64_t own = *tgl::knownPoints(summed, {sum.order.axes.back()});
  if (sum.order.groupRuns) {
    GroupedPoint point = groupedPoint(sum.order, k);
    return b.CreateAnd(point.isTap, b.CreateICmpSLT(point.channel, i64(own)));
  }
  if (own == sum.order.padded)
    return exists;
  return e.emitAnd(exists, b.CreateICmpSLT(b.CreateURem(k, i64(sum.order.padded)), i64(own)));
}

/// The row (column) of the statement that is line `line` of the tile, of `count` neighbours the first. Beyond the
/// last row it is the last again: its sums are not used, and it is there to be read.
Value *DeviceContraction::numberOf(const PlaneOperand &operand, Value *line, unsigned count) {
  Value *number = b.CreateAdd(operand.group->first, line);
  if (operand.group->fits)
    return number;
  return b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateSub(operand.group->total, i64(count)));
}

/// Where in its tensor the side's read is, in elements. `inside`: whether that is in bounds; null: always.
Value *DeviceContraction::readOffset(const PlaneProduct &product, const PlaneOperand &operand, Value *k,
                                     Value *number, Value *&inside) {
  tgl::ReadOp read = operand.how->read;
  setPoint(product.reduce, product.sum, operand.side->collapsesSum, k);
  here.setNumber(axes, operand.group->axes, operand.side->collapsesAxes, number);
  for (mlir::Operation *op : operand.side->slice)
    if (op != read && !(matrixToPack && op == matrixToPack.getDefiningOp()))
      e.emitOp(op);
  tgl::TglTensorType type = e.buffers.find(read.getTensor())->second.type;
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  inside = read.getFill() ? e.emitBoundsCheck(subscripts, type) : nullptr;
  return e.emitIndex(tgl::elementOffset(type, subscripts));
}

Value *DeviceContraction::placeAt(const PlaneOperand &operand, Value *offset) {
  const Emitter::Buffer &buffer = e.buffers.find(tgl::ReadOp(operand.how->read).getTensor())->second;
  return b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()), buffer.pointer, offset);
}

/// The address of the element that the side reads there; that of the tensor's first where it does not exist.
Value *DeviceContraction::readPlace(const PlaneProduct &product, const PlaneOperand &operand, Value *k,
                                    Value *number, Value *&exists) {
  Value *inside = nullptr, *offset = readOffset(product, operand, k, number, inside);
  exists = e.emitAnd(existsAt(product.reduce, product.sum, k), inside);
  return placeAt(operand, exists ? b.CreateSelect(exists, offset, i64(0)) : offset);
}

/// The operand's vector at that address; 0 where it does not exist.
Value *DeviceContraction::loadAt(const PlaneProduct &product, const PlaneOperand &operand, Value *place,
                                 Value *exists) {
  unsigned count = operand.vector;
  Type *element = elementOf(product);
  Type *type = count == 1 ? element : FixedVectorType::get(element, count);
  unsigned bytes = count * element->getPrimitiveSizeInBits() / 8;
  LoadInst *load = b.CreateAlignedLoad(type, place, Align(bytes));
  // Producers' loads stay between the barriers where they stand: there they are under way while others are used.
  if (!hasRoles() && e.buffers.find(tgl::ReadOp(operand.how->read).getTensor())->second.isConstant)
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
  return exists ? b.CreateSelect(exists, load, Constant::getNullValue(type)) : static_cast<Value *>(load);
}

/// One value, or one vector of neighbours in memory: f32, or the 16 bits of a number.
Value *DeviceContraction::loadElement(const PlaneProduct &product, const PlaneOperand &operand, Value *k,
                                      Value *number) {
  if (operand.how->isPlain) {
    Value *exists = nullptr, *place = readPlace(product, operand, k, number, exists);
    return loadAt(product, operand, place, exists);
  }
  Type *type = elementOf(product);
  auto value = [&] {
    Value *result = valueAt(product.reduce, product.sum, *operand.side, *operand.group, k, number);
    return product.isScaled() ? result : narrow(product.type, *operand.how, result);
  };
  Value *exists = existsAt(product.reduce, product.sum, k);
  return exists ? e.emitIfElse(exists, value, Constant::getNullValue(type)) : value();
}

/// The unit with a value or a vector from element `n` on.
Value *DeviceContraction::insert(Value *unit, Value *values, unsigned n) {
  return values->getType()->isVectorTy() ? b.CreateInsertVector(unit->getType(), unit, values, uint64_t(n))
                                         : b.CreateInsertElement(unit, values, uint64_t(n));
}

/// By how many elements the points of a unit are apart, where a unit has one place in all axes of the sum but one,
/// and what a fill checks is the same for all its points; nothing elsewhere.
std::optional<int64_t> DeviceContraction::stepInUnit(const PlaneProduct &product, const PlaneOperand &operand) {
  if (!operand.how->isPlain)
    return std::nullopt;
  tgl::ReadOp read = operand.how->read;
  auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation());
  ArrayRef<unsigned> order = product.sum.order.axes;
  bool isPadded = product.sum.isReordered, collapses = operand.side->collapsesSum && !isPadded;
  while (!collapses && !isPadded && order.size() > 1 && tgl::knownPoints(summed, order.back()) == 1)
    order = order.drop_back();
  bool isAlone = collapses || tgl::knownPoints(summed, order.drop_back()) == 1;
  std::optional<int64_t> extent = tgl::knownPoints(summed, order.back());
  if (!isAlone && !isPadded && (!extent || *extent % operand.shared.unitElements()))
    return std::nullopt;
  mlir::Value axis = summed.getAxes()[order.back()];
  if (any_of(operand.side->slice,
             [&](mlir::Operation *op) { return op != read && is_contained(op->getOperands(), axis); }))
    return std::nullopt;
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  if (read.getFill()) {
    Prover prover(sizeFacts(read->getParentOfType<tgl::KernelOp>()));
    AxisScope scope(prover, read);
    for (auto [subscript, dim] : zip(subscripts, read.getTensorType().getDims()))
      if (subscript.uses(axis) && !scope.provesInBounds(subscript, dim.getExpr()))
        return std::nullopt;
  }
  std::optional<int64_t> step = tgl::stepAlong(tgl::elementOffset(read.getTensorType(), subscripts), axis);
  return step && *step >= 0 ? step : std::nullopt;
}

/// A unit whose points are `step` elements apart: its place and bounds are computed once.
Value *DeviceContraction::loadSteps(const PlaneProduct &product, const PlaneOperand &operand, Value *k,
                                    Value *number, int64_t step) {
  auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation());
  Value *exists = nullptr, *offset = readOffset(product, operand, k, number, exists);
  ArrayRef<unsigned> order = product.sum.order.axes;
  std::optional<int64_t> points = tgl::knownPoints(summed, product.sum.isReordered ? order.take_back() : order);
  bool isWhole = product.sum.fits || (points && *points % operand.shared.unitElements() == 0);
  if (isWhole)
    exists = e.emitAnd(exists, existsAt(product.reduce, product.sum, k));
  // From the tensor's first element on there are as many steps as in any unit.
  Value *place = placeAt(operand, exists && isWhole ? b.CreateSelect(exists, offset, i64(0)) : offset);
  Type *element = elementOf(product);
  Value *unit = PoisonValue::get(FixedVectorType::get(element, operand.shared.unitElements()));
  for (unsigned n = 0; n < operand.shared.unitElements(); n += operand.vector) {
    Value *from = b.CreateInBoundsGEP(element, place, i64(n * step)), *isThere = exists;
    if (!isWhole) {
      isThere = e.emitAnd(exists, existsAt(product.reduce, product.sum, b.CreateAdd(k, i64(n))));
      from = b.CreateSelect(isThere, from, placeAt(operand, i64(0)));
    }
    unit = insert(unit, loadAt(product, operand, from, isThere), n);
  }
  return unit;
}

/// Eight neighbours along the sum from point `k` on as a vector.
Value *DeviceContraction::loadUnitAt(const PlaneProduct &product, const PlaneOperand &operand, Value *k,
                                     Value *number) {
  if (std::optional<int64_t> apart = stepInUnit(product, operand))
    return loadSteps(product, operand, k, number, *apart);
  Type *element = elementOf(product);
  Value *unit = PoisonValue::get(FixedVectorType::get(element, operand.shared.unitElements()));
  for (unsigned n = 0; n < operand.shared.unitElements(); n += operand.vector)
    unit = insert(unit, loadElement(product, operand, n ? b.CreateAdd(k, i64(n)) : k, number), n);
  return unit;
}

/// This thread's unit `index` of a step.
Value *DeviceContraction::loadUnit(const PlaneProduct &product, const PlaneOperand &operand, Value *step,
                                   unsigned index) {
  UnitPlace place = unitOf(operand, index);
  Value *first = b.CreateAdd(b.CreateMul(step, i64(operand.shared.depth())),
                             wide(b.CreateMul(place.unit, i32(operand.shared.unitElements()))));
  return loadUnitAt(product, operand, first, numberOf(operand, wide(lineOf(place)), 1));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Of a thread, of what comes through registers.
unsigned DeviceContraction::unitsOfStage(const PlaneProduct &product) {
  return (product.row.isStaged ? product.row.count : 0) + (product.column.isStaged ? product.column.count : 0);
}

/// These units, rows first.
SmallVector<Value *> DeviceContraction::loadUnits(const PlaneProduct &product, Value *step) {
  SmallVector<Value *> units;
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index)
      units.push_back(loadUnit(product, *operand, step, index));
  return units;
}

Value *DeviceContraction::planeStage(const PlaneProduct &product, Value *number) {
  return here.sharedAt(b.CreateMul(number, i32(product.stageBytes())));
}

/// The stage of `number` (i32) among all that go through the ring.
Value *DeviceContraction::inRing(Value *number) {
  unsigned stages = ringStages();
  return isPowerOf2_32(stages) ? b.CreateAnd(number, i32(stages - 1)) : b.CreateURem(number, i32(stages));
}

/// Of the ring.
Value *DeviceContraction::followingStage(Value *number, unsigned by) {
  return inRing(b.CreateAdd(number, i32(by)));
}

/// The units of the block's step `number` (i64); of its last where it has no such step. There is no branch, so
/// that loads stay where they are: far from what uses them.
SmallVector<Value *> DeviceContraction::loadNext(const PlaneProduct &product, Value *number) {
  Value *substeps = i64(product.substeps);
  Value *last = b.CreateSub(b.CreateMul(product.sum.steps, substeps), i64(1));
  number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, last);
  Value *step = b.CreateMul(stepInSum(product.sum, b.CreateUDiv(number, substeps)), substeps);
  return loadUnits(product, b.CreateAdd(step, b.CreateURem(number, substeps)));
}

/// A unit times its line's scale as the sum of one or two vectors of f16, four words each. Elements that are not 0 have a large
/// part that is not 0.
std::array<Value *, 2> DeviceContraction::splitUnit(Value *unit, Value *scale, unsigned planes) {
  auto *words = FixedVectorType::get(b.getInt32Ty(), PlaneTile::unit / 2);
  std::array<Value *, 2> result{PoisonValue::get(words), PoisonValue::get(words)};
  for (unsigned word = 0; word < PlaneTile::unit / 2; ++word) {
    std::array<Value *, 2> values;
    for (unsigned n = 0; n < 2; ++n) {
      Value *element = b.CreateExtractElement(unit, uint64_t(2 * word + n));
      values[n] = b.CreateFMul(element, scale);
    }
    for (unsigned plane = 0; plane < planes; ++plane) {
      Value *pair = b.CreateIntrinsic(Intrinsic::nvvm_ff2f16x2_rn, {values[1], values[0]});
      result[plane] = b.CreateInsertElement(result[plane], b.CreateBitCast(pair, b.getInt32Ty()), word);
      for (unsigned n = 0; n < 2; ++n)
        values[n] =
            b.CreateFSub(values[n], b.CreateFPExt(b.CreateExtractElement(pair, uint64_t(n)), b.getFloatTy()));
    }
  }
  result[0] = keepUnit(unit, scale, result[0]);
  return result;
}

void DeviceContraction::storeUnits(const PlaneProduct &product, ArrayRef<Value *> units,
                                   ArrayRef<Value *> scales, Value *stage) {
  Warpgroup group = warpgroupOf(product);
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index) {
      UnitPlace place = unitOf(*operand, index);
      auto store = [&](Value *values, unsigned plane) {
        Value *offset = b.CreateAdd(group.place(operand->shared, place.line, place.unit, plane),
                                    i32(operand->offset + place.below * PlaneTile::lineBytes));
        b.CreateAlignedStore(values, b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), Align(16));
      };
      Value *unit = units.front();
      units = units.drop_front();
      if (!product.isScaled()) {
        store(unit, 0);
        continue;
      }
      std::array<Value *, 2> planes = splitUnit(unit, scales.front(), operand->planes);
      scales = scales.drop_front();
      for (unsigned plane = 0; plane < operand->planes; ++plane)
        store(planes[plane], plane);
    }
}

/// The address from which a unit of the tile's line `line` and its neighbours, of `count` in all, is copied. Of what does not exist
/// nothing is read, so that it may be any; but where other reads tell the place they need lines that exist.
Value *DeviceContraction::copiedPlace(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *line,
                                      unsigned count, Value *&exists) {
  mlir::Operation *own = tgl::ReadOp(operand.how->read);
  if (any_of(operand.side->slice, [&](mlir::Operation *op) { return op != own && isa<tgl::ReadOp>(op); }))
    return readPlace(product, operand, k, numberOf(operand, line, count), exists);
  Value *number = b.CreateAdd(operand.group->first, line), *inside = nullptr;
  Value *offset = readOffset(product, operand, k, number, inside);
  exists = e.emitAnd(existsAt(product.reduce, product.sum, k), inside);
  if (!operand.group->fits)
    exists = e.emitAnd(exists, b.CreateICmpSLE(number, b.CreateSub(operand.group->total, i64(count))));
  return placeAt(operand, offset);
}

/// Starts the copies of one step.
void DeviceContraction::copyUnits(const PlaneProduct &product, Value *step, Value *stage) {
  Warpgroup group = warpgroupOf(product);
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned index = 0; operand->isCopied && index < operand->count; ++index) {
      UnitPlace place = unitOf(*operand, index);
      unsigned inUnit = operand->shared.unitElements();
      Value *alongLine = wide(b.CreateMul(place.unit, i32(inUnit))), *line = wide(lineOf(place));
      bool alongSum = operand->shared.alongSum;
      Value *k = b.CreateAdd(b.CreateMul(step, i64(operand->shared.depth())), alongSum ? alongLine : line);
      Value *exists = nullptr, *from = copiedPlace(product, *operand, k, alongSum ? line : alongLine, alongSum ? 1 : inUnit, exists);
      Value *offset = b.CreateAdd(group.place(operand->shared, place.line, place.unit, 0),
                                  i32(operand->offset + place.below * PlaneTile::lineBytes));
      group.copyUnit(b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), from, exists);
    }
}
