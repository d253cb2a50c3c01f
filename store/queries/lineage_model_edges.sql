-- Which model rests on which, among a model and its ancestors.
select p.parent_id, p.model_id,
       array_to_string(list_sort(list(distinct p.relation)), ', ') as relations
from model_parent p
where p.model_id = $model_id or p.model_id in (select ancestor_id from ancestors($model_id))
group by all order by p.model_id, p.parent_id
