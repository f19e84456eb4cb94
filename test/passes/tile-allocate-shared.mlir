// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-allocate-shared))' | FileCheck %s

// CHECK: tile.kernel "a" (%t = 0 to 32) attributes {shared_bytes = 24576 : i64, threads = 128 : i64} {
// CHECK-NEXT: tile.alloc at 0 : !tile.shared<64x64xbf16, k_major>
// CHECK-NEXT: tile.alloc at 8192 : !tile.shared<128x64xbf16, k_major>
tgl.kernel @nearest(%x: !tgl.tensor<[4096, 64], bf16> {tgl.name = "x", tgl.role = "in"}, %c: !tgl.tensor<[N, 64], bf16> {tgl.name = "c", tgl.role = "in"}, %q: !tgl.tensor<[N], f32> {tgl.name = "q", tgl.role = "in"}, %a: !tgl.tensor<[4096], i64> {tgl.name = "a", tgl.role = "out"})
    sizes [N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) attributes {threads = 128 : i64} {
      %0 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %1 = tile.alloc : !tile.shared<128x64xbf16, k_major>
      %2 = tile.span 128*%t to 4096 : !tile.span<128>
      %3 = tile.init : !tile.state<argmin, 128xf32, #tile.mma<4x1>>
      %4 = tile.for %arg0 = 0 to N step 64 iter (%arg1 = %3 : !tile.state<argmin, 128xf32, #tile.mma<4x1>>) {
        %6 = tile.span %arg0 to N : !tile.span<64>
        %7 = tile.zero : !tile.tile<128x64xf32, #tile.mma<4x1>>
        %8 = tile.for %arg2 = 0 to 64 step 64 iter (%arg3 = %7 : !tile.tile<128x64xf32, #tile.mma<4x1>>) {
          %11 = tile.span %arg2 to 64 : !tile.span<64>
          tile.barrier
          tile.copy registers (%i in %2, %d in %11) to %1 : !tile.shared<128x64xbf16, k_major> {
            %13 = tgl.read %x[%i, %d] : !tgl.tensor<[4096, 64], bf16>
            tile.yield %13 : f32
          }
          tile.copy registers (%j in %6, %d in %11) to %0 : !tile.shared<64x64xbf16, k_major> {
            %13 = tgl.read %c[%j, %d] : !tgl.tensor<[N, 64], bf16>
            tile.yield %13 : f32
          }
          tile.barrier
          %12 = tile.mma %1, %0, %arg3 : !tile.shared<128x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<128x64xf32, #tile.mma<4x1>>
          tile.yield %12 : !tile.tile<128x64xf32, #tile.mma<4x1>>
        }
        %9 = tile.map (%i in %2, %j in %6) (%p = %8 : !tile.tile<128x64xf32, #tile.mma<4x1>>) -> !tile.tile<128x64xf32, #tile.mma<4x1>> {
          %11 = tgl.read %q[%j] : !tgl.tensor<[N], f32>
          %12 = arith.subf %11, %p : f32
          tile.yield %12 : f32
        }
        %10 = tile.reduce %9 over %6 into %arg1 : !tile.tile<128x64xf32, #tile.mma<4x1>>, !tile.span<64>, !tile.state<argmin, 128xf32, #tile.mma<4x1>>
        tile.yield %10 : !tile.state<argmin, 128xf32, #tile.mma<4x1>>
      }
      %5 = tile.finish %4 : !tile.state<argmin, 128xf32, #tile.mma<4x1>> -> !tile.tile<128xi64, #tile.mma<4x1>>
      tile.store (%i in %2) (%arg0 = %5 : !tile.tile<128xi64, #tile.mma<4x1>>) {
        tgl.write %arg0, %a[%i] : i64, !tgl.tensor<[4096], i64>
        tile.yield
      }
    }
  }
}

// The second loop has the memory of the first, when all warps have left it.
// CHECK-LABEL: tgl.kernel @twice
// CHECK: tile.kernel "b" () attributes {shared_bytes = 16384 : i64, threads = 128 : i64} {
// CHECK-NEXT: %[[A:.*]] = tile.alloc at 0 :
// CHECK-NEXT: %[[B:.*]] = tile.alloc at 0 :
// CHECK-NEXT: %[[BOTH:.*]] = tile.alloc at 8192 :
// CHECK: tile.for
// CHECK: tile.mma %[[A]], %[[BOTH]]
// CHECK: {{^ *}}tile.barrier
// CHECK-NEXT: tile.for
// CHECK: tile.mma %[[B]], %[[BOTH]]
tgl.kernel @twice() sizes [] {
  tgl.launch "b" strategy "product-reduction" {
    tile.kernel "b" () attributes {threads = 128 : i64} {
      %a = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %b = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %c = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %0 = tile.zero : !tile.tile<64x64xf32, #tile.mma<4x1>>
      %1 = tile.for %i = 0 to 64 step 64 iter (%s = %0 : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
        %3 = tile.mma %a, %c, %s : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
        tile.yield %3 : !tile.tile<64x64xf32, #tile.mma<4x1>>
      }
      %2 = tile.for %i = 0 to 64 step 64 iter (%s = %1 : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
        %3 = tile.mma %b, %c, %s : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
        tile.yield %3 : !tile.tile<64x64xf32, #tile.mma<4x1>>
      }
    }
  }
}
