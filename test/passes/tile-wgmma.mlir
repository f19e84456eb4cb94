// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts))' | FileCheck %s
// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts{target=sm_80}))' | FileCheck %s --check-prefix=WARPS
// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts,tile-choose-copies,tile-pipeline,tile-allocate-shared))' \
// RUN:   | FileCheck %s --check-prefix=PIPELINE
// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts,tile-choose-copies,tile-pipeline{target=sm_90a:shared-bytes=147455}))' \
// RUN:   | FileCheck %s --check-prefix=NONE

// Two warpgroups of 64 rows each: products are under way until they are waited for, and values are made of the sums
// behind the loop. What threads have copied is published, as products read it on a way of their own.
// CHECK-LABEL: tgl.kernel @largest
// CHECK: tile.kernel "a" (%t = 0 to 32) attributes {threads = 256 : i64} {
// CHECK-DAG: %[[A:.*]] = tile.alloc : !tile.shared<128x64xbf16, k_major>
// CHECK-DAG: %[[B:.*]] = tile.alloc : !tile.shared<256x64xbf16, k_major>
// CHECK: tile.init : !tile.state<max, 128xf32, #tile.wgmma<2>>
// CHECK: %[[ALL:.*]] = tile.for %{{.*}} = 0 to 512 step 64 iter (%[[C:.*]] = %{{.*}} : !tile.tile<128x256xf32, #tile.wgmma<2>>) {
// CHECK: tile.barrier
// CHECK-NEXT: tile.copy registers (%i in %{{.*}}, %d in %{{.*}}) to %[[A]]
// CHECK: tile.copy registers (%j in %{{.*}}, %d in %{{.*}}) to %[[B]]
// CHECK: tile.barrier publish
// CHECK-NEXT: %[[NEXT:.*]] = tile.mma %[[A]], %[[B]], %[[C]] : {{.*}}, !tile.tile<128x256xf32, #tile.wgmma<2>>
// CHECK-NEXT: tile.await_products %[[NEXT]] : !tile.tile<128x256xf32, #tile.wgmma<2>>
// CHECK-NEXT: tile.yield %[[NEXT]]
// CHECK: %[[SUM:.*]] = tile.ready %[[ALL]] : !tile.tile<128x256xf32, #tile.wgmma<2>>
// CHECK-NEXT: tile.map {{.*}} (%p = %[[SUM]] :

// WARPS-LABEL: tgl.kernel @largest
// WARPS-NOT: wgmma
// WARPS: #tile.mma<4x1>
// WARPS-NOT: wgmma

// Copies go two steps ahead with four stages. A step multiplies the stage before those that copies are on their way to, and
// then waits for the product of the step before, so that the next step's copies may go there.
// PIPELINE-LABEL: tgl.kernel @largest
// PIPELINE: attributes {shared_bytes = 196608 : i64, threads = 256 : i64}
// PIPELINE: %[[B:.*]] = tile.alloc at 0 : !tile.ring<4, 256x64xbf16, k_major>
// PIPELINE: %[[A:.*]] = tile.alloc at 131072 : !tile.ring<4, 128x64xbf16, k_major>
// PIPELINE: %[[T0:.*]] = tile.commit
// PIPELINE: %[[T1:.*]] = tile.commit
// PIPELINE-NOT: tile.commit
// PIPELINE: tile.for {{.*}} = 0 to 512 step 64 iter (%[[C:.*]] = %{{.*}}, %[[Y0:.*]] = %{{.*}} : !tile.token, %[[Y1:.*]] = %{{.*}} : !tile.token, %[[YN:.*]] = %{{.*}} : index, %{{.*}} = %{{.*}} : index, %{{.*}} = %{{.*}} : index)
// PIPELINE-NEXT: tile.await %[[Y0]]
// PIPELINE-NEXT: tile.barrier publish
// PIPELINE-NEXT: %[[N:.*]], %[[IS:.*]], %{{.*}}, %{{.*}} = tile.advance from %[[YN]]
// PIPELINE-NEXT: %[[SA:.*]] = tile.stage %[[A]] at %[[N]] + 2
// PIPELINE-NEXT: %[[SB:.*]] = tile.stage %[[B]] at %[[N]] + 2
// PIPELINE-NEXT: %[[NEXT:.*]] = tile.mma %[[SA]], %[[SB]], %[[C]]
// PIPELINE-NEXT: tile.if %[[IS]] {
// PIPELINE: tile.stage %[[A]] at %[[N]] :
// PIPELINE: tile.copy cp_async
// PIPELINE: tile.stage %[[B]] at %[[N]] :
// PIPELINE: tile.copy cp_async
// PIPELINE: %[[T:.*]] = tile.commit
// PIPELINE-NEXT: tile.await_products %[[C]]
// PIPELINE-NEXT: tile.yield %[[NEXT]], %[[Y1]], %[[T]], %[[N]],
// PIPELINE: tile.ready

// Less than three stages make no pipeline: a step's copies would wait for its own product.
// NONE-LABEL: tgl.kernel @largest
// NONE-NOT: tile.ring
tgl.kernel @largest(%x: !tgl.tensor<[4096, 512], bf16> {tgl.name = "x", tgl.role = "in"}, %c: !tgl.tensor<[N, 512], bf16> {tgl.name = "c", tgl.role = "in"}, %q: !tgl.tensor<[N], f32> {tgl.name = "q", tgl.role = "in"}, %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"})
    sizes [N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %0 = tile.span 128*%t to 4096 : !tile.span<128>
      %1 = tile.init : !tile.state<max, 128xf32>
      %2 = tile.for %arg0 = 0 to N step 256 iter (%arg1 = %1 : !tile.state<max, 128xf32>) {
        %4 = tile.span %arg0 to N : !tile.span<256>
        %5 = tile.zero : !tile.tile<128x256xf32>
        %6 = tile.for %arg2 = 0 to 512 step 64 iter (%arg3 = %5 : !tile.tile<128x256xf32>) {
          %9 = tile.span %arg2 to 512 : !tile.span<64>
          %10 = tile.operand (%i in %0, %d in %9) -> !tile.tile<128x64xbf16> {
            %13 = tgl.read %x[%i, %d] : !tgl.tensor<[4096, 512], bf16>
            tile.yield %13 : f32
          }
          %11 = tile.operand (%j in %4, %d in %9) -> !tile.tile<256x64xbf16> {
            %13 = tgl.read %c[%j, %d] : !tgl.tensor<[N, 512], bf16>
            tile.yield %13 : f32
          }
          %12 = tile.dot %10, %11, %arg3 : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %12 : !tile.tile<128x256xf32>
        }
        %7 = tile.map (%i in %0, %j in %4) (%p = %6 : !tile.tile<128x256xf32>) -> !tile.tile<128x256xf32> {
          %9 = tgl.read %q[%j] : !tgl.tensor<[N], f32>
          %10 = arith.subf %9, %p : f32
          tile.yield %10 : f32
        }
        %8 = tile.reduce %7 over %4 into %arg1 : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %8 : !tile.state<max, 128xf32>
      }
      %3 = tile.finish %2 : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %0) (%arg0 = %3 : !tile.tile<128xf32>) {
        tgl.write %arg0, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}
