"""A session without any framework: a table from memory, a question, the answer and the files that were made.

Needs `pip install .` in the checkout and a model: `OPENAI_API_KEY`, or `OPENAI_BASE_URL` of a local server.
"""

import pandas as pd

from tw_autogen import open_session
from tw_autogen.events import CellStarted, Event


def show(event: Event) -> None:
    """Print each piece of code as it begins to run."""
    if isinstance(event, CellStarted):
        print(f"--- cell {event.cell}\n{event.code}\n---")


def main() -> None:
    loads = pd.DataFrame({"hour": range(24), "load": [30.0] * 20 + [31.0, 90.0, 29.0, 30.0]})

    with open_session(plugins=["anomaly_detection"], handlers=[show]) as session:
        answer = session.ask("In which hour is the load odd?", variables={"loads": loads})
        print(answer.text)
        for artifact in answer.artifacts:
            print("made:", artifact.path)
        print(f"{answer.usage.calls} model calls, {answer.stop}")


if __name__ == "__main__":
    main()
