// RUN: tegula-opt %s --tgl-inline --split-input-file --verify-diagnostics

tgl.kernel private @loop(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "inout"}) { // expected-error {{kernel calls itself}}
  tgl.call @loop(%a) : !tgl.tensor<[N], f32>
}
tgl.kernel @entry(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "inout"}) sizes [N = 0 : 0] {
  tgl.call @loop(%x) : !tgl.tensor<[N], f32>
}
