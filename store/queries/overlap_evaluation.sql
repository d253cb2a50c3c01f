-- Keep the texts in hand as evaluation items.
insert into evaluation_text select position, exact, template, words from batch;
