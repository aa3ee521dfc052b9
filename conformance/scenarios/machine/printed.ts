import type { SshRecord } from '../../transcript/records.ts';

const USUAL_WORDS = ['berth-conformance-begin', 'berth-conformance-end'] as const;
const MARKED = /^echo (\S+) && .* && echo (\S+)$/s;

/** The command, with words around what it prints: a login may print more, such as a greeting from `.bashrc`. */
export function marked(command: string, [begin, end]: readonly [string, string] = USUAL_WORDS): string {
  return `echo ${begin} && ${command} && echo ${end}`;
}

/** What a marked command printed. Undefined if the login printed no markers. */
export function printedBy({
  command,
  stdout = '',
}: Pick<SshRecord, 'command' | 'stdout'>): string | undefined {
  const [, begin = '', end = ''] = MARKED.exec(command) ?? ['', ...USUAL_WORDS];
  const from = stdout.indexOf(`${begin}\n`);
  const to = stdout.lastIndexOf(end);
  return from < 0 || to < from ? undefined : stdout.slice(from + begin.length + 1, to);
}

const PART = 'berth-conformance:';

/** One command line of several commands, with the name of each before what it prints. One that fails does not end it. */
export function script(commands: Readonly<Record<string, string>>): string {
  return Object.entries(commands)
    .map(([name, command]) => `echo ${PART}${name}; ${command}`)
    .concat(`echo ${PART}end`)
    .join('; ');
}

/** What each command of a script printed, by its name. A name is missing if the output does not come to it. */
export function partsOf({ stdout = '' }: Pick<SshRecord, 'stdout'>): ReadonlyMap<string, string> {
  const [, ...pieces] = stdout.split(PART);
  return new Map(
    pieces.map((piece) => {
      const end = piece.indexOf('\n');
      return [piece.slice(0, end).trim(), piece.slice(end + 1)];
    }),
  );
}
