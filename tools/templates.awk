# Prints files as a C source of arrays of lines: of NAME.EXT the array fl_template_NAME (libfl/program/template.h).
BEGIN { print "#include \"libfl/program/template.h\"\n\n#include \"" header "\"\n" }
FNR == 1 {
  if (NR > 1) print "    NULL};"
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.[a-z]*$/, "", name)
  printf "const char *const fl_template_%s[] = {\n", name
}
{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "    \"%s\",\n", $0 }
END { print "    NULL};" }
