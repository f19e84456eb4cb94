// RUN: tegula-opt %s --tgl-split-residues --tgl-simplify-accesses --canonicalize --cse --tgl-counters 2>&1 | FileCheck %s

// Half of the summed points are whole: which ones, the rest of p says.
// CHECK-LABEL: tgl.kernel @transposed
// CHECK: tgl.parallel (%[[REST:.*]] = 0 to 2, %[[P:.*]] = 0 to N + 3)
// CHECK: tgl.reduce sum (%[[R:.*]] = 0 to 4)
// CHECK: tgl.read %x[%[[P]] - %[[R]]] fill %{{.*}} : !tgl
// CHECK: tgl.read %w[%[[REST]] + 2*%[[R]]] : !tgl
// CHECK: tgl.write %{{.*}}, %y[2*%[[P]] + %[[REST]]] : f32
tgl.kernel @transposed(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                       %w: !tgl.tensor<[8], f32> {tgl.name = "w", tgl.role = "in"},
                       %y: !tgl.tensor<[2*N + 6], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%p = 0 to 2*N + 6) {
    %s = tgl.reduce sum (%r = 0 to 8) -> f32 {
      %a = tgl.read %x[(%p - %r) floordiv 2] exact (%p - %r by 2) fill %zero : !tgl.tensor<[N], f32>
      %b = tgl.read %w[%r] : !tgl.tensor<[8], f32>
      %m = arith.mulf %a, %b : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %y[%p] : f32, !tgl.tensor<[2*N + 6], f32>
  }
}

// Sizes that the divisor may not divide: accesses beyond them do not happen.
// CHECK-LABEL: tgl.kernel @ragged
// CHECK: tgl.parallel (%[[REST:.*]] = 0 to 3, %[[P:.*]] = 0 to (M + 2) floordiv 3)
// CHECK: %[[PLACE:.*]] = tgl.index 3*%[[P]] + %[[REST]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[PLACE]]
// CHECK: tgl.reduce sum (%[[R:.*]] = 0 to (K + 2) floordiv 3)
// CHECK: %[[TAP:.*]] = tgl.index
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[TAP]]
// CHECK: tgl.read %w[{{.*}}] if %[[EXISTS]] : !tgl
// CHECK: tgl.write %{{.*}}, %y[3*%[[P]] + %[[REST]]] if %[[INSIDE]] : f32
tgl.kernel @ragged(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[K], f32> {tgl.name = "w", tgl.role = "in"},
                   %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [K = 1 : 0, M = 2 : 0, N = 0 : 0] {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%p = 0 to M) {
    %s = tgl.reduce sum (%r = 0 to K) -> f32 {
      %a = tgl.read %x[(%p - 2*%r + 1) floordiv 3] exact (%p - 2*%r + 1 by 3) fill %zero : !tgl.tensor<[N], f32>
      %b = tgl.read %w[%r] : !tgl.tensor<[K], f32>
      %m = arith.mulf %a, %b : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %y[%p] : f32, !tgl.tensor<[M], f32>
  }
}

// Left alone: a fill that counts, and a weight that shares a factor with the divisor.
// CHECK-LABEL: tgl.kernel @kept
// CHECK: tgl.parallel (%{{.*}} = 0 to M)
// CHECK: exact
// CHECK: exact
tgl.kernel @kept(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [M = 1 : 0, N = 0 : 0] {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  tgl.parallel (%p = 0 to M) {
    %s = tgl.reduce sum (%r = 0 to 5) -> f32 {
      %a = tgl.read %x[(%p - %r) floordiv 2] exact (%p - %r by 2) fill %one : !tgl.tensor<[N], f32>
      tgl.yield %a : f32
    }
    %t = tgl.reduce sum (%r = 0 to 5) -> f32 {
      %a = tgl.read %x[(%p - 2*%r) floordiv 4] exact (%p - 2*%r by 4) fill %zero : !tgl.tensor<[N], f32>
      tgl.yield %a : f32
    }
    %u = arith.addf %s, %t : f32
    tgl.write %u, %y[%p] : f32, !tgl.tensor<[M], f32>
  }
}

// CHECK: tgl-split-residues: 2 axes split
// CHECK: tgl-split-residues: 2 sums thinned out
