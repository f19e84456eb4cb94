// RUN: tegula-opt %s '--tgl-verify-phase=phase=simplify' --split-input-file --verify-diagnostics
// RUN: not tegula-opt %s '--tgl-verify-phase=phase=polish' --split-input-file 2>&1 | FileCheck %s

// CHECK: no phase is called 'polish'
// expected-error @below {{a private kernel is left after phase simplify (pass tgl-inline)}}
tgl.kernel private @copy(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "in"},
                         %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "out"}) {
}

// -----

tgl.kernel @index(%x: !tgl.tensor<[N + 1], f32> {tgl.name = "x", tgl.role = "inout"},
                  %n: !tgl.tensor<[N], f32> {tgl.name = "n", tgl.role = "in"}) sizes [N = 1 : 0] {
  tgl.parallel (%i = 0 to N) {
    %zero = arith.constant 0.0 : f32
    %j = tgl.index %i + 1
    // expected-error @below {{an index is not folded into this access after phase simplify (pass tgl-simplify-accesses)}}
    tgl.write %zero, %x[%j] : f32, !tgl.tensor<[N + 1], f32>
  }
}
