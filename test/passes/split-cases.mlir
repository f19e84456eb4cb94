// RUN: tegula-opt %s --tgl-split-cases --tgl-simplify-accesses --canonicalize --cse | FileCheck %s

// A pair of a rotary position is read once: both of its elements are computed by one point.
// CHECK-LABEL: @rotate
// CHECK: tgl.parallel (%{{.*}} = 0 to 4, %[[D:.*]] = 0 to 8)
// CHECK-DAG: tgl.read %x[%{{.*}}, %[[D]]] :
// CHECK-DAG: tgl.read %x[%{{.*}}, %[[D]] + 8] :
// CHECK-NOT: tgl.read %x
// CHECK-NOT: select
// CHECK: tgl.write %{{.*}}, %y[%{{.*}}, %[[D]]]
// CHECK: tgl.write %{{.*}}, %y[%{{.*}}, %[[D]] + 8]
tgl.kernel @rotate(%x: !tgl.tensor<[4, 16], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[4, 16], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 8 : i64
  tgl.launch "y" {
    tgl.parallel (%i = 0 to 4, %d = 0 to 16) {
      %0 = arith.index_cast %d : index to i64
      %1 = arith.cmpi slt, %0, %half : i64
      %2 = tgl.read %x[%i, %d + 8] fill %zero : !tgl.tensor<[4, 16], f32>
      %3 = arith.negf %2 : f32
      %4 = tgl.read %x[%i, %d - 8] fill %zero : !tgl.tensor<[4, 16], f32>
      %5 = arith.select %1, %3, %4 : f32
      %6 = tgl.read %x[%i, %d] : !tgl.tensor<[4, 16], f32>
      %7 = arith.addf %5, %6 : f32
      tgl.write %7, %y[%i, %d] : f32, !tgl.tensor<[4, 16], f32>
    }
  }
}

// Five cases are too many, and cases of three points have no vectors.
// CHECK-LABEL: @many
// CHECK: tgl.parallel (%{{.*}} = 0 to 40)
// CHECK: tgl.parallel (%{{.*}} = 0 to 12)
tgl.kernel @many(%x: !tgl.tensor<[40], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[40], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[12], f32> {tgl.name = "z", tgl.role = "out"}) sizes [] {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%d = 0 to 40) {
      %0 = tgl.read %x[%d - 8] fill %zero : !tgl.tensor<[40], f32>
      tgl.write %0, %y[%d] : f32, !tgl.tensor<[40], f32>
    }
  }
  tgl.launch "z" {
    tgl.parallel (%d = 0 to 12) {
      %0 = tgl.read %x[%d - 3] fill %zero : !tgl.tensor<[40], f32>
      tgl.write %0, %z[%d] : f32, !tgl.tensor<[12], f32>
    }
  }
}
