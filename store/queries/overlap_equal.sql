-- The texts in hand that equal an evaluation item of $shortest to $longest words, or its template.
insert into found
with mine as (
    select position, case when $by = 'template' then template else exact end as key from batch
),
theirs as (
    select case when $by = 'template' then template else exact end as key, min(position) as other
    from evaluation_text where words between $shortest and $longest group by key
)
select position, other, $rule, 1.0 from mine join theirs using (key);
