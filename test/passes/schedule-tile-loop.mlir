// RUN: tegula-opt %s -tgl-schedule=target=sm_90a | FileCheck %s
// RUN: tegula-opt %s -tgl-schedule="target=sm_90a without=tile-loop" | FileCheck %s --check-prefix=GENERAL
// RUN: tegula-opt %s -tgl-schedule | FileCheck %s --check-prefix=GENERAL
// GENERAL-NOT: row_tile

// 160 blocks of 128 rows; the sums of a row and its state take 64 + 64 registers.
// CHECK-LABEL: tgl.kernel @products
// CHECK: strategy "tile-loop"
// CHECK: row_tile = array<i64: 128, 128>
tgl.kernel @products(%q: !tgl.tensor<[160, 128, 128], bf16> {tgl.name = "q", tgl.role = "in"},
                     %k: !tgl.tensor<[160, 512, 128], bf16> {tgl.name = "k", tgl.role = "in"},
                     %o: !tgl.tensor<[160, 128, 128], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "o" {
    tgl.parallel (%h = 0 to 160, %i = 0 to 128) {
      %acc = tgl.temp "acc" : !tgl.tensor<[128], f32>
      tgl.parallel (%d = 0 to 128) {
        tgl.write %zero, %acc[%d] : f32, !tgl.tensor<[128], f32>
      }
      tgl.tiles (%lo, %hi) = 0 to 512 size 32 {
        %p = tgl.temp "p" : !tgl.tensor<[32], bf16>
        tgl.parallel (%j = %lo to %hi) {
          %s = tgl.reduce sum (%e = 0 to 128) -> f32 {
            %x = tgl.read %q[%h, %i, %e] : !tgl.tensor<[160, 128, 128], bf16>
            %y = tgl.read %k[%h, %j, %e] : !tgl.tensor<[160, 512, 128], bf16>
            %m = arith.mulf %x, %y fastmath<contract> : f32
            tgl.yield %m : f32
          }
          tgl.write %s, %p[%j - %lo] : f32, !tgl.tensor<[32], bf16>
        }
        tgl.parallel (%d = 0 to 128) {
          %old = tgl.read %acc[%d] : !tgl.tensor<[128], f32>
          %s = tgl.reduce sum (%j = %lo to %hi) -> f32 {
            %x = tgl.read %p[%j - %lo] : !tgl.tensor<[32], bf16>
            %y = tgl.read %k[%h, %j, %d] : !tgl.tensor<[160, 512, 128], bf16>
            %m = arith.mulf %x, %y fastmath<contract> : f32
            tgl.yield %m : f32
          }
          %new = arith.addf %old, %s fastmath<contract> : f32
          tgl.write %new, %acc[%d] : f32, !tgl.tensor<[128], f32>
        }
        tgl.yield
      }
      tgl.parallel (%d = 0 to 128) {
        %v = tgl.read %acc[%d] : !tgl.tensor<[128], f32>
        tgl.write %v, %o[%h, %i, %d] : f32, !tgl.tensor<[160, 128, 128], bf16>
      }
    }
  }
}

// 512 columns of a state have no room in the registers of a block: two of a cluster have 256 each.
// CHECK-LABEL: tgl.kernel @wide
// CHECK: strategy "tile-loop"
// CHECK: row_tile = array<i64: 128, 64, 2>
tgl.kernel @wide(%q: !tgl.tensor<[160, 128, 512], bf16> {tgl.name = "q", tgl.role = "in"},
                 %k: !tgl.tensor<[160, 512, 512], bf16> {tgl.name = "k", tgl.role = "in"},
                 %o: !tgl.tensor<[160, 128, 512], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "o" {
    tgl.parallel (%h = 0 to 160, %i = 0 to 128) {
      %acc = tgl.temp "acc" : !tgl.tensor<[512], f32>
      tgl.parallel (%d = 0 to 512) {
        tgl.write %zero, %acc[%d] : f32, !tgl.tensor<[512], f32>
      }
      tgl.tiles (%lo, %hi) = 0 to 512 size 32 {
        %p = tgl.temp "p" : !tgl.tensor<[32], bf16>
        tgl.parallel (%j = %lo to %hi) {
          %s = tgl.reduce sum (%e = 0 to 512) -> f32 {
            %x = tgl.read %q[%h, %i, %e] : !tgl.tensor<[160, 128, 512], bf16>
            %y = tgl.read %k[%h, %j, %e] : !tgl.tensor<[160, 512, 512], bf16>
            %m = arith.mulf %x, %y fastmath<contract> : f32
            tgl.yield %m : f32
          }
          tgl.write %s, %p[%j - %lo] : f32, !tgl.tensor<[32], bf16>
        }
        tgl.parallel (%d = 0 to 512) {
          %old = tgl.read %acc[%d] : !tgl.tensor<[512], f32>
          %s = tgl.reduce sum (%j = %lo to %hi) -> f32 {
            %x = tgl.read %p[%j - %lo] : !tgl.tensor<[32], bf16>
            %y = tgl.read %k[%h, %j, %d] : !tgl.tensor<[160, 512, 512], bf16>
            %m = arith.mulf %x, %y fastmath<contract> : f32
            tgl.yield %m : f32
          }
          %new = arith.addf %old, %s fastmath<contract> : f32
          tgl.write %new, %acc[%d] : f32, !tgl.tensor<[512], f32>
        }
        tgl.yield
      }
      tgl.parallel (%d = 0 to 512) {
        %v = tgl.read %acc[%d] : !tgl.tensor<[512], f32>
        tgl.write %v, %o[%h, %i, %d] : f32, !tgl.tensor<[160, 128, 512], bf16>
      }
    }
  }
}

// A left factor of f32 has two planes, and its sums registers of their own.
// CHECK-LABEL: tgl.kernel @unrounded
// CHECK: strategy "tile-loop"
// CHECK: row_tile = array<i64: 128, 64>
tgl.kernel @unrounded(%q: !tgl.tensor<[160, 128, 64], bf16> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[160, 512, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %o: !tgl.tensor<[160, 128, 64], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "o" {
    tgl.parallel (%h = 0 to 160, %i = 0 to 128) {
      %acc = tgl.temp "acc" : !tgl.tensor<[64], f32>
      tgl.parallel (%d = 0 to 64) {
        tgl.write %zero, %acc[%d] : f32, !tgl.tensor<[64], f32>
      }
      tgl.tiles (%lo, %hi) = 0 to 512 size 32 {
        %p = tgl.temp "p" : !tgl.tensor<[32], f32>
        tgl.parallel (%j = %lo to %hi) {
          %s = tgl.reduce sum (%e = 0 to 64) -> f32 {
            %x = tgl.read %q[%h, %i, %e] : !tgl.tensor<[160, 128, 64], bf16>
            %y = tgl.read %k[%h, %j, %e] : !tgl.tensor<[160, 512, 64], bf16>
            %m = arith.mulf %x, %y fastmath<contract> : f32
            tgl.yield %m : f32
          }
          tgl.write %s, %p[%j - %lo] : f32, !tgl.tensor<[32], f32>
        }
        tgl.parallel (%d = 0 to 64) {
          %old = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
          %s = tgl.reduce sum (%j = %lo to %hi) -> f32 {
            %x = tgl.read %p[%j - %lo] : !tgl.tensor<[32], f32>
            %y = tgl.read %k[%h, %j, %d] : !tgl.tensor<[160, 512, 64], bf16>
            %m = arith.mulf %x, %y fastmath<contract> : f32
            tgl.yield %m : f32
          }
          %new = arith.addf %old, %s fastmath<contract> : f32
          tgl.write %new, %acc[%d] : f32, !tgl.tensor<[64], f32>
        }
        tgl.yield
      }
      tgl.parallel (%d = 0 to 64) {
        %v = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
        tgl.write %v, %o[%h, %i, %d] : f32, !tgl.tensor<[160, 128, 64], bf16>
      }
    }
  }
}
