/* SPDX-License-Identifier: MIT */

/*
 * Setting Agents Up
 *
 * An agent that has a command for it is asked to make the entry itself, for it may be running and
 * knows its file better; what the command cannot say (limits) and agents without one are served by
 * an edit of the file.
 *
 * Nothing is lost: the entry's other members stay, the file as it was is kept beside it, and
 * undoing gives back exactly that file when nothing else has changed in it since.
 */

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/agents.h"
#include "client/editfile.h"
#include "client/setup.h"
#include "common/cleanup.h"
#include "common/wire.h"

#define MAX_WORDS 64

static int complain(const struct agents_task *t, int err) {
	const char *why = err == -EFBIG	   ? "it is too large for settings"
			  : err == -EILSEQ ? "it is no text file"
					   : strerror(-err);

	fprintf(stderr, "ipython-mcp-connect: cannot change %s: %s; nothing was changed\n", t->path,
		why);
	return err == -EACCES || err == -EPERM || err == -EROFS ? WIRE_EXIT_NOPERM : 1;
}

/* Says why the text cannot be edited, and what to do instead. */
static int refuse(
	const struct agents_task *t, enum jsonedit_result r, const char *text, size_t at) {
	unsigned line = 1;

	if (r == JSONEDIT_SYNTAX) {
		for (size_t i = 0; i < at; i++)
			line += text[i] == '\n';
		fprintf(stderr,
			"ipython-mcp-connect: %s, line %u: cannot be read; nothing was changed\n",
			t->path, line);
	} else {
		fprintf(stderr,
			"ipython-mcp-connect: %s: \"%s\" or its entry \"%s\" is written in a form "
			"that is not edited here; nothing was changed\n",
			t->path, t->agent->group, t->entry);
	}
	fprintf(stderr,
		"Change it by hand; ipython-mcp-connect --print-config %s shows the entry.\n",
		t->agent->name);
	return WIRE_EXIT_CONFIG;
}

/* True when PATH holds the agent's own command. */
static bool is_on_path(const char *program) {
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t len = strcspn(path, ":");
		auto_free char *file = NULL;

		if (len > 0 && path[0] == '/' &&
			asprintf(&file, "%.*s/%s", (int)len, path, program) > 0 &&
			access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static void show_command(char *const words[]) {
	printf("Running:");
	for (size_t i = 0; words[i]; i++) {
		bool is_plain =
			words[i][0] &&
			strspn(words[i], "abcdefghijklmnopqrstuvwxyz"
					 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:@%+") ==
				strlen(words[i]);

		printf(is_plain ? " %s" : " '%s'", words[i]);
	}
	printf("\n");
	fflush(stdout);
}

/* Runs the agent's own command; true when it says that it succeeded. */
static bool run_command(const struct agents_task *t, const char *const template[]) {
	char *words[MAX_WORDS + 1];
	auto_buf struct buf entry = BUF_NULL;
	auto_free char *json = NULL;
	size_t n = 0;
	int status;
	pid_t pid;

	agents_add_entry(t, true, &entry);
	json = buf_take(&entry, NULL);
	if (!json)
		return false;
	for (size_t i = 0; template[i]; i++) {
		if (!strcmp(template[i], WORD_ARGS)) {
			for (size_t k = 0; t->args[k] && n < MAX_WORDS; k++)
				words[n++] = t->args[k];
			continue;
		}
		if (n == MAX_WORDS)
			return false;
		if (!strcmp(template[i], WORD_NAME))
			words[n++] = t->entry;
		else if (!strcmp(template[i], WORD_COMMAND))
			words[n++] = t->command;
		else if (!strcmp(template[i], WORD_JSON))
			words[n++] = json;
		else
			words[n++] = (char *)template[i]; /* exec reads it only */
	}
	words[n] = NULL;
	show_command(words);
	if (posix_spawnp(&pid, words[0], NULL, NULL, words, environ) != 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int task_print(const struct agents_task *t) {
	auto_buf struct buf text = BUF_NULL;

	agents_text_set(t, "", 0, &text);
	if (text.has_failed)
		return agents_out_of_memory();
	fflush(stdout);
	fprintf(stderr, "# %s: %s", t->agent->title, t->path);
	if (t->agent->project_file)
		fprintf(stderr, ", or %s of a project", t->agent->project_file);
	fprintf(stderr, "\n");
	fwrite(text.data, 1, text.len, stdout);
	return 0;
}

static bool is_same(const struct editfile *f, const struct buf *text) {
	return f->len == text->len && (!f->len || !memcmp(f->text, text->data, f->len));
}

/* Has the agent make the entry itself; what came of it is for its file to say. True: no edit is
 * needed. */
static bool is_made_elsewhere(const struct agents_task *t, struct editfile *after, int *ret_err) {
	bool is_done = run_command(t, t->agent->add);
	enum jsonedit_result r;
	size_t at;

	*ret_err = editfile_load(after, t->path, t->entry);
	if (*ret_err < 0)
		return false;
	r = agents_text_find(t, after->text, after->len, &at);
	if (is_done && r == JSONEDIT_ABSENT && t->agent->is_file_uncertain) {
		printf("%s keeps the entry in its profile in use.\n", t->agent->title);
		return true;
	}
	if (r != JSONEDIT_OK)
		printf("That made no entry; editing the file instead.\n");
	return false;
}

/* What there is to know after an installation. */
static void show_installed(
	const struct agents_task *t, const struct editfile *before, const struct buf *text) {
	bool is_named = strcmp(t->entry, AGENTS_ENTRY) != 0;

	editfile_show(before, text->data, text->len);
	if (access(before->backup, F_OK) == 0)
		printf("The file as it was: %s\n", before->backup);
	printf("Undo: ipython-mcp-connect --uninstall %s%s%s\n", t->agent->name,
		is_named ? " --name " : "", is_named ? t->entry + strlen(AGENTS_ENTRY "-") : "");
}

static int task_install(const struct agents_task *t) {
	auto_editfile struct editfile file = EDITFILE_NULL, after = EDITFILE_NULL;
	auto_buf struct buf text = BUF_NULL;
	const struct editfile *now = &file;
	enum jsonedit_result r;
	size_t at = 0;
	int err = editfile_load(&file, t->path, t->entry);

	if (err < 0)
		return complain(t, err);
	r = agents_text_find(t, file.text, file.len, &at);
	if (r == JSONEDIT_SYNTAX || r == JSONEDIT_NOT_OBJECT)
		return refuse(t, r, file.text, at);
	if (r == JSONEDIT_ABSENT) {
		/* Kept is the file from before the entry came; what updates the entry leaves it. */
		err = editfile_keep(&file);
		if (err < 0)
			return complain(t, err);
		if (t->agent->add[0] && is_on_path(t->agent->add[0])) {
			if (is_made_elsewhere(t, &after, &err))
				return 0;
			if (err < 0)
				return complain(t, err);
			now = &after;
		}
	}

	r = agents_text_set(t, now->text, now->len, &text);
	if (r != JSONEDIT_OK)
		return refuse(t, r, now->text, 0);
	if (text.has_failed)
		return agents_out_of_memory();
	if (!is_same(now, &text)) {
		err = editfile_save(now, text.data, text.len);
		if (err < 0)
			return complain(t, err);
	}
	if (is_same(&file, &text))
		printf("%s has \"%s\" already: %s is unchanged.\n", t->agent->title, t->entry,
			file.path);
	else
		show_installed(t, &file, &text);
	return 0;
}

/* Whether two texts are equal but for newlines at their ends, which programs add and drop. */
static bool is_same_text(const char *a, size_t a_len, const char *b, size_t b_len) {
	while (a_len > 0 && a[a_len - 1] == '\n')
		a_len--;
	while (b_len > 0 && b[b_len - 1] == '\n')
		b_len--;
	return a_len == b_len && (!a_len || !memcmp(a, b, a_len));
}

/*
 * True when `text` is what taking our entry out of the kept file would leave: then nothing else has
 * changed since, and the kept file itself can come back.
 */
static bool is_as_kept(const struct agents_task *t, const char *text, size_t len, const char *kept,
	size_t kept_len) {
	auto_buf struct buf with = BUF_NULL, without = BUF_NULL;

	if (is_same_text(text, len, kept, kept_len))
		return true;
	return agents_text_set(t, kept, kept_len, &with) == JSONEDIT_OK && !with.has_failed &&
	       agents_text_remove(t, with.data, with.len, &without) == JSONEDIT_OK &&
	       !without.has_failed && is_same_text(text, len, without.data, without.len);
}

static int task_uninstall(const struct agents_task *t) {
	auto_editfile struct editfile file = EDITFILE_NULL, after = EDITFILE_NULL;
	auto_buf struct buf text = BUF_NULL;
	auto_free char *kept = NULL;
	struct editfile *now = &file;
	size_t at = 0, kept_len = 0;
	enum jsonedit_result r;
	int err = editfile_load(&file, t->path, t->entry);

	if (err < 0)
		return complain(t, err);
	r = agents_text_find(t, file.text, file.len, &at);
	if (r == JSONEDIT_SYNTAX || r == JSONEDIT_NOT_OBJECT)
		return refuse(t, r, file.text, at);
	if (r == JSONEDIT_ABSENT) {
		printf("%s has no \"%s\": %s is unchanged.\n", t->agent->title, t->entry, t->path);
		return 0;
	}
	if (t->agent->remove[0] && is_on_path(t->agent->remove[0])) {
		run_command(t, t->agent->remove);
		err = editfile_load(&after, t->path, t->entry);
		if (err < 0)
			return complain(t, err);
		now = &after;
	}
	r = agents_text_remove(t, now->text, now->len, &text);
	if (r == JSONEDIT_ABSENT)
		buf_add(&text, now->text, now->len);
	else if (r != JSONEDIT_OK)
		return refuse(t, r, now->text, 0);
	if (text.has_failed)
		return agents_out_of_memory();

	kept = editfile_kept(now, &kept_len);
	if (kept && is_as_kept(t, text.data, text.len, kept, kept_len)) {
		buf_clear(&text);
		buf_add(&text, kept, kept_len);
		if (text.has_failed)
			return agents_out_of_memory();
	} else if (!kept && !now->is_linked && is_as_kept(t, text.data, text.len, "", 0)) {
		/* There was no file before the entry came. */
		editfile_show(&file, "", 0);
		if (now->is_there && unlink(now->path) < 0)
			return complain(t, -errno);
		printf("Removed: %s\n", now->path);
		return 0;
	} else {
		free(take(kept));
	}
	err = editfile_save(now, text.data, text.len);
	if (err < 0)
		return complain(t, err);
	editfile_show(&file, text.data, text.len);
	if (kept)
		unlink(now->backup);
	return 0;
}

int setup_run(enum setup_verb verb, const char *agent, const char *name, char *const args[]) {
	struct agents_task t = { 0 };
	int code = agents_init(&t, agent, name, args);

	if (code == 0)
		code = verb == SETUP_PRINT     ? task_print(&t)
		       : verb == SETUP_INSTALL ? task_install(&t)
					       : task_uninstall(&t);
	agents_deinit(&t);
	return code;
}
