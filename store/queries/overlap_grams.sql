-- Keep the distinct $n-grams of the texts in hand as those of evaluation items.
insert into evaluation_gram
select $n, unnest(list_distinct(grams_of(hashes, $n))), position from batch;
