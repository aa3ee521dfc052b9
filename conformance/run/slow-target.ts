import { FAST_MS, polledReadChecks, roundTripMs } from '../checks/instances/polled-read.ts';
import { Evidence } from '../evidence/evidence.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import type { TranscriptRecord } from '../transcript/records.ts';

/** A target is slow once its reads have taken this much longer than they may. */
const SLOW_AFTER_MS = 30_000;
/** The scenarios that show whether polled reads are too slow. */
const FIRST = ['create', 'boot', 'online', 'observe'];

/** Takes the scenarios from the queue: of a slow target those first that show whether its polled reads are too slow. */
export function* inTurn(queue: Scenario[], records: readonly TranscriptRecord[]): Generator<Scenario> {
  while (queue.length > 0) {
    const index = isSlow(records) ? queue.findIndex(({ id }) => FIRST.includes(id)) : 0;
    yield* queue.splice(Math.max(index, 0), 1);
  }
}

/**
 * Why a run of a slow target need not go on: the polled read has failed for good. The rest would take many minutes and
 * could not change the outcome.
 */
export function whyDecided(records: readonly TranscriptRecord[]): string | undefined {
  if (!isSlow(records)) return undefined;
  const evidence = new Evidence(records);
  const check = polledReadChecks.find(({ id }) => id === 'LAT-GET-001');
  const isSelected = evidence.run.only?.includes('LAT-GET-001') ?? true;
  if (!isSelected || check?.judge(evidence).verdict !== 'fail') return undefined;
  return 'the target answers too slowly (LAT-GET-001) to be asked for the rest: mend that first';
}

function isSlow(records: readonly TranscriptRecord[]): boolean {
  const [run] = records;
  if (run?.kind !== 'run') return false;
  const roundTrip = roundTripMs(run);
  const beyond = records.map((record) =>
    record.kind === 'exchange' && record.request.method === 'GET' && record.answer !== undefined
      ? Math.max(record.answer.firstByteMs - roundTrip - FAST_MS, 0)
      : 0,
  );
  return beyond.reduce((sum, ms) => sum + ms, 0) > SLOW_AFTER_MS;
}
