import { TargetLost } from '../http/reachability.ts';
import { BudgetError } from '../resources/budget.ts';
import { LedgerError } from '../resources/ledger-file.ts';
import { giveUp } from '../scenarios/alone.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import type { EndRecord, TranscriptRecord } from '../transcript/records.ts';
import { SuiteFault } from '../transcript/transcript.ts';
import type { RunOptions, RunParts } from './options.ts';
import { type Prepared, prepare } from './prepare.ts';
import { inTurn, whyDecided } from './slow-target.ts';

const MS_PER_MINUTE = 60_000;

/**
 * Runs the scenarios against the target, destroys what they created, and returns the records. On timeout or an
 * aborted signal it ends early, and still cleans up.
 */
export async function run(
  options: RunOptions,
  parts: RunParts,
  scenarios: readonly Scenario[],
): Promise<readonly TranscriptRecord[]> {
  const outOfTime = new AbortController();
  const done = new AbortController();
  const signal = AbortSignal.any([outOfTime.signal, ...(parts.signal === undefined ? [] : [parts.signal])]);
  parts.clock
    .sleep(options.settings.maxMinutes * MS_PER_MINUTE, done.signal)
    .then(() => outOfTime.abort(new Error('the time of --max-minutes is over')))
    .catch(() => {});
  const prepared = await prepare(options, parts, signal);
  parts.onEvent?.({ event: 'begun', runId: parts.runId, scenarios: scenarios.length });
  let end = await runScenarios(prepared, parts, scenarios, signal);
  if (outOfTime.signal.aborted && end.reason === 'interrupted')
    end = { reason: 'out of time', detail: `--max-minutes ${options.settings.maxMinutes} are over` };
  if (end.reason !== 'kept')
    await prepared.cleanUp().catch((error: unknown) => {
      end = faultOf(error);
    });
  done.abort();
  prepared.transcript.add({ kind: 'end', at: prepared.client.now(), ...end });
  parts.onEvent?.({ event: 'ended', reason: end.reason });
  return prepared.transcript.records;
}

type End = Pick<EndRecord, 'reason' | 'detail'>;

async function runScenarios(
  { session, transcript, lookForStrays }: Prepared,
  parts: RunParts,
  scenarios: readonly Scenario[],
  signal: AbortSignal,
): Promise<End> {
  const queue = [...scenarios];
  for (const scenario of inTurn(queue, transcript.records)) {
    parts.onEvent?.({
      event: 'scenario',
      id: scenario.id,
      title: scenario.title,
      index: scenarios.length - queue.length,
      of: scenarios.length,
    });
    try {
      signal.throwIfAborted();
      session.isBesideFirst = scenario.isBesideFirst === true;
      await scenario.run(session);
      await lookForStrays(signal);
      if (parts.mayKeep?.(transcript.records)) return { reason: 'kept', detail: `after ${scenario.id}` };
      const why = whyDecided(transcript.records);
      if (why !== undefined)
        session.skip(
          queue.splice(0).map(({ id }) => id),
          why,
        );
    } catch (error) {
      if (signal.reason instanceof SuiteFault) return faultOf(signal.reason.cause ?? signal.reason);
      if (error instanceof TargetLost) return { reason: 'target lost', detail: error.message };
      if (signal.aborted) return { reason: 'interrupted', detail: 'it was interrupted' };
      if (!(error instanceof BudgetError)) return faultOf(error);
      giveUp(session, scenario, error);
    }
  }
  return { reason: 'completed' };
}

function faultOf(error: unknown): End {
  if (error instanceof LedgerError) return { reason: 'ledger not written', detail: error.message };
  return {
    reason: 'fault of the suite',
    detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}
