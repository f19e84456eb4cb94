//===- PrepackOperands.cpp - Prepacks operands in a launch of its own -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles that lie in a row use the same rows, so what WarpSpecialization.cpp does to an element is
// done again by each of them, and takes all of the way from memory through registers to shared
// memory. Here a launch before does it once: it leaves the two planes of f16 in the workspace as
// the very bytes that a stage of shared memory is to hold, tile by tile and stage by stage, and for
// each line one over its scale, or NaN where the line is not fit for such planes. Producers then
// copy them asynchronously. Rows beyond the last are the last again.
//
// Numbers of 16 bits that do not come in vectors (rows of an odd length, windows) are brought into
// that order alike: they are their only plane, without a scale.
//
// The scale is that of WarpSpecialization.cpp, found from as many of a line's first points as a
// block loads at a time.
//
// Where data chooses which of a tensor's matrices a point of the batch reads, each matrix is packed
// once, and tiles find out whose planes they copy.
//
// A side of windows is packed element by element instead (PrepackWindows.cpp).
//
// The workspace of each product: planes of rows, of columns; scales of rows, of columns.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// Lines of a block that packs: neighbours in memory are then read by whole sectors whichever way
/// they lie.
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
std::vector<DeviceContraction::PrepackedOperand>
DeviceContraction::prepackedOperands(IndexExpr &bytes) const {
  std::vector<PrepackedOperand> sides;
  bytes = 0;
  IndexExpr batches = here.pointsOnHost(axes, plan.batch);
  for (auto [planned, how, pack] : zip_equal(plan.products, products, prepacked)) {
    auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(planned.reduce).getOperation());
    unsigned substeps = std::max(how.a.terms, how.b.terms);
    IndexExpr points = pack.order.padded ? IndexExpr(pack.order.points(summed))
                                         : here.pointsOnHost(summed, pack.order.axes);
    int64_t depth =
        isBytes(how.type) ? WgmmaSharedLayout::lineBytes : WgmmaSharedLayout::lineElements;
    IndexExpr stages = ceilDivOnHost(points, depth) * int64_t(substeps);
    auto place = [&](int64_t each, const IndexExpr &count) {
      IndexExpr start = bytes;
      bytes = bytes + ceilDivOnHost(count * each, areaAlignment) * areaAlignment;
      return start;
    };
    for (bool ofRows : {true, false}) {
      int64_t extent = ofRows ? tile.rows : tile.columns;
      PrepackedOperand side;
      const std::optional<WindowOperand> &window = ofRows ? pack.a : pack.b;
      auto scales = [&](int64_t each, const IndexExpr &count) {
        return usesSplitPrecision() ? place(each, count) : IndexExpr(0);
      };
      if (window) {
        unsigned terms = ofRows ? how.a.terms : how.b.terms;
        bool isHaloSide = usesHaloTile() && !ofRows;
        int64_t pixels = isHaloSide ? halo->pixels : window->pixels;
        side.blocks = window->images * blocksOfImage(*window, pixels);
        side.terms = place(2 * terms, window->images * pixels * window->keptChannels());
        side.scales = scales(sizeof(float), window->images);
        sides.push_back(std::move(side));
        continue;
      }
      std::optional<ChosenMatrix> chosen = chosenMatrix(plan, ofRows ? how.a : how.b);
      IndexExpr sets = chosen ? IndexExpr(chosen->count) : batches;
      if (chosen)
        side.matrix = chosen->number;
      side.tiles =
          ceilDivOnHost(here.pointsOnHost(axes, ofRows ? plan.rows : plan.columns), extent);
      side.stages = stages;
      side.blocks = sets * side.tiles * (extent / linesOfBlock);
      side.terms = place(extent * WgmmaSharedLayout::lineBytes, sets * side.tiles * stages);
      side.scales = scales(extent * sizeof(float), sets * side.tiles);
      sides.push_back(std::move(side));
    }
  }
  return sides;
}

IndexExpr DeviceContraction::prepackedBytes() const {
  IndexExpr bytes = 0;
  if (isPrepacked())
    prepackedOperands(bytes);
  return bytes;
}

/// Which of the side's sets of planes, each of all lines, the tile that is set uses (i64): the
/// batch point's, or those of the matrix that data chooses for it.
llvm::Value *DeviceContraction::prepackedTermsAt(const WgmmaOperand &operand,
                                                 const PrepackedOperand &side) {
  if (!side.matrix)
    return batch;
  if (side.matrix != matrixToPrepack) {
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
llvm::Value *DeviceContraction::prepackedTermsOf(const WgmmaOperand &operand,
                                                 const PrepackedOperand &side, Value *stage) {
  Value *tileNumber = b.CreateUDiv(operand.group->first, i64(operand.group->extent));
  tileNumber =
      b.CreateAdd(b.CreateMul(prepackedTermsAt(operand, side), e.emitSize(side.tiles)), tileNumber);
  Value *number = b.CreateAdd(b.CreateMul(tileNumber, e.emitSize(side.stages)), stage);
  Value *offset =
      b.CreateAdd(e.emitSize(side.terms), b.CreateMul(number, i64(operand.shared.bytes())));
  return b.CreateInBoundsGEP(b.getInt8Ty(), prepackedBase, offset);
}

/// Where one over the scale of a line (i64) of that tile lies.
llvm::Value *DeviceContraction::scaleAddress(const WgmmaProduct &product,
                                             const WgmmaOperand &operand,
                                             const PrepackedOperand &side, Value *line) {
  Value *number;
  if (operand.window) {
    number = imageOf(product, operand, numberOf(operand, line, 1));
  } else {
    Value *lines = b.CreateMul(e.emitSize(side.tiles), i64(operand.group->extent));
    number = b.CreateAdd(b.CreateMul(prepackedTermsAt(operand, side), lines),
                         b.CreateAdd(operand.group->first, line));
  }
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), prepackedBase, e.emitSize(side.scales));
  return b.CreateInBoundsGEP(b.getFloatTy(), base, number);
}

//===----------------------------------------------------------------------===//
// The launch before
//===----------------------------------------------------------------------===//

IndexExpr DeviceContraction::prepackBlocks() const {
  IndexExpr bytes = 0, blocks = 0;
  for (const PrepackedOperand &side : prepackedOperands(bytes))
    blocks = blocks + side.blocks;
  return blocks;
}

/// The largest values of lines: of their first points, and of all.
unsigned DeviceContraction::prepackSharedBytes() { return 2 * linesOfBlock * sizeof(float); }

/// A block's lines, from `number` (i64) times `linesOfBlock` on.
void DeviceContraction::prepackLines(const WgmmaProduct &product, WgmmaOperand operand,
                                     const PrepackedOperand &side, Value *number) {
  Group group = *operand.group;
  operand.group = &group;
  int64_t blocksOfTile = group.extent / linesOfBlock;
  Value *blocksOfSet = b.CreateMul(e.emitSize(side.tiles), i64(blocksOfTile)),
        *set = b.CreateUDiv(number, blocksOfSet);
  number = b.CreateURem(number, blocksOfSet);
  batch = side.matrix ? i64(0) : set;
  here.setNumber(axes, plan.batch, false, batch);
  SaveAndRestore prepacked(matrixToPrepack, side.matrix);
  if (side.matrix)
    e.values[side.matrix] = set;
  group.first = b.CreateMul(b.CreateUDiv(number, i64(blocksOfTile)), i64(group.extent));
  Value *firstLine = b.CreateMul(
      b.CreateTrunc(b.CreateURem(number, i64(blocksOfTile)), b.getInt32Ty()), i32(linesOfBlock));

  // Threads side by side have neighbours in memory.
  unsigned chunks = prepackThreads() / linesOfBlock; // side by side
  bool kMajor = operand.how->kMajor;
  Value *ownLine = kMajor ? b.CreateUDiv(here.thread, i32(chunks))
                          : b.CreateURem(here.thread, i32(linesOfBlock));
  Value *ownChunk = kMajor ? b.CreateURem(here.thread, i32(chunks))
                           : b.CreateUDiv(here.thread, i32(linesOfBlock));
  Value *line = b.CreateAdd(firstLine, ownLine);
  Value *lineNumber = numberOf(operand, wide(line), 1);

  unsigned chunksOfStage = operand.shared.chunksPerLine();
  Value *allChunks = b.CreateMul(e.emitSize(side.stages), i64(chunksOfStage));
  Value *lastChunk = b.CreateSub(allChunks, i64(1));
  auto load = [&](Value *chunk) { // the last one again where there is none
    chunk = b.CreateBinaryIntrinsic(Intrinsic::smin, chunk, lastChunk);
    return loadChunkAt(product, operand, b.CreateMul(chunk, i64(operand.shared.chunkElements())),
                       lineNumber);
  };
  Wgmma warps = wgmmaFor(product);
  auto store = [&](Value *chunkNumber, ArrayRef<Value *> terms) {
    e.emitIf(b.CreateICmpSLT(chunkNumber, allChunks), [&] {
      Value *stage = prepackedTermsOf(operand, side, b.CreateUDiv(chunkNumber, i64(chunksOfStage)));
      Value *inLine = b.CreateTrunc(b.CreateURem(chunkNumber, i64(chunksOfStage)), b.getInt32Ty());
      for (unsigned term = 0; term < operand.shared.terms;
           ++term) { // what is copied is known to the last byte
        Value *offset = warps.swizzledOffset(operand.shared, line, inLine, term);
        Value *chunk =
            term < operand.terms ? terms[term] : Constant::getNullValue(terms.front()->getType());
        b.CreateAlignedStore(chunk, b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), Align(16));
      }
    });
  };
  if (!usesSplitPrecision()) {
    e.emitLoop(
        i64(0), allChunks, i64(chunks), {},
        [&](Value *first, ArrayRef<Value *>) {
          Value *chunkNumber = b.CreateAdd(first, wide(ownChunk));
          store(chunkNumber, load(chunkNumber));
          return SmallVector<Value *>();
        },
        "span");
    return;
  }

  auto largestAt = [&](Value *inBlock) {
    return here.sharedAt(b.CreateMul(inBlock, i32(sizeof(float))));
  };
  auto leastAt = [&](Value *inBlock) { return largestAt(b.CreateAdd(inBlock, i32(linesOfBlock))); };
  auto loadWord = [&](Value *place) {
    return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4));
  };
  e.emitIf(b.CreateICmpULT(here.thread, i32(linesOfBlock)), [&] {
    b.CreateAlignedStore(i32(0), largestAt(here.thread), Align(4));
    b.CreateAlignedStore(i32(-1), leastAt(here.thread), Align(4));
  });
  barrier();
  noteLargest(largestAt(ownLine), leastAt(ownLine), largestOf(load(wide(ownChunk))));
  barrier();
  Value *largest = loadWord(largestAt(ownLine)), *scale = scaleOf(largest, /*isInverse=*/false);
  e.emitIf(b.CreateICmpEQ(ownChunk, i32(0)), [&] {
    Value *inverse = inverseScale(largest, loadWord(leastAt(ownLine)));
    b.CreateAlignedStore(inverse, scaleAddress(product, operand, side, wide(line)), Align(4));
  });
  e.emitLoop(
      i64(0), allChunks, i64(chunks), {},
      [&](Value *first, ArrayRef<Value *>) {
        Value *chunkNumber = b.CreateAdd(first, wide(ownChunk));
        store(chunkNumber, splitChunk(load(chunkNumber), scale, operand.terms));
        return SmallVector<Value *>();
      },
      "span");
}

void DeviceContraction::emitPrepack(Value *workspace) {
  here.begin();
  prepackedBase = workspace;
  split = i64(0); // steps are those of all parts
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides = prepackedOperands(bytes);
  Value *number = wide(here.block);
  for (unsigned which = 0; which < products.size(); ++which) {
    WgmmaProduct product = makeWgmmaProduct(which);
    for (bool ofRows : {true, false}) {
      const PrepackedOperand &side = sides[2 * which + !ofRows];
      Value *blocks = e.emitSize(side.blocks);
      Value *isHere = b.CreateAnd(b.CreateICmpSGE(number, i64(0)), b.CreateICmpSLT(number, blocks));
      const WgmmaOperand &operand = ofRows ? product.a : product.b;
      e.emitIf(isHere, [&] {
        operand.window ? prepackPixels(product, operand, side, number)
                       : prepackLines(product, operand, side, number);
      });
      number = b.CreateSub(number, blocks);
    }
  }
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Starts the copies of stage `number` (i64, of the whole sum).
void DeviceContraction::copyLines(const WgmmaOperand &operand, const PrepackedOperand &side,
                                  Value *number, Value *stage) {
  constexpr unsigned copyBytes = 16;
  Value *from = prepackedTermsOf(operand, side, number);
  from = b.CreateInBoundsGEP(b.getInt8Ty(), from, wide(b.CreateMul(here.thread, i32(copyBytes))));
  Value *to = b.CreateAdd(b.CreateMul(here.thread, i32(copyBytes)), i32(operand.offset));
  to = b.CreateInBoundsGEP(b.getInt8Ty(), stage, to);
  for (unsigned offset = 0; offset < operand.shared.bytes();
       offset += producerThreads() * copyBytes)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_cg_shared_global_16,
                      {b.CreateInBoundsGEP(b.getInt8Ty(), to, i32(offset)),
                       b.CreateInBoundsGEP(b.getInt8Ty(), from, i64(offset))});
}

/// Starts the copies of the block's stage `number` (i64).
void DeviceContraction::copyPrepacked(const WgmmaProduct &product, Value *number, Value *stage) {
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides = prepackedOperands(bytes);
  Value *step = stepInKLoop(product.kLoop, b.CreateUDiv(number, i64(product.substeps)));
  Value *inSum = b.CreateAdd(b.CreateMul(step, i64(product.substeps)),
                             b.CreateURem(number, i64(product.substeps)));
  for (bool ofRows : {true, false}) {
    const WgmmaOperand &operand = ofRows ? product.a : product.b;
    const PrepackedOperand &side = sides[2 * product.number + !ofRows];
    if (operand.usesHaloTile)
      e.emitIf(b.CreateICmpEQ(b.CreateURem(number, i64(product.substeps)), i64(0)),
               [&] { loadHalo(product, side, b.CreateUDiv(number, i64(product.substeps))); });
    else if (operand.window)
      copyWindows(product, operand, side, inSum, stage);
    else
      copyLines(operand, side, inSum, stage);
  }
}

/// What is under way of a block's copies before the first tile, as produceCopies takes it.
SmallVector<Value *> DeviceContraction::noCopies() {
  return SmallVector<Value *>(usesBulkLoads() ? 0 : copiesAhead(), async::noCopies(b));
}

/// Starts the copies of a tile's stages, in the order of all that go through the ring. Consumers
/// are told of a stage `copiesAhead` stages later, so that so many are under way; of the block's
/// last ones by endCopies. `before`: those under way before, of the first stage first; what comes
/// back is the same after the tile.
SmallVector<Value *> DeviceContraction::produceCopies(const WgmmaProduct &product,
                                                      ArrayRef<Value *> before) {
  if (usesBulkLoads()) {
    produceBulkLoads(product);
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
        if (isPrepacked())
          copyPrepacked(product, number, stageAddress(product, stage));
        else
          copyChunks(product, stepInKLoop(product.kLoop, number), stageAddress(product, stage));
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
void DeviceContraction::endCopies(const WgmmaProduct &product, Value *total) {
  if (usesBulkLoads()) // barriers know
    return;
  async::awaitAllCopies(b);
  Value *stages = b.CreateTrunc(total, b.getInt32Ty());
  for (unsigned before = copiesAhead(); before > 0; --before)
    e.emitIf(b.CreateICmpUGE(stages, i32(before)),
             [&] { async::commit(b, rings[product.number], b.CreateSub(stages, i32(before))); });
}

/// Where one over the scale of a line is.
Value *DeviceContraction::scaleOfLine(const WgmmaProduct &product, Value *line) {
  if (!isPrepacked())
    return lineScaleAddress(LineValue::InverseScale, line);
  return lineScaleWord(product.scalesBefore ? b.CreateAdd(product.scalesBefore, line) : line);
}

/// Brings one over the scale of each line to shared memory; consumers see it once the first stage
/// is there.
void DeviceContraction::loadScales(const WgmmaProduct &product) {
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides = prepackedOperands(bytes);
  for (bool ofRows : {true, false}) {
    const WgmmaOperand &operand = ofRows ? product.a : product.b;
    for (unsigned first = 0; first < operand.shared.extent; first += threads()) {
      Value *line = b.CreateAdd(here.thread, i32(first));
      auto load = [&] {
        Value *address =
            scaleAddress(product, operand, sides[2 * product.number + !ofRows], wide(line));
        LoadInst *inverse = b.CreateAlignedLoad(b.getFloatTy(), address, Align(4));
        inverse->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
        b.CreateAlignedStore(
            inverse, scaleOfLine(product, b.CreateAdd(line, i32(operand.firstLine))), Align(4));
      };
      if (first + threads() <= operand.shared.extent)
        load();
      else
        e.emitIf(b.CreateICmpULT(here.thread, i32(operand.shared.extent - first)), load);
    }
  }
}

/// Takes the scales out of the sums of the tile. (Signs say something else: AccuracyCheck.cpp.)
void DeviceContraction::unscale(const WgmmaProduct &product,
                                MutableArrayRef<Value *> accumulators) {
  // Places are a constant from the first, which the optimiser does not see.
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  Value *ofRow = scaleOfLine(product, first.row);
  Value *ofColumn = scaleOfLine(product, b.CreateAdd(first.column, i32(product.b.firstLine)));
  auto load = [&](Value *place, Type *type, unsigned further) {
    Value *from = b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4);
    return b.CreateUnaryIntrinsic(
        Intrinsic::fabs,
        b.CreateAlignedLoad(type, from, Align(type->getPrimitiveSizeInBits() / 8)));
  };
  Value *rows[] = {load(ofRow, b.getFloatTy(), 0), load(ofRow, b.getFloatTy(), 8)},
        *columns = nullptr;
  for (auto [number, sum] : enumerate(accumulators)) {
    if (number % 4 == 0) // of two neighbours, for two rows
      columns = load(ofColumn, FixedVectorType::get(b.getFloatTy(), 2), number * 2);
    sum = b.CreateFMul(b.CreateFMul(sum, rows[number / 2 % 2]),
                       b.CreateExtractElement(columns, number % 2));
  }
}
