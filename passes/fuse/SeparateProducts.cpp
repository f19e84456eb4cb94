//===- SeparateProducts.cpp - Products beside the one of a loop ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/SeparateProducts.h"

#include "passes/analysis/Outline.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// What an H200 does in a microsecond, as RecomputeProducts.cpp has it: bytes to and from memory,
/// and operations of tile loops on tensor cores.
static constexpr double bytesOfMicrosecond = 3.5e6, operationsOfMicrosecond = 4e8;

static std::optional<double> pointsOf(Operation *op) {
  std::optional<int64_t> points = knownPoints(cast<AxesOp>(op));
  return points ? std::optional(double(*points)) : std::nullopt;
}

ReduceOp SeparateProducts::ofLoop(ParallelOp statement) {
  ReduceOp found;
  unsigned products = 0;
  for (auto reduce : statement.getBody().front().getOps<ReduceOp>()) {
    std::optional<Contraction> contraction = matchContraction(reduce);
    if (!contraction)
      return {};
    ++products;
    bool isMade = contraction->factors.size() == 2 &&
                  llvm::any_of(contraction->factors, [](const Contraction::Factor &factor) {
                    auto read = factor.value.getDefiningOp<ReadOp>();
                    return read && TempDefinition::of(read.getTensor());
                  });
    if (isMade && !found)
      found = reduce;
  }
  return products > 1 ? found : ReduceOp();
}

SeparateProducts::SeparateProducts(ParallelOp statement, ReduceOp kept) {
  Prover prover(sizeFacts(statement->getParentOfType<KernelOp>()));
  for (ReduceOp sum : llvm::to_vector(statement.getBody().front().getOps<ReduceOp>())) {
    if (sum == kept)
      continue;
    SetVector<Value> needs = valuesUsedBy(sum);
    std::optional<Outline> where = outlineTo(statement, sum, needs.getArrayRef());
    std::optional<AxesTemp> temp =
        where ? storeOutlined(sum, *where, "product", prover, /*tileSize=*/64) : std::nullopt;
    if (!temp) {
      undo();
      return;
    }
    Separate own{{}, {}, temp->tensor.getDefiningOp<TempOp>(), where->axes};
    for (Operation *user : temp->tensor.getUsers())
      if (auto read = dyn_cast<ReadOp>(user))
        own.read = read;
      else
        own.statement = user->getParentOfType<ParallelOp>();
    sum.erase();
    all.push_back(own);
  }
}

bool SeparateProducts::areWorthIt(const RowChain &chain) const {
  constexpr double ofBoth = 2 * sizeof(float); // written and read
  // Statements behind the loop may write what the sums read.
  if (!chain.column || !chain.readers.empty())
    return false;
  double elements = 0, made = 0;
  for (auto &[tensor, definition] : chain.inlined) {
    std::optional<double> points = pointsOf(ParallelOp(definition.statement));
    if (!points)
      return false;
    if (chain.isElement(WriteOp(definition.write).getValue()))
      elements = std::max(elements, *points);
  }
  for (auto &[tensor, definition] : chain.inlined) {
    ParallelOp statement = definition.statement;
    for (auto reduce : statement.getBody().getOps<ReduceOp>())
      made += 2 * (elements - *pointsOf(statement)) * pointsOf(reduce).value_or(0);
  }
  std::optional<double> results = pointsOf(ParallelOp(chain.product));
  return results && double(all.size()) * *results * ofBoth / bytesOfMicrosecond +
                            made / operationsOfMicrosecond <
                        elements * ofBoth / bytesOfMicrosecond;
}

void SeparateProducts::undo() {
  for (Separate &own : all) {
    OpBuilder builder(own.read);
    IRMapping map;
    for (auto [axis, its] :
         llvm::zip_equal(own.axes, cast<AxesOp>(own.statement.getOperation()).getAxes()))
      map.map(its, axis);
    Value result;
    for (Operation &op : own.statement.getBody().front())
      if (auto write = dyn_cast<WriteOp>(op))
        result = map.lookupOrDefault(write.getValue());
      else
        builder.clone(op, map);
    own.read.replaceAllUsesWith(result);
    own.read.erase();
    own.statement.erase();
    own.temp.erase();
  }
  all.clear();
}
