"""Pictures of games: plain text in `dnfh_env.render.text`."""
