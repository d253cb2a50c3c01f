-- How texts become words, signs, masks and n-grams, and tables for what is found.
-- Words are runs of letters, marks and digits in lower case; a Han, kana or Thai sign is one word.
create temp macro plain_of(text) as lower(nfc_normalize(text));
create temp macro words_of(plain) as trim(regexp_replace(
    case when regexp_matches(plain, '[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]')
    then regexp_replace(plain, '([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}])', ' \1 ', 'g')
    else plain end,
    '[^\p{L}\p{M}\p{N}]+', ' ', 'g'
));
-- Every sign counts; white space only between two words, and not the marks that close the text.
create temp macro signs_of(plain) as trim(regexp_replace(regexp_replace(
    regexp_replace(plain, '[\s.?!:;,]+$', ''),
    '\s*([^\p{L}\p{M}\p{N}\s])\s*', '\1', 'g'), '\s+', ' ', 'g'));
-- What stands behind the numbers of a text that calculates, else nothing.
create temp macro operators_of(plain) as case
    when regexp_matches(plain, '[\p{N})]\s*[-+*/×÷^−]\s*[\p{N}(]')
    then ' ' || array_to_string(regexp_extract_all(plain, '[\p{N})]\s*([-+*/×÷^−])', 1), '')
    else '' end;
create temp macro mask_of(words) as regexp_replace(words, '\p{N}+( \p{N}+)*', '#', 'g');
-- One hash for each place of a list with what stands `shift` places later in another.
create temp macro chained(hashes, others, shift) as list_transform(
    list_zip(hashes, others[shift + 1:], true), lambda pair: hash(pair[1], pair[2])
);

create temp table evaluation_text (position bigint, exact text, template text, words bigint);
create temp table evaluation_gram (n integer, gram ubigint, position bigint);
create temp table candidate_key (position bigint, key text);
create temp table found (position bigint, other bigint, rule text, share double);
