//===- Accesses.cpp - Reads, writes, temporaries and sorted rows --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/EvaluateImpl.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;
using tgl::ReduceKind;

/// The relative error of rounding to a storage type.
static double roundingOf(DType type) {
  switch (type) {
  case DType::F64:
    return 0x1p-53;
  case DType::F16:
    return 0x1p-11;
  case DType::BF16:
    return 0x1p-8;
  case DType::F8E4M3:
    return 0x1p-4;
  case DType::F8E5M2:
    return 0x1p-3;
  default:
    return 0;
  }
}

namespace {
/// What reads and writes share.
struct Access {
  unsigned tensor = 0;
  llvm::SmallVector<IndexCode, 4> subscripts;
  Slot guard = noSlot, value = noSlot;
  bool isChecked = false, isFloat = false;
  uint8_t *ways = nullptr; // of the guard
  std::string place;

  bool isSkipped(const Machine &machine) const {
    if (guard == noSlot)
      return false;
    note(ways, machine.integers[guard]);
    return !machine.integers[guard];
  }

  /// The element's position; nothing where a subscript is outside.
  std::optional<int64_t> locate(Machine &machine) const {
    const Memory &memory = machine.tensors[tensor];
    int64_t position = 0;
    for (auto [k, code] : llvm::enumerate(subscripts)) {
      int64_t at = code.eval(machine);
      if (at < 0 || at >= memory.tensor.shape[k])
        return std::nullopt;
      position += at * memory.strides[k];
    }
    return position;
  }

  void tellOutside(Machine &machine) const {
    machine.stop(isChecked ? Evaluation::BadSubscript : Evaluation::OutOfBounds,
                 place + ": a subscript of '" + machine.tensors[tensor].tensor.name +
                     "' is outside");
  }
  bool isDefined(Machine &machine, int64_t position) const {
    if (machine.tensors[tensor].isDefined(position))
      return true;
    machine.stop(Evaluation::Undefined, place + ": an element of '" +
                                            machine.tensors[tensor].tensor.name +
                                            "' is read before it is defined");
    return false;
  }
};

struct Read : Access {
  Slot fill = noSlot;
  llvm::SmallVector<std::pair<IndexCode, IndexCode>> exact;

  void operator()(Machine &machine) const {
    if (isSkipped(machine))
      return setZero(machine);
    for (const auto &[numerator, denominator] : exact) {
      int64_t over = numerator.eval(machine), under = denominator.eval(machine);
      if (under == 0 || (under != -1 && over % under != 0))
        return setFill(machine);
    }
    std::optional<int64_t> position = locate(machine);
    if (!position) {
      if (fill == noSlot)
        return tellOutside(machine);
      return setFill(machine);
    }
    if (!isDefined(machine, *position))
      return;
    const Memory &from = machine.tensors[tensor];
    if (isFloat)
      machine.numbers[value] = from.numbers[size_t(*position)];
    else
      machine.integers[value] = from.integers[size_t(*position)];
  }

private:
  void setZero(Machine &machine) const {
    if (isFloat)
      machine.numbers[value] = Number();
    else
      machine.integers[value] = 0;
  }
  void setFill(Machine &machine) const {
    if (fill == noSlot)
      return setZero(machine);
    if (isFloat)
      machine.numbers[value] = machine.numbers[fill];
    else
      machine.integers[value] = machine.integers[fill];
  }
};

struct Write : Access {
  std::optional<ReduceKind> combination;

  void operator()(Machine &machine) const {
    if (isSkipped(machine))
      return;
    std::optional<int64_t> position = locate(machine);
    if (!position)
      return tellOutside(machine);
    Memory &memory = machine.tensors[tensor];
    bool combines = combination && combination != ReduceKind::Any;
    if (combines && !isDefined(machine, *position))
      return;
    memory.define(*position);
    ++memory.version;
    if (isFloat) {
      Number &element = memory.tensor.numbers[*position];
      DType type = memory.tensor.dtype;
      const Number &given = machine.numbers[value];
      Number next = combines ? combine(machine.algebra, element, given) : given;
      element = type == DType::F32 ? next
                                   : machine.algebra.stored(next, unsigned(type), roundingOf(type));
      return;
    }
    int64_t &element = memory.tensor.integers[*position];
    int64_t next = machine.integers[value];
    element =
        wrap(combines ? combine(element, next, memory.tensor.dtype) : next, memory.tensor.dtype);
  }

private:
  Number combine(Algebra &algebra, const Number &before, const Number &next) const {
    if (combination == ReduceKind::Sum)
      return algebra.add(before, next);
    return extreme(algebra, before, next, combination == ReduceKind::Max);
  }
  int64_t combine(int64_t before, int64_t next, DType type) const {
    if (combination == ReduceKind::Sum)
      return int64_t(uint64_t(before) + uint64_t(next));
    bool isMax = combination == ReduceKind::Max;
    if (isUnsigned(type)) {
      uint64_t a = wrap(next, type), b = before;
      return int64_t(isMax ? std::max(a, b) : std::min(a, b));
    }
    return isMax ? std::max(before, next) : std::min(before, next);
  }
};

/// A row of values in order, and the row of positions that moves along.
struct Sort {
  unsigned values = 0, positions = 0;
  llvm::SmallVector<IndexCode> row;
  bool descending = false;
  std::string place;

  void operator()(Machine &machine) const {
    Memory &keys = machine.tensors[values], &places = machine.tensors[positions];
    int64_t start = 0, count = keys.tensor.shape.back();
    for (auto [k, code] : llvm::enumerate(row)) {
      int64_t at = code.eval(machine);
      if (at < 0 || at >= keys.tensor.shape[k])
        return machine.stop(Evaluation::OutOfBounds, place + ": a row to sort is outside");
      start += at * keys.strides[k];
    }
    for (int64_t k = start; k < start + count; ++k)
      if (!keys.isDefined(k) || !places.isDefined(k))
        return machine.stop(Evaluation::Undefined, place + ": what is sorted is not defined");
    ++keys.version;
    ++places.version;
    auto moved = llvm::ArrayRef(places.tensor.integers).slice(start, count).vec();
    std::vector<size_t> order;
    if (isFloat(keys.tensor.dtype)) {
      auto row = llvm::ArrayRef(keys.tensor.numbers).slice(start, count).vec();
      order = sortedPlaces(machine.algebra, row, descending);
      for (int64_t k = 0; k < count; ++k)
        keys.tensor.numbers[start + k] = row[order[k]];
    } else {
      auto row = llvm::ArrayRef(keys.tensor.integers).slice(start, count).vec();
      order = sortedPlaces(row, descending);
      for (int64_t k = 0; k < count; ++k)
        keys.tensor.integers[start + k] = row[order[k]];
    }
    for (int64_t k = 0; k < count; ++k)
      places.tensor.integers[start + k] = moved[order[k]];
  }
};
} // namespace

std::vector<size_t> tegula::prove::sortedPlaces(Algebra &algebra, llvm::ArrayRef<Number> values,
                                                bool descending) {
  // Insertion, by halving: comparisons may not be consistent where numbers are close.
  auto isBefore = [&](const Number &a, const Number &b) {
    Comparison comparison = algebra.compare(a, b);
    if (comparison == Comparison::Unordered) {
      bool isA = a.kind == Number::NotANumber, isB = b.kind == Number::NotANumber;
      return descending ? isA && !isB : isB && !isA;
    }
    return comparison == (descending ? Comparison::Greater : Comparison::Less);
  };
  std::vector<size_t> order;
  for (size_t k = 0; k < values.size(); ++k) {
    size_t low = 0, high = order.size();
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (isBefore(values[k], values[order[middle]]))
        high = middle;
      else
        low = middle + 1;
    }
    order.insert(order.begin() + int64_t(low), k);
  }
  return order;
}

std::vector<size_t> tegula::prove::sortedPlaces(llvm::ArrayRef<int64_t> values, bool descending) {
  std::vector<size_t> order(values.size());
  for (size_t k = 0; k < order.size(); ++k)
    order[k] = k;
  llvm::sort(order, [&](size_t a, size_t b) {
    if (values[a] == values[b])
      return a < b;
    return descending ? values[a] > values[b] : values[a] < values[b];
  });
  return order;
}

template <typename Op> static void fillIn(StepBuilder &builder, Op op, Access &access) {
  access.tensor = builder.tensorOf(op.getTensor());
  for (Attribute subscript : op.getSubscripts())
    access.subscripts.push_back(builder.index(subscript, op.getIndices()));
  if (op.getGuard()) {
    access.guard = builder.slotOf(op.getGuard());
    access.ways = builder.conditionOf(op, op.getGuard());
  }
  access.isChecked = op.getChecked().has_value();
  access.place = placeOf(op.getLoc());
}

bool tegula::prove::buildAccess(StepBuilder &builder, Operation *op, Steps &steps) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tgl::IndexOp index) {
        IndexCode code = builder.index(index.getExpr(), index.getIndices());
        Slot out = builder.slotOf(index.getResult());
        steps.push_back([=](Machine &machine) { machine.integers[out] = code.eval(machine); });
        return true;
      })
      .Case([&](tgl::TempOp temp) {
        unsigned id = builder.newTensor(temp.getName(), cast<tgl::TglTensorType>(temp.getType()));
        builder.tensorIds[temp.getTensor()] = id;
        steps.push_back([=](Machine &machine) {
          Memory &memory = machine.tensors[id];
          memory.undefineAll();
          ++memory.version;
        });
        return true;
      })
      .Case([&](tgl::ReadOp op) {
        Read read;
        fillIn(builder, op, read);
        for (auto [numerator, denominator] :
             llvm::zip_equal(op.getExactNumerators(), op.getExactDenominators()))
          read.exact.push_back({builder.index(numerator, op.getIndices()),
                                builder.index(denominator, op.getIndices())});
        if (op.getFill())
          read.fill = builder.slotOf(op.getFill());
        read.value = builder.slotOf(op.getResult());
        read.isFloat = StepBuilder::isNumber(op.getResult());
        steps.push_back(std::move(read));
        return true;
      })
      .Case([&](tgl::WriteOp op) {
        Write write;
        if (builder.machine.tensors[builder.tensorOf(op.getTensor())].isOnlyRead)
          return false;
        fillIn(builder, op, write);
        write.combination = op.getCombine();
        write.value = builder.slotOf(op.getValue());
        write.isFloat = StepBuilder::isNumber(op.getValue());
        steps.push_back(std::move(write));
        return true;
      })
      .Case([&](tgl::SortOp op) {
        Sort sort;
        sort.values = builder.tensorOf(op.getValues());
        sort.positions = builder.tensorOf(op.getPositions());
        for (unsigned tensor : {sort.values, sort.positions})
          if (builder.machine.tensors[tensor].isOnlyRead)
            return false;
        for (Attribute subscript : op.getSubscripts())
          sort.row.push_back(builder.index(subscript, op.getIndices()));
        sort.descending = op.getDescending();
        sort.place = placeOf(op.getLoc());
        steps.push_back(std::move(sort));
        return true;
      })
      .Default([](Operation *) { return false; });
}
