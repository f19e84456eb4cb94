//===- DeviceEmitter.cpp - Emits a statement as a SIMT device function ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"

#include "codegen/simt/ClusterReduction.h"
#include "codegen/simt/ColumnSplit.h"
#include "codegen/simt/FastDivision.h"
#include "codegen/simt/NestShape.h"
#include "codegen/simt/PointTiles.h"
#include "codegen/simt/PrivateTemporaries.h"
#include "codegen/simt/RowCache.h"
#include "codegen/simt/SegmentedCombines.h"
#include "codegen/simt/TeamParts.h"
#include "codegen/simt/TeamScan.h"
#include "codegen/simt/TeamSort.h"
#include "codegen/simt/TransposeTiles.h"
#include "codegen/simt/VectorAdds.h"
#include "codegen/simt/WindowTiles.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static EmitterOptions withVectors(EmitterOptions options) {
  options.vectorBytes =
      options.checked ? 0 : DeviceEmitter::accessBytes; // checks are of single elements
  options.wholeVectors = true;
  options.atomicScope = "device";
  return options;
}

DeviceEmitter::DeviceEmitter(Module &module, const EmitterOptions &options,
                             std::vector<ErrorSite> &sites)
    : Emitter(module, withVectors(options), sites), rows(std::make_unique<RowCache>(*this)),
      columns(std::make_unique<ColumnSplit>(*this)), windows(std::make_unique<WindowTiles>(*this)),
      transposes(std::make_unique<TransposeTiles>(*this)),
      temporaries(std::make_unique<PrivateTemporaries>(*this)),
      clusters(std::make_unique<ClusterReduction>(*this)), sorts(std::make_unique<TeamSort>(*this)),
      segments(std::make_unique<SegmentedCombines>(*this)) {}

DeviceEmitter::~DeviceEmitter() = default;

std::optional<RowLayout> DeviceEmitter::rowLayout(StringRef name) const {
  return rows->layout(name);
}

const std::optional<ClusterAnswer> &DeviceEmitter::clusterAnswer() const { return rows->answer(); }

bool DeviceEmitter::columnsKeepMemoryBusy(tgl::ParallelOp op) {
  return columns->keepsMemoryBusy(op);
}

bool DeviceEmitter::isCachedRow(mlir::Operation *nest) const { return rows->holds(nest); }

/// Whether threads of a team see each other's values of a tensor in this op.
bool DeviceEmitter::exchanges(mlir::Operation *op) {
  if (exchanged.empty())
    return false;
  tgl::Accesses accesses = tgl::accessesOf(op);
  auto is = [&](mlir::Value tensor) { return exchanged.contains(tensor); };
  return any_of(accesses.reads, is) || any_of(accesses.writes, is);
}

void DeviceEmitter::emitOp(mlir::Operation *op) {
  // What comes after the op in the statement around it is that statement's again.
  DebugLoc around = b.getCurrentDebugLocation();
  if (DebugLoc own = debugLocations->locationOf(op->getLoc()))
    b.SetCurrentDebugLocation(own);
  emitPlaced(op);
  b.SetCurrentDebugLocation(around);
}

/// The nest around whose points parts of a team take; null where there is none.
static tgl::ParallelOp nestInParts(mlir::Operation *inside) {
  auto around = dyn_cast<tgl::ParallelOp>(inside->getParentOp());
  return around && dealsToParts(around) ? around : nullptr;
}

/// Whether the nest writes a temporary of the team, or of the part of a team, that has its points.
/// Those without a point fill theirs too: they go on to read it, as they take part in what follows.
static bool isOwn(mlir::Value tensor, tgl::ParallelOp nest) {
  auto temp = tensor.getDefiningOp<tgl::TempOp>();
  tgl::ParallelOp around = nestInParts(nest);
  return temp && tgl::isPrivate(temp) && (!around || around->isAncestor(temp));
}

void DeviceEmitter::emitPlaced(mlir::Operation *op) {
  if (temporaries->emitIn(op) || rows->emitIn(op) || windows->emitIn(op) ||
      transposes->emitIn(op) || segments->emitIn(op) || emitVectorAdd(*this, op) ||
      emitFastDivision(*this, op))
    return;
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (write && writes && !(filling && isOwn(write.getTensor(), filling)))
    return emitIf(writes, [&] { Emitter::emitOp(op); });
  if (!write || perThread)
    return Emitter::emitOp(op);
  // All threads may still be reading what is overwritten; afterwards all see what was written.
  bool seen = exchanges(op);
  if (seen)
    barrier();
  Value *isFirst = b.CreateICmpEQ(thread, i64(0));
  if (isPoint)
    isFirst = b.CreateAnd(isFirst, isPoint);
  if (shape.cluster > 1)
    isFirst = b.CreateAnd(isFirst, b.CreateICmpEQ(rank, i64(0)));
  emitIf(isFirst, [&] { Emitter::emitOp(op); });
  if (seen)
    barrier();
}

void DeviceEmitter::emitOfPoint(tgl::ParallelOp nest, function_ref<void()> body) {
  llvm::SetVector<mlir::Value> written = tgl::accessesOf(nest).writes;
  auto isTheirs = [&](mlir::Value tensor) { return isOwn(tensor, nest); };
  if (!isPoint || all_of(written, isTheirs))
    return body();
  if (none_of(written, isTheirs))
    return rows->holds(nest) ? body() : emitIf(isPoint, body); // a row's threads go together
  Value *before = std::exchange(writes, emitAnd(writes, isPoint));
  tgl::ParallelOp around = std::exchange(filling, nest);
  body();
  writes = before;
  filling = around;
}

void DeviceEmitter::emitParallel(tgl::ParallelOp op) {
  if (perThread && unrolled.contains(op)) {
    if (shape.columnSplit > 1)
      return columns->emitParallel(op);
    auto nest = cast<tgl::AxesOp>(op.getOperation());
    SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
    for (int64_t point = 0, points = *tgl::knownPoints(nest); point < points; ++point)
      setAxes(nest, all, i64(point), std::nullopt, [&] { emitBlock(op.getBody().front()); });
    return;
  }
  if (perThread)
    return Emitter::emitParallel(op);
  if (std::optional<RegisterTile> tile = registerTileOf(op))
    return emitPointTiles(*this, op, *tile);
  if (dealsToParts(op))
    return emitInParts(*this, op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  if (runsSerially(op)) {
    emitLoop(i64(0), i64(*tgl::knownPoints(axes)), i64(1), {},
             [&](Value *number, ArrayRef<Value *>) {
               setAxes(axes, box, number, std::nullopt, [&] { emitBlock(op.getBody().front()); });
               return SmallVector<Value *>();
             });
    return;
  }
  bool seen = exchanges(op);
  if (seen)
    barrier(); // earlier writes of all threads are seen, earlier reads are over
  perThread = true;
  std::optional<LaneChoice> lane = rows->laneOf(axes);
  if (lane && !is_contained(box, lane->axis))
    lane.reset();
  auto each = [&](Value *number, Value *exists, ArrayRef<Value *>) {
    auto point = [&] {
      setAxes(axes, box, number, lane,
              [&] { emitNest(axes, rest, [&] { emitBlock(op.getBody().front()); }); });
    };
    if (exists)
      emitIf(exists, point);
    else
      point();
    return SmallVector<Value *>();
  };
  emitOfPoint(op, [&] {
    rows->holds(op) ? rows->distribute({axes}, lane, {}, each)
                    : distribute(countOf(axes, box, lane), {}, each);
  });
  perThread = false;
  if (seen)
    barrier();
}

void DeviceEmitter::emitSteps(Value *count, function_ref<void(Value *)> body) {
  if (perThread)
    return Emitter::emitSteps(count, body);
  barrier();
  perThread = true;
  emitLoop(thread, count, i64(shape.team), {}, [&](Value *n, ArrayRef<Value *>) {
    body(n);
    return SmallVector<Value *>();
  });
  perThread = false;
  barrier();
}

void DeviceEmitter::emitFor(tgl::ForOp op) {
  if (perThread) {
    std::optional<SteppedLoop> stepped = matchSteppedLoop(op);
    unsigned together = stepped ? stepsTogether(*stepped, lanes.has_value()) : 1;
    return together > 1 ? emitSeveralSteps(*this, *stepped, together) : Emitter::emitFor(op);
  }
  std::optional<PrefixLoop> prefix = matchPrefixLoop(op);
  if (!prefix)
    return Emitter::emitFor(op);
  emitTeamScan(*this, *prefix);
}

void DeviceEmitter::emitTemp(tgl::TempOp op) {
  if (tgl::isPrivate(op))
    buffers[op.getTensor()] = Buffer{temporaries->addressOf(op), temporaries->typeOf(op)};
}

void DeviceEmitter::emitSort(tgl::SortOp op) {
  if (!sorts->emit(op))
    Emitter::emitSort(op);
}
