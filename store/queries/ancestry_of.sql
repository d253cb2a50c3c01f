-- The models that a model rests on, nearest first.
select a.ancestor_id, a.depth, m.origin, m.path
from model_ancestry a join model m on m.model_id = a.ancestor_id
where a.model_id = $model_id
order by a.depth, a.ancestor_id
