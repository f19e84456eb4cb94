//===- TileEnums.td - Enumerations of the tile dialect -----------------*- tablegen -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Apart from the dialect: tables of enumerations are made of all that a file includes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TILEENUMS_TD
#define TEGULA_IR_TILEENUMS_TD

include "mlir/IR/EnumAttr.td"

def CopyKind : I32EnumAttr<"CopyKind", "how elements reach shared memory", [
    I32EnumAttrCase<"Registers", 0, "registers">, I32EnumAttrCase<"CpAsync", 1, "cp_async">]> {
  let cppNamespace = "::tegula::tile";
}

#endif // TEGULA_IR_TILEENUMS_TD
