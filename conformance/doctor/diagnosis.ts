/**
 * The result of one check of the set-up. `config`: the run cannot start, which says nothing about the target. `note`:
 * worth knowing; the run continues.
 */
export interface Diagnosis {
  /** The subject, e.g. `TLS`. */
  subject: string;
  state: 'ok' | 'note' | 'config';
  /** The finding, and its place. */
  text: string;
  /** The remedy. */
  fix?: string;
}

export function ok(subject: string, text: string): Diagnosis {
  return { subject, state: 'ok', text };
}

export function note(subject: string, text: string, fix?: string): Diagnosis {
  return { subject, state: 'note', text, ...(fix !== undefined && { fix }) };
}

export function config(subject: string, text: string, fix: string): Diagnosis {
  return { subject, state: 'config', text, fix };
}

/** The diagnosis and its fix as one sentence. */
function toSentence(diagnosis: Diagnosis): string {
  const sentence = toClause(diagnosis);
  return sentence.endsWith('?') ? sentence : `${sentence}.`;
}

/** The sentence without its full stop. */
export function toClause({ text, fix }: Diagnosis): string {
  return fix === undefined ? text : `${text}: ${fix}`;
}

/** One line per diagnosis: state, subject, finding and fix. */
export function toLines(diagnoses: readonly Diagnosis[]): string {
  const width = Math.max(...diagnoses.map(({ subject }) => subject.length), 0);
  return diagnoses
    .map((each) => `${WORDS[each.state].padEnd(6)}  ${each.subject.padEnd(width)}  ${toSentence(each)}\n`)
    .join('');
}

const WORDS: Readonly<Record<Diagnosis['state'], string>> = { ok: 'OK', note: 'NOTE', config: 'CONFIG' };
