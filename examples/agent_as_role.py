"""Any agent as a worker of the Planner, beside the CodeInterpreter.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import os
from pathlib import Path

from autogen import ConversableAgent

from tw_autogen import TaskWeaverAgent, agent_role

SALES = Path(__file__).with_name("sales.csv")


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}
    writer = ConversableAgent(
        "writer",
        system_message="You write one friendly paragraph for a newsletter from the numbers you are given.",
        description="Writes a paragraph for the newsletter; give it all numbers that are to stand in it.",
        llm_config=llm_config,
        human_input_mode="NEVER",
    )
    user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")
    roles = ["planner", "code_interpreter", agent_role(writer)]

    with TaskWeaverAgent("newsroom", llm_config=llm_config, roles=roles, files=[SALES]) as newsroom:
        result = user.initiate_chat(
            newsroom, message="Write a paragraph for the newsletter on our best region.", max_turns=1
        )
        print("The answer:", result.summary)


if __name__ == "__main__":
    main()
