//===- TileOps.td - Operations of the tile dialect ---------------------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TILEOPS_TD
#define TEGULA_IR_TILEOPS_TD

include "ir/tile/TileDialect.td"
include "ir/tgl/TglOps.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<TileDialect, mnemonic, traits>;

def PointsOp : OpInterface<"PointsOp"> {
  let description = [{
    An op whose region computes one point of a tile. The region's arguments are the point's index
    along each span, then the point's elements of the `inputs`.
  }];
  let cppNamespace = "::tegula::tile";
  let methods = [
    InterfaceMethod<"", "::mlir::OperandRange", "getSpans">,
    InterfaceMethod<"", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"the names of the region's arguments, for readers", "std::optional<::mlir::ArrayAttr>",
                    "getNames">,
    InterfaceMethod<"", "::mlir::Block *", "getPoint", (ins), [{}], [{
      return &$_op->getRegion(0).front();
    }]>,
    InterfaceMethod<"", "::mlir::Block::BlockArgListType", "getIndexArguments", (ins), [{}], [{
      return $_op->getRegion(0).front().getArguments().take_front($_op.getSpans().size());
    }]>,
    InterfaceMethod<"", "::mlir::Block::BlockArgListType", "getInputArguments", (ins), [{}], [{
      return $_op->getRegion(0).front().getArguments().drop_front($_op.getSpans().size());
    }]>,
    InterfaceMethod<"what the point yields; null: nothing", "::mlir::Value", "getYielded", (ins), [{}], [{
      ::mlir::Operation *end = $_op->getRegion(0).front().getTerminator();
      return end->getNumOperands() ? end->getOperand(0) : ::mlir::Value();
    }]>,
  ];
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel", [RecursiveMemoryEffects, SingleBlock, NoTerminator, NamedArguments, AxesOp]> {
  let summary = "a launch: what each block computes";
  let description = [{
    The axes number the blocks. `otherwise` computes the same without tiles: it runs where an
    address of a launch does not fit what the placed body asks for (multiples of 16 bytes:
    `TileEmitter::alignedTensors`). Placement sets `threads` and
    `shared_bytes` of a block.

    ```mlir
    tile.kernel "a" (%t = 0 to (M + 127) floordiv 128) {
      %m = tile.span 128*%t to M : !tile.span<128>
      ...
    } otherwise {
      tgl.parallel (%i = 0 to M) { ... }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, IndexExprArrayAttr:$lows, IndexExprArrayAttr:$highs,
                       Variadic<Index>:$indices, OptionalAttr<StrArrayAttr>:$names,
                       OptionalAttr<I64Attr>:$threads, OptionalAttr<I64Attr>:$shared_bytes);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$otherwise);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::ArrayRef<::tegula::tgl::AxisSpec>":$axes)>];
  let extraClassDeclaration = [{
    bool isPlaced() { return getThreads().has_value(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_SpanOp : Tile_Op<"span", [Pure, IndexedOp]> {
  let summary = "the points of an axis that a tile covers";
  let description = "`%m = tile.span 128*%t to M : !tile.span<128>`: 128*t + n for 0 <= n < 128; those below M exist.";
  let arguments = (ins IndexExprAttr:$base, IndexExprAttr:$end, Variadic<Index>:$indices);
  let results = (outs SpanType:$result);
  let builders = [OpBuilder<(ins "int64_t":$size, "const ::tegula::tgl::ValueExpr &":$base,
                                 "const ::tegula::tgl::ValueExpr &":$end)>];
  let extraClassDeclaration = [{
    ::tegula::tgl::ValueExpr getBaseExpr() { return {getBase().getExpr(), getIndices()}; }
    ::tegula::tgl::ValueExpr getEndExpr() { return {getEnd().getExpr(), getIndices()}; }
    int64_t getSize() { return getType().getSize(); }
    /// Whether all points are known to exist, in a loop or grid that steps by the span's size.
    bool isFull();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ForOp : Tile_Op<"for", [RecursiveMemoryEffects, SingleBlock, AttrSizedOperandSegments, IndexedOp]> {
  let summary = "a loop over tiles, with carried values";
  let description = [{
    ```mlir
    %s = tile.for %j = 0 to N step 64 iter (%before = %start : !tile.state<max, 128xf32>) {
      ...
      tile.yield %after : !tile.state<max, 128xf32>
    }
    ```
  }];
  let arguments = (ins IndexExprAttr:$low, IndexExprAttr:$high, I64Attr:$step, Variadic<Index>:$indices,
                       Variadic<AnyType>:$inits);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "const ::tegula::tgl::ValueExpr &":$low, "const ::tegula::tgl::ValueExpr &":$high,
                                 "int64_t":$step, "::mlir::ValueRange":$inits)>];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getLoopVar() { return getBody().front().getArgument(0); }
    ::mlir::Block::BlockArgListType getIterArgs() { return getBody().front().getArguments().drop_front(1); }
    ::tegula::tgl::ValueExpr getLowExpr() { return {getLow().getExpr(), getIndices()}; }
    ::tegula::tgl::ValueExpr getHighExpr() { return {getHigh().getExpr(), getIndices()}; }
    YieldOp getYield();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["ForOp", "OperandOp", "MapOp", "StoreOp", "CopyOp", "VectorsOp",
                                                                   "TmaDescriptorOp"]>]> {
  let summary = "the values of an iteration, or the value of a point";
  let description = "`tile.yield %v : f32`.";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; }]>];
}

//===----------------------------------------------------------------------===//
// Tiles of values
//===----------------------------------------------------------------------===//

def Tile_ZeroOp : Tile_Op<"zero", [Pure]> {
  let summary = "a tile of zeros";
  let description = "`%c = tile.zero : !tile.tile<128x64xf32>`.";
  let results = (outs TileType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Tile_OperandOp : Tile_Op<"operand", [RecursiveMemoryEffects, SingleBlock, NamedArguments,
                                    PointsOp, AttrSizedOperandSegments]> {
  let summary = "an operand of a product: its elements are computed where they are needed";
  let description = [{
    The region yields an element in the compute type of the tile's element type, of which it must be
    a number; points that do not exist are 0. The last dim runs along the sum.

    ```mlir
    %a = tile.operand (%i in %m, %k in %d) -> !tile.tile<128x64xbf16> {
      %x = tgl.read %t[%i, %k] : !tgl.tensor<[M, D], bf16>
      tile.yield %x : f32
    }
    ```

    With inputs, as of `tile.map`, its elements come from tiles of registers, in which it stays: the left factor
    of a second product, such as the probabilities of attention. In layout `#tile.mma<1x1x8>` an input may have
    fewer columns, by a whole factor: each is that of so many neighbours of the operand.
  }];
  let arguments = (ins Variadic<SpanType>:$spans, Variadic<TileType>:$inputs, OptionalAttr<StrArrayAttr>:$names);
  let results = (outs TileType:$result);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "TileType":$result, "::mlir::ValueRange":$spans,
                                 CArg<"::mlir::ValueRange", "{}">:$inputs)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "c + a b^T: a is M x K, b is N x K";
  let description = [{
    Products of f16 and bf16 are exact, sums are of f32 in any order.
    `%n = tile.dot %a, %b, %c : !tile.tile<128x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<128x64xf32>`.

    `split`, of f32: each element is a number of TF32 and what it leaves, and three products are added, small ones
    first. An element of 24 bits keeps 22 of them, or 23; infinities and NaN are what they are in f32.
  }];
  let arguments = (ins TileType:$a, TileType:$b, TileType:$c, UnitAttr:$split);
  let results = (outs TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$c,
                                 CArg<"bool", "false">:$split)>];
  let assemblyFormat = "(`split` $split^)? $a `,` $b `,` $c attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($c))";
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [RecursiveMemoryEffects, SingleBlock, NamedArguments,
                            PointsOp, AttrSizedOperandSegments]> {
  let summary = "computes a tile element by element";
  let description = [{
    Points that do not exist have any value. The region may read tensors, and writes none. An input of one dim
    has a value for each row of a result of two.

    ```mlir
    %v = tile.map (%i in %m, %j in %n) (%p = %dot : !tile.tile<128x64xf32>) -> !tile.tile<128x64xf32> {
      %q = tgl.read %norm[%j] : !tgl.tensor<[N], f32>
      %r = arith.subf %q, %p : f32
      tile.yield %r : f32
    }
    ```
  }];
  let arguments = (ins Variadic<SpanType>:$spans, Variadic<TileType>:$inputs, OptionalAttr<StrArrayAttr>:$names);
  let results = (outs TileType:$result);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "TileType":$result, "::mlir::ValueRange":$spans, "::mlir::ValueRange":$inputs)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [RecursiveMemoryEffects, SingleBlock, NamedArguments,
                                PointsOp, AttrSizedOperandSegments]> {
  let summary = "what happens at each point that exists";
  let description = [{
    The epilogue: any statements of tgl, of scalars, that write tensors.

    ```mlir
    tile.store (%i in %m) (%v = %best : !tile.tile<128xi64>) {
      tgl.write %v, %y[%i] : i64, !tgl.tensor<[M], i64>
      tile.yield
    }
    ```
  }];
  let arguments = (ins Variadic<SpanType>:$spans, Variadic<TileType>:$inputs, OptionalAttr<StrArrayAttr>:$names);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$spans, "::mlir::ValueRange":$inputs)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions over the columns of tiles
//===----------------------------------------------------------------------===//

def Tile_InitOp : Tile_Op<"init", [Pure]> {
  let summary = "the state of a reduction that has seen nothing";
  let description = "`%s = tile.init : !tile.state<argmin, 128xf32>`.";
  let results = (outs StateType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, AllTypesMatch<["state", "result"]>]> {
  let summary = "takes the columns of a tile into a state";
  let description = [{
    Columns are those of the span, which come after all that the state has seen; those that do not
    exist do not count. The rounding of sums does not grow with the number of tiles.
    `%s = tile.reduce %v over %n into %before : !tile.tile<128x64xf32>, !tile.span<64>, !tile.state<max, 128xf32>`.
  }];
  let arguments = (ins TileType:$value, SpanType:$columns, StateType:$state);
  let results = (outs StateType:$result);
  let assemblyFormat = [{
    $value `over` $columns `into` $state attr-dict `:` qualified(type($value)) `,` qualified(type($columns)) `,`
    qualified(type($state))
  }];
  let hasVerifier = 1;
}

def Tile_FinishOp : Tile_Op<"finish", [Pure]> {
  let summary = "the result of a reduction, for each row";
  let description = "`%r = tile.finish %s : !tile.state<argmin, 128xf32> -> !tile.tile<128xi64>`.";
  let arguments = (ins StateType:$state);
  let results = (outs TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$state)>];
  let assemblyFormat = "$state attr-dict `:` qualified(type($state)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The placed stage
//===----------------------------------------------------------------------===//

def Tile_AllocOp : Tile_Op<"alloc"> {
  let summary = "a tile of shared memory";
  let description = [{
    `%a = tile.alloc : !tile.shared<128x64xbf16, k_major>`, or several, `!tile.ring<3, ...>`, or barriers, `!tile.pipe<4>`;
    `tile-allocate-shared` sets its `offset` in the block's memory, in bytes.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs AnyTypeOf<[SharedType, RingType, ScratchType, PipeType]>:$result);
  let extraClassDeclaration = "int64_t getBytes();";
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` qualified(type($result))";
}

def Tile_CopyOp : Tile_Op<"copy", [SingleBlock, NamedArguments, PointsOp]> {
  let summary = "elements to shared memory, by all threads of the block";
  let description = [{
    `registers`: each thread evaluates elements and stores them. `cp_async`: the region ends in a read,
    of which 16 bytes are neighbours, and the copies are in flight until they are committed and
    awaited. What stands before the read finds the place of a line in memory, such as the page that a table
    names: a thread evaluates it once for each line. Points that do not exist, and those whose read has a
    condition that does not hold, are 0.

    ```mlir
    tile.copy cp_async (%i in %m, %k in %d) to %a : !tile.shared<128x64xbf16, k_major> {
      %x = tgl.read %t[%i, %k] : !tgl.tensor<[M, D], bf16>
      tile.yield %x : f32
    }
    ```
  }];
  let arguments = (ins CopyKind:$kind, Variadic<SpanType>:$spans, SharedType:$target, OptionalAttr<StrArrayAttr>:$names);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "CopyKind":$kind, "::mlir::ValueRange":$spans, "::mlir::Value":$target)>];
  let extraClassDeclaration = "::mlir::OperandRange getInputs() { return getOperation()->getOperands().take_front(0); }";
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_UnpackOp : Tile_Op<"unpack"> {
  let summary = "a tile of bytes in shared memory, as the numbers of 16 bits that they are"
                ", by all threads of the block";
  let description = [{
    An operand whose tensor has 8 bits an element is copied as it is (`cp_async` moves bytes) and unpacked between two
    barriers: behind the first all copies have come, behind the second products may read.

    ```mlir
    tile.unpack %bytes to %b : !tile.shared<32x64xf8E4M3FN, k_major> to !tile.shared<32x64xbf16, k_major>
    ```
  }];
  let arguments = (ins SharedType:$source, SharedType:$target);
  let assemblyFormat = "$source `to` $target `:` qualified(type($source)) `to` qualified(type($target)) attr-dict";
  let hasVerifier = 1;
}

def Tile_CommitOp : Tile_Op<"commit"> {
  let summary = "the thread's copies since the last commit, as one token";
  let description = "`%t = tile.commit`.";
  let results = (outs TokenType:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_AwaitOp : Tile_Op<"await"> {
  let summary = "waits until copies have come";
  let description = "`tile.await %t`. Other threads see them after a barrier.";
  let arguments = (ins TokenType:$token);
  let assemblyFormat = "$token attr-dict";
}

def Tile_BarrierOp : Tile_Op<"barrier"> {
  let summary = "all threads of the block synchronise; what they wrote to shared memory is seen";
  let description = [{
    `tile.barrier`, or `tile.barrier publish`: products of wgmma see it too, which read shared memory on a way of their
    own (a proxy; codegen/async/Async.h).
  }];
  let arguments = (ins UnitAttr:$publish);
  let builders = [OpBuilder<(ins CArg<"bool", "false">:$publish), [{
    if (publish)
      $_state.addAttribute(getPublishAttrName($_state.name), $_builder.getUnitAttr());
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = "(`publish` $publish^)? attr-dict";
}

def Tile_StageOp : Tile_Op<"stage", [Pure, IndexedOp]> {
  let summary = "a stage of a ring";
  let description = [{
    `%a = tile.stage %ring at %n + 1 : !tile.ring<3, 128x64xbf16, k_major>`: the stage (n + 1) mod 3. The
    number is not negative.
  }];
  let arguments = (ins RingType:$ring, IndexExprAttr:$number, Variadic<Index>:$indices);
  let results = (outs SharedType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring, "const ::tegula::tgl::ValueExpr &":$number)>];
  let extraClassDeclaration = [{
    ::tegula::tgl::ValueExpr getNumberExpr() { return {getNumber().getExpr(), getIndices()}; }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_AdvanceOp : Tile_Op<"advance", [Pure, AttrSizedOperandSegments, IndexedOp,
                                    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "where loops inside of one another are at a step, without walking them";
  let description = [{
    The steps of the innermost of nested loops are one sequence. The op gives a step's number, whether
    there is one, and the loops' variables, outermost first: of the first step, or of the one after
    `from`. A pipeline goes ahead of its loops by it.

    ```mlir
    %first, %exists, %j, %k = tile.advance in (0 to N step 64, 0 to D step 64)
    %next, %exists_1, %j_1, %k_1 = tile.advance from %first, %j, %k in (0 to N step 64, 0 to D step 64)
    ```
  }];
  let arguments = (ins IndexExprArrayAttr:$lows, IndexExprArrayAttr:$highs, DenseI64ArrayAttr:$steps,
                       Variadic<Index>:$indices, Variadic<Index>:$from);
  let results = (outs Index:$number, I1:$exists, Variadic<Index>:$at);
  let builders = [OpBuilder<(ins "::llvm::ArrayRef<ForOp>":$loops, "::mlir::ValueRange":$from)>];
  let extraClassDeclaration = [{
    ::tegula::tgl::ValueExpr getLowExpr(unsigned loop);
    ::tegula::tgl::ValueExpr getHighExpr(unsigned loop);
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_IfOp : Tile_Op<"if", [RecursiveMemoryEffects, SingleBlock, NoTerminator]> {
  let summary = "ops that all threads of the block run, or none";
  let description = "`tile.if %exists { ... }`; the condition is the same in all threads.";
  let arguments = (ins I1:$condition);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::mlir::Value":$condition)>];
  let assemblyFormat = "$condition $body attr-dict";
  let skipDefaultBuilders = 1;
}

def Tile_VectorsOp : Tile_Op<"vectors", [SingleBlock, NamedArguments, PointsOp]> {
  let summary = "elements of a tensor in registers, loaded in vectors";
  let description = [{
    The region ends in a read; what stands before it finds its place, such as a row that data chooses. Each thread
    loads what its layout gives it, as many bytes at a time, up to 16, as are neighbours in memory and begin at a
    multiple of their number: along the columns, or along the rows, else element by element. Points that do not
    exist have any value.

    ```mlir
    %p = tile.vectors (%j in %n, %q in %h) -> !tile.tile<32x512xui8, #tile.mma<1x1x8>> {
      %w = tgl.read %t[%j, %q] : !tgl.tensor<[N, K floordiv 2], ui8>
      tile.yield %w : i32
    }
    ```
  }];
  let arguments = (ins Variadic<SpanType>:$spans, OptionalAttr<StrArrayAttr>:$names);
  let results = (outs TileType:$result);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "TileType":$result, "::mlir::ValueRange":$spans)>];
  let extraClassDeclaration = [{
    ::mlir::OperandRange getInputs() { return getOperation()->getOperands().take_front(0); }
    ::tegula::tgl::ReadOp getRead() { return getYielded().getDefiningOp<::tegula::tgl::ReadOp>(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_SumWarpsOp : Tile_Op<"sum_warps"> {
  let summary = "adds up the accumulators of warps that have slices of the sum";
  let description = [{
    In the order of the slices, through shared memory; it has a barrier of its own.
    `%s = tile.sum_warps %c in %x : !tile.tile<32x16xf32, #tile.mma<1x1x8>>, !tile.scratch<8x16x32xf32> ->
    !tile.tile<32x16xf32, #tile.linear<256>>`.
  }];
  let arguments = (ins TileType:$terms, ScratchType:$scratch);
  let results = (outs TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$terms, "::mlir::Value":$scratch)>];
  let assemblyFormat = "$terms `in` $scratch attr-dict `:` qualified(type($terms)) `,` qualified(type($scratch)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_MmaOp : Tile_Op<"mma", [AllTypesMatch<["c", "result"]>]> {
  let summary = "c + a b^T by tensor cores, of operands in shared memory, or a in registers";
  let description = [{
    ```mlir
    %n = tile.mma %a, %b, %c : !tile.shared<128x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>,
        !tile.tile<128x64xf32, #tile.mma<4x1>>
    ```

    `split`: as of `tile.dot`. A thread makes the terms of the words that it has loaded, in registers.

    A factor `a` in registers has the layout of accumulators. Its warps stand one above the other, so that a
    thread has what it needs: two accumulators of 16 x 8 are a factor of 16 x 16.

    Where the accumulators have layout `#tile.mma<1x1x8>` both factors are a `tile.operand` in registers, of that layout;
    a thread computes their elements as it multiplies them.

    Where they have layout `#tile.wgmma<2>` the op starts the product, and the result is under way: shared memory is read
    until it is waited for.
  }];
  let arguments = (ins AnyTypeOf<[SharedType, TileType]>:$a, AnyTypeOf<[SharedType, TileType]>:$b, TileType:$c, UnitAttr:$split);
  let results = (outs TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$c,
                                 CArg<"bool", "false">:$split)>];
  let assemblyFormat = "(`split` $split^)? $a `,` $b `,` $c attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($c))";
  let hasVerifier = 1;
}

def Tile_AwaitProductsOp : Tile_Op<"await_products"> {
  let summary = "waits until the product that sums are of has read its operands";
  let description = [{
    `tile.await_products %c : !tile.tile<128x256xf32, #tile.wgmma<2>>`: products that were started after it may go on.
    Nothing is waited for of values that are not under way.
  }];
  let arguments = (ins TileType:$sums);
  let assemblyFormat = "$sums attr-dict `:` qualified(type($sums))";
  let hasVerifier = 1;
}

def Tile_ReadyOp : Tile_Op<"ready", [AllTypesMatch<["sums", "result"]>]> {
  let summary = "sums of products that were under way";
  let description = "`%s = tile.ready %c : !tile.tile<128x256xf32, #tile.wgmma<2>>`: waits for them.";
  let arguments = (ins TileType:$sums);
  let results = (outs TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$sums), "build($_builder, $_state, sums.getType(), sums);">];
  let assemblyFormat = "$sums attr-dict `:` qualified(type($sums))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Roles of warps
//===----------------------------------------------------------------------===//

def Tile_RolesOp : Tile_Op<"roles", [NoTerminator]> {
  let summary = "what warps that load do, and what warps that multiply do, at the same time";
  let description = [{
    The block's first `consumers` threads, those of the layouts, run the second region; of the warpgroup behind them, the
    producers, one warp runs the first. Registers go from producers to consumers: `registers` says how many a thread of
    each has (setmaxnreg; multiples of eight, of at most 512 a multiprocessor's lane in all). No op inside is for all threads of the block: there
    is no `tile.barrier`, and no `tile.copy`. Stages go from one to the other by `tile.fill`, `tile.wait` and `tile.release`.

    ```mlir
    tile.roles producer registers 40 {
      %x = tile.tma_descriptor ...
      tile.for %k = 0 to K step 64 { tile.fill %pipe at %k floordiv 64 { ... } }
    } consumers 256 registers 232 {
      %c = tile.for %k = 0 to K step 64 iter (...) { tile.wait %pipe at %k floordiv 64 ... }
    }
    ```
  }];
  let arguments = (ins I64Attr:$producer_registers, I64Attr:$consumers, I64Attr:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let builders = [OpBuilder<(ins "int64_t":$producerRegisters, "int64_t":$consumers, "int64_t":$consumerRegisters)>];
  let extraClassDeclaration = [{
    static constexpr int64_t producerThreads = 128; ///< of which a warp works: registers move by warpgroups
    int64_t getThreads() { return int64_t(getConsumers()) + producerThreads; }
  }];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{
    `producer` `registers` $producer_registers $producer `consumers` $consumers `registers` $consumer_registers $consumer attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_TmaDescriptorOp : Tile_Op<"tma_descriptor", [SingleBlock, NamedArguments, PointsOp]> {
  let summary = "describes to TMA what a region reads";
  let description = [{
    The region is a read alone. The first index numbers lines, which lie a multiple of 16 bytes apart; the last one runs along a
    line, where neighbours are neighbours in memory. Spans begin at 0: those points exist that are before their ends, others
    are 0. The producer's thread writes it to memory of the block's own, 128 bytes, when it comes to the op
    (PTX ISA, "tensormap.replace").

    ```mlir
    %x = tile.tma_descriptor (%i in %m, %k in %d) -> !tile.tma_descriptor<128x64xbf16> {
      %e = tgl.read %t[%i, %k] : !tgl.tensor<[M, D], bf16>
      tile.yield %e : f32
    }
    ```
  }];
  let arguments = (ins Variadic<SpanType>:$spans, OptionalAttr<StrArrayAttr>:$names);
  let results = (outs TmaDescriptorType:$result);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "TmaDescriptorType":$result, "::mlir::ValueRange":$spans)>];
  let extraClassDeclaration = [{
    ::mlir::OperandRange getInputs() { return getOperation()->getOperands().take_front(0); }
    ::tegula::tgl::ReadOp getRead() { return getYielded().getDefiningOp<::tegula::tgl::ReadOp>(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_FillOp : Tile_Op<"fill", [SingleBlock, NoTerminator, IndexedOp]> {
  let summary = "fills a stage of a pipe by boxes of TMA";
  let description = [{
    `tile.fill %pipe at %n { ... }`, of the producer: waits until consumers have released what the stage n mod N held
    before, tells its barrier how many bytes come, and starts the copies of the region. All numbers from 0 on are filled, in order.
  }];
  let arguments = (ins PipeType:$pipe, IndexExprAttr:$number, Variadic<Index>:$indices);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::mlir::Value":$pipe, "const ::tegula::tgl::ValueExpr &":$number)>];
  let extraClassDeclaration = [{
    ::tegula::tgl::ValueExpr getNumberExpr() { return {getNumber().getExpr(), getIndices()}; }
    /// What comes.
    int64_t getBytes();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_CopyBoxOp : Tile_Op<"copy_box", [HasParent<"FillOp">]> {
  let summary = "starts a copy of a box of a tensor to shared memory";
  let description = [{
    The box begins where the spans do, of lines and along them.
    `tile.copy_box %x at %m, %d to %a : !tile.tma_descriptor<128x64xbf16>, !tile.span<128>, !tile.span<64>, !tile.shared<128x64xbf16, k_major>`.
  }];
  let arguments = (ins TmaDescriptorType:$descriptor, SpanType:$lines, SpanType:$along, SharedType:$target);
  let assemblyFormat = [{
    $descriptor `at` $lines `,` $along `to` $target attr-dict `:` qualified(type($descriptor)) `,` qualified(type($lines)) `,`
    qualified(type($along)) `,` qualified(type($target))
  }];
  let hasVerifier = 1;
}

def Tile_WaitOp : Tile_Op<"wait", [IndexedOp]> {
  let summary = "waits until a stage of a pipe is full";
  let description = "`tile.wait %pipe at %n`, of consumers: products see what has come.";
  let arguments = (ins PipeType:$pipe, IndexExprAttr:$number, Variadic<Index>:$indices);
  let builders = [OpBuilder<(ins "::mlir::Value":$pipe, "const ::tegula::tgl::ValueExpr &":$number)>];
  let extraClassDeclaration = [{
    ::tegula::tgl::ValueExpr getNumberExpr() { return {getNumber().getExpr(), getIndices()}; }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ReleaseOp : Tile_Op<"release", [IndexedOp]> {
  let summary = "consumers have read a stage of a pipe";
  let description = [{
    `tile.release %pipe at %n of %total`: number n, of so many that are filled in all. Nothing is done before the first (n = -1), and where the
    stage is not filled again.
  }];
  let arguments = (ins PipeType:$pipe, IndexExprAttr:$number, IndexExprAttr:$total, Variadic<Index>:$indices);
  let builders = [OpBuilder<(ins "::mlir::Value":$pipe, "const ::tegula::tgl::ValueExpr &":$number,
                                 "const ::tegula::tgl::ValueExpr &":$total)>];
  let extraClassDeclaration = [{
    ::tegula::tgl::ValueExpr getNumberExpr() { return {getNumber().getExpr(), getIndices()}; }
    ::tegula::tgl::ValueExpr getTotalExpr() { return {getTotal().getExpr(), getIndices()}; }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // TEGULA_IR_TILEOPS_TD
