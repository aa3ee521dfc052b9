import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadBerth } from '../../test/documents/command-line.ts';
import { toCompletionScript } from './completion-command.ts';

/**
 * Calls the completion function for each line as the shell does at TAB. `|` separates the words, and the last one is at
 * the cursor. Prints the candidates of each line on one line. Builtins that act on a terminal are replaced by printing
 * ones.
 */
const CALLERS = {
  bash: `
compopt() { COMPREPLY=(FILES); }
for line in "$@"; do
  IFS='|' read -ra COMP_WORDS <<< "$line."
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  COMP_WORDS[COMP_CWORD]="\${COMP_WORDS[COMP_CWORD]%.}"
  current="\${COMP_WORDS[COMP_CWORD]}"
  [ "$current" != = ] || current=''
  _berth berth "$current"
  echo "\${COMPREPLY[*]}"
done`,
  zsh: `
compset() { PREFIX=\${PREFIX#\${~2}} }
compadd() { shift; print -r -- \${(M)@:#\${PREFIX}*} }
_files() { print FILES }
for line in "$@"; do
  words=("\${(@s:|:)line}")
  CURRENT=$#words
  PREFIX=$words[CURRENT]
  _berth
done`,
} as const;

/** Tests the output of `berth completion` in a real shell. */
export function describeCompletion(shell: keyof typeof CALLERS): void {
  const folder = mkdtempSync(join(tmpdir(), 'berth-completion-'));
  let script: string;
  beforeAll(async () => {
    script = toCompletionScript(await loadBerth(), shell);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Returns the candidates of each line. */
  function complete(...lines: readonly string[]): string[] {
    const before = shell === 'zsh' ? 'compdef() { : }\n' : '';
    const args = [...(shell === 'zsh' ? ['-f'] : ['--norc']), '-c', `${before}${script}${CALLERS[shell]}`];
    const { stdout, stderr } = spawnSync(shell, [...args, shell, ...lines], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return stdout.split('\n').slice(0, -1);
  }

  describe(`in ${shell}`, () => {
    const cases: readonly (readonly [line: string, candidates: string])[] = [
      ['berth|ins', 'instances'],
      ['berth|instances|', 'ls show events retry release rm help'],
      ['berth|instances|re', 'retry release remove'],
      ['berth|marketplace|prov', 'providers'],
      ['berth|marketplace|--config|m.yaml|providers|', 'ls check health help'],
      ['berth|conformance|do', 'doctor'],
      ['berth|help|instances|ev', 'events'],
      // Flags of the verb, also if the line has its alias or omits it.
      ['berth|instances|ls|--li', '--limit'],
      ['berth|instances|list|--li', '--limit'],
      ['berth|instances|show|--li', ''],
      ['berth|capacity|--out', '--output'],
      ['berth|conformance|--junit', '--junit'],
      ['berth|status|-o|json|--data', '--database'],
      // Values of flags and arguments.
      ['berth|keys|ls|-o|', 'table json yaml'],
      ['berth|keys|ls|--output|y', 'yaml'],
      ['berth|instances|ls|--status|ON', 'ONLINE'],
      ['berth|conformance|doctor|--level|', 'read-only lifecycle full'],
      ['berth|cordon|', 'region offer platform host'],
      ['berth|cordon|region|', ''],
      ['berth|completion|', 'bash zsh'],
      ['berth|status|', '--database --config -o --output --json -h --help'],
      ['berth|serve|--port|', ''],
      ['berth|serve|--config|', 'FILES'],
      ['berth|backup|', 'FILES'],
      ['berth|driver|test|--units|4|', 'FILES'],
      ['berth|driver|test|./driver|--on', 'FILES'],
      // `--json` takes a file in the suite, and is a switch elsewhere.
      ['berth|conformance|judge|--json|', 'FILES'],
      ['berth|keys|ls|--json|--lim', '--limit'],
      // `--` is followed by neither a flag nor a verb.
      ['berth|--|', ''],
      ['berth|instances|ls|--|--li', ''],
    ];

    it('completes nouns, verbs, flags, values and files; nothing after `--`', () => {
      const found = complete(...cases.map(([line]) => line));
      expect(cases.map(([line], index) => [line, found[index]])).toEqual(cases);
    });

    it('completes the value after `=`', () => {
      const lines = shell === 'bash' ? ['--output|=|', '--output|=|y'] : ['--output=', '--output=y'];
      const [all, some] = complete(...lines.map((line) => `berth|keys|ls|${line}`));
      expect([all, some]).toEqual(['table json yaml', 'yaml']);
    });

    it('evaluates no word', () => {
      const evil = [
        '$(touch hit)',
        '`touch hit`',
        "';touch hit;'",
        '"$(touch hit)',
        'a[$(touch hit)]',
        '*',
        '%n',
      ];
      const lines = evil.flatMap((word) => [
        `berth|${word}`,
        `berth|${word}|`,
        `berth|keys|ls|-o|${word}`,
        `berth|keys|ls|--output=${word}`,
        `berth|keys|--${word}|ls|`,
      ]);
      complete(...lines);
      expect(existsSync(join(folder, 'hit'))).toBe(false);
      // The script's tables contain only plain words.
      for (const [, answer] of script.matchAll(/ answer='(.*)' ;;/g)) expect(answer).toMatch(/^[\w +-]*$/);
    });
  });
}
