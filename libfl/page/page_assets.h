#ifndef FL_PAGE_ASSETS_H
#define FL_PAGE_ASSETS_H

/* The style sheet and the script that every page contains: generated from page.css and page.js. */

#include <stddef.h>

extern const unsigned char fl_page_css[], fl_page_js[];
extern const size_t fl_page_css_len, fl_page_js_len;
/* "sha256-…", as a content-security policy names them. */
extern const char fl_page_css_hash[], fl_page_js_hash[];

#endif
