"""TaskWeaver as an AG-UI service over HTTP, and a client that asks, and asks on in the same thread.

Needs `pip install ".[service]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key. With `serve` it only serves, until Ctrl-C.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import httpx
import uvicorn

from tw_autogen import TaskWeaverAgent
from tw_autogen.hosts.conversable import ag_ui_stream

SALES = Path(__file__).with_name("sales.csv")


def ask(client: httpx.Client, thread: str, question: str) -> str:
    """Ask a question over AG-UI; requests of one thread id share a kernel."""
    message = {"id": question, "role": "user", "content": question}
    run = {"threadId": thread, "runId": question, "messages": [message]}
    run.update(tools=[], context=[], state={}, forwardedProps={})
    answer = ""
    with client.stream("POST", "/", json=run, timeout=None) as events:
        events.raise_for_status()
        for line in events.iter_lines():  # other lines are comments that keep the connection
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            answer += event.get("delta", event.get("message", ""))
    return answer


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}
    with TaskWeaverAgent("analyst", llm_config=llm_config, files=[SALES], settings={"session.most_open": 4}) as analyst:
        app = ag_ui_stream(analyst).build_asgi()
        if "serve" in sys.argv:
            uvicorn.run(app, port=8000)
            return
        server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while thread.is_alive() and not server.started:
            time.sleep(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            print("Is it up?", client.get("/healthz").text)
            print(ask(client, "ann", "Which region sold most units, and how many?"))
            print(ask(client, "ann", "Save its share by month as share.csv."))
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
