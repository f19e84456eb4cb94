//===- SplitScans.cpp - Long scans of few rows in three steps -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Nest.h"
#include "passes/Passes.h"
#include "passes/PrefixLoop.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITSCANSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// A loop that is cut into `parts` pieces of `length` steps, the last of them perhaps shorter.
struct Cut {
  int64_t steps, parts, length;
  bool rows; ///< steps are neighbours in memory, not points
};

/// What of its statement a loop needs: ops that are done again, and values that are kept in temporaries.
struct Needs {
  SetVector<Operation *> again;
  SetVector<Value> kept;
};

/// The three statements that a loop becomes, all over the axes of the loop's.
class Splitter {
public:
  Splitter(ParallelOp statement, const PrefixLoop &prefix, const Cut &cut, const Needs &needs)
      : statement(statement), axes(cast<AxesOp>(statement.getOperation())), prefix(prefix), loop(prefix.loop), cut(cut),
        needs(needs), outside(statement) {}

  void run() {
    for (Value value : needs.kept) {
      OpBuilder before(loop);
      Value temp = makeTemp(value.getType(), "kept", false);
      WriteOp::create(before, loop.getLoc(), value, temp, placeOf(IRMapping()));
      keptIn[value] = temp;
    }
    Type type = loop.getInits()[0].getType();
    totals = makeTemp(type, "part", true);
    before = makeTemp(type, "before", true);
    outside.setInsertionPointAfter(statement);
    addTotals();
    scanTotals();
    scanPieces();
    loop.erase();
  }

private:
  Value makeTemp(Type type, StringRef name, bool ofPieces) {
    MLIRContext *context = statement.getContext();
    SmallVector<IndexExprAttr> dims;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      dims.push_back(IndexExprAttr::get(context, *knownPoints(axes, axis)));
    if (ofPieces)
      dims.insert(cut.rows ? dims.end() : dims.begin(), IndexExprAttr::get(context, cut.parts));
    OpBuilder builder(statement);
    return TempOp::create(builder, loop.getLoc(), TglTensorType::get(context, dims, type), name).getTensor();
  }

  /// Where a point's value is kept, or its piece's.
  SmallVector<ValueExpr> placeOf(const IRMapping &map, Value piece = nullptr) {
    SmallVector<ValueExpr> place;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      place.push_back(ValueExpr(map.lookupOrDefault(axes.getAxes()[axis])) - getAxisRange(axes, axis).lo);
    if (piece)
      place.insert(cut.rows ? place.end() : place.begin(), ValueExpr(piece));
    return place;
  }

  /// A statement over the axes, with an axis of pieces where `piece` asks for one; what the loop needs is in `map`.
  /// Where steps are neighbours pieces vary fastest, else points do.
  OpBuilder open(IRMapping &map, Value *piece) {
    SmallVector<Value> all(axes.getAxes().begin(), axes.getAxes().end());
    ParallelOp made = copyAxes(outside, loop.getLoc(), all, map);
    if (piece)
      *piece = insertAxis(cast<AxesOp>(made.getOperation()), cut.rows ? all.size() : 0,
                          AxisSpec{"part", ValueExpr(int64_t(0)), ValueExpr(cut.parts)});
    OpBuilder inside = OpBuilder::atBlockEnd(&made.getBody().front());
    for (Value value : needs.kept)
      map.map(value, ReadOp::create(inside, loop.getLoc(), keptIn[value], placeOf(map)).getResult());
    for (Operation &op : statement.getBody().front())
      if (needs.again.contains(&op))
        inside.clone(op, map);
    return inside;
  }

  /// The steps of a piece.
  std::pair<ValueExpr, ValueExpr> rangeOf(Value piece, const IRMapping &map) {
    auto inMap = [&](Value value) -> std::optional<ValueExpr> { return ValueExpr(map.lookupOrDefault(value)); };
    ValueExpr low = loop.getLowExpr().substitute(inMap) + ValueExpr(piece) * ValueExpr(cut.length);
    ValueExpr high = low + ValueExpr(cut.length);
    if (cut.steps % cut.length)
      high = ValueExpr::min(high, loop.getHighExpr().substitute(inMap));
    return {low, high};
  }

  StringRef stepName() {
    std::optional<ArrayAttr> names = loop.getNames();
    return names && !names->empty() ? cast<StringAttr>((*names)[0]).getValue() : StringRef();
  }

  static void endWith(Block &block, Location loc, Value value) {
    if (!block.empty() && isa<YieldOp>(block.back()))
      block.back().erase();
    OpBuilder end = OpBuilder::atBlockEnd(&block);
    YieldOp::create(end, loc, SmallVector<Value>{value});
  }

  ReduceKind kind() const {
    if (isa<arith::AddFOp, arith::AddIOp>(prefix.combine))
      return ReduceKind::Sum;
    if (isa<arith::MulFOp, arith::MulIOp>(prefix.combine))
      return ReduceKind::Prod;
    return isa<arith::MaximumFOp, arith::MaxSIOp>(prefix.combine) ? ReduceKind::Max : ReduceKind::Min;
  }

  /// part[p, c] = the reduction of the c-th piece
  void addTotals() {
    Location loc = loop.getLoc();
    IRMapping map;
    Value piece;
    OpBuilder inside = open(map, &piece);
    auto [low, high] = rangeOf(piece, map);
    auto total = ReduceOp::create(inside, loc, prefix.added.getType(), kind(), {AxisSpec{stepName().str(), low, high}});
    Block &body = total.getBody().front();
    OpBuilder terms = OpBuilder::atBlockBegin(&body);
    map.map(loop.getLoopVar(), total.getAxes()[0]);
    for (Operation *op : prefix.before)
      terms.clone(*op, map);
    endWith(body, loc, map.lookupOrDefault(prefix.added));
    WriteOp::create(inside, loc, total.getResult(), totals, placeOf(map, piece));
    eraseUnusedOps(*inside.getInsertionBlock());
  }

  /// before[p, c] = the total before the c-th piece: a scan of the totals, in their order
  void scanTotals() {
    Location loc = loop.getLoc();
    IRMapping map;
    OpBuilder inside = open(map, nullptr);
    auto scan = ForOp::create(inside, loc, ArrayRef<StringRef>{"part"}, ValueExpr(int64_t(0)), ValueExpr(cut.parts),
                              ValueRange(map.lookupOrDefault(loop.getInits()[0])), loop.getReverse());
    Block &body = scan.getBody().front();
    OpBuilder step = OpBuilder::atBlockBegin(&body);
    SmallVector<ValueExpr> place = placeOf(map, scan.getLoopVar());
    map.map(loop.getIterArgs()[0], scan.getIterArgs()[0]);
    map.map(prefix.added, ReadOp::create(step, loc, totals, place).getResult());
    WriteOp::create(step, loc, scan.getIterArgs()[0], before, place);
    Value next = step.clone(*prefix.combine, map)->getResult(0);
    endWith(body, loc, next);
    eraseUnusedOps(*inside.getInsertionBlock());
  }

  /// The loop itself, of a piece, from the total before it.
  void scanPieces() {
    Location loc = loop.getLoc();
    IRMapping map;
    Value piece;
    OpBuilder inside = open(map, &piece);
    auto [low, high] = rangeOf(piece, map);
    Value start = ReadOp::create(inside, loc, before, placeOf(map, piece));
    auto scan = ForOp::create(inside, loc, ArrayRef<StringRef>{stepName()}, low, high, ValueRange(start),
                              loop.getReverse());
    Block &body = scan.getBody().front();
    if (!body.empty() && isa<YieldOp>(body.back()))
      body.back().erase();
    map.map(loop.getLoopVar(), scan.getLoopVar());
    map.map(loop.getIterArgs()[0], scan.getIterArgs()[0]);
    OpBuilder steps = OpBuilder::atBlockEnd(&body);
    for (Operation &op : loop.getBody().front())
      steps.clone(op, map);
    eraseUnusedOps(*inside.getInsertionBlock());
  }

  ParallelOp statement;
  AxesOp axes;
  const PrefixLoop &prefix;
  ForOp loop;
  const Cut &cut;
  const Needs &needs;
  llvm::DenseMap<Value, Value> keptIn;
  Value totals, before;
  OpBuilder outside; ///< where the statements go
};

struct SplitScansPass : Counted<tegula::impl::SplitScansPassBase<SplitScansPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation())) {
      SmallVector<ForOp> loops(statement.getBody().getOps<ForOp>());
      // Later ones first: what a loop becomes stands right after its statement.
      for (ForOp loop : llvm::reverse(loops))
        if (split(statement, loop))
          count("scans split");
      Block &block = statement.getBody().front();
      eraseUnusedOps(block);
      if (!loops.empty() && block.empty())
        statement.erase();
    }
  }

  bool split(ParallelOp statement, ForOp loop) {
    std::optional<PrefixLoop> prefix = matchPrefixLoop(loop);
    if (!prefix || !loop.getResults()[0].use_empty())
      return false;
    std::optional<Cut> cut = chooseCut(statement, loop);
    std::optional<Needs> needs = cut ? needsOf(statement, loop) : std::nullopt;
    if (!needs)
      return false;
    Splitter(statement, *prefix, *cut, *needs).run();
    return true;
  }

  /// Threads of a team that takes a row; steps of the shortest piece, of a row and of a column; pieces of a row, whose
  /// totals one team scans; fewer are not worth reading everything twice.
  static constexpr int64_t teamThreads = 256, shortestOfRow = 2048, shortestOfColumn = 32, mostParts = 4096,
                           fewestParts = 8;
  /// Pieces for each thread that has room.
  static constexpr int64_t waves = 4;

  std::optional<Cut> chooseCut(ParallelOp statement, ForOp loop) {
    std::optional<int64_t> points = knownPoints(cast<AxesOp>(statement.getOperation()));
    std::optional<int64_t> steps = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
    if (!points || !steps || *points <= 0 || *steps <= 0)
      return std::nullopt;
    bool rows = runsAlongSteps(loop);
    int64_t busy;
    if (llvm::MulOverflow(*points, rows ? teamThreads : 1, busy) || busy >= threads)
      return std::nullopt;
    int64_t wanted = std::min({int64_t(llvm::divideCeil(waves * threads, busy)),
                               *steps / (rows ? shortestOfRow : shortestOfColumn), mostParts});
    if (wanted < fewestParts)
      return std::nullopt;
    int64_t length = pieceLength(*steps, wanted);
    return Cut{*steps, int64_t(llvm::divideCeil(*steps, length)), length, rows};
  }

  /// Whether neighbouring steps touch memory side by side, in most accesses.
  static bool runsAlongSteps(ForOp loop) {
    int near = 0;
    auto visit = [&](TglTensorType type, ArrayRef<ValueExpr> subscripts) {
      std::optional<int64_t> stride = strideAlong(type, subscripts, loop.getLoopVar());
      near += !stride || *stride == 0 ? 0 : *stride == 1 ? 1 : -1;
    };
    loop.getBody().walk([&](ReadOp read) { visit(read.getTensorType(), read.getSubscriptExprs()); });
    loop.getBody().walk([&](WriteOp write) { visit(write.getTensorType(), write.getSubscriptExprs()); });
    return near > 0;
  }

  /// Nothing where the loop cannot run after its statement.
  static std::optional<Needs> needsOf(ParallelOp statement, ForOp loop) {
    Accesses own = accessesOf(loop), all = accessesOf(statement);
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
      Accesses its = accessesOf(op);
      auto meets = [](const auto &some, const auto &others) {
        return llvm::any_of(some, [&](Value tensor) { return others.contains(tensor); });
      };
      if (meets(its.writes, own.reads) || meets(its.writes, own.writes) || meets(its.reads, own.writes))
        return std::nullopt;
    }
    Needs needs;
    Block &block = statement.getBody().front();
    SmallVector<Operation *> work{loop};
    while (!work.empty())
      for (Value value : valuesUsedBy(work.pop_back_val())) {
        Operation *definition = value.getDefiningOp();
        if (!definition || definition->getBlock() != &block || needs.kept.contains(value))
          continue;
        if (isa<TempOp>(definition))
          return std::nullopt; // a point's own
        auto read = dyn_cast<ReadOp>(definition);
        bool isCheap = !definition->getNumRegions() && (!read || !all.writes.contains(read.getTensor()));
        if (!isCheap && !value.getType().isIntOrFloat())
          return std::nullopt;
        if (!isCheap)
          needs.kept.insert(value);
        else if (needs.again.insert(definition))
          work.push_back(definition);
      }
    return needs;
  }
};
} // namespace
