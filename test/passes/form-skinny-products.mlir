// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles))' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir --against=%s --quiet

// Six rows share a weight of four bits: two axes of the statement are the columns of one tile, the weight's columns its rows. What
// unpacks the weight stands in its operand, what follows the sum in the store.
// CHECK: tile.kernel "y" (%t = 0 to 3) {
// CHECK-NEXT: %[[N:.*]] = tile.span 16*%t to 40 : !tile.span<16>
// CHECK-NEXT: %[[M:.*]] = tile.span 0 to 6 : !tile.span<8>
// CHECK: %[[SUM:.*]] = tile.for %[[K:.*]] = 0 to 320 step 256 iter (%[[C:.*]] = %{{.*}} : !tile.tile<16x8xf32>) {
// CHECK-NEXT: %[[D:.*]] = tile.span %[[K]] to 320 : !tile.span<256>
// CHECK-NEXT: %[[W:.*]] = tile.operand (%j in %[[N]], %k in %[[D]]) -> !tile.tile<16x256xbf16> {
// CHECK-NEXT: tgl.read %w[%j, %k floordiv 2]
// CHECK: tgl.index 4*%k - 8*(%k floordiv 2)
// CHECK: arith.shrsi
// CHECK: tgl.read %s[%j, %k floordiv 32]
// CHECK: tgl.convert %{{.*}} to bf16
// CHECK: %[[X:.*]] = tile.operand (%row in %[[M]], %k in %[[D]]) -> !tile.tile<8x256xbf16> {
// CHECK-NEXT: tgl.read %x[%row floordiv 3, %row - 3*(%row floordiv 3), %k]
// CHECK: tile.dot %[[W]], %[[X]], %[[C]] : !tile.tile<16x256xbf16>, !tile.tile<8x256xbf16>, !tile.tile<16x8xf32>
// CHECK: tile.store (%j in %[[N]], %row in %[[M]]) (%[[V:.*]] = %[[SUM]] : !tile.tile<16x8xf32>) {
// CHECK-NEXT: %[[B:.*]] = tgl.read %b[%j]
// CHECK-NEXT: arith.addf %[[V]], %[[B]]
// CHECK-NEXT: tgl.write %{{.*}}, %y[%row floordiv 3, %row - 3*(%row floordiv 3), %j]
// CHECK: } otherwise {
// CHECK-NEXT: tgl.parallel
tgl.kernel @packed(%x: !tgl.tensor<[2, 3, 320], bf16> {tgl.name = "x", tgl.role = "in"}, %w: !tgl.tensor<[40, 160], ui8> {tgl.name = "w", tgl.role = "in"}, %s: !tgl.tensor<[40, 10], bf16> {tgl.name = "s", tgl.role = "in"}, %b: !tgl.tensor<[40], f32> {tgl.name = "b", tgl.role = "in"}, %y: !tgl.tensor<[2, 3, 40], bf16> {tgl.name = "y", tgl.role = "out"})
    sizes [T = 0 : 0, M = 0 : 1, K = 0 : 2, N = 1 : 0, q = K floordiv 2, q_1 = K floordiv 32]
    guards [divides K, 2 : "K is not a multiple of 2", divides K, 32 : "K is not a multiple of 32"] {
  %c15_i64 = arith.constant 15 : i64
  %c63_i64 = arith.constant 63 : i64
  %c64_i64 = arith.constant 64 : i64
  tgl.launch "y" strategy "skinny-product" {
    tgl.parallel (%t = 0 to 2, %i = 0 to 3, %j = 0 to 40) attributes {mapping = "thread,thread,vector", skinny_tile = array<i64: 16, 8, 8>} {
      %0 = tgl.reduce sum (%k = 0 to 320) -> f32 attributes {mapping = "loop"} {
        %3 = tgl.read %x[%t, %i, %k] : !tgl.tensor<[2, 3, 320], bf16>
        %4 = tgl.read %w[%j, %k floordiv 2] : !tgl.tensor<[40, 160], ui8>
        %5 = arith.extsi %4 : i32 to i64
        %6 = tgl.index 4*%k - 8*(%k floordiv 2)
        %7 = arith.index_cast %6 : index to i64
        %8 = arith.cmpi ult, %7, %c64_i64 : i64
        %9 = arith.select %8, %7, %c63_i64 : i64
        %10 = arith.shrsi %5, %9 : i64
        %11 = arith.andi %10, %c15_i64 : i64
        %12 = arith.sitofp %11 : i64 to f32
        %13 = tgl.read %s[%j, %k floordiv 32] : !tgl.tensor<[40, 10], bf16>
        %14 = arith.mulf %12, %13 fastmath<contract> : f32
        %15 = tgl.convert %14 to bf16 : f32 -> f32
        %16 = arith.mulf %3, %15 fastmath<contract> : f32
        tgl.yield %16 : f32
      }
      %1 = tgl.read %b[%j] : !tgl.tensor<[40], f32>
      %2 = arith.addf %0, %1 fastmath<contract> : f32
      tgl.write %2, %y[%t, %i, %j] : f32, !tgl.tensor<[2, 3, 40], bf16>
    }
  }
}
