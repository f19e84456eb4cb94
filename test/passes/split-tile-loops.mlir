// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-split-tile-loops))' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir --against=%s --quiet

// Six rows of two sequences leave most of a machine idle: ten parts of the loop, each of which ends where its sequence does. A
// part writes what it has seen; the merge scales sums by how far a part's maximum is from the largest.
// CHECK-LABEL: tgl.kernel @step
// CHECK: tgl.launch "acc" {
// CHECK-NEXT: tgl.parallel (%[[PART:.*]] = 0 to 10, %b = 0 to 2, %r = 0 to 3) {
// CHECK: %[[READ:.*]] = tgl.read %len[%b]
// CHECK: %[[LEN:.*]] = arith.index_cast %[[READ]] : i32 to index
// CHECK: %[[STATE:.*]]:2 = tgl.tiles (%t_lo, %t_hi) = 64*%[[PART]] to min(%[[LEN]], 640, 64*%[[PART]] + 64) size 32
// CHECK: tgl.write %[[STATE]]#0, %[[L:.*]][%[[PART]], %b, %r]
// CHECK: tgl.write %[[STATE]]#1, %[[M:.*]][%[[PART]], %b, %r]
// CHECK: tgl.write %{{.*}}, %[[ACC:.*]][%[[PART]], %b, %r, %d]
// CHECK: tgl.launch "merge" {
// CHECK-NEXT: tgl.parallel (%b = 0 to 2, %r = 0 to 3) {
// CHECK: %[[MAX:.*]] = tgl.reduce max (%[[I:.*]] = 0 to 10)
// CHECK: tgl.reduce sum (%[[I:.*]] = 0 to 10)
// CHECK: %[[OWN:.*]] = tgl.read %[[L]][%{{.*}}, %b, %r]
// CHECK: %[[OWNMAX:.*]] = tgl.read %[[M]][%{{.*}}, %b, %r]
// CHECK: %[[FAR:.*]] = arith.subf %[[OWNMAX]], %[[MAX]]
// CHECK: %[[SCALE:.*]] = math.exp2 %[[FAR]]
// CHECK: arith.mulf %[[OWN]], %[[SCALE]]
// CHECK: tgl.parallel (%d = 0 to 64) {
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 10)
// CHECK: tgl.read %[[ACC]][%{{.*}}, %b, %r, %d]
// CHECK: tgl.write %{{.*}}, %o[%b, %r, %d]
tgl.kernel @step(%q: !tgl.tensor<[2, 3, 64], bf16> {tgl.name = "q", tgl.role = "in"}, %k: !tgl.tensor<[2, 640, 64], bf16> {tgl.name = "k", tgl.role = "in"}, %v: !tgl.tensor<[2, 640, 64], bf16> {tgl.name = "v", tgl.role = "in"}, %len: !tgl.tensor<[2], i32> {tgl.name = "len", tgl.role = "in"}, %o: !tgl.tensor<[2, 3, 64], f32> {tgl.name = "o", tgl.role = "out"}) {
  %cst = arith.constant 1.000000e-03 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant -1.000000e+30 : f32
  tgl.launch "acc" {
    tgl.parallel (%b = 0 to 2, %r = 0 to 3) {
      %acc = tgl.temp "acc" : !tgl.tensor<[64], f32>
      tgl.parallel (%d = 0 to 64) {
        tgl.write %cst_1, %acc[%d] : f32, !tgl.tensor<[64], f32>
      }
      %0:2 = tgl.tiles (%t_lo, %t_hi) = 0 to 640 size 32 iter (%l = %cst_1 : f32, %m = %cst_2 : f32) {
        %s = tgl.temp "s" : !tgl.tensor<[32], f32>
        %p = tgl.temp "p" : !tgl.tensor<[32], f32>
        tgl.parallel (%t = %t_lo to %t_hi) {
          %8 = arith.index_cast %t : index to i64
          %9 = tgl.read %len[%b] : !tgl.tensor<[2], i32>
          %10 = arith.extsi %9 : i32 to i64
          %11 = arith.cmpi slt, %8, %10 : i64
          %12 = tgl.reduce sum (%e = 0 to 64) -> f32 {
            %14 = tgl.read %q[%b, %r, %e] : !tgl.tensor<[2, 3, 64], bf16>
            %15 = tgl.read %k[%b, %t, %e] : !tgl.tensor<[2, 640, 64], bf16>
            %16 = arith.mulf %14, %15 fastmath<contract> : f32
            tgl.yield %16 : f32
          }
          %13 = arith.select %11, %12, %cst_0 : f32
          tgl.write %13, %s[%t - %t_lo] : f32, !tgl.tensor<[32], f32>
        }
        %1 = tgl.reduce max (%t = %t_lo to %t_hi) -> f32 {
          %8 = tgl.read %s[%t - %t_lo] : !tgl.tensor<[32], f32>
          tgl.yield %8 : f32
        }
        %2 = arith.maximumf %m, %1 fastmath<contract> : f32
        tgl.parallel (%t = %t_lo to %t_hi) {
          %8 = tgl.read %s[%t - %t_lo] : !tgl.tensor<[32], f32>
          %9 = arith.subf %8, %2 fastmath<contract> : f32
          %10 = math.exp2 %9 fastmath<contract> : f32
          tgl.write %10, %p[%t - %t_lo] : f32, !tgl.tensor<[32], f32>
        }
        %3 = arith.subf %m, %2 fastmath<contract> : f32
        %4 = math.exp2 %3 fastmath<contract> : f32
        %5 = arith.mulf %l, %4 fastmath<contract> : f32
        %6 = tgl.reduce sum (%t = %t_lo to %t_hi) -> f32 {
          %8 = tgl.read %p[%t - %t_lo] : !tgl.tensor<[32], f32>
          tgl.yield %8 : f32
        }
        %7 = arith.addf %5, %6 fastmath<contract> : f32
        tgl.parallel (%d = 0 to 64) {
          %8 = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
          %9 = arith.mulf %8, %4 fastmath<contract> : f32
          %10 = tgl.reduce sum (%t = %t_lo to %t_hi) -> f32 {
            %12 = tgl.read %p[%t - %t_lo] : !tgl.tensor<[32], f32>
            %13 = tgl.convert %12 to bf16 : f32 -> f32
            %14 = tgl.read %v[%b, %t, %d] : !tgl.tensor<[2, 640, 64], bf16>
            %15 = arith.mulf %13, %14 fastmath<contract> : f32
            tgl.yield %15 : f32
          }
          %11 = arith.addf %9, %10 fastmath<contract> : f32
          tgl.write %11, %acc[%d] : f32, !tgl.tensor<[64], f32>
        }
        tgl.yield %7, %2 : f32, f32
      }
      tgl.parallel (%d = 0 to 64) {
        %1 = arith.maximumf %0#0, %cst fastmath<contract> : f32
        %2 = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
        %3 = arith.divf %2, %1 fastmath<contract> : f32
        tgl.write %3, %o[%b, %r, %d] : f32, !tgl.tensor<[2, 3, 64], f32>
      }
    }
  }
}
