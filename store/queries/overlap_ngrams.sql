-- The texts in hand that share $n-grams with an evaluation item, covering $least of their words.
-- Each with the item that covers most. A gram of many items leads to the first $most of them.
insert into found
with mine as materialized (
    select position, words, unnest(grams) as gram, unnest(range(1, len(grams) + 1)) as start
    from (
        select position, words,
            case $n when 8 then grams_8 when 10 then grams_10 else grams_13 end as grams
        from batch
    )
),
theirs as (select gram, position as other from evaluation_gram where n = $n),
met as (
    select *, least($n, lead(start, 1, start + $n) over (partition by position order by start) - start)
        as covered
    from mine semi join theirs using (gram)
),
hit as materialized (
    select position, words, gram, start from met
    qualify sum(covered) over (partition by position) / words >= $least
),
first_items as (
    select gram, other from theirs semi join hit using (gram)
    qualify row_number() over (partition by gram order by other) <= $most
),
pair as (select distinct position, other from hit join first_items using (gram)),
met_one as (
    select position, words, other, least(
        $n, lead(start, 1, start + $n) over (partition by position, other order by start) - start
    ) as covered
    from pair join hit using (position) join theirs using (gram, other)
),
shared as (
    select position, other, sum(covered) / any_value(words) as share
    from met_one group by position, other
)
select position, other, $rule, share from shared where share >= $least
qualify row_number() over (partition by position order by share desc, other) = 1;
