"""Any agent as a function: generated code asks one about each row of a table, side by side, and adds up the answers.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import os

from autogen import ConversableAgent
from pydantic import BaseModel

from tw_autogen import TaskWeaverAgent, agent_plugin

REVIEWS = """product,review
kettle,Boils fast and looks good.
kettle,Leaked on the second day.
toaster,Even toast every morning.
"""


class Opinion(BaseModel):
    """What the reader makes of one review."""

    positive: bool
    reason: str


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}
    reader = ConversableAgent(
        "reader",
        system_message="You judge one product review.",
        description="Reads one product review, and says whether it is positive.",
        llm_config=llm_config,
        human_input_mode="NEVER",
    )
    judge = agent_plugin(reader, name="judge_review", parameters={"review": "str"}, returns=Opinion)
    user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")

    with TaskWeaverAgent("analyst", llm_config=llm_config, plugins=[judge]) as analyst:
        question = f"What share of the reviews of each product is positive?\n\n{REVIEWS}"
        result = user.initiate_chat(analyst, message=question, max_turns=1)
        print("The answer:", result.summary)


if __name__ == "__main__":
    main()
