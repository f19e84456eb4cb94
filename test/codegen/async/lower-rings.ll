; Stages have two barriers each: at one fillers arrive and a group of users waits, at the other users arrive and fillers wait.
; RUN: tegula-device-opt --passes=lower-rings %s | FileCheck %s

declare i32 @tegula.ring(i32, i32, i32, i32, i32, i1)
declare i32 @tegula.ring.counted(i32, i32, i32, i32, ptr addrspace(3))
declare void @tegula.ring.acquire(i32, i32)
declare void @tegula.ring.commit(i32, i32)
declare void @tegula.ring.wait(i32, i32, i32)
declare void @tegula.ring.release(i32, i32)
declare void @tegula.ring.init(i32)
declare ptr addrspace(3) @tegula.ring.expect(i32, i32, i32)
declare void @tegula.ring.leave(i32, i32)

; Four stages from barrier 4 on, 32 fillers, two groups of 128 users.
; CHECK-LABEL: @named
; CHECK-NOT: tegula.ring
define void @named(i1 %fills, i32 %n, i32 %group) {
  %r = call i32 @tegula.ring(i32 4, i32 4, i32 2, i32 32, i32 256, i1 false)
  br i1 %fills, label %filler, label %user

; CHECK: filler:
; CHECK: [[STAGE:%.*]] = and i32 %n, 3
; CHECK: [[EMPTY:%.*]] = add i32 [[STAGE]], 12
; CHECK: [[ISLATER:%.*]] = icmp sge i32 %n, 4
; CHECK: br i1 [[ISLATER]]
; CHECK: call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 [[EMPTY]], i32 288)
; CHECK: [[FIRST:%.*]] = add i32 {{.*}}, 4
; CHECK: call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 [[FIRST]], i32 160)
; CHECK: [[SECOND:%.*]] = add i32 {{.*}}, 8
; CHECK: call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 [[SECOND]], i32 160)
filler:
  call void @tegula.ring.acquire(i32 %r, i32 %n)
  call void @tegula.ring.commit(i32 %r, i32 %n)
  ret void

; CHECK: user:
; CHECK: [[OWN:%.*]] = mul i32 %group, 4
; CHECK: [[BASE:%.*]] = add i32 [[OWN]], 4
; CHECK: [[FULL:%.*]] = add i32 {{.*}}, [[BASE]]
; CHECK: call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 [[FULL]], i32 160)
; CHECK: [[FREE:%.*]] = add i32 {{.*}}, 12
; CHECK: call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 [[FREE]], i32 288)
user:
  call void @tegula.ring.wait(i32 %r, i32 %n, i32 %group)
  call void @tegula.ring.release(i32 %r, i32 %n)
  ret void
}

; Three stages whose bytes barriers in shared memory count: phase n / 3 of each.
; CHECK-LABEL: @counted
define void @counted(i1 %fills, i32 %n, ptr addrspace(3) %barriers, ptr %to) {
  %r = call i32 @tegula.ring.counted(i32 4, i32 3, i32 32, i32 256, ptr addrspace(3) %barriers)
  br i1 %fills, label %filler, label %user

; CHECK: filler:
; CHECK-COUNT-3: call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) {{.*}}, i32 1)
; CHECK-NOT: mbarrier.init.shared
; CHECK: call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
; CHECK: [[STAGE:%.*]] = urem i32 %n, 3
; CHECK: [[OFFSET:%.*]] = shl i32 [[STAGE]], 3
; CHECK: [[BARRIER:%.*]] = getelementptr inbounds i8, ptr addrspace(3) %barriers, i32 [[OFFSET]]
; CHECK: @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) [[BARRIER]], i32 4096)
; CHECK: store ptr addrspace(3) [[BARRIER]], ptr %to
filler:
  call void @tegula.ring.init(i32 %r)
  %b = call ptr addrspace(3) @tegula.ring.expect(i32 %r, i32 %n, i32 4096)
  store ptr addrspace(3) %b, ptr %to
  ret void

; CHECK: user:
; CHECK: [[PHASE:%.*]] = udiv i32 %n, 3
; CHECK: [[PARITY:%.*]] = and i32 [[PHASE]], 1
; CHECK: look:
; CHECK: [[HASCOME:%.*]] = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) {{.*}}, i32 [[PARITY]])
; CHECK: br i1 [[HASCOME]], label %complete, label %look
user:
  call void @tegula.ring.wait(i32 %r, i32 %n, i32 0)
  ret void
}

; Of a stage that users fill no bytes come: the barrier's phase is over when the filler has told it so.
; CHECK-LABEL: @left
; CHECK: [[LEFT:%.*]] = getelementptr inbounds i8, ptr addrspace(3) %barriers, i32 8
; CHECK: @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) [[LEFT]], i32 0)
; CHECK-NEXT: ret void
define void @left(ptr addrspace(3) %barriers) {
  %r = call i32 @tegula.ring.counted(i32 4, i32 4, i32 32, i32 256, ptr addrspace(3) %barriers)
  call void @tegula.ring.leave(i32 %r, i32 1)
  ret void
}
