//===- TensorTile.h - Tile shapes for tensor cores --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the operands of a matrix product on a GPU (element type, staging) and the shape of a
// block's tile. The strategy `contraction` chooses the shape by a cost model and writes it into the
// statement (attribute `tile`), where code generation reads it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_TENSORTILE_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_TENSORTILE_H

#include "strategies/contraction/plan/TmaOperand.h"

namespace tegula {

/// Element type of an MMA. TF32 has 11 bits of significand; an f32 that needs more is the sum of
/// two terms, a large and a small one (3xTF32). F8 and I8 are 8-bit floats and integers; A and B
/// may differ in format.
enum class MmaType { F16, BF16, TF32, F8, I8 };

inline bool isBytes(MmaType type) { return type == MmaType::F8 || type == MmaType::I8; }
/// Bytes of an element in shared memory, for mma.sync.
inline unsigned bytesOf(MmaType type) { return type == MmaType::TF32 ? 4 : isBytes(type) ? 1 : 2; }

/// How a side's elements reach shared memory.
enum class Staging {
  Vectors,  // copied asynchronously, 16 bytes at a time
  Elements, // copied asynchronously one by one; what does not exist is 0
  Values    // evaluated in registers, then stored
};

struct ContractionOperand {
  Staging staging = Staging::Values;
  unsigned terms = 1;   ///< TF32 terms of an element
  bool isExact = false; ///< whether one term holds every element exactly
  /// Whether every element is a number of f16, of bf16, or an integer of 8 bits.
  bool fitsF16 = false, fitsBF16 = false, isByte = false;
  /// K-major in shared memory: neighbours are neighbours along k; else M- or N-major.
  bool kMajor = false;
  tgl::ReadOp read; ///< the operand's only factor, if it is a read
  /// Whether elements are copies of what `read` reads, at subscripts that depend on no other read;
  /// 0 outside of the tensor.
  bool isPlain = false;
  /// The TMA view of the operand, if its strides allow one.
  std::optional<TmaOperand> tma;
};

struct ProductOperands {
  MmaType type;
  ContractionOperand a, b;
  bool isRounded = false; ///< whether the program allows less than f32 accuracy
  unsigned multiplications() const { return a.terms + b.terms - 1; }
};

/// Describes the operands of each product of the plan; nothing if tensor cores cannot multiply
/// them.
Matched<llvm::SmallVector<ProductOperands>>
describeOperands(const ContractionPlan &plan, tgl::PointsOf *pointsOf = tgl::plannedPoints);

/// A statement whose products tensor cores can multiply.
struct TensorProduct {
  ContractionPlan plan;
  llvm::SmallVector<ProductOperands> operands; ///< of each product of the plan
};
Matched<TensorProduct> matchTensorProduct(tgl::ParallelOp op);

/// The matrix that data chooses for a batch point (grouped GEMM): one of `count`. Points may share
/// one.
struct ChosenMatrix {
  mlir::Value number; // index of the matrix
  int64_t count;
};
std::optional<ChosenMatrix> chosenMatrix(const ContractionPlan &plan,
                                         const ContractionOperand &operand);
/// Matrices per batch point: 1 if each point has its own.
double shareOfMatrices(const ContractionPlan &plan, const ContractionOperand &operand);

/// Whether wgmma can multiply the products: all elements are known to exist, and there are some.
/// `prepacked`: a launch before reorders the operands.
bool canUseWgmma(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products,
                 bool prepacked);

/// Whether warpgroups can multiply the products in terms of bf16, which have the range of f32: each
/// is of a factor of f32 and one whose elements are numbers of bf16.
bool canUseBF16Terms(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products);
/// The operands as such warpgroups have them: numbers of bf16 come as they are in memory.
llvm::SmallVector<ProductOperands> operandsOfBF16Terms(const ContractionPlan &plan,
                                                       llvm::ArrayRef<ProductOperands> products);

/// A block's tile: `rows` x `columns` elements by `warpRows` x `warpColumns` warps of 16 x 8
/// fragments. Split-K: `splits` blocks share a tile, and a cluster reduction or a second launch
/// adds up their partial sums (TileMemory.h).
///
/// - `warpgroups`: wgmma on sm_90a. A warpgroup computes 64 rows by all columns (tiles of 128 rows)
///   or half of them (64 rows).
/// - `prepacked`: a launch before reorders the operands, and splits those of f32 into terms.
/// - `halo`: prepacked as well; one halo tile of the image serves all filter taps (HaloTile).
/// - `tail`: persistent blocks split the last partial wave over K (SplitKTail.cpp).
/// - `joint`: products that have their rows in common lie side by side in the columns of a tile.
/// - `accumulated`: products that are only added go one after the other into the same accumulators.
/// - `terms`: a factor of f32 is multiplied as terms of bf16.
/// - `parts`: a sum is the sum of parts in a fixed order.
struct TensorTile {
  int64_t rows, columns, warpRows, warpColumns, splits;
  bool warpgroups = false, prepacked = false, halo = false, tail = false;
  /// Up to this many split tiles, blocks are numbered slice by slice: neighbours read the same K
  /// range (SplitK.cpp).
  static constexpr int64_t maxTilesByPart = 8;
  /// Minimum of stages in a K slice of the last wave.
  static constexpr int64_t minStagesOfSplit = 4;
  /// Stages of the ring, and tiles along M that follow each other in the raster order of blocks; 0:
  /// the default.
  int64_t stages = 0, raster = 0;
  /// How many products share the tile: `columns` are theirs together, those of the first product
  /// before those of the second. A thread then has all products' sums of an element.
  int64_t joint = 1;
  bool accumulated = false;
  /// Terms of bf16 of a factor of f32, beside one of bf16, by warpgroups; 0: terms of f16 or TF32.
  int64_t terms = 0;
  /// Parts of each sum, added up in order: by `splits` blocks, as many, or by one, one after the
  /// other. 0: as many as `splits`, which are added up in a cluster where that is faster.
  int64_t parts = 0;
  int64_t sumParts() const { return parts ? parts : splits; }

  /// Columns of the statement that the tile computes.
  int64_t statementColumns() const { return columns / joint; }
  /// Whether one mainloop computes all products.
  bool hasOneMainloop() const { return joint > 1 || accumulated; }
  /// `128x64` by warps, `128x64-warpgroups`, `128x64-packed`, `128x64-shifted`, `128x64-tail`,
  /// `128x256-joint`, `128x256-accumulated`, `128x64-terms`.
  std::string name() const;
  /// The name with the number of splits: `128x64/1`, `64x64/8`.
  std::string fullName() const;
  bool isNamed(llvm::StringRef wanted) const { return wanted == name() || wanted == fullName(); }
  int64_t threads() const { return warpRows * warpColumns * 32; }
  /// Of the statement.
  static constexpr llvm::StringLiteral attributeName = "tile";
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

/// All tiles that the statement can have, the fastest by the cost model first; none if the general
/// strategy should run it.
llvm::SmallVector<RankedTile> rankTiles(const ContractionPlan &plan,
                                        llvm::ArrayRef<ProductOperands> products,
                                        Mismatch *why = nullptr);
llvm::SmallVector<RankedTile> rankTiles(tgl::ParallelOp op, Mismatch *why = nullptr);
/// As rankTiles. In a kernel with `invariant` what these tell of M is the same for all M; here
/// tiles are ranked for the class that its code is for, those alone whose sums have the order that
/// the first of rankTiles gives them, and operands have its extents.
llvm::SmallVector<RankedTile> rankTilesOfClass(TensorProduct &product, Mismatch *why = nullptr);

/// The entry of PipelineOptions::tensorTile for statement `statement` among those that can have
/// tiles.
llvm::StringRef wantedTile(llvm::StringRef list, unsigned statement);

/// The tile for which the model expects the shortest time; nothing where the general strategy is to
/// run the statement. With a name that tile, where the statement can have it.
std::optional<TensorTile> chooseTile(const ContractionPlan &plan,
                                     llvm::ArrayRef<ProductOperands> products,
                                     llvm::StringRef wanted = "");

/// The tile of a statement that need not be a matrix product.
Matched<TensorTile> chooseTile(tgl::ParallelOp op, llvm::StringRef wanted = "");

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_TENSORTILE_H
