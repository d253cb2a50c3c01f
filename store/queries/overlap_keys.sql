-- Keep by what the texts in hand are compared with each other.
insert into candidate_key
select position, case when $by = 'template' then template else exact end from batch;
