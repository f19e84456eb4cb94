//===- RotateBuffers.cpp - Buffers of a loop's states change names --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Matched.h"
#include "passes/analysis/WholeCopies.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ROTATEBUFFERSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Steps after which all buffers have their first names again: two for double buffers, three for a
/// state with the two before it; six where a loop has both.
static constexpr unsigned maxPeriod = 6;
/// Launches that all steps that are written out may have.
static constexpr int64_t maxLaunches = 48;

//===----------------------------------------------------------------------===//
// What steps hand on
//===----------------------------------------------------------------------===//

namespace {
/// Which buffer holds what a name of the loop's body stands for.
using Buffers = llvm::MapVector<Value, Value>;

/// The copies with which the steps of a loop hand their states on, and what each tensor's buffer is
/// called afterwards.
struct Handover {
  SmallVector<WholeCopy> copies;
  /// Accesses to a state behind its copy: they read what it was copied from.
  SmallVector<std::pair<ReadOp, Value>> lateReads;
  /// By name: the name that its buffer of the next step has in this step.
  Buffers origin;
  unsigned period = 1;

  Buffers atFirst() const {
    Buffers buffers;
    for (auto [name, from] : origin)
      buffers[name] = name;
    return buffers;
  }
  Buffers after(const Buffers &buffers) const {
    Buffers next;
    for (auto [name, from] : origin)
      next[name] = buffers.lookup(from);
    return next;
  }
};

/// Finds the copies that need not be made.
class Finder {
public:
  explicit Finder(ForOp loop) : loop(loop) {
    loop.walk<WalkOrder::PreOrder>([&](Operation *op) {
      positions[op] = positions.size();
      for (Value operand : op->getOperands())
        if (isa<TglTensorType>(operand.getType())) {
          users[operand].push_back(op);
          isKnown &= isa<ReadOp, WriteOp, SortOp>(op);
        }
    });
  }

  std::optional<Handover> run() {
    for (Operation &op : loop.getBody().front())
      isKnown &= isa<LaunchOp, ForOp, TempOp, YieldOp>(op) ||
                 (op.getNumRegions() == 0 && isMemoryEffectFree(&op));
    if (!isKnown || !loop.getInits().empty())
      return std::nullopt;
    for (LaunchOp launch : loop.getBody().front().getOps<LaunchOp>())
      launch.walk([&](WriteOp write) {
        std::optional<WholeCopy> copy = matchWholeCopy(write);
        if (copy && write->getParentOfType<LaunchOp>() == launch)
          found.copies.push_back(*copy);
      });
    // Each that stays a copy changes what others may rely on.
    auto isCopied = [&](WholeCopy &copy) { return !isHandedOn(copy); };
    for (auto *copy = llvm::find_if(found.copies, isCopied); copy != found.copies.end();
         copy = llvm::find_if(found.copies, isCopied))
      found.copies.erase(copy);
    if (found.copies.empty() || !findOrigins())
      return std::nullopt;
    for (WholeCopy &copy : found.copies)
      for (Operation *user : users[copy.to()])
        if (positions[user] > positions[copy.write])
          found.lateReads.push_back({cast<ReadOp>(user), copy.from()});
    return std::move(found);
  }

private:
  ForOp loop;
  Handover found;
  DenseMap<Operation *, unsigned> positions;
  DenseMap<Value, SmallVector<Operation *>> users; // in the loop
  bool isKnown = true;

  bool isOfLoop(Value tensor) {
    Operation *temp = tensor.getDefiningOp();
    return temp && loop->isAncestor(temp);
  }
  WholeCopy *copyTo(Value tensor) {
    auto *one = llvm::find_if(found.copies, [&](WholeCopy &copy) { return copy.to() == tensor; });
    return one == found.copies.end() ? nullptr : one;
  }

  /// Whether the next step may find the state in the buffer that it is copied from: nothing changes
  /// one or the other behind the copy, and that buffer's own elements are copied further, or are
  /// those of a temporary of the step.
  bool isHandedOn(WholeCopy &copy) {
    Value to = copy.to(), from = copy.from();
    if (isOfLoop(to))
      return false;
    for (Operation *user : users[to])
      if (user != copy.write && positions[user] > positions[copy.write] && !isa<ReadOp>(user))
        return false;
    WholeCopy *further = copyTo(from);
    if (further && positions[further->write] < positions[copy.read])
      return false; // it is what that one copied
    for (Operation *user : users[from])
      if (!isa<ReadOp>(user) && positions[user] > positions[copy.read] &&
          !(further && user == further->write))
        return false;
    // A buffer becomes that of one state.
    for (WholeCopy &other : found.copies)
      if (&other != &copy && (other.to() == to || (other.from() == from && &other < &copy)))
        return false;
    return further || (isOfLoop(from) && from.getDefiningOp()->getParentOp() == loop);
  }

  bool findOrigins() {
    DenseMap<Value, Value> target;
    for (WholeCopy &copy : found.copies) {
      found.origin[copy.to()] = copy.from();
      target[copy.from()] = copy.to();
    }
    for (WholeCopy &copy : found.copies) {
      if (found.origin.count(copy.from()))
        continue;
      // A temporary of the step gets the buffer of the state that is not handed on.
      Value last = copy.from();
      while (Value next = target.lookup(last))
        last = next;
      found.origin[copy.from()] = last;
    }
    Buffers first = found.atFirst(), now = found.after(first);
    auto isHome = [&](const auto &entry) { return entry.first == entry.second; };
    for (; !llvm::all_of(now, isHome); now = found.after(now))
      if (++found.period > maxPeriod)
        return false;
    return true;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Steps with other names
//===----------------------------------------------------------------------===//

namespace {
/// Writes out the steps of a loop.
class Rotation {
public:
  Rotation(ForOp loop, Handover &handover)
      : loop(loop), handover(handover), builder(loop), buffers(handover.atFirst()) {}

  /// False, and nothing changes, where no step would be without copies. `early`: a state's first
  /// elements are another tensor's.
  bool run(bool early);

private:
  ForOp loop; ///< in the end its body is a step without the copies
  Handover &handover;
  OpBuilder builder;
  Buffers buffers;

  bool isTop() { return isa<KernelOp>(loop->getParentOp()); }
  unsigned period() const { return handover.period; }

  /// The loop variable of a step, counted from 0 in the order in which they run.
  ValueExpr atStep(const ValueExpr &number) {
    return loop.getReverse() ? loop.getHighExpr() - ValueExpr(int64_t(1)) - number
                             : loop.getLowExpr() + number;
  }

  /// One step at the builder's place; the next one has other buffers.
  void addStep(const ValueExpr &number) {
    IRMapping map;
    for (auto [name, buffer] : buffers)
      map.map(name, buffer);
    auto step = cast<ForOp>(builder.clone(*loop, map));
    OpBuilder other(step);
    replaceAllUsesWithExpr(other, step.getLoopVar(), atStep(number));
    Block &body = step.getBody().front();
    step->getBlock()->getOperations().splice(step->getIterator(), body.getOperations(),
                                             body.begin(), std::prev(body.end()));
    step->erase();
    buffers = handover.after(buffers);
  }

  void addSteps(int64_t first, int64_t count) {
    for (int64_t number = 0; number < count; ++number)
      addStep(first + number);
  }

  /// A loop of so many periods.
  void addPeriods(const ValueExpr &first, const ValueExpr &count) {
    std::string name = "step";
    if (std::optional<ArrayAttr> names = loop.getNames(); names && !names->empty())
      name = cast<StringAttr>((*names)[0]).str();
    auto periods =
        ForOp::create(builder, loop.getLoc(), ArrayRef<StringRef>{name}, int64_t(0), count);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&periods.getBody().front());
    builder.setInsertionPoint(YieldOp::create(builder, loop.getLoc()));
    for (unsigned step = 0; step < period(); ++step)
      addStep(first + ValueExpr(periods.getLoopVar()) * ValueExpr(int64_t(period())) +
              ValueExpr(int64_t(step)));
  }

  /// The steps from `first` on as they were, with their copies.
  void keepRest(ForOp rest, const ValueExpr &first) {
    ValueExpr low = loop.getReverse() ? loop.getLowExpr() : atStep(first);
    ValueExpr high = loop.getReverse() ? loop.getHighExpr() - first : loop.getHighExpr();
    IndexOperands operands;
    IndexExpr lowExpr = operands.add(low), highExpr = operands.add(high);
    rest.setLowAttr(IndexExprAttr::get(rest.getContext(), lowExpr));
    rest.setHighAttr(IndexExprAttr::get(rest.getContext(), highExpr));
    rest.getIndicesMutable().assign(operands.values());
  }

  /// What follows the loop finds each state in the buffer that the last step has left it in.
  void renameBehind() {
    SmallVector<std::pair<OpOperand *, Value>> uses;
    for (auto [name, buffer] : buffers)
      for (OpOperand &use : name.getUses())
        if (Operation *op = loop->getBlock()->findAncestorOpInBlock(*use.getOwner());
            op && loop->isBeforeInBlock(op))
          uses.push_back({&use, buffer});
    for (auto [use, buffer] : uses)
      use->set(buffer);
  }
};
} // namespace

bool Rotation::run(bool early) {
  std::optional<int64_t> steps = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
  int64_t length = period();
  bool canRename = isTop() && steps && llvm::all_of(handover.origin, [](const auto &entry) {
                     return entry.first.template getDefiningOp<TempOp>() != nullptr;
                   });
  if (steps && (*steps <= 0 || (!canRename && *steps < length)))
    return false;
  // The first period is written out where its steps read first elements elsewhere.
  auto launches = loop.getBody().front().getOps<LaunchOp>();
  int64_t numLaunches = std::distance(launches.begin(), launches.end());
  bool keepsRest = !steps || (!canRename && *steps % length);
  int64_t rest = keepsRest ? 1 : *steps % length; // a loop counts as a step
  int64_t head = steps && isTop() && early && *steps >= length &&
                         (2 * length + rest) * numLaunches <= maxLaunches
                     ? length
                     : 0;
  int64_t rounds = steps ? (*steps - head) / length : 0;
  if ((head + (rounds || !steps ? length : 0) + rest) * numLaunches > maxLaunches)
    return false;

  // Temporaries of a step keep their memory, one for all steps.
  for (TempOp temp : llvm::to_vector(loop.getBody().front().getOps<TempOp>()))
    temp->moveBefore(loop);
  auto asItWas = cast<ForOp>(loop->clone());
  for (auto [read, from] : handover.lateReads)
    read.getTensorMutable().assign(from);
  for (WholeCopy &copy : handover.copies)
    eraseWrite(copy.write);

  if (steps) {
    addSteps(0, head);
    if (rounds == 1)
      addSteps(head, length);
    else if (rounds)
      addPeriods(head, rounds);
    if (!keepsRest)
      addSteps(head + rounds * length, rest);
  } else {
    ValueExpr count = ValueExpr::max(loop.getHighExpr() - loop.getLowExpr(), int64_t(0));
    addPeriods(int64_t(0), ValueExpr::floorDiv(count, length));
  }
  if (keepsRest) {
    ValueExpr count = ValueExpr::max(loop.getHighExpr() - loop.getLowExpr(), int64_t(0));
    keepRest(asItWas, ValueExpr::floorDiv(count, length) * ValueExpr(length));
    builder.insert(asItWas);
  } else {
    asItWas->destroy();
    renameBehind();
  }
  loop->erase();
  return true;
}

namespace {
struct RotateBuffersPass : Counted<tegula::impl::RotateBuffersPassBase<RotateBuffersPass>> {
  using Counted::Counted;

  void runOnOperation() override { visit(getOperation().getBody().front()); }

  void visit(Block &block) {
    for (ForOp loop : llvm::to_vector(block.getOps<ForOp>())) {
      visit(loop.getBody().front());
      if (std::optional<Handover> handover = Finder(loop).run())
        rotate(loop, *handover);
    }
  }

  /// Copies in launches of the kernel's own block that fill or take one of the tensors.
  SmallVector<WholeCopy> copiesOf(const SetVector<Value> &tensors, bool fill) {
    SmallVector<WholeCopy> found;
    for (LaunchOp launch : getOperation().getBody().front().getOps<LaunchOp>())
      launch.walk([&](WriteOp write) {
        std::optional<WholeCopy> copy = matchWholeCopy(write);
        if (copy && tensors.contains(fill ? copy->to() : copy->from()))
          found.push_back(*copy);
      });
    return found;
  }

  void rotate(ForOp loop, Handover &handover) {
    SetVector<Value> tensors;
    for (auto [name, from] : handover.origin)
      tensors.insert(name);
    unsigned copies = handover.copies.size();
    bool isTop = isa<KernelOp>(loop->getParentOp());
    bool early = isTop && llvm::any_of(copiesOf(tensors, /*fill=*/true), [&](WholeCopy &copy) {
                   return copy.write->getParentOfType<LaunchOp>()->isBeforeInBlock(loop);
                 });
    if (!Rotation(loop, handover).run(early))
      return;
    count("loops whose buffers change names");
    count("copies of states left out", copies);
    if (!isTop)
      return;
    for (WholeCopy &copy : copiesOf(tensors, /*fill=*/true))
      count("first elements read where they are", forwardCopy(copy));
    for (WholeCopy &copy : copiesOf(tensors, /*fill=*/false))
      count("results that are buffers", storeInPlace(copy));
  }
};
} // namespace
