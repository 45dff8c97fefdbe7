# SPDX-License-Identifier: MIT
# Benchmarks: `make bench` prints the table. Not part of `make check`.
EXTRA_PROGRAMS = tests/bench/echo-server tests/bench/echo-client tests/bench/stopwatch
EXTRA_DIST += tests/bench/run.py tests/bench/tokens.py
CLEANFILES += $(EXTRA_PROGRAMS)

.PHONY: bench bench-tokens
bench: all $(EXTRA_PROGRAMS)
	$(TEST_INTERPRETER) $(top_srcdir)/tests/bench/run.py $(abs_top_builddir) $(BENCH_FLAGS)

bench-tokens: all
	$(TEST_INTERPRETER) $(top_srcdir)/tests/bench/tokens.py $(abs_top_builddir) $(BENCH_FLAGS)
