"""A service whose judge takes two milliseconds: what test_serve.py kills and starts again.

    serve_stub.py FOLDER [MOST_WAITING [EACH_MINUTE]]

Prints its port. The judge's message is new with each call, so that an answer that was given twice shows. A program
`hold` is never done; in the next process that judges it, it is.
"""
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))
import uvicorn  # noqa: E402

from tegula_eval import serve  # noqa: E402


def judge(submission):
    time.sleep(0.002)
    held = Path(sys.argv[1]) / f"held-{submission['salt']}"
    if submission["program"] == "hold" and not held.exists():
        held.touch()
        time.sleep(1e6)
    if submission["program"] == "raise":
        raise ValueError("a defect")
    return {"outcome": "right", "reason": "", "message": uuid.uuid4().hex, "cases": [], "seconds": 0.002}


def main():
    folder, most_waiting, each_minute = [*sys.argv[1:], *["10000", "1000000"][len(sys.argv) - 2:]][:3]
    service = serve.Service(Path(folder), judge, 2, int(most_waiting))
    server = uvicorn.Server(uvicorn.Config(serve.make_app(service, "token", int(each_minute)), port=0,
                                           log_level="error"))
    socket = server.config.bind_socket()
    socket.listen(2048)
    print(socket.getsockname()[1], flush=True)
    server.run([socket])


if __name__ == "__main__":
    main()
