-- Every rationalized row that a run's round trained on.
select * from rationalized_in_use($run, $round) order by made_in_round, trajectory_id
