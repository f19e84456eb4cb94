// RUN: tegula-opt %s | tegula-opt | FileCheck %s
// Functions of floats that math lacks.

// CHECK-LABEL: tgl.kernel @functions
tgl.kernel @functions(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0] {
  tgl.parallel (%n = 0 to N) {
    %v = tgl.read %x[%n] : !tgl.tensor<[N], f32>
    // CHECK: tgl.erfinv %{{.*}} : f32
    %a = tgl.erfinv %v : f32
    // CHECK: tgl.lgamma %{{.*}} : f32
    %b = tgl.lgamma %a : f32
    // CHECK: tgl.digamma %{{.*}} : f32
    %c = tgl.digamma %b : f32
    tgl.write %c, %y[%n] : f32, !tgl.tensor<[N], f32>
  }
}
