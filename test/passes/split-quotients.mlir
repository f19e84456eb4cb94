// RUN: tegula-opt %s --tgl-split-quotients --tgl-simplify-accesses --canonicalize | FileCheck %s

// Heads that share keys become an axis of their own, in all statements that the scores connect.
// CHECK-LABEL: @scores
// CHECK: tgl.temp "s" : !tgl.tensor<[2, 4, 16], f32>
// CHECK: tgl.parallel (%[[G:.*]] = 0 to 2, %[[H:.*]] = 0 to 4, %[[T:.*]] = 0 to 16)
// CHECK: tgl.read %q[4*%[[G]] + %[[H]], %{{.*}}]
// CHECK: tgl.read %k[%[[G]], %[[T]], %{{.*}}]
// CHECK: tgl.write %{{.*}}, %s[%[[G]], %[[H]], %[[T]]]
// CHECK: tgl.parallel (%[[G2:.*]] = 0 to 2, %[[H2:.*]] = 0 to 4)
// CHECK: tgl.write %{{.*}}, %o[4*%[[G2]] + %[[H2]]]
tgl.kernel @scores(%q: !tgl.tensor<[8, 32], f32> {tgl.name = "q", tgl.role = "in"},
                   %k: !tgl.tensor<[2, 16, 32], f32> {tgl.name = "k", tgl.role = "in"},
                   %o: !tgl.tensor<[8], f32> {tgl.name = "o", tgl.role = "out"}) sizes [] {
  %s = tgl.temp "s" : !tgl.tensor<[8, 16], f32>
  tgl.parallel (%h = 0 to 8, %t = 0 to 16) {
    %0 = tgl.reduce sum (%d = 0 to 32) -> f32 {
      %1 = tgl.read %q[%h, %d] : !tgl.tensor<[8, 32], f32>
      %2 = tgl.read %k[%h floordiv 4, %t, %d] : !tgl.tensor<[2, 16, 32], f32>
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %s[%h, %t] : f32, !tgl.tensor<[8, 16], f32>
  }
  tgl.parallel (%h = 0 to 8) {
    %0 = tgl.reduce max (%t = 0 to 16) -> f32 {
      %1 = tgl.read %s[%h, %t] : !tgl.tensor<[8, 16], f32>
      tgl.yield %1 : f32
    }
    tgl.write %0, %o[%h] : f32, !tgl.tensor<[8], f32>
  }
}

// A temporary that is read at a place that is no axis keeps its dim, and the axis.
// CHECK-LABEL: @first
// CHECK: tgl.temp "s" : !tgl.tensor<[8, 16], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to 8, %{{.*}} = 0 to 16)
tgl.kernel @first(%q: !tgl.tensor<[8, 32], f32> {tgl.name = "q", tgl.role = "in"},
                  %k: !tgl.tensor<[2, 16, 32], f32> {tgl.name = "k", tgl.role = "in"},
                  %o: !tgl.tensor<[16], f32> {tgl.name = "o", tgl.role = "out"}) sizes [] {
  %s = tgl.temp "s" : !tgl.tensor<[8, 16], f32>
  tgl.parallel (%h = 0 to 8, %t = 0 to 16) {
    %0 = tgl.reduce sum (%d = 0 to 32) -> f32 {
      %1 = tgl.read %q[%h, %d] : !tgl.tensor<[8, 32], f32>
      %2 = tgl.read %k[%h floordiv 4, %t, %d] : !tgl.tensor<[2, 16, 32], f32>
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %s[%h, %t] : f32, !tgl.tensor<[8, 16], f32>
  }
  tgl.parallel (%t = 0 to 16) {
    %0 = tgl.read %s[3, %t] : !tgl.tensor<[8, 16], f32>
    tgl.write %0, %o[%t] : f32, !tgl.tensor<[16], f32>
  }
}

// Of heads that take turns the remainder is an axis.
// CHECK-LABEL: @turns
// CHECK: tgl.parallel (%[[R:.*]] = 0 to 4, %[[G:.*]] = 0 to 2, %[[T:.*]] = 0 to 16)
// CHECK: tgl.read %q[2*%[[R]] + %[[G]], %{{.*}}]
// CHECK: tgl.read %k[%[[G]], %[[T]], %{{.*}}]
tgl.kernel @turns(%q: !tgl.tensor<[8, 32], f32> {tgl.name = "q", tgl.role = "in"},
                  %k: !tgl.tensor<[2, 16, 32], f32> {tgl.name = "k", tgl.role = "in"},
                  %o: !tgl.tensor<[8, 16], f32> {tgl.name = "o", tgl.role = "out"}) sizes [] {
  tgl.parallel (%h = 0 to 8, %t = 0 to 16) {
    %0 = tgl.reduce sum (%d = 0 to 32) -> f32 {
      %1 = tgl.read %q[%h, %d] : !tgl.tensor<[8, 32], f32>
      %2 = tgl.read %k[%h - 2*(%h floordiv 2), %t, %d] : !tgl.tensor<[2, 16, 32], f32>
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %o[%h, %t] : f32, !tgl.tensor<[8, 16], f32>
  }
}

// Where the other factor does not have the axis, points of a group are the same.
// CHECK-LABEL: @same
// CHECK: tgl.parallel (%{{.*}} = 0 to 8)
tgl.kernel @same(%q: !tgl.tensor<[32], f32> {tgl.name = "q", tgl.role = "in"},
                 %k: !tgl.tensor<[2, 32], f32> {tgl.name = "k", tgl.role = "in"},
                 %o: !tgl.tensor<[8], f32> {tgl.name = "o", tgl.role = "out"}) sizes [] {
  tgl.parallel (%h = 0 to 8) {
    %0 = tgl.reduce sum (%d = 0 to 32) -> f32 {
      %1 = tgl.read %q[%d] : !tgl.tensor<[32], f32>
      %2 = tgl.read %k[%h floordiv 4, %d] : !tgl.tensor<[2, 32], f32>
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %o[%h] : f32, !tgl.tensor<[8], f32>
  }
}

// The place of the largest is of the whole axis.
// CHECK-LABEL: @place
// CHECK: tgl.parallel (%{{.*}} = 0 to 8)
// CHECK: tgl.reduce argmax (%{{.*}} = 0 to 8)
tgl.kernel @place(%q: !tgl.tensor<[8, 32], f32> {tgl.name = "q", tgl.role = "in"},
                  %k: !tgl.tensor<[2, 32], f32> {tgl.name = "k", tgl.role = "in"},
                  %o: !tgl.tensor<[1], i64> {tgl.name = "o", tgl.role = "out"}) sizes [] {
  %s = tgl.temp "s" : !tgl.tensor<[8], f32>
  tgl.parallel (%h = 0 to 8) {
    %0 = tgl.reduce sum (%d = 0 to 32) -> f32 {
      %1 = tgl.read %q[%h, %d] : !tgl.tensor<[8, 32], f32>
      %2 = tgl.read %k[%h floordiv 4, %d] : !tgl.tensor<[2, 32], f32>
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %s[%h] : f32, !tgl.tensor<[8], f32>
  }
  tgl.parallel () {
    %0 = tgl.reduce argmax (%h = 0 to 8) -> i64 {
      %1 = tgl.read %s[%h] : !tgl.tensor<[8], f32>
      tgl.yield %1 : f32
    }
    tgl.write %0, %o[0] : i64, !tgl.tensor<[1], i64>
  }
}
