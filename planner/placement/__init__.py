"""THE PLACEMENT AS GIVEN: what people have (a plan, ranks on GPUs, an engine's command, a scheduler's file), and its judgement."""
