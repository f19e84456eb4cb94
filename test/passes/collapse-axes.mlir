// RUN: tegula-opt %s --tgl-collapse-axes --tgl-counters 2>&1 | FileCheck %s

// The example of the pass's description.
// CHECK-LABEL: tgl.kernel @pointwise
// CHECK: tgl.parallel (%[[I:.*]] = 0 to N*P*Q) {
// CHECK: tgl.read %x[(%[[I]] floordiv Q) floordiv P, {{.*}}, %[[I]] - Q*(%[[I]] floordiv Q)]
tgl.kernel @pointwise(%x: !tgl.tensor<[N, P, Q], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[N, P, Q], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0, P = 0 : 1, Q = 0 : 2] {
  tgl.parallel (%n = 0 to N, %p = 0 to P, %q = 0 to Q) {
    %v = tgl.read %x[%n, %p, %q] : !tgl.tensor<[N, P, Q], f32>
    %w = math.exp %v : f32
    tgl.write %w, %y[%n, %p, %q] : f32, !tgl.tensor<[N, P, Q], f32>
  }
}

// A mean of channels: rows and columns of the image are one axis, channels (which choose a weight) are not;
// the sum runs over all three of its axes as one.
// CHECK-LABEL: tgl.kernel @channels
// CHECK: tgl.parallel (%n = 0 to N)
// CHECK: tgl.reduce sum (%{{.*}} = 0 to C*P*Q)
// CHECK: tgl.parallel (%[[C:.*]] = 0 to C, %{{.*}} = 0 to P*Q)
// CHECK: tgl.read %w[%[[C]]]
tgl.kernel @channels(%x: !tgl.tensor<[N, C, P, Q], f32> {tgl.name = "x", tgl.role = "in"},
                     %w: !tgl.tensor<[C], f32> {tgl.name = "w", tgl.role = "in"},
                     %y: !tgl.tensor<[N, C, P, Q], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [C = 0 : 1, N = 0 : 0, P = 0 : 2, Q = 0 : 3] {
  tgl.parallel (%n = 0 to N) {
    %s = tgl.reduce sum (%c = 0 to C, %p = 0 to P, %q = 0 to Q) -> f32 {
      %v = tgl.read %x[%n, %c, %p, %q] : !tgl.tensor<[N, C, P, Q], f32>
      tgl.yield %v : f32
    }
    tgl.parallel (%c = 0 to C, %p = 0 to P, %q = 0 to Q) {
      %v = tgl.read %x[%n, %c, %p, %q] : !tgl.tensor<[N, C, P, Q], f32>
      %u = tgl.read %w[%c] : !tgl.tensor<[C], f32>
      %a = arith.mulf %v, %u : f32
      %b = arith.mulf %a, %s : f32
      tgl.write %b, %y[%n, %c, %p, %q] : f32, !tgl.tensor<[N, C, P, Q], f32>
    }
  }
}

// Left alone: a transpose, a read that may leave its tensor, a bound that uses an axis, an index that is a
// value, a part of a tensor.
// CHECK-LABEL: tgl.kernel @kept
// CHECK: tgl.parallel (%i = 0 to N, %j = 0 to M)
// CHECK: tgl.parallel (%i = 0 to M, %j = 0 to N)
// CHECK: tgl.reduce sum (%i = 0 to M, %j = 0 to %i + 1)
// CHECK: tgl.reduce sum (%i = 0 to M, %j = 0 to N)
// CHECK: tgl.reduce sum (%i = 0 to M, %j = 0 to 3)
tgl.kernel @kept(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                 %s: !tgl.tensor<[M, M], f32> {tgl.name = "s", tgl.role = "in"},
                 %t: !tgl.tensor<[N, M], f32> {tgl.name = "t", tgl.role = "out"},
                 %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[], f32> {tgl.name = "z", tgl.role = "out"}) sizes [M = 0 : 0, N = 0 : 1] {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to N, %j = 0 to M) {
    %v = tgl.read %x[%j, %i] : !tgl.tensor<[M, N], f32>
    tgl.write %v, %t[%i, %j] : f32, !tgl.tensor<[N, M], f32>
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %x[%i, %j + 1] fill %zero : !tgl.tensor<[M, N], f32>
    tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
  tgl.parallel () {
    %a = tgl.reduce sum (%i = 0 to M, %j = 0 to %i + 1) -> f32 {
      %v = tgl.read %s[%i, %j] : !tgl.tensor<[M, M], f32>
      tgl.yield %v : f32
    }
    %b = tgl.reduce sum (%i = 0 to M, %j = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
      %k = arith.index_cast %j : index to i64
      %f = arith.sitofp %k : i64 to f32
      %m = arith.mulf %v, %f : f32
      tgl.yield %m : f32
    }
    %c = tgl.reduce sum (%i = 0 to M, %j = 0 to 3) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    %d = arith.addf %a, %b : f32
    %e = arith.addf %c, %d : f32
    tgl.write %e, %z[] : f32, !tgl.tensor<[], f32>
  }
}

// CHECK: tgl-collapse-axes: 5 axes collapsed
