//===- DoubleBuffer.cpp - States that a step reads around their elements --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/WholeCopies.h"
#include "passes/fuse/InlineProducers.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_DOUBLEBUFFERPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Elements of a window that a point reads instead of one value that was kept for it.
static constexpr int64_t maxWindow = 64;

//===----------------------------------------------------------------------===//
// What a step reads around each element
//===----------------------------------------------------------------------===//

/// The only write of a statement, where all its points stand in one box and it is plain.
static WriteOp onlyWrite(ParallelOp statement) {
  WriteOp found;
  bool isPlain = true;
  statement->walk([&](Operation *op) {
    if (auto write = dyn_cast<WriteOp>(op)) {
      isPlain &= !found && write->getParentOp() == statement;
      found = write;
    } else {
      isPlain &= op == statement || isa<ReadOp, ReduceOp, YieldOp>(op) ||
                 (op->getNumRegions() == 0 && isMemoryEffectFree(op));
    }
  });
  return isPlain && found && writesWhole(found) ? found : WriteOp();
}

/// Whether the sums of a statement are over few elements, known ones.
static bool readsWindows(ParallelOp statement) {
  int64_t elements = 1;
  bool areFew = true;
  statement->walk([&](ReduceOp reduce) {
    std::optional<int64_t> points = knownPoints(cast<AxesOp>(reduce.getOperation()));
    areFew &= points && *points <= maxWindow;
    if (areFew)
      elements += *points;
    areFew &= elements <= maxWindow;
  });
  return areFew;
}

/// Whether each point of the statement reads elements of the tensor around its own, along all dims.
/// Along a dim whose subscripts are all one axis, points would never meet, and one launch could
/// walk the loop; one that no axis of the statement decides is that of a product.
static bool readsAround(ParallelOp statement, Value tensor) {
  SmallVector<bool> around(cast<TglTensorType>(tensor.getType()).getDims().size(), false);
  bool isNear = !around.empty();
  auto isOwn = [&](Value axis) { return llvm::is_contained(statement.getAxes(), axis); };
  statement->walk([&](ReadOp read) {
    if (read.getTensor() != tensor)
      return;
    for (auto [meets, subscript] : llvm::zip_equal(around, read.getSubscriptExprs())) {
      isNear &= llvm::any_of(subscript.operands(), isOwn);
      meets |= !subscript.asValue();
    }
  });
  return isNear && llvm::all_of(around, [](bool meets) { return meets; });
}

namespace {
/// A statement of a step that replaces a state, and one before it that has read elements around the
/// same place for it: in one statement they need a second buffer.
struct Update {
  ParallelOp statement;
  WriteOp write; ///< of the state
  ParallelOp producer;
  WriteOp kept; ///< what the producer hands on
  SmallVector<ReadOp> readers;
};

struct DoubleBufferPass : Counted<tegula::impl::DoubleBufferPassBase<DoubleBufferPass>> {
  using Counted::Counted;

  void runOnOperation() override { visit(getOperation().getBody().front()); }

  void visit(Block &block) {
    for (ForOp loop : block.getOps<ForOp>()) {
      Block &body = loop.getBody().front();
      visit(body);
      if (!loop.getInits().empty())
        continue;
      for (TempOp temp : llvm::to_vector(body.getOps<TempOp>()))
        count("buffers with the state's type", narrow(temp));
      for (ParallelOp statement : llvm::to_vector(body.getOps<ParallelOp>()))
        // What is a copy already has a second buffer.
        if (WriteOp write = onlyWrite(statement);
            write && !matchWholeCopy(write) && isState(write, loop))
          update(statement, write);
    }
  }

  /// Whether the statement alone changes the tensor in the loop, which keeps it between steps, and
  /// what comes behind in the step reads it.
  static bool isState(WriteOp write, ForOp loop) {
    Value state = write.getTensor();
    if (loop->isAncestor(state.getParentBlock()->getParentOp()))
      return false;
    return llvm::all_of(state.getUsers(), [&](Operation *user) {
      if (user == write || !loop->isAncestor(user))
        return true;
      auto read = dyn_cast<ReadOp>(user);
      Operation *own = write->getBlock()->findAncestorOpInBlock(*user);
      // Points of its statement read their own elements, before they replace them.
      return read && (!own || (own->isBeforeInBlock(write) &&
                               read.getSubscriptExprs() == write.getSubscriptExprs()));
    });
  }

  void update(ParallelOp statement, WriteOp write) {
    bool found = false;
    for (std::optional<Update> one = match(statement, write); one; one = match(statement, write)) {
      inlineProducer(*one);
      found = true;
      count("values read where they are used");
    }
    if (!found)
      return;
    handOn(statement, write);
    count("states with a second buffer");
  }

  /// The next producer to put into the statement.
  static std::optional<Update> match(ParallelOp statement, WriteOp write) {
    for (ReadOp read : statement.getBody().front().getOps<ReadOp>()) {
      auto temp = read.getTensor().getDefiningOp<TempOp>();
      if (!temp || temp->getBlock() != statement->getBlock())
        continue;
      Update update{statement, write, nullptr, nullptr, {}};
      bool isOwn = true; // one statement makes it for this one, a value for each point
      for (Operation *user : temp->getUsers()) {
        if (auto kept = dyn_cast<WriteOp>(user); kept && !update.kept) {
          update.kept = kept;
          continue;
        }
        auto reader = dyn_cast<ReadOp>(user);
        isOwn &= reader && statement->isAncestor(reader) && !reader.getGuard() &&
                 !reader.getFill() && !reader.getChecked() && reader.getExactNumerators().empty() &&
                 isAtPoint(reader, statement);
        if (isOwn)
          update.readers.push_back(reader);
      }
      update.producer = update.kept ? dyn_cast<ParallelOp>(update.kept->getParentOp()) : nullptr;
      if (isOwn && update.producer && update.producer->getBlock() == statement->getBlock() &&
          update.producer->isBeforeInBlock(statement) &&
          onlyWrite(update.producer) == update.kept && readsWindows(update.producer) &&
          readsAround(update.producer, write.getTensor()) && isSame(update) &&
          (update.producer->getNextNode() == statement ||
           !writesInputsOf(update.producer, update.producer->getNextNode(),
                           statement->getPrevNode())))
        return update;
    }
    return std::nullopt;
  }

  /// Whether the read is of an element whose subscripts are the statement's axes, each once.
  static bool isAtPoint(ReadOp read, ParallelOp statement) {
    SetVector<Value> axes(statement.getAxes().begin(), statement.getAxes().end());
    for (const ValueExpr &subscript : read.getSubscriptExprs())
      if (Value axis = subscript.asValue(); !axis || !axes.remove(axis))
        return false;
    return axes.empty();
  }

  /// Whether each point of the producer is one of the statement, which reads the value of that
  /// point alone.
  static bool isSame(Update &update) {
    SmallVector<ValueExpr> place = update.readers.front().getSubscriptExprs();
    for (ReadOp reader : update.readers)
      if (reader.getSubscriptExprs() != place)
        return false;
    return llvm::all_of(
        llvm::zip_equal(update.kept.getSubscriptExprs(), place), [](const auto &pair) {
          Value made = std::get<0>(pair).asValue(), used = std::get<1>(pair).asValue();
          return made && lowOf(made) == lowOf(used) && highOf(made) == highOf(used);
        });
  }

  static void inlineProducer(Update &update) {
    OpBuilder builder(update.statement);
    builder.setInsertionPointToStart(&update.statement.getBody().front());
    IRMapping map;
    for (auto [made, used] : llvm::zip_equal(update.kept.getSubscriptExprs(),
                                             update.readers.front().getSubscriptExprs()))
      map.map(made.asValue(), used.asValue());
    for (Operation &op : update.producer.getBody().front())
      if (&op != update.kept)
        builder.clone(op, map);
    ReadOp first = update.readers.front();
    Value value =
        roundToStorage(builder, first.getLoc(), map.lookupOrDefault(update.kept.getValue()),
                       first.getTensorType().getElementType());
    for (ReadOp reader : update.readers) {
      reader.replaceAllUsesWith(value);
      reader.erase();
    }
    Operation *temp = update.kept.getTensor().getDefiningOp();
    update.producer.erase();
    temp->erase();
  }

  /// Lets the statement write another buffer, which becomes the state at the end of the step.
  static void handOn(ParallelOp statement, WriteOp write) {
    Value state = write.getTensor();
    Block &body = *statement->getBlock();
    Location loc = write.getLoc();
    OpBuilder builder(&body, body.begin());
    std::string name = "state";
    if (auto temp = state.getDefiningOp<TempOp>())
      name = temp.getName().str();
    Value next = TempOp::create(builder, loc, state.getType(), name + ".new");
    for (OpOperand &use : llvm::make_early_inc_range(state.getUses())) {
      Operation *op = body.findAncestorOpInBlock(*use.getOwner());
      if (use.getOwner() == write || (op && statement->isBeforeInBlock(op)))
        use.set(next);
    }
    builder.setInsertionPoint(body.getTerminator());
    SmallVector<AxisSpec> axes;
    for (auto [position, dim] : llvm::enumerate(write.getTensorType().getDims()))
      axes.push_back({"d" + std::to_string(position), 0, ValueExpr(dim.getExpr())});
    auto copy = ParallelOp::create(builder, loc, axes);
    builder.setInsertionPointToStart(&copy.getBody().front());
    SmallVector<ValueExpr> place(copy.getAxes().begin(), copy.getAxes().end());
    Value element = ReadOp::create(builder, loc, next, place);
    WriteOp::create(builder, loc, element, state, place);
  }

  /// Gives a temporary that is copied to a state, and read for nothing else, the state's element
  /// type: each element is rounded when it is written, not when it is copied.
  static bool narrow(TempOp temp) {
    WriteOp copy;
    ReadOp copied;
    for (Operation *user : temp->getUsers()) {
      if (auto read = dyn_cast<ReadOp>(user)) {
        auto write = read->hasOneUse() ? dyn_cast<WriteOp>(*read->user_begin()) : nullptr;
        if (copied || !write || write.getValue() != read.getResult() || read.getGuard() ||
            read.getFill() || read.getChecked() || !read.getExactNumerators().empty())
          return false;
        copied = read;
        copy = write;
      } else if (auto write = dyn_cast<WriteOp>(user); !write || write.getCombine()) {
        return false;
      }
    }
    if (!copy || !writesWhole(copy) || copy.getSubscriptExprs() != copied.getSubscriptExprs() ||
        llvm::none_of(temp->getUsers(), [&](Operation *user) {
          auto statement = dyn_cast<ParallelOp>(user->getParentOp());
          return isa<WriteOp>(user) && statement && readsAround(statement, copy.getTensor());
        }))
      return false;
    TglTensorType own = temp.getType(), type = copy.getTensorType();
    if (own == type || own.getDims() != type.getDims() ||
        own.getElementType() != own.getComputeType() ||
        own.getElementType() != type.getComputeType())
      return false;
    OpBuilder builder(temp);
    Value same = TempOp::create(builder, temp.getLoc(), type, temp.getName());
    temp.replaceAllUsesWith(same);
    temp.erase();
    return true;
  }
};
} // namespace
