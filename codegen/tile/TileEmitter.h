//===- TileEmitter.h - The placed stage of the tile dialect as LLVM IR -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op of a placed kernel is translated by itself: its tiles are a thread's registers, in the
// order of their layout; regions of scalars are written out for each element by the emitter of
// scalar code. A point that does not exist repeats the last one that does: what it gives is not
// stored and does not count.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TILE_TILEEMITTER_H
#define TEGULA_CODEGEN_TILE_TILEEMITTER_H

#include "codegen/nvgpu/Mma.h"
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/tile/TileRoles.h"
#include "ir/tgl/Runs.h"
#include "ir/tile/Tile.h"

namespace tegula {

class TileEmitter : public DeviceEmitter {
public:
  TileEmitter(llvm::Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites,
              tile::KernelOp kernel)
      : DeviceEmitter(module, options, sites), kernel(kernel), roles(*this) {}

  /// Whether all passes of placement have run, so that there is something to translate.
  static bool canEmit(tile::KernelOp kernel) {
    return kernel.isPlaced() && kernel.getSharedBytes();
  }
  /// Blocks of the launch, where the host can tell.
  static std::optional<IndexExpr> numBlocks(tile::KernelOp kernel);
  /// Tensors whose addresses must be multiples of 16.
  static llvm::SmallVector<mlir::Value> alignedTensors(tile::KernelOp kernel);

  /// The kernel's body, in a function for the statement that it computes.
  void emit(tgl::ParallelOp statement, const llvm::Twine &name, const Inputs &inputs);

private:
  friend class TileRoles;
  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value *>;

  /// A span while the kernel runs.
  struct Span {
    Value *base, *end; ///< i64
    bool isFull;       ///< all of its points exist
  };
  /// What a thread has of a tile's rows and columns.
  struct Layout {
    TensorTile tile;  ///< as the fragments' functions take it
    TileCoord corner; ///< of the warp
    unsigned numRows; ///< rows of a thread
    unsigned numAccumulators;
  };

  tile::KernelOp kernel;
  Value *thread = nullptr, *lane = nullptr;  ///< i32
  Value *shared = nullptr;                   ///< the block's shared memory
  llvm::DenseMap<mlir::Value, Values> parts; ///< registers of tiles, states and tokens
  llvm::DenseMap<mlir::Value, Span> spans;
  TileRoles roles;

  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *wide(Value *value) { return b.CreateSExt(value, b.getInt64Ty()); }

  void setBlock();
  void emitOps(mlir::Block &block);
  /// The region of a point, at the indices and elements that its arguments have.
  void emitPoint(mlir::Block &point);
  void emitTileOp(mlir::Operation *op);
  void emitTileFor(tile::ForOp op);
  void emitAdvance(tile::AdvanceOp op);
  void emitStage(tile::StageOp op);
  void emitMma(tile::MmaOp op);
  void emitMap(tile::MapOp op);
  /// An operand that stays in registers.
  void emitOperand(tile::OperandOp op);
  /// The region at all points of a thread; with `hasFill`, 0 at columns that do not exist.
  Values emitPoints(tile::PointsOp op, tile::TileType type, bool hasFill);
  /// Sets the region's arguments to elements of its inputs.
  void setInputs(tile::PointsOp op, unsigned number, unsigned row);
  llvm::SmallVector<std::array<Value *, 4>> factorOf(mlir::Value factor, Mma &core,
                                                     unsigned rowBlocks, unsigned step);
  void emitInit(tile::InitOp op);
  void emitStateReduce(tile::ReduceOp op);
  void emitFinish(tile::FinishOp op);
  void emitStore(tile::StoreOp op);

  //===--- Copies (TileCopies.cpp) ---===//

  void emitCopy(tile::CopyOp op);
  /// A vector of a copy: line and position (i32) in the tile.
  struct CopyPlace {
    Value *line, *position;
  };
  void forCopies(tile::CopyOp op, unsigned vector, llvm::function_ref<void(CopyPlace)> body);
  /// Whether the element at the place exists; null: it does. Sets the region's indices, of an
  /// element that does.
  Value *setCopyPoint(tile::CopyOp op, CopyPlace place);
  /// Of an element of a tile in shared memory.
  Value *sharedAddress(mlir::Value tile, CopyPlace place);
  void emitUnpack(tile::UnpackOp op);
  void storeUnpacked(tile::UnpackOp op, CopyPlace place, Value *vector);
  static constexpr unsigned vectorBytes = 16; ///< that cp.async copies
  /// Copies of lines whose places are computed.
  void emitLineCopies(tile::CopyOp op, tgl::ReadOp read);
  /// Of 16 bytes from an element on, or of zeros where they do not exist (null: they do).
  void copyVector(tile::CopyOp op, CopyPlace place, const Buffer &buffer, Value *offset,
                  Value *exists);
  static MmaSharedLayout sharedLayout(tile::SharedType type);
  static MmaType mmaType(tile::SharedType type);

  //===--- Operands in registers (TileVectors.cpp) ---===//

  /// What a lane loads of a tile: runs of neighbours in memory, in vectors.
  struct VectorLoads {
    enum Direction { Columns, Rows, Elements } direction;
    unsigned rows, columns; ///< of a lane, that differ
    unsigned vector;        ///< elements of a load
    unsigned bits;          ///< of an element
    unsigned length() const {
      return direction == Columns ? columns : direction == Rows ? rows : 1;
    }
    unsigned words() const { return std::max(1u, vector * bits / 32); } ///< of a load
  };
  /// An operand whose elements are computed as they are multiplied.
  struct Stream {
    tile::OperandOp op;
    unsigned rows;     ///< of a lane
    int64_t vector;    ///< columns of a lane
    bool hasWholeRows; ///< lanes have all of their rows, or none
    Value *firstRow;   ///< of the lane; divided by `rows` where those are whole
    Value *chunk;      ///< the lane's first column, divided by `vector`
    Value *exists;     ///< whether its columns exist; null: they do
    tgl::Runs alongRows, alongColumns;
    /// Values by op or argument, row and column.
    llvm::DenseMap<std::pair<void *, std::pair<unsigned, unsigned>>, Value *> known;
  };
  void emitVectors(tile::VectorsOp op);
  void emitSumWarps(tile::SumWarpsOp op);
  void emitSlicedMma(tile::MmaOp op);
  void emitLinearStore(tile::StoreOp op);
  VectorLoads vectorLoads(tile::VectorsOp op) const;
  /// The neighbours of a run, as words or, where a load is smaller, numbers of its size.
  void loadRun(const Buffer &buffer, Value *address, const VectorLoads &loads, Value *exists,
               Values &parts);
  Value *elementOf(tile::VectorsOp op, llvm::ArrayRef<Value *> parts, unsigned row,
                   unsigned column);
  Stream startStream(tile::OperandOp op);
  Value *streamValue(Stream &stream, mlir::Value value, unsigned row, unsigned column);
  Value *streamInput(Stream &stream, mlir::BlockArgument input, unsigned row, unsigned column);
  /// Two neighbours of an input that are a word of what it loads, as the operand has them; else
  /// null.
  Value *loadedWord(Stream &stream, mlir::BlockArgument input, unsigned row, unsigned column);
  /// Two neighbours of the operand.
  Value *streamWord(Stream &stream, unsigned row, unsigned column);
  Value *rowOfLane(const Stream &stream, unsigned row);
  /// Number `number` of pieces of the span, each so long; the last that exists instead of others.
  Value *pieceOf(tile::SpanOp span, int64_t length, Value *number);
  /// Which of a line's lanes it is, over all slices.
  Value *laneOfLine();

  //===--- Layouts ---===//

  Layout layoutOf(llvm::ArrayRef<int64_t> shape, tile::FragmentLayout attribute);
  /// Row and column (i64) of accumulator `number`.
  std::pair<Value *, Value *> pointOf(const Layout &layout, unsigned number, const Span &rows,
                                      const Span &columns);
  Value *rowOf(const Layout &layout, unsigned row, const Span &rows);
  static unsigned rowNumber(const Layout &layout, unsigned accumulator);
  /// The last point that exists instead of one that does not.
  Value *clamp(Value *point, const Span &span);

  //===--- States ---===//

  /// Of a row: what Emitter accumulates; of sums a second number, what rounding took.
  unsigned partsOfState(tile::StateType type);
  Accumulator startOf(tile::StateType type);
  /// A row's values in the columns of a tile, in order; those that do not exist are the identity.
  Values valuesOfRow(tile::ReduceOp op, const Layout &layout, unsigned row);
  Accumulator takeExponentials(const Accumulator &before, llvm::ArrayRef<Value *> elements);
  Value *addExactly(Value *sum, Value *added, Value *&lost);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_TILE_TILEEMITTER_H
