//===- EliminateCommonEquations.cpp - Equal equations once ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"
#include "passes/analysis/SameValue.h"
#include "strategies/product_reduction/plan/ProductReduction.h"
#include <map>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ELIMINATECOMMONEQUATIONSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// A statement that is all there is to one temporary.
struct Definition {
  ParallelOp statement = nullptr;
  WriteOp write = nullptr;
  TempOp temp = nullptr;
  llvm::hash_code hash = 0; // of its structure and of the tensors that it reads from outside
};

/// A reduction somewhere in a statement of the block.
struct Reduction {
  ReduceOp op;
  Operation *statement;
  llvm::hash_code
      hash; // of its structure and of the tensors that it reads from outside the statement
};
} // namespace

/// Of an op of a statement (or of itself): its structure, and the tensors that it reads from
/// outside the statement.
static llvm::hash_code hashOf(Operation *op, Operation *statement) {
  llvm::hash_code hash = hashOfStructure(op);
  for (Value tensor : accessesOf(op).reads)
    if (!statement->isAncestor(tensor.getParentBlock()->getParentOp()))
      hash = llvm::hash_combine(hash, tensor.getAsOpaquePointer());
  return hash;
}

/// The only write of a statement, if it alone defines a temporary.
static std::optional<Definition> asDefinition(Operation *op) {
  Definition definition;
  definition.statement = dyn_cast<ParallelOp>(op);
  if (!definition.statement)
    return std::nullopt;
  unsigned writes = 0;
  definition.statement.walk([&](Operation *nested) {
    writes += isa<WriteOp, SortOp>(nested);
    if (auto write = dyn_cast<WriteOp>(nested))
      definition.write = write;
  });
  if (writes != 1 || !definition.write || definition.write->getParentOp() != op)
    return std::nullopt;
  definition.temp = definition.write.getTensor().getDefiningOp<TempOp>();
  if (!definition.temp || llvm::any_of(definition.temp->getUsers(), [&](Operation *user) {
        return user != definition.write && !isa<ReadOp>(user);
      }))
    return std::nullopt;
  definition.hash = hashOf(op, op);
  return definition;
}

namespace {
struct EliminateCommonEquationsPass
    : Counted<tegula::impl::EliminateCommonEquationsPassBase<EliminateCommonEquationsPass>> {
  using Base =
      Counted<tegula::impl::EliminateCommonEquationsPassBase<EliminateCommonEquationsPass>>;
  using Base::Base;

  std::optional<TargetInfo> machine;

  void runOnOperation() override {
    FailureOr<TargetInfo> parsed = parseTarget(getOperation(), target);
    if (failed(parsed))
      return signalPassFailure();
    machine = *parsed;
    Prover prover(sizeFacts(getOperation()));
    // A block before what is inside of it: statements that go take their blocks with them.
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<KernelOp, ParallelOp, ForOp, TilesOp>(op))
        mergeEquations(op->getRegion(0).front());
    });
    if (!shareReductions)
      return;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      hashes.clear(); // they are of the statements of a block
      if (isa<KernelOp, ParallelOp, ForOp, TilesOp>(op))
        while (shareOneReduction(op->getRegion(0).front(), prover)) {
        }
    });
  }

  //===--- Equal statements ---===//

  void mergeEquations(Block &block) {
    SmallVector<Definition> definitions;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      std::optional<Definition> definition = asDefinition(&op);
      if (!definition)
        continue;
      bool merged = false;
      for (const Definition &earlier : definitions)
        if ((merged = mergeInto(earlier, *definition)))
          break;
      if (!merged)
        definitions.push_back(*definition);
    }
  }

  bool mergeInto(Definition earlier, Definition later) {
    if (earlier.hash != later.hash || earlier.temp.getType() != later.temp.getType() ||
        earlier.temp->getBlock() != later.temp->getBlock())
      return false;
    SameValue same(earlier.statement, later.statement);
    same.assume(earlier.temp, later.temp);
    if (!same.equal(earlier.statement, later.statement) ||
        writesOneOf(same.inputs(), earlier.statement, later.statement))
      return false;
    later.statement.erase();
    later.temp.replaceAllUsesWith(earlier.temp.getTensor());
    later.temp.erase();
    count("equations merged");
    return true;
  }

  //===--- Equal reductions inside statements ---===//

  /// Hashes of reductions in the statements of a block, while they stand as they are.
  DenseMap<Operation *, llvm::hash_code> hashes;

  /// Finds two equal reductions in different places of the block's statements and computes them
  /// once.
  bool shareOneReduction(Block &block, Prover &prover) {
    SmallVector<Reduction> reductions;
    for (Operation &op : block)
      op.walk<WalkOrder::PreOrder>([&](Operation *nested) {
        if (auto reduce = dyn_cast<ReduceOp>(nested)) {
          auto [known, isNew] = hashes.try_emplace(nested, 0);
          if (isNew)
            known->second = hashOf(nested, &op);
          reductions.push_back({reduce, &op, known->second});
        }
        return isa<ForOp, TilesOp>(nested) ? WalkResult::skip() : WalkResult::advance();
      });
    std::map<size_t, SmallVector<unsigned, 2>> alike; // places in `reductions`
    for (auto [number, reduction] : llvm::enumerate(reductions))
      alike[reduction.hash].push_back(number);
    for (auto [number, first] : llvm::enumerate(reductions))
      for (unsigned other : alike[first.hash]) {
        const Reduction &second = reductions[other];
        if (other <= number || first.op->isAncestor(second.op))
          continue;
        // Sharing changes the two statements: what is in them is looked at again.
        SmallVector<Operation *> changed;
        for (Operation *statement : {first.statement, second.statement})
          statement->walk([&](ReduceOp reduce) { changed.push_back(reduce); });
        if (!share(first, second, prover))
          continue;
        for (Operation *reduce : changed)
          hashes.erase(reduce);
        count("reductions shared");
        return true;
      }
    return false;
  }

  /// Whether it is a product whose columns a strategy reduces in tiles, without storing it.
  bool isReducedInTiles(const Reduction &reduction) {
    auto statement = dyn_cast<ParallelOp>(reduction.statement);
    if (!keepProducts || !statement || !isa<ReduceOp>(ReduceOp(reduction.op)->getParentOp()))
      return false;
    Matched<ProductReductionPlan> plan = planProductReduction(statement);
    return plan && beatsStoredProduct(*plan, *machine, tensorTile);
  }

  bool share(Reduction first, Reduction second, Prover &prover) {
    if (isReducedInTiles(first) && isReducedInTiles(second))
      return false;
    SameValue same(first.statement, second.statement);
    // Inside one statement its axes are the same for both.
    if (first.statement == second.statement)
      if (auto parallel = dyn_cast<ParallelOp>(first.statement))
        for (Value axis : parallel.getAxes())
          same.assume(axis, axis);
    if (!same.equal(first.op.getOperation(), second.op.getOperation()) ||
        writesOneOf(same.inputs(), first.statement, second.statement))
      return false;
    if (first.op.getOperation() == first.statement) { // a value of the block
      second.op.replaceAllUsesWith(first.op.getResult());
      second.op.erase();
      return true;
    }
    std::optional<AxesTemp> temp = storedIn(first, first.statement != second.statement, prover);
    if (!temp)
      return false;
    OpBuilder builder(second.op);
    SmallVector<ValueExpr> subscripts;
    for (const ValueExpr &subscript : temp->subscripts)
      subscripts.push_back(subscript.substitute([&](Value value) -> std::optional<ValueExpr> {
        Value counterpart = same.lookup(value);
        return counterpart ? std::optional<ValueExpr>(counterpart) : std::nullopt;
      }));
    Value read = ReadOp::create(builder, second.op.getLoc(), temp->tensor, subscripts);
    second.op.replaceAllUsesWith(read);
    second.op.erase();
    return true;
  }

  /// The temporary that holds a reduction, over the axes of its statement: the one that the
  /// statement defines by it (where `mayRead`: the statement has ended), or a new one.
  std::optional<AxesTemp> storedIn(const Reduction &reduction, bool mayRead, Prover &prover) {
    ReduceOp op = reduction.op;
    std::optional<Definition> definition = asDefinition(reduction.statement);
    if (definition && mayRead && definition->write.getValue() == op.getResult() &&
        definition->temp.getType().getElementType() == op.getType())
      return AxesTemp{definition->temp.getTensor(), {}, definition->write.getSubscriptExprs()};
    std::optional<Outline> where =
        outlineTo(reduction.statement, op, valuesUsedBy(op).getArrayRef());
    if (!where)
      return std::nullopt;
    return storeOutlined(op, *where, stringifyReduceKind(op.getKind()), prover, tileSize);
  }
};
} // namespace
