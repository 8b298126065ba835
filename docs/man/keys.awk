# The keys of a configuration file, from the table that --reference prints, as entries of a manual page.
# A row: | `key` | type | default | range | meaning |
function plain(text) {
    gsub(/\\\|/, "|", text)
    gsub(/\\/, "\\e", text)
    gsub(/`/, "", text)
    if (text ~ /^[.']/) {
        text = "\\&" text
    }
    return text
}
BEGIN {
    FS = " [|] "
}
/^[|] `/ {
    key = $1
    sub(/^[|] /, "", key)
    type = $2
    preset = $3
    range = $4
    meaning = $5
    for (i = 6; i <= NF; i++) {
        meaning = meaning " | " $i
    }
    sub(/ [|]$/, "", meaning)
    gsub(/^ +| +$/, "", preset)
    gsub(/^ +| +$/, "", range)
    print ".TP\n\\fB" plain(key) "\\fR (" plain(type) (preset == "required" ? ", required" : "") ")"
    print plain(meaning) "."
    if (preset != "" && preset != "required") {
        print "Default: " plain(preset) "."
    }
    if (range != "") {
        print "Allowed: " plain(range) "."
    }
}
