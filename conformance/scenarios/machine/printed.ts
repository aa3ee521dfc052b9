import type { SshRecord } from '../../transcript/records.ts';

const BEGIN = 'berth-conformance-begin';
const END = 'berth-conformance-end';

/** The command, with markers around what it prints: a login may print more, such as a greeting from `.bashrc`. */
export function marked(command: string): string {
  return `echo ${BEGIN} && ${command} && echo ${END}`;
}

/** What a marked command printed. Undefined if the login printed no markers. */
export function printedBy({ stdout = '' }: Pick<SshRecord, 'stdout'>): string | undefined {
  const from = stdout.indexOf(`${BEGIN}\n`);
  const to = stdout.lastIndexOf(END);
  return from < 0 || to < from ? undefined : stdout.slice(from + BEGIN.length + 1, to);
}
