// RUN: tegula-opt %s -tgl-schedule=target=sm_90a | FileCheck %s
// RUN: tegula-opt %s -tgl-schedule="target=sm_90a without=contraction" | FileCheck %s --check-prefix=GENERAL
// RUN: tegula-opt %s -tgl-schedule | FileCheck %s --check-prefix=GENERAL
// GENERAL-NOT: tile =

// RUN: tegula-opt %s -tgl-schedule="target=sm_90a tensor-tile=128x128-warpgroups" | FileCheck %s --check-prefix=NAMED
// NAMED: tile = {shape = array<i64: 128, 128>, splits = 1 : i64, warpgroups = true, warps = array<i64: 2, 4>}
// RUN: tegula-opt %s -tgl-schedule="target=sm_90a tensor-tile=128x128-warpgroups:stages=3:raster=2" | FileCheck %s --check-prefix=SETTINGS
// SETTINGS: tile = {raster = 2 : i64, shape = array<i64: 128, 128>, splits = 1 : i64, stages = 3 : i64, warpgroups = true

// A large product of f32 fills the device with tiles of 128 x 128, which use the same operands again and again.
// CHECK-LABEL: tgl.kernel @large
// CHECK: strategy "contraction"
// CHECK: tile = {packed = true, shape = array<i64: 128, 128>, splits = 1 : i64, warpgroups = true, warps = array<i64: 2, 4>}
tgl.kernel @large(%a: !tgl.tensor<[4096, 4096], f32> {tgl.name = "a", tgl.role = "in"},
                  %b: !tgl.tensor<[4096, 4096], f32> {tgl.name = "b", tgl.role = "in"},
                  %c: !tgl.tensor<[4096, 4096], f32> {tgl.name = "c", tgl.role = "out"}) {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 4096, %j = 0 to 4096) {
      %s = tgl.reduce sum (%k = 0 to 4096) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[4096, 4096], f32>
        %y = tgl.read %b[%k, %j] : !tgl.tensor<[4096, 4096], f32>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[4096, 4096], f32>
    }
  }
}

// Few results of long sums: blocks share a tile's sums.
// CHECK-LABEL: tgl.kernel @long
// CHECK: splits = {{[2-9][0-9]*|1[0-9]+}} : i64
tgl.kernel @long(%a: !tgl.tensor<[256, 131072], bf16> {tgl.name = "a", tgl.role = "in"},
                 %b: !tgl.tensor<[256, 131072], bf16> {tgl.name = "b", tgl.role = "in"},
                 %c: !tgl.tensor<[256, 256], f32> {tgl.name = "c", tgl.role = "out"}) {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 256, %j = 0 to 256) {
      %s = tgl.reduce sum (%k = 0 to 131072) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[256, 131072], bf16>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[256, 131072], bf16>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[256, 256], f32>
    }
  }
}

// Few rows: the weights, which are large, are read once by several blocks that share a sum, not once for each row.
// CHECK-LABEL: tgl.kernel @few
// CHECK: tile = {shape = array<i64: 16, 128>, splits = 8 : i64, warpgroups = false
tgl.kernel @few(%a: !tgl.tensor<[10, 25088], f32> {tgl.name = "a", tgl.role = "in"},
                %b: !tgl.tensor<[4096, 25088], f32> {tgl.name = "b", tgl.role = "in"},
                %c: !tgl.tensor<[10, 4096], f32> {tgl.name = "c", tgl.role = "out"}) {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 10, %j = 0 to 4096) {
      %s = tgl.reduce sum (%k = 0 to 25088) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[10, 25088], f32>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[4096, 25088], f32>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[10, 4096], f32>
    }
  }
}

// Of small weights that is not worth another launch.
// CHECK-LABEL: tgl.kernel @small
// CHECK-NOT: tile =
tgl.kernel @small(%a: !tgl.tensor<[10, 512], f32> {tgl.name = "a", tgl.role = "in"},
                  %b: !tgl.tensor<[512, 512], f32> {tgl.name = "b", tgl.role = "in"},
                  %c: !tgl.tensor<[10, 512], f32> {tgl.name = "c", tgl.role = "out"}) {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 10, %j = 0 to 512) {
      %s = tgl.reduce sum (%k = 0 to 512) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[10, 512], f32>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[512, 512], f32>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[10, 512], f32>
    }
  }
}

// A matrix times a vector is read once: no tiles. Nor for f64.
// CHECK-LABEL: tgl.kernel @vector
// CHECK-NOT: tile =
tgl.kernel @vector(%a: !tgl.tensor<[4096, 4096], f32> {tgl.name = "a", tgl.role = "in"},
                   %b: !tgl.tensor<[4096, 2], f32> {tgl.name = "b", tgl.role = "in"},
                   %c: !tgl.tensor<[4096, 2], f32> {tgl.name = "c", tgl.role = "out"}) {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 4096, %j = 0 to 2) {
      %s = tgl.reduce sum (%k = 0 to 4096) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[4096, 4096], f32>
        %y = tgl.read %b[%k, %j] : !tgl.tensor<[4096, 2], f32>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[4096, 2], f32>
    }
  }
}
tgl.kernel @double(%a: !tgl.tensor<[M, K], f64> {tgl.name = "a", tgl.role = "in"},
                   %b: !tgl.tensor<[K, N], f64> {tgl.name = "b", tgl.role = "in"},
                   %c: !tgl.tensor<[M, N], f64> {tgl.name = "c", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 1] {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to M, %j = 0 to N) {
      %s = tgl.reduce sum (%k = 0 to K) -> f64 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[M, K], f64>
        %y = tgl.read %b[%k, %j] : !tgl.tensor<[K, N], f64>
        %p = arith.mulf %x, %y fastmath<contract> : f64
        tgl.yield %p : f64
      }
      tgl.write %s, %c[%i, %j] : f64, !tgl.tensor<[M, N], f64>
    }
  }
}

// Rows are a size of which no order may be a function. The class tells how many there are: tiles are narrow, and sums whole; what
// stands behind the product is rounded as it is written.
// CHECK-LABEL: tgl.kernel @few_invariant
// CHECK: tile = {shape = array<i64: 64, 32>, splits = 1 : i64, warpgroups = true
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: fastmath<contract>
// CHECK: tgl.kernel @many_invariant
tgl.kernel @few_invariant(%a: !tgl.tensor<[M, 4096], bf16> {tgl.name = "a", tgl.role = "in"},
                          %b: !tgl.tensor<[4096, 4096], bf16> {tgl.name = "b", tgl.role = "in"},
                          %c: !tgl.tensor<[M, 4096], f32> {tgl.name = "c", tgl.role = "out"})
    sizes [M = 0 : 0] attributes {invariant = ["M"], invariant_classes = {M = 16 : i64}} {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to M, %j = 0 to 4096) {
      %s = tgl.reduce sum (%k = 0 to 4096) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[M, 4096], bf16>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[4096, 4096], bf16>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      %d = arith.addf %s, %s fastmath<contract> : f32
      tgl.write %d, %c[%i, %j] : f32, !tgl.tensor<[M, 4096], f32>
    }
  }
}

// The same instruction for many rows, without a class for as many as are planned.
// CHECK: tile = {shape = array<i64: 128, 256>, splits = 1 : i64, warpgroups = true
tgl.kernel @many_invariant(%a: !tgl.tensor<[M, 4096], bf16> {tgl.name = "a", tgl.role = "in"},
                           %b: !tgl.tensor<[4096, 4096], bf16> {tgl.name = "b", tgl.role = "in"},
                           %c: !tgl.tensor<[M, 4096], f32> {tgl.name = "c", tgl.role = "out"})
    sizes [M = 0 : 0] attributes {invariant = ["M"]} {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to M, %j = 0 to 4096) {
      %s = tgl.reduce sum (%k = 0 to 4096) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[M, 4096], bf16>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[4096, 4096], bf16>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[M, 4096], f32>
    }
  }
}

// Sums of f32 are in parts, a function of the other sizes: few rows give each to a block, many walk them.
// CHECK-LABEL: tgl.kernel @few_parts
// CHECK: tile = {parts = 4 : i64, shape = array<i64: 16, {{[0-9]+}}>, splits = 4 : i64, warpgroups = false
tgl.kernel @few_parts(%a: !tgl.tensor<[M, 4096], f32> {tgl.name = "a", tgl.role = "in"},
                      %b: !tgl.tensor<[4096, 4096], f32> {tgl.name = "b", tgl.role = "in"},
                      %c: !tgl.tensor<[M, 4096], f32> {tgl.name = "c", tgl.role = "out"})
    sizes [M = 0 : 0] attributes {invariant = ["M"], invariant_classes = {M = 16 : i64}} {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to M, %j = 0 to 4096) {
      %s = tgl.reduce sum (%k = 0 to 4096) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[M, 4096], f32>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[4096, 4096], f32>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[M, 4096], f32>
    }
  }
}

// CHECK-LABEL: tgl.kernel @many_parts
// CHECK: tile = {parts = 4 : i64, shape = array<i64: 128, {{[0-9]+}}>, splits = 1 : i64, warpgroups = false
tgl.kernel @many_parts(%a: !tgl.tensor<[M, 4096], f32> {tgl.name = "a", tgl.role = "in"},
                       %b: !tgl.tensor<[4096, 4096], f32> {tgl.name = "b", tgl.role = "in"},
                       %c: !tgl.tensor<[M, 4096], f32> {tgl.name = "c", tgl.role = "out"})
    sizes [M = 0 : 0] attributes {invariant = ["M"], invariant_classes = {M = 4096 : i64}} {
  tgl.launch "c" {
    tgl.parallel (%i = 0 to M, %j = 0 to 4096) {
      %s = tgl.reduce sum (%k = 0 to 4096) -> f32 {
        %x = tgl.read %a[%i, %k] : !tgl.tensor<[M, 4096], f32>
        %y = tgl.read %b[%j, %k] : !tgl.tensor<[4096, 4096], f32>
        %p = arith.mulf %x, %y fastmath<contract> : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[M, 4096], f32>
    }
  }
}
