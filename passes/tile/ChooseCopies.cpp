//===- ChooseCopies.cpp - Asynchronous copies of operands -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_CHOOSECOPIESPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

/// The read that a copy's region ends in, behind which an integer may become a float.
static tgl::ReadOp lastRead(tile::CopyOp copy) {
  Operation *op = copy.getYielded().getDefiningOp();
  if (op && isa<arith::SIToFPOp, arith::UIToFPOp>(op) && op->getBlock() == copy.getPoint())
    op = op->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<tgl::ReadOp>(op);
}

/// Whether the ops before the read, which find its place, are the same along a line.
static bool areOfLines(Block &point, tgl::ReadOp read, BlockArgument along) {
  llvm::SmallPtrSet<Value, 8> varies{along};
  for (Operation &op : llvm::make_range(point.begin(), std::next(read->getIterator()))) {
    bool isLast = &op == read;
    if (op.getNumRegions())
      return false;
    for (Value operand : op.getOperands())
      if (varies.contains(operand)) {
        if (isLast && operand != along)
          return false;
        varies.insert_range(op.getResults());
      }
  }
  return !read.getGuard() || !varies.contains(read.getGuard());
}

/// Whether 16 bytes of a line are neighbours in memory, begin at a multiple of that, and exist
/// together.
static bool canCopyVectors(tile::CopyOp copy) {
  Block &point = copy.getBody().front();
  tgl::ReadOp read = lastRead(copy);
  if (!read || read->getBlock() != &point || read.getFill() || !read.getExactExprs().empty())
    return false;
  tile::SharedType type = copy.getTarget().getType();
  Type element = read.getTensorType().getElementType();
  Operation *after = read->getNextNode();
  bool isPlain = element == type.getElementType() && after == point.getTerminator();
  bool isUnpacked =
      tile::isByte(element) && !type.getElementType().isF32() &&
      (after == point.getTerminator() || after->getNextNode() == point.getTerminator());
  if (!isPlain && !isUnpacked)
    return false;
  int64_t vector = 128 / element.getIntOrFloatBitWidth();
  unsigned along = type.getKMajor() ? 1 : 0;
  if (!areOfLines(point, read, point.getArgument(along)))
    return false;
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  if (stepAlong(offset, point.getArgument(along)) != 1)
    return false;
  auto span = copy.getSpans()[along].getDefiningOp<tile::SpanOp>(),
       lines = copy.getSpans()[1 - along].getDefiningOp<tile::SpanOp>();
  if (!span || !lines || !tile::isMultipleEverywhere(span.getEndExpr(), vector) ||
      !tile::isMultipleEverywhere(span.getBaseExpr(), vector))
    return false;
  offset = offset.substitute(point.getArgument(along), ValueExpr(int64_t(0)));
  return tile::isMultipleEverywhere(offset, vector);
}

/// Makes the copy asynchronous: into a tile of bytes where that is what memory holds. That tile;
/// null where the copy's own takes them as they are.
static Value copyBytes(tile::CopyOp copy) {
  copy.setKind(tile::CopyKind::CpAsync);
  tgl::ReadOp read = lastRead(copy);
  tile::SharedType type = copy.getTarget().getType();
  Type element = read.getTensorType().getElementType();
  if (element == type.getElementType())
    return nullptr;
  OpBuilder builder(copy.getTarget().getDefiningOp());
  auto packed =
      tile::SharedType::get(copy.getContext(), type.getShape(), element, type.getKMajor());
  Value bytes = tile::AllocOp::create(builder, copy.getLoc(), packed, IntegerAttr());
  copy.getTargetMutable().set(bytes);
  copy.getPoint()->getTerminator()->setOperand(0, read.getResult());
  for (Operation *op = copy.getPoint()->getTerminator()->getPrevNode(); op != read;) {
    Operation *before = op->getPrevNode();
    op->erase();
    op = before;
  }
  return bytes;
}

/// Commits what the copies before a barrier have started, and waits for it.
static void awaitBefore(tile::BarrierOp barrier) {
  OpBuilder builder(barrier);
  Value token =
      tile::CommitOp::create(builder, barrier.getLoc(), tile::TokenType::get(builder.getContext()));
  tile::AwaitOp::create(builder, barrier.getLoc(), token);
}

/// Unpacks bytes that have come at a barrier before the first product that takes them, those of
/// like operands together. So others may have the memory of theirs before, or after
/// (AllocateShared.cpp).
static void unpackBehind(tile::BarrierOp barrier,
                         SmallVectorImpl<std::pair<Value, tile::SharedType>> &bytes,
                         const DenseMap<Value, Value> &targets) {
  for (Operation *op = barrier->getNextNode(); op && !bytes.empty(); op = op->getNextNode()) {
    auto product = dyn_cast<tile::MmaOp>(op);
    if (!product)
      continue;
    auto used = llvm::find_if(bytes, [&](const auto &one) {
      Value target = targets.lookup(one.first);
      return product.getA() == target || product.getB() == target;
    });
    if (used == bytes.end())
      continue;
    bool kMajor = used->second.getKMajor();
    OpBuilder builder(product);
    llvm::erase_if(bytes, [&](const auto &one) {
      if (one.second.getKMajor() != kMajor)
        return false;
      tile::UnpackOp::create(builder, product.getLoc(), one.first, targets.lookup(one.first));
      return true;
    });
    tile::BarrierOp::create(builder, product.getLoc(), barrier.getPublish());
  }
}

namespace {
struct ChooseCopiesPass : Counted<tegula::impl::ChooseCopiesPassBase<ChooseCopiesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    unsigned asynchronous = 0;
    SmallVector<Block *> blocks;
    getOperation().walk([&](tile::CopyOp copy) {
      if (blocks.empty() || blocks.back() != copy->getBlock())
        blocks.push_back(copy->getBlock());
    });
    for (Block *block : blocks) {
      bool isPending = false;
      SmallVector<std::pair<Value, tile::SharedType>> packed;
      DenseMap<Value, Value> targets; // by tile of bytes
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        if (auto copy = dyn_cast<tile::CopyOp>(op); copy && canCopyVectors(copy)) {
          Value target = copy.getTarget();
          if (Value bytes = copyBytes(copy)) {
            packed.push_back({bytes, cast<tile::SharedType>(bytes.getType())});
            targets[bytes] = target;
          }
          isPending = true;
          ++asynchronous;
        } else if (auto barrier = dyn_cast<tile::BarrierOp>(op); barrier && isPending) {
          awaitBefore(barrier);
          unpackBehind(barrier, packed, targets);
          isPending = false;
        }
      }
    }
    count("asynchronous copies", asynchronous);
  }
};
} // namespace
