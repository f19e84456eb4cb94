// RUN: tegula-opt %s --tgl-fuse=min-points=512 --split-input-file | FileCheck %s

// What is written at the elements of a row that a sum goes through joins the row's nest: they are read once.
// CHECK-LABEL: tgl.kernel @beside
// CHECK-COUNT-1: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096) {
// CHECK-NEXT: tgl.parallel (%{{.*}} = 0 to 1024) {
// CHECK: tgl.write %{{.*}}, %s
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 1024)
// CHECK-NOT: tgl.launch
tgl.kernel @beside(%x: !tgl.tensor<[4096, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[1024], f32> {tgl.name = "w", tgl.role = "in"},
                   %s: !tgl.tensor<[4096, 1024], f32> {tgl.name = "s", tgl.role = "out"},
                   %y: !tgl.tensor<[4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 4096, %j = 0 to 1024) {
    %a = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 1024], f32>
    %b = tgl.read %w[%j] : !tgl.tensor<[1024], f32>
    %c = arith.mulf %a, %b : f32
    tgl.write %c, %s[%i, %j] : f32, !tgl.tensor<[4096, 1024], f32>
  }
  tgl.parallel (%i = 0 to 4096) {
    %m = tgl.reduce sum (%j = 0 to 1024) -> f32 {
      %a = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 1024], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %y[%i] : f32, !tgl.tensor<[4096], f32>
  }
}

// -----

// It stays a statement of its own where it reads another large tensor, whose elements the row's block would wait for too,
// CHECK-LABEL: tgl.kernel @more
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096, %{{.*}} = 0 to 1024)
// CHECK: tgl.launch
tgl.kernel @more(%x: !tgl.tensor<[4096, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                 %z: !tgl.tensor<[4096, 1024], f32> {tgl.name = "z", tgl.role = "in"},
                 %s: !tgl.tensor<[4096, 1024], f32> {tgl.name = "s", tgl.role = "out"},
                 %y: !tgl.tensor<[4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 4096, %j = 0 to 1024) {
    %a = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 1024], f32>
    %b = tgl.read %z[%i, %j] : !tgl.tensor<[4096, 1024], f32>
    %c = arith.mulf %a, %b : f32
    tgl.write %c, %s[%i, %j] : f32, !tgl.tensor<[4096, 1024], f32>
  }
  tgl.parallel (%i = 0 to 4096) {
    %m = tgl.reduce sum (%j = 0 to 1024) -> f32 {
      %a = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 1024], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %y[%i] : f32, !tgl.tensor<[4096], f32>
  }
}

// -----

// and where the sum goes through a column.
// CHECK-LABEL: tgl.kernel @column
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 1024, %{{.*}} = 0 to 4096)
// CHECK: tgl.launch
tgl.kernel @column(%x: !tgl.tensor<[1024, 4096], f32> {tgl.name = "x", tgl.role = "in"},
                   %s: !tgl.tensor<[1024, 4096], f32> {tgl.name = "s", tgl.role = "out"},
                   %y: !tgl.tensor<[4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%j = 0 to 1024, %i = 0 to 4096) {
    %a = tgl.read %x[%j, %i] : !tgl.tensor<[1024, 4096], f32>
    %c = arith.mulf %a, %a : f32
    tgl.write %c, %s[%j, %i] : f32, !tgl.tensor<[1024, 4096], f32>
  }
  tgl.parallel (%i = 0 to 4096) {
    %m = tgl.reduce sum (%j = 0 to 1024) -> f32 {
      %a = tgl.read %x[%j, %i] : !tgl.tensor<[1024, 4096], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %y[%i] : f32, !tgl.tensor<[4096], f32>
  }
}
