// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles))' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir -d N=67 --against=%s --quiet

// A block computes 128 rows of the product, 64 columns at a time, and takes them into the state of the reduction. The
// statement stays, for addresses that do not fit.
// CHECK-LABEL: tgl.kernel @nearest
// CHECK: tile.kernel "a" (%[[T:.*]] = 0 to 32) {
// CHECK-NEXT: %[[M:.*]] = tile.span 128*%[[T]] to 4096 : !tile.span<128>
// CHECK-NEXT: %[[START:.*]] = tile.init : !tile.state<argmin, 128xf32>
// CHECK-NEXT: %[[STATE:.*]] = tile.for %[[J:.*]] = 0 to N step 64 iter (%[[BEFORE:.*]] = %[[START]] : !tile.state<argmin, 128xf32>) {
// CHECK-NEXT: %[[N:.*]] = tile.span %[[J]] to N : !tile.span<64>
// CHECK-NEXT: %[[ZERO:.*]] = tile.zero : !tile.tile<128x64xf32>
// CHECK-NEXT: %[[DOT:.*]] = tile.for %[[K:.*]] = 0 to 64 step 64 iter (%[[SUM:.*]] = %[[ZERO]] : !tile.tile<128x64xf32>) {
// CHECK-NEXT: %[[D:.*]] = tile.span %[[K]] to 64 : !tile.span<64>
// CHECK-NEXT: %[[A:.*]] = tile.operand (%i in %[[M]], %d in %[[D]]) -> !tile.tile<128x64xbf16> {
// CHECK-NEXT: tgl.read %x[%i, %d]
// CHECK: %[[B:.*]] = tile.operand (%j in %[[N]], %d in %[[D]]) -> !tile.tile<64x64xbf16> {
// CHECK-NEXT: tgl.read %c[%j, %d]
// CHECK: tile.dot %[[A]], %[[B]], %[[SUM]]
// CHECK: %[[VALUES:.*]] = tile.map (%i in %[[M]], %j in %[[N]]) (%p = %[[DOT]] : !tile.tile<128x64xf32>) -> !tile.tile<128x64xf32> {
// CHECK-NEXT: %[[Q:.*]] = tgl.read %q[%j]
// CHECK-NEXT: arith.subf %[[Q]], %p
// CHECK: tile.reduce %[[VALUES]] over %[[N]] into %[[BEFORE]]
// CHECK: %[[RESULT:.*]] = tile.finish %[[STATE]] : !tile.state<argmin, 128xf32> -> !tile.tile<128xi64>
// CHECK-NEXT: tile.store (%i in %[[M]]) (%[[R:.*]] = %[[RESULT]] : !tile.tile<128xi64>) {
// CHECK-NEXT: tgl.write %[[R]], %a[%i]
// CHECK: } otherwise {
// CHECK-NEXT: tgl.parallel (%i = 0 to 4096)
tgl.kernel @nearest(%x: !tgl.tensor<[4096, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                    %c: !tgl.tensor<[N, 64], bf16> {tgl.name = "c", tgl.role = "in"},
                    %q: !tgl.tensor<[N], f32> {tgl.name = "q", tgl.role = "in"},
                    %a: !tgl.tensor<[4096], i64> {tgl.name = "a", tgl.role = "out"})
    sizes [N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tgl.parallel (%i = 0 to 4096) attributes {mapping = "thread", product_tile = array<i64: 128, 64, 64>} {
      %r = tgl.reduce argmin (%j = 0 to N) -> i64 {
        %n = tgl.read %q[%j] : !tgl.tensor<[N], f32>
        %p = tgl.reduce sum (%d = 0 to 64) -> f32 {
          %u = tgl.read %x[%i, %d] : !tgl.tensor<[4096, 64], bf16>
          %v = tgl.read %c[%j, %d] : !tgl.tensor<[N, 64], bf16>
          %w = arith.mulf %u, %v : f32
          tgl.yield %w : f32
        }
        %e = arith.subf %n, %p : f32
        tgl.yield %e : f32
      }
      tgl.write %r, %a[%i] : i64, !tgl.tensor<[4096], i64>
    }
  }
}
