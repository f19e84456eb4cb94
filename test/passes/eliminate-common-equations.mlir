// RUN: tegula-opt %s --tgl-eliminate-common-equations | FileCheck %s

// h and g are the same; r contains the reduction that m is.
// CHECK-LABEL: tgl.kernel @common
// CHECK: %[[H:.*]] = tgl.temp "h"
// CHECK-NOT: tgl.temp "g"
// CHECK: %[[M:.*]] = tgl.temp "m"
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: tgl.reduce max
// CHECK: tgl.write %{{.*}}, %[[M]][%i]
// CHECK-NOT: tgl.reduce
// CHECK: tgl.read %[[M]][%p]
// CHECK: tgl.read %[[H]][%p]
tgl.kernel @common(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"}) sizes [M = 0 : 0, N = 0 : 1] {
  %h = tgl.temp "h" : !tgl.tensor<[M], f32>
  %g = tgl.temp "g" : !tgl.tensor<[M], f32>
  %m = tgl.temp "m" : !tgl.tensor<[M], f32>
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %x[%i, 0] : !tgl.tensor<[M, N], f32>
    %e = math.exp %v : f32
    tgl.write %e, %h[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%q = 0 to M) {
    %v = tgl.read %x[%q, 0] : !tgl.tensor<[M, N], f32>
    %e = math.exp %v : f32
    tgl.write %e, %g[%q] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%i = 0 to M) {
    %r = tgl.reduce max (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %m[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%p = 0 to M) {
    %r = tgl.reduce max (%j = 0 to N) -> f32 {
      %v = tgl.read %x[%p, %j] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    %a = tgl.read %g[%p] : !tgl.tensor<[M], f32>
    %b = tgl.read %m[%p] : !tgl.tensor<[M], f32>
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %r : f32
    tgl.write %t, %y[%p] : f32, !tgl.tensor<[M], f32>
  }
}

// What x holds changes in between: the equations differ.
// CHECK-LABEL: tgl.kernel @changed
// CHECK: tgl.temp "h"
// CHECK: tgl.temp "g"
tgl.kernel @changed(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "inout"},
                    %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  %g = tgl.temp "g" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    %e = math.exp %v : f32
    tgl.write %e, %h[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %h[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %x[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    %e = math.exp %v : f32
    tgl.write %e, %g[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %g[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// Tensors of a kernel are not the same for being alike: each sum is of its own.
// CHECK-LABEL: tgl.kernel @alike
// CHECK: tgl.reduce sum
// CHECK: tgl.read %t[%k]
// CHECK: tgl.reduce sum
// CHECK: tgl.read %t_0[%k]
tgl.kernel @alike(%y: !tgl.tensor<[2, N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 1] {
  %g = tgl.temp "t" : !tgl.tensor<[N], f32>
  %h = tgl.temp "t" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %one = arith.constant 1.0 : f32
    tgl.write %one, %g[%i] : f32, !tgl.tensor<[N], f32>
    %two = arith.constant 2.0 : f32
    tgl.write %two, %h[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %r = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %g[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %y[0, %i] : f32, !tgl.tensor<[2, N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %r = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %h[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %y[1, %i] : f32, !tgl.tensor<[2, N], f32>
  }
}

// What a reduction takes from outside is read before and after a change.
// CHECK-LABEL: tgl.kernel @read_outside
// CHECK: tgl.reduce sum
// CHECK: tgl.reduce sum
tgl.kernel @read_outside(%x: !tgl.tensor<[N, K], f32> {tgl.name = "x", tgl.role = "in"},
                         %t: !tgl.tensor<[N], f32> {tgl.name = "t", tgl.role = "inout"},
                         %y: !tgl.tensor<[2, N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0, K = 0 : 1] {
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %t[%i] : !tgl.tensor<[N], f32>
    %r = tgl.reduce sum (%k = 0 to K) -> f32 {
      %w = tgl.read %x[%i, %k] : !tgl.tensor<[N, K], f32>
      %m = arith.mulf %v, %w : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %y[0, %i] : f32, !tgl.tensor<[2, N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %t[%i] : !tgl.tensor<[N], f32>
    %s = arith.addf %v, %v : f32
    tgl.write %s, %t[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %t[%i] : !tgl.tensor<[N], f32>
    %r = tgl.reduce sum (%k = 0 to K) -> f32 {
      %w = tgl.read %x[%i, %k] : !tgl.tensor<[N, K], f32>
      %m = arith.mulf %v, %w : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %y[1, %i] : f32, !tgl.tensor<[2, N], f32>
  }
}
