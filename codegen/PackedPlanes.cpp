//===- PackedPlanes.cpp - Planes of f32 operands by a launch before --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles that lie in a row use the same rows, so what WarpgroupRoles.cpp does to an element is done again by each of
// them, and takes all of the way from memory through registers to shared memory. Here a launch before does it once:
// it leaves the two planes of f16 in the workspace as the very bytes that a stage of shared memory is to hold, tile by
// tile and stage by stage, and for each line one over its scale, or NaN where the line is not fit for such planes.
// Producers then copy them asynchronously. Rows beyond the last are the last again.
//
// Numbers of 16 bits that do not come in vectors (rows of an odd length, windows) are brought into that order alike:
// they are their only plane, without a scale.
//
// The scale is that of WarpgroupRoles.cpp, found from as many of a line's first points as a block loads at a time.
//
// Where data chooses which of a tensor's matrices a point of the batch reads, each matrix is packed once, and tiles find
// out whose planes they copy.
//
// A side of windows is packed element by element instead (PackedWindows.cpp).
//
// The workspace of each product: planes of rows, of columns; scales of rows, of columns.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// Lines of a block that packs: neighbours in memory are then read by whole sectors whichever way they lie.
static constexpr unsigned linesOfBlock = 8;
/// What lies in the workspace starts at multiples of this.
static constexpr int64_t areaAlignment = 256;

static IndexExpr ceilDivOnHost(const IndexExpr &points, int64_t by) {
  return IndexExpr::floorDiv(points + (by - 1), by);
}

//===----------------------------------------------------------------------===//
// The workspace
//===----------------------------------------------------------------------===//

/// Rows and columns of each product in turn.
std::vector<DeviceContraction::PackedSide> DeviceContraction::packedSides(IndexExpr &bytes) const {
  std::vector<PackedSide> sides;
  bytes = 0;
  IndexExpr batches = here.pointsOnHost(axes, plan.batch);
  for (auto [planned, how, pack] : zip_equal(plan.products, products, packs)) {
    auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(planned.reduce).getOperation());
    unsigned substeps = std::max(how.row.parts, how.column.parts);
    IndexExpr points = pack.order.padded ? IndexExpr(pack.order.points(summed))
                                         : here.pointsOnHost(summed, pack.order.axes);
    int64_t depth = isBytes(how.type) ? PlaneTile::lineBytes : PlaneTile::lineElements;
    IndexExpr stages = ceilDivOnHost(points, depth) * int64_t(substeps);
    auto place = [&](int64_t each, const IndexExpr &count) {
      IndexExpr start = bytes;
      bytes = bytes + ceilDivOnHost(count * each, areaAlignment) * areaAlignment;
      return start;
    };
    for (bool ofRows : {true, false}) {
      int64_t extent = ofRows ? tile.rows : tile.columns;
      PackedSide side;
      const std::optional<WindowOperand> &window = ofRows ? pack.row : pack.column;
      auto scales = [&](int64_t each, const IndexExpr &count) { return isSplit() ? place(each, count) : IndexExpr(0); };
      if (window) {
        unsigned parts = ofRows ? how.row.parts : how.column.parts;
        bool isShiftedSide = isShifted() && !ofRows;
        int64_t pixels = isShiftedSide ? shifted->pixels : window->pixels;
        side.blocks = window->images * blocksOfImage(*window, pixels);
        side.planes = place(2 * parts, window->images * pixels * window->keptChannels());
        side.scales = scales(sizeof(float), window->images);
        sides.push_back(std::move(side));
        continue;
      }
      std::optional<ChosenMatrix> chosen = chosenMatrix(plan, ofRows ? how.row : how.column);
      IndexExpr sets = chosen ? IndexExpr(chosen->count) : batches;
      if (chosen)
        side.matrix = chosen->number;
      side.tiles = ceilDivOnHost(here.pointsOnHost(axes, ofRows ? plan.rows : plan.columns), extent);
      side.stages = stages;
      side.blocks = sets * side.tiles * (extent / linesOfBlock);
      side.planes = place(extent * PlaneTile::lineBytes, sets * side.tiles * stages);
      side.scales = scales(extent * sizeof(float), sets * side.tiles);
      sides.push_back(std::move(side));
    }
  }
  return sides;
}

IndexExpr DeviceContraction::packedBytes() const {
  IndexExpr bytes = 0;
  if (isPacked())
    packedSides(bytes);
  return bytes;
}

/// Which of the side's sets of planes, each of all lines, the tile that is set uses (i64): the batch point's, or those of
/// the matrix that data chooses for it.
llvm::Value *DeviceContraction::planeSet(const PlaneOperand &operand, const PackedSide &side) {
  if (!side.matrix)
    return batch;
  if (side.matrix != matrixToPack) {
    SetVector<mlir::Operation *> needed;
    needed.insert(side.matrix.getDefiningOp());
    for (unsigned n = 0; n < needed.size(); ++n)
      for (mlir::Value value : needed[n]->getOperands())
        if (mlir::Operation *definition = value.getDefiningOp())
          needed.insert(definition);
    for (mlir::Operation *op : operand.side->slice)
      if (needed.contains(op))
        e.emitOp(op);
  }
  return e.valueOf(side.matrix);
}

/// The planes of a stage (i64, of the whole sum) of the tile that is set.
llvm::Value *DeviceContraction::planesOf(const PlaneOperand &operand, const PackedSide &side, Value *stage) {
  Value *tileNumber = b.CreateUDiv(operand.group->first, i64(operand.group->extent));
  tileNumber = b.CreateAdd(b.CreateMul(planeSet(operand, side), e.emitSize(side.tiles)), tileNumber);
  Value *number = b.CreateAdd(b.CreateMul(tileNumber, e.emitSize(side.stages)), stage);
  Value *offset = b.CreateAdd(e.emitSize(side.planes), b.CreateMul(number, i64(operand.shared.bytes())));
  return b.CreateInBoundsGEP(b.getInt8Ty(), packed, offset);
}

/// Where one over the scale of a line (i64) of that tile lies.
llvm::Value *DeviceContraction::scalePlace(const PlaneProduct &product, const PlaneOperand &operand,
                                           const PackedSide &side, Value *line) {
  Value *number;
  if (operand.window) {
    number = imageOf(product, operand, numberOf(operand, line, 1));
  } else {
    Value *lines = b.CreateMul(e.emitSize(side.tiles), i64(operand.group->extent));
    number = b.CreateAdd(b.CreateMul(planeSet(operand, side), lines), b.CreateAdd(operand.group->first, line));
  }
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), packed, e.emitSize(side.scales));
  return b.CreateInBoundsGEP(b.getFloatTy(), base, number);
}

//===----------------------------------------------------------------------===//
// The launch before
//===----------------------------------------------------------------------===//

IndexExpr DeviceContraction::packBlocks() const {
  IndexExpr bytes = 0, blocks = 0;
  for (const PackedSide &side : packedSides(bytes))
    blocks = blocks + side.blocks;
  return blocks;
}

/// The largest values of lines: of their first points, and of all.
unsigned DeviceContraction::packSharedBytes() { return 2 * linesOfBlock * sizeof(float); }

/// A block's lines, from `number` (i64) times `linesOfBlock` on.
void DeviceContraction::packLines(const PlaneProduct &product, PlaneOperand operand, const PackedSide &side,
                                  Value *number) {
  Group group = *operand.group;
  operand.group = &group;
  int64_t blocksOfTile = group.extent / linesOfBlock;
  Value *blocksOfSet = b.CreateMul(e.emitSize(side.tiles), i64(blocksOfTile)), *set = b.CreateUDiv(number, blocksOfSet);
  number = b.CreateURem(number, blocksOfSet);
  batch = side.matrix ? i64(0) : set;
  here.setNumber(axes, plan.batch, false, batch);
  SaveAndRestore packs(matrixToPack, side.matrix);
  if (side.matrix)
    e.values[side.matrix] = set;
  group.first = b.CreateMul(b.CreateUDiv(number, i64(blocksOfTile)), i64(group.extent));
  Value *firstLine = b.CreateMul(b.CreateTrunc(b.CreateURem(number, i64(blocksOfTile)), b.getInt32Ty()),
                                 i32(linesOfBlock));

  // Threads side by side have neighbours in memory.
  unsigned units = packThreads() / linesOfBlock; // side by side
  bool alongSum = operand.how->alongSum;
  Value *ownLine = alongSum ? b.CreateUDiv(here.thread, i32(units)) : b.CreateURem(here.thread, i32(linesOfBlock));
  Value *ownUnit = alongSum ? b.CreateURem(here.thread, i32(units)) : b.CreateUDiv(here.thread, i32(linesOfBlock));
  Value *line = b.CreateAdd(firstLine, ownLine);
  Value *lineNumber = numberOf(operand, wide(line), 1);

  unsigned unitsOfStage = operand.shared.unitsInLine();
  Value *allUnits = b.CreateMul(e.emitSize(side.stages), i64(unitsOfStage));
  Value *lastUnit = b.CreateSub(allUnits, i64(1));
  auto load = [&](Value *unit) { // the last one again where there is none
    unit = b.CreateBinaryIntrinsic(Intrinsic::smin, unit, lastUnit);
    return loadUnitAt(product, operand, b.CreateMul(unit, i64(operand.shared.unitElements())), lineNumber);
  };
  Warpgroup warps = warpgroupOf(product);
  auto store = [&](Value *unitNumber, ArrayRef<Value *> planes) {
    e.emitIf(b.CreateICmpSLT(unitNumber, allUnits), [&] {
      Value *stage = planesOf(operand, side, b.CreateUDiv(unitNumber, i64(unitsOfStage)));
      Value *inLine = b.CreateTrunc(b.CreateURem(unitNumber, i64(unitsOfStage)), b.getInt32Ty());
      for (unsigned plane = 0; plane < operand.shared.planes; ++plane) { // what is copied is known to the last byte
        Value *offset = warps.place(operand.shared, line, inLine, plane);
        Value *unit = plane < operand.planes ? planes[plane] : Constant::getNullValue(planes.front()->getType());
        b.CreateAlignedStore(unit, b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), Align(16));
      }
    });
  };
  if (!isSplit()) {
    e.emitLoop(
        i64(0), allUnits, i64(units), {},
        [&](Value *first, ArrayRef<Value *>) {
          Value *unitNumber = b.CreateAdd(first, wide(ownUnit));
          store(unitNumber, load(unitNumber));
          return SmallVector<Value *>();
        },
        "span");
    return;
  }

  auto largestAt = [&](Value *inBlock) { return here.sharedAt(b.CreateMul(inBlock, i32(sizeof(float)))); };
  auto leastAt = [&](Value *inBlock) { return largestAt(b.CreateAdd(inBlock, i32(linesOfBlock))); };
  auto loadWord = [&](Value *place) { return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4)); };
  e.emitIf(b.CreateICmpULT(here.thread, i32(linesOfBlock)), [&] {
    b.CreateAlignedStore(i32(0), largestAt(here.thread), Align(4));
    b.CreateAlignedStore(i32(-1), leastAt(here.thread), Align(4));
  });
  barrier();
  noteLargest(largestAt(ownLine), leastAt(ownLine), largestOf(load(wide(ownUnit))));
  barrier();
  Value *largest = loadWord(largestAt(ownLine)), *scale = scaleOf(largest, /*isInverse=*/false);
  e.emitIf(b.CreateICmpEQ(ownUnit, i32(0)), [&] {
    Value *inverse = inverseScale(largest, loadWord(leastAt(ownLine)));
    b.CreateAlignedStore(inverse, scalePlace(product, operand, side, wide(line)), Align(4));
  });
  e.emitLoop(
      i64(0), allUnits, i64(units), {},
      [&](Value *first, ArrayRef<Value *>) {
        Value *unitNumber = b.CreateAdd(first, wide(ownUnit));
        store(unitNumber, splitUnit(load(unitNumber), scale, operand.planes));
        return SmallVector<Value *>();
      },
      "span");
}

void DeviceContraction::emitPack(Value *workspace) {
  here.begin();
  packed = workspace;
  split = i64(0); // steps are those of all parts
  IndexExpr bytes = 0;
  std::vector<PackedSide> sides = packedSides(bytes);
  Value *number = wide(here.block);
  for (unsigned which = 0; which < products.size(); ++which) {
    PlaneProduct product = makePlaneProduct(which);
    for (bool ofRows : {true, false}) {
      const PackedSide &side = sides[2 * which + !ofRows];
      Value *blocks = e.emitSize(side.blocks);
      Value *isHere = b.CreateAnd(b.CreateICmpSGE(number, i64(0)), b.CreateICmpSLT(number, blocks));
      const PlaneOperand &operand = ofRows ? product.row : product.column;
      e.emitIf(isHere, [&] {
        operand.window ? packPixels(product, operand, side, number) : packLines(product, operand, side, number);
      });
      number = b.CreateSub(number, blocks);
    }
  }
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Starts the copies of stage `number` (i64, of the whole sum).
void DeviceContraction::copyLines(const PlaneOperand &operand, const PackedSide &side, Value *number, Value *stage) {
  constexpr unsigned copyBytes = 16;
  Value *from = planesOf(operand, side, number);
  from = b.CreateInBoundsGEP(b.getInt8Ty(), from, wide(b.CreateMul(here.thread, i32(copyBytes))));
  Value *to = b.CreateAdd(b.CreateMul(here.thread, i32(copyBytes)), i32(operand.offset));
  to = b.CreateInBoundsGEP(b.getInt8Ty(), stage, to);
  for (unsigned offset = 0; offset < operand.shared.bytes(); offset += stagers() * copyBytes)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_cg_shared_global_16,
                      {b.CreateInBoundsGEP(b.getInt8Ty(), to, i32(offset)),
                       b.CreateInBoundsGEP(b.getInt8Ty(), from, i64(offset))});
}

/// Starts the copies of the block's stage `number` (i64).
void DeviceContraction::copyPacked(const PlaneProduct &product, Value *number, Value *stage) {
  IndexExpr bytes = 0;
  std::vector<PackedSide> sides = packedSides(bytes);
  Value *step = stepInSum(product.sum, b.CreateUDiv(number, i64(product.substeps)));
  Value *inSum = b.CreateAdd(b.CreateMul(step, i64(product.substeps)), b.CreateURem(number, i64(product.substeps)));
  for (bool ofRows : {true, false}) {
    const PlaneOperand &operand = ofRows ? product.row : product.column;
    const PackedSide &side = sides[2 * product.number + !ofRows];
    if (operand.isShifted)
      e.emitIf(b.CreateICmpEQ(b.CreateURem(number, i64(product.substeps)), i64(0)),
               [&] { copyPatch(product, side, b.CreateUDiv(number, i64(product.substeps))); });
    else if (operand.window)
      copyWindows(product, operand, side, inSum, stage);
    else
      copyLines(operand, side, inSum, stage);
  }
}

/// What is under way of a block's copies before the first tile, as produceCopies takes it.
SmallVector<Value *> DeviceContraction::noCopies() {
  return SmallVector<Value *>(copiesInBulk() ? 0 : copiesAhead(), async::noCopies(b));
}

/// Starts the copies of a tile's stages, in the order of all that go through the ring. Consumers are told of a stage
/// `copiesAhead` stages later, so that so many are under way; of the block's last ones by endCopies. `before`: those under
/// way before, of the first stage first; what comes back is the same after the tile.
SmallVector<Value *> DeviceContraction::produceCopies(const PlaneProduct &product, ArrayRef<Value *> before) {
  if (copiesInBulk()) {
    produceInBulk(product);
    return {};
  }
  unsigned ahead = copiesAhead();
  return e.emitLoop(
      i64(0), numStages(product), i64(1), before,
      [&](Value *number, ArrayRef<Value *> underWay) {
        SmallVector<Value *> copies(underWay);
        Value *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty());
        Value *stage = inRing(inBlock);
        async::acquire(b, rings[product.number], inBlock);
        if (isPacked())
          copyPacked(product, number, planeStage(product, stage));
        else
          copyUnits(product, stepInSum(product.sum, number), planeStage(product, stage));
        copies.push_back(async::commitCopies(b));
        e.emitIf(b.CreateICmpUGE(inBlock, i32(ahead)), [&] {
          async::awaitCopies(b, copies.front());
          async::commit(b, rings[product.number], b.CreateSub(inBlock, i32(ahead)));
        });
        copies.erase(copies.begin());
        return copies;
      },
      "stage");
}

/// Tells consumers of the last stages of the block, which has `total` (i64) of this product.
void DeviceContraction::endCopies(const PlaneProduct &product, Value *total) {
  if (copiesInBulk()) // barriers know
    return;
  async::awaitAllCopies(b);
  Value *stages = b.CreateTrunc(total, b.getInt32Ty());
  for (unsigned before = copiesAhead(); before > 0; --before)
    e.emitIf(b.CreateICmpUGE(stages, i32(before)),
             [&] { async::commit(b, rings[product.number], b.CreateSub(stages, i32(before))); });
}

/// Where one over the scale of a line is.
Value *DeviceContraction::scaleOfLine(const PlaneProduct &product, Value *line) {
  if (!isPacked())
    return ofLine(LineValue::InverseScale, line);
  return lineWord(product.scalesBefore ? b.CreateAdd(product.scalesBefore, line) : line);
}

/// Brings one over the scale of each line to shared memory; consumers see it once the first stage is there.
void DeviceContraction::loadScales(const PlaneProduct &product) {
  IndexExpr bytes = 0;
  std::vector<PackedSide> sides = packedSides(bytes);
  for (bool ofRows : {true, false}) {
    const PlaneOperand &operand = ofRows ? product.row : product.column;
    for (unsigned first = 0; first < operand.shared.extent; first += threads()) {
      Value *line = b.CreateAdd(here.thread, i32(first));
      auto load = [&] {
        Value *address = scalePlace(product, operand, sides[2 * product.number + !ofRows], wide(line));
        LoadInst *inverse = b.CreateAlignedLoad(b.getFloatTy(), address, Align(4));
        inverse->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
        b.CreateAlignedStore(inverse, scaleOfLine(product, b.CreateAdd(line, i32(operand.firstLine))), Align(4));
      };
      if (first + threads() <= operand.shared.extent)
        load();
      else
        e.emitIf(b.CreateICmpULT(here.thread, i32(operand.shared.extent - first)), load);
    }
  }
}

/// Takes the scales out of the sums of the tile. (Signs say something else: LostBits.cpp.)
void DeviceContraction::unscale(const PlaneProduct &product, MutableArrayRef<Value *> sums) {
  // Places are a constant from the first, which the optimiser does not see.
  TilePlace first = groupSum(b, tile, here.thread, here.lane, i32(0));
  Value *ofRow = scaleOfLine(product, first.row);
  Value *ofColumn = scaleOfLine(product, b.CreateAdd(first.column, i32(product.column.firstLine)));
  auto load = [&](Value *place, Type *type, unsigned further) {
    Value *from = b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4);
    return b.CreateUnaryIntrinsic(Intrinsic::fabs,
                                  b.CreateAlignedLoad(type, from, Align(type->getPrimitiveSizeInBits() / 8)));
  };
  Value *rows[] = {load(ofRow, b.getFloatTy(), 0), load(ofRow, b.getFloatTy(), 8)}, *columns = nullptr;
  for (auto [number, sum] : enumerate(sums)) {
    if (number % 4 == 0) // of two neighbours, for two rows
      columns = load(ofColumn, FixedVectorType::get(b.getFloatTy(), 2), number * 2);
    sum = b.CreateFMul(b.CreateFMul(sum, rows[number / 2 % 2]), b.CreateExtractElement(columns, number % 2));
  }
}
