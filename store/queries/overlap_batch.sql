-- The texts of `given (position, text)` by what they are compared, as the table `batch`.
create or replace temp table batch as
with plain as (select position, plain_of(text) as plain from given),
worded as (select position, plain, words_of(plain) as words from plain),
counted as (
    select *, mask_of(words) as mask,
        case when words = '' then [] else string_split(words, ' ') end as list
    from worded
),
lettered as (
    select *, len(list_filter(string_split(mask, ' '), lambda w: not contains(w, '#') and w <> ''))
        as letters,
        list_transform(list, lambda w: hash(w)) as ones
    from counted
),
twos as (select *, chained(ones, ones, 1) as twos from lettered),
fours as (select *, chained(twos, twos, 2) as fours from twos),
eights as (select *, chained(fours, fours, 4) as eights from fours)
select position,
    case when words = '' then null
        when letters < 8 and regexp_matches(plain, '[\p{N}\p{Sm}]') then signs_of(plain)
        else words || operators_of(plain) end as exact,
    case when letters >= 8 then mask end as template,
    len(list) as words,
    eights as grams_8,
    chained(eights, twos, 8) as grams_10,
    chained(chained(eights, fours, 8), ones, 12) as grams_13
from eights;
