// What passes make of the kernel of a tile loop of few rows: form-tile-loops.mlir has it.

// RUN: tegula-opt %S/form-tile-loops.mlir --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles,tile-assign-layouts))' \
// RUN:   | FileCheck %s --check-prefix=LAYOUTS
// One warp has the rows; keys and values are in shared memory, powers stay in registers. All of a turn is copied before its
// products, what the loop does not change before it.
// LAYOUTS: tile.kernel "acc" {{.*}} attributes {threads = 32 : i64} {
// LAYOUTS-DAG: %[[Q:.*]] = tile.alloc : !tile.shared<16x64xbf16, k_major>
// LAYOUTS-DAG: %[[K:.*]] = tile.alloc : !tile.shared<64x64xbf16, k_major>
// LAYOUTS-DAG: %[[V:.*]] = tile.alloc : !tile.shared<64x64xbf16, mn_major>
// LAYOUTS: tile.copy registers {{.*}} to %[[Q]]
// LAYOUTS: tile.for
// LAYOUTS: tile.barrier
// LAYOUTS-NEXT: tile.copy registers {{.*}} to %[[K]]
// LAYOUTS: tile.copy registers {{.*}} to %[[V]]
// LAYOUTS: tile.barrier
// LAYOUTS: tile.mma %[[Q]], %[[K]], %{{.*}} : !tile.shared<16x64xbf16, k_major>, !tile.shared<64x64xbf16, k_major>, !tile.tile<16x64xf32, #tile.mma<1x1>>
// LAYOUTS-NOT: tile.barrier
// LAYOUTS: %[[P:.*]] = tile.operand {{.*}} -> !tile.tile<16x64xbf16, #tile.mma<1x1>>
// LAYOUTS: tile.mma %[[P]], %[[V]], %{{.*}} : !tile.tile<16x64xbf16, #tile.mma<1x1>>, !tile.shared<64x64xbf16, mn_major>, !tile.tile<16x64xf32, #tile.mma<1x1>>

// RUN: tegula-opt %S/form-tile-loops.mlir \
// RUN:     --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles,tile-assign-layouts,tile-choose-copies))' \
// RUN:   | FileCheck %s --check-prefix=COPIES
// Pages are copied asynchronously: what finds them is the same along a line.
// COPIES: tile.copy cp_async
// COPIES: tile.copy cp_async (%t in %{{.*}}, %e in %{{.*}})
// COPIES: %[[PAGE:.*]] = tgl.read %table[%b, %t floordiv 16]
// COPIES: tgl.read %k[%{{.*}}, %t - 16*(%t floordiv 16), %e] if %{{.*}} checked
// COPIES: tile.copy cp_async (%d in %{{.*}}, %t in %{{.*}})
// COPIES-NOT: tile.copy registers

// RUN: tegula-opt %S/form-tile-loops.mlir \
// RUN:     --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles,tile-assign-layouts,tile-choose-copies,tile-pipeline,tile-allocate-shared))' \
// RUN:   | FileCheck %s --check-prefix=PIPELINE
// Both operands have rings; a turn has one barrier.
// PIPELINE-DAG: tile.alloc at {{.*}} : !tile.ring<3, 64x64xbf16, mn_major>
// PIPELINE-DAG: tile.alloc at {{.*}} : !tile.ring<3, 64x64xbf16, k_major>
// PIPELINE: tile.for
// PIPELINE: tile.await
// PIPELINE-NEXT: tile.barrier
// PIPELINE-NOT: tile.barrier
// PIPELINE: tile.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : !tile.tile<16xf32
