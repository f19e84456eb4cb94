// RUN: tegula-opt %s --tgl-fuse | FileCheck %s

// p is read by two statements. Once the first of them has moved into the second they read it at one place, and what it is made
// of moves there too, though it costs much: no tensor is left, and nothing is computed twice.
// CHECK-LABEL: tgl.kernel @shared
// CHECK-NOT: tgl.temp
// CHECK: tgl.read %x
// CHECK-COUNT-3: math.log
// CHECK-NOT: math.log
// CHECK: tgl.write %{{.*}}, %y
// CHECK-NOT: tgl.write
tgl.kernel @shared(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %p = tgl.temp "p" : !tgl.tensor<[N], f32>
  %m = tgl.temp "m" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    %a = math.log %v : f32
    %b = math.log %a : f32
    tgl.write %b, %p[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %p[%i] : !tgl.tensor<[N], f32>
    %a = math.log %v : f32
    tgl.write %a, %m[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %p[%i] : !tgl.tensor<[N], f32>
    %w = tgl.read %m[%i] : !tgl.tensor<[N], f32>
    %s = arith.mulf %v, %w : f32
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// Where the places differ, p stays a tensor: its values would be computed twice.
// CHECK-LABEL: tgl.kernel @apart
// CHECK: tgl.temp "p"
tgl.kernel @apart(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %p = tgl.temp "p" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    %a = math.log %v : f32
    tgl.write %a, %p[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %p[%i] : !tgl.tensor<[N], f32>
    %w = tgl.read %p[N - 1 - %i] : !tgl.tensor<[N], f32>
    %s = arith.mulf %v, %w : f32
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}
