-- A slot of `incoming` that the store has with other content.
select trajectory_id, stored.content_id, incoming.content_id
from incoming join trajectory as stored using (trajectory_id)
where stored.content_id <> incoming.content_id
limit 1
