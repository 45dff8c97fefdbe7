# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/unit/test-config tests/unit/test-requirement
TESTS += tests/unit/test-config tests/unit/test-requirement tests/unit/test-requirement-reference.py
EXTRA_DIST += tests/unit/test-requirement-reference.py
tests_unit_test_config_SOURCES = tests/unit/test-config.c tests/lib/check.h daemon/config.c daemon/setting.c
tests_unit_test_config_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_config_LDADD = libborder.la libcommon.la $(JANSSON_LIBS)
tests_unit_test_requirement_SOURCES = tests/unit/test-requirement.c tests/lib/check.h
tests_unit_test_requirement_LDADD = libborder.la libcommon.la

# common/
check_PROGRAMS += \
	tests/unit/test-buf \
	tests/unit/test-frame \
	tests/unit/test-jscan \
	tests/unit/test-project \
	tests/unit/test-rendezvous \
	tests/unit/test-utf8
TESTS += \
	tests/unit/test-buf \
	tests/unit/test-frame \
	tests/unit/test-jscan \
	tests/unit/test-project \
	tests/unit/test-rendezvous \
	tests/unit/test-utf8
tests_unit_test_buf_SOURCES = tests/unit/test-buf.c tests/lib/check.h
tests_unit_test_buf_LDADD = libcommon.la
tests_unit_test_frame_SOURCES = tests/unit/test-frame.c tests/lib/check.h
tests_unit_test_frame_LDADD = libcommon.la
tests_unit_test_jscan_SOURCES = tests/unit/test-jscan.c tests/lib/check.h
tests_unit_test_jscan_LDADD = libcommon.la
tests_unit_test_project_SOURCES = tests/unit/test-project.c tests/lib/check.h
tests_unit_test_project_LDADD = libcommon.la
tests_unit_test_rendezvous_SOURCES = tests/unit/test-rendezvous.c tests/lib/check.h
tests_unit_test_rendezvous_LDADD = libcommon.la
tests_unit_test_utf8_SOURCES = tests/unit/test-utf8.c tests/lib/check.h
tests_unit_test_utf8_LDADD = libcommon.la

# client/
check_PROGRAMS += tests/unit/test-jsonedit tests/unit/test-tomledit
TESTS += tests/unit/test-jsonedit tests/unit/test-tomledit
tests_unit_test_jsonedit_SOURCES = tests/unit/test-jsonedit.c tests/lib/check.h client/jsonedit.c
tests_unit_test_jsonedit_LDADD = libcommon.la
tests_unit_test_tomledit_SOURCES = tests/unit/test-tomledit.c tests/lib/check.h client/tomledit.c
tests_unit_test_tomledit_LDADD = libcommon.la

# daemon/python/, the parts that need no Python
check_PROGRAMS += tests/unit/test-metadata tests/unit/test-redact
TESTS += tests/unit/test-metadata tests/unit/test-redact
tests_unit_test_metadata_SOURCES = tests/unit/test-metadata.c tests/lib/check.h daemon/python/metadata.c \
	daemon/python/redact.c
tests_unit_test_metadata_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_metadata_LDADD = libborder.la libcommon.la $(JANSSON_LIBS)
tests_unit_test_redact_SOURCES = tests/unit/test-redact.c tests/lib/check.h daemon/python/redact.c
tests_unit_test_redact_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_redact_LDADD = libborder.la libcommon.la $(JANSSON_LIBS)

# daemon/, the protocol; the fuzzer uses the same files
protocol_sources = tests/lib/fake-daemon.c tests/lib/fake-daemon.h daemon/admin.c daemon/attach.c \
	daemon/batch.c daemon/era.c daemon/era-legacy.c daemon/era-modern.c daemon/notify.c \
	daemon/protocol.c daemon/revision.c
check_PROGRAMS += tests/unit/test-protocol
TESTS += tests/unit/test-protocol
tests_unit_test_protocol_SOURCES = tests/unit/test-protocol.c tests/lib/check.h $(protocol_sources)
tests_unit_test_protocol_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS)
tests_unit_test_protocol_LDADD = libborder.la libcommon.la $(LIBEVENT_LIBS)

# The border and the event half, against a Python half without Python.
fake_shell = tests/unit/fake-shell.c tests/unit/fake-shell.h tests/lib/check.h
check_PROGRAMS += tests/unit/test-bridge
TESTS += tests/unit/test-bridge
tests_unit_test_bridge_SOURCES = tests/unit/test-bridge.c $(fake_shell) daemon/bridge.c daemon/fds.c
tests_unit_test_bridge_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS)
tests_unit_test_bridge_LDADD = libborder.la libcommon.la $(LIBEVENT_LIBS)

# client/
check_PROGRAMS += tests/unit/test-replay
TESTS += tests/unit/test-replay
tests_unit_test_replay_SOURCES = tests/unit/test-replay.c tests/lib/check.h client/inflight.c \
	client/lost.c client/replay.c
tests_unit_test_replay_LDADD = libcommon.la

check_PROGRAMS += tests/unit/test-clean tests/unit/test-output
TESTS += tests/unit/test-clean tests/unit/test-output
tests_unit_test_clean_SOURCES = tests/unit/test-clean.c tests/lib/check.h daemon/clean.c daemon/collect.c
tests_unit_test_clean_LDADD = libcommon.la
tests_unit_test_output_SOURCES = tests/unit/test-output.c tests/lib/check.h daemon/clean.c daemon/collect.c \
	daemon/fds.c daemon/files.c daemon/output.c daemon/spill.c
tests_unit_test_output_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS)
tests_unit_test_output_LDADD = libborder.la libcommon.la $(LIBEVENT_LIBS)

check_PROGRAMS += tests/unit/test-render
TESTS += tests/unit/test-render
tests_unit_test_render_SOURCES = tests/unit/test-render.c tests/lib/check.h daemon/catalog.c daemon/render.c \
	daemon/tools.c
tests_unit_test_render_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_render_LDADD = libborder.la libcommon.la $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/test-callq
TESTS += tests/unit/test-callq
tests_unit_test_callq_SOURCES = tests/unit/test-callq.c $(fake_shell) daemon/bridge.c daemon/callclock.c \
	daemon/callq.c daemon/callrun.c daemon/callwords.c daemon/catalog.c daemon/clean.c daemon/collect.c daemon/fds.c \
	daemon/output.c daemon/render.c daemon/spill.c daemon/tools.c
tests_unit_test_callq_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_callq_LDADD = libborder.la libcommon.la $(LIBEVENT_LIBS) $(JANSSON_LIBS)

# daemon/python/, what of it needs no Python
check_PROGRAMS += tests/unit/test-image
TESTS += tests/unit/test-image
tests_unit_test_image_SOURCES = tests/unit/test-image.c tests/lib/check.h daemon/python/image.c
tests_unit_test_image_LDADD = libborder.la libcommon.la

check_PROGRAMS += tests/unit/test-children
TESTS += tests/unit/test-children
tests_unit_test_children_SOURCES = tests/unit/test-children.c tests/lib/check.h daemon/python/children.c

check_PROGRAMS += tests/unit/test-loader
TESTS += tests/unit/test-loader
tests_unit_test_loader_SOURCES = tests/unit/test-loader.c tests/lib/check.h daemon/interpreter.c daemon/loader.c
tests_unit_test_loader_CPPFLAGS = $(AM_CPPFLAGS) -UPKGLIBDIR -DPKGLIBDIR='"/nonexistent"'
tests_unit_test_loader_LDADD = libborder.la libcommon.la -ldl
