//===- TileDialect.td - The tile dialect, its types and attributes -----*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TILEDIALECT_TD
#define TEGULA_IR_TILEDIALECT_TD

include "ir/tgl/TglDialect.td"
include "ir/tile/TileEnums.td"

def TileDialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tegula::tile";
  let summary = "What a block computes: tiles of values, and where they are";
  let description = [{
    A `tile.kernel` is a launch: its axes number the blocks, its body is what one block does. Values
    are tiles of static shape; how an element of one is computed stands in a region of tgl scalars,
    at the point that block arguments name. `tile.span`s say which points of an axis a tile covers,
    and which of them exist.

    In the *abstract* stage there are no threads: the interpreter runs it. In the *placed* stage
    types have layouts (`#tile.mma`), operands of products are in shared memory, copies, waits and
    barriers are ops; code generation translates each op by itself.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerOperations();";
  let dependentDialects = ["::tegula::tgl::TglDialect"];
}

class Tile_Type<string name, string typeMnemonic> : TypeDef<TileDialect, name> {
  let mnemonic = typeMnemonic;
}
class Tile_Attr<string name, string attrMnemonic> : AttrDef<TileDialect, name> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

def MmaLayoutAttr : Tile_Attr<"MmaLayout", "mma"> {
  let summary = "the accumulators of mma.sync, over a grid of warps";
  let description = [{
    `#tile.mma<4x1>`: four warps one above the other. Each has its rows and columns of the tile in
    fragments of 16 x 8, of which a lane holds two neighbours in row lane/4 and two in row
    lane/4 + 8 (codegen/nvgpu/Fragments.h). A state or a tile of rows has the layout of the tile that
    it comes from: its rows are where that tile's are.

    `#tile.mma<1x1x8>`: eight warps that have slices of the sum. Each has all rows and columns of the accumulators, of
    which `tile.sum_warps` adds up what the warps have; of an operand it has all rows, and its slice of the columns.
    With R rows a group of four lanes has R/8 neighbours of them, and of a slice's columns lane%4 says which quarter
    a lane has: neighbours too, so that a lane loads vectors. mma.sync takes them in another order, which is the same
    for both operands.
  }];
  let parameters = (ins "int64_t":$warpRows, "int64_t":$warpColumns, "int64_t":$warpSlices);
  let builders = [AttrBuilder<(ins "int64_t":$warpRows, "int64_t":$warpColumns),
                              "return $_get($_ctxt, warpRows, warpColumns, 1);">];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getThreads() const { return getWarpRows() * getWarpColumns() * getWarpSlices() * 32; }
    /// Whether warps have slices of the sum.
    bool isSliced() const { return getWarpSlices() > 1; }
  }];
}

def WgmmaLayoutAttr : Tile_Attr<"WgmmaLayout", "wgmma"> {
  let summary = "the accumulators of wgmma, over warpgroups one above the other";
  let description = [{
    `#tile.wgmma<2>`: two warpgroups of 128 threads, each with 64 rows and all columns of the tile; 8 to 256 of them.
    A warp has 16 rows, a lane in them what it has in `#tile.mma<8x1>` (codegen/nvgpu/Wgmma.h). Products of such accumulators
    are under way while the warps go on: what `tile.mma` gives may be added to by another one, go around loops, and be
    waited for; `tile.ready` makes values of it.
  }];
  let parameters = (ins "int64_t":$warpgroups);
  let assemblyFormat = "`<` $warpgroups `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t warps = 4, rows = 64, columnUnit = 8, maxColumns = 256; ///< of a warpgroup
  }];
}

def LinearLayoutAttr : Tile_Attr<"LinearLayout", "linear"> {
  let summary = "threads take elements in turn";
  let description = [{
    `#tile.linear<256>`: element n of thread t is number 256*n + t, where those of the first dim are neighbours.
  }];
  let parameters = (ins "int64_t":$threads);
  let assemblyFormat = "`<` $threads `>`";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def SpanType : Tile_Type<"Span", "span"> {
  let summary = "points of an axis that a tile covers";
  let description = "`!tile.span<128>`: 128 points in a row, of which those from the span's end on do not exist.";
  let parameters = (ins "int64_t":$size);
  let assemblyFormat = "`<` $size `>`";
  let genVerifyDecl = 1;
}

def TileType : Tile_Type<"Tile", "tile"> {
  let summary = "a tile of values, in registers";
  let description = [{
    `!tile.tile<128x64xf32>`, or placed `!tile.tile<128x64xf32, #tile.mma<4x1>>`. Of one or two
    dims. The element type is that of tensors (bf16), where the tile is an operand of a product, else
    a compute type.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        OptionalParameter<"::mlir::Attribute">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Null where it has none, or another.
    ::tegula::tile::FragmentLayout getFragments() const;
  }];
}

def StateType : Tile_Type<"State", "state"> {
  let summary = "what a reduction has seen so far, for each row";
  let description = [{
    `!tile.state<argmin, 128xf32>`: of 128 rows, over values of f32. What it holds (for argmin the
    best value and its position) follows from the kind; in the placed stage each thread has a part
    of its own, of the columns that it holds, which `tile.finish` combines.
  }];
  let parameters = (ins "::tegula::tgl::ReduceKind":$kind, "int64_t":$rows, "::mlir::Type":$elementType,
                        OptionalParameter<"::tegula::tile::FragmentLayout">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// i64 for argmin and argmax, else the element type.
    ::mlir::Type getResultType() const;
  }];
}

def SharedType : Tile_Type<"Shared", "shared"> {
  let summary = "a tile in shared memory, as an operand of a product";
  let description = [{
    `!tile.shared<128x64xbf16, k_major>`: M (or N) by K.
    Lines of memory run along K where it is `k_major`, else along M or N (`mn_major`); 16-byte
    chunks of a line are exchanged so that ldmatrix has no bank conflicts
    (codegen/nvgpu/Mma.h, MmaSharedLayout). A line along K has 128 bytes; there are any number of lines, in the order that
    the swizzle of 128 bytes of wgmma and TMA wants (codegen/nvgpu/Wgmma.h, WgmmaSharedLayout).

    A tile of 8 bits an element is no operand yet (`tile.unpack`): its lines follow each other, each as it is in memory.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "bool":$kMajor);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const;
    /// Elements of a line of memory, and how many lines there are.
    int64_t getLineLength() const { return getShape()[getKMajor() ? 1 : 0]; }
    int64_t getLines() const { return getShape()[getKMajor() ? 0 : 1]; }
    /// Whether elements have 8 bits: they are not multiplied before they are unpacked.
    bool isOfBytes() const { return getElementType().getIntOrFloatBitWidth() == 8; }
    /// Bytes after which the exchange of chunks begins anew: its place is a multiple.
    static constexpr int64_t alignment = 1024;
  }];
}

def RingType : Tile_Type<"Ring", "ring"> {
  let summary = "stages of shared memory, one after the other, round and round";
  let description = [{
    `!tile.ring<3, 128x64xbf16, k_major>`: three tiles `!tile.shared<128x64xbf16, k_major>`; `tile.stage`
    says which of them.
  }];
  let parameters = (ins "int64_t":$stages, "::tegula::tile::SharedType":$stage);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = "int64_t getBytes() const;";
}

def ScratchType : Tile_Type<"Scratch", "scratch"> {
  let summary = "numbers in shared memory that warps exchange";
  let description = "`!tile.scratch<8x16x32xf32>`: for each of 8 warps 16 lines of 32.";
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = "int64_t getBytes() const;";
}

def TmaDescriptorType : Tile_Type<"TmaDescriptor", "tma_descriptor"> {
  let summary = "how TMA finds boxes of what a region reads";
  let description = [{
    `!tile.tma_descriptor<128x64xbf16>`: boxes of 128 lines of 64 elements, which are 128 bytes; at most 256 lines
    (PTX ISA, "Tensors").
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t bytes = 128, maxLines = 256, lineBytes = 128;
    int64_t getBoxBytes() const { return getShape()[0] * lineBytes; }
  }];
}

def PipeType : Tile_Type<"Pipe", "pipe"> {
  let summary = "barriers of the stages that one role of warps fills and another one uses";
  let description = [{
    `!tile.pipe<4>`: of four stages, each with an mbarrier in shared memory that counts the bytes that come, and a named one that
    says that the stage is empty (codegen/async/Async.h).
  }];
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t barrierBytes = 8, maxStages = 12;
    int64_t getBytes() const { return getStages() * barrierBytes; }
  }];
}

def TokenType : Tile_Type<"Token", "token"> {
  let summary = "copies in flight";
  let description = "What `tile.commit` gives and `tile.await` waits for.";
}

#endif // TEGULA_IR_TILEDIALECT_TD
