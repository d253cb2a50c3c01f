-- What was found, in the order of the candidates and of the rules.
select position, other, rule, share from found
order by position,
    list_position(['exact', 'template', '13-gram', '10-gram', '8-gram'], rule), other;
