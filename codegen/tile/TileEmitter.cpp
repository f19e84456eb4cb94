//===- TileEmitter.cpp - The placed stage of the tile dialect as LLVM IR ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileEmitter.h"

#include "codegen/async/Async.h"
#include "codegen/tile/TileWgmma.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <limits>

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;

//===----------------------------------------------------------------------===//
// What the host knows
//===----------------------------------------------------------------------===//

std::optional<IndexExpr> TileEmitter::numBlocks(tile::KernelOp kernel) {
  IndexExpr blocks = 1;
  for (const tgl::AxisRange &range : getAxisRanges(cast<tgl::AxesOp>(kernel.getOperation()))) {
    if (!range.lo.operands().empty() || !range.hi.operands().empty())
      return std::nullopt;
    blocks = blocks * IndexExpr::max((range.hi - range.lo).expr(), 0);
  }
  return blocks;
}

SmallVector<mlir::Value> TileEmitter::alignedTensors(tile::KernelOp kernel) {
  SetVector<mlir::Value> tensors;
  kernel.getBody().walk([&](tile::CopyOp copy) {
    if (copy.getKind() == tile::CopyKind::CpAsync)
      tensors.insert(copy.getYielded().getDefiningOp<tgl::ReadOp>().getTensor());
  });
  kernel.getBody().walk(
      [&](tile::VectorsOp vectors) { tensors.insert(vectors.getRead().getTensor()); });
  kernel.getBody().walk(
      [&](tile::TmaDescriptorOp map) { tensors.insert(map.getRead().getTensor()); });
  return tensors.takeVector();
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void TileEmitter::emit(tgl::ParallelOp statement, const Twine &name, const Inputs &inputs) {
  emitTileFunction(statement, name, inputs, *kernel.getThreads(), [&](Value *) {
    thread = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    lane = b.CreateAnd(thread, i32(31));
    shared = dynamicShared();
    setBlock();
    emitOps(kernel.getBody().front());
  });
}

/// Sets the kernel's axes to those of the block: the last is fastest.
void TileEmitter::setBlock() {
  auto axes = cast<tgl::AxesOp>(kernel.getOperation());
  Value *number = b.CreateZExt(
      b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}), b.getInt64Ty());
  for (unsigned axis = axes.getAxes().size(); axis-- > 0;) {
    tgl::AxisRange range = getAxisRange(axes, axis);
    Value *digit = number;
    if (axis > 0) {
      Value *extent = emitIndex(range.hi - range.lo);
      digit = b.CreateURem(number, extent);
      number = b.CreateUDiv(number, extent);
    }
    values[axes.getAxes()[axis]] = b.CreateAdd(digit, emitIndex(range.lo));
  }
}

void TileEmitter::emitOps(mlir::Block &block) {
  for (mlir::Operation &op : block)
    if (!isa<tile::YieldOp>(op) && !failed())
      emitTileOp(&op);
}

void TileEmitter::emitPoint(mlir::Block &point) {
  for (mlir::Operation &op : point.without_terminator())
    if (!failed())
      emitOp(&op);
}

void TileEmitter::emitTileOp(mlir::Operation *op) {
  // All checks of an op wait: most compare the same few numbers, which LLVM finds.
  auto emitTogether = [&](function_ref<void()> emit) {
    checks.reportTogether(emit, std::numeric_limits<size_t>::max());
  };
  TypeSwitch<mlir::Operation *>(op)
      .Case([&](tile::SpanOp span) {
        spans[span] = {emitIndex(span.getBaseExpr()), emitIndex(span.getEndExpr()), span.isFull()};
      })
      .Case([&](tile::AllocOp alloc) {
        parts[alloc] = {b.CreateInBoundsGEP(b.getInt8Ty(), shared, i32(*alloc.getOffset()))};
      })
      .Case([&](tile::ZeroOp zero) {
        Layout layout = layoutOf(zero.getType().getShape(), zero.getType().getFragments());
        parts[zero].assign(layout.numAccumulators,
                           Constant::getNullValue(typeOf(zero.getType().getElementType())));
      })
      .Case([&](tile::ForOp loop) { emitTileFor(loop); })
      .Case([&](tile::AdvanceOp advance) { emitAdvance(advance); })
      .Case([&](tile::IfOp op) {
        emitIf(values[op.getCondition()], [&] { emitOps(op.getBody().front()); });
      })
      .Case([&](tile::StageOp stage) { emitStage(stage); })
      .Case([&](tile::CopyOp copy) { emitCopy(copy); })
      .Case([&](tile::UnpackOp unpack) { emitUnpack(unpack); })
      .Case([&](tile::CommitOp commit) { parts[commit] = {async::commitCopies(b)}; })
      .Case([&](tile::AwaitOp await) { async::awaitCopies(b, parts[await.getToken()].front()); })
      .Case([&](tile::BarrierOp barrier) {
        if (barrier.getPublish())
          async::publish(b);
        b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
      })
      .Case([&](tile::MmaOp mma) { emitTogether([&] { emitMma(mma); }); })
      .Case([&](tile::AwaitProductsOp wait) {
        async::awaitProducts(b, parts[wait.getSums()].front());
      })
      .Case([&](tile::ReadyOp ready) {
        parts[ready] = async::readProducts(b, parts[ready.getSums()]);
      })
      .Case([&](tile::MapOp map) { emitTogether([&] { emitMap(map); }); })
      .Case([&](tile::OperandOp operand) {
        tile::FragmentLayout layout = operand.getType().getFragments();
        if (!layout || !layout.isSliced()) // else where it is multiplied
          emitTogether([&] { emitOperand(operand); });
      })
      .Case([&](tile::VectorsOp vectors) { emitTogether([&] { emitVectors(vectors); }); })
      .Case([&](tile::SumWarpsOp sum) { emitSumWarps(sum); })
      .Case([&](tile::InitOp init) { emitInit(init); })
      .Case([&](tile::ReduceOp reduce) { emitStateReduce(reduce); })
      .Case([&](tile::FinishOp finish) { emitFinish(finish); })
      .Case([&](tile::StoreOp store) { emitStore(store); })
      .Case([&](tile::RolesOp op) { roles.emit(op); })
      .Case([&](tile::TmaDescriptorOp op) { roles.describe(op); })
      .Case([&](tile::FillOp op) { roles.fill(op); })
      .Case([&](tile::CopyBoxOp op) { roles.copyBox(op); })
      .Case([&](tile::WaitOp op) { roles.wait(op); })
      .Case([&](tile::ReleaseOp op) { roles.release(op); })
      .Default([&](mlir::Operation *other) {
        // Scalars that are the same for all threads.
        if (isa<tile::TileDialect>(other->getDialect()) || other->getNumRegions())
          return fail(other, "is not of the placed stage");
        emitOp(other);
      });
}

void TileEmitter::emitTileFor(tile::ForOp op) {
  auto partsOf = [&](mlir::Value value) {
    return isa<mlir::IndexType>(value.getType()) ? Values{valueOf(value)} : parts[value];
  };
  Values inits;
  for (mlir::Value init : op.getInits())
    append_range(inits, partsOf(init));
  auto setParts = [&](auto to, ArrayRef<Value *> all) {
    for (auto [value, init] : zip_equal(to, op.getInits())) {
      size_t count = partsOf(init).size();
      if (isa<mlir::IndexType>(value.getType()))
        values[value] = all.front();
      parts[value].assign(all.begin(), all.begin() + count);
      all = all.drop_front(count);
    }
  };
  keepNextLoopRolled = true;
  Values results = emitLoop(
      emitIndex(op.getLowExpr()), emitIndex(op.getHighExpr()), i64(op.getStep()), inits,
      [&](Value *iv, ArrayRef<Value *> carried) {
        values[op.getLoopVar()] = iv;
        setParts(op.getIterArgs(), carried);
        emitOps(op.getBody().front());
        if (failed())
          return Values(carried);
        Values yielded;
        for (mlir::Value value : op.getYield().getValues())
          append_range(yielded, partsOf(value));
        return yielded;
      },
      "tile");
  setParts(op.getResults(), results);
}

void TileEmitter::emitAdvance(tile::AdvanceOp op) {
  unsigned count = op.getSteps().size();
  Value *isNext = nullptr; // of the loop inside: it begins anew
  Value *exists = nullptr;
  for (unsigned loop = count; loop-- > 0;) {
    Value *low = emitIndex(op.getLowExpr(loop)), *high = emitIndex(op.getHighExpr(loop)), *at = low;
    if (!op.getFrom().empty()) {
      Value *before = valueOf(op.getFrom()[1 + loop]);
      at = b.CreateAdd(before, i64(op.getSteps()[loop]));
      if (isNext)
        at = b.CreateSelect(isNext, at, before);
      isNext = b.CreateICmpSGE(at, high);
      if (loop > 0)
        at = b.CreateSelect(isNext, low, at);
    }
    values[op.getAt()[loop]] = at;
    exists = emitAnd(exists, b.CreateICmpSLT(at, high));
  }
  values[op.getExists()] = exists;
  values[op.getNumber()] =
      op.getFrom().empty() ? i64(0) : b.CreateAdd(valueOf(op.getFrom().front()), i64(1));
}

void TileEmitter::emitStage(tile::StageOp op) {
  tile::RingType ring = op.getRing().getType();
  Value *number = b.CreateURem(emitIndex(op.getNumberExpr()), i64(ring.getStages()));
  Value *offset =
      b.CreateMul(b.CreateTrunc(number, b.getInt32Ty()), i32(ring.getStage().getBytes()));
  parts[op] = {b.CreateInBoundsGEP(b.getInt8Ty(), parts[op.getRing()].front(), offset)};
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

TileEmitter::Layout TileEmitter::layoutOf(ArrayRef<int64_t> shape, tile::FragmentLayout attribute) {
  Layout layout;
  layout.tile = {shape[0], shape.size() > 1 ? shape[1] : 16 * attribute.getWarpColumns(),
                 attribute.getWarpRows(), attribute.getWarpColumns(), 1};
  layout.corner = warpCorner(b, layout.tile, thread);
  layout.numRows = shape[0] / attribute.getWarpRows() / 8;
  layout.numAccumulators = shape.size() > 1 ? accumulatorsPerThread(layout.tile) : layout.numRows;
  return layout;
}

/// Rows of a thread lie eight apart.
unsigned TileEmitter::rowNumber(const Layout &layout, unsigned accumulator) {
  return fragmentStep(layout.tile, accumulator).down / 8;
}

Value *TileEmitter::rowOf(const Layout &layout, unsigned row, const Span &rows) {
  Value *inTile =
      b.CreateAdd(b.CreateAdd(layout.corner.row, b.CreateLShr(lane, i32(2))), i32(8 * row));
  return b.CreateAdd(rows.base, wide(inTile));
}

std::pair<Value *, Value *> TileEmitter::pointOf(const Layout &layout, unsigned number,
                                                 const Span &rows, const Span &columns) {
  TileCoord at = mmaAccumulatorAt(b, layout.tile, layout.corner, lane, number);
  return {b.CreateAdd(rows.base, wide(at.row)), b.CreateAdd(columns.base, wide(at.column))};
}

Value *TileEmitter::clamp(Value *point, const Span &span) {
  if (span.isFull)
    return point;
  return b.CreateBinaryIntrinsic(Intrinsic::smin, point, b.CreateSub(span.end, i64(1)));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void TileEmitter::emitMma(tile::MmaOp op) {
  if (op.getType().getFragments().isSliced())
    return emitSlicedMma(op);
  if (op.getType().getFragments().isAsynchronous()) {
    parts[op] = startProduct(b, op, thread, parts[op.getA()].front(), parts[op.getB()].front(),
                             parts[op.getC()]);
    return;
  }
  auto aType = dyn_cast<tile::SharedType>(op.getA().getType()); // null: in registers
  auto bType = cast<tile::SharedType>(op.getB().getType());
  Layout layout = layoutOf(op.getType().getShape(), op.getType().getFragments());
  Mma core(b, mmaType(bType));
  unsigned rowBlocks = layout.tile.rows / layout.tile.warpRows / 16,
           columnBlocks = layout.tile.columns / layout.tile.warpColumns / 16;
  std::vector<std::array<Value *, 4>> sums(rowBlocks * columnBlocks * 2);
  for (auto [number, value] : enumerate(parts[op.getC()]))
    sums[number / 4][number % 4] = value;
  auto load = [&](mlir::Value operand, tile::SharedType type, Value *first, unsigned blocks,
                  unsigned step) {
    SmallVector<std::array<Value *, 4>> words;
    for (unsigned block = 0; block < blocks; ++block)
      words.push_back(core.loadBlock(sharedLayout(type), parts[operand].front(), lane, first, block,
                                     i32(step)));
    return words;
  };
  using Words = SmallVector<std::array<Value *, 4>>;
  auto multiply = [&](const Words &rows, const Words &columns) {
    for (unsigned r = 0; r < rowBlocks; ++r)
      for (unsigned c = 0; c < 2 * columnBlocks; ++c) {
        const std::array<Value *, 4> &words = columns[c / 2];
        std::array<Value *, 4> &sum = sums[r * 2 * columnBlocks + c];
        sum = core.multiply(rows[r], {words[c % 2], words[c % 2 + 2]}, sum);
      }
  };
  struct Terms {
    Words large, small, largeForSmall;
  };
  auto split = [&](const Words &words) {
    Terms terms{words, words, words};
    for (auto [number, block] : enumerate(words))
      for (auto [n, word] : enumerate(block)) {
        Mma::AnyTerms own = core.splitAny(word);
        terms.large[number][n] = own.large;
        terms.small[number][n] = own.small;
        terms.largeForSmall[number][n] = own.largeForSmall;
      }
    return terms;
  };
  unsigned steps =
      bType.getShape()[1] * bType.getElementType().getIntOrFloatBitWidth() / 32 / Mma::stepWords;
  for (unsigned step = 0; step < steps; ++step) {
    Words rows = aType ? load(op.getA(), aType, layout.corner.row, rowBlocks, step)
                       : factorOf(op.getA(), core, rowBlocks, step);
    Words columns = load(op.getB(), bType, layout.corner.column, columnBlocks, step);
    if (!op.getSplit()) {
      multiply(rows, columns);
      continue;
    }
    Terms ofRows = split(rows), ofColumns = split(columns);
    // Small products first: they are lost next to large sums.
    multiply(ofRows.largeForSmall, ofColumns.small);
    multiply(ofRows.small, ofColumns.largeForSmall);
    multiply(ofRows.large, ofColumns.large);
  }
  Values &result = parts[op];
  result.clear();
  for (const std::array<Value *, 4> &fragment : sums)
    append_range(result, fragment);
}

/// The rows of a factor in registers, and the 16 columns of a step: two accumulators side by side.
SmallVector<std::array<Value *, 4>> TileEmitter::factorOf(mlir::Value factor, Mma &core,
                                                          unsigned rowBlocks, unsigned step) {
  constexpr unsigned columnsOfAccumulator = 8, partsOfAccumulator = 4;
  auto type = cast<tile::TileType>(factor.getType());
  unsigned perRow = type.getShape()[1] / columnsOfAccumulator;
  SmallVector<std::array<Value *, 4>> words;
  for (unsigned block = 0; block < rowBlocks; ++block) {
    std::array<Value *, 4> &own = words.emplace_back();
    for (unsigned word = 0; word < own.size(); ++word) {
      // a0, a1: rows g and g + 8 of the first accumulator; a2, a3: of the second.
      unsigned first = (block * perRow + 2 * step + word / 2) * partsOfAccumulator + 2 * (word % 2);
      Value *pair = PoisonValue::get(FixedVectorType::get(b.getInt16Ty(), 2));
      for (unsigned half = 0; half < 2; ++half)
        pair = b.CreateInsertElement(pair, core.narrow(parts[factor][first + half]), half);
      own[word] = b.CreateBitCast(pair, b.getInt32Ty());
    }
  }
  return words;
}

void TileEmitter::setInputs(tile::PointsOp op, unsigned number, unsigned row) {
  for (auto [argument, input] : zip_equal(op.getInputArguments(), op.getInputs())) {
    bool isOfRows = cast<tile::TileType>(input.getType()).getShape().size() == 1;
    values[argument] = parts[input][isOfRows ? row : number];
  }
}

TileEmitter::Values TileEmitter::emitPoints(tile::PointsOp op, tile::TileType type, bool hasFill) {
  Layout layout = layoutOf(type.getShape(), type.getFragments());
  const Span rows = spans[op.getSpans()[0]];
  mlir::Block &point = *op.getPoint();
  Values result;
  auto take = [&](Value *exists) {
    emitPoint(point);
    Value *value = valueOf(op.getYielded());
    result.push_back(exists && hasFill
                         ? b.CreateSelect(exists, value, Constant::getNullValue(value->getType()))
                         : value);
  };
  if (type.getShape().size() == 1) {
    for (unsigned row = 0; row < layout.numRows && !failed(); ++row) {
      values[point.getArgument(0)] = clamp(rowOf(layout, row, rows), rows);
      setInputs(op, row, row);
      take(nullptr);
    }
    return result;
  }
  const Span columns = spans[op.getSpans()[1]];
  for (unsigned number = 0; number < layout.numAccumulators && !failed(); ++number) {
    auto [row, column] = pointOf(layout, number, rows, columns);
    values[point.getArgument(0)] = clamp(row, rows);
    values[point.getArgument(1)] = clamp(column, columns);
    setInputs(op, number, rowNumber(layout, number));
    // What rows that do not exist have does not come to others.
    take(columns.isFull ? nullptr : b.CreateICmpSLT(column, columns.end));
  }
  return result;
}

void TileEmitter::emitMap(tile::MapOp op) {
  parts[op] = emitPoints(cast<tile::PointsOp>(op.getOperation()), op.getType(), false);
}

void TileEmitter::emitOperand(tile::OperandOp op) {
  parts[op] = emitPoints(cast<tile::PointsOp>(op.getOperation()), op.getType(), true);
}

void TileEmitter::emitStore(tile::StoreOp op) {
  auto type = cast<tile::TileType>(op.getInputs()[0].getType());
  if (isa<tile::LinearLayoutAttr>(type.getLayout()))
    return emitLinearStore(op);
  auto points = cast<tile::PointsOp>(op.getOperation());
  Layout layout = layoutOf(type.getShape(), type.getFragments());
  const Span rows = spans[op.getSpans()[0]];
  mlir::Block &point = op.getBody().front();
  bool isOfRows = type.getShape().size() == 1;
  for (unsigned number = 0; number < layout.numRows; ++number) {
    Value *row = rowOf(layout, number, rows);
    Value *exists = rows.isFull ? nullptr : b.CreateICmpSLT(row, rows.end);
    if (isOfRows) // four lanes have each row
      exists = emitAnd(exists, b.CreateICmpEQ(b.CreateAnd(lane, i32(3)), i32(0)));
    auto emitRow = [&] {
      values[point.getArgument(0)] = row;
      if (isOfRows) {
        setInputs(points, number, number);
        return emitPoint(point);
      }
      const Span columns = spans[op.getSpans()[1]];
      for (unsigned element = 0; element < layout.numAccumulators; ++element) {
        if (rowNumber(layout, element) != number)
          continue;
        Value *column = pointOf(layout, element, rows, columns).second;
        auto emitElement = [&] {
          values[point.getArgument(1)] = column;
          setInputs(points, element, number);
          emitPoint(point);
        };
        if (columns.isFull)
          emitElement();
        else
          emitIf(b.CreateICmpSLT(column, columns.end), emitElement);
      }
    };
    if (exists)
      emitIf(exists, emitRow);
    else
      emitRow();
  }
}
