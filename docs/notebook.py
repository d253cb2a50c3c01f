# SPDX-License-Identifier: Apache-2.0
"""A notebook over the store: `make notebook`. It reads the readers' copy and never stops a run."""

import marimo

app = marimo.App(width="medium", app_title="starloop")


@app.cell
def _():
    import marimo as mo

    import starloop

    db = starloop.open()

    def asked(sql, *values):
        """The answer to a question in SQL, a dict a row."""
        return db.sql(sql, params=list(values)).to_arrow_table().to_pylist()

    return db, mo, asked


@app.cell
def _(mo, asked):
    names = [row["name"] for row in asked("select name from run order by created_at")]
    mo.stop(not names, mo.md("The store holds no run yet."))
    run = mo.ui.dropdown(names, value=names[-1], label="run")
    mo.vstack([mo.md("# starloop"), run])
    return (run,)


@app.cell
def _(mo, asked, run):
    rounds = asked(
        "select round, pass_at_1, low, high, pass_at_k, maj_at_k, kept, rationalized, hint_leaks, "
        "tokens, round(wall_s) as seconds, model_id::varchar as model from round_summary "
        "where run = ? order by round",
        run.value,
    )
    mo.stop(not rounds, mo.md("This run has no round yet."))
    mo.vstack([mo.md("## Rounds"), mo.Html(curve(rounds)), mo.ui.table(rounds)])
    return (rounds,)


@app.function
def curve(rounds, width=640, height=240):
    """Held-out pass@1 by round as SVG, with its 95 % interval over problems."""
    points = [row for row in rounds if row["pass_at_1"] is not None]
    last = max([row["round"] for row in points], default=0) or 1

    def x(row):
        return 40 + (width - 60) * row["round"] / last

    def y(value):
        return height - 30 - (height - 50) * value

    line = " ".join(f"{x(row):.1f},{y(row['pass_at_1']):.1f}" for row in points)
    marks = "".join(
        f'<line x1="{x(row):.1f}" x2="{x(row):.1f}" y1="{y(row["low"]):.1f}" '
        f'y2="{y(row["high"]):.1f}"/>'
        f'<circle cx="{x(row):.1f}" cy="{y(row["pass_at_1"]):.1f}" r="3"/>'
        f'<text x="{x(row):.1f}" y="{height - 10}" text-anchor="middle">{row["round"]}</text>'
        for row in points
    )
    scale = "".join(f'<text x="4" y="{y(v) + 4:.1f}">{v:.1f}</text>' for v in (0.0, 0.5, 1.0))
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="held-out pass@1 by round" '
        f'font-size="12" fill="currentColor">{scale}'
        f'<polyline points="{line}" fill="none" stroke="currentColor"/>'
        f'<g stroke="currentColor">{marks}</g></svg>'
    )


@app.cell
def _(mo, rounds):
    models = {f"round {row['round']}": row["model"] for row in rounds if row["model"]}
    checkpoint = mo.ui.dropdown(models, value=list(models)[-1], label="checkpoint of")
    mo.vstack([mo.md("## Where a checkpoint comes from"), checkpoint])
    return (checkpoint,)


@app.cell
def _(checkpoint, mo, asked):
    rests_on = asked(
        "select depth, ancestor_id::varchar as model, run, round, "
        "array_to_string(relations, ', ') as relations from ancestors(?) order by all",
        checkpoint.value,
    )
    trained = asked(
        "select run, round, origin, count(*) as trajectories, sum(visits)::bigint as visits "
        "from trained_by(?) group by all order by all",
        checkpoint.value,
    )
    mo.vstack(
        [
            mo.md(f"`{checkpoint.value}` rests on"),
            mo.ui.table(rests_on),
            mo.md("and was trained by"),
            mo.ui.table(trained),
        ]
    )
    return rests_on, trained


@app.cell
def _(mo, asked, run):
    (first,) = asked(
        "select min(trajectory_id)::varchar as id from trajectory_fate where run = ? and kept",
        run.value,
    )
    which = mo.ui.text(value=first["id"] or "", label="trajectory", full_width=True)
    mo.vstack([mo.md("## What became of a trajectory"), which])
    return (which,)


@app.cell
def _(mo, asked, which):
    fate = asked(
        "select run, round, purpose, origin, hinted, prompt, completion, status, reason, kept, "
        "why, len(trained_models) as models from fate_of(try_cast(? as uuid))",
        which.value,
    )
    mo.ui.table(fate)
    return (fate,)


@app.cell
def _(mo):
    sql = mo.ui.text_area(
        value="select round, origin, sum(rows) as rows from mix_by_round group by all order by all",
        label="SQL",
        full_width=True,
    )
    mo.vstack([mo.md("## Ask"), sql])
    return (sql,)


@app.cell
def _(mo, asked, sql):
    answer = asked(f"from ({sql.value.strip().rstrip(';')}) limit 1000")
    mo.ui.table(answer)
    return (answer,)


if __name__ == "__main__":
    app.run()
