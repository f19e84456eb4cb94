"""Benchmarks of others: their files as tasks, and their scores. None of their files are here.

  suite              what an adapter gives
  kernelbench        KernelBench, and what has its form
  flashinfer_bench   FlashInfer-Bench: definitions and workloads
  sol_execbench      SOL-ExecBench: the same, and a tolerance for each workload
  kernelbench_com    kernelbench.com's decks: a reference and its shapes
  backendbench       BackendBench: a folder of operators
  opinfo             samples of operators out of PyTorch
  robust_kbench      robust-kbench: forward and backward, several initialisations
  multikernelbench   MultiKernelBench: modules by category
  tritonbench        TritonBench's T channel: a function and a test that calls it
  definitions        definitions and workloads as modules
  safetensors        tensors that a workload brings
  solutions          programs as solutions with traces, and solutions as modules
  apply              programs swapped in where code calls an operator
  results            what became of a task, and our own score
  table              one report of all suites of a run
  registry           the adapters by name

Start at suite.py, then kernelbench.py. May import: rule, records.
"""
