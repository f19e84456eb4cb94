"""Judging over HTTP.

  serve        the server: its requests, and the threads that work off the queue
  schemas      bodies of requests and answers
  submissions  the queue, in one SQLite file
  guard        who may ask, how much, and for how long
  metrics      counters that Prometheus reads
  judging      submissions judged as `kernelbench` judges programs; `tegula mcp` uses it too

The client is tegula_eval/client.py. Start at serve.py. May import: program, records, workers.
"""
