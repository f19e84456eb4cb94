// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts))' | FileCheck %s

// Four warps of 32 rows each; operands are copied to shared memory when all have used those of the step before.
// CHECK: tile.kernel "a" (%t = 0 to 32) attributes {threads = 128 : i64} {
// CHECK-DAG: %[[A:.*]] = tile.alloc : !tile.shared<128x64xbf16, k_major>
// CHECK-DAG: %[[B:.*]] = tile.alloc : !tile.shared<64x64xbf16, k_major>
// CHECK: tile.init : !tile.state<argmin, 128xf32, #tile.mma<4x1>>
// CHECK: tile.for %{{.*}} = 0 to 64 step 64 iter (%[[SUM:.*]] = %{{.*}} : !tile.tile<128x64xf32, #tile.mma<4x1>>) {
// CHECK: tile.barrier
// CHECK-NEXT: tile.copy registers (%i in %{{.*}}, %d in %{{.*}}) to %[[A]] : !tile.shared<128x64xbf16, k_major> {
// CHECK: tile.copy registers (%j in %{{.*}}, %d in %{{.*}}) to %[[B]] : !tile.shared<64x64xbf16, k_major> {
// CHECK: tile.barrier
// CHECK-NEXT: tile.mma %[[A]], %[[B]], %[[SUM]] : !tile.shared<128x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<128x64xf32, #tile.mma<4x1>>
// CHECK: tile.map {{.*}} -> !tile.tile<128x64xf32, #tile.mma<4x1>>
// CHECK: tile.finish %{{.*}} : !tile.state<argmin, 128xf32, #tile.mma<4x1>> -> !tile.tile<128xi64, #tile.mma<4x1>>
tgl.kernel @nearest(%x: !tgl.tensor<[4096, 64], bf16> {tgl.name = "x", tgl.role = "in"}, %c: !tgl.tensor<[N, 64], bf16> {tgl.name = "c", tgl.role = "in"}, %q: !tgl.tensor<[N], f32> {tgl.name = "q", tgl.role = "in"}, %a: !tgl.tensor<[4096], i64> {tgl.name = "a", tgl.role = "out"})
    sizes [N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %0 = tile.span 128*%t to 4096 : !tile.span<128>
      %1 = tile.init : !tile.state<argmin, 128xf32>
      %2 = tile.for %arg0 = 0 to N step 64 iter (%arg1 = %1 : !tile.state<argmin, 128xf32>) {
        %4 = tile.span %arg0 to N : !tile.span<64>
        %5 = tile.zero : !tile.tile<128x64xf32>
        %6 = tile.for %arg2 = 0 to 64 step 64 iter (%arg3 = %5 : !tile.tile<128x64xf32>) {
          %9 = tile.span %arg2 to 64 : !tile.span<64>
          %10 = tile.operand (%i in %0, %d in %9) -> !tile.tile<128x64xbf16> {
            %13 = tgl.read %x[%i, %d] : !tgl.tensor<[4096, 64], bf16>
            tile.yield %13 : f32
          }
          %11 = tile.operand (%j in %4, %d in %9) -> !tile.tile<64x64xbf16> {
            %13 = tgl.read %c[%j, %d] : !tgl.tensor<[N, 64], bf16>
            tile.yield %13 : f32
          }
          %12 = tile.dot %10, %11, %arg3 : !tile.tile<128x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<128x64xf32>
          tile.yield %12 : !tile.tile<128x64xf32>
        }
        %7 = tile.map (%i in %0, %j in %4) (%p = %6 : !tile.tile<128x64xf32>) -> !tile.tile<128x64xf32> {
          %9 = tgl.read %q[%j] : !tgl.tensor<[N], f32>
          %10 = arith.subf %9, %p : f32
          tile.yield %10 : f32
        }
        %8 = tile.reduce %7 over %4 into %arg1 : !tile.tile<128x64xf32>, !tile.span<64>, !tile.state<argmin, 128xf32>
        tile.yield %8 : !tile.state<argmin, 128xf32>
      }
      %3 = tile.finish %2 : !tile.state<argmin, 128xf32> -> !tile.tile<128xi64>
      tile.store (%i in %0) (%arg0 = %3 : !tile.tile<128xi64>) {
        tgl.write %arg0, %a[%i] : i64, !tgl.tensor<[4096], i64>
        tile.yield
      }
    }
  }
}

// An operand of two places is copied once; the barriers stand around both copies, in whatever order they come.
// CHECK-LABEL: tgl.kernel @square
// CHECK-DAG: %[[A:.*]] = tile.alloc : !tile.shared<64x64xbf16, k_major>
// CHECK-DAG: %[[B:.*]] = tile.alloc : !tile.shared<64x64xbf16, k_major>
// CHECK: tile.barrier
// CHECK-NEXT: tile.copy registers
// CHECK-NOT: tile.barrier
// CHECK: tile.copy registers
// CHECK: tile.barrier
// CHECK-NEXT: tile.mma
// CHECK-NOT: tile.copy
// CHECK-NOT: tile.barrier
// CHECK: tile.mma %[[SAME:.*]], %[[SAME]],
tgl.kernel @square(%x: !tgl.tensor<[M, 64], bf16> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
  tgl.launch "y" strategy "product-reduction" {
    tile.kernel "y" (%t = 0 to (M + 63) floordiv 64) {
      %m = tile.span 64*%t to M : !tile.span<64>
      %d = tile.span 0 to 64 : !tile.span<64>
      %b = tile.operand (%i in %m, %k in %d) -> !tile.tile<64x64xbf16> {
        %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, 64], bf16>
        tile.yield %v : f32
      }
      %a = tile.operand (%i in %m, %k in %d) -> !tile.tile<64x64xbf16> {
        %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, 64], bf16>
        tile.yield %v : f32
      }
      %z = tile.zero : !tile.tile<64x64xf32>
      %p = tile.dot %a, %b, %z : !tile.tile<64x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<64x64xf32>
      %q = tile.dot %a, %a, %p : !tile.tile<64x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<64x64xf32>
    }
  }
}
