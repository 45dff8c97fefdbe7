/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Unit tests that speak TAP. A test file lists its cases in main():
 *
 *	int main(void) {
 *		RUN(test_frame_splits_lines);
 *		return check_done();
 *	}
 *
 * A failed CHECK ends its case and is reported with place and expression.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_n, check_n_failed, check_has_failed;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
			check_has_failed = 1;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define CHECK_STR(actual, expected)                                                                \
	do {                                                                                       \
		const char *actual_ = (actual), *expected_ = (expected);                           \
		if (!actual_ || strcmp(actual_, expected_)) {                                      \
			printf("# %s:%d: got \"%s\", expected \"%s\"\n", __FILE__, __LINE__,       \
				actual_ ? actual_ : "(null)", expected_);                          \
			check_has_failed = 1;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define RUN(test)                                                                                  \
	do {                                                                                       \
		check_has_failed = 0;                                                              \
		test();                                                                            \
		check_n++;                                                                         \
		check_n_failed += check_has_failed;                                                \
		printf("%sok %d - %s\n", check_has_failed ? "not " : "", check_n, #test);          \
		fflush(stdout);                                                                    \
	} while (0)

static int check_done(void) {
	printf("1..%d\n", check_n);
	return check_n_failed != 0;
}
