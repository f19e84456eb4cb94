// RUN: tegula-opt %s --tgl-fuse=min-points=512 --split-input-file | FileCheck %s
// RUN: tegula-opt %s --tgl-fuse --split-input-file | FileCheck %s --check-prefix=NARROW

// Sixteen rows of a million elements: on a wide machine their mean is found row by row, and then all elements are
// computed at once. What a row's own values are is known without reading them again.
// CHECK-LABEL: tgl.kernel @rows
// CHECK: tgl.launch
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 16)
// CHECK: %[[SUM:.*]] = tgl.reduce sum
// CHECK: tgl.write %[[SUM]], %mean[%[[N]]]
// CHECK: %[[SQUARES:.*]] = tgl.reduce sum
// CHECK: arith.subf %{{.*}}, %[[SUM]]
// CHECK: tgl.write %[[SQUARES]], %var[%[[N]]]
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 16, %{{.*}} = 0 to 1048576)
// NARROW-LABEL: tgl.kernel @rows
// NARROW: tgl.launch
// NARROW: tgl.parallel (%{{.*}} = 0 to 16)
// NARROW: tgl.parallel (%{{.*}} = 0 to 1048576)
tgl.kernel @rows(%x: !tgl.tensor<[16, 1048576], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[16, 1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  %mean = tgl.temp "mean" : !tgl.tensor<[16], f32>
  %var = tgl.temp "var" : !tgl.tensor<[16], f32>
  tgl.parallel (%n = 0 to 16) {
    %s = tgl.reduce sum (%k = 0 to 1048576) -> f32 {
      %a = tgl.read %x[%n, %k] : !tgl.tensor<[16, 1048576], f32>
      tgl.yield %a : f32
    }
    tgl.write %s, %mean[%n] : f32, !tgl.tensor<[16], f32>
  }
  tgl.parallel (%n = 0 to 16) {
    %s = tgl.reduce sum (%k = 0 to 1048576) -> f32 {
      %a = tgl.read %x[%n, %k] : !tgl.tensor<[16, 1048576], f32>
      %m = tgl.read %mean[%n] : !tgl.tensor<[16], f32>
      %d = arith.subf %a, %m : f32
      %q = arith.mulf %d, %d : f32
      tgl.yield %q : f32
    }
    tgl.write %s, %var[%n] : f32, !tgl.tensor<[16], f32>
  }
  tgl.parallel (%n = 0 to 16, %k = 0 to 1048576) {
    %a = tgl.read %x[%n, %k] : !tgl.tensor<[16, 1048576], f32>
    %m = tgl.read %mean[%n] : !tgl.tensor<[16], f32>
    %v = tgl.read %var[%n] : !tgl.tensor<[16], f32>
    %d = arith.subf %a, %m : f32
    %e = arith.divf %d, %v : f32
    tgl.write %e, %y[%n, %k] : f32, !tgl.tensor<[16, 1048576], f32>
  }
}

// -----

// Short rows stay together, few as they are: a launch would cost more than the wait.
// CHECK-LABEL: tgl.kernel @short
// CHECK: tgl.parallel (%{{.*}} = 0 to 16)
// CHECK: tgl.parallel (%{{.*}} = 0 to 1024)
// CHECK-NOT: tgl.launch
tgl.kernel @short(%x: !tgl.tensor<[16, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[16, 1024], f32> {tgl.name = "y", tgl.role = "out"}) {
  %mean = tgl.temp "mean" : !tgl.tensor<[16], f32>
  tgl.parallel (%n = 0 to 16) {
    %s = tgl.reduce sum (%k = 0 to 1024) -> f32 {
      %a = tgl.read %x[%n, %k] : !tgl.tensor<[16, 1024], f32>
      tgl.yield %a : f32
    }
    tgl.write %s, %mean[%n] : f32, !tgl.tensor<[16], f32>
  }
  tgl.parallel (%n = 0 to 16, %k = 0 to 1024) {
    %a = tgl.read %x[%n, %k] : !tgl.tensor<[16, 1024], f32>
    %m = tgl.read %mean[%n] : !tgl.tensor<[16], f32>
    %d = arith.subf %a, %m : f32
    tgl.write %d, %y[%n, %k] : f32, !tgl.tensor<[16, 1024], f32>
  }
}

// -----

// What is kept with fewer bits is read as it was rounded; another element than the point's own is read.
// CHECK-LABEL: tgl.kernel @rounded
// CHECK: %[[SUM:.*]] = tgl.reduce sum
// CHECK: %[[ROUNDED:.*]] = tgl.convert %[[SUM]] to f16
// CHECK: arith.addf %[[ROUNDED]], %{{.*}}
tgl.kernel @rounded(%x: !tgl.tensor<[16, 1048576], f32> {tgl.name = "x", tgl.role = "in"},
                    %z: !tgl.tensor<[16], f32> {tgl.name = "z", tgl.role = "out"},
                    %y: !tgl.tensor<[16, 1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  %h = tgl.temp "h" : !tgl.tensor<[16], f16>
  tgl.parallel (%n = 0 to 16) {
    %s = tgl.reduce sum (%k = 0 to 1048576) -> f32 {
      %a = tgl.read %x[%n, %k] : !tgl.tensor<[16, 1048576], f32>
      tgl.yield %a : f32
    }
    tgl.write %s, %h[%n] : f32, !tgl.tensor<[16], f16>
  }
  tgl.parallel (%n = 0 to 16) {
    %a = tgl.read %h[%n] : !tgl.tensor<[16], f16>
    %b = tgl.read %x[%n, 0] : !tgl.tensor<[16, 1048576], f32>
    %c = arith.addf %a, %b : f32
    tgl.write %c, %z[%n] : f32, !tgl.tensor<[16], f32>
  }
  tgl.parallel (%n = 0 to 16, %k = 0 to 1048576) {
    %m = tgl.read %h[%n] : !tgl.tensor<[16], f16>
    tgl.write %m, %y[%n, %k] : f32, !tgl.tensor<[16, 1048576], f32>
  }
}

// -----

// What is handed on of a sample is a plane, which no block keeps: with its own axes each statement has points enough.
// CHECK-LABEL: tgl.kernel @planes
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 128, %{{.*}} = 0 to 12600)
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 128, %{{.*}} = 0 to 3149)
// NARROW-LABEL: tgl.kernel @planes
// NARROW: tgl.parallel (%{{.*}} = 0 to 128)
// NARROW: tgl.parallel (%{{.*}} = 0 to 12600)
// NARROW: tgl.parallel (%{{.*}} = 0 to 3149)
// NARROW-NOT: tgl.launch
tgl.kernel @planes(%x: !tgl.tensor<[128, 16, 12600], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[128, 3149], f32> {tgl.name = "y", tgl.role = "out"}) {
  %h = tgl.temp "h" : !tgl.tensor<[128, 12600], f32>
  tgl.parallel (%n = 0 to 128, %p = 0 to 12600) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %v = tgl.read %x[%n, %c, %p] : !tgl.tensor<[128, 16, 12600], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %h[%n, %p] : f32, !tgl.tensor<[128, 12600], f32>
  }
  tgl.parallel (%n = 0 to 128, %q = 0 to 3149) {
    %m = tgl.reduce max (%r = 0 to 6) -> f32 {
      %v = tgl.read %h[%n, 4*%q + %r] : !tgl.tensor<[128, 12600], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%n, %q] : f32, !tgl.tensor<[128, 3149], f32>
  }
}

// -----

// Neighbours in memory are neighbouring points of a nest over both: threads take them, of which 4,096 are too few where
// each would go through thousands of elements. Where there are enough, the columns stay with their threads.
// CHECK-LABEL: tgl.kernel @least
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 16, %{{.*}} = 0 to 256, %{{.*}} = 0 to 256)
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 16, %{{.*}} = 0 to 256)
// NARROW-LABEL: tgl.kernel @least
// NARROW: tgl.parallel (%{{.*}} = 0 to 16, %{{.*}} = 0 to 256)
// NARROW: tgl.parallel (%{{.*}} = 0 to 256)
// NARROW-NOT: tgl.launch
tgl.kernel @least(%x: !tgl.tensor<[16, 8, 256, 256], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[16, 256], f32> {tgl.name = "y", tgl.role = "out"}) {
  %h = tgl.temp "h" : !tgl.tensor<[16, 256, 256], f32>
  tgl.parallel (%n = 0 to 16, %p = 0 to 256, %q = 0 to 256) {
    %s = tgl.reduce min (%c = 0 to 8) -> f32 {
      %v = tgl.read %x[%n, %c, %p, %q] : !tgl.tensor<[16, 8, 256, 256], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %h[%n, %p, %q] : f32, !tgl.tensor<[16, 256, 256], f32>
  }
  tgl.parallel (%n = 0 to 16, %q = 0 to 256) {
    %m = tgl.reduce sum (%p = 0 to 256) -> f32 {
      %v = tgl.read %h[%n, %p, %q] : !tgl.tensor<[16, 256, 256], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%n, %q] : f32, !tgl.tensor<[16, 256], f32>
  }
}

// -----

// CHECK-LABEL: tgl.kernel @least_of_many
// CHECK: tgl.parallel (%{{.*}} = 0 to 512, %{{.*}} = 0 to 256)
// CHECK: tgl.parallel (%{{.*}} = 0 to 256)
// CHECK-NOT: tgl.launch
// NARROW-LABEL: tgl.kernel @least_of_many
tgl.kernel @least_of_many(%x: !tgl.tensor<[512, 8, 256, 256], f32> {tgl.name = "x", tgl.role = "in"},
                          %y: !tgl.tensor<[512, 256], f32> {tgl.name = "y", tgl.role = "out"}) {
  %h = tgl.temp "h" : !tgl.tensor<[512, 256, 256], f32>
  tgl.parallel (%n = 0 to 512, %p = 0 to 256, %q = 0 to 256) {
    %s = tgl.reduce min (%c = 0 to 8) -> f32 {
      %v = tgl.read %x[%n, %c, %p, %q] : !tgl.tensor<[512, 8, 256, 256], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %h[%n, %p, %q] : f32, !tgl.tensor<[512, 256, 256], f32>
  }
  tgl.parallel (%n = 0 to 512, %q = 0 to 256) {
    %m = tgl.reduce sum (%p = 0 to 256) -> f32 {
      %v = tgl.read %h[%n, %p, %q] : !tgl.tensor<[512, 256, 256], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%n, %q] : f32, !tgl.tensor<[512, 256], f32>
  }
}

// -----

// A mean of 120,000 elements and what is made of them stay one nest of 24 points, in which a block keeps its row. Windows
// over what that writes read memory again: they have a launch of their own, with points enough.
// CHECK-LABEL: tgl.kernel @pooled
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 24)
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 24, %{{.*}} = 0 to 60000)
// NARROW-LABEL: tgl.kernel @pooled
// NARROW: tgl.launch
// NARROW-NOT: tgl.launch
tgl.kernel @pooled(%x: !tgl.tensor<[24, 120000], f32> {tgl.name = "x", tgl.role = "in"},
                   %h: !tgl.tensor<[24, 120000], f32> {tgl.name = "h", tgl.role = "out"},
                   %y: !tgl.tensor<[24, 60000], f32> {tgl.name = "y", tgl.role = "out"}) {
  %mean = tgl.temp "mean" : !tgl.tensor<[24], f32>
  tgl.parallel (%c = 0 to 24) {
    %s = tgl.reduce sum (%k = 0 to 120000) -> f32 {
      %a = tgl.read %x[%c, %k] : !tgl.tensor<[24, 120000], f32>
      tgl.yield %a : f32
    }
    tgl.write %s, %mean[%c] : f32, !tgl.tensor<[24], f32>
  }
  tgl.parallel (%c = 0 to 24, %k = 0 to 120000) {
    %a = tgl.read %x[%c, %k] : !tgl.tensor<[24, 120000], f32>
    %m = tgl.read %mean[%c] : !tgl.tensor<[24], f32>
    %d = arith.subf %a, %m : f32
    tgl.write %d, %h[%c, %k] : f32, !tgl.tensor<[24, 120000], f32>
  }
  tgl.parallel (%c = 0 to 24, %p = 0 to 60000) {
    %w = tgl.reduce max (%r = 0 to 2) -> f32 {
      %v = tgl.read %h[%c, 2*%p + %r] : !tgl.tensor<[24, 120000], f32>
      tgl.yield %v : f32
    }
    tgl.write %w, %y[%c, %p] : f32, !tgl.tensor<[24, 60000], f32>
  }
}

// -----

// Sums of 640 neighbours in memory for each of 100 points of a batch, and then one over these points: the first are rows,
// each with a team of threads, not a hundred threads of a block that each go through one.
// CHECK-LABEL: tgl.kernel @rows_inside
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 2048, %{{.*}} = 0 to 100)
// CHECK: tgl.launch
// CHECK: tgl.parallel (%{{.*}} = 0 to 2048)
// NARROW-LABEL: tgl.kernel @rows_inside
// NARROW: tgl.launch
// NARROW-NOT: tgl.launch
tgl.kernel @rows_inside(%x: !tgl.tensor<[2048, 100, 640], f32> {tgl.name = "x", tgl.role = "in"},
                        %h: !tgl.tensor<[2048, 100], f32> {tgl.name = "h", tgl.role = "out"},
                        %y: !tgl.tensor<[2048], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%b = 0 to 2048, %n = 0 to 100) {
    %s = tgl.reduce sum (%j = 0 to 640) -> f32 {
      %a = tgl.read %x[%b, %n, %j] : !tgl.tensor<[2048, 100, 640], f32>
      tgl.yield %a : f32
    }
    tgl.write %s, %h[%b, %n] : f32, !tgl.tensor<[2048, 100], f32>
  }
  tgl.parallel (%b = 0 to 2048) {
    %s = tgl.reduce max (%n = 0 to 100) -> f32 {
      %a = tgl.read %h[%b, %n] : !tgl.tensor<[2048, 100], f32>
      tgl.yield %a : f32
    }
    tgl.write %s, %y[%b] : f32, !tgl.tensor<[2048], f32>
  }
}
