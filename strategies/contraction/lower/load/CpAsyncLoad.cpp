//===- CpAsyncLoad.cpp - Loads operands to shared memory (cp.async) -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has one position along the lines of a tile and every so-manieth line, where that comes
// out even. So neighbouring threads have neighbours in memory, and what an element's place has in
// common with the thread's other elements is computed once.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/CpAsyncLoad.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// Of this many elements a thread keeps the places in registers.
static constexpr unsigned maxAddresses = 4;

/// Whether all vectors of a thread have one position in their lines: not where threads are no
/// multiple of a line's, as of 192 columns.
bool MmaLoads::havePositions(const MmaOperand &operand) const {
  return numbers.threads() % (operand.shared.lineLength() / operand.vector) == 0;
}

/// The element that vector `index` of this thread starts with; `step` counts the sum's steps.
MmaLoads::OperandCoord MmaLoads::coordOf(const MmaProduct &product, const MmaOperand &operand,
                                         Value *step, Value *index) {
  const MmaSharedLayout &shared = operand.shared;
  unsigned perLine = shared.lineLength() / operand.vector;
  bool isEven = havePositions(operand);
  Value *number =
      isEven ? here.thread : b.CreateAdd(here.thread, b.CreateMul(index, i32(numbers.threads())));
  Value *position = b.CreateMul(b.CreateURem(number, i32(perLine)), i32(operand.vector));
  Value *line = b.CreateUDiv(number, i32(perLine));
  if (isEven)
    line = b.CreateAdd(line, b.CreateMul(index, i32(numbers.threads() / perLine)));
  OperandCoord place{line, position, nullptr, nullptr, nullptr};
  Value *k =
      b.CreateAdd(b.CreateMul(step, i64(shared.depth())), wide(shared.kMajor ? position : line));
  place.k = k;
  place.number = b.CreateAdd(operand.group->first, wide(shared.kMajor ? line : position));
  auto require = [&](Value *condition) {
    place.exists = place.exists ? b.CreateAnd(place.exists, condition) : condition;
  };
  if (!operand.group->fits)
    require(b.CreateICmpSLT(place.number, operand.group->total));
  if (Value *isPoint = indices.existsAt(product.reduce, product.kLoop, k))
    require(isPoint);
  return place;
}

bool MmaLoads::evaluates(const MmaProduct &product) const {
  return product.a.how->staging == Staging::Values || product.b.how->staging == Staging::Values;
}

/// Calls `body` for each vector of this thread, `index` an i32.
void MmaLoads::forVectors(const MmaOperand &operand, Path path, function_ref<void(Value *)> body) {
  SaveAndRestore number(here.thread,
                        operand.count > maxAddresses ? here.opaqueThread() : here.thread);
  if (path == Path::Fast) {
    for (unsigned index = 0; index < operand.count; ++index)
      body(i32(index));
    return;
  }
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), i64(operand.count), i64(1), {},
      [&](Value *index, ArrayRef<Value *>) {
        body(b.CreateTrunc(index, b.getInt32Ty()));
        return SmallVector<Value *>();
      },
      "vector");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void MmaLoads::copyStep(MmaProduct &product, Value *step, Value *stage, Path path) {
  copyTile(product, product.a, step, stage, path);
  copyTile(product, product.b, step, stage, path);
}

/// The copy at `place`. Its address is one even of what does not exist.
MmaLoads::AsyncCopy MmaLoads::copyAt(const MmaProduct &product, const MmaOperand &operand,
                                     const OperandCoord &place, Value *stage) {
  tgl::ReadOp read = operand.how->read;
  const Emitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
  indices.setPoint(product.reduce, product.kLoop, operand.side->collapsesSum, place.k);
  here.setNumber(axes, operand.group->axes, operand.side->collapsesAxes, place.number);
  for (mlir::Operation *op : operand.side->slice)
    if (op != read)
      e.emitOp(op);
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  AsyncCopy copy{addressInStage(operand, place, stage), nullptr, place.exists};
  if (read.getFill()) {
    Value *inside = e.checks.emitBoundsCheck(subscripts, buffer.type);
    copy.exists = copy.exists ? b.CreateAnd(copy.exists, inside) : inside;
  }
  Value *offset = e.emitIndex(tgl::elementOffset(buffer.type, subscripts));
  if (copy.exists)
    offset = b.CreateSelect(copy.exists, offset, i64(0));
  copy.from =
      b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()), buffer.pointer, offset);
  return copy;
}

Value *MmaLoads::addressInStage(const MmaOperand &operand, const OperandCoord &place,
                                Value *stage) {
  Value *offset = Mma(b, operand.type).offset(operand.shared, place.line, place.position);
  return b.CreateInBoundsGEP(b.getInt8Ty(), stage, b.CreateAdd(offset, i32(operand.offset)));
}

/// What does not exist is 0 in shared memory, and nothing is read of it.
void MmaLoads::emitCopy(const MmaOperand &operand, const AsyncCopy &copy) {
  SmallVector<Value *> operands{copy.to, copy.from};
  if (copy.exists)
    operands.push_back(
        b.CreateSelect(copy.exists, i32(operand.vector * operand.shared.elementBytes), i32(0)));
  Intrinsic::ID id;
  if (operand.how->staging == Staging::Vectors)
    id = copy.exists ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                     : Intrinsic::nvvm_cp_async_cg_shared_global_16;
  else
    id = copy.exists ? Intrinsic::nvvm_cp_async_ca_shared_global_4_s
                     : Intrinsic::nvvm_cp_async_ca_shared_global_4;
  b.CreateIntrinsic(b.getVoidTy(), id, operands);
}

void MmaLoads::copyTile(MmaProduct &product, MmaOperand &operand, Value *step, Value *stage,
                        Path path) {
  if (operand.how->staging == Staging::Values)
    return;
  if (path == Path::Fast) {
    if (std::optional<tgl::ValueExpr> lineStep = stepOfLines(product, operand))
      return copyLines(product, operand, step, stage, *lineStep);
    if (dividesForLines(product, operand))
      path = Path::Exact;
  }
  forVectors(operand, path, [&](Value *index) {
    emitCopy(operand, copyAt(product, operand, coordOf(product, operand, step, index), stage));
  });
}

/// The axes of more than one point that a line of the operand's tile has numbers of.
MmaLoads::LineAxes MmaLoads::axesOfLines(const MmaProduct &product, const MmaOperand &operand) {
  const ContractionSide &side = *operand.side;
  bool kMajor = operand.shared.kMajor;
  LineAxes lines{
      kMajor ? axes : cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation()),
      SmallVector<unsigned>(kMajor ? operand.group->axes : ArrayRef(product.kLoop.order.axes))};
  if (kMajor ? side.collapsesAxes : side.collapsesSum) // the last takes all numbers
    lines.group = {lines.group.back()};
  else
    erase_if(lines.group, [&](unsigned axis) { return tgl::knownPoints(lines.op, {axis}) == 1; });
  return lines;
}

/// Whether a line's number is divided by extents that are not known, which are most of a copy's
/// instructions. Written out for each vector of a thread they would only be more to compile and to
/// fetch.
bool MmaLoads::dividesForLines(const MmaProduct &product, const MmaOperand &operand) {
  LineAxes lines = axesOfLines(product, operand);
  return lines.group.size() > 1 && any_of(ArrayRef(lines.group).drop_front(), [&](unsigned axis) {
           return !tgl::knownPoints(lines.op, {axis});
         });
}

/// What the offset of the operand's read grows by from a line of its tile to the next; nothing
/// where that differs, or what exists is not told by the line and the position in it.
std::optional<tgl::ValueExpr> MmaLoads::stepOfLines(const MmaProduct &product,
                                                    const MmaOperand &operand) {
  const ContractionSide &side = *operand.side;
  tgl::ReadOp read = operand.how->read;
  if (!havePositions(operand) || read.getFill() ||
      (!operand.shared.kMajor && product.kLoop.isReordered))
    return std::nullopt;
  LineAxes lines = axesOfLines(product, operand);
  if (lines.group.size() != 1)
    return std::nullopt;
  mlir::Value line = lines.op.getAxes()[lines.group.front()];
  tgl::ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
  tgl::ValueExpr step =
      offset.substitute(line, tgl::ValueExpr(line) + tgl::ValueExpr(int64_t(1))) - offset;
  bool varies = step.uses(line) || any_of(offset.operands(), [&](mlir::Value value) {
                  return is_contained(side.slice, value.getDefiningOp());
                });
  return varies ? std::nullopt : std::optional(step);
}

/// Vectors of a thread lie a number of lines apart, so that each is found from the one before.
void MmaLoads::copyLines(const MmaProduct &product, const MmaOperand &operand, Value *step,
                         Value *stage, const tgl::ValueExpr &lineStep) {
  const MmaSharedLayout &shared = operand.shared;
  SaveAndRestore number(here.thread,
                        operand.count > maxAddresses ? here.opaqueThread() : here.thread);
  OperandCoord place = coordOf(product, operand, step, i32(0));
  // Lines from the first on that exist; null: all.
  Value *lines = nullptr;
  auto leave = [&](bool fits, Value *total, Value *number, bool isLine) {
    if (fits)
      return;
    Value *left = b.CreateSub(total, number);
    if (!isLine) // a position
      left = b.CreateSelect(b.CreateICmpSGT(left, i64(0)), lines ? lines : i64(shared.lines()),
                            i64(0));
    lines = left;
  };
  leave(shared.kMajor ? operand.group->fits : product.kLoop.fits,
        shared.kMajor ? operand.group->total : product.kLoop.total,
        shared.kMajor ? place.number : place.k, true);
  leave(shared.kMajor ? product.kLoop.fits : operand.group->fits,
        shared.kMajor ? product.kLoop.total : operand.group->total,
        shared.kMajor ? place.k : place.number, false);
  if (lines) {
    lines = b.CreateBinaryIntrinsic(Intrinsic::smax, lines, i64(0));
    lines = b.CreateTrunc(b.CreateBinaryIntrinsic(Intrinsic::smin, lines, i64(shared.lines())),
                          b.getInt32Ty());
  }
  place.exists = nullptr;
  AsyncCopy copy = copyAt(product, operand, place, stage);
  unsigned apart = numbers.threads() * operand.vector / shared.lineLength();
  Value *bytesApart = b.CreateMul(e.emitIndex(lineStep), i64(apart * shared.elementBytes));
  SmallVector<Value *> places; // of lines that are exchanged differently
  for (unsigned index = 0; index < operand.count; ++index) {
    unsigned line = index * apart, before = line % MmaSharedLayout::exchangedLines;
    if (before == line) {
      OperandCoord own = place;
      own.line = b.CreateAdd(place.line, i32(line));
      places.push_back(addressInStage(operand, own, stage));
    }
    copy.to = b.CreateInBoundsGEP(b.getInt8Ty(), places[before / apart],
                                  i32((line - before) * shared.pitch()));
    if (lines)
      copy.exists = b.CreateICmpSLT(i32(line), lines);
    if (index) // of what does not exist it may be any
      copy.from = b.CreateGEP(b.getInt8Ty(), copy.from, bytesApart);
    emitCopy(operand, copy);
  }
}

//===----------------------------------------------------------------------===//
// Evaluated elements
//===----------------------------------------------------------------------===//

/// As bits of the tile's element type.
Value *MmaLoads::evaluate(const MmaProduct &product, const MmaOperand &operand,
                          const OperandCoord &place) {
  Value *value = indices.valueAt(product.reduce, product.kLoop, *operand.side, *operand.group,
                                 place.k, place.number);
  if (operand.type == MmaType::TF32)
    return b.CreateBitCast(value, b.getInt32Ty());
  return indices.narrow(operand.type, *operand.how, value);
}

/// Where the element does not exist, 0.
Value *MmaLoads::evaluateAt(const MmaProduct &product, const MmaOperand &operand, Value *step,
                            Value *index) {
  OperandCoord place = coordOf(product, operand, step, index);
  if (!place.exists)
    return evaluate(product, operand, place);
  return e.emitIfElse(
      place.exists, [&] { return evaluate(product, operand, place); },
      Constant::getNullValue(b.getIntNTy(8 * operand.shared.elementBytes)));
}

SmallVector<Value *> MmaLoads::evaluateTile(MmaProduct &product, MmaOperand &operand, Value *step) {
  SmallVector<Value *> values;
  forVectors(operand, Path::Fast,
             [&](Value *index) { values.push_back(evaluateAt(product, operand, step, index)); });
  return values;
}

SmallVector<Value *> MmaLoads::evaluateStep(MmaProduct &product, Value *step) {
  SmallVector<Value *> values;
  for (MmaOperand *operand : {&product.a, &product.b})
    if (operand->how->staging == Staging::Values)
      values.append(evaluateTile(product, *operand, step));
  return values;
}

void MmaLoads::store(const MmaProduct &product, const MmaOperand &operand, Value *index,
                     Value *value, Value *stage) {
  OperandCoord place = coordOf(product, operand, i64(0), index);
  b.CreateAlignedStore(value, addressInStage(operand, place, stage),
                       Align(operand.shared.elementBytes));
}

void MmaLoads::storeStep(MmaProduct &product, ArrayRef<Value *> values, Value *stage) {
  for (MmaOperand *operand : {&product.a, &product.b}) {
    if (operand->how->staging != Staging::Values)
      continue;
    for (unsigned index = 0; index < operand->count; ++index) {
      store(product, *operand, i32(index), values.front(), stage);
      values = values.drop_front();
    }
  }
}

/// Without values on the way in registers.
void MmaLoads::evaluateToStage(MmaProduct &product, Value *step, Value *stage) {
  for (MmaOperand *operand : {&product.a, &product.b})
    if (operand->how->staging == Staging::Values)
      forVectors(*operand, Path::Exact, [&](Value *index) {
        store(product, *operand, index, evaluateAt(product, *operand, step, index), stage);
      });
}
