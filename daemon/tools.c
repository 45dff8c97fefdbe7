/* SPDX-License-Identifier: MIT */
/*
 * Stable Tools
 *
 * All that is said about the ten tools, in words and in schemas. Clients cut descriptions at 2,048
 * characters and some show the beginning alone, so what matters comes first. Schemas keep to what
 * every model's API takes: an object at the root, no combinators, no references. In JSON text a '
 * stands for a ", which makes it readable; no words in it hold an apostrophe.
 *
 * Profiles full and compact explain; profile text is what a model reads in each of its prompts, so
 * there every word has to earn its place. Hints left out mean what execute is: destructive, not
 * idempotent, open-world.
 */

#include <string.h>

#include "daemon/tools.h"

/* Pieces of schemas: types, members of an object by name, and the whole of an object. */
#define STRING          "{'type':'string'}"
#define STRING_OR_NULL  "{'type':['string','null']}"
#define INTEGER         "{'type':'integer'}"
#define INTEGER_OR_NULL "{'type':['integer','null']}"
#define NUMBER_OR_NULL  "{'type':['number','null']}"
#define BOOLEAN         "{'type':'boolean'}"
#define BOOLEAN_OR_NULL "{'type':['boolean','null']}"
#define OBJECT          "{'type':'object'}"
#define STRINGS         "{'type':'array','items':" STRING "}"

#define IS(name, type)          "'" name "':" type
#define FLAG(name)              IS(name, BOOLEAN)
#define SAID(name, type, words) "'" name "':{'type':" type ",'description':'" words "'}"
#define LIST(name, items)       "'" name "':{'type':'array','items':" items "}"
#define NAMES(name, words) \
	"'" name "':{'type':'array','items':" STRING ",'description':'" words "'}"

#define MEMBERS(type, members, required) \
	"{'type':" type ",'properties':{" members "},'required':[" required "]}"

/* Arguments: nothing else is taken. */
#define ARGUMENTS(members, required) \
	"{'type':'object','properties':{" members "},'required':[" required "]," \
	"'additionalProperties':false}"
#define NO_ARGUMENTS "{'type':'object','properties':{},'additionalProperties':false}"

#define TIMES \
	"'timeout':{'type':'number','minimum':0,'default':0,'description':'Seconds until the " \
	"call is interrupted; also limits how long it waits for its turn. 0: the configured " \
	"default, usually none.'}," \
	"'progress_interval':{'type':'number','minimum':0,'default':5,'description':'Seconds " \
	"between progress notifications, for clients that ask for them; 0: none.'}"

#define SHORT_TIMES \
	SAID("timeout", "'number'", "seconds; 0: none") "," \
	SAID("progress_interval", "'number'", "seconds")

/* Answers: each ends in `error` and may carry a notice. */
#define LOCATION \
	MEMBERS("['object','null']", IS("line", INTEGER_OR_NULL) "," \
		IS("column", INTEGER_OR_NULL) "," IS("filename", STRING_OR_NULL), \
		"'line','column','filename'")

#define ERROR \
	MEMBERS("['object','null']", IS("code", STRING) "," IS("message", STRING) "," \
		IS("error_type", STRING_OR_NULL) "," IS("location", LOCATION) "," \
		IS("traceback", STRING_OR_NULL) "," FLAG("retryable") "," \
		IS("retry_after_seconds", NUMBER_OR_NULL) "," FLAG("message_truncated") "," \
		FLAG("location_truncated") "," FLAG("traceback_truncated"), \
		"'code','message','error_type','location','traceback','retryable'," \
		"'retry_after_seconds','message_truncated','location_truncated'," \
		"'traceback_truncated'")

#define ANSWER(members, required) \
	MEMBERS("'object'", members "," IS("error", ERROR) "," IS("notice", STRING), \
		required ",'error'")

#define HINTS(read_only, destructive, idempotent, open_world) \
	"{'readOnlyHint':" read_only ",'destructiveHint':" destructive \
	",'idempotentHint':" idempotent ",'openWorldHint':" open_world "}"

/* Claude Code shows no tool's schema before the model asks, but for those that say so. */
#define ALWAYS_LOADED(hint) "{'anthropic/alwaysLoad':true,'anthropic/searchHint':'" hint "'}"

#define SHARED "The namespace is shared by all attached sessions and outlives them."

/* Answers that hold nothing but an error. */
static const char *const execute_empty[] = {
	"ok", "false", "status", "'error'", "execution_count", "null", "result", "null",
	"display_data", "[]", NULL
};
static const char *const call_empty[] = {
	"ok", "false", "name", "''", "result", "null", "truncated", "false",
	"name_truncated", "false", NULL
};
static const char *const list_empty[] = { "functions", "[]", "truncated", "false", NULL };
static const char *const search_empty[] = { "results", "[]", "truncated", "false", NULL };
static const char *const inspect_empty[] = {
	"ok", "false", "name", "''", "kind", "null", "qualified_type", "null", "callable", "null",
	"signature", "null", "module", "null", "documentation", "null", "representation", "null",
	"truncated", "{'qualified_type':false,'signature':false,'module':false,"
		     "'documentation':false,'representation':false}", NULL
};
static const char *const remove_empty[] = {
	"ok", "false", "removed", "[]", "refused", "[]", "unknown", "[]", NULL
};
static const char *const reset_empty[] = {
	"ok", "false", "removed", "[]", "execution_count", "null", NULL
};
static const char *const reload_empty[] = { "results", "[]", NULL };
static const char *const register_empty[] = { "ok", "false", "registration", "null", NULL };
static const char *const unregister_empty[] = {
	"ok", "false", "unregistered", "[]", "unknown", "[]", "revision", "null", NULL
};

const struct stable_tool stable_tools[] = { {
	.name = "execute",
	.title = "Run Python code",
	.description =
		"Run one cell of Python in a persistent IPython namespace: variables, imports, "
		"definitions and loaded data stay for later calls. Returns stdout, stderr, the "
		"value of a trailing expression, plots as images, and the error if there is one. "
		SHARED "\n\n"
		"Use it for computing, data analysis, files, shell commands (`!command`, "
		"`%%bash`), `%magics` and top-level `await`. Load data once and keep it; return "
		"short summaries rather than whole data: long text comes as its beginning and "
		"end with the name of a file that holds all of it. Matplotlib figures are shown "
		"by themselves.\n\n"
		"Use `call_function` instead when a function with plain arguments already "
		"exists, `inspect`, `list` and `search` to look at names without running code, "
		"and `reload` after a module's file changed.\n\n"
		"It can change anything the user can: names, files, processes. The working "
		"directory belongs to this session alone. `input()` gets end of file. After "
		"`timeout` seconds the cell is interrupted and the namespace is kept; a call "
		"that finds the shell taken waits for its turn.",
	.compact_description =
		"Run one cell of Python in a persistent IPython namespace that all sessions "
		"share: variables, imports and data stay for later calls. Returns output, the "
		"value of a trailing expression, plots as images, errors. `!shell`, `%magics` "
		"and top-level `await` work. Load data once, return short summaries.",
	.text_description =
		"Run Python in a persistent IPython shared by all sessions; names stay defined. "
		"Shows output, the last expression's value, plots. !shell and %magics work.",
	.input_schema = ARGUMENTS(
		SAID("code", "'string'", "Source of one cell: any number of lines; the value of "
		"a last line that is an expression is returned, a trailing `;` silences it.")
		"," TIMES,
		"'code'"),
	.compact_schema = MEMBERS("'object'", IS("code", STRING) "," SHORT_TIMES, "'code'"),
	.text_schema = MEMBERS("'object'",
		IS("code", STRING) "," SAID("timeout", "'number'", "seconds"), "'code'"),
	.annotations = HINTS("false", "true", "false", "true"),
	.meta = ALWAYS_LOADED("run Python code"),
	.empty = execute_empty,
	.has_timeout = true,
	.keeps_output = true,
}, {
	.name = "call_function",
	.title = "Call a function",
	.description =
		"Call a function, method or class that exists in the namespace, by its dotted "
		"name, with keyword arguments given as JSON, and return its value as JSON. "
		SHARED "\n\n"
		"Use it for functions defined earlier with `execute` or found with `list`, and "
		"for registered ones whose tool the client does not show: arguments need no "
		"quoting and the value comes back as data. Use `execute` for everything that is "
		"not one call, or when the value is not JSON (a data frame, a figure), and to "
		"see what is printed: output of this call is discarded.\n\n"
		"The name is resolved by attribute access only, never evaluated. The call has "
		"whatever effects the function has.",
	.compact_description =
		"Call a function of the namespace by its dotted name with JSON keyword "
		"arguments and return its value as JSON. What it prints is discarded.",
	.text_description =
		"Call a function defined there, by dotted name with JSON keyword arguments; "
		"gives its value as JSON.",
	.input_schema = ARGUMENTS(
		SAID("name", "'string'",
			"Dotted name from the namespace, such as `f` or `pd.to_datetime`.") ","
		SAID("arguments", "'object'", "Keyword arguments by name; {} for none.")
		"," TIMES,
		"'name','arguments'"),
	.compact_schema = MEMBERS("'object'",
		IS("name", STRING) "," IS("arguments", OBJECT) "," SHORT_TIMES,
		"'name','arguments'"),
	.text_schema = MEMBERS("'object'", IS("name", STRING) "," IS("arguments", OBJECT),
		"'name','arguments'"),
	.annotations = HINTS("false", "true", "false", "true"),
	.meta = ALWAYS_LOADED("call a Python function"),
	.empty = call_empty,
	.has_timeout = true,
}, {
	.name = "list",
	.title = "List functions",
	.description =
		"List the callables bound in the namespace, with signature, module and first "
		"words of their documentation, sorted by name. " SHARED "\n\n"
		"Use it to see which functions and classes are there, for instance those that "
		"an earlier session defined. Use `search` to find variables and modules, too, "
		"or a name among many; use `inspect` for all about one name. Reads only; no "
		"user code is called but what looking at an object runs.",
	.input_schema = NO_ARGUMENTS,
	.output_schema = ANSWER(
		LIST("functions", MEMBERS("'object'",
			IS("name", STRING) "," IS("signature", STRING_OR_NULL) ","
			IS("module", STRING_OR_NULL) "," IS("description", STRING_OR_NULL) ","
			IS("truncated", MEMBERS("'object'",
				FLAG("signature") "," FLAG("module") "," FLAG("description"),
				"'signature','module','description'")),
			"'name','signature','module','description','truncated'")) ","
		FLAG("truncated"),
		"'functions','truncated'"),
	.annotations = HINTS("true", "false", "true", "false"),
	.empty = list_empty,
}, {
	.name = "search",
	.title = "Search names",
	.description =
		"Find names in the namespace by a part of them: variables, functions, types and "
		"modules, each with its type and a short representation, sorted by name. "
		SHARED "\n\n"
		"Use it to learn what data an earlier cell or session left. An empty query "
		"matches everything. Use `list` for functions alone and `inspect` for all about "
		"one name. Reads only.",
	.input_schema = ARGUMENTS(
		SAID("query", "'string'",
			"Part of the name; upper and lower case are alike.") ","
		"'exact':{'type':'boolean','default':false,"
		"'description':'The whole name, case included, instead of a part.'},"
		"'limit':{'type':'integer','default':50,'description':'Most names to return; "
		"at least 1, bounded by the configuration.'}",
		"'query'"),
	.output_schema = ANSWER(
		LIST("results", MEMBERS("'object'",
			IS("name", STRING) "," IS("kind", STRING) ","
			IS("qualified_type", STRING_OR_NULL) ","
			IS("representation", STRING_OR_NULL) ","
			IS("description", STRING_OR_NULL) ","
			IS("truncated", MEMBERS("'object'",
				FLAG("qualified_type") "," FLAG("representation") ","
				FLAG("description"),
				"'qualified_type','representation','description'")),
			"'name','kind','qualified_type','representation','description',"
			"'truncated'")) ","
		FLAG("truncated"),
		"'results','truncated'"),
	.annotations = HINTS("true", "false", "true", "false"),
	.empty = search_empty,
}, {
	.name = "inspect",
	.title = "Inspect a name",
	.description =
		"Tell all about one name of the namespace: kind, type, signature, module, "
		"documentation and representation. " SHARED "\n\n"
		"Use it before calling an unfamiliar function, or to look at an object without "
		"running code. Use `search` when the name is not known, and `execute` to see "
		"more of a value than its bounded representation. Reads only; dotted names are "
		"resolved by attribute access, never evaluated.",
	.input_schema = ARGUMENTS(
		SAID("name", "'string'", "Dotted name, such as `df` or `pd.DataFrame.head`."),
		"'name'"),
	.output_schema = ANSWER(
		FLAG("ok") "," IS("name", STRING) "," IS("kind", STRING_OR_NULL) ","
		IS("qualified_type", STRING_OR_NULL) "," IS("callable", BOOLEAN_OR_NULL) ","
		IS("signature", STRING_OR_NULL) "," IS("module", STRING_OR_NULL) ","
		IS("documentation", STRING_OR_NULL) "," IS("representation", STRING_OR_NULL) ","
		IS("truncated", MEMBERS("'object'",
			FLAG("qualified_type") "," FLAG("signature") "," FLAG("module") ","
			FLAG("documentation") "," FLAG("representation"),
			"'qualified_type','signature','module','documentation',"
			"'representation'")),
		"'ok','name','kind','qualified_type','callable','signature','module',"
		"'documentation','representation','truncated'"),
	.annotations = HINTS("true", "false", "true", "false"),
	.empty = inspect_empty,
}, {
	.name = "remove",
	.title = "Remove names",
	.description =
		"Remove names from the namespace and from IPython's output cache, so that the "
		"memory of what they held is freed. " SHARED " Other sessions lose these names, "
		"too.\n\n"
		"Use it for large objects that are no longer needed. Use `reset` to empty the "
		"whole namespace. Protected names (a leading underscore, IPython's own, "
		"configured modules) are refused; one unknown name does not stop the others.",
	.input_schema = ARGUMENTS(NAMES("names", "Top-level names to remove."), "'names'"),
	.output_schema = ANSWER(
		FLAG("ok") "," IS("removed", STRINGS) "," IS("refused", STRINGS) ","
		IS("unknown", STRINGS),
		"'ok','removed','refused','unknown'"),
	.annotations = HINTS("false", "true", "true", "false"),
	.empty = remove_empty,
}, {
	.name = "reset",
	.title = "Reset the namespace",
	.description =
		"Remove every name that users defined, registered tools and IPython's output "
		"cache, and bind the configured modules anew. The execution count goes on. "
		SHARED " All sessions lose their names.\n\n"
		"Use it to start from a clean state when nobody needs what is there; use "
		"`remove` for single names and `reload` for changed modules. When a configured "
		"module can no longer be imported, nothing is removed.",
	.input_schema = NO_ARGUMENTS,
	.output_schema = ANSWER(
		FLAG("ok") "," IS("removed", STRINGS) "," IS("execution_count", INTEGER_OR_NULL),
		"'ok','removed','execution_count'"),
	.annotations = HINTS("false", "true", "true", "false"),
	.empty = reset_empty,
}, {
	.name = "reload",
	.title = "Reload modules",
	.description =
		"Import modules, or load them anew in place when they are already imported, and "
		"bind them in the namespace. " SHARED "\n\n"
		"Use it after a module's file was edited: objects that hold the module see the "
		"new code, instances made before keep their old class. Runs the modules' "
		"top-level code. Use `execute` with an import statement for anything else. One "
		"bad module does not stop the others, and its old code stays.",
	.input_schema = ARGUMENTS(
		NAMES("modules", "Dotted module names, in the order of loading."), "'modules'"),
	.output_schema = ANSWER(
		LIST("results", MEMBERS("'object'",
			IS("module", STRING_OR_NULL) "," FLAG("ok") ","
			IS("binding", STRING_OR_NULL) "," IS("error", ERROR) ","
			FLAG("truncated"),
			"'module','ok','binding','error','truncated'")),
		"'results'"),
	.annotations = HINTS("false", "true", "false", "true"),
	.empty = reload_empty,
}, {
	.name = "register_tool",
	.title = "Register a function as a tool",
	.description =
		"Offer a function of the namespace as a tool of its own, with a schema made "
		"from its annotations, to all attached sessions. " SHARED "\n\n"
		"Use it for a helper that will be called often with structured arguments: they "
		"are checked and converted before the call. Some clients never read the list of "
		"tools again; the function stays reachable through `call_function` either way. "
		"Parameters need annotations (str, int, float, bool, None, list, set, tuple, "
		"dict, unions, Literal); coroutines and generators are refused. The tool "
		"follows its name: redefining the function with the same signature takes effect "
		"at once, another signature makes the tool stale until it is registered again.",
	.input_schema = ARGUMENTS(
		SAID("name", "'string'", "Top-level name that is bound to the function.") ","
		SAID("tool_name", "['string','null']", "Name of the tool: a letter, then "
			"letters, digits, _ and -. Default: that of the function.") ","
		SAID("description", "['string','null']", "What the tool does. Default: the "
			"documentation of the function."),
		"'name'"),
	.output_schema = ANSWER(
		FLAG("ok") ","
		IS("registration", MEMBERS("['object','null']",
			IS("name", STRING) "," IS("tool_name", STRING) ","
			IS("description", STRING) "," FLAG("description_truncated") ","
			IS("input_schema", OBJECT) "," IS("schema_fingerprint", STRING) ","
			IS("revision", INTEGER),
			"'name','tool_name','description','description_truncated',"
			"'input_schema','schema_fingerprint','revision'")),
		"'ok','registration'"),
	.annotations = HINTS("false", "false", "true", "false"),
	.empty = register_empty,
	.holds_for_list = true,
}, {
	.name = "unregister_tool",
	.title = "Unregister tools",
	.description =
		"Take registered tools off the list again. " SHARED " The functions themselves "
		"stay in the namespace and reachable through `call_function`.\n\n"
		"Use it for tools that are no longer useful or that went stale; use `remove` to "
		"drop the functions. Names that are not registered are reported and do no harm.",
	.input_schema = ARGUMENTS(
		NAMES("names", "Tool names, as in the list of tools."), "'names'"),
	.output_schema = ANSWER(
		FLAG("ok") "," IS("unregistered", STRINGS) "," IS("unknown", STRINGS) ","
		IS("revision", INTEGER_OR_NULL),
		"'ok','unregistered','unknown','revision'"),
	.annotations = HINTS("false", "false", "true", "false"),
	.empty = unregister_empty,
	.holds_for_list = true,
}, { 0 } };

const struct stable_tool *tools_find(const char *name) {
	for (const struct stable_tool *t = stable_tools; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

void tools_add_json(struct buf *b, const char *json) {
	for (const char *quote; (quote = strchr(json, '\'')); json = quote + 1) {
		buf_add(b, json, (size_t)(quote - json));
		buf_add_char(b, '"');
	}
	buf_add_str(b, json);
}

struct answer *tools_error_answer(const struct stable_tool *tool, const char *name,
	enum profile profile, const struct answer_error *error) {
	struct answer *a = answer_new();

	if (!a)
		return NULL;
	for (const char *const *m = tool ? tool->empty : call_empty; *m; m += 2) {
		bool says_failure = !strcmp(m[0], "ok") || !strcmp(m[0], "status");

		if (name && !strcmp(m[0], "name"))
			answer_add_string(a, m[0], name, strlen(name), false);
		else
			tools_add_json(answer_member(a, m[0], !says_failure), m[1]);
	}
	answer_set_error(a, error, profile);
	return a;
}
