# What a program's --help says, as the sections of a manual page. The texts keep to one form: "usage: …"; paragraphs;
# "word:" alone on a line begins a list of "  item  what it is", whose descriptions share a column; the last
# line tells the exit codes. -v part=1 makes it a section of the page of another program: the help of a command.
function plain(text) {
    gsub(/\\/, "\\e", text)
    # A list without blanks may be broken after its commas.
    if (text ~ /,[^ ]/) {
        gsub(/,/, ",\\:", text)
    }
    if (text ~ /^[.']/) {
        text = "\\&" text
    }
    return text
}
function bold(text) {
    text = plain(text)
    gsub(/-/, "\\-", text)
    return "\\fB" text "\\fR"
}
# "-o, --output FILE": what is typed in bold, what stands for something in italics.
function item(text,    n, words, i, out) {
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) {
        if (words[i] ~ /^\[?-/ || (i == 1 && words[i] ~ /^[a-z]/)) {
            out = out (i > 1 ? " " : "") bold(words[i])
        } else if (words[i] ~ /^[A-Z|.|=]+,?$/) {
            out = out (i > 1 ? " " : "") "\\fI" plain(words[i]) "\\fR"
        } else {
            out = out (i > 1 ? " " : "") plain(words[i])
        }
    }
    return out
}
function head(text) {
    print (part ? ".PP\n" bold(text) : ".SH \"" toupper(text) "\"")
}
function end_paragraph() {
    if (paragraph != "") {
        if (!described && !part) {
            print ".SH DESCRIPTION"
            described = 1
        }
        print ".PP"
        print plain(paragraph)
        paragraph = ""
    }
    fresh = 1
}
# Where the description begins: after two blanks, or in the column of the items before, or after a colon.
function described_at(line,    rest, at) {
    rest = line
    sub(/^ +/, "", rest)
    at = length(line) - length(rest)
    if (match(rest, /  +/)) {
        column = at + RSTART + RLENGTH
        return column
    }
    if (column && substr(line, column - 1, 1) == " " && substr(line, column, 1) != " ") {
        return column
    }
    if (match(rest, /: /)) {
        return at + RSTART + RLENGTH
    }
    return 0
}
function exit_codes(text,    n, codes, i, at) {
    sub(/^[Ee]xit (codes|status): /, "", text)
    sub(/\.$/, "", text)
    print (part ? ".PP\n\\fBExit status\\fR" : ".SH \"EXIT STATUS\"")
    n = split(text, codes, ", ")
    for (i = 1; i <= n; i++) {
        at = index(codes[i], " ")
        if (at == 0 || substr(codes[i], 1, at - 1) !~ /^[0-9]+$/) {
            print plain(", " codes[i])
            continue
        }
        print ".TP\n" bold(substr(codes[i], 1, at - 1))
        print plain(substr(codes[i], at + 1))
    }
}
function flush_exit() {
    if (exits != "") {
        exit_codes(exits)
        exits = ""
    }
}
/^[Uu]sage: / {
    sub(/^[Uu]sage: /, "")
    usage = 1
    print (part ? ".SS \"" command "\"" : ".SH SYNOPSIS")
    print ".nf"
    print bold($1) substr(plain($0), length($1) + 1)
    next
}
usage && /^ +/ {
    sub(/^ +/, "")
    print plain($0)
    next
}
usage {
    usage = 0
    print ".fi"
}
/^ *$/ {
    end_paragraph()
    flush_exit()
    in_item = 0
    next
}
/^[Ee]xit (codes|status): / {
    end_paragraph()
    exits = $0
    next
}
exits != "" && /^ / {
    sub(/^ +/, " ")
    exits = exits $0
    next
}
/^[A-Za-z][a-z ]*:$/ && paragraph == "" {
    flush_exit()
    end_paragraph()
    head(substr($0, 1, length($0) - 1))
    in_item = 0
    column = 0
    next
}
/^  / {
    at = described_at($0)
    indent = match($0, /[^ ]/)
    if (indent > 8 && in_item && (column == 0 || indent >= column)) {
        sub(/^ +/, "")
        print plain($0)
        next
    }
    flush = paragraph
    end_paragraph()
    text = $0
    sub(/^ +/, "", text)
    if (at == 0) {
        print (flush != "" || fresh ? ".PP\n" : "") plain(text)
        next
    }
    name = substr($0, indent, at - indent)
    sub(/:? +$/, "", name)
    print ".TP\n" item(name)
    print plain(substr($0, at))
    in_item = 1
    next
}
{
    flush_exit()
    in_item = 0
    paragraph = paragraph (paragraph == "" ? "" : "\n") $0
}
END {
    if (usage) {
        print ".fi"
    }
    end_paragraph()
    flush_exit()
}
