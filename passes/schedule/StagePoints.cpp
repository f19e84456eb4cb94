//===- StagePoints.cpp - A point's part of inputs in a temporary ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/StagePoints.h"

#include "passes/fuse/Access.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Reads of an element from where on its part is kept, and how much of the part they may leave out.
static constexpr double leastReads = 4, mostUnread = 2;

namespace {
/// A dim of a tensor as the point has it.
struct StagedDim {
  Value axis;                    ///< of the statement, that decides it; null: none
  int64_t weight = 0;            ///< of the axis in subscripts
  std::optional<int64_t> extent; ///< of the part; nothing: one element
};

class StagedTensor {
public:
  StagedTensor(ParallelOp statement, Value tensor, Prover &prover)
      : statement(statement), tensor(tensor), prover(prover) {}

  bool match();
  int64_t bytes() const;
  void stage();

private:
  ParallelOp statement;
  Value tensor;
  Prover &prover;
  SmallVector<ReadOp> reads;
  SmallVector<StagedDim> dims;

  TglTensorType type() const { return cast<TglTensorType>(tensor.getType()); }
  bool isOuter(Value value) { return llvm::is_contained(statement.getAxes(), value); }
  std::optional<StagedDim> matchDim(unsigned dim);
  bool isReadAgain() const;
  mlir::Type elementType() const;
};
} // namespace

/// The dim as all reads have it.
std::optional<StagedDim> StagedTensor::matchDim(unsigned dim) {
  StagedDim found;
  std::optional<int64_t> extent = type().getDims()[dim].getExpr().asConstant();
  if (!extent)
    return std::nullopt;
  for (auto [number, read] : llvm::enumerate(reads)) {
    ValueExpr subscript = read.getSubscriptExprs()[dim];
    StagedDim own;
    for (Value operand : subscript.operands()) {
      if (!isa<BlockArgument>(operand) || (isOuter(operand) && own.axis))
        return std::nullopt;
      if (isOuter(operand))
        own.axis = operand;
    }
    own.extent = *extent;
    if (own.axis) {
      std::optional<IndexExpr> weight = digitOf(subscript, own.axis, read, prover);
      std::optional<int64_t> points = (highOf(own.axis) - lowOf(own.axis)).asConstant();
      if (!weight || !weight->asConstant() || !points || lowOf(own.axis).asConstant() != 0)
        return std::nullopt;
      own.weight = *weight->asConstant();
      if (own.weight * *points != *extent) // else the part may leave the tensor
        return std::nullopt;
      own.extent = own.weight == 1 ? std::nullopt : std::optional(own.weight);
      if (!own.extent && subscript.asValue() != own.axis)
        return std::nullopt;
    }
    if (number && (own.axis != found.axis || own.weight != found.weight))
      return std::nullopt;
    found = own;
  }
  return found;
}

/// Whether each element of the part is read several times, and most of them are read at all.
bool StagedTensor::isReadAgain() const {
  double all = 0, distinct = 0, part = 1;
  for (const StagedDim &dim : dims)
    part *= double(dim.extent.value_or(1));
  for (ReadOp read : reads) {
    double times = 1, places = 1;
    for (Operation *around = read->getParentOp(); around != statement;
         around = around->getParentOp()) {
      auto axes = dyn_cast<AxesOp>(around);
      if (!axes)
        return false;
      for (auto [number, axis] : llvm::enumerate(axes.getAxes())) {
        std::optional<int64_t> points = knownPoints(axes, {unsigned(number)});
        if (!points)
          return false;
        times *= double(*points);
        bool isPlace = llvm::any_of(read.getSubscriptExprs(),
                                    [&, own = axis](const ValueExpr &s) { return s.uses(own); });
        places *= isPlace ? double(*points) : 1;
      }
    }
    all += times;
    distinct = std::max(distinct, places);
  }
  return all >= leastReads * part && distinct * mostUnread >= part;
}

bool StagedTensor::match() {
  for (Operation *user : tensor.getUsers()) {
    if (!statement->isAncestor(user))
      continue;
    auto read = dyn_cast<ReadOp>(user);
    if (!read || read.getFill() || read.getChecked() || read.getGuard() ||
        !read.getExactNumerators().empty() || read->getParentOp() == statement)
      return false;
    reads.push_back(read);
  }
  if (reads.empty() || type().getElementType().getIntOrFloatBitWidth() < 8)
    return false;
  bool variesWithPoint = false, hasPart = false;
  for (unsigned dim = 0; dim < type().getRank(); ++dim) {
    std::optional<StagedDim> own = matchDim(dim);
    if (!own)
      return false;
    variesWithPoint |= own->axis != nullptr;
    hasPart |= own->extent.has_value();
    dims.push_back(*own);
  }
  return variesWithPoint && hasPart && isReadAgain();
}

/// Narrow floats are kept as what is computed with.
mlir::Type StagedTensor::elementType() const {
  mlir::Type element = type().getElementType();
  bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  return isNarrow ? Float32Type::get(element.getContext()) : element;
}

int64_t StagedTensor::bytes() const {
  int64_t bytes = elementType().getIntOrFloatBitWidth() / 8;
  for (const StagedDim &dim : dims)
    bytes *= dim.extent.value_or(1);
  return bytes;
}

void StagedTensor::stage() {
  Location loc = statement.getLoc();
  MLIRContext *context = statement.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(&statement.getBody().front());
  std::string name = "part";
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    name = statement->getParentOfType<KernelOp>().getArgName(argument.getArgNumber()).str();
  else if (auto temp = tensor.getDefiningOp<TempOp>())
    name = temp.getName().str();
  SmallVector<IndexExprAttr> extents;
  SmallVector<AxisSpec> axes;
  for (const StagedDim &dim : dims)
    if (dim.extent) {
      extents.push_back(IndexExprAttr::get(context, IndexExpr(*dim.extent)));
      axes.push_back({"", ValueExpr(int64_t(0)), ValueExpr(*dim.extent)});
    }
  auto temp =
      TempOp::create(builder, loc, TglTensorType::get(context, extents, elementType()), name);
  auto nest = ParallelOp::create(builder, loc, axes);
  SmallVector<ValueExpr> from, to;
  unsigned next = 0;
  for (const StagedDim &dim : dims) {
    ValueExpr place(int64_t(0));
    if (dim.extent) {
      to.push_back(ValueExpr(Value(nest.getAxes()[next++])));
      place = to.back();
    }
    from.push_back(dim.axis ? ValueExpr(dim.weight) * ValueExpr(dim.axis) + place : place);
  }
  OpBuilder inside = OpBuilder::atBlockEnd(&nest.getBody().front());
  auto element = ReadOp::create(inside, loc, tensor, from);
  WriteOp::create(inside, loc, element.getResult(), temp.getTensor(), to);
  for (ReadOp read : reads) {
    SmallVector<ValueExpr> place;
    for (auto [subscript, dim] : llvm::zip_equal(read.getSubscriptExprs(), dims))
      if (dim.extent)
        place.push_back(dim.axis ? subscript - ValueExpr(dim.weight) * ValueExpr(dim.axis)
                                 : subscript);
    OpBuilder here(read);
    auto near = ReadOp::create(here, read.getLoc(), temp.getTensor(), place);
    read.replaceAllUsesWith(near.getResult());
    read.erase();
  }
}

unsigned tegula::stageInputs(ParallelOp statement, int64_t bytes, Prover &prover) {
  Accesses accesses = accessesOf(statement);
  unsigned staged = 0;
  for (Value tensor : accesses.reads) {
    if (accesses.writes.contains(tensor) || tensor.getParentRegion() == &statement.getBody())
      continue;
    StagedTensor candidate(statement, tensor, prover);
    if (!candidate.match() || candidate.bytes() > bytes)
      continue;
    bytes -= candidate.bytes();
    candidate.stage();
    ++staged;
  }
  return staged;
}
