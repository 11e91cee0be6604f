"""TaskWeaver's Planner and CodeInterpreter as AutoGen agents, with plugins, a stateful kernel and a shared board."""
