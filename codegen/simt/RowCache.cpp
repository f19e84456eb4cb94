//===- RowCache.cpp - Rows cached in shared memory ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A statement such as `m = max x[i, j]; s = sum exp(x[i, j] - m); parallel (j) { ...x[i, j]... }`
// walks the same row in several nests. Short rows stay in registers (DeviceEmitter::distribute);
// longer ones here: the first nest that reads an element puts it, in its storage type, into the
// dynamic shared memory of the block, the later ones take it from there. A thread does the same
// elements in each nest, so slots are its own and nobody waits.
//
// A row that is too long for a block is shared by the blocks of a cluster (CUDA C++ Programming
// Guide, "Thread Block Clusters"): vectors of the row are dealt out to all of their threads, and
// results of the blocks come together in each other's shared memory.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/RowCache.h"

#include "codegen/async/Async.h"
#include "codegen/common/AccessShape.h"
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/RegisterTiles.h"
#include "strategies/ScheduleBlock.h"
#include "target/DeviceFacts.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

RowCache::RowCache(DeviceEmitter &e) : e(e), b(e.b) {}

/// What the function's own objects and the hardware need of a block's shared memory.
static constexpr unsigned otherSharedBytes = 4096;

//===----------------------------------------------------------------------===//
// Which reads
//===----------------------------------------------------------------------===//

/// The walk over its row that each nest is part of, from 1 on: reductions that are walked together
/// read their row once in any case.
static SmallVector<unsigned>
numberWalks(MutableArrayRef<tgl::AxesOp> nests,
            function_ref<SmallVector<tgl::ReduceOp>(tgl::ReduceOp)> takeTogether) {
  SmallVector<unsigned> walks(nests.size(), 0);
  unsigned numWalks = 0;
  for (auto [index, nest] : enumerate(nests)) {
    if (walks[index])
      continue;
    walks[index] = ++numWalks;
    if (auto reduce = dyn_cast<tgl::ReduceOp>(nest.getOperation()))
      for (tgl::ReduceOp other : takeTogether(reduce))
        if (auto *found = find(nests, cast<tgl::AxesOp>(other.getOperation()));
            found != nests.end())
          walks[found - nests.begin()] = walks[index];
  }
  return walks;
}

/// Reads of the same elements, and the nest of each.
using ReadGroup = std::pair<SmallVector<tgl::ReadOp>, SmallVector<unsigned>>;

/// The reads of the nests that a row may keep: of what nobody writes, element by element along the
/// lanes.
static std::vector<ReadGroup> groupReads(tgl::ParallelOp op, MutableArrayRef<tgl::AxesOp> nests,
                                         const std::optional<LaneChoice> &lane) {
  tgl::Accesses accesses = tgl::accessesOf(op);
  std::vector<ReadGroup> groups;
  for (auto [index, nest] : enumerate(nests))
    for (mlir::Operation &nested : *nest.getAxesBlock()) {
      auto read = dyn_cast<tgl::ReadOp>(nested);
      if (!read || read.getFill() || read.getGuard() || read.getChecked() ||
          !read.getExactExprs().empty() || accesses.writes.contains(read.getTensor()) ||
          read.getTensorType().getElementType().isInteger(4))
        continue;
      std::optional<int64_t> step = 1;
      if (lane)
        step = stepAlong(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()),
                         nest.getAxes()[lane->axis], [](mlir::Value) { return false; });
      if (step != 1)
        continue;
      auto same = find_if(groups, [&](auto &group) {
        return isSameElement(group.first.front(), nests[group.second.front()], read, nest);
      });
      if (same == groups.end())
        groups.push_back({{read}, {unsigned(index)}});
      else
        same->first.push_back(read), same->second.push_back(index);
    }
  return groups;
}

/// Rounds whose loads are under way, of the `most` that registers have room for; `whole`: the
/// rounds of a row that all threads have.
static unsigned chooseRoundsAhead(int64_t most, bool copies, int64_t whole) {
  constexpr int64_t maxAhead = 8,
                    ofShared = 2; // loads from memory; from shared memory, which is near
  unsigned ahead = std::clamp<int64_t>(most, 1, copies ? ofShared : maxAhead);
  for (unsigned fewer = ahead; fewer > ahead / 2; --fewer)
    if (whole % fewer == 0) // none is left to be loaded alone
      return fewer;
  return ahead;
}

void RowCache::plan(tgl::ParallelOp op, ArrayRef<unsigned> outer, DeviceShape &wanted) {
  row = Row();
  wanted.cluster = 1;
  wanted.sharedBytes = 0;
  if (!e.options.target.sharedBytes || e.options.checked || e.shape.byThread() ||
      e.shape.team != e.shape.threads || teamOf(op))
    return;
  SmallVector<tgl::AxesOp> nests;
  bool others = false; // anything that is not done by all threads alike, or dealt out as the row is
  for (mlir::Operation &nested : op.getBody().front()) {
    auto nest = dyn_cast<tgl::AxesOp>(nested);
    auto parallel = dyn_cast<tgl::ParallelOp>(nested);
    bool isDistributed = isa<tgl::ReduceOp>(nested) ||
                         (parallel && !runsSerially(parallel) && !dealsToParts(parallel));
    if (nest && isDistributed && hasRowShape(nest) && !e.isEmpty(&nested) &&
        (nests.empty() || isSameRow(e, nests.front(), nest)))
      nests.push_back(nest);
    else
      others |= nested.getNumRegions() || isa<tgl::TempOp, tgl::SortOp>(nested);
  }
  if (nests.size() < 2)
    return;
  std::optional<LaneChoice> lane = e.chooseLanes(nests.front());
  bool canCopy = e.options.prefetchesRows && outer.size() == op.getAxes().size();
  if (!lane && canCopy)
    lane = planShift(op, nests);
  unsigned width = lane ? lane->width : 1;
  row.terms = *tgl::knownPoints(nests.front());
  int64_t vectors = divideCeil(row.terms + (row.isShifted ? width - 1 : 0), int64_t(width));
  std::optional<int64_t> asked =
      settingOf(scheduleSettings(op->getParentOfType<tgl::KernelOp>()), "cluster");
  if (vectors <= e.maxRounds * int64_t(e.shape.team) &&
      asked.value_or(1) == 1) { // these stay in registers
    row = Row();
    if (asked)
      row.answer = {true, ""};
    return;
  }

  SmallVector<unsigned> walks =
      numberWalks(nests, [&](tgl::ReduceOp first) { return e.takeTogether(first); });
  std::vector<ReadGroup> groups = groupReads(op, nests, lane);
  unsigned bytes = 0; // of a vector of all that is kept
  for (auto &[reads, where] : groups) {
    if (all_of(where, [&](unsigned nest) { return walks[nest] == walks[where.front()]; }))
      continue;
    Type *raw = e.storageType(reads.front().getTensorType().getElementType());
    unsigned each = width * raw->getScalarSizeInBits() / 8;
    unsigned lastWalk = 0;
    for (auto [read, nest] : zip_equal(reads, where)) {
      row.slotOf[read] = {row.bytes.size(), nest == where.front()};
      row.nests.insert(nests[nest]);
      lastWalk = std::max(lastWalk, walks[nest]);
    }
    DenseSet<mlir::Operation *> last;
    for (unsigned nest : where)
      if (walks[nest] == lastWalk)
        last.insert(nests[nest]);
    row.lastNests.push_back(std::move(last));
    row.sources.push_back({reads.front(), nests[where.front()]});
    row.bytes.push_back(each);
    bytes += each;
  }
  if (!bytes) {
    row = Row();
    return;
  }

  // As few blocks as hold the row, better so that a multiprocessor has room for two: one loads, the
  // other stores.
  int64_t most = e.options.target.sharedBytes - otherSharedBytes;
  op.getBody().walk([&](tgl::TempOp) { others = true; });
  bool canShare = !others && nests.size() == row.nests.size() && e.exchanged.empty();
  auto bytesWith = [&](unsigned blocks) {
    return int64_t(divideCeil(vectors, int64_t(e.shape.team) * blocks)) * e.shape.team * bytes;
  };
  unsigned blocks = 1, largest = canShare ? e.options.target.clusterBlocks : 1;
  while (blocks < largest && bytesWith(blocks) > most / 2)
    blocks *= 2;
  if (bytesWith(blocks) > most) {
    row = Row();
    if (asked)
      row.answer = {*asked == 1,
                    "one block, which reads the row again: " + std::to_string(bytesWith(blocks)) +
                        " bytes in each of " + std::to_string(blocks) + " do not fit the " +
                        std::to_string(most) + " that a block has"};
    return;
  }
  while (blocks > 1 && bytesWith(blocks) > most / 2 && bytesWith(blocks / 2) <= most)
    blocks /= 2; // that room is not there in any case
  if (asked) {
    blocks = blocksAsked(*asked, largest, most, vectors, bytesWith);
    if (vectors <= e.maxRounds * int64_t(e.shape.team) && blocks == 1) {
      row.answer = std::exchange(row, Row()).answer;
      return;
    }
  }
  planRowValues(nests, walks);
  row.copies = canCopy && (row.isShifted || canPrefetchRows(op, lane));
  row.lane = lane;
  row.vectors = vectors;
  wanted.cluster = e.shape.cluster = blocks;
  row.rounds = divideCeil(vectors, rowDistribution().each());
  row.ahead = chooseRoundsAhead(e.bytesAtOnce / e.shape.threads / bytes, row.copies,
                                wholeRounds().second - wholeRounds().first);
  // Registers for all blocks that a multiprocessor's shared memory has room for.
  unsigned resident = std::min<int64_t>(most / bytesWith(blocks),
                                        device::threadsPerMultiprocessor / e.shape.threads);
  if (row.copies && resident > 1)
    e.function->addFnAttr("nvvm.minctasm", std::to_string(resident));
  wanted.sharedBytes = bytesWith(blocks);
  Value *base = e.dynamicShared();
  for (unsigned each : row.bytes) {
    row.bases.push_back(base);
    base = b.CreateInBoundsGEP(b.getInt8Ty(), base, e.i64(row.rounds * e.shape.team * each));
  }
}

/// Of a cluster: so many as the program asks for, or the nearest that hold the row.
unsigned RowCache::blocksAsked(int64_t asked, unsigned largest, int64_t most, int64_t vectors,
                               function_ref<int64_t(unsigned)> bytesWith) {
  while (largest > 1 &&
         vectors < int64_t(e.shape.team) * largest) // each thread has something of the row
    largest /= 2;
  unsigned nearest = largest;
  auto far = [&](unsigned blocks) { return std::abs(std::log2(double(blocks) / double(asked))); };
  for (unsigned blocks = 1; blocks <= largest; blocks *= 2) // results come together by halves
    if (bytesWith(blocks) <= most && far(blocks) < far(nearest))
      nearest = blocks;
  std::string why = std::to_string(nearest) + (nearest > 1 ? " blocks" : " block") +
                    ": a row takes " + std::to_string(bytesWith(nearest)) +
                    " bytes of shared memory " + (nearest > 1 ? "in each, of " : ", of ") +
                    std::to_string(most);
  if (largest == 1 && e.options.target.clusterBlocks > 1)
    why += "; what else the statement does is not shared by blocks";
  else
    why += "; clusters for rows of " + std::to_string(vectors) +
           " vectors are of powers of two up to " + std::to_string(largest) + " blocks of " +
           std::to_string(e.shape.team) + " threads";
  row.answer = {int64_t(nearest) == asked, why};
  return nearest;
}

std::optional<RowLayout> RowCache::layout(StringRef name) const {
  if (!row.vectors)
    return std::nullopt;
  RowLayout layout{name.str(), {e.shape.team, e.shape.cluster}, row.vectors, row.rounds, {}};
  int64_t offset = 0;
  for (auto [slot, bytes] : enumerate(row.bytes)) {
    auto read = find_if(row.slotOf,
                        [&, slot = slot](const auto &entry) { return entry.second.first == slot; });
    layout.slots.push_back({sourceName(cast<tgl::ReadOp>(read->first).getTensor()), bytes, offset});
    offset += row.rounds * e.shape.team * bytes;
  }
  return layout;
}

/// Whether values of two nests, each at a point of its own, are the same where the points are.
bool RowCache::isSameInRow(mlir::Value first, tgl::AxesOp firstNest, mlir::Value second,
                           tgl::AxesOp secondNest) {
  if (first == second)
    return true;
  mlir::Operation *one = first.getDefiningOp(), *other = second.getDefiningOp();
  if (!one || !other || one->getBlock() != firstNest.getAxesBlock() ||
      other->getBlock() != secondNest.getAxesBlock())
    return false;
  if (auto found = row.slotOf.find(one); found != row.slotOf.end()) {
    auto again = row.slotOf.find(other);
    return again != row.slotOf.end() && again->second.first == found->second.first;
  }
  return one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() && !one->getNumRegions() &&
         mlir::isMemoryEffectFree(one) && one->getNumOperands() > 0 && one->getNumResults() == 1 &&
         one->getNumOperands() == other->getNumOperands() &&
         all_of_zip(one->getOperands(), other->getOperands(),
                    [&](mlir::Value left, mlir::Value right) {
                      return isSameInRow(left, firstNest, right, secondNest);
                    });
}

/// Where a nest computes an elementary function of an element, and the last one computes it again
/// and has no other use for the element, it takes the element's place: exp of softmax is computed
/// once. Elements as wide as values alone, which lose nothing.
void RowCache::planRowValues(ArrayRef<tgl::AxesOp> nests, ArrayRef<unsigned> walks) {
  tgl::AxesOp last = nests.back();
  for (mlir::Operation &again : *last.getAxesBlock()) {
    if (!isa<mlir::math::MathDialect>(again.getDialect()) || again.getNumOperands() != 1 ||
        !again.getResult(0).getType().isF32())
      continue;
    // The one element that it is computed from, and what is on the way.
    DenseSet<mlir::Operation *> inside{&again};
    SmallVector<mlir::Operation *> work{&again};
    SmallVector<tgl::ReadOp> reads;
    while (!work.empty())
      for (mlir::Value operand : work.pop_back_val()->getOperands())
        if (mlir::Operation *definition = operand.getDefiningOp();
            definition && definition->getBlock() == last.getAxesBlock() &&
            inside.insert(definition).second) {
          if (auto read = dyn_cast<tgl::ReadOp>(definition))
            reads.push_back(read);
          work.push_back(definition);
        }
    if (reads.size() != 1 || !row.slotOf.contains(reads.front()) ||
        !reads.front().getType().isF32() || !reads.front().getTensorType().getElementType().isF32())
      continue;
    unsigned slot = row.slotOf.lookup(reads.front()).first;
    // Of the operations on the way, the element is used by these alone, and none has another use.
    bool isAlone = all_of(inside, [&](mlir::Operation *op) {
      return op == &again ||
             all_of(op->getUsers(), [&](mlir::Operation *user) { return inside.contains(user); });
    });
    isAlone &= all_of(row.slotOf, [&](const auto &entry) {
      return entry.first->getBlock() != last.getAxesBlock() || entry.second.first != slot ||
             entry.first == reads.front().getOperation();
    });
    if (!isAlone)
      continue;
    // In the last nest but one that has the element, which is not walked together with the last.
    for (unsigned before = nests.size() - 1; before-- > 0 && !row.foundIn.contains(&again);) {
      tgl::AxesOp nest = nests[before];
      bool hasElement = any_of(*nest.getAxesBlock(), [&](mlir::Operation &op) {
        auto found = row.slotOf.find(&op);
        return found != row.slotOf.end() && found->second.first == slot;
      });
      if (!hasElement)
        continue;
      for (mlir::Operation &op : *nest.getAxesBlock())
        if (walks[before] != walks.back() && op.getNumResults() == 1 &&
            isSameInRow(op.getResult(0), nest, again.getResult(0), last)) {
          row.storedTo[&op] = slot;
          row.foundIn[&again] = slot;
          break;
        }
      break;
    }
  }
}

/// The value of what is kept, where its nest is being walked.
bool RowCache::emitIn(mlir::Operation *op) {
  if (!row.loaded)
    return false;
  if (auto found = row.foundIn.find(op); found != row.foundIn.end()) {
    e.values[op->getResult(0)] = row.loaded->lookup(found->second);
    return true;
  }
  if (auto stored = row.storedTo.find(op); stored != row.storedTo.end()) {
    e.Emitter::emitOp(op);
    Value *value = e.valueOf(op->getResult(0));
    unsigned bytes = row.bytes[stored->second];
    b.CreateAlignedStore(value, rowSlot(stored->second, row.round),
                         Align(std::min<unsigned>(16, bytes & -bytes)));
    return true;
  }
  auto read = dyn_cast<tgl::ReadOp>(op);
  auto found = read ? row.slotOf.find(op) : row.slotOf.end();
  if (found == row.slotOf.end())
    return false;
  Value *raw = row.loaded->lookup(found->second.first);
  Value *value = e.decode(raw, read.getTensorType().getElementType());
  e.values[read.getResult()] = value;
  e.loaded[read.getResult()] = {value, raw};
  return true;
}

//===----------------------------------------------------------------------===//
// Walking a row
//===----------------------------------------------------------------------===//

/// From the first round that all threads of all blocks have with whole vectors to the one after the
/// last of those.
std::pair<int64_t, int64_t> RowCache::wholeRounds() const {
  if (!row.isShifted)
    return {0, row.vectors / rowDistribution().each()};
  int64_t whole = row.terms / row.lane->width /
                  rowDistribution().each(); // the first vector begins before the row
  return whole > 1 ? std::pair(int64_t(1), whole) : std::pair(int64_t(0), int64_t(0));
}

/// The slot of this thread for a round.
Value *RowCache::rowSlot(unsigned slot, Value *round) {
  Value *place = rowSlotOffset(b, rowDistribution(), round, e.thread);
  return b.CreateInBoundsGEP(b.getInt8Ty(), row.bases[slot],
                             b.CreateNSWMul(place, e.i64(row.bytes[slot])));
}

SmallVector<Value *> RowCache::distribute(ArrayRef<tgl::AxesOp> nests,
                                          const std::optional<LaneChoice> &lane,
                                          ArrayRef<Value *> inits, DistributedBody body) {
  tgl::AxesOp any = nests.front();
  SmallVector<unsigned> axes = to_vector(seq<unsigned>(0, any.getAxes().size()));
  RowDistribution over = rowDistribution();
  Value *first = rowThread(b, over, e.rank, e.thread);
  // Those that load from memory first: nests that are walked together have their elements from
  // them.
  SmallVector<std::pair<tgl::ReadOp, tgl::AxesOp>> reads;
  SmallVector<unsigned> left; // slots that nobody reads after these nests
  for (bool fromMemory : {true, false})
    for (tgl::AxesOp nest : nests)
      for (mlir::Operation &nested : *nest.getAxesBlock())
        if (auto read = dyn_cast<tgl::ReadOp>(nested); read && row.slotOf.contains(read))
          if (row.slotOf.lookup(read).second == fromMemory)
            reads.push_back({read, nest});
  if (row.copies) {
    for (unsigned slot = 0; slot < row.bytes.size(); ++slot)
      if (any_of(nests, [&](tgl::AxesOp nest) { return row.lastNests[slot].contains(nest); }))
        left.push_back(slot);
    if (any_of(reads, [&](auto &entry) { return row.slotOf.lookup(entry.first).second; }))
      async::awaitAllCopies(b);
  }

  // Rounds `from`, `from + 1`, ...: first all loads, then the rest.
  auto rounds = [&](Value *from, unsigned count, bool whole, ArrayRef<Value *> carried) {
    row.atEdge = !whole;
    SmallVector<Value *> numbers, exist, results(carried);
    SmallVector<DenseMap<unsigned, Value *>> loaded(count); // by slot
    auto alignmentOf = [&](unsigned slot) {
      return Align(std::min<unsigned>(16, row.bytes[slot] & -row.bytes[slot]));
    };
    for (unsigned ahead = 0; ahead < count; ++ahead) {
      Value *round = b.CreateNSWAdd(from, e.i64(ahead));
      Value *number = rowVector(b, over, round, first), *exists = nullptr;
      if (!whole && !row.isShifted) {
        exists = b.CreateICmpULT(number, e.i64(row.vectors));
        number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, e.i64(row.vectors - 1));
      }
      numbers.push_back(number);
      exist.push_back(exists);
      for (auto [read, nest] : reads) {
        auto [slot, fromMemory] = row.slotOf.lookup(read);
        Value *&value = loaded[ahead][slot];
        if (value)
          continue;
        if (fromMemory && !row.copies) {
          e.setAxes(nest, axes, number, lane, [&, &read = read] {
            value = e.loadRaw(e.buffers.find(read.getTensor())->second, read.getSubscriptExprs(),
                              nullptr);
          });
          continue;
        }
        Type *raw = e.storageType(read.getTensorType().getElementType());
        if (lane)
          raw = FixedVectorType::get(raw, lane->width);
        value = b.CreateAlignedLoad(raw, rowSlot(slot, round), alignmentOf(slot));
      }
    }
    for (unsigned ahead = 0; ahead < count; ++ahead) {
      DenseSet<unsigned> stored;
      for (auto [read, nest] : reads) {
        auto [slot, fromMemory] = row.slotOf.lookup(read);
        if (fromMemory && !row.copies && stored.insert(slot).second)
          b.CreateAlignedStore(loaded[ahead].lookup(slot),
                               rowSlot(slot, b.CreateNSWAdd(from, e.i64(ahead))),
                               alignmentOf(slot));
      }
      row.loaded = &loaded[ahead];
      row.round = b.CreateNSWAdd(from, e.i64(ahead));
      results = body(numbers[ahead], exist[ahead], results);
      row.loaded = nullptr;
      for (unsigned slot : left)
        prefetch(slot, row.round, numbers[ahead], exist[ahead]);
    }
    return results;
  };
  auto [begin, end] = wholeRounds();
  int64_t together = begin + (end - begin) / row.ahead * row.ahead;
  SmallVector<Value *> carried(inits);
  for (int64_t round = 0; round < begin; ++round)
    carried = rounds(e.i64(round), 1, false, carried);
  e.keepNextLoopRolled = true;
  carried = e.emitLoop(
      e.i64(begin), e.i64(together), e.i64(row.ahead), carried,
      [&](Value *round, ArrayRef<Value *> now) { return rounds(round, row.ahead, true, now); });
  for (int64_t round = together; round < row.rounds; ++round)
    carried = rounds(e.i64(round), 1, round < end, carried);
  return carried;
}

RowDistribution RowCache::rowDistribution() const { return {e.shape.team, e.shape.cluster}; }
