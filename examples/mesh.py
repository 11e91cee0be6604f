"""A mesh: a TaskWeaver whose code calls another TaskWeaver, each with a kernel of its own.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import os
from pathlib import Path

from autogen import ConversableAgent

from tw_autogen import TaskWeaverAgent, agent_plugin

SALES = Path(__file__).with_name("sales.csv")


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}
    user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")

    # the statistician gets a table as a file in its own session, and answers in words
    statistician = TaskWeaverAgent(
        "statistician",
        llm_config=llm_config,
        description="Fits trends to a table of month and units, and says how sure it is.",
        plugins=["anomaly_detection"],
    )
    trend = agent_plugin(statistician, name="fit_trend", parameters={"table": "DataFrame", "question": "str"})

    with statistician, TaskWeaverAgent("lead", llm_config=llm_config, plugins=[trend], files=[SALES]) as lead:
        result = user.initiate_chat(
            lead, message="Sum the units by month, and have a trend fitted to the sums.", max_turns=1
        )
        print("The answer:", result.summary)

    # the two may not call each other in a circle: that would be refused with the chain of callers


if __name__ == "__main__":
    main()
