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

// Sums of a channel's images by parts, a scale of the channel, and nests inside nests: threads side by side go along the
// images, which lie so in memory, however many small tensors are along the channels or the parts.
// CHECK-LABEL: tgl.kernel @parts
// CHECK: tgl.parallel (%c = 0 to 32, %part = 0 to 5) attributes {mapping = "thread,thread"} {
// CHECK: tgl.reduce sum (%n = 2*%part to 2*%part + 2, %i = 0 to 4096) -> f32 attributes {mapping = "loop,vector"}
// CHECK: tgl.parallel (%c = 0 to 32) attributes {mapping = "thread"} {
// CHECK: tgl.parallel (%n = 0 to 10) attributes {mapping = "loop"} {
// CHECK: tgl.parallel (%i = 0 to 4096) attributes {mapping = "vector"} {
tgl.kernel @parts(%x: !tgl.tensor<[10, 32, 4096], f32> {tgl.name = "x", tgl.role = "in"},
                  %g: !tgl.tensor<[32], f32> {tgl.name = "g", tgl.role = "in"},
                  %b: !tgl.tensor<[32], f32> {tgl.name = "b", tgl.role = "in"},
                  %s: !tgl.tensor<[32, 5], f32> {tgl.name = "s", tgl.role = "out"},
                  %t: !tgl.tensor<[32, 5], f32> {tgl.name = "t", tgl.role = "out"},
                  %y: !tgl.tensor<[10, 32, 4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "s" {
    tgl.parallel (%c = 0 to 32, %part = 0 to 5) {
      %r = tgl.reduce sum (%n = 2*%part to 2*%part + 2, %i = 0 to 4096) -> f32 {
        %v = tgl.read %x[%n, %c, %i] : !tgl.tensor<[10, 32, 4096], f32>
        tgl.yield %v : f32
      }
      tgl.write %r, %s[%c, %part] : f32, !tgl.tensor<[32, 5], f32>
      tgl.write %r, %t[%c, %part] : f32, !tgl.tensor<[32, 5], f32>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%c = 0 to 32) {
      tgl.parallel (%n = 0 to 10) {
        tgl.parallel (%i = 0 to 4096) {
          %v = tgl.read %x[%n, %c, %i] : !tgl.tensor<[10, 32, 4096], f32>
          %h = tgl.read %g[%c] : !tgl.tensor<[32], f32>
          %d = tgl.read %b[%c] : !tgl.tensor<[32], f32>
          %p = arith.mulf %v, %h : f32
          %q = arith.addf %p, %d : f32
          tgl.write %q, %y[%n, %c, %i] : f32, !tgl.tensor<[10, 32, 4096], f32>
        }
      }
    }
  }
}
