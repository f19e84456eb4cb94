// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-pipeline))' | FileCheck %s
// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-pipeline{target=sm_86}))' | FileCheck %s --check-prefix=TWO
// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-pipeline{target=sm_90a:shared-bytes=49151}))' | FileCheck %s --check-prefix=NONE
// RUN: not tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-pipeline{target=sm_70}))' 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: 'sm_70' is no target

// Copies go three steps ahead of both loops. A step starts those of another behind the barrier at which all warps have
// left the stage that they go to; it multiplies the next stage of the ring, the oldest.
// CHECK-LABEL: tgl.kernel @nearest
// CHECK: %[[B:.*]] = tile.alloc : !tile.ring<4, 64x64xbf16, k_major>
// CHECK-NEXT: %[[A:.*]] = tile.alloc : !tile.ring<4, 128x64xbf16, k_major>
// CHECK: %[[M:.*]] = tile.span 128*%t to 4096
// CHECK: %[[N0:.*]], %[[IS0:.*]], %[[J0:.*]], %[[K0:.*]] = tile.advance in (0 to N step 64, 0 to D step 64)
// CHECK-NEXT: tile.if %[[IS0]] {
// CHECK-NEXT: %[[D0:.*]] = tile.span %[[K0]] to D : !tile.span<64>
// CHECK-NEXT: %[[C0:.*]] = tile.span %[[J0]] to N : !tile.span<64>
// CHECK-NEXT: %[[STAGE:.*]] = tile.stage %[[A]] at %[[N0]] : !tile.ring<4, 128x64xbf16, k_major>
// CHECK-NEXT: tile.copy cp_async (%i in %[[M]], %d in %[[D0]]) to %[[STAGE]]
// CHECK: %[[STAGE:.*]] = tile.stage %[[B]] at %[[N0]] : !tile.ring<4, 64x64xbf16, k_major>
// CHECK-NEXT: tile.copy cp_async (%j in %[[C0]], %d in %[[D0]]) to %[[STAGE]]
// CHECK: %[[T0:.*]] = tile.commit
// CHECK-NEXT: %[[N1:.*]], %[[IS1:.*]], %[[J1:.*]], %[[K1:.*]] = tile.advance from %[[N0]], %[[J0]], %[[K0]] in (0 to N step 64, 0 to D step 64)
// CHECK: %[[T1:.*]] = tile.commit
// CHECK-NEXT: %[[N2:.*]], %[[IS2:.*]], %[[J2:.*]], %[[K2:.*]] = tile.advance from %[[N1]], %[[J1]], %[[K1]]
// CHECK: %[[T2:.*]] = tile.commit
// CHECK-NEXT: %[[ALL:.*]]:7 = tile.for %[[J:.*]] = 0 to N step 64 iter (%[[STATE:.*]] = %{{.*}}, %[[X0:.*]] = %[[T0]] : !tile.token, %[[X1:.*]] = %[[T1]] : !tile.token, %[[X2:.*]] = %[[T2]] : !tile.token, %[[XN:.*]] = %[[N2]] : index, %[[XJ:.*]] = %[[J2]] : index, %[[XK:.*]] = %[[K2]] : index)
// CHECK: %[[SUM:.*]]:7 = tile.for %{{.*}} = 0 to D step 64 iter (%[[C:.*]] = %{{.*}}, %[[Y0:.*]] = %[[X0]] : !tile.token, %[[Y1:.*]] = %[[X1]] : !tile.token, %[[Y2:.*]] = %[[X2]] : !tile.token, %[[YN:.*]] = %[[XN]] : index, %[[YJ:.*]] = %[[XJ]] : index, %[[YK:.*]] = %[[XK]] : index)
// CHECK-NEXT: tile.await %[[Y0]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: %[[N:.*]], %[[IS:.*]], %[[AJ:.*]], %[[AK:.*]] = tile.advance from %[[YN]], %[[YJ]], %[[YK]] in (0 to N step 64, 0 to D step 64)
// CHECK-NEXT: tile.if %[[IS]] {
// CHECK: tile.stage %[[A]] at %[[N]] :
// CHECK: tile.stage %[[B]] at %[[N]] :
// CHECK: %[[T:.*]] = tile.commit
// CHECK-NEXT: %[[AT:.*]] = tile.stage %[[A]] at %[[N]] + 1 :
// CHECK-NEXT: %[[BT:.*]] = tile.stage %[[B]] at %[[N]] + 1 :
// CHECK-NEXT: %[[NEXT:.*]] = tile.mma %[[AT]], %[[BT]], %[[C]]
// CHECK-NEXT: tile.yield %[[NEXT]], %[[Y1]], %[[Y2]], %[[T]], %[[N]], %[[AJ]], %[[AK]]
// CHECK: tile.reduce
// CHECK-NEXT: tile.yield %{{.*}}, %[[SUM]]#1, %[[SUM]]#2, %[[SUM]]#3, %[[SUM]]#4, %[[SUM]]#5, %[[SUM]]#6
// CHECK: tile.finish %[[ALL]]#0

// Blocks share a multiprocessor where they can; two stages of 24 KB at least.
// TWO-LABEL: tgl.kernel @nearest
// TWO: tile.alloc : !tile.ring<2, 64x64xbf16, k_major>
// TWO-LABEL: tgl.kernel @several
// NONE-LABEL: tgl.kernel @nearest
// NONE-NOT: tile.ring
// NONE-LABEL: tgl.kernel @several
tgl.kernel @nearest(%x: !tgl.tensor<[4096, D], bf16> {tgl.name = "x", tgl.role = "in"}, %c: !tgl.tensor<[N, D], bf16> {tgl.name = "c", tgl.role = "in"}, %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"})
    sizes [D = 0 : 1, N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) attributes {threads = 128 : i64} {
      %0 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %1 = tile.alloc : !tile.shared<128x64xbf16, k_major>
      %2 = tile.span 128*%t to 4096 : !tile.span<128>
      %3 = tile.init : !tile.state<max, 128xf32, #tile.mma<4x1>>
      %4 = tile.for %arg0 = 0 to N step 64 iter (%arg1 = %3 : !tile.state<max, 128xf32, #tile.mma<4x1>>) {
        %6 = tile.span %arg0 to N : !tile.span<64>
        %7 = tile.zero : !tile.tile<128x64xf32, #tile.mma<4x1>>
        %8 = tile.for %arg2 = 0 to D step 64 iter (%arg3 = %7 : !tile.tile<128x64xf32, #tile.mma<4x1>>) {
          %11 = tile.span %arg2 to D : !tile.span<64>
          tile.barrier
          tile.copy cp_async (%i in %2, %d in %11) to %1 : !tile.shared<128x64xbf16, k_major> {
            %13 = tgl.read %x[%i, %d] : !tgl.tensor<[4096, D], bf16>
            tile.yield %13 : f32
          }
          tile.copy cp_async (%j in %6, %d in %11) to %0 : !tile.shared<64x64xbf16, k_major> {
            %13 = tgl.read %c[%j, %d] : !tgl.tensor<[N, D], bf16>
            tile.yield %13 : f32
          }
          %token = tile.commit
          tile.await %token
          tile.barrier
          %12 = tile.mma %1, %0, %arg3 : !tile.shared<128x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<128x64xf32, #tile.mma<4x1>>
          tile.yield %12 : !tile.tile<128x64xf32, #tile.mma<4x1>>
        }
        %10 = tile.reduce %8 over %6 into %arg1 : !tile.tile<128x64xf32, #tile.mma<4x1>>, !tile.span<64>, !tile.state<max, 128xf32, #tile.mma<4x1>>
        tile.yield %10 : !tile.state<max, 128xf32, #tile.mma<4x1>>
      }
      %5 = tile.finish %4 : !tile.state<max, 128xf32, #tile.mma<4x1>> -> !tile.tile<128xf32, #tile.mma<4x1>>
      tile.store (%i in %2) (%arg0 = %5 : !tile.tile<128xf32, #tile.mma<4x1>>) {
        tgl.write %arg0, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}

// Of two loops in one turn of another each is a pipeline of its own. Its first copies wait until all have left its ring; both rings
// fit together. Copies of single elements go ahead with those that are asynchronous.
// CHECK-LABEL: tgl.kernel @several
// CHECK-COUNT-2: tile.alloc : !tile.ring<3, 64x64xbf16, k_major>
// CHECK: tile.alloc : !tile.ring<4, 64x64xbf16, k_major>
// CHECK: tile.for %[[J:.*]] = 0 to N step 64 iter (
// CHECK: {{^ *}}tile.barrier
// CHECK-NEXT: {{.*}} = tile.advance in (0 to D step 64)
// CHECK-NEXT: tile.if
// CHECK: tile.copy registers
// CHECK: tile.copy cp_async
// CHECK: tile.for %{{.*}} = 0 to D step 64
// CHECK: = tile.mma
// CHECK-NEXT: tile.yield
// CHECK-NEXT: }
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: {{.*}} = tile.advance in (0 to D step 64)
// CHECK: tile.for %{{.*}} = 0 to D step 64
tgl.kernel @several(%x: !tgl.tensor<[N, D], bf16> {tgl.name = "x", tgl.role = "in"}, %y: !tgl.tensor<[D, 7], bf16> {tgl.name = "y", tgl.role = "in"}) sizes [D = 0 : 1, N = 0 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" () attributes {threads = 128 : i64} {
      %0 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %1 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %2 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %z = tile.zero : !tile.tile<64x64xf32, #tile.mma<4x1>>
      %3 = tile.for %j = 0 to N step 64 iter (%s = %z : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
        %n = tile.span %j to N : !tile.span<64>
        %4 = tile.for %k = 0 to D step 64 iter (%c = %s : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
          %d = tile.span %k to D : !tile.span<64>
          tile.barrier
          tile.copy registers (%a in %n, %b in %d) to %0 : !tile.shared<64x64xbf16, k_major> {
            %v = tgl.read %y[%b, %a - %a] : !tgl.tensor<[D, 7], bf16>
            tile.yield %v : f32
          }
          tile.copy cp_async (%a in %n, %b in %d) to %1 : !tile.shared<64x64xbf16, k_major> {
            %v = tgl.read %x[%a, %b] : !tgl.tensor<[N, D], bf16>
            tile.yield %v : f32
          }
          %token = tile.commit
          tile.await %token
          tile.barrier
          %m = tile.mma %0, %1, %c : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
          tile.yield %m : !tile.tile<64x64xf32, #tile.mma<4x1>>
        }
        %5 = tile.for %k = 0 to D step 64 iter (%c = %4 : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
          %d = tile.span %k to D : !tile.span<64>
          tile.barrier
          tile.copy cp_async (%a in %n, %b in %d) to %2 : !tile.shared<64x64xbf16, k_major> {
            %v = tgl.read %x[%a, %b] : !tgl.tensor<[N, D], bf16>
            tile.yield %v : f32
          }
          %token = tile.commit
          tile.await %token
          tile.barrier
          %m = tile.mma %2, %2, %c : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
          tile.yield %m : !tile.tile<64x64xf32, #tile.mma<4x1>>
        }
        tile.yield %5 : !tile.tile<64x64xf32, #tile.mma<4x1>>
      }
    }
  }
}

// A single step, copies of single elements alone, and copies of what a loop carries stay as they are.
// CHECK-LABEL: tgl.kernel @alone
// CHECK-NOT: tile.ring
tgl.kernel @alone(%x: !tgl.tensor<[64, 64], bf16> {tgl.name = "x", tgl.role = "in"}, %y: !tgl.tensor<[N, 7], bf16> {tgl.name = "y", tgl.role = "in"}) sizes [N = 1 : 0] {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" () attributes {threads = 128 : i64} {
      %0 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %1 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %2 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %z = tile.zero : !tile.tile<64x64xf32, #tile.mma<4x1>>
      %n = tile.span 0 to 64 : !tile.span<64>
      %4 = tile.for %k = 0 to 64 step 64 iter (%c = %z : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
        %d = tile.span %k to 64 : !tile.span<64>
        tile.barrier
        tile.copy cp_async (%a in %n, %b in %d) to %0 : !tile.shared<64x64xbf16, k_major> {
          %v = tgl.read %x[%a, %b] : !tgl.tensor<[64, 64], bf16>
          tile.yield %v : f32
        }
        %token = tile.commit
        tile.await %token
        tile.barrier
        %m = tile.mma %0, %0, %c : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
        tile.yield %m : !tile.tile<64x64xf32, #tile.mma<4x1>>
      }
      %5 = tile.for %k = 0 to N step 64 iter (%c = %4 : !tile.tile<64x64xf32, #tile.mma<4x1>>) {
        %d = tile.span %k to N : !tile.span<64>
        tile.barrier
        tile.copy registers (%a in %d, %b in %n) to %1 : !tile.shared<64x64xbf16, k_major> {
          %v = tgl.read %y[%a, %b mod 7] : !tgl.tensor<[N, 7], bf16>
          tile.yield %v : f32
        }
        tile.barrier
        %m = tile.mma %1, %1, %c : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
        tile.yield %m : !tile.tile<64x64xf32, #tile.mma<4x1>>
      }
      %6:2 = tile.for %k = 0 to N step 64 iter (%c = %5 : !tile.tile<64x64xf32, #tile.mma<4x1>>, %d = %n : !tile.span<64>) {
        tile.barrier
        tile.copy cp_async (%a in %d, %b in %n) to %2 : !tile.shared<64x64xbf16, k_major> {
          %v = tgl.read %x[%a, %b] : !tgl.tensor<[64, 64], bf16>
          tile.yield %v : f32
        }
        %token = tile.commit
        tile.await %token
        tile.barrier
        %m = tile.mma %2, %2, %c : !tile.shared<64x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<64x64xf32, #tile.mma<4x1>>
        tile.yield %m, %d : !tile.tile<64x64xf32, #tile.mma<4x1>>, !tile.span<64>
      }
    }
  }
}
