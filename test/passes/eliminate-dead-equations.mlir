// RUN: tegula-opt %s --tgl-eliminate-dead-equations | FileCheck %s

// Nobody reads g, hence nobody needs h.
// CHECK-LABEL: tgl.kernel @dead
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel
// CHECK-NOT: tgl.parallel
tgl.kernel @dead(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  %g = tgl.temp "g" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %h[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %h[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %g[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// Of two rows sorted together one is read: both stay.
// CHECK-LABEL: tgl.kernel @sorted
// CHECK: tgl.temp "v"
// CHECK: tgl.temp "p"
// CHECK: tgl.sort
tgl.kernel @sorted(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[N], i64> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %v = tgl.temp "v" : !tgl.tensor<[N], f32>
  %p = tgl.temp "p" : !tgl.tensor<[N], i64>
  tgl.parallel (%i = 0 to N) {
    %a = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    tgl.write %a, %v[%i] : f32, !tgl.tensor<[N], f32>
    %b = arith.index_cast %i : index to i64
    tgl.write %b, %p[%i] : i64, !tgl.tensor<[N], i64>
  }
  tgl.parallel () {
    tgl.sort %v, %p[] : !tgl.tensor<[N], f32>, !tgl.tensor<[N], i64>
  }
  tgl.parallel (%i = 0 to N) {
    %a = tgl.read %p[%i] : !tgl.tensor<[N], i64>
    tgl.write %a, %y[%i] : i64, !tgl.tensor<[N], i64>
  }
}
