// RUN: tegula-opt %s --tgl-chunk-recurrences=length=4 -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir -d B=2,T=0,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=1,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=3,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=4,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=5,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=8,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=11,K=3,V=2 --kernel=both --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=0,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=1,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=4,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=5,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=11,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=0,K=3,V=2 --kernel=channels --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=1,K=3,V=2 --kernel=channels --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=4,K=3,V=2 --kernel=channels --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=5,K=3,V=2 --kernel=channels --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=11,K=3,V=2 --kernel=channels --against=%s --tolerance=1e-4 --quiet

// Chunks of 64 steps have blocks of fewer on the diagonal of their matrices.
// RUN: tegula-opt %s --tgl-chunk-recurrences=length=64 -o %t.mlir
// RUN: tegula-interpret %t.mlir -d B=1,T=63,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=1,T=64,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=67,K=3,V=2 --kernel=delta --against=%s --tolerance=1e-4 --quiet
// RUN: tegula-interpret %t.mlir -d B=2,T=67,K=3,V=2 --kernel=channels --against=%s --tolerance=1e-4 --quiet

// Chunks of four steps compute what steps do, for any number of them: decays below, above and at 0, states at the begin and
// the end, a temporary of each step, steps from the last to the first, readouts before and after the update.
// CHECK-NOT: tgl.for %t
// CHECK: tgl.temp "scores" : !tgl.tensor<[B, (T + 3) floordiv 4, 4, 4], f32>
// CHECK: tgl.temp "scores"
tgl.kernel @both(%q: !tgl.tensor<[B, T, K], f32> {tgl.name = "q", tgl.role = "in"},
                 %k: !tgl.tensor<[B, T, K], f32> {tgl.name = "k", tgl.role = "in"},
                 %v: !tgl.tensor<[B, T, V], f32> {tgl.name = "v", tgl.role = "in"},
                 %g: !tgl.tensor<[B, T], f32> {tgl.name = "g", tgl.role = "in"},
                 %S: !tgl.tensor<[B, K, V], f32> {tgl.name = "S", tgl.role = "inout"},
                 %o: !tgl.tensor<[B, T, V], f32> {tgl.name = "o", tgl.role = "out"},
                 %p: !tgl.tensor<[B, T, V], f32> {tgl.name = "p", tgl.role = "out"})
    sizes [B = 0 : 0, T = 0 : 1, K = 0 : 2, V = 2 : 2] {
  %half = arith.constant 0.5 : f32
  tgl.for %t = 0 to T reverse {
    %w = tgl.temp "w" : !tgl.tensor<[B, V], f32>
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.read %v[%b, %t, %j] : !tgl.tensor<[B, T, V], f32>
      %1 = arith.mulf %0, %half : f32
      tgl.write %1, %w[%b, %j] : f32, !tgl.tensor<[B, V], f32>
    }
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.reduce sum (%i = 0 to K) -> f32 {
        %1 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
        %2 = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.negf %3 : f32
        tgl.yield %4 : f32
      }
      %5 = tgl.read %w[%b, %j] : !tgl.tensor<[B, V], f32>
      %6 = arith.addf %0, %5 : f32
      tgl.write %6, %p[%b, %t, %j] : f32, !tgl.tensor<[B, T, V], f32>
    }
    tgl.parallel (%b = 0 to B, %i = 0 to K, %j = 0 to V) {
      %0 = tgl.read %g[%b, %t] : !tgl.tensor<[B, T], f32>
      %1 = arith.mulf %0, %half : f32
      %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
      %3 = arith.mulf %1, %2 : f32
      %4 = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
      %5 = tgl.read %w[%b, %j] : !tgl.tensor<[B, V], f32>
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.subf %3, %6 : f32
      tgl.write %7, %S[%b, %i, %j] : f32, !tgl.tensor<[B, K, V], f32>
    }
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.reduce sum (%i = 0 to K) -> f32 {
        %1 = tgl.read %q[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
        %3 = arith.mulf %1, %2 : f32
        tgl.yield %3 : f32
      }
      tgl.write %0, %o[%b, %t, %j] : f32, !tgl.tensor<[B, T, V], f32>
    }
  }
}

// The delta rule, of negative values: a readout before the update corrects the value. A loop over chunks has two products.
// CHECK-LABEL: tgl.kernel @delta
// CHECK: tgl.temp "scores" : !tgl.tensor<[B, (T + 3) floordiv 4, 4, 4], f32>
// CHECK: %[[INVERSE:.*]] = tgl.temp "inverse" : !tgl.tensor<[B, (T + 3) floordiv 4, 4, 4], f32>
// CHECK-NOT: tgl.temp "beside"
// CHECK: tgl.read %[[INVERSE]]
// CHECK: %[[FIXED:.*]] = tgl.temp "fixed"
// CHECK: tgl.reduce sum
// CHECK: %[[TURNED:.*]] = tgl.temp "turned"
// CHECK: tgl.reduce sum
// CHECK: tgl.for %chunk = 0 to (T + 3) floordiv 4 {
// CHECK: tgl.read %[[TURNED]]
// CHECK: tgl.read %[[FIXED]]
// CHECK: tgl.write %{{.*}}, %S[
tgl.kernel @delta(%q: !tgl.tensor<[B, T, K], f32> {tgl.name = "q", tgl.role = "in"},
                  %k: !tgl.tensor<[B, T, K], f32> {tgl.name = "k", tgl.role = "in"},
                  %v: !tgl.tensor<[B, T, V], f32> {tgl.name = "v", tgl.role = "in"},
                  %g: !tgl.tensor<[B, T], f32> {tgl.name = "g", tgl.role = "in"},
                  %S: !tgl.tensor<[B, K, V], f32> {tgl.name = "S", tgl.role = "inout"},
                  %o: !tgl.tensor<[B, T, V], f32> {tgl.name = "o", tgl.role = "out"})
    sizes [B = 0 : 0, T = 0 : 1, K = 0 : 2, V = 2 : 2] {
  %third = arith.constant 0.3 : f32
  %tenth = arith.constant 0.1 : f32
  tgl.for %t = 0 to T {
    %u = tgl.temp "u" : !tgl.tensor<[B, V], f32>
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.reduce sum (%i = 0 to K) -> f32 {
        %1 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
        %2 = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %3 = arith.mulf %1, %2 : f32
        tgl.yield %3 : f32
      }
      %4 = tgl.read %g[%b, %t] : !tgl.tensor<[B, T], f32>
      %5 = arith.mulf %4, %third : f32
      %6 = arith.mulf %5, %0 : f32
      %7 = tgl.read %v[%b, %t, %j] : !tgl.tensor<[B, T, V], f32>
      %8 = arith.subf %6, %7 : f32
      %9 = arith.mulf %tenth, %8 : f32
      tgl.write %9, %u[%b, %j] : f32, !tgl.tensor<[B, V], f32>
    }
    tgl.parallel (%b = 0 to B, %i = 0 to K, %j = 0 to V) {
      %0 = tgl.read %g[%b, %t] : !tgl.tensor<[B, T], f32>
      %1 = arith.mulf %0, %third : f32
      %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
      %3 = arith.mulf %1, %2 : f32
      %4 = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
      %5 = tgl.read %u[%b, %j] : !tgl.tensor<[B, V], f32>
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.subf %3, %6 : f32
      tgl.write %7, %S[%b, %i, %j] : f32, !tgl.tensor<[B, K, V], f32>
    }
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.reduce sum (%i = 0 to K) -> f32 {
        %1 = tgl.read %q[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
        %3 = arith.mulf %1, %2 : f32
        tgl.yield %3 : f32
      }
      tgl.write %0, %o[%b, %t, %j] : f32, !tgl.tensor<[B, T, V], f32>
    }
  }
}

// A decay for each channel stands inside of the sums of scores; steps that a step does not see are a statement of their own.
// CHECK-LABEL: tgl.kernel @channels
// CHECK: tgl.temp "decay_log" : !tgl.tensor<[B, (T + 3) floordiv 4, 5, K], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to B, %{{.*}} = 0 to (T + 3) floordiv 4, %[[L:.*]] = 0 to 4, %{{.*}} = %[[L]] to 4) {
// CHECK: tgl.temp "seen" : !tgl.tensor<[B, (T + 3) floordiv 4, 4, K], f32>
tgl.kernel @channels(%q: !tgl.tensor<[B, T, K], f32> {tgl.name = "q", tgl.role = "in"},
                  %k: !tgl.tensor<[B, T, K], f32> {tgl.name = "k", tgl.role = "in"},
                  %v: !tgl.tensor<[B, T, V], f32> {tgl.name = "v", tgl.role = "in"},
                  %g: !tgl.tensor<[B, T, K], f32> {tgl.name = "g", tgl.role = "in"},
                  %S: !tgl.tensor<[B, K, V], f32> {tgl.name = "S", tgl.role = "inout"},
                  %o: !tgl.tensor<[B, T, V], f32> {tgl.name = "o", tgl.role = "out"})
    sizes [B = 0 : 0, T = 0 : 1, K = 0 : 2, V = 2 : 2] {
  %third = arith.constant 0.3 : f32
  %tenth = arith.constant 0.1 : f32
  tgl.for %t = 0 to T {
    %u = tgl.temp "u" : !tgl.tensor<[B, V], f32>
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.reduce sum (%i = 0 to K) -> f32 {
        %1 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
        %2 = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %3 = arith.mulf %1, %2 : f32
        %4 = tgl.read %g[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %5 = arith.mulf %4, %third : f32
        %6 = arith.mulf %5, %3 : f32
        tgl.yield %6 : f32
      }
      %6 = arith.mulf %third, %0 : f32
      %7 = tgl.read %v[%b, %t, %j] : !tgl.tensor<[B, T, V], f32>
      %8 = arith.subf %7, %6 : f32
      %9 = arith.mulf %tenth, %8 : f32
      tgl.write %9, %u[%b, %j] : f32, !tgl.tensor<[B, V], f32>
    }
    tgl.parallel (%b = 0 to B, %i = 0 to K, %j = 0 to V) {
      %0 = tgl.read %g[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
      %1 = arith.mulf %0, %third : f32
      %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
      %3 = arith.mulf %1, %2 : f32
      %4 = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
      %5 = tgl.read %u[%b, %j] : !tgl.tensor<[B, V], f32>
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %3, %6 : f32
      tgl.write %7, %S[%b, %i, %j] : f32, !tgl.tensor<[B, K, V], f32>
    }
    tgl.parallel (%b = 0 to B, %j = 0 to V) {
      %0 = tgl.reduce sum (%i = 0 to K) -> f32 {
        %1 = tgl.read %q[%b, %t, %i] : !tgl.tensor<[B, T, K], f32>
        %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, K, V], f32>
        %3 = arith.mulf %1, %2 : f32
        tgl.yield %3 : f32
      }
      tgl.write %0, %o[%b, %t, %j] : f32, !tgl.tensor<[B, T, V], f32>
    }
  }
}
