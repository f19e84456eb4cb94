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

// All of y is written again before it is read: 2*g + r is every row.
// CHECK-LABEL: tgl.kernel @filled
// CHECK-NOT: %zero
// CHECK: tgl.parallel (%g
// CHECK-LABEL: tgl.kernel @half_filled
tgl.kernel @filled(%x: !tgl.tensor<[8], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to 8) {
    tgl.write %zero, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
  tgl.parallel (%g = 0 to 4, %r = 0 to 2, %one = 0 to 1) {
    %v = tgl.read %x[2*%g + %r] : !tgl.tensor<[8], f32>
    tgl.write %v, %y[2*%g + %r + %one] : f32, !tgl.tensor<[8], f32>
  }
}

// Half of it is; then all, but something has read it.
// CHECK: tgl.write %{{.*}}, %y[%i]
// CHECK: tgl.write %{{.*}}, %y[2*%g]
// CHECK: tgl.write %{{.*}}, %z[%i]
// CHECK: tgl.write %{{.*}}, %y[%i]
tgl.kernel @half_filled(%x: !tgl.tensor<[8], f32> {tgl.name = "x", tgl.role = "in"},
                        %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"},
                        %z: !tgl.tensor<[8], f32> {tgl.name = "z", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to 8) {
    tgl.write %zero, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
  tgl.parallel (%g = 0 to 4) {
    %v = tgl.read %x[%g] : !tgl.tensor<[8], f32>
    tgl.write %v, %y[2*%g] : f32, !tgl.tensor<[8], f32>
  }
  tgl.parallel (%i = 0 to 8) {
    %v = tgl.read %y[%i] : !tgl.tensor<[8], f32>
    tgl.write %v, %z[%i] : f32, !tgl.tensor<[8], f32>
  }
  tgl.parallel (%i = 0 to 8) {
    %v = tgl.read %x[%i] : !tgl.tensor<[8], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
}
