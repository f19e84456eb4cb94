// RUN: tegula-opt %s --tgl-fuse-variances --split-input-file | FileCheck %s

// The squared distances from a mean over the same values become a variance, which needs no mean.
// CHECK-LABEL: tgl.kernel @rows
// CHECK: %[[S:.*]] = tgl.reduce sum
// CHECK: %[[V:.*]] = tgl.reduce var (%{{.*}} = 0 to 65536) -> f32
// CHECK-NEXT: tgl.read %x[%i, %{{.*}}]
// CHECK-NEXT: tgl.yield
// CHECK: %[[N:.*]] = arith.constant 6.553600e+04
// CHECK: %[[Q:.*]] = arith.mulf %[[V]], %[[N]]
// CHECK: tgl.write %[[Q]], %y[%i]
tgl.kernel @rows(%x: !tgl.tensor<[8, 65536], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"}) {
  %n = arith.constant 6.553600e+04 : f32
  tgl.parallel (%i = 0 to 8) {
    %s = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 65536], f32>
      tgl.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 65536], f32>
      %d = arith.subf %v, %m : f32
      %p = arith.mulf %d, %d : f32
      tgl.yield %p : f32
    }
    tgl.write %q, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
}

// -----

// A sum that is written for others is not read back.
// CHECK-LABEL: tgl.kernel @kept
// CHECK: %[[S:.*]] = tgl.reduce sum
// CHECK: tgl.reduce var
// CHECK: tgl.write %[[S]], %t[%i]
// CHECK-NOT: tgl.read %t
tgl.kernel @kept(%x: !tgl.tensor<[8, 65536], f32> {tgl.name = "x", tgl.role = "in"},
                 %t: !tgl.tensor<[8], f32> {tgl.name = "t", tgl.role = "out"},
                 %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"}) {
  %n = arith.constant 6.553600e+04 : f32
  tgl.parallel (%i = 0 to 8) {
    %s = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 65536], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %t[%i] : f32, !tgl.tensor<[8], f32>
    %b = tgl.read %t[%i] : !tgl.tensor<[8], f32>
    %m = arith.divf %b, %n : f32
    %q = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 65536], f32>
      %d = arith.subf %v, %m : f32
      %p = arith.mulf %d, %d : f32
      tgl.yield %p : f32
    }
    tgl.write %q, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
}

// -----

// Distances from something else, a divisor that is not the number of terms, other values, and rows that stay in
// registers: left alone.
// CHECK-LABEL: tgl.kernel @others
// CHECK-NOT: tgl.reduce var
tgl.kernel @others(%x: !tgl.tensor<[8, 65536], f32> {tgl.name = "x", tgl.role = "in"},
                   %z: !tgl.tensor<[8, 1000], f32> {tgl.name = "z", tgl.role = "in"},
                   %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"}) {
  %n = arith.constant 6.553600e+04 : f32
  %less = arith.constant 6.553500e+04 : f32
  %short = arith.constant 1.000000e+03 : f32
  tgl.parallel (%i = 0 to 8) {
    %s = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 65536], f32>
      tgl.yield %v : f32
    }
    %m0 = arith.divf %s, %less : f32
    %q0 = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 65536], f32>
      %d = arith.subf %v, %m0 : f32
      %p = arith.mulf %d, %d : f32
      tgl.yield %p : f32
    }
    %m1 = arith.divf %s, %n : f32
    %q1 = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %v = tgl.read %x[%i, 65535 - %j] : !tgl.tensor<[8, 65536], f32>
      %d = arith.subf %v, %m1 : f32
      %p = arith.mulf %d, %d : f32
      tgl.yield %p : f32
    }
    %t = tgl.reduce sum (%j = 0 to 1000) -> f32 {
      %v = tgl.read %z[%i, %j] : !tgl.tensor<[8, 1000], f32>
      tgl.yield %v : f32
    }
    %m2 = arith.divf %t, %short : f32
    %q2 = tgl.reduce sum (%j = 0 to 1000) -> f32 {
      %v = tgl.read %z[%i, %j] : !tgl.tensor<[8, 1000], f32>
      %d = arith.subf %v, %m2 : f32
      %p = arith.mulf %d, %d : f32
      tgl.yield %p : f32
    }
    %a = arith.addf %q0, %q1 : f32
    %b = arith.addf %a, %q2 : f32
    tgl.write %b, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
}
