//===- EmitElements.cpp - Loads and stores of elements as LLVM IR ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ScalarEmitter.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/StorageTypes.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

Type *ScalarEmitter::storageType(mlir::Type element) {
  if (element.isF16())
    return b.getHalfTy();
  if (element.isF32())
    return b.getFloatTy();
  if (element.isF64())
    return b.getDoubleTy();
  return b.getIntNTy(storageBytes(element) * 8); // bf16 and f8 as bits, bool as a byte
}

/// Packed types: rows are padded to whole bytes, so bytes and nibbles come from the last subscript.
static std::pair<ValueExpr, ValueExpr> packedOffset(tgl::TglTensorType type,
                                                    ArrayRef<ValueExpr> subscripts) {
  if (subscripts.empty())
    return {ValueExpr(int64_t(0)), ValueExpr(int64_t(0))};
  ValueExpr row(int64_t(0));
  for (auto [subscript, dim] : zip_equal(subscripts.drop_back(), type.getDims().drop_back()))
    row = row * ValueExpr(dim.getExpr()) + subscript;
  ValueExpr two(int64_t(2));
  ValueExpr rowBytes =
      ValueExpr::floorDiv(ValueExpr(type.getDims().back().getExpr()) + ValueExpr(int64_t(1)), two);
  return {row * rowBytes + ValueExpr::floorDiv(subscripts.back(), two),
          ValueExpr::mod(subscripts.back(), two)};
}

void ScalarEmitter::describeAccess(Instruction *access, const Buffer &buffer) {
  if (buffer.scope)
    access->setMetadata(LLVMContext::MD_alias_scope, buffer.scope);
  if (buffer.noalias)
    access->setMetadata(LLVMContext::MD_noalias, buffer.noalias);
  if (buffer.isConstant)
    access->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(module.getContext(), {}));
}

std::optional<int64_t> ScalarEmitter::laneStep(const ValueExpr &offset) {
  if (!lanes)
    return 0;
  std::optional<int64_t> step = stepAlong(offset, lanes->axis, [&](mlir::Value value) {
    return value != lanes->axis && isVector(valueOf(value));
  });
  return step ? std::optional(*step * lanes->apart) : std::nullopt;
}

Value *ScalarEmitter::loadRaw(const Buffer &buffer, ArrayRef<ValueExpr> subscripts, Value *mask) {
  checks.verifyProved(buffer.type, subscripts, mask);
  mlir::Type element = buffer.type.getElementType();
  Type *raw = storageType(element);
  auto tag = [&](Value *value) {
    if (auto *instruction = dyn_cast<Instruction>(value))
      describeAccess(instruction, buffer);
    return value;
  };
  if (isPacked(element)) {
    auto [byte, nibble] = packedOffset(buffer.type, subscripts);
    Value *bits = loadAt(buffer, byte, b.getInt8Ty(), mask, tag);
    Value *shift = b.CreateShl(emitIndex(nibble), 2);
    Type *byteType = b.getInt8Ty();
    if (isVector(shift))
      byteType = VectorType::get(byteType, lanes->width, false);
    Value *operands[] = {bits, b.CreateTrunc(shift, byteType)};
    align(operands);
    return b.CreateAnd(b.CreateLShr(operands[0], operands[1]),
                       ConstantInt::get(operands[0]->getType(), 15));
  }
  return loadAt(buffer, elementOffset(buffer.type, subscripts), raw, mask, tag);
}

/// The address of each lane's element, `step` from one to the next: one is computed, and the others
/// are constants away from it. No step: each on its own. A lane that does not exist has one that
/// nobody uses.
SmallVector<Value *> ScalarEmitter::addressesOfLanes(const Buffer &buffer, const ValueExpr &offset,
                                                     Type *raw, std::optional<int64_t> step) {
  SmallVector<Value *> places;
  Value *first =
            step ? b.CreateInBoundsGEP(raw, buffer.pointer, emitIndexAtLaneZero(offset)) : nullptr,
        *indices = step ? nullptr : splat(emitIndex(offset));
  for (unsigned lane = 0; lane < lanes->width; ++lane)
    places.push_back(
        step ? b.CreateGEP(raw, first, i64(*step * lane))
             : b.CreateInBoundsGEP(raw, buffer.pointer, b.CreateExtractElement(indices, lane)));
  return places;
}

Value *ScalarEmitter::loadAt(const Buffer &buffer, const ValueExpr &offset, Type *raw, Value *mask,
                             function_ref<Value *(Value *)> tag) {
  Align alignment(raw->getScalarSizeInBits() / 8);
  auto address = [&](Value *index) { return b.CreateInBoundsGEP(raw, buffer.pointer, index); };
  std::optional<int64_t> step = laneStep(offset);
  if (step == 0 && !(mask && isVector(mask))) {
    auto load = [&] {
      return tag(b.CreateAlignedLoad(raw, address(emitIndexAtLaneZero(offset)), alignment));
    };
    return mask ? emitIfElse(mask, load, Constant::getNullValue(raw)) : load();
  }
  auto *vector = VectorType::get(raw, lanes->width, false);
  Align together = lanes->isAligned ? Align(alignment.value() * lanes->width) : alignment;
  Value *none = Constant::getNullValue(vector);
  bool isTogether = step == 1 && !lanes->mask && mask && !isVector(mask);
  if (options.wholeVectors && isTogether) // all lanes or none
    return emitIfElse(
        mask,
        [&] {
          return tag(b.CreateAlignedLoad(vector, address(emitIndexAtLaneZero(offset)), together));
        },
        none);
  if (mask)
    mask = splat(mask);
  Value *exists = emitAnd(mask, lanes->mask);
  if (options.wholeVectors && (exists || step != 1)) {
    // Devices have whole vectors of memory or single elements.
    Value *result = PoisonValue::get(vector);
    // Loads that each wait for a condition of the read have places of their own, so that they wait
    // for nothing else (grid_sample_bilinear: 506 us, with one place for all 814).
    SmallVector<Value *> places =
        addressesOfLanes(buffer, offset, raw, mask ? std::optional<int64_t>() : step);
    for (unsigned lane = 0; lane < lanes->width; ++lane) {
      auto load = [&] { return tag(b.CreateAlignedLoad(raw, places[lane], alignment)); };
      Value *one = exists ? emitIfElse(b.CreateExtractElement(exists, lane), load,
                                       Constant::getNullValue(raw))
                          : load();
      result = b.CreateInsertElement(result, one, lane);
    }
    return result;
  }
  if (step == 1) {
    Value *pointer = address(emitIndexAtLaneZero(offset));
    if (!exists)
      return tag(b.CreateAlignedLoad(vector, pointer, together));
    return tag(b.CreateMaskedLoad(vector, pointer, alignment, exists, none));
  }
  if (step && isShortStep(*step))
    return loadSteps(address(emitIndexAtLaneZero(offset)), *step, raw, exists, tag);
  return tag(b.CreateMaskedGather(vector, address(splat(emitIndex(offset))), alignment,
                                  exists ? exists : nullptr, none));
}

/// Elements `step` apart, lane 0's at `first`: all of their stretch is loaded and the others are
/// dropped.
Value *ScalarEmitter::loadSteps(Value *first, int64_t step, Type *raw, Value *exists,
                                function_ref<Value *(Value *)> tag) {
  unsigned width = lanes->width, apart = std::abs(step), stretch = apart * (width - 1) + 1;
  Align alignment(raw->getScalarSizeInBits() / 8);
  auto *vector = VectorType::get(raw, width, false);
  auto place = [&](unsigned lane) { return apart * (step > 0 ? lane : width - 1 - lane); };
  Value *low = first;
  if (step < 0)
    low = b.CreateInBoundsGEP(raw, first, i64(-int64_t(stretch - 1)));

  SmallVector<Value *> parts;
  SmallVector<unsigned> starts;
  for (unsigned part = 0; part < apart; ++part) {
    // Where all exist the last vector ends with the last element, so that nothing behind it is
    // read.
    unsigned start = exists ? part * width : std::min(part * width, stretch - width);
    Value *address = b.CreateInBoundsGEP(raw, low, i64(start));
    if (exists) {
      // What lies between two lanes' elements is left out: it may not exist.
      SmallVector<int> spread(width, int(width));
      for (unsigned lane = 0; lane < width; ++lane)
        if (place(lane) / width == part)
          spread[place(lane) % width] = lane;
      Value *mask =
          b.CreateShuffleVector(exists, Constant::getNullValue(exists->getType()), spread);
      parts.push_back(tag(
          b.CreateMaskedLoad(vector, address, alignment, mask, Constant::getNullValue(vector))));
    } else {
      parts.push_back(tag(b.CreateAlignedLoad(vector, address, alignment)));
    }
    starts.push_back(start);
  }
  /// The part that first holds an element.
  auto partOf = [&](unsigned lane) {
    unsigned part = 0;
    while (place(lane) >= starts[part] + width)
      ++part;
    return part;
  };
  // Pairs of vectors, then the pair of pairs.
  SmallVector<Value *> pairs;
  for (unsigned part = 0; part < apart; part += 2) {
    SmallVector<int> picks;
    for (unsigned lane = 0; lane < width; ++lane) {
      unsigned from = partOf(lane);
      picks.push_back(from / 2 * 2 == part ? int((from - part) * width + place(lane) - starts[from])
                                           : PoisonMaskElem);
    }
    pairs.push_back(
        b.CreateShuffleVector(parts[part], parts[std::min(part + 1, apart - 1)], picks));
  }
  if (pairs.size() == 1)
    return pairs[0];
  assert(pairs.size() == 2 && "the longest step is four");
  SmallVector<int> pattern;
  for (unsigned lane = 0; lane < width; ++lane)
    pattern.push_back(lane + (partOf(lane) / 2 ? width : 0));
  return b.CreateShuffleVector(pairs[0], pairs[1], pattern);
}

void ScalarEmitter::storeRaw(const Buffer &buffer, ArrayRef<ValueExpr> subscripts, Value *raw,
                             Value *mask) {
  checks.verifyProved(buffer.type, subscripts, mask);
  storeElements(buffer, subscripts, raw, mask);
}

void ScalarEmitter::storeElements(const Buffer &buffer, ArrayRef<ValueExpr> subscripts, Value *raw,
                                  Value *mask) {
  mlir::Type element = buffer.type.getElementType();
  auto tag = [&](Instruction *instruction) { describeAccess(instruction, buffer); };
  Align alignment(storageBytes(element));
  if (isPacked(element)) {
    auto [byte, nibble] = packedOffset(buffer.type, subscripts);
    storeNibbles(buffer, emitIndex(byte), emitIndex(nibble), raw, mask);
    return;
  }
  ValueExpr offset = elementOffset(buffer.type, subscripts);
  auto address = [&](Value *index) {
    return b.CreateInBoundsGEP(raw->getType()->getScalarType(), buffer.pointer, index);
  };
  std::optional<int64_t> step = laneStep(offset);
  if (step == 0 && isVector(raw)) { // of lanes that meet at most one is not masked
    forEachLane(emitAnd(mask, lanes->mask), {emitIndex(offset), raw},
                [&](ArrayRef<Value *> scalars) {
                  tag(b.CreateAlignedStore(scalars[1], address(scalars[0]), alignment));
                });
    return;
  }
  if (step == 0) {
    // Every lane writes the same element the same value: the first that exists does (lane 0 always
    // does).
    auto store = [&] {
      tag(b.CreateAlignedStore(raw, address(emitIndexAtLaneZero(offset)), alignment));
    };
    if (mask)
      emitIf(isVector(mask) ? b.CreateOrReduce(emitAnd(mask, lanes->mask)) : mask, store);
    else
      store();
    return;
  }
  Value *vector = splat(raw);
  bool isTogether = step == 1 && !lanes->mask && mask && !isVector(mask);
  if (options.wholeVectors && isTogether) { // all lanes or none
    emitIf(mask, [&] {
      Align together = lanes->isAligned ? Align(alignment.value() * lanes->width) : alignment;
      tag(b.CreateAlignedStore(vector, address(emitIndexAtLaneZero(offset)), together));
    });
    return;
  }
  if (mask)
    mask = splat(mask);
  Value *exists = emitAnd(mask, lanes->mask);
  Align together = lanes->isAligned ? Align(alignment.value() * lanes->width) : alignment;
  if (options.wholeVectors && (exists || step != 1)) {
    if (step == 1 && lanes->isWhole && !mask) {
      emitIf(lanes->isWhole, [&] {
        tag(b.CreateAlignedStore(vector, address(emitIndexAtLaneZero(offset)), together));
      });
      exists = b.CreateAnd(exists, b.CreateVectorSplat(lanes->width, b.CreateNot(lanes->isWhole)));
    }
    SmallVector<Value *> places =
        addressesOfLanes(buffer, offset, raw->getType()->getScalarType(), step);
    for (unsigned lane = 0; lane < lanes->width; ++lane) {
      auto store = [&] {
        tag(b.CreateAlignedStore(b.CreateExtractElement(vector, lane), places[lane], alignment));
      };
      if (exists)
        emitIf(b.CreateExtractElement(exists, lane), store);
      else
        store();
    }
    return;
  }
  if (step == 1) {
    Value *pointer = address(emitIndexAtLaneZero(offset));
    if (exists)
      tag(b.CreateMaskedStore(vector, pointer, alignment, exists));
    else
      tag(b.CreateAlignedStore(vector, pointer, together));
    return;
  }
  tag(b.CreateMaskedScatter(vector, address(splat(emitIndex(offset))), alignment, exists));
}

/// Two points may share a byte: each changes its own half by two atomic operations, which commute.
void ScalarEmitter::storeNibbles(const Buffer &buffer, Value *byte, Value *nibble, Value *raw,
                                 Value *mask) {
  forEachLane(emitAnd(mask, lanes ? lanes->mask : nullptr), {byte, nibble, raw},
              [&](ArrayRef<Value *> scalars) {
                Value *pointer = b.CreateInBoundsGEP(b.getInt8Ty(), buffer.pointer, scalars[0]);
                Value *shift = b.CreateTrunc(b.CreateShl(scalars[1], 2), b.getInt8Ty());
                Value *keep = b.CreateNot(b.CreateShl(b.getInt8(15), shift));
                Value *bits = b.CreateShl(b.CreateAnd(scalars[2], b.getInt8(15)), shift);
                for (auto [op, value] :
                     {std::pair(AtomicRMWInst::And, keep), std::pair(AtomicRMWInst::Or, bits)})
                  setAtomic(b.CreateAtomicRMW(op, pointer, value, MaybeAlign(1),
                                              AtomicOrdering::Monotonic));
              });
}

void ScalarEmitter::setAtomic(Instruction *access) {
  SyncScope::ID scope = options.atomicScope.empty()
                            ? SyncScope::System
                            : b.getContext().getOrInsertSyncScopeID(options.atomicScope);
  if (auto *store = dyn_cast<StoreInst>(access))
    return store->setAtomic(AtomicOrdering::Monotonic, scope);
  if (auto *load = dyn_cast<LoadInst>(access))
    return load->setAtomic(AtomicOrdering::Monotonic, scope);
  if (auto *swap = dyn_cast<AtomicCmpXchgInst>(access))
    return swap->setSyncScopeID(scope);
  cast<AtomicRMWInst>(access)->setSyncScopeID(scope);
}

Value *ScalarEmitter::decode(Value *raw, mlir::Type element) {
  return StorageConverter(b, options.target).decode(raw, element);
}

Value *ScalarEmitter::encode(Value *value, mlir::Type element) {
  return StorageConverter(b, options.target).encode(value, element);
}

Value *ScalarEmitter::convert(Value *value, mlir::Type target, bool nearest) {
  StorageConverter converter(b, options.target);
  return converter.decode(converter.saturate(value, target, nearest), target);
}
