// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts,tile-choose-copies,tile-specialize-warps,tile-pipeline,tile-allocate-shared))' --split-input-file | FileCheck %s
// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts,tile-choose-copies,tile-specialize-warps{target=sm_90a:shared-bytes=147455}))' --split-input-file \
// RUN:   | FileCheck %s --check-prefix=SMALL
// Three stages of both do not fit: there are no roles. Where rows stay, three of columns do.
// SMALL-LABEL: tgl.kernel @roles
// SMALL-NOT: tile.roles
// SMALL-LABEL: tgl.kernel @lines
// SMALL-LABEL: tgl.kernel @stays
// SMALL: tile.ring<3, 256x64xbf16, k_major>
// SMALL: tile.roles

// A warp fills stages by TMA, two warpgroups multiply them: a step waits for its stage, and gives back that of the step before.
// The number of a step among all of the block's tells the stage.
// CHECK-LABEL: tgl.kernel @roles
// CHECK: tile.kernel "a" (%[[T:.*]] = 0 to 32) attributes {shared_bytes = 196736 : i64, threads = 384 : i64} {
// CHECK-DAG: %[[A:.*]] = tile.alloc at {{[0-9]+}} : !tile.ring<4, 128x64xbf16, k_major>
// CHECK-DAG: %[[B:.*]] = tile.alloc at {{[0-9]+}} : !tile.ring<4, 256x64xbf16, k_major>
// CHECK-DAG: %[[PIPE:.*]] = tile.alloc at 196608 : !tile.pipe<4>
// CHECK: %[[ROWS:.*]] = tile.span 128*%[[T]] to 4096
// CHECK: tile.roles producer registers 40 {
// CHECK: %[[MA:.*]] = tile.tma_descriptor (%i in %{{.*}}, %q in %{{.*}}) -> !tile.tma_descriptor<128x64xbf16> {
// CHECK: %[[MB:.*]] = tile.tma_descriptor {{.*}} -> !tile.tma_descriptor<256x64xbf16> {
// CHECK: tile.for %[[J:.*]] = 0 to 8192 step 256 {
// CHECK-NEXT: tile.for %[[K:.*]] = 0 to 512 step 64 {
// CHECK-NEXT: %[[ALONG:.*]] = tile.span %[[K]] to 512
// CHECK-NEXT: %[[COLUMNS:.*]] = tile.span %[[J]] to 8192
// CHECK-NEXT: tile.fill %[[PIPE]] at 8*(%[[J]] floordiv 256) + %[[K]] floordiv 64 : !tile.pipe<4> {
// CHECK-NEXT: %[[SA:.*]] = tile.stage %[[A]] at 8*(%[[J]] floordiv 256) + %[[K]] floordiv 64
// CHECK-NEXT: tile.copy_box %[[MA]] at %[[ROWS]], %[[ALONG]] to %[[SA]]
// CHECK-NEXT: %[[SB:.*]] = tile.stage %[[B]]
// CHECK-NEXT: tile.copy_box %[[MB]] at %[[COLUMNS]], %[[ALONG]] to %[[SB]]
// CHECK: } consumers 256 registers 232 {
// CHECK: tile.for %[[CJ:.*]] = 0 to 8192 step 256 iter
// CHECK: tile.for %[[CK:.*]] = 0 to 512 step 64 iter (%[[C:.*]] = %{{.*}} : !tile.tile<128x256xf32, #tile.wgmma<2>>) {
// CHECK-NEXT: tile.wait %[[PIPE]] at 8*(%[[CJ]] floordiv 256) + %[[CK]] floordiv 64
// CHECK-NEXT: tile.stage %[[A]]
// CHECK-NEXT: tile.stage %[[B]]
// CHECK-NEXT: %[[NEXT:.*]] = tile.mma {{.*}}, %[[C]]
// CHECK-NEXT: tile.await_products %[[C]]
// CHECK-NEXT: tile.release %[[PIPE]] at 8*(%[[CJ]] floordiv 256) + %[[CK]] floordiv 64 - 1 of 256
// CHECK-NEXT: tile.yield %[[NEXT]]
// CHECK: tile.ready
// CHECK: tile.reduce
// CHECK: tile.store
tgl.kernel @roles(%x: !tgl.tensor<[4096, 512], bf16> {tgl.name = "x", tgl.role = "in"},
               %c: !tgl.tensor<[8192, 512], bf16> {tgl.name = "c", tgl.role = "in"},
               %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 512 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 512 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 512], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 512], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}

// -----

// Lines that lie across the sum are no boxes of it.
// CHECK-LABEL: tgl.kernel @lines
// CHECK-NOT: tile.roles
tgl.kernel @lines(%x: !tgl.tensor<[512, 4096], bf16> {tgl.name = "x", tgl.role = "in"},
               %c: !tgl.tensor<[8192, 512], bf16> {tgl.name = "c", tgl.role = "in"},
               %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 512 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 512 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%q, %i] : !tgl.tensor<[512, 4096], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 512], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}

// -----

// Lines 1028 bytes apart begin at no multiples of 16 bytes.
// CHECK-LABEL: tgl.kernel @apart
// CHECK-NOT: tile.roles
tgl.kernel @apart(%x: !tgl.tensor<[4096, 514], bf16> {tgl.name = "x", tgl.role = "in"},
               %c: !tgl.tensor<[8192, 512], bf16> {tgl.name = "c", tgl.role = "in"},
               %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 512 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 512 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 514], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 512], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}

// -----

// Lines that overlap may be more than a coordinate counts.
// CHECK-LABEL: tgl.kernel @overlap
// CHECK-NOT: tile.roles
tgl.kernel @overlap(%x: !tgl.tensor<[33280], bf16> {tgl.name = "x", tgl.role = "in"},
               %c: !tgl.tensor<[8192, 512], bf16> {tgl.name = "c", tgl.role = "in"},
               %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 512 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 512 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[8*%i + %q] : !tgl.tensor<[33280], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 512], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}

// -----

// Three column tiles of eight steps are too few for what maps take.
// CHECK-LABEL: tgl.kernel @few
// CHECK-NOT: tile.roles
// CHECK: tile.ring
tgl.kernel @few(%x: !tgl.tensor<[4096, 512], bf16> {tgl.name = "x", tgl.role = "in"},
               %c: !tgl.tensor<[768, 512], bf16> {tgl.name = "c", tgl.role = "in"},
               %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 768 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 768 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 512 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 512 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 512], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[768, 512], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}

// -----

// Rows that are the same for all columns, and fit beside six stages of columns, are copied once: their pipe has a stage for each
// step of a sum, which nobody releases.
// CHECK-LABEL: tgl.kernel @stays
// CHECK-DAG: %[[A:.*]] = tile.alloc at {{[0-9]+}} : !tile.ring<2, 128x64xbf16, k_major>
// CHECK-DAG: %[[PA:.*]] = tile.alloc at {{[0-9]+}} : !tile.pipe<2>
// CHECK-DAG: %[[B:.*]] = tile.alloc at {{[0-9]+}} : !tile.ring<6, 256x64xbf16, k_major>
// CHECK-DAG: %[[PB:.*]] = tile.alloc at {{[0-9]+}} : !tile.pipe<6>
// CHECK: tile.for %[[K:.*]] = 0 to 128 step 64 {
// CHECK: tile.fill %[[PA]] at %[[K]] floordiv 64
// CHECK-NEXT: tile.stage %[[A]] at %[[K]] floordiv 64
// CHECK-NEXT: tile.copy_box
// CHECK-NOT: tile.copy_box
// CHECK: tile.for %[[J:.*]] = 0 to 8192 step 256 {
// CHECK: tile.for %[[K2:.*]] = 0 to 128 step 64 {
// CHECK: tile.fill %[[PB]] at 2*(%[[J]] floordiv 256) + %[[K2]] floordiv 64
// CHECK: tile.copy_box
// CHECK: } consumers
// CHECK: tile.wait %[[PA]] at %[[CK:.*]] floordiv 64
// CHECK: tile.wait %[[PB]]
// CHECK-NOT: tile.release %[[PA]]
// CHECK: tile.release %[[PB]]
tgl.kernel @stays(%x: !tgl.tensor<[4096, 128], bf16> {tgl.name = "x", tgl.role = "in"},
               %c: !tgl.tensor<[8192, 128], bf16> {tgl.name = "c", tgl.role = "in"},
               %a: !tgl.tensor<[4096], f32> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "a" strategy "product-reduction" {
    tile.kernel "a" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 128 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 128 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 128], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 128], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>) {
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}
