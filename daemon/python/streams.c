/* SPDX-License-Identifier: MIT */
/*
 * Streams
 *
 * sys.stdin, stdout and stderr as ordinary text files on descriptors 0 to 2, fully buffered: a
 * system call for each print would cost more than most cells. What a cell does to them (closes,
 * replaces, redirects) lasts for that cell. The descriptors are the Python thread's own; when a
 * cell has closed or replaced one, the event half's copy of it is fetched again.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/python/capture.h"
#include "daemon/python/half.h"

enum { BUFFER_SIZE = 1 << 18, SPARE_FD = 500 };

static struct stream {
	const char *name, *original, *label;
	PyObject *file; /* ours */
	dev_t dev;      /* what the descriptor has to be */
	ino_t ino;
	int spare; /* a duplicate, where the event half's cannot be fetched; else -1 */
} streams[] = {
	{ "stdin", "__stdin__", "<stdin>", .spare = -1 },
	{ "stdout", "__stdout__", "<stdout>", .spare = -1 },
	{ "stderr", "__stderr__", "<stderr>", .spare = -1 },
};

/* A copy of the event half's descriptor `fd`, -1 where the kernel does not give it. */
static int fetch(int fd) {
	auto_close int process = (int)syscall(SYS_pidfd_open, half.pid, 0);

	return process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);
}

static bool is_intact(int fd) {
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == streams[fd].dev && st.st_ino == streams[fd].ino;
}

static void restore_descriptor(int fd) {
	auto_close int copy = -1;

	if (streams[fd].spare >= 0) {
		dup2(streams[fd].spare, fd);
		return;
	}
	copy = fetch(fd);
	if (copy >= 0 && copy != fd)
		dup2(copy, fd);
}

/* What one process made non-blocking is so for all that share the pipe; Node.js does it to its. */
static void make_blocking(int fd) {
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

/* True when closing a descriptor here closes the event half's as well: unshare() was refused. */
static bool is_table_shared(void) {
	int ends[2];
	struct stat ours, theirs;
	bool is_shared = true;

	/* A pipe that only our table can hold yet: is it in the other one, too? */
	if (pipe2(ends, O_CLOEXEC) == 0) {
		auto_close int copy = fetch(ends[0]);

		is_shared = copy >= 0 && fstat(copy, &theirs) == 0 && fstat(ends[0], &ours) == 0 &&
			    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
		close(ends[0]);
		close(ends[1]);
	}
	return is_shared;
}

/* Remembers what the descriptors are, once, before user code runs. */
static void remember_descriptors(void) {
	static bool is_done;
	bool is_shared;

	if (is_done)
		return;
	is_shared = is_table_shared();
	for (int fd = 0; fd < 3; fd++) {
		auto_close int copy = fetch(fd);
		struct stat st;

		if (fstat(fd, &st) == 0) {
			streams[fd].dev = st.st_dev;
			streams[fd].ino = st.st_ino;
		}
		if (copy < 0 || is_shared)
			streams[fd].spare = fcntl(fd, F_DUPFD_CLOEXEC, SPARE_FD);
	}
	is_done = true;
}

/* As a file that open() made has it. */
static void set_mode(PyObject *file, int fd) {
	auto_py *mode = PyUnicode_FromString(fd ? "w" : "r");

	if (!mode || PyObject_SetAttrString(file, "mode", mode) < 0)
		PyErr_Clear();
}

/* A text file on `fd`: lone surrogates are escaped, so that any str can be printed. */
static PyObject *open_stream(int fd) {
	const char *buffer = fd ? "BufferedWriter" : "BufferedReader";
	auto_py *io = PyImport_ImportModule("io");
	auto_py *kwargs = Py_BuildValue("{s:O}", "closefd", Py_False);
	auto_py *raw_args = Py_BuildValue("(is)", fd, fd ? "w" : "r");
	auto_py *raw_class = io ? PyObject_GetAttrString(io, "FileIO") : NULL;
	auto_py *raw =
		raw_class && raw_args && kwargs ? PyObject_Call(raw_class, raw_args, kwargs) : NULL;
	auto_py *label = PyUnicode_FromString(streams[fd].label);
	auto_py *buffered = NULL;
	PyObject *file;

	if (!raw || !label || PyObject_SetAttrString(raw, "name", label) < 0)
		return NULL;
	buffered = py_call_method(io, buffer, "(Oi)", raw, BUFFER_SIZE);
	if (!buffered)
		return NULL;
	file = py_call_method(io, "TextIOWrapper", "(Oss)", buffered, "utf-8", "backslashreplace");
	if (file)
		set_mode(file, fd);
	return file;
}

/* What a cell hung on the stream itself, such as a `write` of its own: all but the mode. */
static void strip_attributes(PyObject *file, int fd) {
	auto_py *attributes = PyObject_GetAttrString(file, "__dict__");

	if (attributes && PyDict_Check(attributes) && PyDict_Size(attributes) > 1) {
		PyDict_Clear(attributes);
		set_mode(file, fd);
	}
	PyErr_Clear();
}

/* Ours may have been closed, detached or given another encoding. */
static bool is_usable(PyObject *file) {
	auto_py *closed = file ? PyObject_GetAttrString(file, "closed") : NULL;
	auto_py *encoding = closed == Py_False ? PyObject_GetAttrString(file, "encoding") : NULL;
	bool is_utf8 = encoding && PyUnicode_Check(encoding) &&
		       PyUnicode_CompareWithASCIIString(encoding, "utf-8") == 0;

	PyErr_Clear();
	return is_utf8;
}

int capture_restore_streams(void) {
	remember_descriptors();
	for (int fd = 0; fd < 3; fd++) {
		struct stream *s = &streams[fd];

		if (!is_intact(fd))
			restore_descriptor(fd);
		make_blocking(fd);
		if (!is_usable(s->file)) {
			PyObject *file = open_stream(fd);

			if (!file)
				return -1;
			Py_XDECREF(s->file);
			s->file = file;
		}
		strip_attributes(s->file, fd);
		if (PySys_GetObject(s->name) != s->file && PySys_SetObject(s->name, s->file) < 0)
			return -1;
		if (PySys_GetObject(s->original) != s->file &&
			PySys_SetObject(s->original, s->file) < 0)
			return -1;
	}
	return 0;
}

static void flush(PyObject *file) {
	auto_py *result = file ? PyObject_CallMethod(file, "flush", NULL) : NULL;

	PyErr_Clear();
}

void capture_flush(void) {
	for (int fd = 1; fd < 3; fd++) {
		auto_py *file = Py_XNewRef(streams[fd].file);

		flush(file);
	}
	fflush(stdout);
}

void capture_flush_replaced(void) {
	for (int fd = 1; fd < 3; fd++) {
		auto_py *file = Py_XNewRef(PySys_GetObject(streams[fd].name));

		if (file != streams[fd].file)
			flush(file);
	}
}

/*
 * The last exit handler of all. CPython aborts when its end finds a stream whose lock a printing
 * thread took along, so it must find none: what is written still is, then nobody has a stream.
 */
static PyObject *leave_streams(PyObject *self, PyObject *unused) {
	capture_flush();
	for (int fd = 0; fd < 3; fd++) {
		PySys_SetObject(streams[fd].name, Py_None);
		PySys_SetObject(streams[fd].original, Py_None);
	}
	Py_RETURN_NONE;
}

int capture_leave_at_exit(void) {
	static PyMethodDef leave = { "leave_streams", leave_streams, METH_NOARGS, NULL };
	auto_py *atexit = PyImport_ImportModule("atexit");
	auto_py *function = atexit ? PyCFunction_NewEx(&leave, NULL, NULL) : NULL;
	auto_py *result = function ? py_call_method(atexit, "register", "(O)", function) : NULL;

	return result ? 0 : -1;
}
