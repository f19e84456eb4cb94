//===- TglOps.td - Operations of the tgl dialect -----------------------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGLOPS_TD
#define TEGULA_IR_TGLOPS_TD

include "ir/tgl/TglDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tgl_Op<string mnemonic, list<Trait> traits = []> : Op<TglDialect, mnemonic, traits>;

/// Readable SSA names for block arguments, from the attributes that keep the user's names.
def NamedArguments : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

def IndexedOp : OpInterface<"IndexedOp"> {
  let description = [{
    An op that holds integer expressions. Dim `d<n>` of each stands for the n-th of the `indices`; in
    the bounds of an op with axes, dims after those are the op's own axes. TglUtils.h has functions
    that read and rewrite expressions in terms of values, so that nobody else counts dims.
  }];
  let cppNamespace = "::tegula::tgl";
  let methods = [
    InterfaceMethod<"the values that dims stand for", "::mlir::OperandRange", "getIndices">,
    InterfaceMethod<"", "::mlir::MutableOperandRange", "getIndicesMutable">,
  ];
}

def AxesOp : OpInterface<"AxesOp", [IndexedOp]> {
  let description = [{
    An op whose region runs over a box of axes, its first block arguments: `lows[k] <= axis k <
    highs[k]`, bounds may use earlier axes of the list.
  }];
  let cppNamespace = "::tegula::tgl";
  let methods = [
    InterfaceMethod<"", "::mlir::ArrayAttr", "getLows">,
    InterfaceMethod<"", "::mlir::ArrayAttr", "getHighs">,
    InterfaceMethod<"", "void", "setLowsAttr", (ins "::mlir::ArrayAttr":$lows)>,
    InterfaceMethod<"", "void", "setHighsAttr", (ins "::mlir::ArrayAttr":$highs)>,
    InterfaceMethod<"the user's names of the axes, for readers", "std::optional<::mlir::ArrayAttr>",
                    "getNames">,
    InterfaceMethod<"", "void", "setNamesAttr", (ins "::mlir::ArrayAttr":$names)>,
    InterfaceMethod<"", "::mlir::Block *", "getAxesBlock", (ins), [{}], [{
      return &$_op->getRegion(0).front();
    }]>,
    InterfaceMethod<"", "::mlir::Block::BlockArgListType", "getAxes", (ins), [{}], [{
      return $_op->getRegion(0).front().getArguments().take_front($_op.getLows().size());
    }]>,
  ];
}

def IndexExprArrayAttr : TypedArrayAttrBase<IndexExprAttr, "integer expressions">;
/// What a value can be: an element's compute type, or an integer for subscripts.
def Tgl_Scalar : AnyTypeOf<[I1, I32, I64, F32, F64, Index]>;

//===----------------------------------------------------------------------===//
// Kernels and tensors
//===----------------------------------------------------------------------===//

def KernelOp : Tgl_Op<"kernel", [FunctionOpInterface, IsolatedFromAbove, SingleBlock,
                                 NoTerminator, NamedArguments]> {
  let summary = "a kernel: arguments, sizes, guards and statements";
  let description = [{
    Arguments are tensors (inputs, then `inout`s as they come, then outputs) and run-time scalars;
    each has attributes `tgl.name` and `tgl.role` = "in", "inout", "out" or "scalar". `sizes` lists
    the size symbols in order of definition (`M = 0 : 1` is bound by argument 0, dim 1; `P = e` is
    derived); every symbol in the body is among them. `guards [divides C, G : "text"]` are conditions
    on the sizes of a launch. A private kernel is a called one: its symbols are its caller's and it
    has no `sizes` and `guards`.

    ```mlir
    tgl.kernel @scale(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
        sizes [M = 0 : 0, N = 0 : 1] {
      tgl.parallel (%i = 0 to M, %j = 0 to N) {
        %c = arith.constant 2.0 : f32
        %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
        %w = arith.mulf %v, %c : f32
        tgl.write %w, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       DefaultValuedAttr<TypedArrayAttrBase<SizeAttr, "sizes">, "{}">:$sizes,
                       DefaultValuedAttr<TypedArrayAttrBase<GuardAttr, "guards">, "{}">:$guards,
                       OptionalAttr<StrAttr>:$precision, UnitAttr:$deterministic,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::ArrayRef<KernelArgument>":$arguments,
                   CArg<"bool", "false">:$isPrivate)>
  ];
  let skipDefaultBuilders = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::StringRef getArgName(unsigned index);
    ::llvm::StringRef getArgRole(unsigned index);
    bool isCalled() { return getSymVisibility() == "private"; }
    ::llvm::ArrayRef<::mlir::Attribute> getSizeAttrs() { return getSizes().getValue(); }
    ::llvm::ArrayRef<::mlir::Attribute> getGuardAttrs() { return getGuards().getValue(); }
  }];
}

def CallOp : Tgl_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a private kernel on tensors";
  let description = [{
    Operands are the callee's arguments in order, outputs included: `tgl.call @conv2d_0(%x, %w, %h)`.
    The inliner replaces every call.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$args);
  let assemblyFormat = "$callee `(` $args `)` attr-dict (`:` type($args)^)?";
}

def TempOp : Tgl_Op<"temp", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a temporary tensor, undefined until written";
  let description = [{
    At the top of a kernel (or of a sequential loop) it lives in global memory; inside a `parallel`
    region each point has its own, as does each iteration of a loop around it. A tensor that keeps
    its elements from one iteration to the next stands before the loop. `%h = tgl.temp "h" : !tgl.tensor<[M, N], bf16>`.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Res<TglTensorType, "", [MemAlloc]>:$tensor);
  let assemblyFormat = "$name attr-dict `:` qualified(type($tensor))";
}

//===----------------------------------------------------------------------===//
// Integers and accesses
//===----------------------------------------------------------------------===//

def IndexOp : Tgl_Op<"index", [Pure, IndexedOp]> {
  let summary = "the value of an integer expression";
  let description = "`%k = tgl.index %i + 2*M - 1`; the result has type index.";
  let arguments = (ins IndexExprAttr:$expr, Variadic<Index>:$indices);
  let results = (outs Index:$result);
  let builders = [OpBuilder<(ins "const ValueExpr &":$value)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = "ValueExpr getValueExpr() { return {getExpr().getExpr(), getIndices()}; }";
}

def ReadOp : Tgl_Op<"read", [AttrSizedOperandSegments, IndexedOp]> {
  let summary = "an element of a tensor, in its compute type";
  let description = [{
    `x[s_0, ..., s_r]`. Inside the tensor by proof or launch guard, unless it says otherwise:

    - `if %c`: where %c is false nothing is read and the value is 0;
    - `exact (%p - %r by S)`: where S does not divide the numerator, the value is the fill (0 without
      one); a list where several subscripts divide;
    - `fill %v`: outside the tensor the value is %v, of the result's type;
    - `checked "ids[i]"`: subscripts come from data; outside, the value is 0 and the run reports an
      error that names the subscript.

    With the attribute `unordered` the element may be undefined, and other points may write it at
    the same time: the value is any that it has had.

    ```mlir
    %v = tgl.read %x[%n, %p + %r - pad] fill %zero if %c : !tgl.tensor<[N, W], f32>
    ```
  }];
  let arguments = (ins Arg<TglTensorType, "", [MemRead]>:$tensor, IndexExprArrayAttr:$subscripts,
                       IndexExprArrayAttr:$exactNumerators, IndexExprArrayAttr:$exactDenominators,
                       Variadic<Index>:$indices, Optional<I1>:$guard, Optional<Tgl_Scalar>:$fill,
                       OptionalAttr<StrAttr>:$checked);
  let results = (outs Tgl_Scalar:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$tensor, "::llvm::ArrayRef<ValueExpr>":$subscripts,
                   CArg<"::mlir::Value", "{}">:$fill, CArg<"::mlir::Value", "{}">:$guard,
                   CArg<"::llvm::ArrayRef<std::pair<ValueExpr, ValueExpr>>", "{}">:$exact,
                   CArg<"::llvm::StringRef", "{}">:$checked)>
  ];
  let extraClassDeclaration = [{
    TglTensorType getTensorType() { return ::mlir::cast<TglTensorType>(getTensor().getType()); }
    ::llvm::SmallVector<ValueExpr> getSubscriptExprs();
    /// Numerator and denominator of each division that must be exact.
    ::llvm::SmallVector<std::pair<ValueExpr, ValueExpr>> getExactExprs();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def WriteOp : Tgl_Op<"write", [AttrSizedOperandSegments, IndexedOp]> {
  let summary = "defines, or adds to, an element of a tensor";
  let description = [{
    `y[s_0, ..., s_r] = v`, rounded (nearest even) or wrapped to the element type; with `add`,
    `y[...] += v` in f32 or wider, in any order; with `max` or `min` the larger or the
    smaller of both stays, of floats NaN where one is; with `any` all points that meet write the same
    value, which stays. `if %c` and `checked` as in `tgl.read`: a bad write is
    dropped and reported. No two points of a kernel write one element, except in these four ways. Steps of a
    loop may, and the last one counts; an attribute `apart` says that these do not. An attribute `distinct`
    names the data of which the program says that they keep points apart, for checked mode.
    `max %v ... replaces %f unless %c`: where %c is false, and the element still holds %f (what an `unordered`
    read has found there), it becomes %v, whatever is larger. So the first point that finds an old value takes
    its place, and those that come later meet as with `max`.
    `tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f16>`, `tgl.write max %v, %y[%i] : ...`.
  }];
  let arguments = (ins Tgl_Scalar:$value, Arg<TglTensorType, "", [MemWrite]>:$tensor,
                       IndexExprArrayAttr:$subscripts, Variadic<Index>:$indices, Optional<I1>:$guard,
                       Optional<Tgl_Scalar>:$replaced, Optional<I1>:$unless,
                       OptionalAttr<ReduceKind>:$combine, OptionalAttr<StrAttr>:$checked);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$tensor,
                   "::llvm::ArrayRef<ValueExpr>":$subscripts, CArg<"::mlir::Value", "{}">:$guard,
                   CArg<"std::optional<ReduceKind>", "{}">:$combine, CArg<"::llvm::StringRef", "{}">:$checked)>
  ];
  let extraClassDeclaration = [{
    TglTensorType getTensorType() { return ::mlir::cast<TglTensorType>(getTensor().getType()); }
    ::llvm::SmallVector<ValueExpr> getSubscriptExprs();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def SortOp : Tgl_Op<"sort", [IndexedOp]> {
  let summary = "sorts a row of a tensor in place, and with it a row of positions";
  let description = [{
    The elements `values[s_0, ..., s_r, :]` come into ascending order, or with `descending` into
    descending order, and those of `positions`, of the same shape, move along. Stable; nan is the
    largest, as in PyTorch.

    ```mlir
    tgl.sort %v, %p[%i] descending : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i64>
    ```
  }];
  let arguments = (ins Arg<TglTensorType, "", [MemRead, MemWrite]>:$values,
                       Arg<TglTensorType, "", [MemRead, MemWrite]>:$positions,
                       IndexExprArrayAttr:$subscripts, Variadic<Index>:$indices, UnitAttr:$descending);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$values, "::mlir::Value":$positions,
                   "::llvm::ArrayRef<ValueExpr>":$subscripts, CArg<"bool", "false">:$descending)>
  ];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<ValueExpr> getSubscriptExprs();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

def ParallelOp : Tgl_Op<"parallel", [RecursiveMemoryEffects, SingleBlock, NoTerminator,
                                     NamedArguments, AxesOp]> {
  let summary = "runs its body for all points of its axes, in any order";
  let description = [{
    `tgl.parallel (%i = 0 to M, %j = 0 to %i + 1) { ... }`. Bounds are expressions over operands, the
    axes before them in the list, and sizes; empty where hi <= lo. `mapping` is set by scheduling.
  }];
  let arguments = (ins IndexExprArrayAttr:$lows, IndexExprArrayAttr:$highs, Variadic<Index>:$indices,
                       OptionalAttr<StrArrayAttr>:$names, OptionalAttr<StrAttr>:$mapping);
  let regions = (region SizedRegion<1>:$body);
  // Builders of ops with axes make the block and its arguments; bounds that use the op's own axes are
  // set afterwards with setAxisRange (TglUtils.h).
  let builders = [
    OpBuilder<(ins "::llvm::ArrayRef<AxisSpec>":$axes, CArg<"::llvm::StringRef", "{}">:$mapping)>
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def ReduceOp : Tgl_Op<"reduce", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">,
                                   NamedArguments, AxesOp]> {
  let summary = "combines a value over axes";
  let description = [{
    `r = sum_{lo <= k < hi} v(k)`, and likewise for the other kinds. The region yields the value and,
    where `filtered`, an i1 second: points where it is false do not count. argmax and argmin have one axis
    and give the first winner as i64. Accumulation is in the value's type, in an order that the
    compiler chooses. Over nothing: 0, 1, -inf, inf, nan, nan, false, true, 0, -inf (logsumexp).

    ```mlir
    %s = tgl.reduce sum (%k = 0 to K) -> f32 {
      %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      tgl.yield %a : f32
    }
    ```
  }];
  let arguments = (ins ReduceKind:$kind, IndexExprArrayAttr:$lows, IndexExprArrayAttr:$highs,
                       Variadic<Index>:$indices, OptionalAttr<StrArrayAttr>:$names, UnitAttr:$unbiased,
                       UnitAttr:$filtered, OptionalAttr<StrAttr>:$mapping);
  let results = (outs Tgl_Scalar:$result);
  let regions = (region SizedRegion<1>:$body);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "ReduceKind":$kind, "::llvm::ArrayRef<AxisSpec>":$axes,
                   CArg<"bool", "false">:$filtered, CArg<"bool", "false">:$unbiased)>
  ];
  let extraClassDeclaration = [{
    YieldOp getYield();
    ::mlir::Value getReduced();
    /// The second yielded value of a filtered reduction, else null.
    ::mlir::Value getFilter();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def ScanOp : Tgl_Op<"scan", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">,
                                   AttrSizedOperandSegments, NamedArguments, AxesOp]> {
  let summary = "one position of a scan, softmax or sort along axes";
  let description = [{
    The region gives the sequence v(k), lo <= k < hi; `at` names the wanted position:
    cumsum: `sum_{k <= at} v(k)`; softmax: `exp(v(at)) / sum_k exp(v(k))` (several axes allowed);
    sort: the at-th smallest; argsort, topk_index: where it stands; topk_value: the at-th largest,
    the first of equals first. recurrence: the region yields a and b,
    `h(k) = a(k)*h(k-1) + b(k)`, h(lo-1) = init. `reverse`, `exclusive`, `descending` as in the language.

    ```mlir
    %c = tgl.scan cumsum (%k = 0 to N) at [%j] -> f32 { ... tgl.yield %v : f32 }
    ```
  }];
  let arguments = (ins ScanKind:$kind, IndexExprArrayAttr:$lows, IndexExprArrayAttr:$highs,
                       IndexExprArrayAttr:$positions, Variadic<Index>:$indices,
                       Optional<Tgl_Scalar>:$init, OptionalAttr<StrArrayAttr>:$names,
                       UnitAttr:$reverse, UnitAttr:$exclusive, UnitAttr:$descending);
  let results = (outs Tgl_Scalar:$result);
  let regions = (region SizedRegion<1>:$body);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "ScanKind":$kind, "::llvm::ArrayRef<AxisSpec>":$axes,
                   "::llvm::ArrayRef<ValueExpr>":$positions, CArg<"::mlir::Value", "{}">:$init,
                   CArg<"bool", "false">:$reverse, CArg<"bool", "false">:$exclusive,
                   CArg<"bool", "false">:$descending)>
  ];
  let extraClassDeclaration = [{
    YieldOp getYield();
    ::llvm::SmallVector<ValueExpr> getPositionExprs();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def ForOp : Tgl_Op<"for", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">,
                             AttrSizedOperandSegments, NamedArguments, IndexedOp]> {
  let summary = "a sequential loop with carried values";
  let description = [{
    `%r = tgl.for %t = 0 to T iter (%h = %h0 : f32) { ... tgl.yield %h1 : f32 }`; `reverse` walks
    down. `names`: of the loop variable and of the carried values.
  }];
  let arguments = (ins IndexExprAttr:$low, IndexExprAttr:$high, Variadic<Index>:$indices,
                       Variadic<Tgl_Scalar>:$inits, UnitAttr:$reverse, OptionalAttr<StrArrayAttr>:$names);
  let results = (outs Variadic<Tgl_Scalar>:$results);
  let regions = (region SizedRegion<1>:$body);
  /// `names`: of the loop variable and of each carried value, or of the former alone.
  let builders = [
    OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$names, "const ValueExpr &":$low,
                   "const ValueExpr &":$high, CArg<"::mlir::ValueRange", "{}">:$inits,
                   CArg<"bool", "false">:$reverse)>
  ];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getLoopVar() { return getBody().front().getArgument(0); }
    ::mlir::Block::BlockArgListType getIterArgs() { return getBody().front().getArguments().drop_front(1); }
    ValueExpr getLowExpr() { return {getLow().getExpr(), getIndices()}; }
    ValueExpr getHighExpr() { return {getHigh().getExpr(), getIndices()}; }
    YieldOp getYield();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TilesOp : Tgl_Op<"tiles", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">,
                             AttrSizedOperandSegments, NamedArguments, IndexedOp]> {
  let summary = "a sequential loop over a range in tiles";
  let description = [{
    `%r = tgl.tiles (%b, %e) = 0 to T size 1 iter (%m = %m0 : f32) { ... }` runs its body for tiles
    [b, e) of at most `size` elements that cover the range in order. What varies inside a tile is a
    `parallel` or `reduce` from %b to %e. Without `size` the compiler has not chosen yet. `names`: of
    the axis (its block arguments print as `%j_lo`, `%j_hi`) and of the carried values.
  }];
  let arguments = (ins IndexExprAttr:$low, IndexExprAttr:$high, Variadic<Index>:$indices,
                       Variadic<Tgl_Scalar>:$inits, OptionalAttr<I64Attr>:$size,
                       OptionalAttr<StrArrayAttr>:$names);
  let results = (outs Variadic<Tgl_Scalar>:$results);
  let regions = (region SizedRegion<1>:$body);
  /// `names`: of the loop variable and of each carried value, or of the former alone.
  let builders = [
    OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$names, "const ValueExpr &":$low,
                   "const ValueExpr &":$high, CArg<"::mlir::ValueRange", "{}">:$inits,
                   CArg<"std::optional<int64_t>", "std::nullopt">:$size)>
  ];
  let extraClassDeclaration = [{
    /// The current tile is [getTileLow(), getTileHigh()).
    ::mlir::BlockArgument getTileLow() { return getBody().front().getArgument(0); }
    ::mlir::BlockArgument getTileHigh() { return getBody().front().getArgument(1); }
    ::mlir::Block::BlockArgListType getIterArgs() { return getBody().front().getArguments().drop_front(2); }
    ValueExpr getLowExpr() { return {getLow().getExpr(), getIndices()}; }
    ValueExpr getHighExpr() { return {getHigh().getExpr(), getIndices()}; }
    YieldOp getYield();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def LaunchOp : Tgl_Op<"launch", [RecursiveMemoryEffects, SingleBlock, NoTerminator]> {
  let summary = "statements that run as one device function";
  let description = [{
    `tgl.launch "softmax" strategy "general" { ... }`: made by fusion, given its strategy and parameters
    (`schedule`) by scheduling. Statements inside run in order; the launch ends when all have.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<StrAttr>:$strategy, OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name)>];
  let assemblyFormat = "$name (`strategy` $strategy^)? attr-dict-with-keyword $body";
}

def YieldOp : Tgl_Op<"yield", [Pure, Terminator, ParentOneOf<["ReduceOp", "ScanOp", "ForOp", "TilesOp"]>]> {
  let summary = "the values of one point";
  let arguments = (ins Variadic<Tgl_Scalar>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; }]>];
}

//===----------------------------------------------------------------------===//
// Values that arith and math lack
//===----------------------------------------------------------------------===//

def ConvertOp : Tgl_Op<"convert", [Pure]> {
  let summary = "rounds a value to an element type, result in its compute type";
  let description = [{
    To floats: nearest even, overflow to inf (f8E4M3FN: nan). From floats to integers: truncated,
    saturated, nan to 0; with `nearest`, rounded to nearest even first. Between integers the low bits
    stay; with `nearest` it saturates. `%r = tgl.convert %v to f16 : f32 -> f32`.
  }];
  let arguments = (ins Tgl_Scalar:$value, TypeAttr:$target, UnitAttr:$nearest);
  let results = (outs Tgl_Scalar:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Type":$target, CArg<"bool", "false">:$nearest)>
  ];
  let assemblyFormat = "$value `to` $target (`nearest` $nearest^)? attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def RandomOp : Tgl_Op<"random", [Pure]> {
  let summary = "a number from a counter-based generator";
  let description = [{
    Uniform in (0, 1), or standard normal: the same keys give the same number on every target
    (docs/random.md gives the function). `%u = tgl.random uniform %seed, %i -> f32`.
  }];
  let arguments = (ins UnitAttr:$normal, Variadic<I64>:$keys);
  let results = (outs F32:$result);
  let assemblyFormat = "(`normal` $normal^):(`uniform`)? $keys attr-dict `->` type($result)";
}

#endif // TEGULA_IR_TGLOPS_TD
