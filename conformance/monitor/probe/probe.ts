import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { sha256 } from '../../certificate/digest.ts';
import { CHECKS } from '../../checks/index.ts';
import { loadRequirements } from '../../contract/requirements.ts';
import type { Clock } from '../../http/clock.ts';
import type { Transport } from '../../http/transport.ts';
import { Ledger } from '../../resources/ledger.ts';
import { openLedgerFile, reopenLedgerFile } from '../../resources/ledger-file.ts';
import type { RunEvent } from '../../run/options.ts';
import { run } from '../../run/run.ts';
import { SCENARIOS } from '../../scenarios/index.ts';
import { plainScenario } from '../../scenarios/plain/plain.ts';
import type { Scenario } from '../../scenarios/scenario.ts';
import type { SshClient } from '../../ssh/ssh-client.ts';
import { idOf, numberField } from '../../text/json.ts';
import { Draws } from '../../transcript/draws.ts';
import { listOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange, Level, RunSettings, TranscriptRecord } from '../../transcript/records.ts';
import { judge } from '../../verdict/judge.ts';
import type { MonitorConfig, ProviderConfig } from '../config.ts';
import type { StoredProbe } from '../records.ts';
import { dayOf } from '../spending.ts';
import type { GoneInstance, State } from '../state.ts';
import { MONITOR_REQUIREMENTS, monitorChecks } from './checks.ts';
import { markersOf } from './remnants.ts';
import type { Rental } from './rental.ts';
import { summaryOf } from './summary.ts';
import { monitorTenant } from './tenant.ts';

/** The scenarios that only a run of the suite has. */
const OTHERS = SCENARIOS.map(({ id }) => id);
const READ_MINUTES = 20;
/** A machine that was read as gone a moment ago may be in a list that lags. */
const LAG_MS = 60_000;
/** Of a provider, on one day. */
const MOST_TRANSCRIPTS = 20;
const MOST_BODY_CHARACTERS = 64 * 1024;

export interface ProbeParts {
  config: MonitorConfig;
  provider: ProviderConfig;
  baseUrl: string;
  apiKey: string;
  state: State;
  /** The secret of the state. */
  seed: string;
  transport: Transport;
  ssh: SshClient;
  clock: Clock;
  /** Ends the probe, but not its clean-up. */
  signal: AbortSignal;
  /** Ends the clean-up too. */
  abandon: AbortSignal;
}

/** Reads what the provider offers, as a marketplace does. It creates nothing. */
export function readProbe(parts: ProbeParts): Promise<StoredProbe> {
  const settings = { maxCostUsd: 0, maxMinutes: READ_MINUTES };
  return probe('read', parts, 'read-only', settings, () => plainScenario('read-only', OTHERS));
}

/** Rents a machine, as a marketplace does for its user. */
export function machineProbe(parts: ProbeParts, rental: Rental): Promise<StoredProbe> {
  const { provider, state, seed, clock } = parts;
  const { offer, region, maxCostUsd, maxMinutes, useMs, reserveMs, isPaused } = rental;
  const settings = { offer, region, maxCostUsd, maxMinutes };
  return probe('machine', parts, 'lifecycle', settings, (runId, priceOf) =>
    plainScenario(
      'lifecycle',
      OTHERS,
      monitorTenant({
        useMs,
        isPaused,
        reserveMs,
        wall: () => clock.wall(),
        priceOf,
        markers: markersOf(seed, provider.name, randomBytes(16).toString('hex')),
        onMarker: (marker) => state.addMarker(provider.name, runId, marker),
      }),
    ),
  );
}

type PriceOf = (id: string) => number | undefined;

/** Keeps the highest price that a read of each instance shows. */
function notePrice(prices: Map<string, number>, event: RunEvent): void {
  if (event.event !== 'record' || event.record.kind !== 'exchange') return;
  const shown = successOf(event.record);
  const [id, price] = [idOf(shown), numberField(shown, 'price_per_hour')];
  if (id !== undefined && price !== undefined) prices.set(id, Math.max(prices.get(id) ?? 0, price));
}

async function probe(
  kind: StoredProbe['kind'],
  parts: ProbeParts,
  level: Level,
  chosen: Pick<RunSettings, 'maxCostUsd' | 'maxMinutes'> & Partial<RunSettings>,
  scenarioOf: (runId: string, priceOf: PriceOf) => Scenario,
): Promise<StoredProbe> {
  const { config, provider, baseUrl, apiKey, state, seed, transport, ssh, clock, signal, abandon } = parts;
  const runId = randomBytes(6).toString('hex');
  const startedAt = clock.wall();
  const gone = state.goneInstances(provider.name);
  const settledGone = [...gone].filter(([, { entry }]) => (entry.goneAt ?? startedAt) < startedAt - LAG_MS);
  const earlier = state.markers(provider.name);
  const ledgerFile = openLedgerFile(state.ledgersOf(provider.name), runId);
  const prices = new Map<string, number>();
  const records = await run(
    {
      baseUrl,
      apiKey,
      level,
      settings: {
        ...chosen,
        pollIntervalMs: config.poll_interval_ms,
        readyTimeoutMs: config.ready_timeout_s * 1000,
        plain: true,
        installation: provider.installation ?? new Draws(seed).hex(`${provider.name}/installation`, 8),
        ...(provider.allow_private && { allowPrivate: true }),
      },
    },
    {
      runId,
      draws: new Draws(randomBytes(16).toString('hex')),
      transport,
      ssh,
      clock,
      ledgerFile,
      signal,
      abandon,
      onEvent: (event) => notePrice(prices, event),
    },
    [scenarioOf(runId, (id) => prices.get(id))],
  );
  ledgerFile.close();
  const entries = ledgerFile.entries();
  if (entries.length === 0) rmSync(ledgerFile.path);
  const checks = monitorChecks({
    goneIds: new Set(settledGone.map(([id]) => id)),
    earlierMarkers: new Set([...earlier].flatMap(([marker, of]) => (of === runId ? [] : [marker]))),
    markers: markersOf(seed, provider.name, ''),
  });
  const judged = judge(
    withoutOutages(records),
    [...loadRequirements().rows, ...MONITOR_REQUIREMENTS],
    [...CHECKS, ...checks],
  );
  const summary = summaryOf({ records, judged, entries, wallMs: clock.wall() });
  const hasFault = summary.failed.length + summary.warned.length > 0;
  const text = hasFault ? toStoredText(records) : '';
  const transcriptSha256 = sha256(text);
  const isKept = hasFault && state.countTranscripts(provider.name, dayOf(startedAt)) < MOST_TRANSCRIPTS;
  if (isKept) state.addTranscript(provider.name, transcriptSha256, startedAt, text);
  const stored: StoredProbe = {
    runId,
    provider: provider.name,
    kind,
    startedAt,
    summary: { ...summary, ...(isKept && { transcriptSha256 }) },
  };
  state.addProbe(stored);
  reopenListed(parts, records, settledGone);
  return stored;
}

/** The transcript as it is kept. The rest of a long body is left out, so that no provider fills the state. */
function toStoredText(records: readonly TranscriptRecord[]): string {
  return records
    .map((record) => {
      const body = record.kind === 'exchange' ? record.answer?.body : undefined;
      if (record.kind !== 'exchange' || record.answer === undefined || body === undefined) return record;
      const more = body.length - MOST_BODY_CHARACTERS;
      if (more <= 0) return record;
      const { leftOut = 0 } = record.answer;
      const answer = { ...record.answer, body: body.slice(0, MOST_BODY_CHARACTERS), leftOut: leftOut + more };
      return { ...record, answer };
    })
    .map((record) => `${JSON.stringify(record)}\n`)
    .join('');
}

/** Opens the entries again that earlier probes read as gone and a list shows alive, so that the next sweep destroys them. */
function reopenListed(
  { clock }: ProbeParts,
  records: readonly TranscriptRecord[],
  gone: readonly (readonly [id: string, GoneInstance])[],
): void {
  const listed = records.flatMap((record) => (record.kind === 'exchange' ? (listOf(record) ?? []) : []));
  const alive = new Set(
    listed.filter((instance) => instance['status'] !== 'DESTROYED').map((instance) => idOf(instance) ?? ''),
  );
  for (const [id, { stored, entry }] of gone) {
    if (!alive.has(id)) continue;
    const file = reopenLedgerFile(stored.path);
    const ledger = new Ledger({ file, runId: stored.runId, wall: () => clock.wall() });
    ledger.reopen(entry, 'it was read as gone, and a later GET /instances listed it again');
    file.close();
  }
}

/** No connection, so no request arrived. */
const NOT_CONNECTED = ['dns', 'connect', 'tls'];

/**
 * Marks what an outage leaves as superseded, so that no check judges it: answers of 503 with `Retry-After`, connections that
 * were not accepted, and reads without an answer. They count as unanswered reads instead: over weeks it is their share that
 * matters.
 */
function withoutOutages(records: readonly TranscriptRecord[]): TranscriptRecord[] {
  return records.map((record) =>
    record.kind === 'exchange' && isOutage(record) ? { ...record, superseded: true } : record,
  );
}

function isOutage({ request, answer, failure }: Exchange): boolean {
  if (answer !== undefined) return answer.status === 503 && answer.headers['retry-after'] !== undefined;
  if (failure === undefined || failure.kind === 'too_large' || failure.kind === 'not_http') return false;
  return request.method === 'GET' || NOT_CONNECTED.includes(failure.kind);
}
