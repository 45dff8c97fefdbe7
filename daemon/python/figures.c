/* SPDX-License-Identifier: MIT */
/*
 * Figures
 *
 * matplotlib draws with its agg backend, whatever was asked for: there is no window. The backend is
 * set through rcParams the moment pyplot is imported, not through the environment, which children
 * would inherit. agg's show() is ours: it renders what is open there and then and closes it.
 */

#include <math.h>
#include <string.h>

#include "daemon/python/display.h"
#include "daemon/python/figures.h"
#include "daemon/python/half.h"
#include "daemon/python/image.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/pyerr.h"

enum { MAX_ATTEMPTS = 5 };

/* PNG of the figure at `dpi` (0: its own): bytes, or None when it is empty. */
static PyObject *print_figure(PyObject *figure, double dpi) {
	auto_py *print = py_import_attr("IPython.core.pylabtools", "print_figure");
	auto_py *args = PyTuple_Pack(1, figure);
	auto_py *kwargs = dpi > 0 ? Py_BuildValue("{s:d}", "dpi", dpi) : PyDict_New();

	return print && args && kwargs ? PyObject_Call(print, args, kwargs) : NULL;
}

/* How much smaller the image has to be drawn; 1 when it is within the bounds. */
static double needed_scale(PyObject *png) {
	double limit = (double)half.settings->max_image_bytes;
	double scale = 1;
	unsigned width = 0, height = 0, side;
	char *data;
	Py_ssize_t len;

	if (PyBytes_AsStringAndSize(png, &data, &len) < 0)
		return -1;
	image_size(data, (size_t)len, &width, &height);
	side = width > height ? width : height;
	if (side > IMAGE_MAX_PIXELS)
		scale = (IMAGE_MAX_PIXELS - 4.0) / side;
	/* Bytes follow the area, roughly: a little less is tried than that says. */
	if ((double)len > limit && sqrt(limit / (double)len) * 0.9 < scale)
		scale = sqrt(limit / (double)len) * 0.9;
	return scale;
}

/*
 * PNG of the figure within the bounds, as far as a few attempts get: new reference, None, or NULL.
 */
static PyObject *render(PyObject *figure) {
	auto_py *png = print_figure(figure, 0);
	auto_py *dpi_object = png ? PyObject_GetAttrString(figure, "dpi") : NULL;
	double dpi = dpi_object ? PyFloat_AsDouble(dpi_object) : -1;

	for (int i = 0; i < MAX_ATTEMPTS && png && dpi > 0 && PyBytes_Check(png); i++) {
		double scale = needed_scale(png);

		if (scale < 0 || scale == 1)
			break;
		dpi *= scale;
		Py_DECREF(png);
		png = print_figure(figure, dpi);
	}
	return PyErr_Occurred() ? NULL : take(png);
}

/* Formatter of image/png for a figure that is displayed or the value of a cell. */
static PyObject *format_figure(PyObject *self, PyObject *figure) {
	return render(figure);
}

static int show(PyObject *figure) {
	auto_py *png = render(figure);
	auto_py *text = NULL;
	auto_py *data = NULL;

	if (!png || png == Py_None)
		return png ? 0 : -1;
	text = PyObject_Repr(figure);
	data = text ? Py_BuildValue("{s:O,s:O}", "text/plain", text, "image/png", png) : NULL;
	return data ? display_add(data, NULL) : -1;
}

/* pyplot's registry of open figures, when pyplot is loaded at all; NULL without an exception. */
static PyObject *get_registry(void) {
	borrowed PyObject *modules = PySys_GetObject("modules");
	borrowed PyObject *helpers =
		modules && PyDict_Check(modules)
			? PyDict_GetItemString(modules, "matplotlib._pylab_helpers")
			: NULL;
	auto_py *registry = helpers ? py_getattr_or_null(helpers, "Gcf") : NULL;
	auto_py *figures = registry ? py_getattr_or_null(registry, "figs") : NULL;
	bool has_figures = figures && PyObject_Size(figures) > 0;

	PyErr_Clear();
	return has_figures ? take(registry) : NULL;
}

static void print_error(void) {
	auto_py *exception = pyerr_fetch();

	if (exception)
		pyerr_print(exception);
}

int figures_flush(PyObject *skip) {
	auto_py *registry = get_registry();
	auto_py *managers =
		registry ? py_call_method(registry, "get_all_fig_managers", "()") : NULL;
	auto_py *closed = NULL;
	int r = 0;

	for (Py_ssize_t i = 0;
		r == 0 && managers && PyList_Check(managers) && i < PyList_Size(managers); i++) {
		auto_py *canvas = PyObject_GetAttrString(PyList_GetItem(managers, i), "canvas");
		auto_py *figure = canvas ? PyObject_GetAttrString(canvas, "figure") : NULL;

		if (figure && (figure == skip || show(figure) == 0))
			continue;
		if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
			r = -1;
		else
			print_error();
	}
	if (registry && r == 0) {
		closed = py_call_method(registry, "destroy_all", "()");
		if (!closed)
			print_error();
	}
	return r;
}

/* plt.show(*args, block=None) */
static PyObject *show_all(PyObject *self, PyObject *args, PyObject *kwargs) {
	if (figures_flush(NULL) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* Makes agg the backend and its show() ours. Before pyplot is loaded, or after. */
static int set_backend(void) {
	/* pyplot asks for the signature, which stands in the first line. */
	static PyMethodDef method = {
		"show", (PyCFunction)(void (*)(void))show_all, METH_VARARGS | METH_KEYWORDS,
		"show(*args, **kwargs)\n--\n\nShows the open figures in the answer and closes them."
	};
	auto_py *agg = PyImport_ImportModule("matplotlib.backends.backend_agg");
	auto_py *parameters = agg ? py_import_attr("matplotlib", "rcParams") : NULL;
	auto_py *function = parameters ? PyCFunction_NewEx(&method, NULL, NULL) : NULL;
	auto_py *name = function ? PyUnicode_FromString("agg") : NULL;

	if (!name || PyObject_SetAttrString(agg, "show", function) < 0)
		return -1;
	return PyMapping_SetItemString(parameters, "backend", name);
}

void figures_on_import(PyObject *args) {
	borrowed PyObject *name = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;

	if (!name || !PyUnicode_Check(name) ||
		PyUnicode_CompareWithASCIIString(name, "matplotlib.pyplot") != 0)
		return;
	if (set_backend() < 0)
		PyErr_Clear();
}

/* InteractiveShell.enable_matplotlib(gui=None): `%matplotlib inline`, agg or anything else. */
static PyObject *enable_matplotlib(PyObject *self, PyObject *args, PyObject *kwargs) {
	auto_py *pyplot = PyImport_ImportModule("matplotlib.pyplot");
	auto_py *result = pyplot ? py_call_method(pyplot, "switch_backend", "(s)", "agg") : NULL;

	return result ? Py_BuildValue("(ss)", "inline", "agg") : NULL;
}

int figures_install(void) {
	static PyMethodDef shadows[] = {
		{ "enable_matplotlib", (PyCFunction)(void (*)(void))enable_matplotlib,
			METH_VARARGS | METH_KEYWORDS, NULL },
		{ },
	};
	static PyMethodDef method = { "format_figure", format_figure, METH_O, NULL };
	auto_py *formatter = PyObject_GetAttrString(ipshell_get(), "display_formatter");
	auto_py *formatters = formatter ? PyObject_GetAttrString(formatter, "formatters") : NULL;
	auto_py *png = formatters ? PyMapping_GetItemString(formatters, "image/png") : NULL;
	auto_py *function = png ? PyCFunction_NewEx(&method, NULL, NULL) : NULL;
	auto_py *result = function ? py_call_method(png, "for_type_by_name", "(ssO)",
					     "matplotlib.figure", "Figure", function)
				   : NULL;

	return result ? ipshell_shadow(ipshell_get(), shadows) : -1;
}
