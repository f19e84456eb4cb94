//===- tegula-opt.cpp - Runs passes on textual IR ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipeline.h"
#include "passes/tile/TilePipeline.h"
#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<tegula::tgl::TglDialect, tegula::tile::TileDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect, mlir::scf::SCFDialect>();
  mlir::registerTransformsPasses();
  auto counters = std::make_shared<tegula::Counters>();
  tegula::registerTegulaPasses(counters);
  tegula::registerTilePasses(counters);
  llvm::cl::opt<bool> printCounters("tgl-counters",
                                    llvm::cl::desc("Print what the passes counted"));
  mlir::LogicalResult result =
      mlir::MlirOptMain(argc, argv, "Tegula's optimiser driver\n", registry);
  if (printCounters)
    counters->print(llvm::errs());
  return mlir::asMainReturnCode(result);
}
