// RUN: tegula-opt %s '--tgl-fuse=singletons=true' | FileCheck %s

// Without fusion each statement is a launch, in loops too.
// CHECK-LABEL: tgl.kernel @steps
// CHECK: tgl.for %t = 0 to T {
// CHECK-NEXT: tgl.launch "h" {
// CHECK: tgl.launch "y" {
tgl.kernel @steps(%h: !tgl.tensor<[N], f32> {tgl.name = "h", tgl.role = "inout"},
                  %y: !tgl.tensor<[T, N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0, T = 1 : 0] {
  tgl.for %t = 0 to T {
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %h[%i] : !tgl.tensor<[N], f32>
      %w = arith.addf %v, %v : f32
      tgl.write %w, %h[%i] : f32, !tgl.tensor<[N], f32>
    }
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %h[%i] : !tgl.tensor<[N], f32>
      tgl.write %v, %y[%t, %i] : f32, !tgl.tensor<[T, N], f32>
    }
  }
}
