import type { EndRecord, RunRecord } from '../transcript/records.ts';
import type { Judged } from '../verdict/judge.ts';
import type { Counts, Outcome } from '../verdict/outcome.ts';
import { cut } from './excerpt.ts';
import { plural } from './words.ts';

const MAX_IDS = 5;
const MAX_DETAIL_CHARACTERS = 300;

/** The reason for an outcome, in one sentence without its full stop. */
export function whyOf(
  outcome: Outcome,
  run: RunRecord,
  end: EndRecord | undefined,
  judged: readonly Judged[],
  counts: Counts,
): string {
  const made = counts.pass + counts.fail + counts.warn;
  const untested = judged.filter(({ verdict }) => verdict === 'not_tested');
  switch (outcome) {
    case 'NON-CONFORMANT': {
      const more = untested.length === 0 ? '' : `, and ${untested.length} more could not be made`;
      return `${counts.fail} of ${plural(made, 'check')} failed${more}`;
    }
    case 'CONFORMANT': {
      const warnings = counts.warn === 0 ? '' : `, with ${plural(counts.warn, 'warning')}`;
      return `all ${plural(made, 'check')} of level ${run.level} passed${warnings}`;
    }
    case 'INCOMPLETE':
      return [
        endedEarly(end),
        selection(run, made, judged.length),
        untestedChecks(untested),
        nothingPassed(counts),
      ]
        .filter((part) => part !== undefined)
        .join('; ');
  }
}

function endedEarly(end: EndRecord | undefined): string | undefined {
  if (end === undefined) return 'the transcript ends in the middle of the run';
  if (end.reason === 'completed') return undefined;
  // The detail of a fault is a stack trace; its first line says what happened.
  const [detail = ''] = (end.detail ?? '').split('\n');
  const why = {
    interrupted: 'the run was interrupted',
    'out of time': 'the run was out of time',
    kept: 'the run stopped at the first failure, as --keep-on-failure asked',
    'target lost': 'the target accepted no connections any more',
    'fault of the suite': 'the run met a fault of the suite, which says nothing about the target',
    'ledger not written': 'the run ended where nothing more could be written down of what it makes',
  }[end.reason];
  return detail === '' || end.reason === 'interrupted' || end.reason === 'kept'
    ? why
    : `${why}: ${cut(detail, MAX_DETAIL_CHARACTERS)}`;
}

function selection({ only, settings }: RunRecord, made: number, all: number): string | undefined {
  if (settings.plain === true)
    return `${made} of ${plural(all, 'check')} made: a plain run leaves out what no ordinary client sends (a run without --plain tests it)`;
  return only === undefined
    ? undefined
    : `only ${made} of ${plural(all, 'check')} made, as selected (--only, --rerun-failed)`;
}

function untestedChecks(untested: readonly Judged[]): string | undefined {
  const ids = untested.map(({ requirement }) => requirement.id);
  if (ids.length === 0) return undefined;
  const reasons = Map.groupBy(untested, ({ ruling }) => ('reason' in ruling ? ruling.reason : ''));
  const [reason, of] = [...reasons].reduce((a, b) => (b[1].length > a[1].length ? b : a));
  if (of.length > MAX_IDS)
    return `${plural(ids.length, 'check')} could not be made, ${of.length} of them because ${cut(reason, MAX_DETAIL_CHARACTERS)}`;
  const more = ids.length > MAX_IDS ? ` and ${ids.length - MAX_IDS} more` : '';
  return `${plural(ids.length, 'check')} could not be made: ${ids.slice(0, MAX_IDS).join(', ')}${more}`;
}

function nothingPassed({ pass, warn }: Counts): string | undefined {
  if (pass > 0) return undefined;
  return warn > 0 ? 'no check passed' : 'no check was made';
}
