// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-split-tile-loops))' | FileCheck %s

// A sum that fades is not relative to the maximum as its terms are: parts of it cannot be merged.
// CHECK-LABEL: tgl.kernel @faded
// CHECK: tgl.tiles (%t_lo, %t_hi) = 0 to 640
// CHECK-NOT: tgl.launch "merge"
tgl.kernel @faded(%q: !tgl.tensor<[2, 3, 64], bf16> {tgl.name = "q", tgl.role = "in"}, %k: !tgl.tensor<[2, 640, 64], bf16> {tgl.name = "k", tgl.role = "in"}, %v: !tgl.tensor<[2, 640, 64], bf16> {tgl.name = "v", tgl.role = "in"}, %o: !tgl.tensor<[2, 3, 64], f32> {tgl.name = "o", tgl.role = "out"}) {
  %cst = arith.constant 5.000000e-01 : f32
  %cst_0 = arith.constant 0.000000e+00 : f32
  %cst_1 = arith.constant -1.000000e+30 : f32
  tgl.launch "acc" {
    tgl.parallel (%b = 0 to 2, %r = 0 to 3) {
      %acc = tgl.temp "acc" : !tgl.tensor<[64], f32>
      tgl.parallel (%d = 0 to 64) {
        tgl.write %cst_0, %acc[%d] : f32, !tgl.tensor<[64], f32>
      }
      %0 = tgl.tiles (%t_lo, %t_hi) = 0 to 640 size 32 iter (%m = %cst_1 : f32) {
        %s = tgl.temp "s" : !tgl.tensor<[32], f32>
        %p = tgl.temp "p" : !tgl.tensor<[32], f32>
        tgl.parallel (%t = %t_lo to %t_hi) {
          %3 = tgl.reduce sum (%e = 0 to 64) -> f32 {
            %4 = tgl.read %q[%b, %r, %e] : !tgl.tensor<[2, 3, 64], bf16>
            %5 = tgl.read %k[%b, %t, %e] : !tgl.tensor<[2, 640, 64], bf16>
            %6 = arith.mulf %4, %5 fastmath<contract> : f32
            tgl.yield %6 : f32
          }
          tgl.write %3, %s[%t - %t_lo] : f32, !tgl.tensor<[32], f32>
        }
        %1 = tgl.reduce max (%t = %t_lo to %t_hi) -> f32 {
          %3 = tgl.read %s[%t - %t_lo] : !tgl.tensor<[32], f32>
          tgl.yield %3 : f32
        }
        %2 = arith.maximumf %m, %1 fastmath<contract> : f32
        tgl.parallel (%t = %t_lo to %t_hi) {
          %3 = tgl.read %s[%t - %t_lo] : !tgl.tensor<[32], f32>
          %4 = arith.subf %3, %2 fastmath<contract> : f32
          %5 = math.exp2 %4 fastmath<contract> : f32
          tgl.write %5, %p[%t - %t_lo] : f32, !tgl.tensor<[32], f32>
        }
        tgl.parallel (%d = 0 to 64) {
          %3 = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
          %4 = arith.mulf %3, %cst fastmath<contract> : f32
          %5 = tgl.reduce sum (%t = %t_lo to %t_hi) -> f32 {
            %7 = tgl.read %p[%t - %t_lo] : !tgl.tensor<[32], f32>
            %8 = tgl.convert %7 to bf16 : f32 -> f32
            %9 = tgl.read %v[%b, %t, %d] : !tgl.tensor<[2, 640, 64], bf16>
            %10 = arith.mulf %8, %9 fastmath<contract> : f32
            tgl.yield %10 : f32
          }
          %6 = arith.addf %4, %5 fastmath<contract> : f32
          tgl.write %6, %acc[%d] : f32, !tgl.tensor<[64], f32>
        }
        tgl.yield %2 : f32
      }
      tgl.parallel (%d = 0 to 64) {
        %1 = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
        tgl.write %1, %o[%b, %r, %d] : f32, !tgl.tensor<[2, 3, 64], f32>
      }
    }
  }
}
