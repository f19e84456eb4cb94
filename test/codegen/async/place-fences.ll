; Products see what threads have stored to a ring by a fence on the side that the ring names; registers by one of their own.
; RUN: tegula-device-opt --passes=place-fences %s | FileCheck %s

declare i32 @tegula.ring(i32, i32, i32, i32, i32, i1)
declare i32 @tegula.ring.counted(i32, i32, i32, i32, ptr addrspace(3))
declare void @tegula.ring.commit(i32, i32)
declare void @tegula.ring.wait(i32, i32, i32)
declare void @tegula.ring.init(i32)
declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()

; CHECK-LABEL: @users
; CHECK: filler:
; CHECK-NEXT: call void @tegula.ring.commit
; CHECK: user:
; CHECK-NEXT: call void @tegula.ring.wait
; CHECK-NEXT: call void asm sideeffect "fence.proxy.async.shared::cta;"
; CHECK-NEXT: call void @llvm.nvvm.wgmma.fence.sync.aligned()
; CHECK-NEXT: {{.*}}wgmma.mma_async
define void @users(i1 %fills) {
  %r = call i32 @tegula.ring(i32 4, i32 4, i32 1, i32 32, i32 256, i1 false)
  br i1 %fills, label %filler, label %user
filler:
  call void @tegula.ring.commit(i32 %r, i32 0)
  ret void
user:
  call void @tegula.ring.wait(i32 %r, i32 0, i32 0)
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  ret void
}

; CHECK-LABEL: @fillers
; CHECK: filler:
; CHECK-NEXT: call void asm sideeffect "fence.proxy.async.shared::cta;"
; CHECK-NEXT: call void @tegula.ring.commit
; CHECK: user:
; CHECK-NEXT: call void @tegula.ring.wait
; CHECK-NEXT: call void @llvm.nvvm.wgmma.fence.sync.aligned()
define void @fillers(i1 %fills) {
  %r = call i32 @tegula.ring(i32 4, i32 4, i32 1, i32 32, i32 256, i1 true)
  br i1 %fills, label %filler, label %user
filler:
  call void @tegula.ring.commit(i32 %r, i32 0)
  ret void
user:
  call void @tegula.ring.wait(i32 %r, i32 0, i32 0)
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  ret void
}

; Nothing is multiplied: threads see each other's stores by barriers.
; CHECK-LABEL: @ordinary
; CHECK-NOT: fence
; CHECK: ret void
; CHECK-NOT: fence
; CHECK: ret void
define void @ordinary(i1 %fills) {
  %r = call i32 @tegula.ring(i32 4, i32 4, i32 1, i32 32, i32 256, i1 false)
  br i1 %fills, label %filler, label %user
filler:
  call void @tegula.ring.commit(i32 %r, i32 0)
  ret void
user:
  call void @tegula.ring.wait(i32 %r, i32 0, i32 0)
  ret void
}

; Copies in bulk are of the same proxy as products; that their barriers have been made is not.
; CHECK-LABEL: @counted
; CHECK: filler:
; CHECK-NEXT: call void @tegula.ring.init
; CHECK-NEXT: call void asm sideeffect "fence.proxy.async.shared::cta;"
; CHECK: user:
; CHECK-NEXT: call void @tegula.ring.wait
; CHECK-NEXT: call void @llvm.nvvm.wgmma.fence.sync.aligned()
define void @counted(i1 %fills, ptr addrspace(3) %barriers) {
  %r = call i32 @tegula.ring.counted(i32 4, i32 3, i32 32, i32 256, ptr addrspace(3) %barriers)
  br i1 %fills, label %filler, label %user
filler:
  call void @tegula.ring.init(i32 %r)
  ret void
user:
  call void @tegula.ring.wait(i32 %r, i32 0, i32 0)
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  ret void
}

; One for products that follow each other, another where a group has ended.
; CHECK-LABEL: @groups
; CHECK-COUNT-1: wgmma.fence.sync.aligned
; CHECK-COUNT-2: wgmma.mma_async
; CHECK-NEXT: extractvalue
; CHECK-NEXT: call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
; CHECK-NEXT: call void @llvm.nvvm.wgmma.fence.sync.aligned()
; CHECK-NEXT: {{.*}}wgmma.mma_async
define void @groups() {
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  %a = extractvalue { float, float } %p, 0
  %q = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f,0,1"(float %a, float %a)
  %b = extractvalue { float, float } %q, 0
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  %s = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f,0,1"(float %b, float %b)
  ret void
}
