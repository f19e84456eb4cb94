//===- TglFunctions.td - Functions of floats that math lacks ------------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGLFUNCTIONS_TD
#define TEGULA_IR_TGLFUNCTIONS_TD

include "ir/tgl/TglDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Rounds, and takes tens of instructions.
def FloatFunction : NativeOpTrait<"FloatFunction"> { let cppNamespace = "::tegula::tgl"; }

/// `%r = tgl.lgamma %x : f32`.
class Tgl_Function<string mnemonic, string text>
    : Op<TglDialect, mnemonic, [Pure, SameOperandsAndResultType, FloatFunction]> {
  let summary = text;
  let arguments = (ins AnyTypeOf<[F32, F64]>:$value);
  let results = (outs AnyTypeOf<[F32, F64]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def ErfinvOp : Tgl_Function<"erfinv", "where erf is the value">;
def LgammaOp : Tgl_Function<"lgamma", "the logarithm of |Gamma|">;
def DigammaOp : Tgl_Function<"digamma", "the derivative of lgamma">;

#endif // TEGULA_IR_TGLFUNCTIONS_TD
