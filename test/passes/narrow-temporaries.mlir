// RUN: tegula-opt %s --tgl-narrow-temporaries | FileCheck %s

// Both reads are rounded to bf16, so elements are written as that.
// CHECK-LABEL: tgl.kernel @narrow
// CHECK: tgl.temp "t" : !tgl.tensor<[M], bf16>
// CHECK: tgl.write %{{.*}}, %t[%i] : f32, !tgl.tensor<[M], bf16>
// CHECK-NOT: tgl.convert
// CHECK: %[[V:.*]] = tgl.read %t[%i] : !tgl.tensor<[M], bf16>
// CHECK-NEXT: tgl.write %[[V]], %y[%i]
tgl.kernel @narrow(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"},
                   %z: !tgl.tensor<[M], f32> {tgl.name = "z", tgl.role = "out"}) sizes [M = 0 : 0] {
  %t = tgl.temp "t" : !tgl.tensor<[M], f32>
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %x[%i] : !tgl.tensor<[M], f32>
    tgl.write %v, %t[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %t[%i] : !tgl.tensor<[M], f32>
    %r = tgl.convert %v to bf16 : f32 -> f32
    tgl.write %r, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %t[%i] : !tgl.tensor<[M], f32>
    %r = tgl.convert %v to bf16 : f32 -> f32
    tgl.write %r, %z[%i] : f32, !tgl.tensor<[M], f32>
  }
}

// One read needs all bits; one rounds to another type; elements are added to; a result of the kernel is what it is.
// CHECK-LABEL: tgl.kernel @wide
// CHECK: tgl.temp "a" : !tgl.tensor<[M], f32>
// CHECK: tgl.temp "b" : !tgl.tensor<[M], f32>
// CHECK: tgl.temp "c" : !tgl.tensor<[M], f32>
// CHECK-COUNT-5: tgl.convert
tgl.kernel @wide(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[M], f32> {tgl.name = "z", tgl.role = "out"}) sizes [M = 0 : 0] {
  %a = tgl.temp "a" : !tgl.tensor<[M], f32>
  %b = tgl.temp "b" : !tgl.tensor<[M], f32>
  %c = tgl.temp "c" : !tgl.tensor<[M], f32>
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %x[%i] : !tgl.tensor<[M], f32>
    tgl.write %v, %a[%i] : f32, !tgl.tensor<[M], f32>
    tgl.write %v, %b[%i] : f32, !tgl.tensor<[M], f32>
    tgl.write %v, %c[%i] : f32, !tgl.tensor<[M], f32>
    tgl.write %v, %z[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %x[%i] : !tgl.tensor<[M], f32>
    tgl.write add %v, %c[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%i = 0 to M) {
    %av = tgl.read %a[%i] : !tgl.tensor<[M], f32>
    %ar = tgl.convert %av to bf16 : f32 -> f32
    %as = arith.addf %ar, %av : f32
    %bv = tgl.read %b[%i] : !tgl.tensor<[M], f32>
    %br = tgl.convert %bv to bf16 : f32 -> f32
    %bs = tgl.convert %bv to f16 : f32 -> f32
    %bt = arith.addf %br, %bs : f32
    %cv = tgl.read %c[%i] : !tgl.tensor<[M], f32>
    %cr = tgl.convert %cv to bf16 : f32 -> f32
    %zv = tgl.read %z[%i] : !tgl.tensor<[M], f32>
    %zr = tgl.convert %zv to bf16 : f32 -> f32
    %s1 = arith.addf %as, %bt : f32
    %s2 = arith.addf %s1, %cr : f32
    %s3 = arith.addf %s2, %zr : f32
    tgl.write %s3, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

// What is read of a tensor of f64 is computed with in f64.
// CHECK-LABEL: tgl.kernel @double
// CHECK: tgl.temp "t" : !tgl.tensor<[M], f64>
tgl.kernel @double(%x: !tgl.tensor<[M], f64> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"}) sizes [M = 0 : 0] {
  %t = tgl.temp "t" : !tgl.tensor<[M], f64>
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %x[%i] : !tgl.tensor<[M], f64>
    tgl.write %v, %t[%i] : f64, !tgl.tensor<[M], f64>
  }
  tgl.parallel (%i = 0 to M) {
    %v = tgl.read %t[%i] : !tgl.tensor<[M], f64>
    %r = tgl.convert %v to f32 : f64 -> f32
    tgl.write %r, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}
