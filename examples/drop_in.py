"""TaskWeaver as one agent in an AutoGen chat: ask about a file, then ask on.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import os
from pathlib import Path

from autogen import ConversableAgent

from tw_autogen import TaskWeaverAgent

SALES = Path(__file__).with_name("sales.csv")


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}
    user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")

    with TaskWeaverAgent("analyst", llm_config=llm_config, files=[SALES]) as analyst:
        result = user.initiate_chat(analyst, message="Which region sold most units, and how many?", max_turns=1)
        print(result.summary)

        # the same conversation, hence the same kernel: the table is still loaded
        result = user.initiate_chat(
            analyst, message="Save its share by month as share.csv.", max_turns=1, clear_history=False
        )
        print(result.summary)


if __name__ == "__main__":
    main()
