//===- TensorTile.h - A matrix product in tiles for tensor cores --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a GPU multiplies, how operands reach shared memory, and the shape of a block's tile. The
// strategy `contraction` writes the shape into the statement (attribute `tile`); code generation reads
// it there.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TENSORTILE_H
#define TEGULA_PASSES_TENSORTILE_H

#include "passes/TensorMap.h"

namespace tegula {

/// What tensor cores multiply. TF32 holds 11 bits of a significand: values that need more are a sum of
/// two such numbers, a large and a small one. F8 and I8 are bytes, floats or integers, each side in a format of its own.
enum class Multiplicand { F16, BF16, TF32, F8, I8 };

inline bool isBytes(Multiplicand type) { return type == Multiplicand::F8 || type == Multiplicand::I8; }
/// Of a number in shared memory, for warps.
inline unsigned bytesOf(Multiplicand type) { return type == Multiplicand::TF32 ? 4 : isBytes(type) ? 1 : 2; }

/// How a side's elements reach shared memory.
enum class Staging {
  Vectors,  // copied asynchronously, 16 bytes at a time
  Elements, // copied asynchronously one by one; what does not exist is 0
  Values    // evaluated in registers, then stored
};

struct ContractionOperand {
  Staging staging = Staging::Values;
  unsigned parts = 1;   ///< numbers of TF32 for a value
  bool isExact = false; ///< every value is a number of TF32
  /// Neighbours in shared memory are neighbours along the sum, not along rows or columns.
  bool alongSum = false;
  tgl::ReadOp read; ///< the side's only factor, where it is a read
  /// Elements are what the read finds at a place known without other reads; 0 where it does not exist.
  bool isPlain = false;
  /// Of vectors, where strides allow that boxes of them are copied.
  std::optional<TensorMap> map;
};

struct ProductOperands {
  Multiplicand type;
  ContractionOperand row, column;
  bool isRounded = false; ///< the program allows less than the accuracy of f32
  unsigned multiplications() const { return row.parts + column.parts - 1; }
};

/// How each product of the plan is multiplied; nothing where tensor cores cannot.
std::optional<llvm::SmallVector<ProductOperands>> describeOperands(const ContractionPlan &plan);

/// Which of a tensor's `count` matrices a point of the batch reads, where data chooses it and nothing else of the read
/// varies along the batch: points may share one.
struct ChosenMatrix {
  mlir::Value number; // of type index
  int64_t count;
};
std::optional<ChosenMatrix> chosenMatrix(const ContractionPlan &plan, const ContractionOperand &operand);
/// Matrices for a point of the batch: 1 where each has its own.
double shareOfMatrices(const ContractionPlan &plan, const ContractionOperand &operand);

/// Whether all that the products read, and something, is known to exist. `packed`: a launch before brings operands
/// into order.
bool canMultiplyByWarpgroups(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products, bool packed);

/// A block computes `rows` x `columns` elements with `warpRows` x `warpColumns` warps, each a rectangle
/// of 16 x 8 fragments. `splits` blocks share the sum of a tile: a cluster, or a second launch, adds up their parts (TileMemory.h).
///
/// With `warpgroups`, and where the machine has them (sm_90a), each four warps multiply together: 64 rows by all
/// columns of the tile where it has 128 rows, by half of them where it has 64. With `packed`
/// a launch before brings operands into the order in which they are copied, those of f32 split into what is multiplied.
/// With `shifted` as well, columns are windows of which a tile has one copy for all taps (ShiftedWindows). With `tail`, of
/// `warpgroups` whose blocks stay, all have part in the tiles that are left over (codegen/TailTiles.cpp).
struct TensorTile {
  int64_t rows, columns, warpRows, warpColumns, splits;
  bool warpgroups = false, packed = false, shifted = false, tail = false;
  /// Of so many tiles that share sums blocks with the same part of them follow each other (codegen/SplitSums.cpp).
  static constexpr int64_t fewTiles = 8;
  /// Of a part of a left tile's sum.
  static constexpr int64_t fewestStages = 4;
  /// Of the ring in shared memory, and tiles of rows that are neighbours in the order of blocks; 0: the usual.
  int64_t stages = 0, raster = 0;

  /// `128x64` by warps, `128x64-warpgroups`, `128x64-packed`, `128x64-shifted`, `128x64-tail`.
  std::string name() const;
  /// With the blocks that share a tile's sum: `128x64/1`, `64x64/8`.
  std::string fullName() const;
  bool isNamed(llvm::StringRef wanted) const { return wanted == name() || wanted == fullName(); }
  int64_t threads() const { return warpRows * warpColumns * 32; }
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  /// The tile that the strategy chose for the statement; nothing where it chose none.
  static std::optional<TensorTile> of(tgl::ParallelOp op);
};

/// The names of all tiles.
std::vector<std::string> tensorTileNames();

/// A tile that a statement can have, and the clocks that the model expects it to take.
struct RankedTile {
  TensorTile tile;
  double clocks = 0;
};

/// All that the statement can have, the fastest by the model first; none where the general strategy is to run it.
llvm::SmallVector<RankedTile> rankTiles(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products);
llvm::SmallVector<RankedTile> rankTiles(tgl::ParallelOp op);

/// What PipelineOptions::tensorTile asks of the statement with this number among those that can have tiles.
llvm::StringRef wantedTile(llvm::StringRef list, unsigned statement);

/// The tile for which the model expects the shortest time; nothing where the general strategy is to run
/// the statement. With a name that tile, where the statement can have it.
std::optional<TensorTile> chooseTile(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products,
                                     llvm::StringRef wanted = "");

/// The same of any statement.
std::optional<TensorTile> chooseTile(tgl::ParallelOp op, llvm::StringRef wanted = "");

} // namespace tegula

#endif // TEGULA_PASSES_TENSORTILE_H
