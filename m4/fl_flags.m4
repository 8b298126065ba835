# FL_APPEND_FLAGS(VAR, FLAGS): append each flag the C compiler accepts.
AC_DEFUN([FL_APPEND_FLAGS], [
  for fl_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether $CC accepts $fl_flag])
    fl_save="$CFLAGS"; CFLAGS="$CFLAGS -Werror $fl_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); $1="$$1 $fl_flag"],
                      [AC_MSG_RESULT([no])])
    CFLAGS="$fl_save"
  done])
# FL_APPEND_LDFLAGS(VAR, FLAGS): append each flag the linker accepts.
AC_DEFUN([FL_APPEND_LDFLAGS], [
  for fl_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether the linker accepts $fl_flag])
    fl_save="$LDFLAGS"; LDFLAGS="$LDFLAGS $fl_flag"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); $1="$$1 $fl_flag"],
                   [AC_MSG_RESULT([no])])
    LDFLAGS="$fl_save"
  done])
# FL_REQUIRE_LINK_FLAG(FLAGS): compile and link with FLAGS, or stop.
AC_DEFUN([FL_REQUIRE_LINK_FLAG], [
  AC_MSG_CHECKING([whether $CC can build with $1])
  fl_save="$CFLAGS"; CFLAGS="$CFLAGS $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
                 [AC_MSG_RESULT([no]); AC_MSG_ERROR([$1 is not supported])])
  CFLAGS="$fl_save"])
