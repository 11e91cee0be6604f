"""TaskWeaver's plugins as tools of an ordinary AutoGen agent, and our kernel as its code executor.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import os
from pathlib import Path

from autogen import ConversableAgent

from tw_autogen import KernelCodeExecutor, register_plugins

SALES = Path(__file__).with_name("sales.csv")


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}
    assistant = ConversableAgent(
        "assistant",
        system_message="Use the tools. Files lie in the working folder. End your last message with TERMINATE.",
        llm_config=llm_config,
        human_input_mode="NEVER",
    )
    with KernelCodeExecutor(files=[SALES]) as executor:
        user = ConversableAgent(
            "user",
            llm_config=False,
            human_input_mode="NEVER",
            code_execution_config={"executor": executor},
            is_termination_msg=lambda message: "TERMINATE" in (message.get("content") or ""),
        )
        with register_plugins(assistant, user, ["anomaly_detection"], folder=executor.work_dir):
            result = user.initiate_chat(
                assistant, message="Is any month in sales.csv odd? Save a chart of it.", max_turns=6
            )
            print("The answer:", result.summary)


if __name__ == "__main__":
    main()
