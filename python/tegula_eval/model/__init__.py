"""A model that writes programs.

  conversation  what is said about a task, turn by turn
  endpoint      who answers: an endpoint that speaks OpenAI's protocol, or a record of answers
  answers       the program in an answer

Start at conversation.py. May import: program.
"""
