"""TaskWeaver in a team of autogen-agentchat, with plan, code and outcome streamed as the host's own events.

Needs `pip install ".[agentchat]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import asyncio
import os
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import Console
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tw_autogen.hosts.agentchat import TaskWeaverAgent

SALES = Path(__file__).with_name("sales.csv")
INFO = {"vision": False, "function_calling": True, "json_output": True, "family": "unknown", "structured_output": False}


async def main() -> None:
    client = OpenAIChatCompletionClient(model=os.environ.get("OPENAI_MODEL", "gpt-4o"), model_info=INFO)
    analyst = TaskWeaverAgent("analyst", client, files=[SALES])
    editor = AssistantAgent(
        "editor",
        client,
        description="Puts an answer into one sentence.",
        system_message="Put the analyst's answer into one friendly sentence.",
    )
    team = RoundRobinGroupChat([analyst, editor], termination_condition=MaxMessageTermination(3))
    await Console(team.run_stream(task="Which region sold most units?"))
    await analyst.close()
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
