# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/fuzz/fuzz-protocol
tests_fuzz_fuzz_protocol_SOURCES = tests/fuzz/fuzz-protocol.c tests/fuzz/fuzz.h $(protocol_sources)
tests_fuzz_fuzz_protocol_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_protocol_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_protocol_LDADD = libborder.la libcommon.la $(LIBEVENT_LIBS)
tests_fuzz_fuzz_jscan_SOURCES = tests/fuzz/fuzz-jscan.c tests/fuzz/fuzz.h common/jscan.c common/jspan.c
tests_fuzz_fuzz_replay_SOURCES = tests/fuzz/fuzz-replay.c tests/fuzz/fuzz.h client/inflight.c client/lost.c \
	client/replay.c \
	common/jscan.c common/jspan.c
if ENABLE_FUZZING
# With clang, to run as long as one likes: tests/fuzz/fuzz-protocol CORPUS-FOLDER
FUZZ_FLAGS = -fsanitize=fuzzer
else
tests_fuzz_fuzz_protocol_SOURCES += tests/fuzz/driver.c
tests_fuzz_fuzz_jscan_SOURCES += tests/fuzz/driver.c
tests_fuzz_fuzz_replay_SOURCES += tests/fuzz/driver.c
TESTS += tests/fuzz/test-fuzz.sh tests/fuzz/test-jscan.sh tests/fuzz/test-replay.sh
endif
EXTRA_DIST += tests/fuzz/test-fuzz.sh tests/fuzz/test-jscan.sh tests/fuzz/test-replay.sh \
	tests/fuzz/jscan.txt tests/fuzz/replay-legacy.txt tests/fuzz/replay-modern.txt

# What the shim reads, compiled anew so that a fuzzing compiler sees into it.
check_PROGRAMS += tests/fuzz/fuzz-jscan tests/fuzz/fuzz-replay
tests_fuzz_fuzz_jscan_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_jscan_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_jscan_LDADD = libcommon.la $(JANSSON_LIBS)
tests_fuzz_fuzz_replay_CFLAGS = $(AM_CFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_replay_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_replay_LDADD = libcommon.la

# What the daemon reads of programs' output.
check_PROGRAMS += tests/fuzz/fuzz-clean
tests_fuzz_fuzz_clean_SOURCES = tests/fuzz/fuzz-clean.c tests/fuzz/fuzz.h daemon/clean.c daemon/collect.c
tests_fuzz_fuzz_clean_CFLAGS = $(AM_CFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_clean_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_clean_LDADD = libcommon.la
if !ENABLE_FUZZING
tests_fuzz_fuzz_clean_SOURCES += tests/fuzz/driver.c
TESTS += tests/fuzz/test-clean.sh
endif
EXTRA_DIST += tests/fuzz/test-clean.sh tests/fuzz/clean.txt
