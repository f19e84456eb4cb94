//===- DrawLayout.cpp - Draws layouts as text -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that emit code for a place are given constants, and the builder folds what they
// emit.
//
//===----------------------------------------------------------------------===//
#include "codegen/nvgpu/Fragments.h"
#include "codegen/nvgpu/Mma.h"
#include "codegen/nvgpu/TileLayout.h"
#include "codegen/nvgpu/Wgmma.h"
#include "ir/tgl/Tgl.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace llvm;

namespace tegula {
namespace {

constexpr unsigned chunkBytes = 16, banks = 32, bankBytes = 4;
/// Chunks of a line that are drawn: XOR exchanges within so many.
constexpr unsigned maxDrawnChunks = 8;
/// Rounds of a row that are drawn, beside the last one.
constexpr int64_t firstRounds = 2;

class Drawing {
public:
  explicit Drawing(const TileLayout &layout) : layout(layout) {}

  std::string run() {
    const TensorTile &tile = layout.tile;
    os << layout.function << ": a tile of " << tile.rows << " x " << tile.columns
       << " for a block, ";
    if (layout.usesWgmma)
      os << tile.threads() / Wgmma::threads << " warpgroups of " << Wgmma::rows << " x "
         << warpgroupColumns(tile) << " by wgmma"
         << (!layout.isWarpSpecialized ? ""
             : layout.hasCopyProducers ? ", and one that copies operands"
                                       : ", as many that stage operands");
    else
      os << tile.warpRows << " x " << tile.warpColumns << " warps of " << tile.rows / tile.warpRows
         << " x " << tile.columns / tile.warpColumns << " by mma.sync";
    if (tile.splits > 1)
      os << "; " << tile.splits << " blocks share the sum of a tile";
    os << "\n  dynamic shared memory: " << layout.sharedBytes << " bytes\n";
    for (auto [number, product] : enumerate(layout.products)) {
      os << "\n  product";
      if (layout.products.size() > 1)
        os << ' ' << number;
      os << ": " << typeName(product.type);
      if (product.multiplications > 1)
        os << ", values as a large and a small number, " << product.multiplications
           << " products of them";
      os << ", " << product.stages << " stages of " << product.a.bytes() + product.b.bytes()
         << " bytes\n";
      operand("rows", product.a);
      operand("columns", product.b);
    }
    accumulators();
    return std::move(text);
  }

private:
  Value *i32(uint64_t value) { return b.getInt32(value); }
  static unsigned number(Value *value) { return cast<ConstantInt>(value)->getZExtValue(); }

  StringRef typeName(MmaType type) const {
    switch (type) {
    case MmaType::F16:
      return "f16";
    case MmaType::BF16:
      return "bf16";
    case MmaType::TF32: // warpgroups have no f32 but as numbers of f16
      return layout.usesWgmma ? "f32 as f16, scaled" : "tf32";
    case MmaType::F8:
      return "f8";
    case MmaType::I8:
      return "i8";
    }
    llvm_unreachable("a type of multiplicands");
  }

  void operand(StringRef name, const OperandLayout &operand) {
    os << "  " << name << ": " << operand.source
       << (operand.isCopied ? ", copied asynchronously" : "") << ", at " << operand.offset << '\n';
    if (const auto *shared = std::get_if<MmaSharedLayout>(&operand.tile))
      sharedTile(*shared);
    else if (const auto *halo = std::get_if<HaloLayout>(&operand.tile))
      patchOf(*halo);
    else
      planeTile(std::get<WgmmaSharedLayout>(operand.tile));
  }

  void sharedTile(const MmaSharedLayout &tile) {
    Mma core(b, MmaType::TF32); // places do not depend on the type
    unsigned inChunk = chunkBytes / tile.elementBytes;
    auto offset = [&](unsigned line, unsigned position) {
      return number(core.offset(tile, i32(line), i32(position)));
    };
    os << "    " << tile.lines() << " lines [" << (tile.kMajor ? "row" : "k") << "] of "
       << tile.lineLength() << " elements of " << 8 * tile.elementBytes << " bits\n";
    unsigned chunks = tile.pitch() / chunkBytes;
    lines(tile.lines(), chunks, [&](unsigned line, unsigned chunk) {
      return (offset(line, chunk * inChunk) - line * tile.pitch()) / chunkBytes;
    });
    // A warp loads eight chunks at a time, one below the other (ldmatrix), or single words of four
    // lines.
    bool byWords = !tile.kMajor && tile.elementBytes == 4;
    unsigned deep = byWords ? 4 : 8, wide = byWords ? 8 : inChunk, worst = 1;
    for (unsigned first = 0; first < tile.lines(); first += deep)
      for (unsigned start = 0; start < tile.lineLength(); start += wide) {
        std::map<unsigned, std::set<unsigned>> words; // by bank
        for (unsigned line = first; line < first + deep; ++line)
          for (unsigned position = start; position < start + wide; ++position) {
            unsigned word = offset(line, position) / bankBytes;
            words[word % banks].insert(word);
          }
        for (const auto &[bank, different] : words)
          worst = std::max<unsigned>(worst, different.size());
      }
    os << "    loads of " << deep << " lines at a time: ";
    if (worst == 1)
      os << "every bank once\n";
    else
      os << "up to " << worst << " words of a bank\n";
  }

  void patchOf(const HaloLayout &halo) {
    os << "    " << halo.haloBuffers << " patches of " << halo.bytesOfHalo << " bytes for "
       << halo.taps << " taps: " << halo.runs << " [run of channels] x " << halo.terms
       << " [plane] x [pixel] x 8 [channel]"
       << " of 16-bit elements\n    pixels of the padded image from that of the tile's first "
          "column: ";
    interleaveComma(halo.pixels, os,
                    [&](const auto &stretch) { os << stretch.first << " to " << stretch.second; });
    os << "\n    no swizzle: eight pixels from any on are every bank once\n";
  }

  void planeTile(const WgmmaSharedLayout &tile) {
    Wgmma group(b, /*isBF16=*/false);
    unsigned numLines = tile.kMajor ? tile.extent : tile.depth();
    os << "    " << numLines << " lines [" << (tile.kMajor ? "row" : "k") << "] of "
       << tile.chunksPerLine()
       << (tile.elementBytes == 1 ? " chunks of sixteen bytes"
                                  : " chunks of eight 16-bit elements");
    if (tile.terms > 1)
      os << ", those of small numbers after them";
    if (!tile.kMajor)
      os << ", in panels of 64 rows";
    os << "; the 128-byte swizzle of wgmma\n";
    unsigned chunksPerTerm = std::min(tile.chunksPerLine(), maxDrawnChunks);
    lines(numLines, chunksPerTerm * tile.terms, [&](unsigned line, unsigned chunk) {
      unsigned place = number(
          group.swizzledOffset(tile, i32(line), i32(chunk % chunksPerTerm), chunk / chunksPerTerm));
      return (place - line * WgmmaSharedLayout::lineBytes) / chunkBytes;
    });
  }

  /// The chunks of lines where they lie, up to the line that is like the first.
  void lines(unsigned count, unsigned chunks,
             function_ref<unsigned(unsigned line, unsigned chunk)> placeOf) {
    unsigned drawn = std::min(chunks, maxDrawnChunks);
    auto orderOf = [&](unsigned line) {
      std::vector<unsigned> order(drawn);
      for (unsigned chunk = 0; chunk < drawn; ++chunk)
        order[placeOf(line, chunk)] = chunk;
      return order;
    };
    std::vector<unsigned> first = orderOf(0);
    os << "    line   chunks of 16 bytes in the order of addresses\n";
    for (unsigned line = 0; line < count; ++line) {
      std::vector<unsigned> order = orderOf(line);
      if (line && order == first) {
        os << "     ...   and again\n";
        return;
      }
      os << format("    %4u  ", line);
      for (unsigned chunk : order)
        os << ' ' << chunk;
      if (chunks > drawn)
        os << " ..., alike for each " << drawn;
      os << '\n';
    }
  }

  TileCoord sum(unsigned thread, unsigned index) {
    Value *lane = i32(thread % 32);
    return layout.usesWgmma
               ? wgmmaAccumulatorAt(b, layout.tile, i32(thread), lane, i32(index))
               : mmaAccumulatorAt(b, layout.tile, warpCorner(b, layout.tile, i32(thread)), lane,
                                  index);
  }

  void accumulators() {
    const TensorTile &tile = layout.tile;
    unsigned each = accumulatorsPerThread(tile);
    std::vector<std::pair<unsigned, unsigned>> holder(tile.rows * tile.columns); // thread, register
    std::vector<unsigned> holders(holder.size());
    for (unsigned thread = 0; thread < tile.threads(); ++thread)
      for (unsigned index = 0; index < each; ++index) {
        TileCoord place = sum(thread, index);
        unsigned at = number(place.row) * tile.columns + number(place.column);
        holder[at] = {thread, index};
        ++holders[at];
      }
    os << "\n  sums: " << each << " registers of each thread, "
       << (all_of(holders, [](unsigned n) { return n == 1; })
               ? "every element once"
               : "elements held by none, or by several: wrong")
       << "\n  warps that hold them, by blocks of 16 x 16\n";
    for (unsigned row = 0; row < tile.rows; row += 16) {
      os << format("    %4u  ", row);
      for (unsigned column = 0; column < tile.columns; column += 16)
        os << format(" %2u", holder[row * tile.columns + column].first / 32);
      os << '\n';
    }
    os << "  lane.register of the first 16 x 8\n    row    ";
    for (unsigned column = 0; column < 8; ++column)
      os << format("%6u", column);
    os << '\n';
    for (unsigned row = 0; row < 16; ++row) {
      os << format("    %4u   ", row);
      for (unsigned column = 0; column < 8; ++column) {
        auto [thread, index] = holder[row * tile.columns + column];
        os << right_justify(utostr(thread % 32) + "." + utostr(index), 6);
      }
      os << '\n';
    }
  }

  const TileLayout &layout;
  LLVMContext context;
  IRBuilder<> b{context};
  std::string text;
  raw_string_ostream os{text};
};

} // namespace

std::string drawLayout(const TileLayout &layout) { return Drawing(layout).run(); }

std::string sourceName(mlir::Value tensor) {
  if (auto temp = tensor.getDefiningOp<tgl::TempOp>())
    return temp.getName().str();
  auto argument = cast<mlir::BlockArgument>(tensor);
  return cast<tgl::KernelOp>(argument.getOwner()->getParentOp())
      .getArgName(argument.getArgNumber())
      .str();
}

std::string drawLayout(const RowLayout &layout) {
  LLVMContext context;
  IRBuilder<> b(context);
  auto number = [](Value *value) { return cast<ConstantInt>(value)->getSExtValue(); };
  const RowDistribution &distribution = layout.distribution;
  std::string text;
  raw_string_ostream os(text);
  os << layout.function << ": a row of " << layout.vectors << " vectors in the shared memory of ";
  if (distribution.cluster > 1)
    os << "a cluster of " << distribution.cluster << " blocks";
  else
    os << "a block";
  os << ", " << layout.rounds << " rounds of " << distribution.threads << " threads\n";
  for (const RowLayout::Slot &slot : layout.slots)
    os << "  " << slot.source << ": vectors of " << slot.bytes << " bytes, at " << slot.offset
       << '\n';
  os << "  round  block  vectors of its threads         places, in vectors\n";
  // One line for the block's share of a round: what its first thread and its last one that has any
  // keep.
  for (int64_t round = 0; round < layout.rounds; ++round) {
    if (round >= firstRounds && round + 1 < layout.rounds) { // those in between are alike
      os << "    ...\n";
      round = layout.rounds - 1;
    }
    for (unsigned rank = 0; rank < distribution.cluster; ++rank) {
      auto vectorOf = [&](int64_t thread) {
        Value *all = rowThread(b, distribution, b.getInt64(rank), b.getInt64(thread));
        return number(rowVector(b, distribution, b.getInt64(round), all));
      };
      auto placeOf = [&](int64_t thread) {
        return number(rowSlotOffset(b, distribution, b.getInt64(round), b.getInt64(thread)));
      };
      int64_t last = distribution.threads - 1;
      while (last >= 0 && vectorOf(last) >= layout.vectors)
        --last;
      os << format("  %5lld  %5u  ", static_cast<long long>(round), rank);
      if (last < 0) {
        os << "none\n";
        continue;
      }
      std::string vectors = std::to_string(vectorOf(0)) + " to " + std::to_string(vectorOf(last));
      os << left_justify(vectors, 30) << ' ' << placeOf(0) << " to " << placeOf(last) << '\n';
    }
  }
  return text;
}

} // namespace tegula
