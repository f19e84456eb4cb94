"""What runs leave, and what is made of it.

  store        results.jsonl, which survives a kill at any moment
  outcomes     the record of a judgement from how its process ended
  summary      counts and fast_p
  audits       the flags of an audit, beside another run's records
  baseline     times that were recorded earlier
  times_table  a timed run as text and as Markdown
  trial_table  a trial of several languages as Markdown
  report       a run as one HTML file
  plots        its plots

Start at store.py, then summary.py. May import: rule.
"""
