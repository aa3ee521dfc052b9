import { Argument, Command } from 'commander';
import { printText } from '../runtime/print.ts';
import { toCompletionTable } from './completion-table.ts';

const shells = ['bash', 'zsh'] as const;

/** `berth completion`: prints a shell script that contains the whole command tree and starts no process at TAB. */
export function completionCommand(): Command {
  return new Command('completion')
    .addArgument(new Argument('<shell>', 'the shell to complete in').choices(shells))
    .action((shell: (typeof shells)[number], _flags: object, command: Command) => {
      if (command.parent !== null) printText(toCompletionScript(command.parent, shell));
    });
}

/** @param program All of `berth`, with every command loaded. */
export function toCompletionScript(program: Command, shell: (typeof shells)[number]): string {
  const table = Object.entries(toCompletionTable(program)).map(
    ([name, branches]) => `_berth_${name}() {\n  answer=''\n  case "$1" in\n${branches}\n  esac\n}\n`,
  );
  return [shell === 'zsh' ? '#compdef berth\n' : '', ...table, FIND, shell === 'zsh' ? ZSH : BASH].join('');
}

/**
 * The shell function that finds candidates. It compares the typed text and never evaluates it. Bash splits words at `=`
 * and `:`.
 */
const FIND = `
# Sets found to what may come next: words, or FILES. $1 is the word at the cursor; the others precede it.
_berth_find() {
  local current="$1" at=berth word='' value='' names='' count=0
  found=''
  shift
  for word in "$@"; do
    case "$word" in
      =) continue ;;
      :|::) value=ANY; continue ;;
    esac
    if [ -n "$value" ]; then value=''; continue; fi
    case "$word" in
      --) return ;;
      --*=*) ;;
      -*) _berth_values "$at $word"; value="$answer" ;;
      *)
        _berth_commands "$at"
        names=" \${answer%% + *} "
        case "$names" in
          *" $word "*) ;;
          *) _berth_names "$at $word"; [ -z "$answer" ] || word="$answer" ;;
        esac
        case "$names" in
          *" $word "*) [ "$word" = help ] || at="$at $word" ;;
          *)
            _berth_values "$at #$count"
            if [ "$answer" = PROGRAM ]; then found=FILES; return; fi
            count=$((count + 1))
            ;;
        esac
        ;;
    esac
  done
  if [ -n "$value" ]; then answer="$value"
  else
    case "$current" in
      --*=*) _berth_values "$at \${current%%=*}" ;;
      -*) _berth_flags "$at" ;;
      *)
        _berth_commands "$at"
        [ -n "$current" ] || answer="\${answer%% + *}"
        [ -n "$answer" ] || _berth_values "$at #$count"
        [ -n "$answer" ] || _berth_values "$at #*"
        [ -n "$answer" ] || _berth_flags "$at"
        ;;
    esac
  fi
  case "$answer" in
    ANY) ;;
    PROGRAM) found=FILES ;;
    *) found="$answer" ;;
  esac
}
`;

const BASH = `
_berth() {
  local IFS=' ' found='' answer='' prefix='' word='' current="$2"
  COMPREPLY=()
  _berth_find "$current" "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  if [ "$found" = FILES ]; then compopt -o default 2>/dev/null; return; fi
  case "$current" in
    --*=*) prefix="\${current%%=*}="; current="\${current#*=}" ;;
  esac
  for word in $found; do
    case "$word" in
      "$current"*) COMPREPLY+=("$prefix$word") ;;
    esac
  done
}
complete -F _berth berth
`;

/**
 * The script works in two ways: sourcing it defines the function; in `fpath`, zsh loads it at the function's first
 * call.
 */
const ZSH = `
_berth() {
  local IFS=' ' found='' answer=''
  _berth_find "$PREFIX" "\${(@)words[2,CURRENT-1]}"
  compset -P '--*='
  if [[ $found == FILES ]]; then _files; else compadd -- \${=found}; fi
}
if [[ $funcstack[1] == _berth ]]; then
  _berth
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _berth berth
fi
`;
