//===- Passes.td - The passes, in pipeline order -----------------------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each entry says what the pass does, why it stands where it stands, what it does to rounding and
// where it stops. Its example is the first test of test/passes/<flag without tgl->.mlir.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_PASSES_TD
#define TEGULA_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Simplify
//===----------------------------------------------------------------------===//

def InlinePass : Pass<"tgl-inline", "::mlir::ModuleOp"> {
  let summary = "replaces calls of private kernels by their bodies";
  let description = [{
    `tgl.call @relu(%x, %y)` becomes the statements of `@relu` on `%x` and `%y`. Private kernels are
    gone afterwards.

    *Why here*: everything else works on one kernel; fusion across library calls needs their bodies.
    *Rounding*: none; a callee's `precision` is kept on its reductions (attribute `precision`).
    *Stops*: at nothing; recursion does not occur (the checker rejects it), and is an error here.
  }];
}

def SpecializeSizesPass : Pass<"tgl-specialize-sizes", "::tegula::tgl::KernelOp"> {
  let summary = "puts numbers in the place of sizes that are known";
  let description = [{
    With `sizes=M=128,N=64`, `tgl.parallel (%i = 0 to M)` becomes `tgl.parallel (%i = 0 to 128)`, and so do
    dims, subscripts and guards of accesses. Code for one set of sizes has no divisions by variables,
    unrolled windows and exact vector widths. What the kernel asks of a launch, its sizes and guards,
    stays; whoever gives sizes here must refuse launches with others (Compiler.cpp adds the guards).

    *Why here*: after library calls are inlined all sizes are the kernel's own; before anything reasons
    about sizes.
    *Rounding*: none.
    *Stops*: at nothing; names that the kernel does not have are ignored.
  }];
  let options = [ListOption<"sizes", "sizes", "std::string", "sizes that are known, as NAME=NUMBER">];
}

def SimplifyAccessesPass : Pass<"tgl-simplify-accesses", "::tegula::tgl::KernelOp"> {
  let summary = "makes subscripts and bounds canonical, drops fills and guards that ranges decide";
  let description = [{
    Folds `tgl.index` chains and integer arithmetic into the subscripts and bounds that use them,
    simplifies these with the ranges of their axes (`(g*E + e) floordiv E` is `g`), and removes from
    reads and writes what can be proved idle: a `fill` of a read that stays inside, a guard that
    always holds, a division that is always exact, a comparison that ranges decide. With `only-fold` it
    folds and proves nothing: what arithmetic was simplified in between has left.

    *Why here*: later passes compare accesses as expressions.
    *Rounding*: none.
    *Stops*: where the prover gives up; then the fill or guard stays, which is always right.
  }];
  let options = [
    Option<"onlyFold", "only-fold", "bool", /*default=*/"false",
           "fold indices into accesses and bounds, and no more">,
  ];
}

def EliminateDeadEquationsPass : Pass<"tgl-eliminate-dead-equations", "::tegula::tgl::KernelOp"> {
  let summary = "removes writes that nobody reads, and what only they need";
  let description = [{
    A temporary that is not read goes, with all that only it needs, and so does a statement that does nothing but write
    a tensor of which a later one writes every element before anything reads it.

    *Why here*: inlined library kernels compute results that the caller ignores, and fill what they then define in
    pieces that cover it for the caller's sizes; later passes leave temporaries behind that they have read through.
    *Rounding*: none.
    *Stops*: a temporary counts as read if any read of it exists, whatever its subscripts; what several statements
    together write again stays.
  }];
}

def EliminateCommonEquationsPass : Pass<"tgl-eliminate-common-equations", "::tegula::tgl::KernelOp"> {
  let summary = "computes an equation once where two have the same body";
  let description = [{
    Two statements that define temporaries of one type by the same expression over the same axes, and
    whose inputs do not change in between, become one. With `share-reductions`, a reduction that two
    statements contain is computed once, into a temporary. Common subexpressions inside a region are
    MLIR's `cse` pass's, which runs before.

    *Why here*: before fusion decides what to recompute.
    *Rounding*: none.
    *Stops*: compares structure, not meaning: `a + b` and `b + a` differ (canonical subscripts agree). With `keep-products`, at
    products whose columns strategy `product-reduction` reduces: tiles of one that statements share are computed once, too.
  }];
  let options = [
    Option<"keepProducts", "keep-products", "bool", /*default=*/"false",
           "leave products where their columns are reduced">,
    Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">,
    Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"", "as PipelineOptions has it">,
    Option<"shareReductions", "share-reductions", "bool", /*default=*/"true",
           "also compute once the reductions that several statements contain">,
    Option<"tileSize", "tile-size", "int64_t", /*default=*/"64",
           "size of tile loops whose tiles need a temporary">];
}

def CollapseTilesPass : Pass<"tgl-collapse-tiles", "::tegula::tgl::KernelOp"> {
  let summary = "turns a tile loop that only accumulates into one reduction";
  let description = [{
    `state acc = 0.0; for k in tiles(K) { acc = acc + sum(e for k) }` is `sum(e for k in K)`, likewise
    with prod, max and min: the matrix product written out costs what the equation costs.

    *Why here*: before expansion, so that the reduction takes part in everything that follows.
    *Rounding*: the order of the sum.
    *Stops*: where the body reads the state, writes tensors, or carries anything else.
  }];
}

//===----------------------------------------------------------------------===//
// Fuse
//===----------------------------------------------------------------------===//

def ChunkRecurrencesPass : Pass<"tgl-chunk-recurrences", "::tegula::tgl::KernelOp"> {
  let summary = "writes linear recurrences as products of chunks of steps";
  let description = [{
    `for t { S[h, i, j] = a[t, h]*S[h, i, j] + k[t, h, i]*v[t, h, j]; o[t, h, j] = sum(q[t, h, i]*S[h, i, j] for i) }` has
    a step that waits for the one before. In chunks of L steps, t = c*L + l, most of it is products:
    `scores[h, c, l, m] = where(m <= l, decay(m, l)*sum_i q[l, i]*k[m, i], 0)`; what a chunk adds to the state,
    `added[h, c, i, j] = sum_l k[l, i]*decay(l, L)*v[l, j]`; a loop over chunks that gives the state before each; and
    `o[t, h, j] = decay(0, l)*(sum_i q[l, i]*states[h, c, i, j]) + sum_m scores[h, c, l, m]*v[m, j]`. decay(m, l) is the
    product of the decays a behind step m, up to l: the exponential of a difference of sums of logarithms, or 0
    where one of them is (passes/chunks/ChunkedLoop.h). So Mamba-2, retention and linear attention run on tensor cores.
    Values that a readout of the state corrects (delta rules) are solved for in each chunk before, by the inverse of a triangular
    matrix. Decays of each i stand inside of the sums of scores within blocks of steps; scores of two blocks are a product.

    *Why here*: equations are as they were written; what the chunks are made of is distributed and fused like any other.
    For a GPU.
    *Rounding*: of another order, and of logarithms; where keys, values and queries are of bf16 their products with decays, states
    between chunks and scores are rounded to it (SPEC 6.9).
    *Stops*: at more than one product that is added, at sizes that are not known, and where steps take less time by the estimates of ChunkRecurrences.cpp.
  }];
  let options = [Option<"length", "length", "int64_t", /*default=*/"0",
                        "steps of a chunk; 0: as many as take the least time, if chunks pay">];
}

def NarrowTemporariesPass : Pass<"tgl-narrow-temporaries", "::tegula::tgl::KernelOp"> {
  let summary = "gives a temporary the type that every read of it is rounded to";
  let description = [{
    `t[i, r] = sum(x[i, k]*a[r, k] for k)` of f32, of which each read is `bf16(t[i, r])`, becomes a tensor of bf16: half the bytes, and
    an operand of a product of bf16 that is copied as it is.

    *Why here*: which values are in memory is decided, and no strategy is yet.
    *Rounding*: the same, where the element is written.
    *Stops*: at elements that are added to, at reads with a fill, and where reads are rounded to several types.
  }];
}

def HoistStepValuesPass : Pass<"tgl-hoist-step-values", "::tegula::tgl::KernelOp"> {
  let summary = "computes costly values of a loop's steps before the loop, where many points share them";
  let description = [{
    `for t { S[h, i, j] = exp(w[t, h, i])*S[h, i, j] + k[t, h, i]*v[t, h, j] }` evaluates the same exponential for each j. It becomes
    `of_steps[t, h, i] = exp(w[t, h, i])` before the loop, and a read in it: what a step waits for is shorter, and the function
    runs once. The largest expression around the function moves that has its axes.

    *Why here*: loops that chunks take are none any more; those that are left have their values distributed and fused next. For a GPU.
    *Rounding*: none; temporaries have the type of the value.
    *Stops*: at values that depend on what the loop writes, at fewer than 8 points that share one, where less is saved than a
    launch takes, at temporaries of more than 1 GiB, and at sizes that are not known.
  }];
  let options = [Option<"fewestSaved", "fewest-saved", "int64_t", /*default=*/"1 << 23",
                        "evaluations that are saved, at least: those that take as long as a launch">];
}

def ExpandReductionsPass : Pass<"tgl-expand-reductions", "::tegula::tgl::KernelOp"> {
  let summary = "writes mean, var, logsumexp, softmax and log_softmax as sums and maxima";
  let description = [{
    mean: `sum / count`. var: mean first, then the mean of squared differences (two passes, stable).
    logsumexp and the softmaxes subtract the maximum first (0 where it is infinite, in logsumexp).
    sum, prod, max, min, any, all, count, argmax and argmin stay.

    *Why here*: code generation knows fewer kinds, and fusion sees that softmax and logsumexp share
    their maximum.
    With `keep-exponentials`, softmax computes each exp once, in a statement of its own: worth it where
    a row stays in a cache, as on a CPU, and lies together in memory.
    With `correct-variances`, a sum of differences more corrects a variance: worth it where sums are added in few lanes, as on
    a CPU, whose mean is off by more.
    With `keep-log-sum-exps`, a logsumexp stays whose columns are those of a product that strategy `product-reduction`
    takes: of what a block has computed of the product it keeps the maximum and the sum, and stores nothing.
    *Rounding*: defines it; the order of operations is PyTorch's.
    *Stops*: at nothing.
  }];
  let options = [Option<"keepExponentials", "keep-exponentials", "bool", /*default=*/"false",
                        "compute the exponentials of softmax once">,
                 Option<"correctVariances", "correct-variances", "bool", /*default=*/"false",
                        "take off what rounding of the mean adds to a variance">,
                 Option<"keepLogSumExps", "keep-log-sum-exps", "bool", /*default=*/"false",
                        "leave a logsumexp of a product's columns">,
                 Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">,
                 Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"", "as PipelineOptions has it">];
}

def InlineReducedProductsPass : Pass<"tgl-inline-reduced-products", "::tegula::tgl::KernelOp"> {
  let summary = "computes a product where its columns are reduced, not in memory";
  let description = [{
    `z[i, j] = sum_d h[i, d] * w[j, d]; l[i] = logsumexp_j z[i, j]` writes and reads all of z, the logits of a language
    model, for one number of each row. The product becomes the logsumexp's own, where strategy `product-reduction` can take
    it. So does one of which other reductions read, such as `best[i] = max_j s[i, j]` and `place[i] = argmax_j s[i, j]`, with what is
    computed of it at each point (`s[i, j] = n[j] - 2*sum_d ...`): each reduction has a copy, which `tile-merge-loops` makes one again. What
    reads single places of z, such as `z[i, y[i]]`, the loss's target, computes these sums again: at most one for
    sixteen columns. z is gone.

    *Why here*: before tgl-expand-reductions makes a maximum and a sum of the logsumexp.
    *Rounding*: none but that of sums in other orders.
    *Stops*: at sizes that are not known; at temporaries of other types than f32.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">,
                 Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"", "as PipelineOptions has it">];
}

def ExpandScansPass : Pass<"tgl-expand-scans", "::tegula::tgl::KernelOp"> {
  let summary = "writes cumulative scans and recurrences as loops, sorts as sorts of a row";
  let description = [{
    `y[i, j] = cumsum(x[i, j], over=j)` becomes a statement `parallel (i) { for j iter (acc) { ... c[i, j]
    = acc } }` on a temporary `c`, read where the scan stood. sort, argsort and topk write their
    sequence and its positions to two temporaries, sort the rows in place (`tgl.sort`, stable) and
    read them. Scans of one sequence share their temporaries.

    *Why here*: after this there are no `tgl.scan`s; distribution and fusion treat the new statements
    like any other.
    *Rounding*: sums run in order along the axis.
    *Stops*: at nothing. A scan that depends on a loop's carried values expands inside that loop.
  }];
}

def SumBeforeProductPass : Pass<"tgl-sum-before-product", "::tegula::tgl::KernelOp"> {
  let summary = "adds up a factor in place of products";
  let description = [{
    `t[n, o, p] = sum_c w[o, c]*x[n, c, p]; y[n, o, i] = (sum_r t[n, o, 2*i + r])/2`, a product and a pooling of its results,
    is `y[n, o, i] = (sum_c w[o, c]*(sum_r x[n, c, 2*i + r]))/2`: half the products, and no `t`. What stands between both
    may be several statements that are linear in the product's results: a bias, a scale, batch norm's inference.

    *Why here*: means are sums already, and the inner sum, which does not vary along all axes of the statement, becomes
    a statement of its own next.
    *Rounding*: of another order of the same terms, by the distributive law (SPEC 6.4).
    *Stops*: temporaries that something else reads, or that round; fills and guards of what is summed; sizes that are not
    known; where reading for the sums takes longer than the products that go and the temporary; where sums would take more
    room than what they are read from, as those of a window's positions before its taps do unless the sum is over
    many; factors read from types of 16 bits, whose products are faster than those of their sums.
  }];
  let options = [Option<"productsForElement", "products-for-element", "double", /*default=*/"8",
                        "products that take as long as an element's way from memory">];
}

def DistributePass : Pass<"tgl-distribute", "::tegula::tgl::KernelOp"> {
  let summary = "computes each value once per point of its own axes";
  let description = [{
    A reduction that varies along fewer axes than the statement around it becomes its own statement
    with a temporary over its axes: `y[i,j] = x[i,j] / sum(x[i,k] for k)` is `t[i] = sum(...)` and
    `y[i,j] = x[i,j] / t[i]`. So does a costly factor of a contraction. A `parallel` block around a
    sequential loop becomes an outer `parallel` over the axes that all carried values share, with
    inner ones and private temporaries for the rest (docs/architecture.md).

    *Why here*: fusion and scheduling start from statements that do no redundant work.
    *Rounding*: none; temporaries have the compute type of the value.
    *Stops*: a value whose range cannot be bounded by sizes stays where it is.
  }];
  let options = [Option<"tileSize", "tile-size", "int64_t", /*default=*/"64",
                        "size of tile loops whose tiles need a temporary">];
}

def OnlineSoftmaxPass : Pass<"tgl-online-softmax", "::tegula::tgl::KernelOp"> {
  let summary = "walks a softmax that feeds a product in tiles";
  let description = [{
    Attention by equations, `s = sum_e q[i, e]*k[j, e]; p: bf16 = softmax(s, over=j); o = sum_j p[i, j]*v[j, d]`, keeps
    two matrices of all i and j in memory. As a loop it keeps none:
    `parallel (i) { tiles (j) { s; m' = max(m, max_j s); p = exp(s - m'); l = l*exp(m - m') + sum_j p;
    acc = acc*exp(m - m') + sum_j bf16(p)*v[j, d] }; o = acc/l }`.

    The loop is derived (passes/fuse/RowChain.h), from any reductions over j of values of a row and j of which the later
    ones use the earlier ones: of exp(s - r), r a value of the row that such reductions give (the largest score, the larger of
    it and a sink, a logsumexp), exp(m - r) comes out of a sum, and so does what all terms are multiplied with, or divided by.
    Scores may be any function of sums of products: scaled, masked, with a bias. What other statements read of a row (a
    logsumexp) the loop stores. Where the strategy `tile-loop` takes the loop it replaces the statements; without
    exponentials (two products, and functions of elements between them) where rows fill the device.

    m begins with the lowest number. Rows of nothing but -inf are 0/0, NaN as in the equations.

    *Why here*: what a softmax is made of has been written out (tgl-expand-scans), each part in a statement of its own
    (tgl-distribute). For a GPU.
    *Rounding*: powers are rounded in place of quotients, and the sum of products is divided; sums have another order.
    *Stops*: at scores or quotients that something else reads, at reductions over other columns, at axes that are not known, and wherever no block of rows
    fits registers and shared memory (strategies/tile_loop/plan/TileLoop.h), or where more than two would share columns, as with 1024 of v.
  }];
}

def RecomputeProductsPass : Pass<"tgl-recompute-products", "::tegula::tgl::KernelOp"> {
  let summary = "makes values of products again in each loop that multiplies them";
  let description = [{
    In a backward pass values of rows and columns that are made of products, `p = exp(sum_e q[i, e]*k[j, e] - lse[i])` and
    `ds = p*(sum_e g[i, e]*v[j, e] - delta[i])`, are factors of further products over either index. In memory they are
    matrices of all i and j. As loops over tiles, one for each set of rows, there are none:
    `parallel (i) { tiles (j) { p; ds; dq += sum_j bf16(ds)*k[j, d] } }` and
    `parallel (j) { tiles (i) { p; ds; dv += sum_i bf16(p)*g[i, d]; dk += sum_i bf16(ds)*q[i, d] } }`.

    Any values will do that are known from a row and a column (masks, soft caps, biases), and any number of products with
    them. Products over the same rows share a loop, and what it makes, where registers hold all of their sums.

    *Why here*: each value stands in a statement of its own (tgl-distribute). For a GPU.
    *Rounding*: values are rounded as before; sums have another order, and exp of elements is the hardware's.
    *Stops*: where something else reads the values, where they are not rounded to 16 bits as factors, where they need
    reductions over columns that are not known before (a softmax whose sums are no tensor), at unknown sizes, and wherever no block
    of rows fits (strategies/tile_loop/plan/TileLoop.h).
  }];
}

def RecomputePairsPass : Pass<"tgl-recompute-pairs", "::tegula::tgl::KernelOp"> {
  let summary = "makes values of pairs again in the sums over them";
  let description = [{
    `r[i, j] = rsqrt(sum(square(x[j, c] - x[i, c]) for c) + e)`, `a[i, c] = sum(m[j]*(x[j, c] - x[i, c])*r[i, j] for j)`:
    r has as many elements as there are pairs, and is made of a few numbers of i and of j. The sum over j makes it again. Short axes
    that r does not have (c) are written out: their sums stand beside each other in one statement, where a thread walks them together
    and makes r once. Distances, kernels of distances, forces.

    *Why here*: values and sums stand in statements of their own (tgl-distribute). For a GPU.
    *Rounding*: values are f32 as before.
    *Stops*: at fewer than 4 M pairs, which caches hold; where a read of the value's own goes over as many axes as the value;
    at sums of more than 8 terms in a value (a product, which tensor cores may make), where memory takes less time than making the
    value in each statement that reads it (4 bytes beside 28 operations), and where axes that are not short repeat the value or
    something else than a sum reads it.
  }];
}

def BoundLoopsPass : Pass<"tgl-bound-loops", "::tegula::tgl::KernelOp"> {
  let summary = "turns filters that compare an axis with others into the axis's bounds";
  let description = [{
    `sum(where(k <= i, a[i,k]*b[k,j], 0) for k in K)` runs over `k < min(K, i + 1)`: structural zeros
    (triangular factors, causal masks) cost nothing. Filters of reductions, and `select`s whose other
    side is the reduction's neutral element, count.

    *Why here*: after distribution and the search for common equations, for which a bound that uses
    other axes would be one more thing a reduction depends on.
    *Rounding*: terms left out are exact neutral elements.
    *Stops*: at conditions that are not one axis with coefficient 1 or -1 against sizes and outer axes.
  }];
}

def DoubleBufferPass : Pass<"tgl-double-buffer", "::tegula::tgl::KernelOp"> {
  let summary = "gives a state that a step reads around each element a second buffer";
  let description = [{
    `for t { n[i] = sum(h[i + r - 1] for r in 3); h[i] = f(n[i], h[i]) }` keeps n, since no point may replace its element of h
    while others read it. With a second buffer one statement does both: `for t { h.new[i] = f(sum(h[i + r - 1] for r in 3),
    h[i]); h[i] = h.new[i] }`. The copy that ends the step is later none (tgl-rotate-buffers). A temporary that is only
    copied to a state of a narrower type, such as `h.new` of f32 to h of bf16, gets that type.

    *Why here*: each statement has its own axes; before fusion, which merges what it may.
    *Rounding*: sums may get another order; values are rounded to the type of the temporary that they were kept in.
    *Stops*: at loops that carry values; where a state's points never meet along one of its dims, since one launch may then
    walk the loop; at products, sums over more than 64 elements, or of unknown length; where a step writes the state twice.
  }];
}

def FusePass : Pass<"tgl-fuse", "::tegula::tgl::KernelOp"> {
  let summary = "groups statements into launches";
  let description = [{
    Pointwise producers are computed in their consumers where that costs nothing or little, and where they unpack a
    factor that strategy `skinny-product` then computes in registers (`skinny-products`); statements
    that share outer axes become one nest over these (softmax is `parallel (i) { m = max; s = sum;
    parallel (j) { write } }`), and temporaries that no other nest reads become private to a point, or
    values. Each nest is a `tgl.launch`. Axes of one point are dropped before: a convolution of one group then has
    the axes of what follows it, which runs on its sums, and a scan of one row those of what takes its steps. And where one statement goes through a dim in digits, as
    through groups of channels, and the other at once, the axis of this one is split: both share the groups then.

    *Why here*: the last pass that thinks in whole statements.
    *Rounding*: none: a temporary of a storage type rounds also when it is read through (`tgl.convert`).
    *Stops*: at dependences that are not point to point along the shared axes, at contractions, whose
    operands are reused along the axes that a nest would run in order, and at recomputing reductions; where the
    machine is wide (`min-points`), at nests of few points with much work each, at elements that are windows
    over more than caches hold, and at sums inside a point that would have a thread each: as statements of their own
    they have a team.
  }];
  let options = [
    Option<"singletons", "singletons", "bool", /*default=*/"false",
           "make a launch of every statement, without fusing">,
    Option<"batchedProducts", "batched-products", "bool", /*default=*/"false",
           "merge contractions of a batch, of which blocks of rows run together later (tgl-block-rows)">,
    Option<"groupedProducts", "grouped-products", "bool", /*default=*/"false",
           "products with a factor that data chooses are contractions (tgl-group-products)">,
    Option<"skinnyProducts", "skinny-products", "bool", /*default=*/"false",
           "factors of products of few rows are computed where they are multiplied (strategy skinny-product)">,
    Option<"reducedProducts", "reduced-products", "bool", /*default=*/"false",
           "merge statements that reduce the columns of one product (strategy product-reduction)">,
    Option<"minPoints", "min-points", "int64_t", /*default=*/"0",
           "points of a nest with much to do at each: fewer leave parts of the machine without work">];
}

def SplitResiduesPass : Pass<"tgl-split-residues", "::tegula::tgl::KernelOp"> {
  let summary = "splits axes where exact divisions leave most points out";
  let description = [{
    In a transposed convolution, `parallel (p) { sum_r x[(p - r)/2] * w[r] }` with a fill of 0, half of the
    summed points have no whole subscript and add nothing. The pass splits p into `2*p + p_rest` and lets r
    take the values `2*r + p_rest mod 2` alone: `parallel (p_rest, p) { sum_r x[p - r] * w[2*r + p_rest] }`.
    With several such axes the work shrinks by the product of their divisors, and subscripts become
    affine: the sum is a convolution for each rest. Where a size is no multiple of the divisor, accesses get
    a guard.

    *Why here*: after fusion, so that all statements of a nest are split alike; before axes are given to the
    machine. For the CPU alone so far.
    *Rounding*: none but that of a sum's order. A product of the fill 0 with inf or nan is left out, as in
    PyTorch, whose transposed convolution has no such product.
    *Stops*: at divisors that are no constants, at weights of the summed axis that share a factor with the
    divisor, and at sums of anything but a product with the read.
  }];
}

def SplitQuotientsPass : Pass<"tgl-split-quotients", "::tegula::tgl::KernelOp"> {
  let summary = "makes the heads of a group, and the groups, axes of their own";
  let description = [{
    `parallel (h = 0 to 32) { s[h, t] = sum_d q[h, d]*k[h floordiv 4, t, d] }` becomes
    `parallel (g = 0 to 8, h = 0 to 4) { s[g, h, t] = sum_d q[4*g + h, d]*k[g, t, d] }`: where a factor of a product
    is chosen by the quotient of an axis, or by its remainder, the axis is split, and with it the dims of temporaries
    that it subscripts and all axes of other statements that do. Then the rows that share a factor are an axis that it
    does not vary along, as if the program had written `(g, r)`.

    *Why here*: before products and softmax are told by their axes. For GPUs, whose strategies do that.
    *Rounding*: none.
    *Stops*: where sizes are not known, where the axis or a dim is subscripted by anything but whole axes, and
    at quotients with something added.
  }];
}

def SplitCasesPass : Pass<"tgl-split-cases", "::tegula::tgl::KernelOp"> {
  let summary = "gives a point one element of each case where conditions halve an axis";
  let description = [{
    `parallel (d = 0 to 128) { where(d < 64, -x[d + 64, fill=0], x[d - 64, fill=0]) }` becomes
    `parallel (d = 0 to 64) { -x[d + 64]; x[d] }`: comparisons of the last axis with numbers, and the places where its
    reads begin to have a fill, cut the axis into cases of equal length, and a point of the new statement computes one
    element of each. Conditions and fills are then decided, and what several cases read is read once: rotary positions
    read each pair once. `tgl-simplify-accesses`, which follows, decides the conditions.

    *Why here*: on whole statements, after which cases share what they read (cse), and before axes are given to the
    machine. For GPUs: a processor's vectors have masks.
    *Rounding*: none.
    *Stops*: where borders are not known numbers, at more than four cases or cases of fewer than eight points, at
    statements with anything but values in them, and at long ones.
  }];
}

def SplitPolyphasePass : Pass<"tgl-split-polyphase", "::tegula::tgl::KernelOp"> {
  let summary = "makes transposed convolutions products whose rows are channels and phases";
  let description = [{
    Where tgl-split-residues gives each rest of a stride its own sums over its own part of the image, this pass
    keeps one image for all rests, called phases: `parallel (p) { sum_r x[(p - r)/2] * w[r] }` becomes
    `parallel (p, p_phase) { sum_j x[p + j] * w[p_phase - 2*j] }`, where j runs over the offsets that any phase
    has and w counts as 0 where there is no such tap. In the product phases are rows beside the output channels:
    few channels (as those of groups are) fill a tile, the image is read once, and results that are neighbours
    come from one block. The price are products with 0, fewer than twice the others in each axis for usual kernels.

    Of several strided dims all but the last may do without them: `sum_j x[p - j + (p_phase + 1)/2] * w[first + 2*j]`
    counts the taps of the phase itself, from the first that it has. Phases of such a dim are then a batch, each of which
    reads the image, so that a tile is of one of them. The model of tiles says which takes less time.

    Products with those zeros must not count where an element is inf or nan: a sum that is not finite is added
    up once more at that point, over the taps that there are.

    *Why here*: as tgl-split-residues, before weights are packed (tgl-order-windows), for statements that
    the contraction strategy takes then.
    *Rounding*: none but that of a sum's order.
    *Stops*: at divisors that are no constants, statements with other sums beside, taps that are used by more
    than reads, and sums of f64.
  }];
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def BlockRowsPass : Pass<"tgl-block-rows", "::tegula::tgl::KernelOp"> {
  let summary = "runs blocks of points of a nest together where their sums of products share a factor";
  let description = [{
    In the nest of attention, `parallel (b, h, i) { ...; tiles j { parallel (j) { sum_e q[i,e]*k[j,e] };
    ...; parallel (d) { sum_j p[j]*v[j,d] } } }`, every row i reads all of k and v. The pass moves the
    axis inside: a point is a block of rows, each statement runs for all rows of the block before the
    next one does, values and private temporaries get the row as their first dim:
    `parallel (b, h, block) { tiles j { parallel (i, j) { ... }; parallel (i) { ... }; parallel (i, d) { ... } } }`.
    Inner statements are matrix products then.

    *Why here*: the last change of nests before axes are given to the machine; for the CPU alone, since
    on a GPU the threads of a block share what they read.
    *Rounding*: none.
    *Stops*: at loops whose bounds differ from row to row, and at sorts.
  }];
  let options = [Option<"rows", "rows", "int64_t", /*default=*/"128", "rows of a block">];
}

def OrderSumsPass : Pass<"tgl-order-sums", "::tegula::tgl::KernelOp"> {
  let summary = "accumulates in the order of the program where it says `deterministic`";
  let description = [{
    In `parallel (n, d) { write add x[n, d] to y[ids[n], d] }` points may meet at an element, and floating-point numbers
    are added in the order in which they come. In a kernel that says `deterministic` it becomes
    `parallel (d) { for n { write add x[n, d] to y[ids[n], d] } }`: points that meet belong to one thread, which goes
    through them in order. Axes that stand alone in a subscript tell elements apart and stay.

    *Why here*: fusion has made its statements, and axes are still as they were written.
    *Rounding*: sums get an order, the same on every machine.
    *Stops*: at integers, whose sums have no order.
  }];
}

def BlockScalesPass : Pass<"tgl-block-scales", "::tegula::tgl::KernelOp"> {
  let summary = "writes block-scaled products of 8-bit floats as one sum, scales beside the products";
  let description = [{
    `sum_g s[i, g] * sum_k a[i, 128*g + k] * b[j, 128*g + k]` becomes one sum over g and k, of three factors, and
    so does `sum_k s[i, k // 128] * a[i, k] * b[j, k]`. Of such a sum the contraction strategy multiplies a and b, 8-bit
    floats, as they are, and s, which does not vary along the last axis, once for a block's sum (BlockScales in
    strategies/contraction/plan/ContractionPlan.h).

    *Why here*: before tgl-group-products, which asks for one sum of products, and while axes are as they were written.
    *Rounding*: a scale multiplies a block's sum, not its products: one rounding for a block in place of one for each
    product.
    *Stops*: at blocks that are no multiples of 128 points, at sizes that are not known, at factors of other types, and
    at scales that vary with rows and with columns.
  }];
}

def GroupProductsPass : Pass<"tgl-group-products", "::tegula::tgl::KernelOp"> {
  let summary = "puts rows in the order of the matrices that data chooses for them";
  let description = [{
    In `parallel (n, m) { y[n, m] = sum_k x[n, k] * w[e[n], k, m] }` each row reads a matrix of its own (the experts of
    a mixture), and nothing is used twice. The pass sorts rows by e: it counts those of each group, gives a group whole
    tiles of rows, one after the other, and writes into `row[tile, place]` which row that is, `group[tile]` whose tile,
    `used[tile]` how many of its places are taken. The statement becomes
    `parallel (tile, place, m) { n = row[tile, place]; if (place < used[tile]) y[n, m] = sum_k x[n, k] *
    w[group[tile], k, m] }`, a batch of matrix products whose matrix is the same for a tile. What else the statement
    computes with n stays as it is: all that has changed is the order of its points. Counts are taken in chunks of rows
    and added up by scans, so the order is that of the program in each group, and the same in every run. Rows whose
    number is of no matrix, which a read reports, have places behind all tiles and a statement like the one that was.

    *Why here*: epilogues are in the statement by now (tgl-fuse keeps products and sums over what they give apart for
    it), and axes are as they were written. For a GPU: a CPU's caches hold what rows after each other read.
    *Rounding*: none but that of a sum's order.
    *Stops*: at sizes that are not known, at groups of fewer than 16 rows on average (of two, where rows would read large
    matrices of 16 bits again), at little work, and where the result is no product for tensor cores.
  }];
}

def CollapseAxesPass : Pass<"tgl-collapse-axes", "::tegula::tgl::KernelOp"> {
  let summary = "counts through neighbouring axes as one";
  let description = [{
    `parallel (n, p, q) { write y[n, p, q] }` over all of y is `parallel (n_p_q)`: the place of an element does
    not change. The pass joins two axes where all that uses them is accesses whose place in memory is a function
    of `p*Q + q`, for pointwise statements and reductions alike (a mean over channels and image, rows of an
    image 7 wide). The subscripts become `n_p_q // Q` and `n_p_q % Q`; the place, which is what code
    generation computes, has no division.

    *Why here*: last before axes are given to the machine: other passes look at subscripts one by one.
    *Rounding*: none but that of a sum's order.
    *Stops*: at accesses that may leave their tensor, which are checked by subscript; at all other uses of an
    axis; at bounds that are no sizes. For a GPU (`alike`) nests of a statement over the same axes, which threads walk
    alike to keep what they read, are changed together or not at all, and products and tile loops keep their axes.
  }];
  let options = [Option<"alike", "alike", "bool", /*default=*/"false",
                        "leave products, and nests of a statement alike">];
}

def OrderWindowsPass : Pass<"tgl-order-windows", "::tegula::tgl::KernelOp"> {
  let summary = "sums over windows with channels innermost, weights packed in that order";
  let description = [{
    In a convolution, `parallel (o, p) { sum_{c, r} x[c, p + r] * w[o, c, r] }` with a fill of 0 for x, which row
    of x and which place in it a term needs, and whether that exists, changes from term to term. The pass sums
    over `(c_outer, r, c)`, c being a run of a power of two of channels: in a step of a tile places differ by
    multiples of one stride, and what they have in common is computed once. The other factor is computed before,
    into a temporary in the order of the new axes, so that copies of it are whole vectors; so what is computed
    on the way (conversions, guards, exact divisions) costs nothing in the product.

    *Why here*: the products are those that the contraction strategy takes, on a GPU; a CPU packs both factors
    in caches as it multiplies.
    *Rounding*: none but that of a sum's order.
    *Stops*: at unknown sizes, products too small for another launch, where elements are used too seldom, and at few weights of
    a tile that has a launch of its own to bring factors into order. Channels
    that 4 does not divide keep their place in the order; the other factor is packed then where it is computed.
  }];
  let options = [Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"",
                        "the tile that the schedule will be asked for">,
                 Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
}

def ReduceInTilesPass : Pass<"tgl-reduce-in-tiles", "::tegula::tgl::KernelOp"> {
  let summary = "begins reductions of a product's results where its tiles are";
  let description = [{
    `parallel (o, p) { c[o, p] = sum_k w[o, k] * x[k, p] }` and `parallel (o) { y[o] = reduce sum (p) { f(c[o, p]) } }` write
    and read all of c. A block that computes a tile of c has some terms of each of the sums: it leaves a number for each,
    `write add f(..), part[o, p floordiv 128] {part}`, and the reduction adds up these. c is gone. Rows, columns and batches may
    be reduced; a part of a tile's rows is a thread's or a warp's.

    *Why here*: reductions still have axes of their own, and tiles are those that the schedule will choose: products are as they
    stay. Parts are in the order of a tile's columns, so that they belong to the tile.
    *Rounding*: sums are added up in another, fixed order.
    *Stops*: at sizes that are not known; at other kinds than sum, min and max; where anything else reads the product's results; where parts would not be of a tile's own
    rows and columns (`strategies/contraction/plan/TileReductions.h`). What cannot run in tiles, such as a call whose addresses are not multiples of 16, adds
    up in one order too, slowly.
  }];
  let options = [Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"",
                        "the tile that the schedule will be asked for">,
                 Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
}

def SplitTileLoopsPass : Pass<"tgl-split-tile-loops", "::tegula::tgl::KernelOp"> {
  let summary = "divides tile loops of few rows among blocks, and ends them where masks do";
  let description = [{
    Attention at a step of decoding has a row or a few for each sequence and group of heads, and a long loop over
    keys. `parallel (b, g, r) { tiles (j = 0 to T) { m' = max(m, ..); l' = l*exp(m - m') + .. }; o = acc/l }` becomes
    `parallel (part, b, g, r) { tiles (j of the part) { .. }; write m, l, acc of the part }` and a statement that merges parts: the
    largest m, and sums of l*exp(m_part - m). That the loop's values merge so is derived from how a turn changes
    them (`passes/schedule/LoopStates.h`), whatever softmax or other sum it is.

    A mask without which a turn changes nothing (`t < len[b]`, a window) bounds the loop, also where data gives it: blocks
    whose part is behind the end write that they have seen nothing.

    *Why here*: nests are final, and axes are still those of the program, of which some are rows of one tile.
    *Rounding*: sums are added up in another, fixed order.
    *Stops*: at sizes that are not known, where the strategy `tile-loop` takes the statement, at values of which parts cannot be merged, and where
    blocks already fill the machine.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
}

def FuseVariancesPass : Pass<"tgl-fuse-variances", "::tegula::tgl::KernelOp"> {
  let summary = "computes a variance in the pass over memory that computes its mean";
  let description = [{
    `s = reduce sum x; m = s / n; q = reduce sum (x - m)*(x - m)` reads x twice. The second reduction becomes
    `q = n * (reduce var x)`, which does not need the mean first: a thread keeps count, mean and squared
    distances of the terms that it has seen (Welford, 1962), and those of two threads are combined (Chan, Golub
    and LeVeque, 1979). Code generation does both reductions in one loop. Sums that are written for a later
    statement are first forwarded to where their own statement reads them back.

    *Why here*: at last it is known which reductions stand in one statement. A reduction that is left to
    code generation as `var` stops other passes from seeing a sum.
    *Rounding*: as good as two passes, also where the mean is much larger than the deviation.
    *Stops*: at sizes that are not known; where rows are short enough for the registers of a block, which are
    read once anyway, and at short columns, whose terms are not worth a division each.
  }];
}

def SplitReductionsPass : Pass<"tgl-split-reductions", "::tegula::tgl::KernelOp"> {
  let summary = "cuts long reductions of statements with few points into pieces";
  let description = [{
    `%s = tgl.reduce sum (%k = 0 to 1048576)` in a statement of one point becomes a temporary of 64 partial
    sums, each over 16384 terms, and a sum of those. The pieces are points of a statement of their own, which
    fills the machine. An argmax becomes the places of the pieces' largest terms and these terms; of them the first of the
    largest has the place. Rows that no cluster of blocks keeps are cut also where there are a few for each place of the
    machine: the last of them would run for long while others have nothing to do. Columns of a product that is reduced by
    warpgroups are cut where there are fewer rows than keep all multiprocessors busy, or than stay in L2.

    *Why here*: statements are final, and it is known for which machine they are.
    *Rounding*: sums are added up in another, fixed order.
    *Stops*: at sizes that are not known, at an argmax of some terms only (of a piece without any there is no place), and where the
    reduction needs a temporary of its statement or what the statement writes.
  }];
  let options = [Option<"threads", "threads", "int64_t", /*default=*/"131072",
                        "threads that keep the machine busy">,
                 Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">,
                 Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"", "as PipelineOptions has it">,
                 Option<"productReductions", "product-reductions", "bool", /*default=*/"true",
                        "cut columns of products for blocks of warpgroups (strategy product-reduction)">];
}

def SpreadNestsPass : Pass<"tgl-spread-nests", "::tegula::tgl::KernelOp"> {
  let summary = "gives nests of statements with few points statements of their own";
  let description = [{
    `parallel (n) { s = ...; parallel (c, i) { y = (x - s)... } }` with 16 points n would run on 16 blocks. Its
    last nest becomes `parallel (n, c, i) { y = (x - s[n])... }`, a statement of its own whose points fill the
    machine; values of n that it uses are kept in temporaries.

    *Why here*: as for tgl-split-reductions, which cuts the long reductions of such statements.
    *Rounding*: none.
    *Stops*: at nests that need a temporary of their statement; where blocks enough have work.
  }];
  let options = [Option<"threads", "threads", "int64_t", /*default=*/"131072",
                        "threads that keep the machine busy">];
}

def SplitRecurrencesPass : Pass<"tgl-split-recurrences", "::tegula::tgl::KernelOp"> {
  let summary = "cuts long linear recurrences into parts that run side by side";
  let description = [{
    `parallel (i) { for t = 0 to 32768 iter (%h) { h1 = a[i, t]*h + b[i, t]; write; yield h1 } }` becomes three statements: each
    part of the steps makes of any h `factor*h + sum`, over all parts at once and in f64; what each part begins with, part
    after part; and the steps as they were, each part from its beginning. Where steps may leave f32's range, or enlarge
    what is rounded off by more than 2^16 (factors above 1), the second statement walks that part's steps as they were,
    in a loop marked `seldom`.

    *Why here*: as for tgl-split-scans.
    *Rounding*: what a part begins with is computed in another order, which depends on sizes alone.
    *Stops*: at sizes that are not known, at states of other types than f32, at loops that do more than such a step and
    what follows from it, at fewer than four parts of 32 steps, and where points give the machine work.
  }];
  let options = [Option<"threads", "threads", "int64_t", /*default=*/"131072",
                        "threads that keep the machine busy">];
}

def SplitScansPass : Pass<"tgl-split-scans", "::tegula::tgl::KernelOp"> {
  let summary = "cuts long scans into tiles";
  let description = [{
    `tgl.for %i = 0 to 1048576 iter (%c = %init) { n = c + x[i]; write n to y[i]; yield n }` in a statement of one point
    is one block's. It gets a statement of its own and a `scan_tile`: how many neighbouring points a tile has, how many
    elements a thread, and how many parts of the steps a group. Blocks take tiles as they come, and find the total before
    theirs by looking back at what earlier ones have published (strategies/scan/lower/LookBackScan.h). Sums, products, largest and
    smallest elements, in both directions, with whatever else the loop computes and writes.

    *Why here*: as for tgl-split-reductions, which gives values that loops use; nests that read what a loop writes have
    statements of their own by now.
    *Rounding*: totals are added up in another order, which depends on sizes alone.
    *Stops*: at sizes that are not known, at loops whose step is no such operation (recurrences), where the loop needs a
    temporary of its statement, or that what it writes, at short loops, and at rows of whole vectors that fill the machine.
  }];
  let options = [Option<"threads", "threads", "int64_t", /*default=*/"131072",
                        "threads that keep the machine busy">];
}

def SplitSortsPass : Pass<"tgl-split-sorts", "::tegula::tgl::KernelOp"> {
  let summary = "gives sorts of long rows launches of their own";
  let description = [{
    `parallel (b) { before; parallel (j) { values[b, j] = v; places[b, j] = j }; tgl.sort values, places[b]; after }` becomes
    three launches: what stands before, the nest that makes a row's elements with the sort, what stands after. The nest
    comes along from another launch too. It is evaluated where the sort reads its elements, so they are not stored before;
    where it does more than that, the elements are stored, and a nest that copies them takes its place. Temporaries and
    values that cross are kept in memory.

    *Why here*: statements are what they stay, and what reads sorted rows may still be cut into pieces, or spread.
    *Rounding*: none.
    *Stops*: at sizes that are not known, at rows that one block sorts in registers, at sorts inside other nests, and
    where the elements' places are not their numbers.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">,
                 Option<"wholeRows", "whole-rows", "bool", /*default=*/"true", "a block may sort a row">];
}

def GatherRecurrencesPass : Pass<"tgl-gather-recurrences", "::tegula::tgl::KernelOp"> {
  let summary = "puts a loop on the host into a statement over the rows that it is independent for";
  let description = [{
    `for t { a[n, g] = sum(w[g, k] * h[n, k] for k); h[n, u] = f(gx[t, n, u], a[n, u], a[n, H + u]) }` launches two
    functions for each step. Rows n never meet. So it becomes one statement
    `parallel (n) { temp next; for t { parallel (u) { next[u] = f(...) }; parallel (u) { h[n, u] = next[u] } } }`, the
    sums standing where they are used, for which strategy `recurrence` keeps the weights w in registers.

    *Why here*: before axes are collapsed, after statements are what they stay.
    *Rounding*: none; a temporary's value is rounded as it was when it was stored.
    *Stops*: at loops for which that strategy has no plan: a state that rows share, sums of another form, weights that
    a cluster of blocks has no room for, so many rows that launches for each step take less time.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"sm_90a\"", "as TargetInfo::parse reads it">];
}

def InterchangeLoopsPass : Pass<"tgl-interchange-loops", "::tegula::tgl::KernelOp"> {
  let summary = "puts a loop on the host into one launch over the axes along which its steps are independent";
  let description = [{
    `for t { u[b, j] = v[b, t, j] - sum(k[b, t, i] * S[b, i, j] for i); S[b, i, j] = S[b, i, j] + k[b, t, i] * u[b, j] }`
    launches functions for each step. An axis of its statements is independent where every access to a tensor that
    the loop writes has the axis itself as subscript, in the same dim everywhere: b and j here, along which all
    dependences have distance 0. The loop changes places with these axes: `parallel (b, j) { temp S; for t {
    u = v[b, t, j] - reduce (i) ...; parallel (i) { S[i] = ... } } }`. Axes that are left are nests inside of it,
    between which threads of a team meet at barriers. Launches beside the loop that fill a state or take it, an element
    for each point, and loops over the same axes come along. A tensor that nothing else uses becomes private to the
    point, in registers or shared memory where it fits. A point that walks recurrences, `temp r[N, T]; parallel (n) { for t
    iter (h) { r[n, t] = h } }; parallel (t) { reduce (n) r[n, t] }`, becomes a loop over t with states of one step
    (passes/schedule/WalkTogether.h).

    *Why here*: after strategy `recurrence` has had its choice of loops; before axes are collapsed.
    *Rounding*: none of its own; sums inside of a step may get another order.
    *Stops*: at loops that carry values or whose bounds are data; where no axis is independent or few points are,
    and launches for each step take less time (LoopCosts.cpp estimates both); without sizes, at products for tensor
    cores.
  }];
}

def ChainLaunchesPass : Pass<"tgl-chain-launches", "::tegula::tgl::KernelOp"> {
  let summary = "puts launches of small sums that share points into one launch";
  let description = [{
    `t[b, i, j] = sum(h[i, k] * x[b, k, j] for k); y[b, i, j] = sum(t[b, i, k] * h[k, j] for k)` launches a function for
    each equation, between which t goes through memory. All accesses to t have b itself as subscript, in the same dim:
    points of b never meet. So they become one launch, `parallel (b) { temp t; parallel (i, j) { t[i, j] = ... }; parallel
    (i, j) { y[b, i, j] = ... } }`, whose points a team of threads each has (attribute `team`: part of a warp, a warp, a
    block). Tensors that nothing else uses become private to the point, in shared memory. A point's part of an input that
    sums read again and again is copied there first (passes/schedule/StagePoints.h). Nests over the same points that read alike
    or hand values on become one. In the nests each thread computes a tile of points together (attribute `point_tile`,
    which tgl-schedule sets; passes/analysis/RegisterTiles.h chooses it). One launch may become such a statement too.

    Launches between those of the chain that do not depend on it run before it. Which of the axes along which points
    never meet become the statement's, and how many threads a team has, an estimate of the time says
    (passes/schedule/ChainCosts.cpp).

    *Why here*: loops of steps have had their choice; axes are those of the equations yet, not collapsed.
    *Rounding*: a sum is added up term by term as by a thread alone; of `sum(a*b - c*d)` both products are added to
    the sum, one after the other.
    *Stops*: at sizes that are not known, kernels that are invariant to sizes, and those with a schedule; at statements with more than plain reads
    and writes, values, and sums, products and extremes of at most 256 terms; where no sum reads an element for several
    points; where a point's temporaries do not fit into shared memory; and where launches of their own, tensor cores
    among them, should take less than 1.25 of the time.
  }];
}

def RotateBuffersPass : Pass<"tgl-rotate-buffers", "::tegula::tgl::KernelOp"> {
  let summary = "lets steps of a loop on the host hand their states on by name, not by copies";
  let description = [{
    `for t { next[i] = f(a, b); b[i] = a[i]; a[i] = next[i] }` copies two tensors at the end of each step. After the step the
    buffer of `next` may be called `a`, that of `a` be called `b`, and that of `b`, whose elements nobody needs any more, `next`.
    After a period of three steps all have their first names again: three steps are written out under a loop over periods,
    without copies. A write is left out where it gives each element of a state the element of another tensor at the
    same place, nothing changes one or the other behind it in the step, and that tensor is handed on itself or is a temporary
    of the step. What reads the state behind it reads that tensor. Other statements of the step stay as they are.

    Steps that are no whole period follow the loop: where their number is known they are written out too, and what comes
    behind has the names that they leave; else, for parameters of the kernel, and in a loop inside of another, they keep
    their copies. Where a state is first a copy (`a[i] = u[i]`), the first period stands before the loop and reads
    `u` itself; a result that takes a state in the end (`y[i] = a[i]`) is one of the buffers.

    *Why here*: after loops that one launch walks; statements are fused, and axes still are those of the tensors.
    *Rounding*: none.
    *Stops*: at loops that carry values; at periods of more than six steps; where the steps that are written out would have more than 48 launches.
  }];
}

def FindLastWritersPass : Pass<"tgl-find-last-writers", "::tegula::tgl::KernelOp"> {
  let summary = "finds the last writers of a scatter in one launch, without setting their places before";
  let description = [{
    `y[slot[i], d] = x[i, d]` keeps in a table which i is the last that writes a row: a launch sets the rows' places to -1,
    one takes the maximum of the numbers i there. Now one launch does both. What stands in the table before may be anything. It
    counts where it is the number of a point that writes the same row (`slot[found] == slot[i]`, and its filter is true); else the
    point's own number replaces it, by compare-and-swap. All numbers that points write count, so an element is replaced once,
    and then the maximum is taken. Numbers have 32 bits where there are few enough points.

    *Why here*: after what changes axes and fuses statements, before strategies are chosen. For a GPU.
    *Rounding*: none; the table holds the same.
    *Stops*: where the place or the filter of a point is computed by a loop or a reduction, or read from what the nest writes; at points that are not
    numbered in row-major order of the nest's axes; at more than 8 points for each element of the table, which few-targets and the warps combine.
  }];
}

def SchedulePass : Pass<"tgl-schedule", "::tegula::tgl::KernelOp"> {
  let summary = "gives each launch a strategy and maps its axes to the machine";
  let description = [{
    Strategy `general` runs any launch. It orders the axes of a `parallel` so that the last one is
    contiguous in most accesses, and says for each axis of a `parallel` or `reduce` what carries it,
    as a comma-separated list in `mapping`: `thread` (spread over CPU threads, or blocks and threads of
    a GPU), `vector` (the one axis of a nest whose accesses are contiguous: vector lanes, or
    neighbouring threads) or `loop` (in order).

    Strategy `contraction` is for launches on a GPU with statements that are matrix products of f16, bf16
    or f32 elements. In `tile` it says which rectangle of the result a block of threads computes on tensor
    cores, with how many warps, and how many blocks share a long sum.

    *Why here*: code generation follows the attributes. Layouts, copies and warp roles it decides itself.
    *Rounding*: `vector` on a reduction splits it into lanes; `contraction` adds up in another order, and
    keeps the accuracy of f32 (docs/design/f32-accuracy.md).
    *Stops*: at nothing.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "as TargetInfo::parse reads it">,
                 Option<"tensorTile", "tensor-tile", "std::string", /*default=*/"\"\"",
                        "the tile of `contraction`, by name, where a statement can have it">,
                 ListOption<"without", "without", "std::string", "strategies left out, by name">];
}

//===----------------------------------------------------------------------===//
// Between phases
//===----------------------------------------------------------------------===//

def VerifyPhasePass : Pass<"tgl-verify-phase", "::mlir::ModuleOp"> {
  let summary = "checks what the phase before guarantees";
  let description = [{
    After `simplify`: no calls, no private kernels, no `tgl.index` that an access could hold. After
    `fuse`: no scans, no derived reductions (mean, var, logsumexp); every statement stands in a launch.
    After `schedule`: every launch has a strategy, every `parallel` in it a mapping.
  }];
  let options = [Option<"phase", "phase", "std::string", /*default=*/"",
                        "the phase that has ended: simplify, fuse or schedule">];
}

#endif // TEGULA_PASSES_PASSES_TD
