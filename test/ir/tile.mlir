// RUN: tegula-opt %s | tegula-opt | FileCheck %s
// RUN: tegula-opt %s -mlir-print-op-generic | tegula-opt | FileCheck %s

// CHECK-LABEL: tgl.kernel @abstract
tgl.kernel @abstract(%x: !tgl.tensor<[M, D], bf16> {tgl.name = "x", tgl.role = "in"},
                     %c: !tgl.tensor<[N, D], bf16> {tgl.name = "c", tgl.role = "in"},
                     %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, D = 0 : 1, N = 1 : 0] {
  // CHECK: tile.kernel "y" (%t = 0 to (M + 15) floordiv 16) {
  tile.kernel "y" (%t = 0 to (M + 15) floordiv 16) {
    // CHECK: %[[M:.*]] = tile.span 16*%t to M : !tile.span<16>
    %m = tile.span 16*%t to M : !tile.span<16>
    // CHECK: tile.init : !tile.state<max, 16xf32>
    %s = tile.init : !tile.state<max, 16xf32>
    // CHECK: tile.for %[[J:.*]] = 0 to N step 16 iter (%{{.*}} = %{{.*}} : !tile.state<max, 16xf32>) {
    %r = tile.for %j = 0 to N step 16 iter (%before = %s : !tile.state<max, 16xf32>) {
      // CHECK: tile.span %[[J]] to N : !tile.span<16>
      %n = tile.span %j to N : !tile.span<16>
      %z = tile.zero : !tile.tile<16x16xf32>
      %p = tile.for %k = 0 to D step 64 iter (%c0 = %z : !tile.tile<16x16xf32>) {
        %d = tile.span %k to D : !tile.span<64>
        // CHECK: tile.operand (%i in %[[M]], %e in %{{.*}}) -> !tile.tile<16x64xbf16> {
        %a = tile.operand (%i in %m, %e in %d) -> !tile.tile<16x64xbf16> {
          %v = tgl.read %x[%i, %e] : !tgl.tensor<[M, D], bf16>
          tile.yield %v : f32
        }
        %b = tile.operand (%j2 in %n, %e in %d) -> !tile.tile<16x64xbf16> {
          %v = tgl.read %c[%j2, %e] : !tgl.tensor<[N, D], bf16>
          tile.yield %v : f32
        }
        // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : !tile.tile<16x64xbf16>, !tile.tile<16x64xbf16>, !tile.tile<16x16xf32>
        %o = tile.dot %a, %b, %c0 : !tile.tile<16x64xbf16>, !tile.tile<16x64xbf16>, !tile.tile<16x16xf32>
        tile.yield %o : !tile.tile<16x16xf32>
      }
      // CHECK: tile.map (%i in %{{.*}}, %e in %{{.*}}) (%q = %{{.*}} : !tile.tile<16x16xf32>) -> !tile.tile<16x16xf32> {
      %v = tile.map (%i in %m, %e in %n) (%q = %p : !tile.tile<16x16xf32>) -> !tile.tile<16x16xf32> {
        %w = arith.addf %q, %q : f32
        tile.yield %w : f32
      }
      // CHECK: tile.reduce %{{.*}} over %{{.*}} into %{{.*}} : !tile.tile<16x16xf32>, !tile.span<16>, !tile.state<max, 16xf32>
      %after = tile.reduce %v over %n into %before : !tile.tile<16x16xf32>, !tile.span<16>, !tile.state<max, 16xf32>
      tile.yield %after : !tile.state<max, 16xf32>
    }
    // CHECK: tile.finish %{{.*}} : !tile.state<max, 16xf32> -> !tile.tile<16xf32>
    %f = tile.finish %r : !tile.state<max, 16xf32> -> !tile.tile<16xf32>
    // CHECK: tile.store (%i in %{{.*}}) (%v = %{{.*}} : !tile.tile<16xf32>) {
    tile.store (%i in %m) (%v = %f : !tile.tile<16xf32>) {
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[M], f32>
      tile.yield
    }
  }
}

// CHECK-LABEL: tgl.kernel @placed
tgl.kernel @placed(%x: !tgl.tensor<[M, D], bf16> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0, D = 0 : 1] {
  // CHECK: tile.kernel "p" (%t = 0 to M) attributes {shared_bytes = 6144 : i64, threads = 64 : i64} {
  tile.kernel "p" (%t = 0 to M) attributes {shared_bytes = 6144 : i64, threads = 64 : i64} {
    // CHECK: tile.alloc at 0 : !tile.shared<32x64xbf16, k_major>
    %a = tile.alloc at 0 : !tile.shared<32x64xbf16, k_major>
    // CHECK: tile.alloc at 4096 : !tile.shared<16x64xbf16, mn_major>
    %b = tile.alloc at 4096 : !tile.shared<16x64xbf16, mn_major>
    %m = tile.span 32*%t to M : !tile.span<32>
    %d = tile.span 0 to D : !tile.span<64>
    %z = tile.zero : !tile.tile<32x16xf32, #tile.mma<2x1>>
    // CHECK: tile.copy cp_async (%i in %{{.*}}, %k in %{{.*}}) to %{{.*}} : !tile.shared<32x64xbf16, k_major> {
    tile.copy cp_async (%i in %m, %k in %d) to %a : !tile.shared<32x64xbf16, k_major> {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, D], bf16>
      tile.yield %v : f32
    }
    // CHECK: %[[T:.*]] = tile.commit
    %token = tile.commit
    // CHECK: tile.await %[[T]]
    tile.await %token
    // CHECK: tile.barrier
    tile.barrier
    // CHECK: tile.mma %{{.*}}, %{{.*}}, %{{.*}} : !tile.shared<32x64xbf16, k_major>, !tile.shared<16x64xbf16, mn_major>, !tile.tile<32x16xf32, #tile.mma<2x1>>
    %o = tile.mma %a, %b, %z : !tile.shared<32x64xbf16, k_major>, !tile.shared<16x64xbf16, mn_major>, !tile.tile<32x16xf32, #tile.mma<2x1>>
  } otherwise {
    // CHECK: } otherwise {
    // CHECK-NEXT: tgl.parallel
    tgl.parallel (%i = 0 to M) {
    }
  }
}

// CHECK-LABEL: tgl.kernel @warpgroups
tgl.kernel @warpgroups() sizes [] {
  tile.kernel "p" () attributes {threads = 128 : i64} {
    %a = tile.alloc : !tile.shared<64x64xbf16, k_major>
    %b = tile.alloc : !tile.shared<16x64xbf16, k_major>
    %z = tile.zero : !tile.tile<64x16xf32, #tile.wgmma<1>>
    // CHECK: tile.barrier publish
    tile.barrier publish
    // CHECK: %[[O:.*]] = tile.mma %{{.*}}, %{{.*}}, %{{.*}} : !tile.shared<64x64xbf16, k_major>, !tile.shared<16x64xbf16, k_major>, !tile.tile<64x16xf32, #tile.wgmma<1>>
    %o = tile.mma %a, %b, %z : !tile.shared<64x64xbf16, k_major>, !tile.shared<16x64xbf16, k_major>, !tile.tile<64x16xf32, #tile.wgmma<1>>
    // CHECK: tile.await_products %[[O]] : !tile.tile<64x16xf32, #tile.wgmma<1>>
    tile.await_products %o : !tile.tile<64x16xf32, #tile.wgmma<1>>
    // CHECK: tile.ready %[[O]] : !tile.tile<64x16xf32, #tile.wgmma<1>>
    %r = tile.ready %o : !tile.tile<64x16xf32, #tile.wgmma<1>>
    // CHECK: tile.init : !tile.state<logsumexp, 64xf32, #tile.wgmma<1>>
    %s = tile.init : !tile.state<logsumexp, 64xf32, #tile.wgmma<1>>
  }
}

// CHECK-LABEL: tgl.kernel @ahead
tgl.kernel @ahead(%x: !tgl.tensor<[M, D], bf16> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0, D = 0 : 1] {
  tile.kernel "p" () attributes {threads = 32 : i64} {
    // CHECK: %[[RING:.*]] = tile.alloc : !tile.ring<3, 32x64xbf16, k_major>
    %ring = tile.alloc : !tile.ring<3, 32x64xbf16, k_major>
    // CHECK: %[[N:.*]], %[[THERE:.*]], %[[J:.*]], %[[K:.*]] = tile.advance in (0 to M step 32, 0 to D step 64)
    %n, %is, %j, %k = tile.advance in (0 to M step 32, 0 to D step 64)
    // CHECK: tile.advance from %[[N]], %[[J]], %[[K]] in (0 to M step 32, 0 to D step 64)
    %n1, %is1, %j1, %k1 = tile.advance from %n, %j, %k in (0 to M step 32, 0 to D step 64)
    // CHECK: tile.if %[[THERE]] {
    tile.if %is {
      // CHECK: tile.stage %[[RING]] at %[[N]] + 1 : !tile.ring<3, 32x64xbf16, k_major>
      %stage = tile.stage %ring at %n + 1 : !tile.ring<3, 32x64xbf16, k_major>
    }
  }
}

// CHECK-LABEL: tgl.kernel @roles
tgl.kernel @roles(%x: !tgl.tensor<[4096, 512], bf16> {tgl.name = "x", tgl.role = "in"}) {
  tile.kernel "p" () attributes {threads = 256 : i64} {
    %ring = tile.alloc : !tile.ring<4, 64x64xbf16, k_major>
    // CHECK: %[[PIPE:.*]] = tile.alloc : !tile.pipe<4>
    %pipe = tile.alloc : !tile.pipe<4>
    // CHECK: tile.roles producer registers 40 {
    tile.roles producer registers 40 {
      %m = tile.span 0 to 4096 : !tile.span<64>
      %d = tile.span 0 to 512 : !tile.span<64>
      // CHECK: %[[MAP:.*]] = tile.tma_descriptor (%i in %{{.*}}, %k in %{{.*}}) -> !tile.tma_descriptor<64x64xbf16> {
      %map = tile.tma_descriptor (%i in %m, %k in %d) -> !tile.tma_descriptor<64x64xbf16> {
        %e = tgl.read %x[%i, %k] : !tgl.tensor<[4096, 512], bf16>
        tile.yield %e : f32
      }
      tile.for %k = 0 to 512 step 64 {
        %s = tile.span %k to 512 : !tile.span<64>
        // CHECK: tile.fill %[[PIPE]] at %{{.*}} floordiv 64 : !tile.pipe<4> {
        tile.fill %pipe at %k floordiv 64 : !tile.pipe<4> {
          %a = tile.stage %ring at %k floordiv 64 : !tile.ring<4, 64x64xbf16, k_major>
          // CHECK: tile.copy_box %[[MAP]] at %{{.*}}, %{{.*}} to %{{.*}} : !tile.tma_descriptor<64x64xbf16>, !tile.span<64>, !tile.span<64>, !tile.shared<64x64xbf16, k_major>
          tile.copy_box %map at %m, %s to %a : !tile.tma_descriptor<64x64xbf16>, !tile.span<64>, !tile.span<64>, !tile.shared<64x64xbf16, k_major>
        }
        tile.yield
      }
    // CHECK: } consumers 128 registers 232 {
    } consumers 128 registers 232 {
      tile.for %k = 0 to 512 step 64 {
        // CHECK: tile.wait %[[PIPE]] at %{{.*}} floordiv 64 : !tile.pipe<4>
        tile.wait %pipe at %k floordiv 64 : !tile.pipe<4>
        // CHECK: tile.release %[[PIPE]] at %{{.*}} floordiv 64 - 1 of 8 : !tile.pipe<4>
        tile.release %pipe at %k floordiv 64 - 1 of 8 : !tile.pipe<4>
        tile.yield
      }
    }
  }
}

// CHECK-LABEL: tgl.kernel @streamed
tgl.kernel @streamed(%w: !tgl.tensor<[N, H], ui8> {tgl.name = "w", tgl.role = "in"},
                     %x: !tgl.tensor<[M, K], bf16> {tgl.name = "x", tgl.role = "in"},
                     %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0, H = 0 : 1, M = 1 : 0, K = 1 : 1] {
  tile.kernel "y" (%t = 0 to (N + 15) floordiv 16) attributes {threads = 256 : i64} {
    // CHECK: %[[X:.*]] = tile.alloc : !tile.scratch<8x8x16xf32>
    %scratch = tile.alloc : !tile.scratch<8x8x16xf32>
    %n = tile.span 16*%t to N : !tile.span<16>
    %m = tile.span 0 to M : !tile.span<8>
    %h = tile.span 0 to H : !tile.span<64>
    %d = tile.span 0 to K : !tile.span<128>
    // CHECK: tile.vectors (%j in %{{.*}}, %q in %{{.*}}) -> !tile.tile<16x64xui8, #tile.mma<1x1x8>> {
    %p = tile.vectors (%j in %n, %q in %h) -> !tile.tile<16x64xui8, #tile.mma<1x1x8>> {
      %v = tgl.read %w[%j, %q] : !tgl.tensor<[N, H], ui8>
      tile.yield %v : i32
    }
    %r = tile.vectors (%i in %m, %k in %d) -> !tile.tile<8x128xbf16, #tile.mma<1x1x8>> {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], bf16>
      tile.yield %v : f32
    }
    // CHECK: tile.operand (%j in %{{.*}}, %k in %{{.*}}) (%word = %{{.*}} : !tile.tile<16x64xui8, #tile.mma<1x1x8>>) -> !tile.tile<16x128xbf16, #tile.mma<1x1x8>> {
    %a = tile.operand (%j in %n, %k in %d) (%word = %p : !tile.tile<16x64xui8, #tile.mma<1x1x8>>) -> !tile.tile<16x128xbf16, #tile.mma<1x1x8>> {
      %v = arith.sitofp %word : i32 to f32
      tile.yield %v : f32
    }
    %b = tile.operand (%i in %m, %k in %d) (%v = %r : !tile.tile<8x128xbf16, #tile.mma<1x1x8>>) -> !tile.tile<8x128xbf16, #tile.mma<1x1x8>> {
      tile.yield %v : f32
    }
    %z = tile.zero : !tile.tile<16x8xf32, #tile.mma<1x1x8>>
    // CHECK: tile.mma %{{.*}}, %{{.*}}, %{{.*}} : !tile.tile<16x128xbf16, #tile.mma<1x1x8>>, !tile.tile<8x128xbf16, #tile.mma<1x1x8>>, !tile.tile<16x8xf32, #tile.mma<1x1x8>>
    %c = tile.mma %a, %b, %z : !tile.tile<16x128xbf16, #tile.mma<1x1x8>>, !tile.tile<8x128xbf16, #tile.mma<1x1x8>>, !tile.tile<16x8xf32, #tile.mma<1x1x8>>
    // CHECK: tile.sum_warps %{{.*}} in %[[X]] : !tile.tile<16x8xf32, #tile.mma<1x1x8>>, !tile.scratch<8x8x16xf32> -> !tile.tile<16x8xf32, #tile.linear<256>>
    %s = tile.sum_warps %c in %scratch : !tile.tile<16x8xf32, #tile.mma<1x1x8>>, !tile.scratch<8x8x16xf32> -> !tile.tile<16x8xf32, #tile.linear<256>>
    tile.store (%j in %n, %i in %m) (%v = %s : !tile.tile<16x8xf32, #tile.linear<256>>) {
      tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
      tile.yield
    }
  }
}
