"""Two chats with one agent at the same time: each has a session of its own, and the event loop stays free.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import asyncio
import os
from pathlib import Path

from autogen import ConversableAgent

from tw_autogen import TaskWeaverAgent

SALES = Path(__file__).with_name("sales.csv")
QUESTIONS = {"ann": "Which region sold most units in all?", "bob": "In which month were most units sold?"}


async def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}

    with TaskWeaverAgent("analyst", llm_config=llm_config, files=[SALES], silent=True) as analyst:

        async def ask(name: str, question: str) -> None:
            person = ConversableAgent(name, llm_config=False, human_input_mode="NEVER")
            result = await person.a_initiate_chat(analyst, message=question, max_turns=1, silent=True)
            print(f"{name}: {result.summary}")

        chats = asyncio.gather(*(ask(name, question) for name, question in QUESTIONS.items()))
        while not chats.done():  # anything else can run meanwhile
            await asyncio.sleep(0.1)
        await chats


if __name__ == "__main__":
    asyncio.run(main())
