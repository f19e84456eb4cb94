"""The same tasks in several languages: what a writer is told, and what an answer is.

  languages  a language's prompt, the ending of its files, the answer in what a model wrote

What teaches Triton and CUDA, and how answers in Python are judged, are the files in the folder pages.
Start at languages.py. May import: model.
"""
