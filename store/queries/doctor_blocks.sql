-- Reads every value of every table, so that a damaged block shows itself as an error.
          select 'store_info' as what, bit_xor(hash(t)) as sum from store_info t
union all select 'run', bit_xor(hash(t)) from run t
union all select 'step_run', bit_xor(hash(t)) from step_run t
union all select 'step_output', bit_xor(hash(t)) from step_output t
union all select 'event', bit_xor(hash(t)) from event t
union all select 'model', bit_xor(hash(t)) from model t
union all select 'problem', bit_xor(hash(t)) from problem t
union all select 'prompt_set', bit_xor(hash(t)) from prompt_set t
union all select 'prompt', bit_xor(hash(t)) from prompt t
union all select 'sampling', bit_xor(hash(t)) from sampling t
union all select 'trajectory', bit_xor(hash(t)) from trajectory t
union all select 'trajectory_parent', bit_xor(hash(t)) from trajectory_parent t
union all select 'trajectory_logprob', bit_xor(hash(t)) from trajectory_logprob t
union all select 'verifier', bit_xor(hash(t)) from verifier t
union all select 'verdict', bit_xor(hash(t)) from verdict t
union all select 'verdict_component', bit_xor(hash(t)) from verdict_component t
union all select 'decision', bit_xor(hash(t)) from decision t
union all select 'problem_decision', bit_xor(hash(t)) from problem_decision t
union all select 'hand_over', bit_xor(hash(t)) from hand_over t
union all select 'training_set', bit_xor(hash(t)) from training_set t
union all select 'training_row', bit_xor(hash(t)) from training_row t
union all select 'training_row_trajectory', bit_xor(hash(t)) from training_row_trajectory t
union all select 'training_update', bit_xor(hash(t)) from training_update t
union all select 'model_parent', bit_xor(hash(t)) from model_parent t
union all select 'training_visit', bit_xor(hash(t)) from training_visit t
union all select 'evaluation', bit_xor(hash(t)) from evaluation t
union all select 'metric', bit_xor(hash(t)) from metric t
