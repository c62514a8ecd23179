/* Whether a text is one JSON value. Strings are not decoded. */
#ifndef JSON_CHECK_H
#define JSON_CHECK_H

#include <string.h>

#define DEEPEST 64

typedef struct {
    const char *at, *end;
} json_text;

static inline void skip_space(json_text *t) {
    while (t->at < t->end && strchr(" \t\r\n", *t->at) && *t->at) t->at++;
}

static inline int take(json_text *t, char wanted) {
    skip_space(t);
    if (t->at >= t->end || *t->at != wanted) return 0;
    t->at++;
    return 1;
}

static inline int check_string(json_text *t) {
    if (!take(t, '"')) return 0;
    for (; t->at < t->end && *t->at != '"'; t->at++) {
        if ((unsigned char)*t->at < 0x20) return 0;
        if (*t->at == '\\') t->at++;
    }
    return t->at++ < t->end;
}

static inline int check_word(json_text *t) {
    const char *words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(t->end - t->at) >= length && !memcmp(t->at, words[i], length)) return t->at += length, 1;
    }
    const char *begin = t->at;
    while (t->at < t->end && strchr("+-.eE0123456789", *t->at) && *t->at) t->at++;
    return t->at > begin;
}

static inline int check_value(json_text *t, int depth) {
    skip_space(t);
    if (t->at >= t->end || depth > DEEPEST) return 0;
    if (*t->at == '"') return check_string(t);
    if (*t->at != '{' && *t->at != '[') return check_word(t);
    char close = *t->at++ == '{' ? '}' : ']';
    if (take(t, close)) return 1;
    do {
        if (close == '}' && !(check_string(t) && take(t, ':'))) return 0;
        if (!check_value(t, depth + 1)) return 0;
    } while (take(t, ','));
    return take(t, close);
}

static inline int is_json(const char *data, size_t length) {
    json_text text = {data, data + length};
    if (!check_value(&text, 0)) return 0;
    skip_space(&text);
    return text.at == text.end;
}

#endif
