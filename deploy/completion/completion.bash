# shellcheck shell=bash
# Completion of @program@ for bash. It knows what "@program@ --help" says, and nothing else.

_fl_options_of() { # help text: "--option METAVARIABLE" a line
  sed -nE 's/^ +((-[a-zA-Z]), )?(--[a-z][a-z-]*)( ([A-Z][A-Z=|.]*))?( .*)?$/\3 \5\n\2 \5/p' <<<"$1" | grep '^-'
}
_fl_commands_of() { # help text: the words of its list of commands
  sed -nE '/^[Cc]ommands:$/,/^$/s/^  ([a-z][a-z-]*) .*/\1/p' <<<"$1" | sort -u
}

_fl_complete() {
  local PATH=$PATH:/usr/sbin:/sbin
  local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local help commands command='' i kind
  COMPREPLY=()
  help=$("$program" --help 2>/dev/null) || return 0
  commands=$(_fl_commands_of "$help")
  for ((i = 1; i < COMP_CWORD; i++)); do
    if grep -qxF -- "${COMP_WORDS[i]}" <<<"$commands"; then
      command=${COMP_WORDS[i]}
      help=$("$program" "$command" --help 2>/dev/null) || return 0
      break
    fi
  done
  kind=$(_fl_options_of "$help" | sed -n "s/^$before //p" | head -n 1)
  if [[ $before != -* || -z $kind ]]; then
    if [[ $word == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$(_fl_options_of "$help" | cut -d ' ' -f 1 | sort -u)" -- "$word")
      return 0
    elif [[ -n $commands && -z $command ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
      return 0
    fi
    kind=FILE
  fi
  case $kind in
  DIR) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
  FILE | PATH) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  *) return 0 ;;
  esac
  compopt -o filenames 2>/dev/null || return 0
}
complete -F _fl_complete @program@
