// RUN: tegula-opt %s --tgl-schedule | FileCheck %s

// Axes follow the dims of the result; the contiguous one is in vectors. A row reduction has its own.
// CHECK-LABEL: tgl.kernel @rows
// CHECK: tgl.launch "y" strategy "general" {
// CHECK: tgl.parallel (%n = 0 to N, %c = 0 to C) attributes {mapping = "thread,thread"} {
// CHECK: tgl.reduce sum (%k = 0 to W) -> f32 attributes {mapping = "vector"}
// CHECK: tgl.parallel (%h = 0 to W) attributes {mapping = "vector"} {
tgl.kernel @rows(%x: !tgl.tensor<[N, C, W], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[N, C, W], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0, C = 0 : 1, W = 0 : 2] {
  tgl.launch "y" {
    tgl.parallel (%c = 0 to C, %n = 0 to N) {
      %s = tgl.reduce sum (%k = 0 to W) -> f32 {
        %v = tgl.read %x[%n, %c, %k] : !tgl.tensor<[N, C, W], f32>
        tgl.yield %v : f32
      }
      tgl.parallel (%h = 0 to W) {
        %v = tgl.read %x[%n, %c, %h] : !tgl.tensor<[N, C, W], f32>
        %d = arith.subf %v, %s : f32
        tgl.write %d, %y[%n, %c, %h] : f32, !tgl.tensor<[N, C, W], f32>
      }
    }
  }
}

// Sums of columns run side by side, one in each lane.
// CHECK-LABEL: tgl.kernel @columns
// CHECK: tgl.parallel (%j = 0 to N) attributes {mapping = "vector"} {
// CHECK: tgl.reduce sum (%i = 0 to M) -> f32 attributes {mapping = "loop"}
tgl.kernel @columns(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.launch "y" {
    tgl.parallel (%j = 0 to N) {
      %s = tgl.reduce sum (%i = 0 to M) -> f32 {
        %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %y[%j] : f32, !tgl.tensor<[N], f32>
    }
  }
}

// A bound that uses another axis keeps the order.
// CHECK-LABEL: tgl.kernel @bounds
// CHECK: tgl.parallel (%j = 0 to N, %i = 0 to %j + 1) attributes {mapping = "
tgl.kernel @bounds(%y: !tgl.tensor<[N, N], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [N = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel (%j = 0 to N, %i = 0 to %j + 1) {
      %zero = arith.constant 0.0 : f32
      tgl.write %zero, %y[%i, %j] : f32, !tgl.tensor<[N, N], f32>
    }
  }
}
