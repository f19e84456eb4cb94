//===- RecomputeProducts.cpp - Products made again where they are used ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Passes.h"
#include "passes/fuse/PartialSums.h"
#include "passes/fuse/RowChain.h"
#include "strategies/tile_loop/plan/TileLoop.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_RECOMPUTEPRODUCTSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Of a tile where nobody chooses another; row tiles have their own.
static constexpr int64_t tileSize = 32;

/// What an H200 does in a microsecond: bytes to and from memory as long statements have them, and
/// operations of tile loops on tensor cores.
static constexpr double bytesOfMicrosecond = 3.5e6, operationsOfMicrosecond = 4e8;

static AxesOp axesOf(ParallelOp op) { return cast<AxesOp>(op.getOperation()); }

/// The axes of a chain's product that its elements have.
static SmallVector<Value> rowsOf(const RowChain &chain) {
  SmallVector<Value> rows;
  for (BlockArgument axis : axesOf(chain.product).getAxes())
    if (axis != chain.column)
      rows.push_back(axis);
  return rows;
}

namespace {
/// parallel (rows) { tiles (j) { elements; sums of all products }; parallel (d) { results } .. }
class Builder {
public:
  /// Chains over the same rows and the same j.
  explicit Builder(ArrayRef<RowChain *> chains)
      : chains(chains), b(chains.back()->product), loc(chains.back()->product.getLoc()) {}

  ParallelOp run() {
    ParallelOp rows = copyAxes(b, loc, rowsOf(*chains.front()), at);
    for (RowChain *chain : chains)
      for (auto [own, axis] : llvm::zip_equal(rowsOf(*chain), rowsOf(*chains.front())))
        at.map(own, at.lookup(axis));
    b.setInsertionPointToEnd(&rows.getBody().front());
    for (RowChain *chain : chains) {
      Value acc = temp("acc", columnsOf(*chain), b.getF32Type());
      sums.push_back(acc);
      overColumns(*chain, [&](Value column) {
        Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
        WriteOp::create(b, loc, zero, acc, {ValueExpr(column)});
      });
    }
    emitTiles();
    for (auto [chain, acc] : llvm::zip_equal(chains, sums))
      emitResult(*chain, acc);
    rows.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(rows.getBody().front());
    return rows;
  }

private:
  ArrayRef<RowChain *> chains;
  OpBuilder b;
  Location loc;
  IRMapping at; ///< from the chains' axes and values
  TilesOp tiles;
  SmallVector<Value> sums;  ///< temporaries of rows
  SmallVector<Value> lefts; ///< temporaries of a tile

  static int64_t columnsOf(const RowChain &chain) {
    return *getAxisRange(axesOf(chain.product), chain.column.getArgNumber()).hi.asConstant();
  }

  Value temp(StringRef name, int64_t size, Type element) {
    IndexExprAttr dim = IndexExprAttr::get(b.getContext(), IndexExpr(size));
    return TempOp::create(b, loc, TglTensorType::get(b.getContext(), {dim}, element), name)
        .getTensor();
  }

  void over(const AxisSpec &axis, function_ref<void(Value)> body) {
    auto nest = ParallelOp::create(b, loc, {axis});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&nest.getBody().front());
    body(nest.getBody().front().getArgument(0));
  }
  void overColumns(const RowChain &chain, function_ref<void(Value)> body) {
    over({nameOf(chain.column).str(), int64_t(0), columnsOf(chain)}, body);
  }

  AxisSpec tile() {
    return {nameOf(chains.front()->sumAxis()).str(), Value(tiles.getTileLow()),
            Value(tiles.getTileHigh())};
  }
  ValueExpr inTile(Value position) {
    return ValueExpr(position) - ValueExpr(Value(tiles.getTileLow()));
  }

  /// The value computed here, once for all chains: their elements are at the same places. What is
  /// the same for all of a row is computed before the loop.
  Value copy(const RowChain &chain, Value value) {
    if (Value known = at.lookupOrNull(value))
      return known;
    OpBuilder::InsertionGuard guard(b);
    if (tiles->isAncestor(b.getInsertionBlock()->getParentOp()) && !chain.isElement(value))
      b.setInsertionPoint(tiles);
    Value here;
    if (isa<BlockArgument>(value)) {
      here = materialize(b, loc, chain.placed(ValueExpr(value)).substitute([&](Value used) {
        return std::optional(ValueExpr(at.lookupOrDefault(used)));
      }));
    } else if (isa<KernelOp>(value.getDefiningOp()->getParentOp())) {
      return value;
    } else if (const TempDefinition *definition = chain.definitionOf(value)) {
      Value stored = WriteOp(definition->write).getValue();
      Type element = TempDefinition(*definition).elementType();
      here = copy(chain, stored);
      if (!element.isF32())
        here = ConvertOp::create(b, loc, here, element);
    } else {
      Operation *op = value.getDefiningOp();
      for (Value used : valuesUsedBy(op))
        copy(chain, used);
      b.clone(*op, at);
      return at.lookup(value);
    }
    at.map(value, here);
    return here;
  }

  void emitTiles() {
    const AxisRange &range = chains.front()->range;
    tiles = TilesOp::create(b, loc, {nameOf(chains.front()->sumAxis())}, range.lo, range.hi, {},
                            tileSize);
    Block &block = tiles.getBody().front();
    OpBuilder::InsertionGuard guard(b);
    if (!block.empty())
      block.back().erase();
    b.setInsertionPointToEnd(&block);
    over(tile(), [&](Value place) {
      OpBuilder::InsertPoint inNest = b.saveInsertionPoint();
      for (RowChain *chain : chains)
        at.map(chain->sumAxis(), place);
      for (RowChain *chain : chains) {
        Value left = copy(*chain, chain->left);
        auto rounded = left.getDefiningOp<ConvertOp>();
        Type element = rounded ? rounded.getTarget() : left.getType();
        b.setInsertionPoint(place.getParentBlock()->getParentOp()); // before what fills it
        lefts.push_back(temp("e", tileSize, element));
        b.restoreInsertionPoint(inNest);
        WriteOp::create(b, loc, left, lefts.back(), {inTile(place)});
      }
    });
    for (auto [chain, left, acc] : llvm::zip_equal(chains, lefts, sums))
      overColumns(*chain, [&](Value column) {
        Value before = ReadOp::create(b, loc, acc, {ValueExpr(column)});
        Value after = arith::AddFOp::create(b, loc, before, product(*chain, left, column),
                                            arith::FastMathFlags::contract);
        WriteOp::create(b, loc, after, acc, {ValueExpr(column)});
      });
    YieldOp::create(b, loc, ValueRange());
  }

  Value product(const RowChain &chain, Value left, Value column) {
    ReduceOp from = chain.sum;
    auto reduce = ReduceOp::create(b, loc, b.getF32Type(), ReduceKind::Sum, {tile()});
    OpBuilder::InsertionGuard guard(b);
    Block &block = reduce.getBody().front();
    block.clear();
    b.setInsertionPointToEnd(&block);
    Value place = reduce.getAxes()[0];
    IRMapping inside;
    for (Value row : rowsOf(chain))
      inside.map(row, at.lookup(row));
    inside.map(chain.column, column);
    inside.map(chain.sumAxis(), place);
    inside.map(chain.left, ReadOp::create(b, loc, left, {inTile(place)}).getResult());
    for (Operation &op : from.getBody().front().without_terminator())
      if (op.getNumResults() != 1 || op.getResult(0) != chain.left)
        b.clone(op, inside);
    YieldOp::create(b, loc, ValueRange(inside.lookupOrDefault(from.getReduced())));
    eraseUnusedOps(block);
    if (Attribute precision = from->getAttr(precisionAttrName))
      reduce->setAttr(precisionAttrName, precision);
    return reduce;
  }

  void emitResult(const RowChain &chain, Value acc) {
    overColumns(chain, [&](Value column) {
      IRMapping inside;
      for (Value row : rowsOf(chain))
        inside.map(row, at.lookup(row));
      inside.map(chain.column, column);
      inside.map(ReduceOp(chain.sum).getResult(),
                 ReadOp::create(b, loc, acc, {ValueExpr(column)}).getResult());
      for (Operation &op : ParallelOp(chain.product).getBody().front())
        if (&op != chain.sum)
          b.clone(op, inside);
    });
  }
};

/// A product whose left factor is made again.
struct Use {
  RowChain chain;
  std::optional<PartialSums> partial; ///< where the product is a part of a sum

  bool isIn(Operation *op) const {
    return ParallelOp(chain.product)->isAncestor(op) || (partial && partial->isInSum(op)) ||
           llvm::any_of(chain.inlined, [&](auto &entry) {
             return TempDefinition(entry.second).statement->isAncestor(op);
           });
  }
  bool sharesWith(const Use &other) const {
    return llvm::any_of(chain.inlined,
                        [&](auto &entry) { return other.chain.inlined.contains(entry.first); });
  }
  void drop() {
    if (partial)
      partial->drop();
  }
};

struct RecomputeProductsPass
    : Counted<tegula::impl::RecomputeProductsPassBase<RecomputeProductsPass>> {
  void runOnOperation() override {
    std::vector<Use> uses;
    for (ParallelOp statement : outermostStatements(getOperation()))
      if (statement->getParentOp() == getOperation())
        if (std::optional<Use> use = match(statement))
          uses.push_back(std::move(*use));
    SmallVector<Use *> left;
    for (Use &use : uses)
      left.push_back(&use);
    leaveStrangers(left);
    for (Use &use : uses)
      if (!llvm::is_contained(left, &use))
        use.drop();
    for (SmallVector<Use *> &group : sharing(left))
      if (group.size() < 2 || !recompute(group))
        for (Use *use : group)
          use->drop();
  }

  static std::optional<Use> match(ParallelOp statement) {
    if (Matched<RowChain> whole = matchRowChain(statement, /*shared=*/true);
        whole && isOfElements(*whole))
      return Use{std::move(*whole), std::nullopt};
    std::optional<PartialSums> partial = PartialSums::make(statement);
    if (!partial)
      return std::nullopt;
    if (Matched<RowChain> part = matchRowChain(partial->parts, /*shared=*/true);
        part && isOfElements(*part))
      return Use{std::move(*part), partial};
    partial->drop();
    return std::nullopt;
  }

  /// Whether all that the left factor is made of is known at a row and j alone.
  static bool isOfElements(RowChain &chain) {
    if (!chain.reductions.empty() || !chain.hasKnownRange() || chain.checked)
      return false;
    return llvm::all_of(
        chain.inlined, [&](auto &entry) { return chain.isElement(entry.second.write.getValue()); });
  }

  /// Whether the product's statement reads the value.
  static bool isFactor(Value tensor, const Use &use) {
    return llvm::any_of(tensor.getUsers(), [&](Operation *user) {
      return ParallelOp(use.chain.product)->isAncestor(user);
    });
  }

  /// A product whose factor something else reads is none of these; then others may be none. What
  /// factors are made of may be read by others, for which it stays.
  static void leaveStrangers(SmallVector<Use *> &left) {
    auto isKnown = [&](Operation *user) {
      return isa<WriteOp>(user) || llvm::any_of(left, [&](Use *use) { return use->isIn(user); });
    };
    while (true) {
      auto found = llvm::find_if(left, [&](Use *use) {
        return llvm::any_of(use->chain.inlined, [&](auto &entry) {
          return isFactor(entry.first, *use) && !llvm::all_of(entry.first.getUsers(), isKnown);
        });
      });
      if (found == left.end())
        return;
      left.erase(found);
    }
  }

  /// Sets of uses that share elements, each in program order.
  static std::vector<SmallVector<Use *>> sharing(ArrayRef<Use *> uses) {
    std::vector<SmallVector<Use *>> groups;
    for (Use *use : uses) {
      SmallVector<Use *> own;
      for (auto group = groups.begin(); group != groups.end();)
        if (llvm::any_of(*group, [&](Use *other) { return use->sharesWith(*other); })) {
          own.append(*group);
          group = groups.erase(group);
        } else {
          ++group;
        }
      own.push_back(use);
      groups.push_back(own);
    }
    for (SmallVector<Use *> &group : groups) // a use that joins two sets stands behind both
      llvm::sort(group, [](Use *a, Use *b) {
        return a->chain.product->isBeforeInBlock(b->chain.product);
      });
    return groups;
  }

  /// Whether both walk the same j for the same rows, their elements at the same places.
  static bool areAlike(const RowChain &one, const RowChain &other) {
    SmallVector<Value> rows = rowsOf(one), otherRows = rowsOf(other);
    if (rows.size() != otherRows.size() || !(one.range.lo == other.range.lo) ||
        !(one.range.hi == other.range.hi))
      return false;
    auto renamed = [&](const ValueExpr &expr) {
      return expr.substitute([&](Value used) -> std::optional<ValueExpr> {
        if (used == other.sumAxis())
          return ValueExpr(one.sumAxis());
        auto found = llvm::find(otherRows, used);
        return found == otherRows.end() ? std::nullopt
                                        : std::optional(ValueExpr(rows[found - otherRows.begin()]));
      });
    };
    for (auto [row, otherRow] : llvm::zip_equal(rows, otherRows))
      if (!(lowOf(row) == renamed(lowOf(otherRow))) || !(highOf(row) == renamed(highOf(otherRow))))
        return false;
    return llvm::all_of(other.place, [&](const auto &entry) {
      auto found = one.place.find(entry.first);
      return found == one.place.end() || found->second == renamed(entry.second);
    });
  }

  /// Whether the earlier product, and the sum of which it is a part, may stand where the later one
  /// does.
  static bool reaches(const Use &earlier, const Use &later) {
    Accesses own = accessesOf(earlier.chain.product);
    auto add = [&](Operation *op) {
      Accesses more = accessesOf(op);
      own.reads.insert(more.reads.begin(), more.reads.end());
      own.writes.insert(more.writes.begin(), more.writes.end());
    };
    Operation *whole =
        earlier.partial ? ParallelOp(earlier.partial->whole).getOperation() : nullptr;
    if (whole)
      add(whole);
    for (auto &[tensor, definition] : earlier.chain.inlined)
      add(TempDefinition(definition).statement);
    auto isInlined = [&](Value tensor) { return earlier.chain.inlined.contains(tensor); };
    for (Operation *op = ParallelOp(earlier.chain.product)->getNextNode();;
         op = op->getNextNode()) {
      Accesses between = accessesOf(op);
      auto meets = [&](const auto &some, const auto &others) {
        return llvm::any_of(
            some, [&](Value tensor) { return others.contains(tensor) && !isInlined(tensor); });
      };
      if (op != whole && (meets(own.writes, between.reads) || meets(own.writes, between.writes) ||
                          meets(between.writes, own.reads)))
        return false;
      if (op == later.chain.product)
        return true;
    }
  }

  static std::optional<Mismatch> whyNot(ParallelOp rows) {
    Matched<TileLoopPlan> plan = planTileLoop(rows);
    if (!plan)
      return plan.mismatch();
    Mismatch why;
    if (rankTileLoopShapes(*plan, &why).empty())
      return why;
    if (llvm::any_of(plan->products, [](const TileLoopProduct &one) { return one.addsTiles(); }))
      return Mismatch{"factors are not rounded to 16 bits, so that each would be two", "",
                      plan->op};
    return std::nullopt;
  }

  /// What making the values again in each loop takes, and what keeping them does, in microseconds.
  struct Times {
    double again = 0, kept = 0;
    unsigned products = 0, values = 0;
  };

  /// The sums of products for each point of a nest.
  static double operationsOf(ParallelOp nest, unsigned &products) {
    double operations = 0;
    for (ReduceOp reduce : nest.getBody().getOps<ReduceOp>()) {
      operations += 2.0 * knownPoints(cast<AxesOp>(reduce.getOperation())).value_or(0);
      ++products;
    }
    return operations;
  }

  static Operation *statementOf(Operation *op) {
    while (!isa<KernelOp>(op->getParentOp()))
      op = op->getParentOp();
    return op;
  }

  /// A value that products read is written once, and read by each statement that does.
  static Times timesOf(ArrayRef<Use *> users, ArrayRef<ParallelOp> loops) {
    Times times;
    double points = 1, bytes = 0, once = 0, inLoops = 0;
    unsigned made = 0;
    llvm::SetVector<Value> seen;
    for (Use *use : users)
      for (auto &[tensor, definition] : use->chain.inlined) {
        if (!seen.insert(tensor))
          continue;
        points = std::max<double>(points, knownPoints(axesOf(definition.statement)).value_or(1));
        once += operationsOf(definition.statement, made);
        llvm::SetVector<Operation *> readers;
        bool isFactor = false;
        for (Operation *user : Value(tensor).getUsers())
          if (isa<ReadOp>(user)) {
            Operation *reader = statementOf(user);
            if (llvm::any_of(users, [&](Use *one) { // its parts are counted
                  return one->partial && one->partial->whole == reader;
                }))
              continue;
            readers.insert(reader);
            isFactor |= llvm::any_of(users, [&](Use *one) { return one->chain.product == reader; });
          }
        if (!isFactor) // it is made where it is read
          continue;
        bytes += double(1 + readers.size()) * definition.elementType().getIntOrFloatBitWidth() / 8;
        ++times.values;
      }
    for (ParallelOp rows : loops)
      rows.walk([&](TilesOp tiles) {
        for (ParallelOp nest : tiles.getBody().getOps<ParallelOp>())
          if (!getAxisRange(axesOf(nest), 0).lo.asConstant()) // over the tile
            inLoops += operationsOf(nest, times.products);
      });
    times.products -= std::min(times.products, made);
    times.again = points * std::max(0.0, inLoops - once) / operationsOfMicrosecond;
    times.kept = points * bytes / bytesOfMicrosecond;
    return times;
  }

  /// Whether loops take the place of the statements.
  bool recompute(ArrayRef<Use *> users) {
    // Those over the same rows and columns are one loop where registers hold all of their sums.
    SmallVector<SmallVector<Use *>> loops;
    for (Use *use : users) {
      auto found = llvm::find_if(loops, [&](const SmallVector<Use *> &loop) {
        return areAlike(loop.front()->chain, use->chain) &&
               llvm::all_of(loop, [&](Use *other) { return reaches(*other, *use); });
      });
      if (found == loops.end())
        loops.push_back({use});
      else
        found->push_back(use);
    }
    SmallVector<ParallelOp> made;
    for (unsigned number = 0; number < loops.size(); ++number) {
      SmallVector<Use *> loop = loops[number];
      SmallVector<RowChain *> chains =
          llvm::map_to_vector(loop, [](Use *use) { return &use->chain; });
      ParallelOp rows = Builder(chains).run();
      std::optional<Mismatch> why = whyNot(rows);
      if (!why) {
        made.push_back(rows);
        continue;
      }
      rows.erase();
      if (loop.size() == 1) {
        for (ParallelOp other : made)
          other.erase();
        why->where = nullptr; // what the reason names is gone with the attempt
        remarkMismatch(chains.front()->product, "tile-loop", *why);
        return false;
      }
      loops[number] = {loop.front()};
      for (Use *use : ArrayRef(loop).drop_front())
        loops.push_back({use});
      --number;
    }
    Times times = timesOf(users, made);
    bool isFaster = times.again < times.kept;
    std::string why =
        llvm::formatv("{0} products made again take {1:f0} us, writing and reading {2} "
                      "values of rows and columns {3:f0} us",
                      times.products, times.again, times.values, times.kept)
            .str();
    for (ParallelOp rows : made)
      if (isFaster)
        remarkMismatch(rows, "values-in-memory", {why, "", rows});
    if (!isFaster) {
      for (ParallelOp rows : made)
        rows.erase();
      remarkMismatch(users.front()->chain.product, "recompute", {why, ""});
      return false;
    }
    for (auto [loop, rows] : llvm::zip_equal(loops, made)) {
      Operation *last = rows;
      for (Use *use : loop)
        if (use->partial) {
          use->partial->use();
          use->partial->whole->moveAfter(last);
          last = use->partial->whole;
        }
    }
    erase(users);
    count("products recomputed", made.size());
    return true;
  }

  static void erase(ArrayRef<Use *> users) {
    SmallVector<TempDefinition> definitions;
    llvm::SetVector<Value> tensors;
    for (Use *use : users) {
      for (auto &[tensor, definition] : use->chain.inlined)
        if (tensors.insert(tensor))
          definitions.push_back(definition);
      use->chain.product.erase();
    }
    // Each only reads those before it.
    llvm::sort(definitions, [](TempDefinition a, TempDefinition b) {
      return b.statement->isBeforeInBlock(a.statement);
    });
    for (TempDefinition definition : definitions) {
      if (llvm::any_of(definition.temp.getTensor().getUsers(),
                       [](Operation *user) { return isa<ReadOp>(user); }))
        continue;
      definition.statement.erase();
      definition.temp.erase();
    }
  }
};
} // namespace
