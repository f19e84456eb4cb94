//===- TglDialect.td - The tgl dialect, its types and attributes -------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGLDIALECT_TD
#define TEGULA_IR_TGLDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def TglDialect : Dialect {
  let name = "tgl";
  let cppNamespace = "::tegula::tgl";
  let summary = "Index notation: tensors over symbolic sizes, scalar arithmetic over named axes";
  let description = [{
    A kernel is a sequence of statements over tensors. Arithmetic is scalar (`arith`, `math`), in
    regions whose block arguments are axes; a value varies along exactly the axes it is computed
    from. Subscripts and bounds are integer expressions (IndexExpr) over axes, which are operands,
    and size symbols, which are names known in the whole kernel.

    In text an expression names SSA values directly, `%x[%i, 2*%p + %r - pad]`; names without `%` are
    size symbols. As an attribute it holds positional dims, `#tgl.expr<2*d0 + d1 - pad>`, where `d<n>`
    is the n-th of the op's `indices` operands and, in the bounds of an op with axes, after those the
    op's own axes. Floor division is spelled `floordiv` in IR (`//` starts a comment there).
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = "void registerOperations();";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

class Tgl_Type<string name, string typeMnemonic> : TypeDef<TglDialect, name> {
  let mnemonic = typeMnemonic;
}
class Tgl_Attr<string name, string attrMnemonic> : AttrDef<TglDialect, name> {
  let mnemonic = attrMnemonic;
}

/// Parameters printed by hand-written code (TglDialect.cpp), held by value.
def IndexExprParameter : AttrOrTypeParameter<"::tegula::IndexExpr", "integer expression"> {
  let cppStorageType = "::tegula::IndexExpr";
}

def IndexExprAttr : Tgl_Attr<"IndexExpr", "expr"> {
  let summary = "an integer expression over dims d0, d1, ... and size symbols";
  let description = "Example: `#tgl.expr<d0 + 4*d1 - pad>`.";
  let parameters = (ins IndexExprParameter:$expr);
  let hasCustomAssemblyFormat = 1;
}

def SizeAttr : Tgl_Attr<"Size", "size"> {
  let summary = "a size symbol of a kernel";
  let description = [{
    Bound by a dim of an argument, `#tgl.size<M = 0 : 1>` (argument 0, dim 1), or derived from sizes
    that stand before it,
    `#tgl.size<P = (H - KH) floordiv 2 + 1>`.
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$argument, "int64_t":$dimension,
                        IndexExprParameter:$definition);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::StringRef":$name, "int64_t":$argument, "int64_t":$dimension), [{
      return $_get($_ctxt, name, argument, dimension, ::tegula::IndexExpr());
    }]>,
    AttrBuilder<(ins "::llvm::StringRef":$name, "::tegula::IndexExpr":$definition), [{
      return $_get($_ctxt, name, -1, -1, definition);
    }]>
  ];
  let extraClassDeclaration = [{
    bool isBound() const { return getArgument() >= 0; }
    /// The text between the brackets.
    static ::mlir::FailureOr<SizeAttr> parseBody(::mlir::AsmParser &parser);
    void printBody(::mlir::AsmPrinter &printer) const;
  }];
}

def GuardKind : I32EnumAttr<"GuardKind", "what a guard demands", [
    I32EnumAttrCase<"NonNegative", 0, "nonneg">, I32EnumAttrCase<"Zero", 1, "zero">,
    I32EnumAttrCase<"NonZero", 2, "nonzero">, I32EnumAttrCase<"Divides", 3, "divides">,
    I32EnumAttrCase<"InBounds", 4, "inbounds">]> {
  let cppNamespace = "::tegula::tgl";
  let genSpecializedAttr = 0;
}

def GuardAttr : Tgl_Attr<"Guard", "guard"> {
  let summary = "a condition on the sizes of a launch";
  let description = [{
    `nonneg e`: e >= 0. `zero e`, `nonzero e`. `divides e, f`: f is not 0 and divides e.
    `inbounds e, f for lo to hi, ... where c, ...`: at all points of the box whose k-th variable is
    `d<k>` and where every c >= 0, 0 <= e < f. The bounds of `d<k>` may use earlier dims.
    Example: `#tgl.guard<divides C, G : "C must be a multiple of G">`.
  }];
  let parameters = (ins "GuardKind":$kind, IndexExprParameter:$lhs, IndexExprParameter:$rhs,
                        ArrayRefParameter<"IndexExprAttr">:$lows, ArrayRefParameter<"IndexExprAttr">:$highs,
                        ArrayRefParameter<"IndexExprAttr">:$conditions, StringRefParameter<>:$message);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The text between the brackets.
    static ::mlir::FailureOr<GuardAttr> parseBody(::mlir::AsmParser &parser);
    void printBody(::mlir::AsmPrinter &printer) const;
  }];
}

def TglTensorType : Tgl_Type<"TglTensor", "tensor"> {
  let summary = "a dense tensor in memory, row-major, with symbolic dims";
  let description = [{
    `!tgl.tensor<[M, 3*K], f16>`; rank 0 is `!tgl.tensor<[], f32>`. Dims are sizes (no dims d0...).
    Element types: f64 f32 f16 bf16 f8E4M3FN f8E5M2 i64 i32 i16 i8 i4 ui64 ui32 ui16 ui8 ui4 i1. i4 and ui4 are
    packed two to a byte along the last dim, low nibble first, each row from a byte on; i1 takes a byte,
    0 or 1.
  }];
  let parameters = (ins ArrayRefParameter<"IndexExprAttr">:$dims, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getRank() const { return getDims().size(); }
    ::tegula::IndexExpr getDim(unsigned k) const { return getDims()[k].getExpr(); }
    /// The type that reading an element gives: f32 for f16, bf16 and f8; i32 for integers of up to 32
    /// bits, i64 for those of 64, also for unsigned ones; else the element type itself.
    ::mlir::Type getComputeType() const;
  }];
}

def ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"Mean", 4, "mean">, I32EnumAttrCase<"Var", 5, "var">,
    I32EnumAttrCase<"Any", 6, "any">, I32EnumAttrCase<"All", 7, "all">,
    I32EnumAttrCase<"Count", 8, "count">, I32EnumAttrCase<"ArgMax", 9, "argmax">,
    I32EnumAttrCase<"ArgMin", 10, "argmin">, I32EnumAttrCase<"LogSumExp", 11, "logsumexp">]> {
  let cppNamespace = "::tegula::tgl";
}

def ScanKind : I32EnumAttr<"ScanKind", "what a scan computes", [
    I32EnumAttrCase<"CumSum", 0, "cumsum">, I32EnumAttrCase<"CumProd", 1, "cumprod">,
    I32EnumAttrCase<"CumMax", 2, "cummax">, I32EnumAttrCase<"CumMin", 3, "cummin">,
    I32EnumAttrCase<"Softmax", 4, "softmax">, I32EnumAttrCase<"LogSoftmax", 5, "log_softmax">,
    I32EnumAttrCase<"Sort", 6, "sort">, I32EnumAttrCase<"ArgSort", 7, "argsort">,
    I32EnumAttrCase<"TopKValue", 8, "topk_value">, I32EnumAttrCase<"TopKIndex", 9, "topk_index">,
    I32EnumAttrCase<"Recurrence", 10, "recurrence">]> {
  let cppNamespace = "::tegula::tgl";
}

#endif // TEGULA_IR_TGLDIALECT_TD
