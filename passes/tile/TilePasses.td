//===- TilePasses.td - Passes over the tile dialect --------------------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_TILEPASSES_TD
#define TEGULA_PASSES_TILE_TILEPASSES_TD

include "mlir/Pass/PassBase.td"

def FormTilesPass : Pass<"tgl-form-tiles", "::tegula::tgl::KernelOp"> {
  let summary = "makes what a block computes of statements that have a tile";
  let description = [{
    A statement of strategy `product-reduction` becomes a `tile.kernel` of the abstract stage: for
    each block a loop over column tiles, in it a loop over the sum, whose result a `tile.map` turns
    into the values that the state of the reduction takes. One of `few-rows` is walked in order
    (`FormTileLoops.cpp`): what it has for each row becomes a tile of one dim, what it has for each row and point a
    tile of two; all axes that share keys are rows of one tile. The statement itself stays in the region
    `otherwise`.

    *Why here*: the schedule has chosen the tile; nothing after it looks at the statement.
    *Rounding*: sums of products and of columns in another order.
    *Stops*: at statements without a tile.
  }];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def MergeTileLoopsPass : Pass<"tile-merge-loops", "::tegula::tgl::KernelOp"> {
  let summary = "makes one loop of loops over the same tiles whose products are equal";
  let description = [{
    Two reductions over the columns of one product are two loops with a product each. Where loops have the same bounds and step and
    the second multiplies what the first does, they become one, which carries the states of both; what is equal in its body is there
    once.

    *Why here*: layouts and copies are those of one product then.
    *Rounding*: none.
    *Stops*: where a loop needs the result of the one before it, or has another product.
  }];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def SplitPrecisionPass : Pass<"tile-split-precision", "::tegula::tgl::KernelOp"> {
  let summary = "computes products of f32 as three of TF32 numbers";
  let description = [{
    A `tile.dot` of f32 becomes `tile.dot split`: x = h + l with h the nearest number of TF32, and the products
    l*h, h*l and h*h. Tensor cores truncate what they add up: a step's products are summed on their own, from zero, and
    the sum is added to that of the steps before in f32 (a `tile.map`).

    Where x is infinite l is 0, and h*l and l*h take 0 for h; of a number that rounding to TF32 would make
    infinite h is truncated. So infinities, NaN and the largest numbers give what f32 gives.

    *Why here*: types of operands decide their layouts.
    *Rounding*: l has 12 bits, of which the last is lost or not; l*l, 2^-22 of the product, is left out. Sums of a step are
    truncated, sums of steps rounded.
    *Stops*: at other types.
  }];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def StreamOperandsPass : Pass<"tile-stream-operands", "::tegula::tgl::KernelOp"> {
  let summary = "computes operands of skinny products in the registers that multiply them";
  let description = [{
    A product of at most 32 columns whose left operand is computed, such as from packed numbers, is one of eight warps,
    each with its slice of the sum (`#tile.mma<1x1x8>`); both operands stay in registers, and `tile.sum_warps` adds up the
    slices behind the loop. What the operands read becomes `tile.vectors`, where a lane's elements are neighbours in
    memory, along the sum or across it, or single ones, such as scales of groups. The loop carries them: it loads
    those of its next turn before it multiplies. An axis that data moves, as in `w[j, k + o[0]]`, and nibbles that begin
    within a byte stay in the operand: each element has its own check, or place.

    *Why here*: before layouts that keep operands in shared memory.
    *Rounding*: sums of slices are added up in order.
    *Stops*: at operands that are read as they are, of more columns, of f32, or with inputs; where one product of a kernel is no
    such, at all of them.
  }];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def AssignLayoutsPass : Pass<"tile-assign-layouts", "::tegula::tgl::KernelOp"> {
  let summary = "gives tiles their layouts, operands of products shared memory";
  let description = [{
    Results of products are in the accumulators of mma.sync, over warps one above the other, so that
    a row is in four lanes of one warp; what is computed from them has the same layout. On sm_90a they are in those of
    wgmma, over warpgroups of 64 rows, where all products have factors of 16 bits in shared memory, with lines along the sum,
    and 128 to 256 columns: `tile.ready` makes values of the sums behind the loop in which they are under way. Operands are
    copied to shared memory, between barriers. A line there runs along the sum where memory does. A factor made of
    tiles stays in registers, and each warp has 16 rows then, not 32.

    *Why here*: all later passes go by layouts.
    *Rounding*: none.
    *Stops*: at products whose sum is not in steps of 128 bytes (of 32 with a factor in registers and lines across the
    sum), or of f32 that is not split.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def ChooseCopiesPass : Pass<"tile-choose-copies", "::tegula::tgl::KernelOp"> {
  let summary = "copies operands asynchronously, 16 bytes at a time, where memory allows it";
  let description = [{
    A copy of single elements becomes one of `cp.async` where the element is read as it is, eight
    neighbours of a line are neighbours in memory, begin at a multiple of 16 bytes, and exist
    together. Where a line is may be computed and read from data, such as the page of a cache, if it is the same along the
    line. What is started is committed and awaited before the barrier behind it.

    *Why here*: layouts say what a line is.
    *Rounding*: none.
    *Stops*: where sizes are not known to be multiples of eight.
  }];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def SpecializeWarpsPass : Pass<"tile-specialize-warps", "::tegula::tgl::KernelOp"> {
  let summary = "has a warp of its own load operands by TMA, while others multiply";
  let description = [{
    A kernel of wgmma's products by two warpgroups whose copies TMA can do, all in one nest of loops, becomes `tile.roles`. The
    producer walks the loops and fills stages of a ring for each operand; the consumers walk them too, wait for a stage, start its
    product, and release the stage of the step before, whose product has ended. So copies go on while consumers reduce a tile, nobody
    computes addresses, no barrier of the block is in a step, and one warpgroup multiplies while the other reduces. The
    number of a step among all of the block's tells its stage.

    An operand that is the same in all turns of the loops around the innermost one, such as the rows of a product whose columns
    are reduced, stays in a ring of its own with a stage for each step, where others have no fewer stages for it.

    Consumers have 232 registers, producers 40; the ring has as many stages as fit, up to six.

    *Why here*: copies are asynchronous or not by now; `tile-pipeline` takes what is left.
    *Rounding*: none.
    *Stops*: at copies that TMA cannot do (lines across the sum, places that data or loops decide, strides that are
    no multiples of 16 bytes, lines that overlap), at kernels with other copies or barriers, with fewer than 32 steps a block, or where three stages do not fit.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def PipelineLoopsPass : Pass<"tile-pipeline", "::tegula::tgl::KernelOp"> {
  let summary = "copies operands some steps ahead of the products, into rings of shared memory";
  let description = [{
    A loop that starts copies, waits for them and multiplies becomes a pipeline of N stages, together
    with the loops around it: their steps are one sequence, and copies go N - 1 steps ahead of it. Each
    operand has a ring of N tiles. Before the loops the copies of the first N - 1 steps are started. A
    step waits for its own copies; behind one barrier, at which all warps have left the step before,
    it starts those of the step N - 1 ahead into the stage that is free now, where there is such a step,
    and multiplies.

    Products of wgmma are under way until the next step's: a step starts its own, then the copies of the step N - 2 ahead, into
    the stage of the step before the last, and waits for the last step's product, which has one more on its way behind it.

    N is at most 4 and such that two blocks fit in a multiprocessor's shared memory, four of one warp, one whose
    accumulators take half of the registers, or one where two would have too few stages.

    *Why here*: copies are asynchronous or not by now; shared memory has no places yet.
    *Rounding*: none.
    *Stops*: at loops without asynchronous copies, with a single step, or that write tensors; at rings of less than two stages,
    three of wgmma.
    Where loops around have more than one loop inside, or bounds that depend on each other, the pipeline
    is of those within.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

def AllocateSharedPass : Pass<"tile-allocate-shared", "::tegula::tgl::KernelOp"> {
  let summary = "gives each tile of shared memory its offset";
  let description = [{
    At multiples of 128 bytes; tiles of loops that follow each other share memory, behind a barrier.

    *Why here*: last, when all that needs shared memory is there.
    *Rounding*: none.
    *Stops*: at nothing.
  }];
  let dependentDialects = ["::tegula::tile::TileDialect"];
}

#endif // TEGULA_PASSES_TILE_TILEPASSES_TD
