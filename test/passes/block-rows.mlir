// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-block-rows))' | FileCheck %s

// Every row i reads all of k: rows run in blocks, what a row carries through the tiles is in memory,
// and the inner sum of products has rows and columns.

// CHECK-LABEL: tgl.kernel @row_maxima
// CHECK: tgl.parallel (%[[BLOCK:.*]] = 0 to (S + 127) floordiv 128) {
// CHECK-NEXT: %[[CARRIED:.*]] = tgl.temp "carried" : !tgl.tensor<[128], f32>
// CHECK-NEXT: tgl.parallel (%[[I:.*]] = 128*%[[BLOCK]] to min(S, 128*%[[BLOCK]] + 128)) {
// CHECK-NEXT: tgl.write %{{.*}}, %[[CARRIED]][%[[I]] - 128*%[[BLOCK]]]
// CHECK: tgl.tiles (%[[LO:.*]], %[[HI:.*]]) = 0 to T size 32 {
// CHECK: %[[S:.*]] = tgl.temp "s" : !tgl.tensor<[128, 32], f32>
// CHECK: tgl.parallel (%{{.*}} = 128*%[[BLOCK]] to min(S, 128*%[[BLOCK]] + 128), %{{.*}} = %[[LO]] to %[[HI]]) {
// CHECK-NEXT: tgl.reduce sum
// CHECK: tgl.write %{{.*}}, %[[S]][
// CHECK: tgl.parallel (%[[R:.*]] = 128*%[[BLOCK]] to min(S, 128*%[[BLOCK]] + 128)) {
// CHECK-NEXT: tgl.reduce max
// CHECK: %[[OLD:.*]] = tgl.read %[[CARRIED]][%[[R]] - 128*%[[BLOCK]]]
// CHECK: arith.maximumf %[[OLD]]
// CHECK: tgl.write %{{.*}}, %[[CARRIED]][%[[R]] - 128*%[[BLOCK]]]
// CHECK: tgl.write %{{.*}}, %y[
tgl.kernel @row_maxima(%q: !tgl.tensor<[S, D], f32> {tgl.name = "q", tgl.role = "in"},
                       %k: !tgl.tensor<[T, D], f32> {tgl.name = "k", tgl.role = "in"},
                       %y: !tgl.tensor<[S], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [S = 0 : 0, D = 0 : 1, T = 1 : 0] {
  %low = arith.constant -1.0e30 : f32
  tgl.launch "y" {
    tgl.parallel (%i = 0 to S) {
      %r = tgl.tiles (%lo, %hi) = 0 to T size 32 iter (%m = %low : f32) {
        %s = tgl.temp "s" : !tgl.tensor<[32], f32>
        tgl.parallel (%j = %lo to %hi) {
          %d = tgl.reduce sum (%e = 0 to D) -> f32 {
            %a = tgl.read %q[%i, %e] : !tgl.tensor<[S, D], f32>
            %b = tgl.read %k[%j, %e] : !tgl.tensor<[T, D], f32>
            %c = arith.mulf %a, %b : f32
            tgl.yield %c : f32
          }
          tgl.write %d, %s[%j - %lo] : f32, !tgl.tensor<[32], f32>
        }
        %n = tgl.reduce max (%j = %lo to %hi) -> f32 {
          %a = tgl.read %s[%j - %lo] : !tgl.tensor<[32], f32>
          tgl.yield %a : f32
        }
        %o = arith.maximumf %m, %n : f32
        tgl.yield %o : f32
      }
      tgl.write %r, %y[%i] : f32, !tgl.tensor<[S], f32>
    }
  }
}

// A loop whose bounds differ from row to row stays inside its row.

// CHECK-LABEL: tgl.kernel @triangle
// CHECK: tgl.parallel (%[[I:.*]] = 0 to S) {
// CHECK-NEXT: tgl.tiles (%{{.*}}, %{{.*}}) = 0 to %[[I]] + 1 size 32
tgl.kernel @triangle(%q: !tgl.tensor<[S, D], f32> {tgl.name = "q", tgl.role = "in"},
                     %y: !tgl.tensor<[S], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [S = 0 : 0, D = 0 : 1] {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%i = 0 to S) {
      %r = tgl.tiles (%lo, %hi) = 0 to %i + 1 size 32 iter (%m = %zero : f32) {
        %s = tgl.temp "s" : !tgl.tensor<[32], f32>
        tgl.parallel (%j = %lo to %hi) {
          %d = tgl.reduce sum (%e = 0 to D) -> f32 {
            %a = tgl.read %q[%i, %e] : !tgl.tensor<[S, D], f32>
            %b = tgl.read %q[%j, %e] : !tgl.tensor<[S, D], f32>
            %c = arith.mulf %a, %b : f32
            tgl.yield %c : f32
          }
          tgl.write %d, %s[%j - %lo] : f32, !tgl.tensor<[32], f32>
        }
        %n = tgl.reduce sum (%j = %lo to %hi) -> f32 {
          %a = tgl.read %s[%j - %lo] : !tgl.tensor<[32], f32>
          tgl.yield %a : f32
        }
        %o = arith.addf %m, %n : f32
        tgl.yield %o : f32
      }
      tgl.write %r, %y[%i] : f32, !tgl.tensor<[S], f32>
    }
  }
}
