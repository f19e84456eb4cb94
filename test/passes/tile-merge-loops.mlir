// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tile-merge-loops))' --split-input-file | FileCheck %s

// The largest column and its place are of one product: one loop has both states, and the product once.
// CHECK-LABEL: tgl.kernel @both
// CHECK: %[[M:.*]] = tile.init : !tile.state<max, 128xf32>
// CHECK-NEXT: %[[P:.*]] = tile.init : !tile.state<argmax, 128xf32>
// CHECK-NEXT: %[[ALL:.*]]:2 = tile.for %{{.*}} = 0 to 8192 step 256 iter (%[[LARGEST:.*]] = %[[M]] : {{.*}}, %[[PLACE:.*]] = %[[P]] : {{.*}}) {
// CHECK-NEXT: %[[COLUMNS:.*]] = tile.span
// CHECK-NEXT: tile.zero
// CHECK-NEXT: tile.for
// CHECK: tile.dot
// CHECK-NOT: tile.dot
// CHECK: %[[LM:.*]] = tile.reduce %{{.*}} over %[[COLUMNS]] into %[[LARGEST]]
// CHECK-NEXT: %[[LP:.*]] = tile.reduce %{{.*}} over %[[COLUMNS]] into %[[PLACE]]
// CHECK-NEXT: tile.yield %[[LM]], %[[LP]]
// CHECK: tile.finish %[[ALL]]#0
// CHECK: tile.finish %[[ALL]]#1
// CHECK-NOT: tile.for
tgl.kernel @both(%x: !tgl.tensor<[4096, 256], bf16> {tgl.name = "x", tgl.role = "in"},
                 %c: !tgl.tensor<[8192, 256], bf16> {tgl.name = "c", tgl.role = "in"},
                 %b: !tgl.tensor<[4096], f32> {tgl.name = "b", tgl.role = "out"},
                 %a: !tgl.tensor<[4096], i64> {tgl.name = "a", tgl.role = "out"}) {
  tgl.launch "b" strategy "product-reduction" {
    tile.kernel "b" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 256 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 256 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 256], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 256], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      %start2 = tile.init : !tile.state<argmax, 128xf32>
      %all2 = tile.for %j = 0 to 8192 step 256 iter (%before = %start2 : !tile.state<argmax, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 256 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 256 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 256], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 256], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<argmax, 128xf32>
        tile.yield %after : !tile.state<argmax, 128xf32>
      }
      %place = tile.finish %all2 : !tile.state<argmax, 128xf32> -> !tile.tile<128xi64>
      tile.store (%i in %m) (%v = %largest : !tile.tile<128xf32>, %w = %place : !tile.tile<128xi64>) {
        tgl.write %v, %b[%i] : f32, !tgl.tensor<[4096], f32>
        tgl.write %w, %a[%i] : i64, !tgl.tensor<[4096], i64>
        tile.yield
      }
    }
  }
}

// -----

// Another factor is another product, and a loop whose values need the first one's result comes after it.
// CHECK-LABEL: tgl.kernel @apart
// CHECK: tile.kernel "b"
// CHECK-COUNT-6: tile.for
tgl.kernel @apart(%x: !tgl.tensor<[4096, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                  %c: !tgl.tensor<[8192, 64], bf16> {tgl.name = "c", tgl.role = "in"},
                  %b: !tgl.tensor<[4096], f32> {tgl.name = "b", tgl.role = "out"}) {
  tgl.launch "b" strategy "product-reduction" {
    tile.kernel "b" (%t = 0 to 32) {
      %m = tile.span 128*%t to 4096 : !tile.span<128>
      %start = tile.init : !tile.state<max, 128xf32>
      %all = tile.for %j = 0 to 8192 step 256 iter (%before = %start : !tile.state<max, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 64 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 64 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 64], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 64], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<max, 128xf32>
        tile.yield %after : !tile.state<max, 128xf32>
      }
      %largest = tile.finish %all : !tile.state<max, 128xf32> -> !tile.tile<128xf32>
      %start2 = tile.init : !tile.state<min, 128xf32>
      %all2 = tile.for %j = 0 to 8192 step 256 iter (%before = %start2 : !tile.state<min, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 64 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 64 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, 63 - %q] : !tgl.tensor<[4096, 64], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 64], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %after = tile.reduce %p over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<min, 128xf32>
        tile.yield %after : !tile.state<min, 128xf32>
      }
      %start3 = tile.init : !tile.state<sum, 128xf32>
      %all3 = tile.for %j = 0 to 8192 step 256 iter (%before = %start3 : !tile.state<sum, 128xf32>) {
        %n = tile.span %j to 8192 : !tile.span<256>
        %zero = tile.zero : !tile.tile<128x256xf32>
        %p = tile.for %k = 0 to 64 step 64 iter (%sum = %zero : !tile.tile<128x256xf32>) {
          %d = tile.span %k to 64 : !tile.span<64>
          %l = tile.operand (%i in %m, %q in %d) -> !tile.tile<128x64xbf16> {
            %e = tgl.read %x[%i, %q] : !tgl.tensor<[4096, 64], bf16>
            tile.yield %e : f32
          }
          %r = tile.operand (%i in %n, %q in %d) -> !tile.tile<256x64xbf16> {
            %e = tgl.read %c[%i, %q] : !tgl.tensor<[8192, 64], bf16>
            tile.yield %e : f32
          }
          %next = tile.dot %l, %r, %sum : !tile.tile<128x64xbf16>, !tile.tile<256x64xbf16>, !tile.tile<128x256xf32>
          tile.yield %next : !tile.tile<128x256xf32>
        }
        %v = tile.map (%i in %m, %q in %n) (%e = %p : !tile.tile<128x256xf32>, %o = %largest : !tile.tile<128xf32>) -> !tile.tile<128x256xf32> {
          %w = arith.subf %e, %o : f32
          tile.yield %w : f32
        }
        %after = tile.reduce %v over %n into %before : !tile.tile<128x256xf32>, !tile.span<256>, !tile.state<sum, 128xf32>
        tile.yield %after : !tile.state<sum, 128xf32>
      }
      %least = tile.finish %all2 : !tile.state<min, 128xf32> -> !tile.tile<128xf32>
      %sum3 = tile.finish %all3 : !tile.state<sum, 128xf32> -> !tile.tile<128xf32>
      tile.store (%i in %m) (%v = %least : !tile.tile<128xf32>, %w = %sum3 : !tile.tile<128xf32>) {
        %z = arith.addf %v, %w : f32
        tgl.write %z, %b[%i] : f32, !tgl.tensor<[4096], f32>
        tile.yield
      }
    }
  }
}
