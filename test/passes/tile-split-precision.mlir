// RUN: tegula-opt %s --tile-split-precision -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir -d N=67 --against=%s --quiet
// RUN: tegula-opt %t.mlir --tile-split-precision | FileCheck %s
// RUN: tegula-opt %t.mlir --tile-assign-layouts | FileCheck %s --check-prefix=PLACED
// RUN: tegula-opt %s --tile-assign-layouts | FileCheck %s --check-prefix=WHOLE

// The products of a step are added up by themselves, from zero; their sum is added to that of the steps before.
// CHECK-LABEL: tgl.kernel @nearest
// CHECK: tile.for %{{.*}} = 0 to 64 step 32 iter (%[[BEFORE:.*]] = %{{.*}} : !tile.tile<64x64xf32>) {
// CHECK: %[[A:.*]] = tile.operand (%i in %[[M:.*]], %d in %[[D:.*]]) ->
// CHECK: %[[B:.*]] = tile.operand (%{{.*}} in %[[N:.*]], %d in %[[D]]) ->
// CHECK: %[[ZERO:.*]] = tile.zero : !tile.tile<64x64xf32>
// CHECK-NEXT: %[[STEP:.*]] = tile.dot split %[[A]], %[[B]], %[[ZERO]] : !tile.tile<64x32xf32>, !tile.tile<64x32xf32>, !tile.tile<64x64xf32>
// CHECK-NEXT: %[[SUM:.*]] = tile.map (%{{.*}} in %[[M]], %{{.*}} in %[[N]]) (%[[X:.*]] = %[[BEFORE]] : !tile.tile<64x64xf32>, %[[Y:.*]] = %[[STEP]] : !tile.tile<64x64xf32>) -> !tile.tile<64x64xf32> {
// CHECK-NEXT: arith.addf %[[X]], %[[Y]] : f32
// CHECK: tile.yield %[[SUM]]
// Operands are copied as they are; products make terms of them.
// PLACED: tile.copy registers {{.*}} : !tile.shared<64x32xf32, k_major>
// PLACED: tile.mma split
// Products of f32 that are not split have no instruction: they stay abstract.
// WHOLE: tile.kernel "a" (%t = 0 to 2) {
// WHOLE: tile.dot
tgl.kernel @nearest(%x: !tgl.tensor<[128, 64], f32> {tgl.name = "x", tgl.role = "in"}, %c: !tgl.tensor<[N, 64], f32> {tgl.name = "c", tgl.role = "in"}, %a: !tgl.tensor<[128], f32> {tgl.name = "a", tgl.role = "out"})
    sizes [N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 2) {
      %0 = tile.span 64*%t to 128 : !tile.span<64>
      %1 = tile.init : !tile.state<max, 64xf32>
      %2 = tile.for %j = 0 to N step 64 iter (%before = %1 : !tile.state<max, 64xf32>) {
        %4 = tile.span %j to N : !tile.span<64>
        %5 = tile.zero : !tile.tile<64x64xf32>
        %6 = tile.for %k = 0 to 64 step 32 iter (%sum = %5 : !tile.tile<64x64xf32>) {
          %9 = tile.span %k to 64 : !tile.span<32>
          %10 = tile.operand (%i in %0, %d in %9) -> !tile.tile<64x32xf32> {
            %13 = tgl.read %x[%i, %d] : !tgl.tensor<[128, 64], f32>
            tile.yield %13 : f32
          }
          %11 = tile.operand (%j2 in %4, %d in %9) -> !tile.tile<64x32xf32> {
            %13 = tgl.read %c[%j2, %d] : !tgl.tensor<[N, 64], f32>
            tile.yield %13 : f32
          }
          %12 = tile.dot %10, %11, %sum : !tile.tile<64x32xf32>, !tile.tile<64x32xf32>, !tile.tile<64x64xf32>
          tile.yield %12 : !tile.tile<64x64xf32>
        }
        %8 = tile.reduce %6 over %4 into %before : !tile.tile<64x64xf32>, !tile.span<64>, !tile.state<max, 64xf32>
        tile.yield %8 : !tile.state<max, 64xf32>
      }
      %3 = tile.finish %2 : !tile.state<max, 64xf32> -> !tile.tile<64xf32>
      tile.store (%i in %0) (%v = %3 : !tile.tile<64xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[128], f32>
        tile.yield
      }
    }
  }
}
