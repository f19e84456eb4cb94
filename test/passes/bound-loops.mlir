// RUN: tegula-opt %s --tgl-bound-loops | FileCheck %s

// A lower triangular factor: the product of zeros is not computed.
// CHECK-LABEL: tgl.kernel @triangular
// CHECK: tgl.reduce sum (%k = 0 to min({{.*}}%i + 1{{.*}})) -> f32 {
// CHECK-NOT: arith.select
// CHECK: tgl.yield
tgl.kernel @triangular(%a: !tgl.tensor<[M, K], f32> {tgl.name = "a", tgl.role = "in"},
                       %b: !tgl.tensor<[K, N], f32> {tgl.name = "b", tgl.role = "in"},
                       %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to K) -> f32 {
      %zero = arith.constant 0.0 : f32
      %v = tgl.read %a[%i, %k] : !tgl.tensor<[M, K], f32>
      %w = tgl.read %b[%k, %j] : !tgl.tensor<[K, N], f32>
      %p = arith.mulf %v, %w : f32
      %c = arith.cmpi sle, %k, %i : index
      %t = arith.select %c, %p, %zero : f32
      tgl.yield %t : f32
    }
    tgl.write %s, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// Of a filter, what compares becomes bounds; what reads data stays a filter.
// CHECK-LABEL: tgl.kernel @filter
// CHECK: tgl.reduce max filtered (%k = max(0, %i - 1) to min({{.*}}%i + 2{{.*}})) -> f32
// CHECK: tgl.yield %{{.*}}, %{{.*}} : f32, i1
tgl.kernel @filter(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %m: !tgl.tensor<[N], i1> {tgl.name = "m", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %s = tgl.reduce max filtered (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      %d = tgl.index %k - %i
      %one = arith.constant 1 : index
      %minus = arith.constant -1 : index
      %lo = arith.cmpi sge, %d, %minus : index
      %hi = arith.cmpi sle, %d, %one : index
      %b = tgl.read %m[%k] : !tgl.tensor<[N], i1>
      %c = arith.andi %lo, %hi : i1
      %f = arith.andi %c, %b : i1
      tgl.yield %v, %f : f32, i1
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// Terms that are not neutral count: nothing changes.
// CHECK-LABEL: tgl.kernel @counts
// CHECK: tgl.reduce sum (%k = 0 to N) -> f32 {
// CHECK: arith.select
tgl.kernel @counts(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %one = arith.constant 1.0 : f32
    %s = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      %c = arith.cmpi sle, %k, %i : index
      %t = arith.select %c, %v, %one : f32
      tgl.yield %t : f32
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}
