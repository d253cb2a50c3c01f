-- The wanted prompts, in the order asked for.
select prompt.* from wanted join prompt on prompt.prompt_id = wanted.id
order by wanted.position
