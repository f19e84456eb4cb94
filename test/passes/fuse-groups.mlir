// RUN: tegula-opt %s --tgl-fuse=min-points=512 --split-input-file | FileCheck %s

// Scales of groups of a row stay in the row's nest: parts of a warp reduce a group each. A scale is a value of its
// group, written beside what is made with it.
// CHECK-LABEL: tgl.kernel @scales
// CHECK-COUNT-1: tgl.launch
// CHECK: tgl.parallel (%[[I:.*]] = 0 to 4096) {
// CHECK-NEXT: %[[V:.*]] = tgl.reduce sum
// CHECK: tgl.parallel (%[[G:.*]] = 0 to 56) {
// CHECK-NEXT: %[[A:.*]] = tgl.reduce max (%{{.*}} = 0 to 128)
// CHECK: arith.mulf %{{.*}}, %[[V]]
// CHECK: tgl.parallel (%{{.*}} = 0 to 128) {
// CHECK: arith.divf %{{.*}}, %[[A]]
// CHECK: tgl.write %[[A]], %scale[%[[I]], %[[G]]]
// CHECK-NOT: tgl.launch
tgl.kernel @scales(%x: !tgl.tensor<[4096, 7168], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[4096, 7168], f32> {tgl.name = "y", tgl.role = "out"},
                   %scale: !tgl.tensor<[4096, 56], f32> {tgl.name = "scale", tgl.role = "out"}) {
  %v = tgl.temp "v" : !tgl.tensor<[4096], f32>
  %a = tgl.temp "a" : !tgl.tensor<[4096, 56], f32>
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce sum (%j = 0 to 7168) -> f32 {
      %e = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 7168], f32>
      tgl.yield %e : f32
    }
    tgl.write %s, %v[%i] : f32, !tgl.tensor<[4096], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 56) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %e = tgl.read %x[%i, 128*%g + %j] : !tgl.tensor<[4096, 7168], f32>
      %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
      %p = arith.mulf %e, %n : f32
      tgl.yield %p : f32
    }
    tgl.write %m, %a[%i, %g] : f32, !tgl.tensor<[4096, 56], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 56, %j = 0 to 128) {
    %e = tgl.read %x[%i, 128*%g + %j] : !tgl.tensor<[4096, 7168], f32>
    %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
    %p = arith.mulf %e, %n : f32
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 56], f32>
    %q = arith.divf %p, %m : f32
    tgl.write %q, %y[%i, 128*%g + %j] : f32, !tgl.tensor<[4096, 7168], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 56) {
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 56], f32>
    tgl.write %m, %scale[%i, %g] : f32, !tgl.tensor<[4096, 56], f32>
  }
}

// -----

// The other way round: the row's maximum is that of its groups' sums.
// CHECK-LABEL: tgl.kernel @after
// CHECK-COUNT-1: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096) {
// CHECK: tgl.parallel (%{{.*}} = 0 to 16) {
// CHECK-NEXT: tgl.reduce sum
// CHECK: tgl.reduce max (%{{.*}} = 0 to 16)
// CHECK-NOT: tgl.launch
tgl.kernel @after(%x: !tgl.tensor<[4096, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  %a = tgl.temp "a" : !tgl.tensor<[4096, 16], f32>
  tgl.parallel (%i = 0 to 4096, %g = 0 to 16) {
    %m = tgl.reduce sum (%j = 0 to 64) -> f32 {
      %e = tgl.read %x[%i, 64*%g + %j] : !tgl.tensor<[4096, 1024], f32>
      tgl.yield %e : f32
    }
    tgl.write %m, %a[%i, %g] : f32, !tgl.tensor<[4096, 16], f32>
  }
  tgl.parallel (%i = 0 to 4096) {
    %m = tgl.reduce max (%g = 0 to 16) -> f32 {
      %e = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 16], f32>
      tgl.yield %e : f32
    }
    tgl.write %m, %y[%i] : f32, !tgl.tensor<[4096], f32>
  }
}

// -----

// Groups of which memory runs across are statements of their own.
// CHECK-LABEL: tgl.kernel @apart
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096) {
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096, %{{.*}} = 0 to 56)
tgl.kernel @apart(%x: !tgl.tensor<[4096, 7168], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[4096, 7168], f32> {tgl.name = "y", tgl.role = "out"},
                   %scale: !tgl.tensor<[4096, 56], f32> {tgl.name = "scale", tgl.role = "out"}) {
  %v = tgl.temp "v" : !tgl.tensor<[4096], f32>
  %a = tgl.temp "a" : !tgl.tensor<[4096, 56], f32>
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce sum (%j = 0 to 7168) -> f32 {
      %e = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 7168], f32>
      tgl.yield %e : f32
    }
    tgl.write %s, %v[%i] : f32, !tgl.tensor<[4096], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 56) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %e = tgl.read %x[%i, %g + 56*%j] : !tgl.tensor<[4096, 7168], f32>
      %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
      %p = arith.mulf %e, %n : f32
      tgl.yield %p : f32
    }
    tgl.write %m, %a[%i, %g] : f32, !tgl.tensor<[4096, 56], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 56, %j = 0 to 128) {
    %e = tgl.read %x[%i, %g + 56*%j] : !tgl.tensor<[4096, 7168], f32>
    %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
    %p = arith.mulf %e, %n : f32
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 56], f32>
    %q = arith.divf %p, %m : f32
    tgl.write %q, %y[%i, %g + 56*%j] : f32, !tgl.tensor<[4096, 7168], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 56) {
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 56], f32>
    tgl.write %m, %scale[%i, %g] : f32, !tgl.tensor<[4096, 56], f32>
  }
}

// -----

// So are groups that a block takes as well,
// CHECK-LABEL: tgl.kernel @longer
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096) {
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096, %{{.*}} = 0 to 48)
tgl.kernel @longer(%x: !tgl.tensor<[4096, 30720], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[4096, 30720], f32> {tgl.name = "y", tgl.role = "out"},
                   %scale: !tgl.tensor<[4096, 48], f32> {tgl.name = "scale", tgl.role = "out"}) {
  %v = tgl.temp "v" : !tgl.tensor<[4096], f32>
  %a = tgl.temp "a" : !tgl.tensor<[4096, 48], f32>
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce sum (%j = 0 to 30720) -> f32 {
      %e = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 30720], f32>
      tgl.yield %e : f32
    }
    tgl.write %s, %v[%i] : f32, !tgl.tensor<[4096], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 48) {
    %m = tgl.reduce max (%j = 0 to 640) -> f32 {
      %e = tgl.read %x[%i, 640*%g + %j] : !tgl.tensor<[4096, 30720], f32>
      %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
      %p = arith.mulf %e, %n : f32
      tgl.yield %p : f32
    }
    tgl.write %m, %a[%i, %g] : f32, !tgl.tensor<[4096, 48], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 8, %j = 0 to 640) {
    %e = tgl.read %x[%i, 640*%g + %j] : !tgl.tensor<[4096, 30720], f32>
    %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
    %p = arith.mulf %e, %n : f32
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 48], f32>
    %q = arith.divf %p, %m : f32
    tgl.write %q, %y[%i, 640*%g + %j] : f32, !tgl.tensor<[4096, 30720], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 48) {
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 48], f32>
    tgl.write %m, %scale[%i, %g] : f32, !tgl.tensor<[4096, 48], f32>
  }
}

// -----

// and those of rows that no block keeps in registers.
// CHECK-LABEL: tgl.kernel @far
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096) {
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 4096, %{{.*}} = 0 to 512)
tgl.kernel @far(%x: !tgl.tensor<[4096, 65536], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[4096, 65536], f32> {tgl.name = "y", tgl.role = "out"},
                   %scale: !tgl.tensor<[4096, 512], f32> {tgl.name = "scale", tgl.role = "out"}) {
  %v = tgl.temp "v" : !tgl.tensor<[4096], f32>
  %a = tgl.temp "a" : !tgl.tensor<[4096, 512], f32>
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce sum (%j = 0 to 65536) -> f32 {
      %e = tgl.read %x[%i, %j] : !tgl.tensor<[4096, 65536], f32>
      tgl.yield %e : f32
    }
    tgl.write %s, %v[%i] : f32, !tgl.tensor<[4096], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 512) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %e = tgl.read %x[%i, 128*%g + %j] : !tgl.tensor<[4096, 65536], f32>
      %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
      %p = arith.mulf %e, %n : f32
      tgl.yield %p : f32
    }
    tgl.write %m, %a[%i, %g] : f32, !tgl.tensor<[4096, 512], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 512, %j = 0 to 128) {
    %e = tgl.read %x[%i, 128*%g + %j] : !tgl.tensor<[4096, 65536], f32>
    %n = tgl.read %v[%i] : !tgl.tensor<[4096], f32>
    %p = arith.mulf %e, %n : f32
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 512], f32>
    %q = arith.divf %p, %m : f32
    tgl.write %q, %y[%i, 128*%g + %j] : f32, !tgl.tensor<[4096, 65536], f32>
  }
  tgl.parallel (%i = 0 to 4096, %g = 0 to 512) {
    %m = tgl.read %a[%i, %g] : !tgl.tensor<[4096, 512], f32>
    tgl.write %m, %scale[%i, %g] : f32, !tgl.tensor<[4096, 512], f32>
  }
}
