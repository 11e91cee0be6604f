"""Planner and CodeInterpreter as members of one's own group; the board they share is printed between turns.

Needs `pip install ".[autogen]"` in the checkout and a model: `OPENAI_API_KEY`; a local server's
`OPENAI_BASE_URL` as well, with any word as key.
"""

import os
from pathlib import Path

from autogen import ConversableAgent, GroupChat, GroupChatManager

from tw_autogen import CodeInterpreterAgent, PlannerAgent, SharedSession, route_by_post

SALES = Path(__file__).with_name("sales.csv")


def main() -> None:
    llm_config = {"config_list": [{"model": os.environ.get("OPENAI_MODEL", "gpt-4o")}]}

    with SharedSession(files=[SALES]) as shared:
        planner = PlannerAgent(llm_config=llm_config, session=shared)
        coder = CodeInterpreterAgent(llm_config=llm_config, session=shared)
        critic = ConversableAgent(  # any agent of the group is the Planner's worker
            "critic",
            system_message="You look for what is wrong with a number. Answer in one sentence.",
            description="Says whether a number is plausible; tell it how the number was made.",
            llm_config=llm_config,
            human_input_mode="NEVER",
        )
        user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")

        def next_speaker(last_speaker: ConversableAgent, group: GroupChat) -> ConversableAgent | None:
            for role, bulletin in shared.board.items():
                print(f"[board, pinned up by {role}]\n{bulletin}\n")
            return route_by_post(last_speaker, group)

        group = GroupChat(
            agents=[user, planner, coder, critic], messages=[], max_round=12, speaker_selection_method=next_speaker
        )
        manager = GroupChatManager(group, llm_config=False)
        user.initiate_chat(manager, message="How many units were sold a month? Have the critic look at it.")
        print("The answer:", group.messages[-1]["content"])


if __name__ == "__main__":
    main()
