import { identityOf } from '../../http/plain-identity.ts';
import { isOpen, keyFingerprintOf, Ledger } from '../../resources/ledger.ts';
import { sweepLedger } from '../../resources/sweep.ts';
import type { OpenRun } from '../state/state.ts';
import { StateLedger } from '../state/state-ledger.ts';
import type { ProbeParts } from './probe.ts';

/** What is left of earlier runs of a provider. */
export interface SweptRuns {
  /** Resources that may still exist. */
  left: number;
  /** Why they could not be destroyed. */
  why: string[];
}

/** Destroys what earlier runs left, and nothing else. */
export async function sweepRuns(parts: ProbeParts): Promise<SweptRuns> {
  const swept: SweptRuns = { left: 0, why: [] };
  for (const run of await parts.state.openRuns(parts.provider.name)) {
    const { left, why } = await sweepRun(parts, run);
    swept.left += left;
    if (why !== undefined) swept.why.push(why);
  }
  return swept;
}

async function sweepRun(parts: ProbeParts, run: OpenRun): Promise<{ left: number; why?: string }> {
  const { config, provider, baseUrl, apiKey, state, transport, clock, abandon } = parts;
  const { runId, plain } = run;
  const open = run.entries.filter(isOpen);
  const others = open.map(({ name, id }) => id ?? name).join(', ');
  if (run.baseUrl !== baseUrl)
    return {
      left: open.length,
      why: `${others} may be running at ${run.baseUrl}, which is no longer its base_url`,
    };
  const isKeyOfRun = run.keyPrint === undefined || run.keyPrint === keyFingerprintOf(runId, { apiKey });
  if (!isKeyOfRun && !provider.accepts_other_key)
    return {
      left: open.length,
      why: `${others} may be running, and the API key is not that of their run: use that key again, or set accepts_other_key where the new one is of the same account`,
    };
  const file = new StateLedger(state, { provider: provider.name, runId }, clock, abandon);
  const names = identityOf(runId, plain);
  const ledger = new Ledger({ file, runId, names, wall: () => clock.wall() }, run.entries);
  const stored = { runId, baseUrl, unreadable: [], ...(plain !== undefined && { plain }) };
  const swept = await sweepLedger(stored, ledger, {
    apiKey,
    transport,
    clock,
    pollIntervalMs: config.poll_interval_ms,
    patienceMs: config.ready_timeout_s * 1000,
    // A stop lets it finish.
    signal: abandon,
    absent: [],
    onWait: () => {},
  });
  await file.settled();
  const left = swept.result === 'busy' ? open.length : swept.left.length;
  if (left === 0) return { left };
  const notes = ledger.open.map(({ name, id, note }) => `${id ?? name}: ${note ?? 'not confirmed gone'}`);
  return { left, why: swept.result === 'swept' ? notes.join('; ') : swept.why };
}
