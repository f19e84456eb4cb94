"""A service whose judge takes two milliseconds: what test_serve.py kills and starts again.

    serve_stub.py FOLDER [MOST_WAITING [EACH_MINUTE]]

Prints its port. The judge's message is new with each call, so that an answer that was given twice shows. A program
`hold` is never done; in the next process that judges it, it is. One that begins with a brace is itself the record. The salt
begins the message.
"""
import json
import os
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))
from tegula_eval.service import guard, serve  # noqa: E402

for name in ("HEADERS_S", "BODY_S", "UNREAD_S"):  # those of the service are long for a test
    setattr(guard, name, float(os.environ.get(name, getattr(guard, name))))


def judge(submission):
    time.sleep(0.002)
    held = Path(sys.argv[1]) / f"held-{submission['salt']}"
    if submission["program"] == "hold" and not held.exists():
        held.touch()
        time.sleep(1e6)
    if submission["program"] == "raise":
        raise ValueError("a defect")
    if submission["program"].startswith("{"):  # what a task's process forges
        return json.loads(submission["program"])
    return {"outcome": "right", "reason": "", "message": f"{submission['salt']} {uuid.uuid4().hex}", "cases": [], "seconds": 0.002}


def main():
    folder, most_waiting, each_minute = [*sys.argv[1:], *["10000", "1000000"][len(sys.argv) - 2:]][:3]
    service = serve.Service(Path(folder), judge, 2, int(most_waiting))
    place = serve.listen("127.0.0.1", 0)
    server = serve.make_server(serve.make_app(service, "token", int(each_minute)), service)
    print(place.getsockname()[1], flush=True)
    server.run([place])


if __name__ == "__main__":
    main()
