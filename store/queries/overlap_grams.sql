-- Keep the distinct $n-grams of the texts in hand as those of evaluation items.
insert into evaluation_gram
select $n, unnest(list_distinct(
    case $n when 8 then grams_8 when 10 then grams_10 else grams_13 end
)), position from batch;
